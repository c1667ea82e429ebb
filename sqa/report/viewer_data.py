"""The data of the viewer's page (sqa/report/viewer.py), as compact JSON values.

    {"version": 1, "sqa": ..., "floor": -4.0, "top": 50, "curve": {"name", "source", "t": [...], "ew": [...]},
     "pages": [title...], "questions": [{"id", "language", "answer", "sentences": ["text"...], "reference"}],
     "runs": [{"name", "parts": {"translator": ...}, "notes": [...], "guessed", "buzzed", "aligned", "threshold",
               "traces": [...]}]}

"threshold" is the buzzer score from which the buzzer answers, or null if no single number explains all its
decisions.  "traces" has one entry per question, in the same order.  With n steps, its keys are:

    w  the n words joined by spaces (n = 0: null); a step that only retracts has an empty word
    s  [n] source words read, as differences from the previous step
    e  {step: words retracted}
    g  [n][2 * guesses] page (index in "pages"), score, page, score, ...; best first
    r  [n] rank of the answer, 0 = not among the first "top"
    b  [n] buzzer score
    z  first step at which the buzzer answers, null = never
    u  n characters: 2 probably wrong content word, 1 unaligned function word, 0 any other word
    l  [n][...] source words (0-based in the question) that the word is aligned with
    o  [first, stop] of every stretch of source words that was left out
    k  sentences about the names, numbers and dates that arrive (docs/facts.md), and the source words from which
       questions about them can be answered (docs/ask.md); missing if there are none
    f  findings, worst first: {"kind", "first", "last", "words", "source", "before", "after", "severity",
       "probability"}
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from sqa import __version__
from sqa.core import BUZZERS, QuestionTrace, SqaError
from sqa.data.priors import is_content
from sqa.diagnose.alignment import load_aligner
from sqa.diagnose.detector import load_detector
from sqa.diagnose.findings import LINKS
from sqa.diagnose.step_errors import TARGET, DiagnoseConfig, Finding, StepErrors, ranked, step_errors
from sqa.metrics.fact_metrics import summary_of
from sqa.metrics.qa import curve_named
from sqa.pipeline import Parts, RunFolder
from sqa.questions.measures import summary_of as answerable
from sqa.report.data import described, doubt, run_names

VERSION = 1  # version of this layout
CURVE = "qanta2018"
GRID = 101  # points of the expected-wins curve
DIGITS = 4  # significant digits of scores
GUESSES = 5  # guesses per step
FINDINGS = 8  # worst findings per question and run
ERRORS = DiagnoseConfig()
Pages = dict[str, int]  # title -> its index, in the order of first use


def page_data(runs: Sequence[RunFolder], indices: Sequence[int]) -> dict[str, Any]:
    """Return the page's data for the questions at `indices`, in that order; all runs have the same questions."""
    pages: Pages = {}
    names = run_names([run.folder for run in runs])
    shown = [_run(run, name, indices, pages) for run, name in zip(runs, names, strict=True)]
    questions = [runs[0].questions[index] for index in indices]
    curve = curve_named(CURVE)
    t = np.linspace(0, 1, GRID)
    return {
        "version": VERSION,
        "sqa": __version__,
        "floor": ERRORS.floor,
        "top": ERRORS.top,
        "curve": {"name": curve.name, "source": curve.source, "t": _short(t), "ew": _short(np.asarray(curve(t)))},
        "questions": [
            {
                "id": question.id,
                "language": question.language,
                "answer": question.page,
                "sentences": [" ".join(sentence) for sentence in question.sentences],
                "reference": question.reference_text,
            }
            for question in questions
        ],
        "runs": shown,
        "pages": list(pages),
    }


def _run(run: RunFolder, name: str, indices: Sequence[int], pages: Pages) -> dict[str, Any]:
    traces = list(run.traces)
    errors, notes = _errors(run, traces)
    parts = {part: getattr(run.config, part) for part in ("translator", "guesser", "buzzer")}
    notes += [f"no {part} ran" for part, component in parts.items() if component is None]
    notes += filter(None, [doubt(run)])
    return {
        "name": name,
        "parts": {part: described(component) for part, component in parts.items() if component is not None},
        "notes": notes,
        "guessed": run.config.guesser is not None,
        "buzzed": run.config.buzzer is not None,
        "aligned": errors is not None,
        "threshold": _threshold(run, traces),
        "traces": [_trace(traces[index], None if errors is None else errors[index], pages) for index in indices],
    }


