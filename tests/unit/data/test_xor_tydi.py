"""The XOR-TyDi loader: a small copy of its files, refused input, and the real files."""

import json

import pytest
from refusals import refused
from tables import tables_of

from sqa.core import DataError
from sqa.data import xor_tydi
from sqa.data.xor_tydi import LANGUAGES, SPLITS, load_translations, load_xor_tydi

TABLES = tables_of(__file__)

QUESTIONS = TABLES["questions"]
TRANSLATIONS = TABLES["translations"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return a function that writes both files and redirects the loader to them."""
    monkeypatch.setattr(xor_tydi.download, "path_of", lambda name: tmp_path / f"{name}.jsonl")

    def write(questions=QUESTIONS, translations=TRANSLATIONS):
        for name, rows in (("xor-tydi", questions), ("xor-translations", translations)):
            (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    write()
    return write


def test_questions_of_a_split_have_translations(files):
    first, second = load_xor_tydi("train-engspan", "fi")
    assert (first.id, first.text, first.answers) == ("1", "Kuka kirjoitti Sodan?", ("Tolstoi",))
    assert first.translation == "Who wrote the War?"  # the first translation, with single spaces
    assert second.translation is None  # an equal text in another language does not count
    question = first.as_question()
    assert (question.sentences, question.language) == ((("Kuka", "kirjoitti", "Sodan?"),), "fi")
    assert (question.reference_text, second.as_question().reference) == ("Who wrote the War?", ())
    assert [q.id for q in load_xor_tydi("train-engspan", "fi", limit=1)] == ["1"]
    assert load_translations("ru") == {"Milloin?": "of another language"}


@pytest.mark.parametrize(("change", "message"), TABLES["damaged_records_are_refused"])
def test_damaged_records_are_refused(files, change, message):
    files([QUESTIONS[0], {**QUESTIONS[3], **change}])
    refused(DataError, message, load_xor_tydi, "train-engspan", "fi")


def test_missing_questions_of_a_language_are_an_error(files):
    refused(DataError, "no questions of dev-engspan in ru", load_xor_tydi, "dev-engspan", "ru")


@pytest.mark.mirror
def test_real_files_have_known_counts():
    sets = {(split, language): load_xor_tydi(split, language) for split in SPLITS for language in LANGUAGES}
    assert [len(questions) for questions in sets.values()] == [360, 255, 2088, 1941, 615, 568]
    assert {language: len(load_translations(language)) for language in LANGUAGES} == {"fi": 4638, "ru": 4745}
    for language in LANGUAGES:
        assert all(q.translation for q in sets["train-engspan", language])
        assert not any(q.translation for q in sets["dev-engspan", language])
    assert sum(q.translation == q.text for q in sets["train-engspan", "fi"]) == 7
