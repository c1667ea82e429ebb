"""Guessers of one's own texts and pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from refusals import refused

from guessers.lessons import identity_of, learnt, own_texts
from guessers.retrieval.bm25 import Bm25Guesser
from guessers.retrieval.counting import Bm25Training
from guessers.train import main
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import DATA, ROOT


def pages(folder: Path, *records: object) -> Path:
    path = folder / "pages.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def config(folder: Path, texts: Path, output: str | Path = "model") -> Path:
    path = folder / "guesser.yaml"
    path.write_text(f"kind: bm25\noutput: {folder / output}\ntexts: [{texts}]\n", encoding="utf-8")
    return path


def test_a_guesser_knows_the_pages_of_its_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQA_MIRROR", raising=False)
    monkeypatch.setattr("guessers.lessons.load_tossups", lambda: pytest.fail("the project's texts were read"))
    folder = main(config(tmp_path, ROOT / "docs/example/pages.jsonl"))
    guesser = Bm25Guesser.load(folder)
    assert guesser.pages == {"Peru", "Spain", "Danube", "Frédéric Chopin"}
    assert guesser.guess(["a river through Vienna"], 1)[0][0].page == "Danube"


@pytest.mark.parametrize("output", ["bm25", "new", ""])
def test_a_bundled_model_is_never_written_over(tmp_path: Path, output: str) -> None:
    with pytest.raises(ConfigError, match="is the folder of a bundled model; name another one"):
        main(config(tmp_path, ROOT / "docs/example/pages.jsonl", DATA / "models" / output))


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([{"text": "a", "page": "A"}, {"text": " ", "page": "A"}], "record 2: expected a text 'text' and the title"),
        ([{"text": "a"}], "record 1: expected a text 'text' and the title"),
        ([{"id": "x", "text": "a", "page": "A"}] * 2, "record 2: expected an 'id' of its own, a text, got 'x'"),
        ([], "no texts in it"),
    ],
)
def test_wrong_texts_are_refused_by_record(tmp_path: Path, records: list[object], problem: str) -> None:
    refused(DataError, problem, own_texts, [pages(tmp_path, *records)])


def test_a_file_that_is_not_there_is_no_reason_to_take_another(tmp_path: Path) -> None:
    refused(DataError, "nowhere.jsonl", main, config(tmp_path, tmp_path / "nowhere.jsonl"))


def test_too_few_texts_to_stop_by_and_edited_ones_are_noticed(tmp_path: Path) -> None:
    few = pages(tmp_path, {"id": "x", "text": "a", "page": "A"})
    refused(DataError, r"no text falls into dev .*; give more texts", learnt, ("dev",), [few])
    before = identity_of(Bm25Training("bm25", tmp_path, texts=(few,)), ("bonus",))
    assert "bonus" not in before and "folds" in before and "output" not in before
    other = pages(tmp_path, {"id": "x", "text": "b", "page": "A"})
    assert identity_of(Bm25Training("bm25", tmp_path, texts=(other,)), ("bonus",)) != before
