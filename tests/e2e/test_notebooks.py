"""Every notebook is short, defines nothing, carries its outputs, and runs from top to bottom on a few questions."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sqa.core.paths import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUESTIONS = 8  # what the tests run on; the committed outputs are of all of them
NEEDS = {"stepwise_errors": ("pandas",)}  # packages beyond those of the project itself
LARGEST = 150_000  # characters of a notebook with its outputs
MACHINE = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|work|mnt|opt|var|Users|private)/|[A-Z]:\\\\|site-packages")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    results = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in results if cell["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_there_are_notebooks() -> None:
    expected = {"ablation_over_k", "one_question", "reproduce_figures", "stepwise_errors", "your_own_system"}
    assert {path.stem for path in NOTEBOOKS} == expected


@every_notebook
def test_notebook_is_short_and_defines_nothing(path: Path) -> None:
    code = cells(path, "code")
    assert len(code) + len(cells(path, "markdown")) <= 12
    for cell in code:
        assert not re.search(r"^\s*(def |class |async def |%|!)", source(cell), re.MULTILINE)
        assert "lambda" not in source(cell)
        assert all(len(line) <= 130 for line in source(cell).splitlines())


def test_a_system_of_your_own_needs_nothing_but_sqa_itself() -> None:
    path = next(path for path in NOTEBOOKS if path.stem == "your_own_system")
    code = "\n".join(source(cell) for cell in cells(path, "code"))
    assert "import sqa\n" in code and not re.search(r"(from|import) sqa\.", code)


@every_notebook
def test_notebook_can_be_read_without_running_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) <= LARGEST
    outputs = [output for cell in cells(path, "code") for output in cell["outputs"]]
    assert outputs and not any(output["output_type"] == "error" for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)
    assert [cell["execution_count"] for cell in cells(path, "code")] == list(range(1, len(cells(path, "code")) + 1))
    assert not MACHINE.search(text)
    first, last = cells(path, "markdown")[0], cells(path, "markdown")[-1]
    assert source(first).startswith("# ")
    assert "**What this says.**" in source(last)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all notebooks, so that no translation is made twice."""
    return tmp_path_factory.mktemp("runs")


@every_notebook
def test_notebook_runs(path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS.get(path.stem, ("pandas",)):
        pytest.importorskip(package)
    from matplotlib import pyplot

    monkeypatch.setenv("SQA_RUNS", str(runs))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.syspath_prepend(path.parent)  # as in Jupyter, where the notebook's folder can be imported from
    names: dict[str, object] = {}
    code = [source(cell) for cell in cells(path, "code")]
    assert sum("LIMIT = None" in cell or "LIMIT), None" in cell or ", LIMIT =" in cell for cell in code) == 1
    for i, cell in enumerate(code):
        small = re.sub(r'^(DATASET, LIMIT = "mini-es",) None', rf"\1 {QUESTIONS}", cell, flags=re.MULTILINE)
        exec(compile(small, f"{path.name}, cell {i}", "exec"), names)  # the cells share one namespace, as in Jupyter
    assert names["LIMIT"] == QUESTIONS
    assert pyplot.get_fignums()
    pyplot.close("all")
