"""Load training texts: English tossups, their corrupted and translated copies, and parallel text.

A hash of a tossup's id decides its use, so that adding tossups does not move others:

    guesser   85 %   trains guessers
    buzzer    10 %   trains buzzers, on the guesses of guessers that never saw it
    dev        5 %   stops training and sets thresholds
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct

from sqa.core import ConfigError, DataError, answers, code_of
from sqa.data import download, sentences
from sqa.files import records

Fold = Literal["guesser", "buzzer", "dev"]
Half = Literal["first", "second"]
EMPTY = "the"  # replaces half of the corrupted words


@dataclass(frozen=True, slots=True)
class Tossup:
    """An English training question.  `page` is None if the answer has no known page."""

    id: str
    text: str
    page: str | None
    category: str
    answer: str  # the packet's main answer
    tournament: str
    year: int | None


class Pair(NamedTuple):
    """A line of parallel text."""

    source: str
    target: str  # English
    corpus: str  # origin of the line


def load_tossups() -> list[Tossup]:
    """Return all English training tossups in file order.

    In the file 149 questions repeat an earlier id; "#2" is appended to the later ones.
    """
    return _tossups(download.path_of("tossups"), page="page", answer="answer", tournament="set")


def load_guessdev() -> list[Tossup]:
    """Return the QANTA 2018 guessdev fold, with pages spelled as in the tossups; 21 questions have no page."""
    return _tossups(download.path_of("guessdev"), page="page_canon", answer="answer_raw", tournament="tournament")


def _tossups(path: Path, *, page: str, answer: str, tournament: str) -> list[Tossup]:
    tossups: list[Tossup] = []
    seen: dict[str, int] = {}
    for i, record in enumerate(records.json_lines(path)):
        where = f"{path}: record {i}"
        name = records.text_of(where, "id", record.get("id"))
        seen[name] = seen.get(name, 0) + 1
        text = " ".join(records.text_of(where, "text", record.get("text")).split())
        if not text:
            raise DataError(f"{where}.text: a tossup needs a text")
        title = record.get(page)
        tossups.append(
            Tossup(
                id=name if seen[name] == 1 else f"{name}#{seen[name]}",
                text=text,
                page=None if title is None else answers.canonical(records.text_of(where, page, title)),
                category=record.get("category") or "",
                answer=records.text_of(where, answer, record.get(answer)),
                tournament=record.get(tournament) or "",
                year=record.get("year"),
            )
        )
    return tossups


def fold_of(tossup_id: str) -> Fold:
    """Return the fold of a tossup."""
    share = int.from_bytes(hashlib.sha256(tossup_id.encode()).digest()[:4], "big") / 2**32  # uniform in [0, 1)
    return "guesser" if share < 0.85 else "buzzer" if share < 0.95 else "dev"


def half_of(tossup_id: str) -> Half:
    """Return which half of its fold a tossup is in.

    A reranking guesser trains on the first half, and its buzzers on the second.
    """
    return "first" if hashlib.sha256(f"half {tossup_id}".encode()).digest()[0] < 128 else "second"


def tossups_of(folds: Collection[str], half: Half | None = None) -> list[Tossup]:
    """Return the tossups of some folds, or of one half of each, in the order of the file."""
    return [t for t in load_tossups() if fold_of(t.id) in folds and half in (None, half_of(t.id))]


# --------------------------------------------------------------------------------------------------------------- copies


def corrupt(tossups: Sequence[Tossup], rate: float, least: float = 0.0) -> list[Tossup]:
    """Return corrupted tossups, deterministically, to train components that read machine translation.

    A translation loses words and replaces others by wrong ones, so a guesser's scores rise more slowly and the top
    guess leads by less than on the original.  Here, each word is corrupted with a probability drawn once per tossup,
    uniformly from `least` to `rate` (0..1).  Half of the corrupted words become EMPTY, which is uninformative; the
    other half become another tossup's word, which is misleading.  The number of words, and so of steps, does not
    change.
    """
    words = [word for tossup in tossups for word in tossup.text.split()]
    return [_corrupted(tossup, words, rate, least) for tossup in tossups]


def _corrupted(tossup: Tossup, words: Sequence[str], rate: float, least: float) -> Tossup:
    seed = int.from_bytes(hashlib.sha256(f"spoilt {tossup.id}".encode()).digest()[:8], "big")
    rng = np.random.default_rng(seed)
    original = tossup.text.split()
    chance = rng.uniform(least, rate)
    draw, misled = rng.random(len(original)) < chance, rng.random(len(original)) < 0.5
    drawn = rng.integers(0, len(words), len(original))
    text = " ".join(
        word if not hit else words[index] if wrong else EMPTY
        for word, hit, wrong, index in zip(original, draw.tolist(), misled.tolist(), drawn.tolist(), strict=True)
    )
    return replace(tossup, text=text)


class _Translated(Struct):
    id: str
    sentences: tuple[str, ...]


def load_translated(path: Path) -> dict[str, tuple[str, ...]]:
    """Return machine-translated sentences by tossup id from a file of `python -m guessers.noise`.

    Each line is {"id", "sentences"}.  Raises DataError with the number (from 1) of an invalid or repeated record.
    """
    texts: dict[str, tuple[str, ...]] = {}
    for number, record in enumerate(records.json_lines(path), start=1):
        item = records.converted(f"{path}: record {number}", record, _Translated)
        if item.id in texts:
            raise DataError(f"{path}: record {number}: the tossup {item.id!r} occurs twice")
        texts[item.id] = item.sentences
    return texts


def translations(files: Iterable[Path], tossups: Sequence[Tossup]) -> list[Tossup]:
    """Return the tossups with the translated text of each file, in the order of the files, then of `tossups`.

    Translations without words, and translations of tossups that are not in `tossups`, are left out.
    """
    translated = []
    for file in files:
        texts = load_translated(file)
        for tossup in tossups:
            text = " ".join(" ".join(texts.get(tossup.id, ())).split())
            if text:
                translated.append(replace(tossup, text=text))
    return translated


# -------------------------------------------------------------------------------------------------------- parallel text


def parallel_parts(pair: str) -> tuple[str, ...]:
    """Return the manifest's parts of a language pair ("es-en", "pl-en"): "train", "newstest2013", ..."""
    start = f"mt-{pair}-"
    return tuple(item.name.removeprefix(start) for item in download.entries() if item.name.startswith(start))


