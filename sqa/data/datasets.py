"""Loads questions.  Sets, by name:

    xqb-es, xqb-pl            the cross-lingual Quizbowl set (Han et al.), with human English references
    mini-es, mini-pl, mini-en the set bundled with this project; mini-en is its English side, read as if it were foreign
    guessdev                  the QANTA 2018 guessdev fold in English: source and reference are the same text
    human-buzzes              the English tossups on which people's buzzes are recorded (`sqa.data.human_buzzes`)
    any/file.json, .jsonl     your own: records {source, reference, page, language, id?, meta?}, see `_own_questions`

Some XQB sources occur twice (2 in Spanish, 6 in Polish) with different references: both stay, both count.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqa.core import answers
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import DATA
from sqa.core.registry import did_you_mean
from sqa.core.types import GREATEST_SMALL, Question
from sqa.data import sentences
from sqa.files import records

MINI = DATA / "mini" / "questions.json"
XQB_ALIASES: Mapping[str, str] = {"dna": "DNA"}  # XQB's spelling of a page -> the tossups' (manifest: xqb-aliases-*)
_CODE = re.compile(r"[a-z]{2,3}")  # ISO 639
HEARD = ("word_times", "recording", "question", "answers", "earliest_answerable")  # sqa/data/listening.py
OWN_KEYS = ("id", "language", "source", "reference", "page", "target_page", *HEARD, "meta")  # of a record of your own
LONGEST_NAME = 1000  # characters of a name in a message


def question_sets() -> tuple[str, ...]:
    """The names that `load_questions` takes."""
    return tuple(_SETS)


def available(name: str) -> bool:
    """True if the question set can be loaded without a network (bundled, mirrored or cached)."""
    return all(_present(need) for need in _question_set(name).needs)


def load_questions(name: str, limit: int | None = None) -> list[Question]:
    """The questions of a set in the order of its file; at most the first `limit` (>= 1).

    Raises ConfigError for an unknown name, DataError naming file and record for a question without sentences, without
    a page, or with an id that an earlier one has.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"dataset.limit: must be >= 1 or null, got {limit}")
    questions: list[Question] = []
    seen: set[str] = set()
    for question in _question_set(name).load():
        if limit is not None and len(questions) == limit:
            break
        if question.id in seen:
            raise DataError(f"{name}: record {len(questions)} has the id {question.id!r}, which an earlier record has")
        seen.add(question.id)
        questions.append(question)
    if not questions:
        raise DataError(f"{name}: no questions in it")
    return questions


class _QuestionSet(NamedTuple):
    load: Callable[[], Iterator[Question]]
    needs: tuple[str | Path, ...]  # manifest names, or files of the checkout


def _question_set(name: str) -> _QuestionSet:
    if name in _SETS:
        return _SETS[name]
    path, shown = Path(name), name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."
    if len(name) <= LONGEST_NAME and path.is_file():  # `is_file` raises for longer names
        return _QuestionSet(lambda: _own_questions(path), (path,))
    if path.name.endswith((".json", ".jsonl", ".jsonl.zst")):
        raise DataError(f"{shown}: there is no such file of questions")
    near = difflib.get_close_matches(name, _SETS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_SETS)}, or a .json or .jsonl file"
    raise ConfigError(f"dataset.name: {shown!r} is not a question set; {hint}")


def _present(need: str | Path) -> bool:
    if isinstance(need, Path):
        return need.is_file()
    from sqa.data import download

    return download.where(need) is not None


def _path_of(name: str) -> Path:
    """A file of the manifest; the bundled questions need none."""
    from sqa.data import download

    return download.path_of(name)


def _xqb(language: str) -> Iterator[Question]:
    path = _path_of(f"xqb-{language}")
    for i, record in enumerate(_listed(path)):
        where = f"{path}: questions[{i}]"
        number = record.get("xqb_id")
        if not isinstance(number, int):
            raise DataError(f"{where}.xqb_id: expected a number, got {number!r}")
        yield _question(
            where,
            id=f"xqb-{language}-{number}",
            dataset=f"xqb-{language}",
            language=language,
            source=record.get("source"),
            reference=record.get("reference"),
            page=answers.resolve(records.text_of(where, "target_page", record.get("target_page")), XQB_ALIASES),
        )


def _mini(language: str) -> Iterator[Question]:
    for i, record in enumerate(_listed(MINI)):
        where = f"{MINI}: questions[{i}]"
        yield _question(
            where,
            id=f"{records.text_of(where, 'id', record.get('id'))}-{language}",
            dataset=f"mini-{language}",
            language=language,
            source=record.get(language),
            reference=record.get("en"),
            page=record.get("page"),
        )


def _guessdev() -> Iterator[Question]:
    """guessdev's questions that have an answer page: 1,108 of 1,129 (QANTA too leaves out those without)."""
    from sqa.data.texts import load_guessdev

    for tossup in load_guessdev():
        if tossup.page is not None:
            yield _question(
                f"guessdev {tossup.id}",
                id=tossup.id,
                dataset="guessdev",
                language="en",
                source=tossup.text,
                reference=tossup.text,
                page=tossup.page,
            )


def _human_buzz_questions() -> Iterator[Question]:
    """The tossups of the human buzzes that have an answer page: 2,569 of 3,418."""
    path = _path_of("human-buzz-questions")
    for i, record in enumerate(records.json_lines(path)):
        if record.get("page") is not None:
            yield _question(
                f"{path}: record {i}",
                id=records.text_of(f"{path}: record {i}", "id", record.get("id")),
                dataset="human-buzzes",
                language="en",
                source=record.get("text"),
                reference=record.get("text"),
                page=record["page"],
            )


