"""Which errors does `sqa diagnose` find in good translations that were corrupted?

    python -m experiments.planted.found es pl                             # human-like errors, written by hand
    python -m experiments.planted.found es --detector words --probability 0.2
    python -m experiments.planted.found es --plant inserted 0.1 --limit 40    # words inserted from other questions
    python -m experiments.planted.found es --plant dropped 2 --limit 40       # omitted stretches

handmade.tsv has one line per error: kind, source languages, question, 0-based sentence, the words of the bundled
English sentence, and the words that replace them.  The questions and these errors are CC0, and nothing is trained
on them.  A sentence has at most one error; the 45 questions (180 sentences) have about 70 errors.

--plant corrupts the human translations of XQB instead, with one kind of error from experiments/planted/materials.py: a
number of errors per question, or a share of its words.  All texts are diagnosed as if a run had produced them, with
the shipped weights and, by default, the shipped threshold.

An error is found if one of its words is flagged; for an omission, the next word counts.  Precision is the share of
all flagged words that belong to an error.  Dropped stretches are counted by sentence: a sentence is flagged if an
omission is found in it.  A human translation also has words without a source word, so precision is a lower bound.
"""

import argparse
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

from experiments.planted.materials import KINDS, plant, references
from sqa.core.errors import DataError
from sqa.core.registry import SCORERS
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission, Question
from sqa.data.datasets import load_questions
from sqa.diagnose.alignment import load_aligner
from sqa.diagnose.detector import load_detector
from sqa.diagnose.step_errors import TARGET, DiagnoseConfig, StepErrors, step_errors
from sqa.files import records
from sqa.results import Table, show

FILE = Path(__file__).parent / "handmade.tsv"
COLUMNS = 6
UNSCORED = "words"  # the detector that uses no model
DROPPED = "dropped"
HEADER = ("language", "detector", "kind", "errors", "found", "flagged", "precision", "recall")

Marked = list[list[tuple[str, str]]]  # per sentence: its words, each with the kind of its error, "" = none
Given = list[tuple[Question, Marked]]
Judged = list[tuple[str, bool, tuple[int, ...]]]  # kind, whether flagged, position of the error


def handmade(language: str) -> Given:
    """Return the bundled questions with their English sentences, corrupted by the hand-written errors."""
    errors = {}
    for number, (kind, languages, id, sentence, right, wrong) in enumerate(records.table(FILE, COLUMNS), 1):
        if language in languages.split():
            errors[id, int(sentence)] = (number, kind, right, wrong)
    texts = []
    for question in load_questions(f"mini-{language}"):
        lines: Marked = []
        for number, line in enumerate(question.reference):
            error = errors.pop((question.id.removesuffix(f"-{language}"), number), None)
            lines.append([(word, "") for word in line.split()] if error is None else _written(line, *error))
        texts.append((question, lines))
    if errors:
        raise DataError(f"{FILE}: no bundled question has the sentences {sorted(errors)}")
    return texts


def _written(line: str, number: int, kind: str, right: str, wrong: str) -> list[tuple[str, str]]:
    """Return the words of a line with an error, with `kind` at each wrong word or at the word after an omission."""
    if line.count(right) != 1:
        raise DataError(
            f"{FILE}:{number}: {right!r} must occur once in the sentence, but occurs {line.count(right)} times"
        )
    before, after = line.split(), line.replace(right, wrong).split()
    marked: set[int] = set()
    for tag, _, _, start, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            marked.update(range(start, max(stop, start + 1)))
    return [(word, kind if j in marked else "") for j, word in enumerate(after)]


def planted(language: str, kind: str, rate: float, limit: int | None) -> Given:
    """Return the first `limit` questions of XQB, corrupted by one kind of error."""
    texts = list(islice(references(language), limit))
    questions = {question.id: question for question in load_questions(f"xqb-{language}")}
    marked: dict[str, Marked] = {text.id: [] for text in texts}
    for sentence in plant(texts, (int(rate) if rate >= 1 else rate,), (kind,), 0):
        marked[sentence.text].append(list(zip(sentence.words, sentence.kinds, strict=True)))
    return [(questions[id], lines) for id, lines in marked.items()]


