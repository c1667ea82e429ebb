"""Every notebook is short, defines nothing, uses only the public API, and prints its stored outputs."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pandas
import pytest
from needs import require

from sqa.core import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 150_000  # maximum number of characters of a notebook, including outputs
MACHINE = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|work|mnt|opt|var|Users|private)/|[A-Z]:\\\\|site-packages")

SLOW = ("ablation_over_k", "bleu_and_wins", "reproduce_figures")  # they run ablations, so only with SQA_DOCS=1

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    results = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in results if cell["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_notebooks_exist() -> None:
    others = {"ablation_over_k", "bleu_and_wins", "one_question", "reproduce_figures", "stepwise_errors"}
    assert {path.stem for path in NOTEBOOKS} == {"your_own_system", *others}


@every_notebook
def test_notebook_is_short_and_defines_nothing(path: Path) -> None:
    code = cells(path, "code")
    assert len(code) + len(cells(path, "markdown")) <= 12
    assert "import sqa\n" in "".join(source(cell) + "\n" for cell in code)
    for cell in code:
        assert not re.search(r"(from|import) (sqa\.|smt|guessers|buzzers|experiments)", source(cell))
        assert len(source(cell).splitlines()) <= 12
        assert not re.search(r"^\s*(def |class |async def |%|!)", source(cell), re.MULTILINE)
        assert "lambda" not in source(cell)
        assert all(len(line) <= 130 for line in source(cell).splitlines())


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
    """Return one store for all notebooks, so that each translation is computed once."""
    return tmp_path_factory.mktemp("runs")


@every_notebook
def test_notebook_prints_its_stored_outputs(
    path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from matplotlib import pyplot

    if any("pbmt" in source(cell) for cell in cells(path, "code")):
        require("statistical")
    if path.stem in SLOW:
        require("SQA_DOCS")
    monkeypatch.setenv("SQA_RUNS", str(runs))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.syspath_prepend(path.parent)  # Jupyter can import modules from the notebook's folder
    names: dict[str, object] = {}
    with pandas.option_context("display.max_columns", 20):  # the default in Jupyter
        for cell in cells(path, "code"):
            value = executed(source(cell), f"{path.name}, {cell['id']}", names)
            assert capsys.readouterr().out + value == shown(cell), cell["id"]
    assert pyplot.get_fignums()
    pyplot.close("all")


def executed(code: str, name: str, names: dict[str, object]) -> str:
    """Execute a cell and return the repr of its last expression's value, or "" if a semicolon suppresses it."""
    tree = ast.parse(code)
    last = tree.body[-1]
    if code.endswith(";") or not isinstance(last, ast.Expr):
        exec(compile(code, name, "exec"), names)
        return ""
    exec(compile(ast.Module(tree.body[:-1], []), name, "exec"), names)
    value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    return "" if value is None else repr(value)


def shown(cell: dict[str, Any]) -> str:
    """Return the stored text output of a cell."""
    outputs = [output.get("text", output.get("data", {}).get("text/plain", "")) for output in cell["outputs"]]
    texts = ["".join(text) for output, text in zip(cell["outputs"], outputs, strict=True) if not is_picture(output)]
    return "".join(texts)


def is_picture(output: dict[str, Any]) -> bool:
    return "image/png" in output.get("data", {})