def _own_questions(path: Path) -> Iterator[Question]:
    """A user's file: JSON (a list, or a mapping with a list "questions") or JSON lines, .zst or not.

    Each record has `source` and `reference` (a text, or a list of sentences), `page` (or `target_page`), `language`
    (ISO 639-1) and optionally `id`; ids are <file name>-<record number> otherwise.  With `word_times` (the second at
    which each word has been said, in the file `recording`, else the id) one text is not cut into sentences; `question`
    and `answers` replace the page: sqa/data/listening.py.  Other data goes under `meta` or keys that begin with an
    underscore; any other key is refused.
    """
    stem = path.name.split(".")[0]
    listed: Iterable[tuple[str, dict[str, Any]]] = (
        ((str(path), record) for record in _listed(path))
        if path.suffix == ".json"
        else ((f"{path}:{number}", record) for number, record in records.numbered_lines(path))
    )
    for i, (file, record) in enumerate(listed):
        where = f"{file}: record {i}"
        _check_keys(where, record)
        given = record.get("id")
        if given is not None and (isinstance(given, bool) or not isinstance(given, (str, int)) or given == ""):
            raise DataError(f"{where}.id: expected a text or a whole number, got {repr(given)[:60]}")
        if wrong := answers.unwritable(str(given), answers.LINE_ENDS):
            raise DataError(f"{where}.id: holds {wrong}; an id is one line without tabs or control characters")
        spoken, source = {"word_times", "recording"} & record.keys(), record.get("source")
        titles = record.get("answers")
        question = _question(
            where,
            id=f"{stem}-{i}" if given is None else str(given),
            dataset=stem,
            language=record.get("language"),
            source=[source] if spoken and isinstance(source, str) else source,
            reference=record.get("reference"),
            page=titles[0] if isinstance(titles, list) and titles else record.get("page", record.get("target_page")),
        )
        if set(HEARD) & record.keys():
            from sqa.data.listening import heard

            question = heard(where, question, record)
        yield question


def _check_keys(where: str, record: Mapping[str, Any]) -> None:
    """DataError for an unknown key, which may be misspelt."""
    for key in record:
        if key not in OWN_KEYS and not key.startswith("_"):
            near, allowed = did_you_mean(key, OWN_KEYS), ", ".join(OWN_KEYS)
            raise DataError(
                f"{where}: unknown key {key[:60]!r}{near}; there are {allowed}; what else you keep goes under "
                "`meta` or begins with an underscore"
            )
    if "page" in record and "target_page" in record:
        raise DataError(f"{where}: has page and target_page, which mean the same; give one")


def _listed(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON list, or of the list under "questions"."""
    document = records.json_document(path)
    listed = document.get("questions") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise DataError(f'{path}: expected a list of questions, or a mapping with a list "questions"')
    for i, record in enumerate(listed):
        if not isinstance(record, dict):
            raise DataError(f"{path}: record {i}: expected an object, got {type(record).__name__}")
    return listed


def _question(
    where: str, *, id: str, dataset: str, language: object, source: object, reference: object, page: object
) -> Question:
    """A validated question; `where` names file and record in the error."""
    split = isinstance(source, list)
    if not isinstance(language, str) or not (language in sentences.LANGUAGES or (split and _CODE.fullmatch(language))):
        allowed = " ".join(sorted(sentences.LANGUAGES))
        problem = "expected a code of two or three letters" if split else f"expected one of {allowed}"
        hint = "" if split else "; in any other language give `source` as a list of sentences"
        raise DataError(f"{where}.language: {problem}, got {language!r}{hint}")
    title = answers.canonical(records.text_of(where, "page", page))
    if wrong := answers.unwritable(title):
        raise DataError(f"{where}.page: holds {wrong}; a page title has no control characters")
    if not title:
        raise DataError(f"{where}.page: expected a page title, got {page!r}")
    return Question(
        id=id,
        dataset=dataset,
        language=language,
        sentences=_split(where, "source", source, language),
        reference=tuple(" ".join(words) for words in _split(where, "reference", reference, "en")),
        page=title,
    )


def _split(where: str, field: str, value: object, language: str) -> tuple[tuple[str, ...], ...]:
    """The sentences of a text, or of a list that is one sentence an item already; at least one."""
    if isinstance(value, list):
        texts = (
            sentences.spaced(records.text_of(where, f"{field}[{i}]", item), language) for i, item in enumerate(value)
        )
        parts = tuple(tuple(text.split()) for text in texts)
        if not all(parts):
            raise DataError(f"{where}.{field}: sentence {parts.index(())} is empty")
    else:
        parts = sentences.split(records.text_of(where, field, value), language)
    if not parts:
        raise DataError(f"{where}.{field}: a question needs at least one sentence, this one has none")
    if len(parts) > GREATEST_SMALL:
        raise DataError(f"{where}.{field}: has {len(parts)} sentences; a question may have {GREATEST_SMALL}")
    return parts


_SETS: Mapping[str, _QuestionSet] = {
    "xqb-es": _QuestionSet(lambda: _xqb("es"), ("xqb-es",)),
    "xqb-pl": _QuestionSet(lambda: _xqb("pl"), ("xqb-pl",)),
    "mini-es": _QuestionSet(lambda: _mini("es"), (MINI,)),
    "mini-pl": _QuestionSet(lambda: _mini("pl"), (MINI,)),
    "mini-en": _QuestionSet(lambda: _mini("en"), (MINI,)),
    "guessdev": _QuestionSet(lambda: _guessdev(), ("guessdev",)),
    "human-buzzes": _QuestionSet(lambda: _human_buzz_questions(), ("human-buzz-questions",)),
}
