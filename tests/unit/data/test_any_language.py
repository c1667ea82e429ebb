"""Questions in any language: by characters, or split by their author."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqa.core.errors import DataError
from sqa.core.types import Question
from sqa.data.datasets import load_questions


def questions(folder: Path, **record: object) -> list[Question]:
    path = folder / "own.jsonl"
    path.write_text(json.dumps({"page": "Peru", "reference": "Name this country.", **record}), encoding="utf-8")
    return load_questions(str(path))


def test_chinese_and_japanese_are_read_by_characters(tmp_path: Path) -> None:
    [question] = questions(tmp_path, language="zh", source="秘鲁的首都是利马。“马丘比丘”在哪里？NASA 2030年！")
    words = "秘 鲁 的 首 都 是 利 马 。 / “ 马 丘 比 丘 ” 在 哪 里 ？ / NASA 2030 年 ！"
    assert " / ".join(" ".join(sentence) for sentence in question.sentences) == words
    [question] = questions(tmp_path, language="ja", source=["「首都はどこですか？」と聞いた。"])
    assert question.sentences[0][:4] == ("「", "首", "都", "は") and len(question.sentences) == 1
    [question] = questions(tmp_path, language="zh", source=["秘鲁 的 首都 是 利马 。"])  # words of another program
    assert question.sentences == (("秘鲁", "的", "首都", "是", "利马", "。"),)


def test_a_split_source_needs_no_splitter(tmp_path: Path) -> None:
    [question] = questions(tmp_path, language="sw", source=["Nchi hii iko Amerika.", "Taja nchi hii."])
    assert question.language == "sw" and len(question.sentences) == 2
    with pytest.raises(DataError, match="in any other language give `source` as a list of sentences"):
        questions(tmp_path, language="sw", source="Nchi hii iko Amerika.")
    with pytest.raises(DataError, match="expected a code of two or three letters, got 'Swahili'"):
        questions(tmp_path, language="Swahili", source=["Nchi hii iko Amerika."])