def diagnosed(language: str, detector: str, texts: Given, config: DiagnoseConfig | None) -> list[StepErrors]:
    """Return the errors found in each translation, diagnosed as if at full input."""
    scorer = None if detector == UNSCORED else SCORERS.resolve(detector)(f"{language}-{TARGET}")
    traces = []
    for question, lines in texts:
        pairs = enumerate(zip(question.sentences, lines, strict=True))
        words = [Emission(i, word, len(sentence), True) for i, (sentence, line) in pairs for word, _ in line]
        traces.append(QuestionTrace(question, tuple(words)))
    return step_errors(traces, load_aligner(f"{language}-{TARGET}"), config, load_detector(language, scorer))


def of_words(texts: Given, results: Sequence[StepErrors], together: bool) -> Judged:
    """Judge every word.  `together`: whether all words of one kind in a sentence count as one error."""
    judged: Judged = []
    for index, ((_, lines), errors) in enumerate(zip(texts, results, strict=True)):
        flags = iter(errors.hallucinated)
        for number, line in enumerate(lines):
            judged += [(kind, next(flags), (index, number, 0 if together else j)) for j, (_, kind) in enumerate(line)]
    return judged


def of_sentences(texts: Given, results: Sequence[StepErrors]) -> Judged:
    """Judge every sentence; a sentence shorter than its human translation has an omission."""
    judged: Judged = []
    for index, ((question, lines), errors) in enumerate(zip(texts, results, strict=True)):
        flagged = {finding.sentence for finding in errors.findings if finding.kind == "omission"}
        for number, (line, whole) in enumerate(zip(lines, question.reference, strict=True)):
            judged.append((DROPPED if len(line) < len(whole.split()) else "", number in flagged, (index, number)))
    return judged


def lines_of(language: str, detector: str, judged: Judged) -> Iterator[list[str]]:
    """Yield a line with the counts of all errors, then a line for each kind."""
    flagged, right = sum(flag for _, flag, _ in judged), sum(flag for kind, flag, _ in judged if kind)
    errors = {(kind, which) for kind, _, which in judged if kind}
    hits = {(kind, which) for kind, flag, which in judged if kind and flag}
    for kind in ("all", *sorted({kind for kind, _ in errors})):
        n, n_hits = (sum(kind in ("all", other) for other, _ in of) for of in (errors, hits))
        of_all = [str(flagged), f"{right / flagged:.3f}" if flagged else "n/a"] if kind == "all" else ["n/a", "n/a"]
        yield [language, detector, kind, str(n), str(n_hits), *of_all, f"{n_hits / n:.3f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line described in the module's docstring, and print the counts as TSV."""
    parser = argparse.ArgumentParser(prog="python -m experiments.planted.found", description=__doc__.split("\n")[0])
    parser.add_argument("languages", nargs="+", choices=("es", "pl"))
    parser.add_argument("--detector", choices=(UNSCORED, *SCORERS.names()), default="language-model")
    parser.add_argument("--probability", type=float, default=DiagnoseConfig().probability, help="threshold, 0..1")
    parser.add_argument("--plant", nargs=2, metavar=("KIND", "RATE"), help=f"one of {', '.join(KINDS)}, and how many")
    parser.add_argument("--limit", type=int, default=None, metavar="N", help="corrupt only the first N questions")
    options = parser.parse_args(arguments)
    lines: list[list[str]] = []
    for language in options.languages:
        kind, rate = options.plant or ("", 0)
        texts = planted(language, kind, float(rate), options.limit) if kind else handmade(language)
        results = diagnosed(language, options.detector, texts, DiagnoseConfig(probability=options.probability))
        judged = of_sentences(texts, results) if kind == DROPPED else of_words(texts, results, together=not kind)
        lines += lines_of(language, options.detector, judged)
    show(Table(HEADER, lines))


if __name__ == "__main__":
    main()
