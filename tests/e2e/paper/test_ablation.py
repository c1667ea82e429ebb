"""The ablation on a few bundled questions: table, figure, report and claims, which a second run reproduces exactly."""

import pytest
from small_ablation import changed, write_small_ablation

from experiments.ablation.report import main
from sqa.core import ROOT
from sqa.files import read_yaml
from sqa.pipeline import pool, runner


def test_second_ablation_gives_the_same_bytes(tmp_path, capsys, monkeypatch):
    """The config is configs/ablation.yaml with four bundled questions, one contestant and one worker process."""
    config = write_small_ablation(tmp_path, [1, 3, 6, "full"], 4)
    changed(config, contestants=read_yaml(ROOT / "configs" / "ablation.yaml")["contestants"][1:2])
    monkeypatch.setattr(runner, "FEW", 0)  # use worker processes even for few questions
    main(config, tmp_path)
    printed, folder = capsys.readouterr(), tmp_path / "ablation"
    assert "mini-es: 45 questions" in printed.err
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert set(printed.out.splitlines()[-6:]) == set(map(str, before))
    peaks = printed.out.splitlines()[:-6]
    assert [line.split("\t")[:6] for line in peaks[1:]] == [["mini-es", "wait-k", "1", "bm25", "6", "0.340"]]
    monkeypatch.setattr(pool, "ProcessPoolExecutor", None)  # finished runs start no process
    main(config, tmp_path)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("ks", "metrics", "pictures"),
    [
        (["full"], ["ew"], 1),
        ([1, 3], ["names"], 0),
    ],
)
def test_missing_values_are_not_claimed_or_drawn(tmp_path, ks, metrics, pictures):
    main(changed(write_small_ablation(tmp_path, ks, 2), metrics=metrics), tmp_path)
    assert len(list((tmp_path / "ablation").glob("*.png"))) == pictures
