"""The main job on a few bundled questions: table, figure, report, claims; the same bytes when run again."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from small_ablation import changed, rows, write_small_ablation

from experiments import grid
from experiments.ablation.report import main
from sqa.core.paths import ROOT
from sqa.files.yaml_reader import read_yaml

KS = [1, 3, 6, "full"]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """configs/ablation.yaml cut down: four questions of data that cannot be missing, one contestant, one process."""
    path = write_small_ablation(tmp_path_factory.mktemp("ablation"), KS, 4)
    return changed(path, contestants=read_yaml(ROOT / "configs" / "ablation.yaml")["contestants"][1:2])


def test_ablation(config, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(grid, "ProcessPoolExecutor", ProcessPoolExecutor)  # with the real one, elsewhere in threads
    main(config, tmp_path)
    printed = capsys.readouterr()
    assert "mini-es: 45 questions" in printed.err
    table, gaps, pdf, png, report = printed.out.splitlines()[-5:]
    assert printed.out.startswith(Path(gaps).read_text("utf-8"))
    text = Path(report).read_text("utf-8")
    assert "![mini-es](figure3_mini-es.png)" in text and "4 questions; 95% intervals over questions." in text
    [rise] = [row for row in rows(Path(gaps)) if row["claim"] == "rise"]
    assert (rise["dataset"], rise["translator"], rise["guesser"]) == ("mini-es", "wait-k", "bm25")
    assert float(rise["low"]) <= float(rise["difference"]) <= float(rise["high"])
    of = {(row["translator"], row["k"], row["metric"]): row for row in rows(Path(table))}
    cells = list(dict.fromkeys(key[:2] for key in of))
    assert [k for _, k in cells] == [*map(str, KS), "full", "diagonal"]
    value = {key: float(row["value"]) for key, row in of.items()}
    for cell in cells:
        assert float(of[*cell, "ew"]["low"]) <= value[*cell, "ew"] <= float(of[*cell, "ew"]["high"])
        assert value[*cell, "ew"] <= value[*cell, "oracle-ew"]
    dal = [value[*cell, "dal"] for cell in cells[: len(KS)]]
    assert dal == sorted(dal)
    human, least = value["reference", "full", "bleu"], value["wait-k", "1", "bleu"]
    assert human == pytest.approx(100) and human > least

    before = {path: Path(path).read_bytes() for path in (table, gaps, pdf, png, report)}
    main(config, tmp_path)
    assert {path: Path(path).read_bytes() for path in before} == before


def test_contestants_that_share_a_guesser_have_their_own_numbers(tmp_path):
    """Each row is what its contestant gets alone."""
    quick, never = ({"name": "doubles:build_buzzer", "threshold": threshold} for threshold in (0.5, 1e9))
    contestants = [{"guesser": {"name": "bm25"}, "buzzer": buzzer} for buzzer in (quick, never, {"name": "oracle"})]
    numbers = []
    for together in (contestants, *([one] for one in contestants)):
        path = write_small_ablation(tmp_path, ["full"], 12)
        changed(path, contestants=together)
        main(path, tmp_path / "runs")
        table = rows(tmp_path / "runs" / "ablation" / "table.csv")
        numbers.append([row["value"] for row in table if row["metric"] == "ew"])
        if together is contestants:
            names = {row["contestant"] for row in table}
    assert numbers[0] == [ew for row in zip(*numbers[1:], strict=True) for ew in row]
    assert set(numbers[2]) == {"0.000000"} and set(numbers[3]) != {"0.000000"}
    assert len(names) == 3 and {name for name in names if "-" not in name} == {"bm25+oracle"}


@pytest.mark.parametrize(
    ("ks", "metrics", "claims", "pictures"),
    [
        ([1, 3, 6], ["ew", "oracle-ew", "accuracy", "bleu", "dal"], {"rise", "oracle rise", "later peak"}, 1),
        ([1, 3, 6, "full"], ["accuracy", "mrr"], {"accuracy grows"}, 0),
        (["full"], ["ew"], set(), 0),
    ],
)
def test_what_was_not_measured_is_not_claimed_or_drawn(tmp_path, capsys, ks, metrics, claims, pictures):
    path = write_small_ablation(tmp_path, ks, 2)
    changed(path, metrics=metrics)
    main(path, tmp_path / "runs")
    lines = capsys.readouterr().out.splitlines()
    table, gaps = (next(line for line in lines if line.endswith(name)) for name in ("table.csv", "differences.tsv"))
    assert {row["claim"] for row in rows(Path(gaps))} == claims
    assert sum(line.endswith(".png") for line in lines) == pictures
    systems = dict.fromkeys((row["translator"], row["k"]) for row in rows(Path(table)))
    assert [k for _, k in systems] == [*map(str, ks), "full", "diagonal"]
