"""Load the questions of a data set, given its name:

    xqb-es, xqb-pl            the cross-lingual Quizbowl set (Han et al.), with human English references
    mini-es, mini-pl, mini-en the set bundled with this project; mini-en uses its English side as the source
    guessdev                  the QANTA 2018 guessdev fold in English: source and reference are the same text
    human-buzzes              English tossups with recorded human buzzes (`sqa.data.human_buzzes`)
    any/file.json, .jsonl     your own questions, see sqa/data/own_questions.py

To add a data set, add its name to `_SETS`.  Addresses, sizes and hashes of downloads are in data/manifest.yaml.

Some XQB sources occur twice (2 in Spanish, 6 in Polish) with different references.  Both copies are kept and scored.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from sqa.core import BLANKLESS, BY_CHARACTER, DATA, GREATEST_SMALL, SOUGHT, Question, answers
from sqa.core.errors import ConfigError, DataError, did_you_mean
from sqa.files import records

Loader = Callable[[], Iterator[Question]]
MINI = DATA / "mini" / "questions.json"
XQB_TITLES = {"dna": "DNA"}  # key of a page in XQB -> page of the tossups (manifest: xqb-aliases-*)
_CODE = re.compile(r"[a-z]{2,3}")  # ISO 639
_BLANKLESS = re.compile(f"[{BLANKLESS}]")
LONGEST_NAME = 1000  # maximum number of characters of a name in a message


def question_sets() -> tuple[str, ...]:
    """Return the names that `load_questions` accepts."""
    return tuple(_SETS)


def available(name: str) -> bool:
    """Return True if a named question set can be loaded without a network (bundled, mirrored or cached)."""
    from sqa.data import download

    return name.startswith("mini-") or download.where(_FILES.get(name, name)) is not None


def load_questions(name: str, limit: int | None = None) -> list[Question]:
    """Return the questions of a set in file order, at most the first `limit` (>= 1).

    Raises ConfigError for an unknown name.  Raises DataError, with file and record, for a question without sentences
    or page, or with a repeated id.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"dataset.limit: must be >= 1 or null, got {limit}")
    questions: list[Question] = []
    seen: set[str] = set()
    for question in _loader(name)():
        if limit is not None and len(questions) == limit:
            break
        if question.id in seen:
            raise DataError(f"{name}: record {len(questions)} has the id {question.id!r} of an earlier record")
        seen.add(question.id)
        questions.append(question)
    if not questions:
        raise DataError(f"{name}: contains no questions")
    return questions


def _loader(name: str) -> Loader:
    """Return the function that yields the questions of a set; raises ConfigError for an unknown name."""
    if name in _SETS:
        return _SETS[name]
    path, shown = Path(name), name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."
    if len(name) <= LONGEST_NAME and path.is_file():  # `is_file` raises for longer names
        return partial(_own_questions, path)
    if records.suffix(path) in (".json", ".jsonl", ".csv", ".tsv"):
        raise DataError(f"{shown}: this file of questions does not exist; {SOUGHT}")
    raise ConfigError(f"dataset.{unknown(shown)}")


def unknown(name: str) -> str:
    """Return the problem of a name that is neither that of a question set nor of a file."""
    known = f"{', '.join(_SETS)}, or a file of questions (.json, .jsonl, .csv, .tsv)"
    return f"name: unknown question set {name!r}{did_you_mean(name, _SETS)}; known: {known}"


def _path_of(name: str) -> Path:
    """Return the path of a file of the manifest, downloaded if necessary."""
    from sqa.data import download

    return download.path_of(name)


def _xqb(language: str) -> Iterator[Question]:
    path, name = _path_of(f"xqb-{language}"), f"xqb-{language}"
    for i, record in enumerate(records.listed(path)):
        where, number = f"{path}: questions[{i}]", record.get("xqb_id")
        if not isinstance(number, int):
            raise DataError(f"{where}.xqb_id: expected a number, got {number!r}")
        page = records.text_of(where, "target_page", record.get("target_page"))
        page = XQB_TITLES.get(answers.key(page), page)
        texts = record.get("source"), record.get("reference")
        yield _question(where, f"{name}-{number}", name, language, *texts, page)


