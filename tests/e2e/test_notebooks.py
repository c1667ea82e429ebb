"""Every notebook runs from top to bottom, is short, and defines nothing."""

from __future__ import annotations

import json

import pytest

from sqa.paths import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_short_and_defines_nothing(path):
    cells = code_cells(path)
    assert len(cells) <= 12
    assert not any(line.startswith(("def ", "class ")) for cell in cells for line in cell.splitlines())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SQA_RUNS", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, object] = {}
    for cell in code_cells(path):
        exec(compile(cell, str(path), "exec"), names)  # the cells share one namespace, as in Jupyter
    assert capsys.readouterr().out.strip()
