"""Training texts of guessers: tossups whose answer has a page, by fold, and bonus parts; or the user's own texts."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from guessers.bonus import Bonus, clean_bonus
from guessers.text import tokens
from sqa.core import DATA, ConfigError, DataError, answers, did_you_mean
from sqa.data.texts import Tossup, fold_of, tossups_of
from sqa.files import lines, numbered_lines
from sqa.files.records import name_of

KEYS = ("text", "page", "id", "meta")  # keys of a user's own text


def mapped_tossups(folds: Sequence[str]) -> list[Tossup]:
    """Return the tossups of some folds whose answer has a page; other tossups cannot be used for training."""
    return [tossup for tossup in tossups_of(folds) if tossup.page is not None]


def training_texts(folds: Sequence[str], with_bonus: bool, texts: Sequence[Path] = ()) -> list[Tossup | Bonus]:
    """Return the tossups of some folds, or the user's texts instead, and optionally bonus parts; all have a page."""
    return [*learnt(folds, texts), *(clean_bonus() if with_bonus else ())]


def learnt(folds: Sequence[str], texts: Sequence[Path]) -> list[Tossup]:
    """Return the training texts: the user's texts of some folds, or the tossups if no file is given."""
    if not texts:
        return mapped_tossups(folds)
    chosen = [lesson for lesson in own_texts(texts) if fold_of(lesson.id) in folds]
    if not chosen:
        raise DataError(f"no text of {', '.join(map(str, texts))} is in the folds {', '.join(folds)}; give more texts")
    return chosen


def own_texts(files: Sequence[Path]) -> list[Tossup]:
    """Return the user's texts with their pages, from JSON lines {text, page, id?}; default ids: <file>-<record>.

    Raises DataError for a missing file, and for a record with an unknown key, a missing text or page, or a repeated id.
    """
    texts: dict[str, Tossup] = {}
    for file in files:
        if (first := next(lines(file), "")).startswith(("[", '{"questions"')) or first.strip() == "{":
            raise DataError(f"{file}: expected JSON lines; of QANTA's list: jq -c '.questions[]|{{text,page}}' {file}")
        for number, (line, record) in enumerate(numbered_lines(file), start=1):
            where = f"{file}:{line}: record {number}"
            if unknown := [key for key in record if key not in KEYS and not key.startswith("_")]:
                near = did_you_mean(unknown[0], KEYS)
                raise DataError(f"{where}: unknown key {unknown[0][:60]!r}{near}; known are {', '.join(KEYS)}")
            text, page, id = record.get("text"), record.get("page"), record.get("id")
            if not (isinstance(text, str) and text.split() and isinstance(page, str) and answers.canonical(page)):
                raise DataError(f"{where}: expected a text 'text' and the title of its page 'page', neither empty")
            if not any(map(tokens, text.split())):
                raise DataError(f"{where}: 'text' has no Latin letter or digit, which are all that guessers read")
            if wrong := answers.unwritable(answers.canonical(page)):
                raise DataError(f"{where}: 'page' contains {wrong}; a page title must have no control characters")
            id = f"{file.stem}-{number}" if id is None else name_of(where, "id", id)
            if id in texts:
                raise DataError(f"{where}: expected a unique 'id', got {id!r} again")
            texts[id] = Tossup(id, " ".join(text.split()), answers.canonical(page), "", page, "", None)
    if not texts:
        raise DataError(f"{', '.join(map(str, files))}: contains no texts")
    return list(texts.values())


def check_output(output: Path, texts: Sequence[Path]) -> None:
    """Raise ConfigError if a guesser trained on the user's own texts would overwrite a bundled model."""
    if texts and output.resolve().is_relative_to((DATA / "models").resolve()):
        raise ConfigError(f"output: {output} is the folder of a bundled model; name another folder for your own texts")


def identity_of(config: Any, but: Collection[str]) -> dict[str, Any]:
    """Return the values that a checkpoint must match: config keys not in `but`, and sha256 of text files."""
    keys = {key: value for key, value in asdict(config).items() if key not in {"output", "work", "texts", *but}}
    texts = [hashlib.sha256(file.read_bytes()).hexdigest() for file in config.texts]
    return keys | ({"texts": texts} if texts else {})