def _mini(language: str) -> Iterator[Question]:
    for i, record in enumerate(records.listed(MINI)):
        where = f"{MINI}: questions[{i}]"
        id = f"{records.text_of(where, 'id', record.get('id'))}-{language}"
        texts = record.get(language), record.get("en")
        yield _question(where, id, f"mini-{language}", language, *texts, record.get("page"))


def _guessdev() -> Iterator[Question]:
    """Yield guessdev's questions with an answer page: 1,108 of 1,129 (QANTA also leaves out the others)."""
    from sqa.data.texts import load_guessdev

    for each in load_guessdev():
        if each.page is not None:
            yield _question(f"guessdev {each.id}", each.id, "guessdev", "en", each.text, each.text, each.page)


def _human_buzz_questions() -> Iterator[Question]:
    """Yield the human-buzz tossups with an answer page: 2,569 of 3,418."""
    path = _path_of("human-buzz-questions")
    for i, record in enumerate(records.json_lines(path)):
        if record.get("page") is not None:
            where, text = f"{path}: record {i}", record.get("text")
            id = records.text_of(where, "id", record.get("id"))
            yield _question(where, id, "human-buzzes", "en", text, text, record["page"])


def _own_questions(path: Path) -> Iterator[Question]:
    """Yield the questions of a user's file."""
    from sqa.data import own_questions

    for where, record, fields in own_questions.read(path):
        yield own_questions.heard(where, _question(where, *fields), record)


def _question(
    where: str, id: str, dataset: str, language: object, source: object, reference: object, page: object
) -> Question:
    """Return a validated question; `where` names file and record in errors."""
    code = language if isinstance(language, str) else ""
    if code and not (len(code) == 2 and code.islower()):
        from sqa.core import code_of

        code = code_of(code)
    if not isinstance(source, list):
        from sqa.data.sentences import LANGUAGES

        if code not in LANGUAGES:
            known, hint = " ".join(sorted(LANGUAGES)), "in any other language give `source` as a list of sentences"
            raise DataError(f"{where}.language: expected one of {known}, got {language!r}; {hint}")
    elif not _CODE.fullmatch(code):
        raise DataError(f"{where}.language: expected a code of two or three letters, got {language!r}")
    title = answers.canonical(records.text_of(where, "page", page))
    if wrong := answers.unwritable(title):
        raise DataError(f"{where}.page: contains {wrong}; a page title must have no control characters")
    if not title:
        raise DataError(f"{where}.page: expected a page title, got {page!r}")
    sentences = _split(where, "source", source, code)
    translation = tuple(" ".join(words) for words in _split(where, "reference", reference, "en"))
    return Question(id, dataset, code, sentences, translation, title)


def _split(where: str, field: str, value: object, language: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each sentence of a text or of a list of sentences; there is at least one sentence."""
    if listed := isinstance(value, list):
        texts = [records.text_of(where, f"{field}[{i}]", text) for i, text in enumerate(value)]
    else:
        texts = [records.text_of(where, field, value)]
    if listed if language in BY_CHARACTER else any(map(_BLANKLESS.search, texts)):
        from sqa.data.sentences import all_spaced

        texts = all_spaced(f"{where}.{field}", texts, language)
    if listed:
        parts = tuple(tuple(text.split()) for text in texts)
        if not all(parts):
            raise DataError(f"{where}.{field}: sentence {parts.index(())} is empty")
    else:
        from sqa.data.sentences import split

        parts = split(texts[0], language)
    if not parts:
        raise DataError(f"{where}.{field}: a question needs at least one sentence")
    if len(parts) > GREATEST_SMALL:
        raise DataError(f"{where}.{field}: has {len(parts)} sentences; the maximum is {GREATEST_SMALL}")
    return parts


_SETS: Mapping[str, Loader] = {
    "xqb-es": partial(_xqb, "es"),
    "xqb-pl": partial(_xqb, "pl"),
    "mini-es": partial(_mini, "es"),
    "mini-pl": partial(_mini, "pl"),
    "mini-en": partial(_mini, "en"),
    "guessdev": _guessdev,
    "human-buzzes": _human_buzz_questions,
}
_FILES = {"human-buzzes": "human-buzz-questions"}  # names in the manifest, if they differ
