"""XOR-TyDi's Finnish and Russian questions, their short answers, and the human translations of some of them.

Splits (file `xor-tydi` of data/manifest.yaml; Asai et al. 2021):

    dev-engspan     615 questions of the official development set, one or two English answers each; nobody translated
                    them
    train-engspan   4,029 training questions, one English answer each; all have a human translation
    dev-full        1,183 questions (dev-engspan's among them) with answers in the question's own language, which need
                    a translation back: nothing here answers them

The human translations (file `xor-translations`) are found by language and wording.  Seven Finnish ones are the Finnish
question itself; they stay as the annotators left them.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from sqa.core.errors import DataError
from sqa.core.types import Question
from sqa.data import download
from sqa.files import records

SPLITS = ("dev-engspan", "train-engspan", "dev-full")
LANGUAGES = ("fi", "ru")


_Text = Annotated[str, Meta(pattern=r"\S")]


class _Question(Struct):
    """The keys that are read of a record of questions."""

    id: _Text
    question: _Text
    answers: Annotated[tuple[str, ...], Meta(min_length=1)]


class _Translation(Struct):
    """The keys that are read of a record of translations."""

    source: _Text
    reference: _Text


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question with short answers."""

    id: str  # unique within a split
    split: str  # one of SPLITS
    language: str  # one of LANGUAGES
    text: str  # single blanks
    answers: tuple[str, ...]  # the right ones, at least one
    translation: str | None  # a person's English; None where there is none

    def as_question(self) -> Question:
        """For translators: one sentence, the human translation (if any) as reference, no answer page."""
        reference = () if self.translation is None else (self.translation,)
        words = tuple(self.text.split())
        return Question(self.id, f"xor-{self.split}-{self.language}", self.language, (words,), reference, page="")


def available() -> bool:
    """True if both files are in the mirror or the cache."""
    return all(download.where(name) is not None for name in ("xor-tydi", "xor-translations"))


def load_xor_tydi(split: str, language: str, limit: int | None = None) -> list[OpenQuestion]:
    """The questions of a split and language in the order of the file; at most the first `limit` (>= 1).

    None: DataError; so is a damaged record, which it names.
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
    """Question (single blanks) -> human English translation, of one language; the first where there are several."""
    path = download.path_of("xor-translations")
    translations: dict[str, str] = {}
    for number, record in enumerate(records.json_lines(path)):
        if record.get("lang") == language:
            item = records.converted(f"{path}: record {number}", record, _Translation)
            translations.setdefault(" ".join(item.source.split()), " ".join(item.reference.split()))
    return translations
