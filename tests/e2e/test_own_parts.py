"""Parts in a user's file, named `file.py:build` in configs and on the command line."""

import pickle
from pathlib import Path

import pytest
from outcome import process
from refusals import refused
from tables import tables_of

from sqa.cli.config_keys import keys_of
from sqa.core import ConfigError
from sqa.files import Store
from sqa.pipeline import run, run_from_mapping, to_mapping

TABLES = tables_of(__file__)

PARTS = TABLES["parts"]
CONFIG = TABLES["config"]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a folder with a config and its parts."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine.py").write_text(PARTS, encoding="utf-8")
    (folder / "helper.py").write_text("PAGE = 'Peru'\n", encoding="utf-8")
    (folder / "mine.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


def test_command_runs_own_parts_from_any_folder(mine: Path) -> None:
    """The file is found in the config's folder, and the run's config.yaml is accepted from any folder."""
    elsewhere = mine.parent / "elsewhere"
    elsewhere.mkdir()
    runs = mine.parent / "runs"
    done = process("run", "--runs", str(runs), str(mine / "mine.yaml"), cwd=elsewhere)
    assert done.code == 0, done.err
    assert "translator 'mine.py:build' has no fingerprint(); store keys cover only its source" in done.err
    rows = {line.split("\t")[0]: line.split("\t") for line in done.out.splitlines()}
    assert rows["words"][5] == rows["last"][5] == "words"
    assert "|source:" in rows["words"][6]
    before = (runs / "mine" / "report.tsv").read_bytes()
    again = process("run", "--runs", str(runs), str(runs / "mine" / "config.yaml"), "--limit", "2", cwd=elsewhere)
    assert again.code == 0 and (runs / "mine" / "report.tsv").read_bytes() == before


SAME = TABLES["same"]


def test_dataclass_fields_are_the_keys_of_a_part(mine: Path) -> None:
    (mine / "mine.py").write_text(SAME, encoding="utf-8")
    base = {"name": "x", "dataset": {"name": "mini-es", "limit": 2}, "translator": "fixed", "metrics": ["accuracy"]}

    def guessed(**keys: object) -> tuple[str, float, int]:
        config = run_from_mapping({**base, "guesser": {"name": "mine.py:Same", **keys}}, mine)
        made = run(config, Store(mine / "runs"), progress=False)
        return (*made.traces[0].guesses[-1][0], made.made["guess"])  # type: ignore[index]

    assert [guessed(page="Peru") for _ in range(2)] == [("Peru", 0.5, 1), ("Peru", 0.5, 0)]
    assert guessed(page="Spain", score=1.0) == ("Spain", 1.0, 1)
    (mine / "mine.py").write_text(SAME.replace("[(self.page, self.score)]", "[(self.page, 2.0)]"), encoding="utf-8")
    assert guessed(page="Spain", score=1.0) == ("Spain", 2.0, 1)
    assert [(key, default, meaning) for key, _, default, meaning in keys_of("guesser", f"{mine}/mine.py:Same")] == [
        ("page", "required", ""),
        ("score", "0.5", "of every guess"),
    ]
    named = {"name": f"{mine}/mine.py:Same", "page": "Spain", "score": 1.0}
    back = pickle.loads(pickle.dumps(run_from_mapping({**base, "guesser": named})))
    assert to_mapping(back)["guesser"] == named
    refused(ConfigError, "guesser.pagee: unknown, did you mean 'page'", guessed, pagee="Peru")
