"""Stored results of a user part depend on its code, so the results of an edited part are computed again."""

import importlib
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from own_layouts import played, write
from refusals import refused
from tables import tables_of

import sqa
from sqa.core import GUESSERS, ConfigError, NoKeys, NotComputable
from sqa.metrics.own_metrics import own_metric
from sqa.pipeline import read, run_from_mapping, save
from sqa.pipeline.paired import compare

TABLES = tables_of(__file__)

GUESSER = TABLES["guesser"]
WAYS = TABLES["ways"]
HOMES = TABLES["homes"]


def guessed(folder: Path, **keys: object) -> tuple[str, int]:
    """Return the guessed page and the number of blocks computed."""
    result = played(folder, guesser={"name": "mine.py:Mine", **keys})
    return result.traces[0].guesses[-1][0].page, result.made["guess"]  # type: ignore[index]


@pytest.mark.parametrize("way", WAYS)
def test_edited_helper_causes_recomputation(tmp_path: Path, way: str) -> None:
    module, file = HOMES[way]
    early, late, page = (text.format(module) for text in WAYS[way])
    write(tmp_path, mine=GUESSER.format(early=early, late=late, page=page))
    found = []
    for word in ("Peru", "Peru", "Iran", "Iran", "Peru"):
        write(tmp_path, **{file: f"PAGE = '{word}'\n"})
        found.append(guessed(tmp_path))
    assert found == [("Peru", 1), ("Peru", 0), ("Iran", 1), ("Iran", 0), ("Peru", 0)]


def test_importable_module_can_be_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    part = GUESSER.format(early="from .words import PAGE", late="pass", page="PAGE")
    write(tmp_path, **{"my_package/__init__": "", "my_package/words": "PAGE = 'Peru'\n", "my_package/parts": part})
    assert [guessed(tmp_path, name="my_package.parts:Mine") for _ in range(2)] == [("Peru", 1), ("Peru", 0)]
    write(tmp_path, **{"my_package/words": "PAGE = 'Iran'\n"})
    assert guessed(tmp_path, name="my_package.parts:Mine") == ("Iran", 1)


def test_stale_import_of_the_process_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook may have imported the helper before the edit."""
    monkeypatch.syspath_prepend(str(tmp_path))
    write(
        tmp_path, once="PAGE = 'Iran'\n", mine=GUESSER.format(early="from once import PAGE", late="pass", page="PAGE")
    )
    importlib.import_module("once")
    write(tmp_path, once="PAGE = 'Peru'\n")
    assert guessed(tmp_path) == ("Peru", 1)


def test_files_with_equal_names_stay_separate(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, mine=GUESSER.format(early="", late="pass", page=repr(name)))
    names = [f"{name}/mine.py:Mine" for name in ("one", "two", "one")]
    assert [guessed(tmp_path, name=name) for name in names] == [("one", 1), ("two", 1), ("one", 0)]


def test_helpers_with_equal_names_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, mine=GUESSER.format(early="import same_name", late="pass", page="'x'"), same_name="")
    guessed(tmp_path, name="one/mine.py:Mine")
    refused(
        ConfigError, "has already been imported as 'same_name'; rename one", guessed, tmp_path, name="two/mine.py:Mine"
    )


CHOOSES = TABLES["chooses"]


def test_config_can_be_sent_to_another_process(tmp_path: Path) -> None:
    write(tmp_path, mine=CHOOSES)
    part = {"name": f"{tmp_path}/mine.py:Mine", "page": "one"}
    config = run_from_mapping({"name": "x", "dataset": "mini-es", "translator": "fixed", "guesser": part})
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).guesser.options.page)"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(config), capture_output=True, check=True)
    assert done.stdout == b"one\n" and pickle.loads(pickle.dumps(config)) == config


METRIC = TABLES["metric"]


def test_edited_metrics_and_policies_are_recomputed(tmp_path: Path) -> None:
    """Values of edited code are recomputed, and are not compared with earlier values."""
    keys = {
        "translator": {"name": "command", "command": ["cat"], "policy": {"name": "mine.py:Policy"}},
        "metrics": ["mine.py:Mine"],
        "quality": [{"mine.py:texts": {}}],
    }
    write(tmp_path, mine=METRIC)
    results = []
    for value in (1, 1, 2, 1):
        write(tmp_path, metric_helper=f"VALUE = {value}\n")
        results.append(played(tmp_path, **keys))
        for name in ("mine", "mine-texts"):
            assert results[-1].stats[name][:, 0].tolist() == [value, value]
        assert [emission.g for emission in results[-1].traces[0].emissions][:value] == [1, 2][:value]
    assert [set(result.made.values()) for result in results] == [{1}, {0}, {1}, {0}]
    assert own_metric(f"{tmp_path}/mine.py:Mine").score_many(np.array([[3.0, 1.0], [1.0, 4.0]])).tolist() == [3.0, 0.25]
    saved = [read(save(result, tmp_path / str(i))) for i, result in enumerate(results)]
    assert compare(saved[0], saved[3], 10, ["mine"])[0]
    with pytest.raises(NotComputable, match="mine: left out, signatures differ"):
        compare(saved[0], saved[2], 10, ["mine"])


def test_part_without_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("of_no_file")
    exec("class Mine:\n    def guess(self, texts, n): return []", module.__dict__)
    monkeypatch.setitem(sys.modules, "of_no_file", module)
    refused(ConfigError, "of_no_file:Mine: has no source file", GUESSERS.build, "of_no_file:Mine", NoKeys())


def test_results_of_objects_are_never_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    class Shouts:
        def translate(self, source):
            yield from map(str.upper, source)

    config = {"dataset": {"name": "mini-es", "limit": 1}, "translator": "fixed", "metrics": ["bleu"]}
    made = sqa.run(config, translator=Shouts(), progress=False)
    assert made.traces[0].hypotheses[0].isupper() and made.metrics["bleu"] >= 0 and not list(tmp_path.iterdir())
