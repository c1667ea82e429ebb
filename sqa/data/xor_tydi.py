"""XOR-TyDi's Finnish and Russian questions, their short answers, and human translations of some of them.

Splits (file `xor-tydi` of data/manifest.yaml; Asai et al. 2021):

    dev-engspan     615 questions of the official development set, with one or two English answers each and no human
                    translation
    train-engspan   4,029 training questions, with one English answer and a human translation each
    dev-full        1,183 questions (including dev-engspan's) with answers in the question's language, which would
                    need translation back; no guesser here answers them

Human translations (file `xor-translations`) are matched by language and wording.  Seven Finnish translations repeat
the Finnish question; they are kept as annotated.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from sqa.core import DataError, Question
from sqa.data import download
from sqa.files import records

SPLITS = ("dev-engspan", "train-engspan", "dev-full")
LANGUAGES = ("fi", "ru")


_Text = Annotated[str, Meta(pattern=r"\S")]


class _Question(Struct):
    """The keys of a question record that are used."""

    id: _Text
    question: _Text
    answers: Annotated[tuple[str, ...], Meta(min_length=1)]


class _Translation(Struct):
    """The keys of a translation record that are used."""

    source: _Text
    reference: _Text


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question with short answers."""

    id: str  # unique within a split
    split: str  # one of SPLITS
    language: str  # one of LANGUAGES
    text: str  # text of the question, with single spaces between words
    answers: tuple[str, ...]  # accepted answers, at least one
    translation: str | None  # human English translation; None if there is none

    def as_question(self) -> Question:
        """Convert to a question for translators: one sentence, the human translation (if any), no answer page."""
        reference = () if self.translation is None else (self.translation,)
        words = tuple(self.text.split())
        return Question(self.id, f"xor-{self.split}-{self.language}", self.language, (words,), reference, page="")


def available() -> bool:
    """Return True if both files are in the mirror or the cache."""
    return all(download.where(name) is not None for name in ("xor-tydi", "xor-translations"))


def load_xor_tydi(split: str, language: str, limit: int | None = None) -> list[OpenQuestion]:
    """Return the questions of a split and language in file order, at most the first `limit` (>= 1).

    Raises DataError if there are none, or for a damaged record.
    """
    translations = load_translations(language)
    path = download.path_of("xor-tydi")
    questions: dict[str, OpenQuestion] = {}
    for number, record in enumerate(records.json_lines(path)):
        if (record.get("split"), record.get("lang")) != (split, language):
            continue
        if limit is not None and len(questions) == limit:
            break
        where = f"{path}: record {number}"
        item = records.converted(where, record, _Question)
        text = " ".join(item.question.split())
        question = OpenQuestion(item.id, split, language, text, item.answers, translations.get(text))
        if question.id in questions:
            raise DataError(f"{where}: the id {question.id!r} occurs twice in {split}")
        questions[question.id] = question
    if not questions:
        raise DataError(f"{path}: no questions of {split} in {language}")
    return list(questions.values())


def load_translations(language: str) -> dict[str, str]:
    """Return a dict that maps a language's questions, with single spaces between words, to human English translations.

    If a question has several translations, the first is used.
    """
    path = download.path_of("xor-translations")
    translations: dict[str, str] = {}
    for number, record in enumerate(records.json_lines(path)):
        if record.get("lang") == language:
            item = records.converted(f"{path}: record {number}", record, _Translation)
            translations.setdefault(" ".join(item.source.split()), " ".join(item.reference.split()))
    return translations
