"""Does the detector of `sqa diagnose` find a planted error of a kind that it was not trained on?

    python -m experiments.planted.once es pl

Each question of XQB has one error planted in its human translation, of a kind drawn for the question
(experiments/planted/materials.py).  A question is judged by a detector trained on other texts and on all kinds
except the planted one.  Precision and recall are over content words.  Every flagged word of the human translation
counts as a false alarm, even if it is a real error.  There are rows for each signal group at its best threshold for
F1 and at 0.5, for each kind, and for the words that the shipped detector flags in the same translations without
planted errors.
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from experiments.lab.item import Item, elsewhere
from experiments.lab.tables import columns, pivot
from experiments.planted.learn import SERVED, Signals, fit, of_group, signals_of, training_signals
from experiments.planted.materials import WORDS, plant, references
from sqa.core.registry import SCORERS
from sqa.core.types import Floats
from sqa.diagnose.detector import Network, load_detector
from sqa.results import Table, show

HEADER = ("language", "signals", "kind", "threshold", "planted", "flagged", "found", "precision", "recall")


def kind_of_text(data: Signals) -> Mapping[str, str]:
    """Return a dict that maps each text id to the kind of its only error; errors without content words are omitted."""
    return {text: kind for text, kind in zip(data.texts.tolist(), data.kinds.tolist(), strict=True) if kind}


def unseen(test: Signals, networks: Mapping[str, Network], shipped: Network) -> Floats:
    """Return probabilities (N,), each from the network trained without the kind of error in the word's text.

    The network `shipped` is used for texts without an error.
    """
    kinds = kind_of_text(test)
    kind_of_word = np.array([kinds.get(text, "") for text in test.texts.tolist()])
    probabilities = shipped.probabilities(test.signals)
    for kind, network in networks.items():
        of_kind = kind_of_word == kind
        if of_kind.any():
            probabilities[of_kind] = network.probabilities(test.signals[of_kind])
    return probabilities


def best_threshold(probabilities: Floats, planted: np.ndarray) -> float:
    """Return the threshold with the highest F1."""
    order = np.argsort(-probabilities, kind="stable")
    hits = np.cumsum(planted[order])
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + planted.sum())
    return float(probabilities[order[f1.argmax()]])


def row(language: str, group: str, kind: str, threshold: float, p: Floats, planted: np.ndarray) -> list[str]:
    """Return the counts of one kind, or of all, at a threshold; kind "none" stands for translations without errors."""
    flagged = p >= threshold
    counts = [int(which.sum()) for which in (planted, flagged, flagged & planted)]
    shares = [f"{counts[2] / n:.3f}" if n else "n/a" for n in (counts[1], counts[0])]
    return [language, group, kind, f"{threshold:.3f}", *map(str, counts), *shares]


def rows_of(language: str, groups: Sequence[str], train: Signals, test: Signals, clean: Signals) -> list[list[str]]:
    """Return all rows of a language for the given groups of signals."""
    rows = []
    for group in groups:
        learnt, data, plain = (of_group(each, group) for each in (train, test, clean))
        networks = {kind: fit(learnt, (kind,)) for kind in WORDS}
        shipped = load_detector(language, group=group).network
        p, planted = unseen(data, networks, shipped), data.kinds != ""
        best = best_threshold(p, planted)
        rows += [row(language, group, "all", threshold, p, planted) for threshold in (best, 0.5)]
        kinds = np.array([kind_of_text(data).get(text, "") for text in data.texts.tolist()])
        rows += [row(language, group, kind, best, p[kinds == kind], planted[kinds == kind]) for kind in WORDS]
        undamaged = shipped.probabilities(plain.signals)
        rows += [row(language, group, "none", t, undamaged, plain.kinds != "") for t in (best, 0.5)]
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line described in the module's docstring, and print the rows as TSV."""
    parser = argparse.ArgumentParser(prog="python -m experiments.planted.once", description=__doc__.split("\n")[0])
    parser.add_argument("languages", nargs="+", choices=("es", "pl"))
    parser.add_argument("--limit", type=int, default=None, metavar="N", help="the first N questions")
    options = parser.parse_args(arguments)
    rows: list[list[str]] = []
    for language in options.languages:
        texts = list(islice(references(language), options.limit))
        for name, groups in SERVED.items():
            scorer = SCORERS.resolve(name)(f"{language}-en")
            test, clean = (signals_of(plant(texts, (n,), WORDS, 0), language, scorer) for n in (1, 0))
            rows += rows_of(language, groups, training_signals(language, scorer), test, clean)
    show(Table(HEADER, rows))


ITEMS = (
    Item(
        "planted-once",
        "detection of planted errors of kinds that the detector was not trained on",
        "",
        ("language", "signals"),
        elsewhere("`python -m experiments.planted.once es pl`"),
        blocks={"table": pivot(("language", "signals"), columns("planted words", "precision", "recall"))},
        kept="trains a detector for each kind",
    ),
)


if __name__ == "__main__":
    main()
