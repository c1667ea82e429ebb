"""Does `sqa diagnose` find errors that are known to be there?  Precision and recall on planted ones.

    python -m experiments.studies.planted_errors references:es references:pl

A good translation is spoilt in two ways, each drawn by (seed, question id) alone:

    hallucination  content words of OTHER questions' translations are inserted, RATE per target word (at least one per
                   question).  Found = the step's word is flagged.  Judged word by word, content words only: precision
                   = planted among flagged, recall = flagged among planted.
    omission       in every other sentence (a coin) a clause of CLAUSE words or more between commas is deleted.  Found =
                   the sentence has an omission.  Judged by sentences that have such a clause.

A free translation has words without a source word and leaves out others: those count as false alarms, so precision is
a lower bound, and the last column says how often unspoilt text is flagged.  The material is the human references of XQB
whose number of sentences is that of the source.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, pairwise
from typing import NamedTuple

import numpy as np

from experiments.planted.materials import rng_for
from sqa.core.errors import ConfigError
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission, Question
from sqa.data.datasets import load_questions
from sqa.diagnose.alignment import load_aligner
from sqa.diagnose.detector import load_detector
from sqa.diagnose.function_words import is_content, strip_edges
from sqa.diagnose.priors import form
from sqa.diagnose.step_errors import TARGET, DiagnoseConfig, StepErrors, step_errors
from sqa.run.folder import tsv

RATE = 0.1  # inserted words per target word
CLAUSE = 4  # words: shorter stretches between commas are not deleted
LANGUAGES = ("es", "pl")
_BREAK = re.compile(r"[,;:—–]$")

Lines = list[list[str]]  # the words of each sentence's translation


@dataclass(frozen=True, slots=True)
class Translated:
    """A question and a translation of each of its sentences."""

    question: Question
    lines: Lines


class Row(NamedTuple):
    """How one kind of planted error was found in one material."""

    material: str
    kind: str  # "hallucination" (counted in words) or "omission" (counted in sentences)
    planted: int
    flagged: int  # among all that were judged, planted or not
    found: int  # both
    judged: int

    @property
    def precision(self) -> float | None:
        """0-1; None: nothing was flagged."""
        return self.found / self.flagged if self.flagged else None

    @property
    def recall(self) -> float | None:
        """0-1; None: nothing was planted."""
        return self.found / self.planted if self.planted else None

    @property
    def false_alarms(self) -> float | None:
        """Share, 0-1, of what was NOT planted that is flagged; None: all was planted."""
        rest = self.judged - self.planted
        return (self.flagged - self.found) / rest if rest else None

    def cells(self) -> list[str]:
        """The cells of a TSV line."""
        shares = ("n/a" if x is None else f"{x:.3f}" for x in (self.precision, self.recall, self.false_alarms))
        return [self.material, self.kind, *map(str, (self.planted, self.flagged, self.found)), *shares]


HEADER = ("material", "kind", "planted", "flagged", "found", "precision", "recall", "false_alarms")


def material(name: str, limit: int | None) -> list[Translated]:
    """XQB's questions with as many English sentences as source sentences, of "references:es" or "references:pl"."""
    kind, _, language = name.partition(":")
    if kind != "references" or language not in LANGUAGES:
        raise ConfigError(f"material: expected references:es or references:pl, got {name!r}")
    whole = (q for q in load_questions(f"xqb-{language}") if len(q.reference) == len(q.sentences))
    return [Translated(question, [line.split() for line in question.reference]) for question in islice(whole, limit)]


def trace_of(question: Question, lines: Lines) -> QuestionTrace:
    """The trace of a translator that reads each sentence whole and writes these words."""
    emissions = [
        Emission(number, word, len(sentence), True)
        for number, (sentence, words) in enumerate(zip(question.sentences, lines, strict=True))
        for word in words
    ]
    return QuestionTrace(question, tuple(emissions))


# ------------------------------------------------------------------------------------------------------------- planting


def insert_words(lines: Lines, pool: Sequence[str], rng: np.random.Generator) -> tuple[Lines, list[bool]]:
    """Lines with words of `pool` that they do not have inserted, and for each word in order whether it was."""
    have = {form(word, TARGET) for line in lines for word in line}
    strangers = [word for word in pool if form(word, TARGET) not in have]
    rows = [[(word, False) for word in line] for line in lines]
    written = [row for row in rows if row]
    for _ in range(max(1, round(RATE * sum(map(len, lines)))) if written and strangers else 0):
        row = written[rng.integers(len(written))]
        row.insert(int(rng.integers(len(row) + 1)), (strangers[rng.integers(len(strangers))], True))
    return [[word for word, _ in row] for row in rows], [planted for row in rows for _, planted in row]


