"""Validity of questions by rule: kinds of questions by kinds of damage, planted cheats, and positions in the source."""

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Row, row_of
from experiments.results_book.tables import across, columns, pivot
from sqa.core.languages import language_of
from sqa.core.numbers import date_key, word_value
from sqa.core.significance import Mean, bootstrap, means
from sqa.data import download
from sqa.data.texts import load_parallel
from sqa.files.records import json_document
from sqa.metrics.quality.names import negations, spelled
from sqa.questions import ask, files, make, measures, rules
from sqa.questions.texts import Segment, Translated

N, PAIR, TEST = 500, "es-en", "newstest2013"
KINDS = ("name", "number", "date")
CHANGED = ("names", "numbers", "dates", "content words", "function words", "negation", "order")
HUMAN, CHEATS = "human translation", ("at the source's pace", "answers first", "all names first", "source")
TALKS = tuple(entry.name for entry in download.entries() if entry.name.startswith("realsi-"))


def kind_of(word: str) -> str:
    """Return the kind of damage that changes a word; the rule is simpler than that of the questions."""
    plain = spelled(word)
    if any(map(str.isdigit, plain)) or (word_value(plain, "en") or 0) > 1:
        return "numbers"
    if negations(word) or plain in language_of("en").function_words:
        return "negation" if negations(word) else "function words"
    return "content words" if not word[:1].isupper() else "dates" if date_key(plain, "en") else "names"


def damaged(texts: Sequence[str], damage: str) -> list[str]:
    """Return texts with new names, numbers, dates or content words, no function words or negations, or shuffled."""
    pool = sorted({word for text in texts for word in text.split() if kind_of(word) == damage})
    result = []
    for number, text in enumerate(texts):
        words, rng = text.split(), random.Random(f"{damage} {number}")
        chosen = [n for n, word in enumerate(words) if kind_of(word) == damage]
        for n in chosen:
            others = [word for word in pool if spelled(word) != spelled(words[n])]
            words[n] = "" if damage in ("function words", "negation") else rng.choice(others)
        result.append(" ".join(rng.sample(words, len(words)) if damage == "order" else filter(None, words)))
    return result


def system(name: str, texts: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Translated:
    """Return texts as the output of a system that waits for the whole source.

    The cheats, and the human translation among them, write word by word at the pace of the source.
    """
    segments = []
    for text, (source, reference) in zip(texts, pairs, strict=True):
        words, read = tuple(text.split()), tuple(source.split())
        paced = [-(-(n + 1) * len(read) // len(words)) if name in CHEATS else len(read) for n in range(len(words))]
        segments.append(Segment(name, words, tuple(paced), len(read), read, tuple(range(1, len(read) + 1)), reference))
    return Translated(name, segments, "words")


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the measures of a human translation, its damaged copies and planted cheats, and the positions on RealSI."""
    pairs = [(pair.source, pair.target) for pair in islice(load_parallel(PAIR, TEST), N)]
    sources, human = map(list, zip(*pairs, strict=True))
    questions = make.make(make.rule_maker(PAIR, human, KINDS), human, sources, PAIR, 3)
    answers = [" ".join(q.answers[0] for q in of) for of in questions.by_segment()]
    names = " ".join(dict.fromkeys(q.answers[0] for q in questions.questions if q.kind == "name"))
    cheats = (human, [f"{of} {text}" for of, text in zip(answers, human, strict=True)], [f"{names} {t}" for t in human])
    texts = {HUMAN: human, **{damage: damaged(human, damage) for damage in CHANGED}}
    texts |= zip(CHEATS, (*cheats, sources), strict=True)
    asked = [ask.ask(system(name, copies, pairs), questions, rules.Rules("en")) for name, copies in texts.items()]
    frame = measures.frame(asked, questions, "rules", 1000)
    yield from (row for row in frame.rows if row.metric == "answered" or row["kind"] == "all")
    errors = np.array([*positions()])
    yield row_of(("RealSI", "terms"), "inside", bootstrap(means(errors[:, 0]), Mean("inside")), "0-1")
    yield Row(("RealSI", "terms"), "error", float(np.median(errors[:, 1])), n=len(errors), unit="seconds")


def positions() -> Iterator[tuple[float, float]]:
    """Yield whether each term's estimated position lies in its utterance, and its distance from the middle in s."""
    talks = [json_document(download.path_of(name)) for name in TALKS]
    for segment, utterance in ((s, u) for talk in talks for s in talk["segment"] for u in s["utterance"]):
        start, end = segment["start_time"], segment["end_time"]
        low, high = utterance["sub_start_time"], utterance["sub_end_time"]
        for term in utterance["term"]:
            question = files.TextQuestion(0, "", (term["trg"],), "name", "realsi", (0, 1))
            placed = rules.located(question, (segment["trg_text"], segment["src_text"]), ("zh", "en"))
            if placed is not None:
                at = start + placed.share * (end - start)
                yield float(low <= at <= high), abs(at - (low + high) / 2) / 1000


SHOWN = {
    "damages": pivot(("system",), across("answered", "kind", KINDS), system=(HUMAN, *CHANGED)),
    "cheats": pivot(("system",), columns("answered", "early", "lag", "invented"), kind="all", system=CHEATS),
    "positions": pivot(("kind",), columns("inside: in its own utterance", "error: median error, s"), system="RealSI"),
}
ABOUT = "questions by rule under damage, planted cheats, and the positions of annotated terms"
COLUMNS, INPUTS = ("system", "kind"), inputs_of(datasets=(f"mt-{PAIR}-{TEST}", *TALKS))
ITEMS = (Item("question-validity", ABOUT, "", COLUMNS, measure, INPUTS, SHOWN),)
