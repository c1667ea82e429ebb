"""Runs of shipped parts on a few bundled questions: words, guesses, buzzes, findings and scores equal recorded ones.

Other tests compare single parts with simpler code or with other programs. These tests detect any change of whole runs.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import require
from recorded import RECORD, Keep, recorded, same
from tables import tables_of

from sqa.core import ROOT
from sqa.diagnose.findings import findings_of, table
from sqa.files import Store
from sqa.metrics import all_names
from sqa.pipeline import open_run, run, run_from_mapping, saving

TABLES = tables_of(__file__)

RUNS = TABLES["runs"]  # language, translator, guesser, buzzer
LIMIT = 2


@pytest.fixture(scope="module")
def keep() -> Iterator[Keep]:
    """Yield a function that compares a text with the recorded text of the given name."""
    with recorded(Path(__file__)) as keep:
        yield keep


@pytest.mark.parametrize("name", RUNS)
def test_run_is_as_recorded(keep: Keep, tmp_path: Path, name: str) -> None:
    language, translator, guesser, buzzer = RUNS[name]
    if translator["name"] == "pbmt":
        require("statistical")
    if isinstance(guesser, dict):
        guesser = {**guesser, "name": f"{ROOT}/{guesser['name']}"}
    parts = {"translator": translator, "guesser": guesser, "buzzer": buzzer, "metrics": all_names()}
    config = run_from_mapping({"name": name, "dataset": {"name": f"mini-{language}", "limit": LIMIT}, **parts})
    result = run(config, Store(tmp_path), progress=False)
    folder = saving.save(result, tmp_path)
    keep(f"{name} scores", (folder / saving.REPORT).read_text("utf-8"))
    for trace in result.traces:
        steps = zip(trace.emissions, trace.guesses, trace.buzzes, strict=True)
        keep(
            f"{name} {trace.question.id}",
            "\n".join(
                f"{e.sentence} {e.g} {e.ended} -{e.erase} {e.token}\t{g[0].page if g else '-'} "
                f"{g[0].score if g else 0.0:.4f}\t{b.score:.4f} {b.buzz}"
                for e, g, b in steps
            ),
        )
    _, *findings = table(findings_of(open_run(folder))).to_tsv().splitlines()
    keep(f"{name} findings", "\n".join(findings))


@pytest.mark.parametrize(("old", "new", "equal"), TABLES["comparison_tolerates_one_unit_of_last_digit"])
def test_comparison_tolerates_one_unit_of_last_digit(old: str, new: str, equal: bool) -> None:
    assert same(old, new) == equal


def test_unrecorded_output_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RECORD, raising=False)
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "test_x.json").write_text('{"a": ["1.5", "words"]}', encoding="utf-8")
    with recorded(tmp_path / "test_x.py") as keep:
        keep("a", "words")
        for name, content in (("a", "others"), ("b", "words")):
            with pytest.raises(AssertionError, match="not recorded"):
                keep(name, content)