def clauses(words: Sequence[str]) -> list[tuple[int, int]]:
    """(start, stop) of the stretches between commas with CLAUSE words or more, if the sentence has other words too."""
    ends = [i + 1 for i, word in enumerate(words) if _BREAK.search(word)]
    cuts = [0, *ends, len(words)]
    spans = [(a, b) for a, b in pairwise(cuts) if b - a >= CLAUSE]
    return [span for span in spans if span != (0, len(words))]


def delete_clauses(lines: Lines, rng: np.random.Generator) -> tuple[Lines, dict[int, bool]]:
    """Lines some of which lack a clause, and for each line that had one to lose whether it did."""
    spoilt, deleted = [list(line) for line in lines], {}
    for number, line in enumerate(lines):
        spans = clauses(line)
        if spans:
            deleted[number] = bool(rng.integers(2))
            start, stop = spans[rng.integers(len(spans))]
            if deleted[number]:
                del spoilt[number][start:stop]
    return spoilt, deleted


# -------------------------------------------------------------------------------------------------------------- judging


def row(name: str, kind: str, judged: Sequence[tuple[bool, bool]]) -> Row:
    """A row from (planted, flagged) of everything that was judged."""
    planted, flagged = sum(p for p, _ in judged), sum(f for _, f in judged)
    return Row(name, kind, planted, flagged, sum(p and f for p, f in judged), len(judged))


def rows_of(
    name: str,
    translated: Sequence[Translated],
    find: Callable[[Sequence[QuestionTrace]], list[StepErrors]],
    seed: int = 0,
) -> list[Row]:
    """Both kinds of errors planted in one material, and found again by `find`."""
    pool = {t.question.id: [w for w in map(strip_edges, chain(*t.lines)) if is_content(w, TARGET)] for t in translated}
    inserted, traces = [], []
    for t in translated:
        others = _others(pool, t.question.id, rng_for(seed, t.question.id, "pool"))
        lines, planted = insert_words(t.lines, others, rng_for(seed, t.question.id, "insert"))
        inserted.append(planted)
        traces.append(trace_of(t.question, lines))
    words = [
        (planted, errors.hallucinated[step])
        for trace, errors, marks in zip(traces, find(traces), inserted, strict=True)
        for step, planted in enumerate(marks)
        if is_content(trace.emissions[step].token, TARGET)
    ]
    spoilt = [delete_clauses(t.lines, rng_for(seed, t.question.id, "delete")) for t in translated]
    traces = [trace_of(t.question, lines) for t, (lines, _) in zip(translated, spoilt, strict=True)]
    sentences = []
    for errors, (_, deleted) in zip(find(traces), spoilt, strict=True):
        flagged = {f.sentence for f in errors.findings if f.kind == "omission"}
        sentences += [(gone, number in flagged) for number, gone in deleted.items()]
    return [row(name, "hallucination", words), row(name, "omission", sentences)]


def _others(pool: Mapping[str, list[str]], question: str, rng: np.random.Generator) -> list[str]:
    """Content words of ten other questions, drawn by the question's own random numbers."""
    ids = sorted(id for id in pool if id != question)
    chosen = rng.permutation(len(ids))[:10]
    return [word for i in sorted(chosen) for word in pool[ids[i]]]


def measured(name: str, limit: int | None, config: DiagnoseConfig) -> list[Row]:
    """Both rows of a material's first `limit` questions."""
    translated, language = material(name, limit), name.partition(":")[2]
    aligner, detector = load_aligner(f"{language}-{TARGET}"), load_detector(language)
    return rows_of(name, translated, partial(step_errors, aligner=aligner, config=config, detector=detector))


def main(arguments: Sequence[str] | None = None) -> None:
    """The command of the module's docstring; TSV on stdout."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.planted_errors", description=__doc__.split("\n")[0]
    )
    parser.add_argument("materials", nargs="*", default=[f"references:{language}" for language in LANGUAGES])
    parser.add_argument("--limit", type=int, default=None, metavar="N", help="the first N questions of each material")
    parser.add_argument("--probability", type=float, default=DiagnoseConfig().probability, help="see DiagnoseConfig")
    given = parser.parse_args(arguments)
    config = DiagnoseConfig(probability=given.probability)
    rows = [row for name in given.materials for row in measured(name, given.limit, config)]
    print(tsv(HEADER, (row.cells() for row in rows)), end="")


if __name__ == "__main__":
    main()
