"""Machine-translated tossups, as `python -m guessers.noise` makes them: one JSON object a line, {"id", "sentences"}."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from sqa.core.errors import DataError
from sqa.data.texts import Tossup
from sqa.files import records


def load_texts(path: Path) -> dict[str, tuple[str, ...]]:
    """Machine-translated sentences by tossup id, as the command wrote them. DataError names the line that is wrong."""
    found: dict[str, tuple[str, ...]] = {}
    for number, record in enumerate(records.json_lines(path), start=1):
        name, sentences = record.get("id"), record.get("sentences")
        if (
            not isinstance(name, str)
            or not isinstance(sentences, list)
            or not all(isinstance(sentence, str) for sentence in sentences)
        ):
            raise DataError(f"{path}: record {number}: expected a text 'id' and 'sentences', a list of texts")
        if name in found:
            raise DataError(f"{path}: record {number}: the tossup {name!r} is there twice")
        found[name] = tuple(sentences)
    return found


def translations(files: Iterable[Path], tossups: Sequence[Tossup]) -> list[Tossup]:
    """The tossups that the files translate, each with the text it has there, file by file in their own order.

    A translation without words is left out; so are tossups of the files that are not among `tossups`.
    """
    found = []
    for file in files:
        texts = load_texts(file)
        for tossup in tossups:
            text = " ".join(" ".join(texts.get(tossup.id, ())).split())
            if text:
                found.append(replace(tossup, text=text))
    return found
