"""The table of what other names of answers change: values, paired differences, and what was taken."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from experiments.answer_aliases import main


def test_both_rules_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = tmp_path / "questions.jsonl"
    pages = ("Spain (country)", "France", "Rome", "The Spains")
    records = (
        {"id": f"q{i}", "language": "es", "source": [f"dice {word}"], "reference": ["x"], "page": page}
        for i, (page, word) in enumerate(zip(pages, ("spain", "france", "spain", "france"), strict=True))
    )
    questions.write_text("".join(json.dumps(record) + "\n" for record in records))
    config = {"dataset": {"name": str(questions)}, "translator": "doubles:build_translator",
              "guesser": "doubles:build_guesser", "buzzer": "doubles:build_buzzer", "metrics": ["bleu"]}  # fmt: skip
    path = tmp_path / "made.yaml"
    path.write_text(yaml.safe_dump(config))
    assert main([str(path), "--runs", str(tmp_path / "runs"), "--list"]) in (None, 0)
    table, listed = capsys.readouterr().out.split("\trun\t")
    rows = {row["metric"]: row for row in csv.DictReader(table.splitlines(), delimiter="\t")}
    accuracy = rows["accuracy"]
    assert (accuracy["strict"], accuracy["aliases"], accuracy["difference"]) == ("0.250000", "0.500000", "0.250000")
    assert (accuracy["n"], accuracy["changed"], accuracy["low"]) == ("4", "1", "0.000000")
    assert 0.25 < float(accuracy["high"]) <= 1 and float(rows["ew"]["difference"]) > 0 and len(rows) == 5
    assert listed.splitlines()[1:] == ["\tmade\tq0\tSpain (country)\tSpain"]
