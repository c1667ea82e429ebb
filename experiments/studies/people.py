"""Agreement with people: errors that experts marked in translated talks, beside facts, names and questions by rule.

The data are the MQM annotations of TED talks of WMT 2021: each sentence of 13 systems was read by one expert.  A score
is minus the weighted number of errors (Freitag et al. 2021): a major error counts 5, a minor one 1, and one of minor
punctuation .1.

Systems with the same text are compared pair by pair:

    tau          Kendall's tau_b of the order of the systems by people and by a measure
    spa          soft pairwise accuracy, 1 - |p - q| averaged over pairs of systems, where p and q are the one-sided
                 p-values of people and of the measure (Thompson et al. 2024); 0.5 if the measure is random
    told apart   share of the pairs of translations of a sentence rated differently by people that the measure also
                 rates differently
    concordance  share of these with the order that people give; 0.5 if the measure is random
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np

from experiments.results_book.item import Block, Item, inputs_of
from experiments.results_book.ledger import Row, row_of
from experiments.results_book.tables import Column, pivot
from sqa.core import Floats, Interval, Mean, bootstrap, bootstrap_weights, means, percentiles
from sqa.core.significance import TIE, Resampled
from sqa.data import download
from sqa.files import records
from sqa.metrics.quality.bleu import Bleu, ChrF
from sqa.metrics.quality.facts import judge
from sqa.metrics.quality.names import lost_and_invented, names_in
from sqa.questions import ask, make, measures, rules
from sqa.questions.files import QuestionFile
from sqa.questions.texts import Segment, Translated

DATA = {"zh-en": "mqm-ted-zh-en", "en-de": "mqm-ted-en-de"}
HUMAN, SCORED = ("all errors", "accuracy errors"), ("questions", "facts", "names", "bleu", "chrf")
WEIGHTS = {"Major": 5.0, "Minor": 1.0}
RESAMPLES = 300
EXCHANGES = 100  # random exchanges behind each p-value
METRICS = {"bleu": Bleu(), "chrf": ChrF()}  # the other measures are means
Place = tuple[str, int]  # document and number of a sentence
Tables = Mapping[tuple[str, ...], Floats]  # (pair, system, measure) -> statistics of each sentence


@cache
def tables() -> Tables:
    """Return the statistics of all systems, whose sums are scored."""
    found: dict[tuple[str, ...], Floats] = {}
    for pair, name in DATA.items():
        marked, texts, sources = defaultdict[tuple[str, Place], Floats](partial(np.zeros, 2)), {}, {}
        for line in [*records.lines(download.path_of(name))][1:]:
            system, _, document, number, _, original, text, category, severity, *_ = line.split("\t")
            key = (system.strip(), (document, int(number)))
            weight = 0.1 if (category, severity) == ("Fluency/Punctuation", "Minor") else WEIGHTS.get(severity, 0.0)
            marked[key] -= weight * np.array([category != "Source error", category.startswith(("Accuracy", "Termin"))])
            texts[key], sources[key[1]] = re.sub(r"</?v>", "", text).strip(), original
        places = sorted(sources)
        reference, source = [texts["ref", place] for place in places], [sources[place] for place in places]
        questions = make.make(make.rule_maker(pair, reference), reference, source, pair, 3)
        for system in sorted({system for system, _ in texts if not system.startswith("ref")}):
            written = [texts[system, place] for place in places]
            of_people = np.array([marked[system, place] for place in places])
            found |= {(pair, system, side): means(of_people[:, i]) for i, side in enumerate(HUMAN)}
            found |= {(pair, system, m): t for m, t in scored(written, reference, source, questions).items()}
    return found


def scored(written: list[str], human: list[str], source: list[str], questions: QuestionFile) -> dict[str, Floats]:
    """Return the statistics of each measure of a translation, (sentences, d)."""
    texts = [*zip(written, human, source, strict=True)]
    segments = [Segment("", rules.words_of(t), (), 0.0, tuple(s.split()), (), r) for t, r, s in texts]
    asked = ask.ask(Translated("", segments, ""), questions, rules.Rules(questions.pair[1]))
    judged = [judge(*(tuple(text.split()) for text in (s, t, r)), *questions.pair).expected for t, r, s in texts]
    names = [[len(names_in(r)) - lost_and_invented(s, t, r)[0].total(), len(names_in(r))] for t, r, s in texts]
    return {
        "questions": {(kind, measure): table for kind, measure, table in measures.tables(asked)}["all", "answered"],
        "facts": np.array([[sum(fact.target is not None for fact in of), len(of)] for of in judged], dtype=np.float64),
        "names": np.array(names, dtype=np.float64),
        "bleu": np.array([METRICS["bleu"].statistics(t, r) for t, r, _ in texts]),
        "chrf": np.array([METRICS["chrf"].statistics(t, r) for t, r, _ in texts]),
    }


def compared_pairs(metric: Resampled, stats: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the difference of each pair of systems in the sum of weighted statistics, and its one-sided p-value."""
    score, (a, b) = metric.score_many, np.triu_indices(len(stats), 1)
    swapped = np.random.default_rng(0).integers(0, 2, (EXCHANGES, len(weights))) * weights
    total, moved = np.einsum("n,snd->sd", weights, stats), np.einsum("rn,snd->srd", swapped, stats, optimize=True)
    change = moved[b] - moved[a]  # (pairs, EXCHANGES, d)
    sides = (np.concatenate(total[side][:, None] + sign * change) for side, sign in ((a, 1), (b, -1)))
    difference = score(total)[a] - score(total)[b]
    null = np.subtract(*map(score, sides)).reshape(len(a), EXCHANGES)
    return difference, (1 + (null >= difference[:, None] - TIE).sum(axis=1)) / (1 + EXCHANGES)


