"""Dependencies point inwards, and importing is quick: read from the source text and from a fresh interpreter."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqa.core.paths import ROOT

OUTER = {"smt", "guessers", "buzzers"}
HEAVY = {"torch", "transformers", "tensorflow", "numba"}


def imported(path: Path) -> Iterator[str]:
    """Every module a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("path", files("sqa"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_knows_no_concrete_model(path: Path) -> None:
    roots = {name.partition(".")[0] for name in imported(path)}
    assert not roots & (OUTER | HEAVY | {"experiments"})


@pytest.mark.parametrize("package", sorted(OUTER))
def test_outer_packages_know_only_themselves_and_the_core(package: str) -> None:
    for path in files(package):
        roots = {name.partition(".")[0] for name in imported(path)}
        assert not roots & ((OUTER | {"experiments"}) - {package}), path


def test_the_core_does_not_import_protocols_or_the_board() -> None:
    for path in files("sqa"):
        if not {"protocols", "board", "cli"} & set(path.parts):  # which joins all parts
            assert not any(name.startswith(("sqa.protocols", "sqa.board")) for name in imported(path)), path


def test_only_the_trace_names_its_columns() -> None:
    for path in files("sqa"):
        if path.name != "trace.py":
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            strings = {node.value for node in nodes if isinstance(node, ast.Constant)}
            assert "question_id" not in strings, path


def test_importing_the_core_loads_nothing_heavy() -> None:
    modules = [str(path.relative_to(ROOT).with_suffix("")).replace("/", ".") for path in files("sqa")]
    modules = [name.removesuffix(".__init__") for name in modules]
    code = f"import sys, {', '.join(modules)}; print(sorted({HEAVY | OUTER!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_import_sqa_takes_less_than_half_a_second() -> None:
    code = "import time; start = time.process_time(); import sqa; print(time.process_time() - start)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(found.stdout) < 0.5  # of processor time: a busy machine is no failure
