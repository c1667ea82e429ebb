"""Loading questions: user files, the format of the mini set, and invalid input."""

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from refusals import refused
from tables import tables_of

from sqa.core import ConfigError, DataError, Question
from sqa.data import datasets, texts

TABLES = tables_of(__file__)

GOOD = TABLES["good"]


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset SQA_MIRROR and use an empty cache."""
    monkeypatch.delenv("SQA_MIRROR", raising=False)
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))


def own_file(tmp_path: Path, *rows: Any, name: str = "mine.json") -> str:
    path = tmp_path / name
    text = json.dumps(rows) if name.endswith(".json") else "".join(json.dumps(row) + "\n" for row in rows)
    data = text.encode("utf-8")
    path.write_bytes(zstandard.compress(data) if name.endswith(".zst") else data)
    return str(path)


@pytest.mark.parametrize("name", ["mine.json", "mine.jsonl", "mine.jsonl.zst"])
def test_own_file_is_read(tmp_path: Path, name: str) -> None:
    listed = {"id": 7, "source": ["Uno dos.", "Tres."], "reference": ["One.", "Two three."], "language": "es"}
    path = own_file(tmp_path, GOOD, {**listed, "target_page": "Counting_(music)"}, name=name)
    first, second = datasets.load_questions(path)
    assert (first.id, first.dataset, first.language, first.page) == ("mine-0", "mine", "pl", "Vistula")
    assert first.sentences == (("Ta", "rzeka", "płynie", "przez", "Kraków."), ("Nazwij", "tę", "rzekę."))
    assert first.reference == ("This river flows through Cracow.", "Name this river.")
    assert (second.id, second.page) == ("7", "Counting (music)")
    assert second.sentences == (("Uno", "dos."), ("Tres.",))
    assert datasets.load_questions(path, limit=1) == [first]


@pytest.mark.parametrize(("change", "message"), TABLES["bad_record_error_names_the_record"])
def test_bad_record_error_names_the_record(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    refused(DataError, message, datasets.load_questions, own_file(tmp_path, GOOD, {**GOOD, **change}))


def test_meta_underscore_and_null_keys_are_ignored(tmp_path: Path) -> None:
    null = dict.fromkeys(("word_times", "recording", "question", "answers", "earliest_answerable", "target_page"))
    more = {**GOOD, "meta": {"category": "Rivers", "year": 1990}, "_note": "x", **null}
    assert datasets.load_questions(own_file(tmp_path, more)) == datasets.load_questions(own_file(tmp_path, GOOD))


LINE = json.dumps(GOOD)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[]", "no questions"),
        ("a.json", '{"items": []}', "expected a list of questions"),
        ("none.jsonl", None, "this file of questions does not exist"),
        ("latin.jsonl", json.dumps(GOOD, ensure_ascii=False), r"latin\.jsonl:1: not UTF-8"),
        ("a.jsonl", f'\n{LINE}\n\n{LINE[:-1]}, "langauge": "es"}}\n', r"a\.jsonl:4: record 1: unknown key"),
        ("a.jsonl", f'{{"page": "Oder", {LINE[1:]}\n', r"a\.jsonl:1: the key 'page' occurs twice"),
    ],
)
def test_invalid_files_are_refused(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content.encode("iso-8859-2"))
    refused(DataError, message, datasets.load_questions, str(path))


def test_pair_names_its_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mt-es-en-train").write_text("uno\tone\tnews\n", encoding="utf-8")
    (tmp_path / "mt-es-en-newstest2013").write_text("dos\ttwo\n", encoding="utf-8")
    monkeypatch.setattr(texts.download, "path_of", lambda name: tmp_path / name)
    corpora = [pair.corpus for part in ("train", "newstest2013") for pair in texts.load_parallel("es-en", part)]
    assert corpora == ["news", "newstest2013"]


def test_unknown_names_suggest_the_nearest() -> None:
    refused(ConfigError, "did you mean 'xqb-es'", datasets.load_questions, "xqb-ess")
    refused(ConfigError, "not in the manifest", lambda: next(texts.load_parallel("es-en", "newstest1999")))
    refused(ConfigError, "dataset.limit: must be >= 1", datasets.load_questions, "mini-es", limit=0)


@pytest.mark.usefixtures("no_data")
def test_missing_data_error_names_the_mirror() -> None:
    assert not datasets.available("xqb-es")
    assert not datasets.available("guessdev")
    refused(DataError, "needs a mirror: set SQA_MIRROR .*qb/tossups.train.jsonl.zst", texts.load_tossups)


@pytest.mark.parametrize(("end", "error"), [(".jsonl", DataError), ("", ConfigError)])
def test_overlong_name_is_shortened_in_the_error(end: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^(dataset\.name: unknown question set ')?x{1000}\.\.\.") as raised:
        datasets.load_questions("x" * 70_000 + end)
    assert len(str(raised.value)) < 1_300


# ------------------------------------------------------------------------------------------------- any language


def questions(folder: Path, **record: object) -> list[Question]:
    path = folder / "own.jsonl"
    path.write_text(json.dumps({"page": "Peru", "reference": "Name this country.", **record}), encoding="utf-8")
    return datasets.load_questions(str(path))


def test_chinese_and_japanese_are_split_by_character(tmp_path: Path) -> None:
    [question] = questions(tmp_path, language="zh", source="秘鲁的首都是利马。“马丘比丘”在哪里？NASA 2030年！")
    words = "秘 鲁 的 首 都 是 利 马 。 / “ 马 丘 比 丘 ” 在 哪 里 ？ / NASA 2030 年 ！"
    assert " / ".join(" ".join(sentence) for sentence in question.sentences) == words
    [question] = questions(tmp_path, language="ja", source=["「首都はどこですか？」と聞いた。"])
    assert question.sentences[0][:4] == ("「", "首", "都", "は") and len(question.sentences) == 1
    [question] = questions(tmp_path, language="zh", source=["秘鲁 的 首都 是 利马 。"])  # already segmented into words
    assert question.sentences == (("秘鲁", "的", "首都", "是", "利马", "。"),)


def test_split_source_needs_no_splitter(tmp_path: Path) -> None:
    [question] = questions(tmp_path, language="sw", source=["Nchi hii iko Amerika.", "Taja nchi hii."])
    assert question.language == "sw" and len(question.sentences) == 2
    refused(DataError, "as a list of sentences", questions, tmp_path, language="sw", source="Nchi hii iko Amerika.")
    refused(DataError, "got 'Swahili'", questions, tmp_path, language="Swahili", source=["Nchi hii iko Amerika."])


SAME = TABLES["same"]
SAME |= {"tha": "th", "khm_Khmr": "km", "haw": "haw", "pt-BR": "pt", "Japanese": "ja"}


@pytest.mark.parametrize("written", SAME)
def test_language_codes_are_normalised(tmp_path: Path, written: str) -> None:
    [question] = questions(tmp_path, language=written, source=["Lima 2030"])
    assert question.language == SAME[written]


@pytest.mark.parametrize(
    "source", ["秘鲁的首都是利马 马丘比丘在哪里", "ペルーの首都はリマである。 太平洋に面している。"]
)
def test_spaces_between_clauses_are_dropped(tmp_path: Path, source: str) -> None:
    [question] = questions(tmp_path, language="zh", source=[source])
    assert question.words == tuple(source.replace(" ", ""))


def test_combining_marks_stay_with_their_characters(tmp_path: Path) -> None:
    source = "か\u3099くは Müller-Łoś と Москва 3.5 の葛\U000e0100"
    [question] = questions(tmp_path, language="ja", source=source)
    expected = ("か\u3099", "く", "は", "Müller-Łoś", "と", "Москва", "3.5", "の", "葛\U000e0100")
    assert question.words == expected


WITHOUT_SPACES = TABLES["without_spaces"]


@pytest.mark.parametrize("language", WITHOUT_SPACES)
def test_scripts_without_spaces_are_refused(tmp_path: Path, language: str) -> None:
    source = [WITHOUT_SPACES[language]]
    message = r"record 0\.source: expected spaces between words, got .*; separate the words"
    refused(DataError, message, questions, tmp_path, language=language, source=source)
    refused(
        DataError,
        "record 0.reference: must be English",
        questions,
        tmp_path,
        language="es",
        source=["a"],
        reference=source,
    )


WITH_SPACES = TABLES["with_spaces"]


@pytest.mark.parametrize("language", WITH_SPACES)
def test_words_separated_by_spaces_are_kept(tmp_path: Path, language: str) -> None:
    source = WITH_SPACES[language]
    [question] = questions(tmp_path, language=language, source=[source])
    assert question.words == tuple(source.replace("\u200b", " ").split())


@pytest.mark.parametrize("separator", [",", "\t"])
def test_tables_with_named_columns_are_read(tmp_path: Path, separator: str) -> None:
    file = tmp_path / ("q.csv" if separator == "," else "q.tsv")
    rows = [("language", "source", "page", "reference", "id"), ("es", "Dos palabras.", "Spain", "Two words.", "")]
    file.write_text("".join(separator.join(row) + "\n" for row in rows), encoding="utf-8")
    [question] = datasets.load_questions(str(file))
    assert (question.id, question.page, question.reference) == ("q-0", "Spain", ("Two words.",))
    file.write_text(file.read_text().replace("page", "pages"), encoding="utf-8")
    refused(DataError, ":2: record 0: unknown key 'pages', did you mean 'page'", datasets.load_questions, str(file))