def load_parallel(pair: str, part: str) -> Iterator[Pair]:
    """Yield the sentence pairs of a part.  The corpus is column 3 in a training mix, and the part's name elsewhere."""
    parts = parallel_parts(pair)
    if part not in parts:
        available = ", ".join(parts) or "none for this pair"
        raise ConfigError(f"parallel text {pair} {part!r} is not in the manifest; known: {available}")
    return _pairs(download.path_of(f"mt-{pair}-{part}"), part)


def _pairs(path: Path, part: str) -> Iterator[Pair]:
    if part == "train":
        yield from (Pair(source, target, corpus) for source, target, corpus in records.table(path, 3))
    else:
        yield from (Pair(source, target, part) for source, target in records.table(path, 2))


def load_own_pairs(path: Path, pair: str) -> Iterator[Pair]:
    """Yield the sentence pairs of a user's file with `source<TAB>target` or `source<TAB>target<TAB>corpus` per line.

    The default corpus is "own".  Chinese and Japanese get spaces between characters (`sentences.spaced`).  Raises
    DataError for a missing file.  Raises DataError, with the line, for another number of columns, an empty side, or
    missing spaces between words of Thai and similar scripts.
    """
    languages = [code_of(language) for language in pair.split("-")]
    for number, line in enumerate(records.lines(path), 1):
        row = line.split("\t")
        if len(row) not in (2, 3) or not all(cell.strip() for cell in row):
            raise DataError(
                f"{path}:{number}: expected tab-separated source, target and optionally corpus, all non-empty"
            )
        source, target = (
            sentences.all_spaced(f"{path}:{number}", [text], language, slack=1)[0]
            for text, language in zip(row, languages, strict=False)
        )
        yield Pair(source, target, row[2] if len(row) == 3 else "own")