def tau(human: tuple[Floats, Floats], measured: tuple[Floats, Floats]) -> float:
    """Return Kendall's tau_b of two sets of differences of pairs; nan if all systems are equal."""
    a, b = np.sign(human[0]), np.sign(measured[0])
    ordered = (a != 0).sum() * (b != 0).sum()
    return float((a * b).sum() / np.sqrt(ordered)) if ordered else np.nan


def soft(human: tuple[Floats, Floats], measured: tuple[Floats, Floats]) -> float:
    """Return the soft pairwise accuracy of two sets of p-values."""
    return float(1 - np.abs(human[1] - measured[1]).mean())


def concordance(human: Floats, metric: Resampled, stats: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield the names and tables of statistics (sentences, 2) of the agreement about single sentences."""
    # The score of a sentence without facts is undefined: a tie.
    scores = np.nan_to_num(np.stack([metric.score_many(table) for table in stats]), nan=-1.0)
    a, b = np.triu_indices(len(scores), 1)
    people, rule = (np.sign(np.round(each[a] - each[b], 9)) for each in (human[..., 0], scores))
    yield "told apart", np.column_stack([(people * rule != 0).sum(axis=0), (people != 0).sum(axis=0)])
    yield "concordance", np.column_stack([(people * rule > 0).sum(axis=0), (people * rule != 0).sum(axis=0)])


def measure(_: Path, __: Path) -> Iterator[Row]:
    """Yield the agreement of each measure with people, for each pair of languages and each group of errors."""
    for pair in DATA:
        stats = {m: np.stack([t for key, t in tables().items() if key[::2] == (pair, m)]) for m in (*HUMAN, *SCORED)}
        n = stats["bleu"].shape[1]
        weights = [np.ones(n), *np.concatenate([*bootstrap_weights(n, RESAMPLES, 0)])]
        metrics = {m: METRICS.get(m, Mean(m)) for m in stats}
        compared = {m: [compared_pairs(metrics[m], table, each) for each in weights] for m, table in stats.items()}
        for human, measured in product(HUMAN, SCORED):
            both = [*zip(compared[human], compared[measured], strict=True)]
            for name, agreement, unit in (("tau", tau, "-1-1"), ("spa", soft, "0-1")):
                value, *samples = (agreement(*each) for each in both)
                yield row_of((pair, human, measured), name, Interval(value, *percentiles(np.array(samples)), n), unit)
            for name, table in concordance(stats[human], metrics[measured], stats[measured]):
                yield row_of((pair, human, measured), name, bootstrap(table, Mean(name)), "0-1")


def stored(_: Path, __: Path) -> Tables:
    """Return the statistics that experiments/ledger/recompute.py reads: all but those of BLEU and chrF."""
    return {key: table for key, table in tables().items() if key[2] not in METRICS}


def shown(*specs: str) -> Block:
    """Return a block with columns for both groups of errors."""
    agreement = [Column(spec, f"{spec}, {errors}", 2, cell={"errors": errors}) for spec in specs for errors in HUMAN]
    return pivot(("pair", "measure"), agreement)


SHOWN = {"systems": shown("tau", "spa"), "sentences": shown("told apart", "concordance")}
ABOUT = "agreement of facts, names and questions by rule with errors marked by experts"
COLUMNS, INPUTS = ("pair", "errors", "measure"), inputs_of(datasets=tuple(DATA.values()))
ITEMS = (Item("people", ABOUT, "", COLUMNS, measure, INPUTS, SHOWN, values=stored),)
