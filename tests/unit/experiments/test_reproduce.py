"""`sqa reproduce` makes every item that it can, lists the others at the end, and shows the paper's values."""

from pathlib import Path
from typing import get_args

import pytest
from tables import tables_of
from typer.testing import CliRunner

from experiments.outputs import beside
from experiments.paper import examples
from sqa.cli import evidence
from sqa.core import CONFIGS, ConfigError, Registry

TABLES = tables_of(__file__)

ITEMS = TABLES["items"]


@pytest.fixture
def items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Register six items, two of which can be made, and return the empty current folder."""
    (tmp_path / "items.py").write_text(ITEMS, encoding="utf-8")
    names = ["bad", "good", "gone", "package", "code", "good2"]
    targets = {name: (f"{tmp_path}/items.py:{name.rstrip('2')}", "ablation.yaml") for name in names}
    monkeypatch.setattr(evidence, "PAPER", targets)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_reproduce_all_lists_items_it_cannot_make(items: Path) -> None:
    done = CliRunner().invoke(evidence.evidence_app, ["reproduce", "all", "--runs", "r"])
    assert done.exit_code == 1
    assert (items / "r" / "made").read_text(encoding="utf-8").splitlines() == ["ablation.yaml"] * 2
    lines = done.stderr.splitlines()
    assert lines[-5:] == [
        "made 2 of 6 items, in r",
        "not made: bad: no such data; get them",
        "not made: gone: a file is not there",
        "not made: package: No module named 'nowhere'",
        "not made: code: ended with exit code 3",
    ]


def test_reproduce_all_exits_zero(items: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = {name: entry for name, entry in evidence.PAPER.items() if name.startswith("good")}
    monkeypatch.setattr(evidence, "PAPER", good)
    done = CliRunner().invoke(evidence.evidence_app, ["reproduce", "all", "--runs", "r"])
    assert done.exit_code == 0 and done.stderr.splitlines()[-1] == "made 2 of 2 items, in r"


def test_every_item_has_a_config_and_a_function() -> None:
    registry = Registry("item", {name: target for name, (target, _) in evidence.PAPER.items()})
    for name, (_, config) in evidence.PAPER.items():
        assert (CONFIGS / config).is_file(), name
        assert callable(registry.resolve(name)), name


def test_paper_values_are_shown_for_each_item() -> None:
    for name in evidence.PAPER:
        lines = beside(name)
        assert lines and len(lines) % 3 == 0, name
        keys = [line.split(":")[0].rpartition(", ")[2] for line in lines]
        assert keys == ["paper", "ours", "why different"] * (len(lines) // 3)
    assert len(beside("fig5")) == 3 * len(get_args(examples.Panel))
    assert not set(beside("fig1")) & set(beside("fig10")) and beside("hallucination") == []


def test_reproduce_all_refuses_a_config(items: Path) -> None:
    done = CliRunner().invoke(evidence.evidence_app, ["reproduce", "all", "configs/figure6.yaml"])
    assert isinstance(done.exception, ConfigError) and "name one item" in str(done.exception)
