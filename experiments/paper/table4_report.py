"""Table 4 as CSV: scores with intervals, paired differences, and what was not computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from experiments.made import Difference, LeftOut, Made, gap
from experiments.paper.table4_rows import GOLD, NOTHING, Answered, NotComputed, Table4Config
from sqa.core.significance import Comparison, Interval, bootstrap, bootstrap_many, compare_many
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission
from sqa.metrics.quality.bleu import Bleu
from sqa.metrics.short_answers import LanguageMean, by_language

MEAN = "mean"  # of the languages
METRICS = ("em", "f1", "em.spans", "f1.spans", "em.yes_no", "found")
DIFFERENCES = ("em", "f1", "f1.spans")
BLEU = "bleu"  # of the questions, against the human translation


class Line(NamedTuple):
    """One row of the table in one language, or in the mean of all."""

    set: str
    language: str  # or MEAN
    system: str
    reader: str
    parts: list[Answered]  # one for each language it is about
    scores: dict[str, Interval | None]  # by METRICS, 0..1, and BLEU, 0..100; None = undefined here

    @property
    def questions(self) -> int:
        """How many."""
        return sum(len(part.questions) for part in self.parts)

    def stats(self, metric: str) -> np.ndarray:
        """(n, 2 L) of `LanguageMean`, the questions of all parts one after the other."""
        return by_language(
            np.concatenate([_values(part, metric) for part in self.parts]).tolist(),
            [part.language for part in self.parts for _ in part.questions],
        )


class Pair(NamedTuple):
    """Two systems with one reader on the same questions."""

    set: str
    language: str
    reader: str
    a: str
    b: str
    metric: str
    found: Comparison


def _values(part: Answered, metric: str) -> np.ndarray:
    """(n,) 0..1, nan for questions that the metric leaves out."""
    if metric == "found":
        return np.full(len(part.questions), np.nan) if part.found is None else part.found
    values = part.em if metric.startswith("em") else part.f1
    if metric.endswith(".yes_no"):
        return np.where(part.spans, np.nan, values)
    return np.where(part.spans, values, np.nan) if metric.endswith(".spans") else values


def write_all(made: Made, results: Sequence[Answered], left_out: Sequence[NotComputed], config: Table4Config) -> None:
    """Write scores, all paired differences, and those of the claims, which are printed."""
    table = lines_of(results, config)
    pairs = list(differences_of(table, config))
    made.csv("table4.csv", table_csv(table, left_out))
    made.csv("pairs.csv", differences_csv(pairs))
    out = [LeftOut(f"{o.set} {o.language} {o.system} {o.reader}", o.reason) for o in left_out]
    made.differences(claims_of(table, pairs, config), out)


def lines_of(results: Sequence[Answered], config: Table4Config) -> list[Line]:
    """The rows with numbers: each set, language and then the mean; readers and systems as they were measured."""
    lines = []
    human = {system.label for system in config.systems if system.question == "human"}
    bleu: dict[tuple[str, str, str, int], Interval | None] = {}  # by set, language, system and questions
    for name in config.sets:
        of_set = [one for one in results if one.set == name]
        for language in (*config.languages, MEAN):
            groups: dict[tuple[str, str], list[Answered]] = {}
            for one in of_set:
                if language in (one.language, MEAN):
                    groups.setdefault((one.system, one.reader), []).append(one)
            wanted = len(config.languages) if language == MEAN else 1
            if language == MEAN and wanted == 1:
                continue
            for (system, reader), parts in groups.items():
                if len(parts) != wanted:
                    continue
                where = (name, language, system, len(parts[0].questions))  # a reader may be asked fewer
                if where not in bleu:
                    bleu[where] = None if language == MEAN or system in human else _bleu(parts[0], config)
                bare = Line(name, language, system, reader, parts, {})
                lines.append(bare._replace(scores={**_scores(bare, config), BLEU: bleu[where]}))
    return lines


def _bleu(part: Answered, config: Table4Config) -> Interval | None:
    """BLEU of the questions in English; None without texts, or where a question has no human translation."""
    if part.texts is None or any(question.translation is None for question in part.questions):
        return None
    rule, stats = Bleu(), []
    for question, text in zip(part.questions, part.texts, strict=True):
        source = question.as_question()
        emissions = [Emission(0, word, len(source.words), ended=True) for word in text.split()]
        stats.append(rule.stats(QuestionTrace(source, emissions)))
    return bootstrap(np.array(stats), rule, config.resamples, config.seed)


def _scores(line: Line, config: Table4Config) -> dict[str, Interval | None]:
    stats = {metric: line.stats(metric) for metric in METRICS}
    defined = [metric for metric in METRICS if (stats[metric].sum(axis=0)[1::2] > 0).all()]
    rules = [LanguageMean(metric) for metric in defined]
    found = bootstrap_many([stats[metric] for metric in defined], rules, config.resamples, config.seed)
    intervals = dict(zip(defined, found, strict=True))
    return {metric: intervals.get(metric) for metric in METRICS}


def differences_of(table: Sequence[Line], config: Table4Config) -> Iterator[Pair]:
    """Every two systems with the same reader, paired over questions."""
    for a, b in combinations([line for line in table if line.system != NOTHING], 2):
        if (a.set, a.language, a.reader) == (b.set, b.language, b.reader):
            yield from _compare(a, b, config)


def _compare(a: Line, b: Line, config: Table4Config) -> list[Pair]:
    defined = [metric for metric in DIFFERENCES if a.scores[metric] is not None]
    pairs = [(a.stats(metric), b.stats(metric)) for metric in defined]
    found = compare_many(pairs, [LanguageMean(metric) for metric in defined], config.resamples, config.seed)
    return [
        Pair(a.set, a.language, a.reader, a.system, b.system, metric, one)
        for metric, one in zip(defined, found, strict=True)
    ]


# ----------------------------------------------------------------------------------------------------------- claims


def claims_of(table: Sequence[Line], pairs: Sequence[Pair], config: Table4Config) -> Iterator[Difference]:
    """The claims of experiments/paper/table4.py, by F1, of readers that were asked all questions."""
    partial = {entry.label for entry in config.readers if entry.sample is not None or entry.passages == GOLD}
    table = [line for line in table if line.reader not in partial]
    kinds = {system.label: system.question for system in config.systems}
    for one in pairs:
        order = _order(kinds[one.a]) - _order(kinds[one.b])
        if one.metric == "f1" and order and one.reader not in partial:
            better, worse, found = (one.a, one.b, one.found) if order > 0 else (one.b, one.a, _turned(one.found))
            claim = f"answers to {better} are better than to {worse} (F1)"
            yield gap(f"{one.set} {one.language}", better, one.reader, claim, found)
    floors = {(line.set, line.language): line for line in table if line.system == NOTHING}
    for line in table:
        floor = floors.get((line.set, line.language))
        if floor is not None and line.system != NOTHING:
            found = next(one.found for one in _compare(line, floor, config) if one.metric == "f1")
            claim = f"{line.reader} on {line.system} beats {floor.reader} (F1)"
            yield gap(f"{line.set} {line.language}", line.system, line.reader, claim, found)


def _turned(c: Comparison) -> Comparison:
    """b minus a."""
    return replace(c, a=c.b, b=c.a, diff=-c.diff, low=-c.high, high=-c.low)


def _order(question: str) -> int:
    return {"source": 0, "trained": 1, "translated": 1, "human": 2}[question]


# -------------------------------------------------------------------------------------------------------- files


def table_csv(table: Sequence[Line], left_out: Sequence[NotComputed]) -> list[list[str]]:
    """The numbers, 0..1 but for BLEU (0..100); an empty cell is undefined, `status` says what was not computed."""
    header = ["set", "language", "system", "reader", "questions"]
    header += [f"{metric}{part}" for metric in (*METRICS, BLEU) for part in ("", ".low", ".high")]
    rows = [[*header, "status"]]
    for line in table:
        numbers = []
        for metric in (*METRICS, BLEU):
            interval = line.scores[metric]
            ends = (None, None, None) if interval is None else (interval.value, interval.low, interval.high)
            numbers += ["" if x is None else f"{x:.6f}" for x in ends]
        rows.append([line.set, line.language, line.system, line.reader, str(line.questions), *numbers, "ok"])
    empty = [""] * (1 + 3 * (len(METRICS) + 1))
    rows += [[o.set, o.language, o.system, o.reader, *empty, f"not computed: {o.reason}"] for o in left_out]
    return rows


def differences_csv(differences: Sequence[Pair]) -> list[list[str]]:
    """a minus b with interval and both p-values."""
    rows = [["set", "language", "reader", "a", "b", "metric", "value.a", "value.b", "difference", "low", "high"]]
    rows[0] += ["p.bootstrap", "p.randomization", "questions"]
    for one in differences:
        c = one.found
        numbers = [f"{x:.6f}" for x in (c.a, c.b, c.diff, c.low, c.high, c.p_bootstrap, c.p_randomization)]
        rows.append([one.set, one.language, one.reader, one.a, one.b, one.metric, *numbers, str(c.n)])
    return rows