def _threshold(run: RunFolder, traces: Sequence[QuestionTrace]) -> float | None:
    """Return the buzzer's own threshold if it separates all scores of buzzes from all other scores, else None."""
    if run.config.buzzer is None:
        return None
    threshold = getattr(run.config.buzzer.options, "threshold", None)
    if threshold is None:  # the threshold is in the trained model
        with suppress(SqaError):  # a run can be viewed without its buzzer
            threshold = getattr(Parts().component(BUZZERS, run.config.buzzer), "threshold", None)
    if not isinstance(threshold, (int, float)):
        return None
    decisions = ((buzz.score >= threshold, buzz.buzz) for trace in traces for buzz in trace.buzzes or ())
    return float(threshold) if all(above == answered for above, answered in decisions) else None


def _errors(run: RunFolder, traces: Sequence[QuestionTrace]) -> tuple[list[StepErrors] | None, list[str]]:
    """Return the step-wise errors of all questions, or None and the reason if the words cannot be aligned.

    All questions are aligned, shown or not, because the links of a question depend on all texts.
    """
    languages = Counter(trace.question.language for trace in traces)
    if len(languages) != 1:
        return None, [f"unaligned words not marked: questions in {', '.join(sorted(languages)) or 'no language'}"]
    language = next(iter(languages))
    aligner = load_aligner(f"{language}-{TARGET}", run.folder / LINKS)
    return step_errors(traces, aligner, ERRORS, load_detector(language)), []


def _trace(trace: QuestionTrace, errors: StepErrors | None, pages: Pages) -> dict[str, Any]:
    emissions = trace.emissions
    data: dict[str, Any] = {
        "w": " ".join(e.token for e in emissions) if emissions else None,
        "s": np.diff(trace.source_words, prepend=0).tolist(),
    }
    erased = {step: e.erase for step, e in enumerate(emissions) if e.erase}
    if erased:
        data["e"] = erased
    if trace.guesses is not None:
        data["g"] = [_guesses(row[:GUESSES], pages) for row in trace.guesses]
        data["r"] = [int(rank) if rank <= ERRORS.top else 0 for rank in trace.rank]
    if trace.buzzes is not None:
        data["b"] = _short([buzz.score for buzz in trace.buzzes])
        data["z"] = next((step for step, buzz in enumerate(trace.buzzes) if buzz.buzz), None)
    if summary := " ".join(filter(None, (summary_of(trace), answerable(trace)))):
        data["k"] = summary
    if errors is not None:
        marks = zip(errors.unaligned, errors.hallucinated, emissions, strict=True)
        data["u"] = "".join(
            "2" if wrong else "1" if bad and not is_content(emission.token, TARGET) else "0"
            for bad, wrong, emission in marks
        )
        data["l"] = [list(links) for links in errors.links]
        data["o"] = [[f.span.start, f.span.stop] for f in errors.findings if f.kind == "omission" and f.span]
        data["f"] = [_finding(finding) for finding in ranked(errors.findings)[:FINDINGS]]
    return data


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "first": finding.first,
        "last": finding.last,
        "words": " ".join(finding.words),
        "source": " ".join(finding.span.words) if finding.span else "",
        "before": finding.rank_before,
        "after": finding.rank_after,
        "severity": round(finding.severity, 2),
        "probability": None if finding.probability is None else round(finding.probability, 2),
    }


def _guesses(row: Sequence[Any], pages: Pages) -> list[float]:
    flat: list[float] = []
    for guess, score in zip(row, _short([guess.score for guess in row]), strict=True):
        flat += (pages.setdefault(guess.page, len(pages)), score)
    return flat


def _short(values: Any) -> list[float]:
    """Return numbers with DIGITS significant digits, whole numbers without a decimal point."""
    rounded = (float(f"{float(value):.{DIGITS}g}") for value in values)
    return [int(value) if value.is_integer() else value for value in rounded]
