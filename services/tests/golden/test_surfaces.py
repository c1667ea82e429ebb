"""Each surface gives the same numbers, intervals and signatures for the same system and questions."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from outcome import process
from stand_ins.simuleval_command import simuleval, write_lines

import sqa
from sqa.core.paths import ROOT
from sqa.data.datasets import load_questions
from sqa.files.yaml_reader import dump_yaml

AGENT = ROOT / "services" / "tests" / "simuleval_copier.py"
OWN = """
class Copier:
    def translate(self, source):
        read = []
        for word in source:
            read.append(word)
            if len(read) >= 3:
                yield read[len(read) - 3]
        yield from read[-2:]
"""
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
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    show = "import sqa\nprint(sqa.run('run.yaml', runs='notebook', progress=False).intervals.to_csv(sep='\\t'))"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(show)])
    nbclient.NotebookClient(book, resources={"metadata": {"path": folder}}).execute()
    text = "".join(output.text for output in book.cells[0].outputs if output.get("name") == "stdout")
    return {row[0]: tuple(row[1:]) for row in (line.split("\t") for line in text.splitlines()[1:]) if len(row) > 1}


def agent(folder: Path) -> Rows:
    """Return the rows of a SimulEval agent that runs as a translator."""
    return command(folder, f'translator={{"name": "simuleval", "agent": "{AGENT}:W"}}')


def log(folder: Path) -> Rows:
    """Return the rows of the log that the command `simuleval` writes with the agent."""
    texts = [" ".join(words) for question in load_questions("mini-es", 3) for words in question.sentences]
    inputs = ("--source", write_lines(folder / "s", texts), "--target", write_lines(folder / "t", texts))
    simuleval("--agent", AGENT, *inputs, "--output", folder / "out")
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
            return f"{float(cell):.6f}"
        except ValueError:
            return cell

    return {name: tuple(map(shown, cells)) for name, cells in rows.items()}


@pytest.mark.parametrize("surface", [keys, python, experiment, notebook])
def test_surface_gives_the_rows_of_the_command(surface: Callable[[Path], Rows], folder: Path, expected: Rows) -> None:
    assert set(expected) == set(SIGNED) and numbers(surface(folder)) == numbers(expected)


@pytest.mark.needs("simul")
@pytest.mark.parametrize("surface", [agent, log])
def test_simuleval_gives_the_rows_of_the_command(surface: Callable[[Path], Rows], folder: Path, expected: Rows) -> None:
    assert numbers(surface(folder)) == numbers(expected)
