"""Validity by known groups: which metrics notice damage of a known kind in the human translation.

Every group is a text in place of the human translation, shown after each source sentence, so that all groups have the
same pace.  Each bundled guesser answers with its own buzzer.  A valid metric orders the groups as a reader would: the
intact text and a harmless change first, another question's text last.

    change   metric of the group minus that of the intact text, paired, with its interval over questions
    drop     share of the way from the intact text (0) to another question's text (1): comparable across metrics

A name is a word with a capital that no reference of the set writes in lower case; a number has a digit or is an English
number word of the list below.  Neither uses the rules of the metric `facts`, so the groups do not presuppose it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Ledger, Row, row_of
from experiments.lab.tables import number
from experiments.studies.fact_changes import AUXILIARIES
from sqa import metrics as metric_names
from sqa.api.experiment import Entry, Experiment
from sqa.core.differences import compare_many
from sqa.core.languages import language_of
from sqa.core.significance import bootstrap_weights, percentiles, score_sums
from sqa.core.types import Floats, Question
from sqa.data.datasets import load_questions
from sqa.data.perturb import rng_for
from sqa.files.atomic import write_text
from sqa.report import plots
from sqa.results import intervals, markdown

DATASETS, SIZE = ("xqb-es", "xqb-pl"), 147
LIMITS = {"xqb-es": None, "xqb-pl": SIZE}  # as many questions of each set, so that two cores take twenty minutes
GUESSERS: Mapping[str, tuple[Mapping[str, Any], str]] = {  # name -> guesser, model of its buzzer
    "rerank": ({"name": "rerank"}, "rerank-translated"),
    "bm25": ({"name": "bm25"}, "bm25"),
    "gru": ({"name": "gru"}, "gru"),
    "bert": ({"name": "bert", "dtype": "int8"}, "bert"),
}
BEST = "rerank"
TEXT, ANSWERS = ("bleu", "chrf", "facts"), ("ew", "accuracy")
INTACT, OTHER = "intact", "another question's text"
NUMBERS = tuple(
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand "
    "second third fourth fifth sixth seventh eighth ninth tenth".split()
)
_CORE = re.compile(r"^(\W*)(.*?)((?:['’]s)?\W*)$", re.DOTALL)  # a word between its marks
Sentence = list[str]


class Words(NamedTuple):
    """Word lists of a data set."""

    lower: frozenset[str]  # every word that a reference writes in lower case
    names: tuple[str, ...]  # every name of the references, as often as it occurs

    def is_name(self, word: str) -> bool:
        """Return whether a word is a name, by the rule of this module."""
        core = bare(word)
        return len(core) > 1 and core[0].isupper() and core.lower() not in self.lower


Change = Callable[[Sentence, random.Random, Words], Sentence]


def bare(word: str) -> str:
    """Return a word without the marks around it and its genitive."""
    return _CORE.match(word).group(2)


def with_core(word: str, core: str) -> str:
    """Return a word with another core between the same marks."""
    before, _, after = _CORE.match(word).groups()
    return f"{before}{core}{after}"


def unmarked(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Lower case, no punctuation: a listener hears no difference."""
    return [core for word in sentence if (core := re.sub(r"[^\w\s'’-]", "", word).lower())]


