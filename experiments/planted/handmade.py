"""Does `sqa diagnose` find errors of the kinds that people make, written by hand into good translations?

    python -m experiments.planted.handmade es pl
    python -m experiments.planted.handmade es --detector words
    python -m experiments.planted.handmade es --probability 0.2

handmade.tsv has a line for each error: kind, source languages, question, sentence from 0, what stands in the bundled
English sentence and what is written instead.  The questions are CC0, and so are these errors; nothing is learnt from
them.  A sentence has one error at most, and 45 questions of 180 sentences have some 70.  They are diagnosed as a run of
their translations would be, with the shipped weights, at the shipped threshold unless another is given.

An error is found if one of its words is flagged; where words were left out, the next one counts.  Precision: the share
of all flagged words that belong to an error.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from experiments.studies.planted_errors import trace_of
from sqa.core.errors import DataError
from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa.diagnose.alignment import load_aligner
from sqa.diagnose.detector import load_detector
from sqa.diagnose.scores import SCORERS
from sqa.diagnose.step_errors import TARGET, DiagnoseConfig, step_errors
from sqa.files import records
from sqa.run.folder import tsv

FILE = Path(__file__).parent / "handmade.tsv"
COLUMNS = 6
UNSCORED = "words"  # the detector without a model
HEADER = ("language", "detector", "kind", "errors", "found", "flagged", "precision", "recall")

Marked = list[list[tuple[str, str]]]  # per sentence its words, each with the kind of the error it belongs to, "" = none


class Row(NamedTuple):
    """How the errors of one kind, or of all, were found."""

    language: str
    detector: str
    kind: str
    errors: int
    found: int
    flagged: int | None = None  # words, right or wrong, in all questions; None for a kind alone
    right: int = 0  # of these, words of an error

    def cells(self) -> list[str]:
        """The cells of a TSV line."""
        precision = f"{self.right / self.flagged:.3f}" if self.flagged else "n/a"
        flagged = "n/a" if self.flagged is None else str(self.flagged)
        return [*map(str, self[:5]), flagged, precision, f"{self.found / self.errors:.3f}"]


def handmade(language: str) -> list[tuple[Question, Marked]]:
    """The bundled questions with their English sentences, spoilt where an error was written."""
    errors = {}
    for number, (kind, languages, id, sentence, right, wrong) in enumerate(records.table(FILE, COLUMNS), 1):
        if language in languages.split():
            errors[id, int(sentence)] = (number, kind, right, wrong)
    found = []
    for question in load_questions(f"mini-{language}"):
        lines: Marked = []
        for number, line in enumerate(question.reference):
            error = errors.pop((question.id.removesuffix(f"-{language}"), number), None)
            lines.append([(word, "") for word in line.split()] if error is None else _written(line, *error))
        found.append((question, lines))
    if errors:
        raise DataError(f"{FILE}: no bundled question has the sentences {sorted(errors)}")
    return found


def _written(line: str, number: int, kind: str, right: str, wrong: str) -> list[tuple[str, str]]:
    """The words with an error, and the kind at each wrong one; at the next one where words were left out."""
    if line.count(right) != 1:
        raise DataError(f"{FILE}:{number}: {right!r} must be in the sentence once, it is {line.count(right)} times")
    before, after = line.split(), line.replace(right, wrong).split()
    marked: set[int] = set()
    for what, _, _, start, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what != "equal":
            marked.update(range(start, max(stop, start + 1)))
    return [(word, kind if j in marked else "") for j, word in enumerate(after)]


def rows_of(language: str, detector: str, config: DiagnoseConfig | None = None) -> list[Row]:
    """All errors, then each kind."""
    scorer = None if detector == UNSCORED else SCORERS.resolve(detector)(f"{language}-{TARGET}")
    given = handmade(language)
    traces = [trace_of(question, [[word for word, _ in line] for line in lines]) for question, lines in given]
    judged = step_errors(traces, load_aligner(f"{language}-{TARGET}"), config, load_detector(language, scorer))
    errors: list[tuple[str, bool]] = []
    flagged = right = 0
    for (_, lines), found in zip(given, judged, strict=True):
        flags = iter(found.hallucinated)
        for line in lines:
            marks = [(kind, next(flags)) for _, kind in line]
            flagged += sum(flag for _, flag in marks)
            right += sum(flag for kind, flag in marks if kind)
            for kind in {kind for kind, _ in marks} - {""}:
                errors.append((kind, any(flag for other, flag in marks if other)))
    rows = [Row(language, detector, "all", len(errors), sum(hit for _, hit in errors), flagged, right)]
    for kind in sorted({kind for kind, _ in errors}):
        hits = [hit for other, hit in errors if other == kind]
        rows.append(Row(language, detector, kind, len(hits), sum(hits)))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """The command of the module's docstring; TSV on stdout."""
    detectors = (UNSCORED, *SCORERS.names())
    parser = argparse.ArgumentParser(prog="python -m experiments.planted.handmade", description=__doc__.split("\n")[0])
    parser.add_argument("languages", nargs="+", choices=("es", "pl"))
    parser.add_argument("--detector", choices=detectors, default="language-model")
    parser.add_argument("--probability", type=float, default=DiagnoseConfig().probability, help="threshold, 0..1")
    given = parser.parse_args(arguments)
    config = DiagnoseConfig(probability=given.probability)
    rows = [row for language in given.languages for row in rows_of(language, given.detector, config)]
    print(tsv(HEADER, (row.cells() for row in rows)), end="")


if __name__ == "__main__":
    main()
