"""Machine-translated tossups, as `python -m guessers.noise` makes them: one JSON object a line, {"id", "sentences"}."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from sqa.core.errors import DataError
from sqa.data.texts import Tossup
from sqa.files import records


class _Translated(Struct):
    id: str
    sentences: tuple[str, ...]


def load_texts(path: Path) -> dict[str, tuple[str, ...]]:
    """Machine-translated sentences by tossup id, as the command wrote them. DataError names the line that is wrong."""
    texts: dict[str, tuple[str, ...]] = {}
    for number, record in enumerate(records.json_lines(path), start=1):
        item = records.converted(f"{path}: record {number}", record, _Translated)
        if item.id in texts:
            raise DataError(f"{path}: record {number}: the tossup {item.id!r} occurs twice")
        texts[item.id] = item.sentences
    return texts


def translations(files: Iterable[Path], tossups: Sequence[Tossup]) -> list[Tossup]:
    """The tossups that the files translate, each with the text it has there, file by file in their own order.

    A translation without words is left out; so are tossups of the files that are not among `tossups`.
    """
    translated = []
    for file in files:
        texts = load_texts(file)
        for tossup in tossups:
            text = " ".join(" ".join(texts.get(tossup.id, ())).split())
            if text:
                translated.append(replace(tossup, text=text))
    return translated
