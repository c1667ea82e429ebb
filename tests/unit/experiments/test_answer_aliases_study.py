"""The effect of answer aliases: the strict value and the paired difference."""

import json
from pathlib import Path

import yaml

from experiments.studies.answers import MEASURES, MORE, STRICT, both_rules
from sqa.files.store import Store
from sqa.pipeline.config import load_run
from sqa.pipeline.parts import Parts


def test_both_rules_are_compared(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    pages = ("Spain (country)", "France", "Rome", "The Spains")
    records = (
        {"id": f"q{i}", "language": "es", "source": [f"dice {word}"], "reference": ["x"], "page": page}
        for i, (page, word) in enumerate(zip(pages, ("spain", "france", "spain", "france"), strict=True))
    )
    questions.write_text("".join(json.dumps(record) + "\n" for record in records))
    config = {kind: f"doubles:build_{kind}" for kind in ("translator", "guesser", "buzzer")}
    config |= {"dataset": {"name": str(questions)}, "metrics": ["bleu"]}
    path = tmp_path / "made.yaml"
    path.write_text(yaml.safe_dump(config))
    rows = {row.key: row for row in both_rules(("d",), load_run(path), Store(tmp_path / "runs"), Parts())}
    strict, more = rows["d", STRICT, "accuracy"], rows["d", MORE, "accuracy"]
    assert (strict.value, more.value, more.n, more.low) == (0.25, 0.25, 4, 0.0)  # "Spain" for "Spain (country)"
    assert more.high is not None and 0.25 < more.high <= 1
    assert rows["d", MORE, "ew"].value > 0 and len(rows) == 2 * len(MEASURES)