def shuffled(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """The same words in a random order."""
    return rng.sample(sentence, len(sentence))


def roles_swapped(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """The first name and the next different one change places."""
    runs = [(is_name, list(run)) for is_name, run in groupby(sentence, words.is_name)]
    named = [i for i, (is_name, _) in enumerate(runs) if is_name]
    others = [i for i in named[1:] if [*map(bare, runs[i][1])] != [*map(bare, runs[named[0]][1])]]
    if others:
        a, b = named[0], others[0]
        runs[a], runs[b] = runs[b], runs[a]
    return [word for _, run in runs for word in run]


def negated(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """A "not" after the first auxiliary verb, or the existing "not" removed."""
    if "not" in sentence:
        return [word for word in sentence if word != "not"]
    at = next((i for i, word in enumerate(sentence) if word.lower() in AUXILIARIES), None)
    return sentence if at is None else [*sentence[: at + 1], "not", *sentence[at + 1 :]]


def numbers_changed(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Every number becomes another one of the same form."""

    def other(word: str) -> str:
        core = bare(word)
        if any(c.isdigit() for c in core):
            return with_core(word, "".join(rng.choice("123456789".replace(c, "")) if c.isdigit() else c for c in core))
        if core.lower() in NUMBERS:
            return with_core(word, rng.choice([n for n in NUMBERS if n != core.lower()]))
        return word

    return [other(word) for word in sentence]


def names_only(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Nothing but the names."""
    return [word for word in sentence if words.is_name(word)]


def names_removed(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Everything but the names."""
    return [word for word in sentence if not words.is_name(word)]


def no_function_words(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Content words alone."""
    return [word for word in sentence if bare(word).lower() not in language_of("en").function_words]


EACH: Mapping[str, Change] = {  # changes of one sentence
    "lower case, no punctuation": unmarked,
    "shuffled within sentences": shuffled,
    "roles swapped": roles_swapped,
    "negated": negated,
    "numbers changed": numbers_changed,
    "function words removed": no_function_words,
    "names removed": names_removed,
    "names only": names_only,
}
REPLACED = "entities replaced"
MACHINES = {"phrase-based, full input": "pbmt", "small Transformer, full input": "waitk"}
GROUPS = (INTACT, *EACH, REPLACED, *MACHINES, OTHER)


def sentences(question: Question) -> list[Sentence]:
    """Return the human translation's words for each source sentence; laid evenly where the numbers differ."""
    if len(question.reference) == len(question.sentences):
        return [text.split() for text in question.reference]
    return laid(question.reference_text.split(), [len(s) for s in question.sentences])


def laid(words: Sentence, lengths: Sequence[int]) -> list[Sentence]:
    """Return words cut into as many sentences, in proportion to the lengths of the source's."""
    ends = np.cumsum(lengths) * len(words) // sum(lengths)
    return [list(words[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def texts(questions: Sequence[Question]) -> dict[str, list[list[Sentence]]]:
    """Return the text of every changed group: question -> source sentence -> words."""
    intact = [sentences(question) for question in questions]
    every = [bare(word) for text in intact for sentence in text for word in sentence]
    lower = frozenset(word for word in every if word and word[0].islower())
    words = Words(lower, tuple(w for w in every if Words(lower, ()).is_name(w)))
    groups = {INTACT: intact}
    for name, change in EACH.items():
        drawn = [rng_for(0, question.id, name) for question in questions]
        groups[name] = [[change(s, rng, words) for s in text] for text, rng in zip(intact, drawn, strict=True)]
    drawn = [rng_for(0, question.id, REPLACED) for question in questions]
    groups[REPLACED] = [replaced(text, rng, words) for text, rng in zip(intact, drawn, strict=True)]
    far = len(questions) // 2
    others = [*intact[far:], *intact[:far]]
    groups[OTHER] = [
        laid([word for sentence in other for word in sentence], [len(s) for s in question.sentences])
        for other, question in zip(others, questions, strict=True)
    ]
    return groups


def replaced(text: Sequence[Sentence], rng: random.Random, words: Words) -> list[Sentence]:
    """Every name becomes a name of the set's other texts, the same one throughout a question."""
    names = {bare(word) for sentence in text for word in sentence if words.is_name(word)}
    pool = [name for name in words.names if name not in names]
    new = {name: rng.choice(pool) for name in sorted(names)}
    return [[with_core(w, new[bare(w)]) if words.is_name(w) else w for w in sentence] for sentence in text]


# ------------------------------------------------------------------------------------------------------------- runs


def stats_of(dataset: str, runs: Path) -> dict[tuple[str, str], Mapping[str, Floats]]:
    """Return (group, guesser) -> statistics of each metric; missing runs are computed.

    The texts are written below `runs`.  Only the best guesser's runs have the metrics of texts, which no guesser
    changes.
    """
    pair = f"{dataset.removeprefix('xqb-')}-en"
    translators: dict[str, Mapping[str, Any]] = {}
    for group, changed in texts(load_questions(dataset)).items():
        path = runs / "known-groups" / f"{dataset}-{slug(group)}.txt"
        write_text(path, "".join(" ".join(sentence) + "\n" for text in changed for sentence in text))
        translators[group] = {"name": "fixed", "text": str(path), "unit": "sentence"}
    for group, name in MACHINES.items():
        translators[group] = {"name": name, "model": f"pbmt-{pair}" if name == "pbmt" else pair, "k": "full"}
    players = {name: (guesser, {"name": "mlp", "model": model}) for name, (guesser, model) in GUESSERS.items()}
    answered = Experiment(
        [Entry(group, translators[group]) for group in GROUPS],
        {name: player for name, player in players.items() if name != BEST},
        dataset=dataset,
        limit=LIMITS[dataset],
        metrics=ANSWERS,
        runs=runs,
        name_of=lambda cell: f"known-groups-{dataset}-{slug(cell.family)}-{cell.contestant}",
    )
    best = replace(answered, guessers={BEST: players[BEST]}, metrics=(*ANSWERS, *TEXT))
    return {(r.translator, r.guesser): r.stats for r in (*best.run(), *answered.run())}


def slug(group: str) -> str:
    """Return a group's part of a file name."""
    return re.sub(r"\W+", "-", group)


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield value, change and drop of every metric, group and guesser, and the share of sentences that changed."""
    for dataset in DATASETS:
        stats = stats_of(dataset, runs)
        groups = texts(load_questions(dataset))
        for group in groups:
            texts_of = zip(groups[INTACT][:SIZE], groups[group][:SIZE], strict=True)
            changed = [a != b for intact, text in texts_of for a, b in zip(intact, text, strict=True)]
            yield Row(
                (dataset, "-", group, "-"), "sentences changed", float(np.mean(changed)), n=len(changed), unit="share"
            )
        for guesser in GUESSERS:
            for name in (*ANSWERS, *(TEXT if guesser == BEST else ())):
                yield from rows(dataset, guesser, name, {group: stats[group, guesser][name] for group in GROUPS})


def rows(dataset: str, guesser: str, name: str, tables: Mapping[str, Floats]) -> Iterator[Row]:
    """Yield the rows of one metric."""
    [metric] = metric_names.build([name])
    shown = "-" if name in TEXT else guesser
    for group, table in tables.items():
        cell = (dataset, shown, group)
        yield from intervals((*cell, "value"), [(metric, table)])
        if group != INTACT:
            [change] = compare_many([(table, tables[INTACT])], [metric])
            yield row_of((*cell, "change"), name, change, metric.unit, metric.signature())
            yield Row((*cell, "change"), f"{name} p", change.p_randomization, n=change.n, unit="p")
        if group not in (INTACT, OTHER):
            yield drop((*cell, "drop"), metric, tables[INTACT], table, tables[OTHER])


def drop(cell: tuple[str, ...], metric: Any, intact: Floats, group: Floats, other: Floats) -> Row:
    """Return the share of the way from the intact text to another question's, with its percentile interval."""
    stats = [intact, group, other]
    scorers = [metric.score_many] * 3
    a, b, c = score_sums(stats, scorers, bootstrap_weights(len(intact), 1000, 0))
    x, y, z = (metric.score(table.sum(axis=0)) for table in stats)
    return Row(cell, metric.name, (x - y) / (x - z), *percentiles((a - b) / (a - c)), len(intact), "share")


# ------------------------------------------------------------------------------------------------ table and figure

SHOWN = (  # heading, guesser, metric
    ("BLEU", "-", "bleu"),
    ("chrF", "-", "chrf"),
    ("facts", "-", "facts"),
    ("accuracy, rerank", "rerank", "accuracy"),
    *((f"EW, {guesser}", guesser, "ew") for guesser in GUESSERS),
)


def block(ledger: Ledger, dataset: str) -> list[str]:
    """Return the table of drops of a data set, with the guessers that were measured; only the figure has accuracy."""
    measured = {(row.cell[1], row.metric) for row in ledger.where(dataset=dataset, what="drop")}
    columns_shown = [column for column in SHOWN if column[1:] in measured and column[2] != "accuracy"]
    lines = []
    for group in dict.fromkeys(row.cell[2] for row in ledger.where(dataset=dataset, what="drop")):
        cell = {"dataset": dataset, "group": group, "what": "drop"}
        shown = [number(ledger.one(m, guesser=g, **cell), 2, m in ANSWERS, sign=True) for _, g, m in columns_shown]
        lines.append([group, *shown])
    return markdown(["group", *(head for head, *_ in columns_shown)], lines)


def figure(ledger: Ledger) -> plots.Figure:
    """Draw the drop of every group, a panel for each metric, a colour for each language."""
    groups = [group for group in GROUPS if group not in (INTACT, OTHER)]
    panels: dict[str, list[plots.Dot]] = {head: [] for head, *_ in SHOWN[:5]}
    for head, guesser, metric in SHOWN[:5]:
        for i, dataset in enumerate(DATASETS):
            for group in groups:
                row = ledger.one(metric, dataset=dataset, guesser=guesser, group=group, what="drop")
                label = {"xqb-es": "Spanish", "xqb-pl": "Polish"}[dataset]
                panels[head].append(plots.Dot(groups.index(group) + 0.25 * (i - 0.5), row, i, label))
    drawn = plots.forest(
        panels, groups, plots.PAGE, "0: as the intact human translation; 1: as another question's text"
    )
    [legend] = drawn.legends
    named = {
        text.get_text(): handle for text, handle in zip(legend.texts, legend.legend_handles, strict=True) if handle
    }
    legend.remove()
    plots.above(drawn, named)
    return drawn


ITEMS = (
    Item(
        name="known-groups",
        shows="which metrics notice damage of a known kind in the human translation",
        config="",
        columns=("dataset", "guesser", "group", "what"),
        measure=measure,
        inputs=inputs_of(
            models=(
                *("es-en", "pl-en", "pbmt-es-en", "pbmt-pl-en", "bm25", "gru", "bert", "rerank"),
                *(f"buzzer-mlp-{model}" for _, model in GUESSERS.values()),
            ),
            datasets=DATASETS,
        ),
        blocks={dataset: partial(block, dataset=dataset) for dataset in DATASETS},
        figures={"docs/known_groups.png": figure},
        kept="a quarter of an hour of two cores",
    ),
)
