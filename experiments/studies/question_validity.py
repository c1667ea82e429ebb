"""Validity of questions by rule: kinds of questions by kinds of damage, planted cheats, and positions in the source."""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Row, row_of
from experiments.results_book.tables import Column, across, columns, pivot
from sqa.core import Mean, bootstrap, language_of, means, word_value
from sqa.core.numbers import date_key
from sqa.data import download
from sqa.data.texts import load_parallel
from sqa.files import json_document
from sqa.metrics.quality.names import negations, spelled
from sqa.questions import ask, files, make, measures, rules
from sqa.questions.texts import Segment, Translated

N, PAIR, TESTS = 500, "es-en", ("newstest2013", "newstest2012", "newstest2011")
KINDS = ("name", "number", "date", "role", "negation")
CHANGED = ("names", "numbers", "dates", "roles", "negation", "content words", "function words", "order")
READER = rules.Rules("en")
CHEATS = ("at the source's pace", "answers first", "all names first", "source")
NAME = r"((?:[A-Z][\w-]+ )*[A-Z][\w-]+)"
ROLES = re.compile(rf"{NAME}( [a-z]+ed (?:the )?){NAME}")
TALKS = tuple(entry.name for entry in download.entries() if entry.name.startswith("realsi-"))


def kind_of(word: str) -> str:
    """Return the kind of damage that changes a word; the rule is simpler than that of the questions."""
    plain = spelled(word)
    if any(map(str.isdigit, plain)) or (word_value(plain, "en") or 0) > 1:
        return "numbers"
    if negations(word) or plain in language_of("en").function_words:
        return "negation" if negations(word) else "function words"
    return "content words" if not word[:1].isupper() else "dates" if date_key(plain, "en") else "names"


def pools(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the different words of each kind of damage."""
    found: dict[str, list[str]] = {}
    for word in sorted({word for text in texts for word in text.split()}):
        found.setdefault(kind_of(word), []).append(word)
    return found


def damaged(number: int, text: str, damage: str, pool: Sequence[str]) -> str:
    """Return a text with one word of a kind damaged, or the text itself if it has none.

    A name, number, date or content word becomes another one; a function word or negation is left out.  For *order*,
    two words change places.  For *roles*, two names around a word in -ed do.
    """
    words, rng = text.split(), random.Random(f"{damage} {number}")
    if damage == "roles":
        return ROLES.sub(r"\3\2\1", text, count=1)
    if damage == "order":
        a, b = rng.sample(range(len(words)), 2) if len(words) > 1 else (0, 0)
        words[a], words[b] = words[b], words[a]
        return " ".join(words)
    chosen = [n for n, word in enumerate(words) if kind_of(word) == damage]
    if chosen:
        n = rng.choice(chosen)
        others = [word for word in rng.sample(pool, min(len(pool), 9)) if spelled(word) != spelled(words[n])]
        words[n] = "" if damage in ("function words", "negation") else others[0]
    return " ".join(filter(None, words))


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
    """Yield the share answered by kind and damage, the measures of planted cheats, and the positions on RealSI."""
    pairs = [(pair.source, pair.target) for test in TESTS for pair in load_parallel(PAIR, test)]
    sources, human = map(list, zip(*pairs, strict=True))
    questions = make.make(make.rule_maker(PAIR, human, KINDS), human, sources, PAIR, 3)
    of_kind = pools(human)
    for damage in CHANGED:
        copies = [damaged(n, text, damage, of_kind.get(damage, ())) for n, text in enumerate(human)]
        changed = [copy != text for copy, text in zip(copies, human, strict=True)]
        yield Row((damage, "all"), "sentences", sum(changed), n=len(human), unit="count")
        for kind, measured, table in measures.tables(ask.ask(system(damage, copies, pairs), questions, READER)):
            if measured == "answered" and kind in KINDS and table[changed, 1].any():
                yield row_of((damage, kind), measured, bootstrap(table[changed], Mean(measured)), "0-1")
    yield from cheats(pairs[:N])
    errors = np.array([*positions()])
    yield row_of(("RealSI", "terms"), "inside", bootstrap(means(errors[:, 0]), Mean("inside")), "0-1")
    yield Row(("RealSI", "terms"), "error", float(np.median(errors[:, 1])), n=len(errors), unit="seconds")


def cheats(pairs: Sequence[tuple[str, str]]) -> Iterator[Row]:
    """Yield the measures of planted cheats, which write the answers, all names, or the source."""
    sources, human = map(list, zip(*pairs, strict=True))
    questions = make.make(make.rule_maker(PAIR, human, KINDS[:3]), human, sources, PAIR, 3)
    answers = [" ".join(q.answers[0] for q in of) for of in questions.by_segment()]
    names = " ".join(dict.fromkeys(q.answers[0] for q in questions.questions if q.kind == "name"))
    written = (
        human,
        [f"{of} {text}" for of, text in zip(answers, human, strict=True)],
        [f"{names} {t}" for t in human],
    )
    texts = zip(CHEATS, (*written, sources), strict=True)
    asked = [ask.ask(system(name, copies, pairs), questions, READER) for name, copies in texts]
    yield from (row for row in measures.frame(asked, questions, "rules", 1000).rows if row["kind"] == "all")


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


DOSE = [Column("sentences", "sentences", 0, cell={"kind": "all"}), *across("answered", "kind", KINDS)]
SHOWN = {
    "damages": pivot(("system",), DOSE, system=CHANGED),
    "cheats": pivot(("system",), columns("answered", "early", "lag", "invented"), kind="all", system=CHEATS),
    "positions": pivot(("kind",), columns("inside: in its own utterance", "error: median error, s"), system="RealSI"),
}
ABOUT = "questions by rule under damage, planted cheats, and the positions of annotated terms"
COLUMNS, INPUTS = ("system", "kind"), inputs_of(datasets=(*(f"mt-{PAIR}-{test}" for test in TESTS), *TALKS))
ITEMS = (Item("question-validity", ABOUT, "", COLUMNS, measure, INPUTS, SHOWN),)
