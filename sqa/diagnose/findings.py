"""`sqa diagnose RUN`: the worst step-wise errors of a finished run, as TSV or JSON."""

import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from sqa.core import ConfigError, did_you_mean
from sqa.core.registry import SCORERS
from sqa.diagnose.alignment import load_aligner
from sqa.diagnose.detector import WordScorer, load_detector
from sqa.diagnose.step_errors import KINDS, TARGET, Finding, StepErrors, ranked, step_errors
from sqa.pipeline import RunFolder, open_run
from sqa.results import Table, show

HEADER = tuple(
    "question kind severity loss rank_before rank_after step read target source_at source probability".split()
)
NONE = "-"  # text of a cell without a value
LINKS = "links.json"  # file in the run's folder: word links, so that a second diagnosis has the same findings
SCORES = "scores.{}.json"  # file in the run's folder: a model's cached scores of the words
STRONGEST = "language-model"  # scorer in SCORERS with which detection is best
AUTO, UNSCORED = "auto", "words"  # AUTO: STRONGEST if it is installed, else UNSCORED; UNSCORED: without a scorer


def main(
    run: Path,
    top: int | None = 20,
    questions: Collection[str] = (),
    kinds: Collection[str] = (),
    detector: str = UNSCORED,
) -> None:
    """Print the `top` worst findings (None: all) of the given questions and kinds (empty: all).

    Columns: `loss` and `severity` in nats (see `sqa.diagnose.step_errors.Finding`); ranks are 1-based, or "-" if the
    answer is not among the guesses; `step` holds 0-based steps, `read` the source words read at the step, `source_at`
    the 0-based first and last source word; `probability` (0-1) is the probability that a word is wrong.  A summary goes
    to stderr.
    """
    if top is not None and top < 1:
        raise ConfigError(f"--top: must be >= 1, got {top}")
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"--kind: {kind!r} is not one of {', '.join(KINDS)}{did_you_mean(kind, KINDS)}")
    finished = open_run(run)
    findings = findings_of(finished, questions, kinds, detector)
    for line in summary(finished, findings):
        print(f"sqa: {line}", file=sys.stderr)
    shown = findings[:top]
    show(table(shown), [{**asdict(finding), "severity": finding.severity} for finding in shown])


def findings_of(
    run: RunFolder,
    questions: Collection[str] = (),
    kinds: Collection[str] = (),
    detector: str = UNSCORED,
) -> list[Finding]:
    """Return the findings of a run, worst first.

    The whole run is aligned even if `questions` names a few, since links depend on all texts.  `detector` is "words",
    a model of SCORERS that also scores every word, or "auto".
    """
    indices = run.indices(questions, "--questions: ")
    errors = errors_of(run, detector)
    found = chain.from_iterable(errors[index].findings for index in indices)
    return ranked(finding for finding in found if not kinds or finding.kind in kinds)


def errors_of(run: RunFolder, detector: str = UNSCORED) -> list[StepErrors]:
    """Return the errors of each question; the arguments are those of `findings_of`."""
    if run.config.guesser is None:
        raise ConfigError(
            f"{run.folder}: has no guesses, so words have no effect on ranks; add a guesser and run again"
        )
    languages = sorted({q.language for q in run.questions})
    if len(languages) > 1:
        raise ConfigError(
            f"{run.folder}: questions in {', '.join(languages)}; only one language can be aligned at a time"
        )
    aligner = load_aligner(f"{languages[0]}-{TARGET}", run.folder / LINKS)
    scorer, name = _scorer(detector, f"{languages[0]}-{TARGET}")
    judge = load_detector(languages[0], scorer, cache=run.folder / SCORES.format(name))
    return step_errors(run.traces, aligner, detector=judge)


def _scorer(detector: str, pair: str) -> tuple[WordScorer | None, str]:
    """Return the word scorer that `detector` names, None for "words", and its name; print the choice to stderr."""
    if detector == UNSCORED:
        return None, UNSCORED
    allowed = (AUTO, UNSCORED, *SCORERS.names())
    if detector not in allowed:
        near = did_you_mean(detector, allowed)
        raise ConfigError(f"--detector: {detector!r} is not one of {', '.join(allowed)}{near}")
    name = STRONGEST if detector == AUTO else detector
    try:
        scorer = SCORERS.resolve(name)(pair)
    except ConfigError as error:
        if detector != AUTO:
            raise
        print(f"sqa: words judged without a language model: {error}", file=sys.stderr)
        return None, UNSCORED
    print(f"sqa: words judged with the scores of the {name}", file=sys.stderr)
    return scorer, name


def summary(run: RunFolder, findings: Sequence[Finding]) -> list[str]:
    """Return one line per kind of finding: numbers of findings and questions, and the log MRR lost at the findings."""
    lines = []
    for kind in KINDS:
        of_kind = [finding for finding in findings if finding.kind == kind]
        loss = sum(max(finding.loss, 0.0) for finding in of_kind)
        lost = "" if kind == "omission" else f", {loss:.1f} nats of log reciprocal rank lost there"
        of = len({finding.question for finding in of_kind})
        lines.append(f"{kind}: {len(of_kind)} in {of} of {len(run.questions)} questions{lost}")
    return lines


def table(findings: Sequence[Finding]) -> Table:
    """Return one row per finding, with the columns HEADER."""
    digits = {"severity": 3, "loss": 3, "probability": 2}
    return Table(HEADER, [_cells(finding) for finding in findings], digits, NONE)


def _cells(finding: Finding) -> list[Any]:
    span = finding.span
    return [
        finding.question,
        finding.kind,
        finding.severity,
        finding.loss,
        finding.rank_before,
        finding.rank_after,
        _range(finding.first, finding.last),
        finding.read,
        " ".join(finding.words) or None,
        None if span is None else _range(span.start, span.stop - 1),
        None if span is None else " ".join(span.words),
        finding.probability,
    ]


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
