"""The main job on a few bundled questions: table, figure, report, claims; the same bytes when run again."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import yaml

from experiments.ablation.over_k import main
from sqa.core.paths import ROOT
from sqa.run.config import read_yaml

KS = [1, 3, 6, "full"]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """configs/ablation.yaml cut down: four questions of data that cannot be missing, one contestant, one process."""
    mapping = read_yaml(ROOT / "configs" / "ablation.yaml")
    mapping |= {
        "datasets": ["nowhere.jsonl"],
        "fallback": ["mini-es"],
        "k": KS,
        "commands": {},
        "resamples": 50,
        "limit": 4,
    }
    mapping |= {"contestants": mapping["contestants"][-1:], "workers": 1}
    path = tmp_path_factory.mktemp("ablation") / "ablation.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


def test_ablation(config, tmp_path, capsys):
    main(config, tmp_path)
    printed = capsys.readouterr()
    assert "running on mini-es" in printed.err
    *claims, table, pdf, png, report = printed.out.splitlines()
    assert len(claims) == 5
    for claim in claims:
        dataset, family, guesser, _, verdict, numbers = claim.split("\t")
        assert (dataset, family) == ("mini-es", "wait-k") and guesser in ("-", "bm25")
        assert verdict.startswith(("held", "did not hold")) and "full" in numbers
    with Path(table).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["k"] for row in rows] == [*map(str, KS), "full", "diagonal"]
    for row in rows:
        assert float(row["ew.low"]) <= float(row["ew"]) <= float(row["ew.high"])
        assert float(row["ew"]) <= float(row["oracle-ew"])
    dal = [float(row["dal"]) for row in rows[: len(KS)]]
    assert dal == sorted(dal)
    human = next(row for row in rows if row["translator"] == "reference")
    assert float(human["bleu"]) == pytest.approx(100) and float(human["bleu"]) > float(rows[0]["bleu"])

    before = {path: Path(path).read_bytes() for path in (table, pdf, png, report)}
    main(config, tmp_path)
    capsys.readouterr()
    assert {path: Path(path).read_bytes() for path in before} == before
