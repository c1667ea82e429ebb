"""Each surface gives the same numbers, intervals and signatures for the same system and questions."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from outcome import process
from tables import tables_of

import sqa
from sqa.core import ROOT
from sqa.data.datasets import load_questions
from sqa.files import dump_yaml

TABLES = tables_of(__file__)

AGENT = ROOT / "services" / "tests" / "simuleval_copier.py"
OWN = TABLES["own"]
SIGNED = ("ew", "oracle-ew", "stable-ew", "accuracy", "mrr", "al", "laal", "dal", "bleu", "facts")
CONFIG = {
    "dataset": {"name": "mini-es", "limit": 3},
    "translator": "copier.py:Copier",
    "guesser": "bm25",
    "buzzer": {"name": "threshold", "signal": "margin", "threshold": 0.3},
    "metrics": list(SIGNED),
}
Rows = dict[str, tuple[str, ...]]  # metric -> value, low, high, n, unit, signature


def command(folder: Path, *words: str, config: str = "run.yaml") -> Rows:
    done = process("run", config, *words, cwd=folder)
    assert done.code == 0, done.err
    return {row[0]: tuple(row[1:]) for row in (line.split("\t") for line in done.out.splitlines()[1:])}


def keys(folder: Path) -> Rows:
    """Return the rows of a bare config whose other keys are set on the command line."""
    (folder / "bare.yaml").write_text("dataset: xqb-es\ntranslator: fixed\n", encoding="utf-8")
    return command(folder, *(f"{key}={json.dumps(CONFIG[key])}" for key in CONFIG), config="bare.yaml")


def python(folder: Path) -> Rows:
    return framed(sqa.run(folder / "run.yaml", runs=folder / "python", progress=False))


def framed(run: sqa.Run) -> Rows:
    return {row[0]: tuple(map(str, row[1:])) for row in run.intervals.itertuples()}


def experiment(folder: Path) -> Rows:
    parts = {"translators": [f"{folder}/copier.py:Copier"], "guessers": {"bm25": ("bm25", CONFIG["buzzer"])}}
    others = {"dataset": "mini-es", "limit": 3, "metrics": SIGNED, "runs": folder / "experiment"}
    [result] = sqa.Experiment(**parts, **others).run(progress=False)
    return framed(result.run)


def notebook(folder: Path) -> Rows:
    """Return the rows of code that runs as in a notebook's kernel: in an event loop, without a file."""
    show = "print(sqa.run('run.yaml', runs='notebook', progress=False).intervals.to_csv(sep='\\t', na_rep='nan'))"
    kernel = f"import asyncio, sqa\nasync def cell():\n    {show}\nasyncio.run(cell())"
    done = process(cwd=folder, code=kernel)
    assert done.code == 0, done.err
    return {row[0]: tuple(row[1:]) for row in (line.split("\t") for line in done.out.splitlines()[1:]) if len(row) > 1}


def agent(folder: Path) -> Rows:
    """Return the rows of a SimulEval agent that runs as a translator."""
    return command(folder, f'translator={{"name": "simuleval", "agent": "{AGENT}:W"}}')


def log(folder: Path) -> Rows:
    """Return the rows of the log that the command `simuleval` writes with the agent."""
    texts = [" ".join(words) for question in load_questions("mini-es", 3) for words in question.sentences]
    (folder / "s").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    words = ["--agent", AGENT, "--source", folder / "s", "--target", folder / "s", "--output", folder / "out"]
    subprocess.run([sys.executable, "-W", "ignore", "-m", "simuleval.cli", *words], cwd=folder, check=True, timeout=300)
    return command(folder, f'translator={{"name": "recorded", "file": "{folder}/out/instances.log"}}')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("surfaces")
    (folder / "copier.py").write_text(OWN, encoding="utf-8")
    (folder / "run.yaml").write_text(dump_yaml(CONFIG), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> Rows:
    return command(folder)


def numbers(rows: Rows) -> Rows:
    """Return the rows with their numbers to six decimals, as frames print more and fewer digits."""

    def shown(cell: str) -> str:
        try:
            return f"{float(cell.replace('n/a', 'nan')):.6f}"
        except ValueError:
            return cell

    return {name: tuple(map(shown, cells)) for name, cells in rows.items()}


@pytest.mark.parametrize("surface", [keys, python, experiment, notebook])
def test_surface_gives_the_rows_of_the_command(surface: Callable[[Path], Rows], folder: Path, expected: Rows) -> None:
    assert set(expected) >= set(SIGNED) and numbers(surface(folder)) == numbers(expected)


@pytest.mark.needs("simul")
@pytest.mark.parametrize("surface", [agent, log])
def test_simuleval_gives_the_rows_of_the_command(surface: Callable[[Path], Rows], folder: Path, expected: Rows) -> None:
    assert numbers(surface(folder)) == numbers(expected)
