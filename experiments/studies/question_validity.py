"""Validity of questions by rule: kinds of questions by kinds of damage, planted cheats, and positions in the source."""

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from experiments.lab.item import Item, dataset_digests
from experiments.lab.ledger import Row
from experiments.lab.tables import across, columns, pivot
from sqa.core.languages import en
from sqa.core.numbers import date_key, word_value
from sqa.core.significance import Mean, bootstrap, means
from sqa.data import download
from sqa.data.texts import load_parallel
from sqa.files.records import json_document
from sqa.metrics.quality.names import negations, spelled
from sqa.questions import ask, files, make, measures, rules
from sqa.questions.texts import Segment, Translated
from sqa.results import row_of

N, PAIR, TEST = 500, "es-en", "newstest2013"
CHANGED = ("names", "numbers", "dates", "content words", "function words", "negation", "order")
TALKS = tuple(entry.name for entry in download.entries() if entry.name.startswith("realsi-"))


def kind_of(word: str) -> str:
    """Return the kind of damage that changes a word; the rule is simpler than that of the questions."""
    plain = spelled(word)
    if any(map(str.isdigit, plain)) or (word_value(plain, "en") or 0) > 1:
        return "numbers"
    if negations(word):
        return "negation"
    if plain in en.LANGUAGE.function_words:
        return "function words"
    return "content words" if not word[:1].isupper() else "dates" if date_key(plain, "en") else "names"


def damaged(texts: Sequence[str], damage: str) -> list[str]:
    """Return texts with other names, numbers, dates or content words, without function words or negations, or shuffled.

    As many content words as names are changed in each text.
    """
    pool = sorted({word for text in texts for word in text.split() if kind_of(word) == damage})
    result = []
    for number, text in enumerate(texts):
        words, rng = text.split(), random.Random(f"{damage} {number}")
        chosen = [n for n, word in enumerate(words) if kind_of(word) == damage]
        if damage == "content words":
            chosen = rng.sample(chosen, min(len(chosen), sum(kind_of(word) == "names" for word in words)))
        for n in chosen:
            others = [word for word in pool if spelled(word) != spelled(words[n])]
            words[n] = "" if damage in ("function words", "negation") else rng.choice(others)
        result.append(" ".join(rng.sample(words, len(words)) if damage == "order" else filter(None, words)))
    return result


def system(name: str, texts: Sequence[str], pairs: Sequence[tuple[str, str]], early: bool = False) -> Translated:
    """Return texts as the output of a system that writes at the pace of the source, or before it."""
    segments = []
    for text, (source, reference) in zip(texts, pairs, strict=True):
        words, read = tuple(text.split()), tuple(source.split())
        reads = tuple(0.0 if early else float(-(-(j + 1) * len(read) // len(words))) for j in range(len(words)))
        segments.append(Segment(name, words, reads, len(read), read, tuple(range(1, len(read) + 1)), reference))
    return Translated(name, segments, "words")


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the measures of a human translation, its damaged copies and planted cheats, and the positions on RealSI."""
    pairs = [(pair.source, pair.target) for pair in islice(load_parallel(PAIR, TEST), N)]
    sources, human = map(list, zip(*pairs, strict=True))
    questions = make.make(make.rule_maker(PAIR, human), human, sources, PAIR, 3)
    answers = [" ".join(q.answers[0] for q in of) for of in questions.by_segment()]
    names = " ".join(dict.fromkeys(q.answers[0] for q in questions.questions if q.kind == "name"))
    texts = {"human translation": human, **{damage: damaged(human, damage) for damage in CHANGED}, "source": sources}
    systems = [system(name, copies, pairs) for name, copies in texts.items()]
    systems.append(system("answers first", answers, pairs, early=True))
    systems.append(system("all names", [f"{text} {names}" for text in human], pairs))
    yield from measures.frame(
        [ask.ask(s, questions, rules.Rules("en")) for s in systems], questions, "rules", 1000
    ).rows
    errors = [*positions()]
    inside = means(np.array([inside for inside, _ in errors], dtype=np.float64))
    yield row_of(("RealSI", "terms"), "inside", bootstrap(inside, Mean("inside")), "0-1")
    yield Row(("RealSI", "terms"), "error", float(np.median([e for _, e in errors])), n=len(errors), unit="seconds")


def positions() -> Iterator[tuple[bool, float]]:
    """Yield whether each term's estimated position lies in its utterance, and its distance from the middle in s."""
    for segment in (segment for name in TALKS for segment in json_document(download.path_of(name))["segment"]):
        for low, high, term in (
            (utterance["sub_start_time"], utterance["sub_end_time"], term["trg"])
            for utterance in segment["utterance"]
            for term in utterance["term"]
        ):
            question = files.TextQuestion(0, "", (term,), "name", "realsi", (0, 1))
            placed = rules.located(question, (segment["trg_text"], segment["src_text"]), ("zh", "en"))
            if placed is not None:
                at = segment["start_time"] + placed.share * (segment["end_time"] - segment["start_time"])
                yield low <= at <= high, abs(at - (low + high) / 2) / 1000


SHOWN = {
    "damages": pivot(
        ("system",), across("answered", "kind", ("name", "number", "date")), system=("human translation", *CHANGED)
    ),
    "cheats": pivot(
        ("system",),
        columns("answered", "early", "lag", "invented"),
        kind="all",
        system=("human translation", "answers first", "all names", "source"),
    ),
    "positions": pivot(("kind",), columns("inside: in its own utterance", "error: median error, s"), system="RealSI"),
}
ITEMS = (
    Item(
        "question-validity",
        "questions by rule under damage, planted cheats, and the positions of annotated terms",
        "",
        ("system", "kind"),
        measure,
        lambda config: dataset_digests((f"mt-{PAIR}-{TEST}", *TALKS)),
        SHOWN,
    ),
)
