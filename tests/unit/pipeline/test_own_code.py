"""What a part of one's own loads decides its store key, however it is loaded: nothing stale, nothing made twice."""

import importlib
import linecache
import pickle
import queue
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from doubles import write_questions
from own_layouts import Project, played, project
from refusals import refused

from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.own import worlds
from sqa.core.own.code import Code
from sqa.core.registry import GUESSERS, NoKeys
from sqa.metrics.own_metrics import own_metric
from sqa.pipeline.config import ComponentConfig
from sqa.pipeline.folder import read
from sqa.pipeline.paired import compare
from sqa.pipeline.parts import Parts
from sqa.pipeline.saving import save

WAYS = {
    "a package's file imports a helper beside the package": [
        ("as", "pk.inner", False, False),
        ("as", "helper", False, False),
    ],
    "called like a module of the standard library": [("as", "sched", False, False)],
    "the same late": [("as", "sched", True, False)],
    "importlib": [("importlib", "helper", False, False)],
    "__import__": [("__import__", "helper", False, False)],
    "sys.path.insert": [("as", "helper", False, True)],
    "not registered": [("spec", "helper", False, False)],
    "executed": [("exec", "helper", False, False)],
    "late": [("as", "pk.inner", True, False), ("importlib", "helper", True, False)],
    "late, from a folder put into sys.path late": [("from", "helper", True, True)],
    "late, not registered": [("spec", "helper", True, False)],
    "a package without __init__": [("from", "space.inner", False, False)],
}


def check(made: Project, store: Path, module: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the same, an edit, the same again, and back."""
    monkeypatch.setattr(sys, "path", [*made.path, *sys.path])
    first, blocks = made.run(store)
    assert blocks == 1 and made.run(store) == (first, 0)
    word = made.modules[module].read_text(encoding="utf-8").partition('WORD = "')[2].split('"')[0]
    made.edit(module, word[:-1] + "z")  # of the same size, within the same second
    edited = first.replace(word, word[:-1] + "z")
    assert made.run(store) == (edited, 1) and made.run(store) == (edited, 0)
    made.edit(module, word)
    assert made.run(store) == (first, 0)
    files = {name: str(getattr(loaded, "__file__", "")) for name, loaded in sys.modules.items()}
    assert not [name for name, file in files.items() if file.startswith(str(made.folder))]


@pytest.mark.parametrize("way", WAYS)
def test_an_edited_helper_is_never_answered_from_the_store(tmp_path, way, monkeypatch):
    """Though the part says that it is always the same."""
    monkeypatch.setitem(sys.modules, "sched", ModuleType("sched"))  # Python's, loaded by some library
    made = project(tmp_path / "project", WAYS[way], constant=True)
    check(made, tmp_path / "runs", len(WAYS[way]), monkeypatch)


def test_a_module_that_imports_its_own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = project(tmp_path / "project", [("from", "mypk.words", False, False)], module="mypk.m")
    check(made, tmp_path / "runs", 1, monkeypatch)


def test_neighbours_that_share_a_name_do_not_mix(tmp_path: Path) -> None:
    """Two projects in one process, with files of the same names."""
    links = [("from", "helper", False, False), ("importlib", "pk.inner", True, False)]
    one, other = (project(tmp_path / name, links) for name in ("one", "other"))
    store = tmp_path / "runs"
    assert one.run(store) == ("root-aa word-1a word-2a", 1) and other.run(store) == ("root-aa word-1a word-2a", 0)
    other.edit(1, "word-1b")
    assert other.run(store) == ("root-aa word-1b word-2a", 1)
    assert one.run(store) == ("root-aa word-1a word-2a", 0)


@pytest.mark.parametrize("how", ["insert(0, ", "insert(1, ", "append("])
def test_a_late_import_is_looked_up_again_before_results_are_taken(tmp_path: Path, how: str) -> None:
    """A file beside the part is before a folder that is behind it, and behind one that is before it."""
    made, store = project(tmp_path / "project", [("as", "helper", True, True)]), tmp_path / "runs"
    text = made.modules[0].read_text(encoding="utf-8").replace("insert(0, ", how)
    made.modules[0].write_text(text, encoding="utf-8")
    assert [made.run(store) for _ in range(2)] == [("root-aa word-1a", 1), ("root-aa word-1a", 0)]
    (tmp_path / "project" / "helper.py").write_text("def page():\n    return 'beside'\n", encoding="utf-8")
    first = how == "insert(0, "
    assert made.run(store) == (("root-aa word-1a", 0) if first else ("root-aa beside", 1))
    made.modules[0].write_text(text.replace("lib0", "lib9"), encoding="utf-8")
    assert made.run(store) == ("root-aa beside", 1)
    (tmp_path / "project" / "lib9").mkdir()
    (tmp_path / "project" / "lib9" / "helper.py").write_text("def page():\n    return 'before'\n", encoding="utf-8")
    assert made.run(store) == (("root-aa before", 1) if first else ("root-aa beside", 0))


CHOOSES = """
from dataclasses import dataclass
from importlib import import_module

@dataclass(frozen=True)
class Config:
    page: str

class Mine:
    def __init__(self, config):
        assert isinstance(config, Config)
        self.page = config.page
    def guess(self, texts, n):
        return [[(import_module(self.page).PAGE, 1)] for _ in texts]
    def fingerprint(self):
        return "always the same"

def build(config: Config):
    return Mine(config)
"""


def test_two_configs_of_one_part_load_what_they_load(tmp_path: Path) -> None:
    """What the one loads late is nothing to the other; a constant fingerprint does not hide another config."""
    (tmp_path / "mine.py").write_text(CHOOSES, encoding="utf-8")
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(f"PAGE = '{name}'\n", encoding="utf-8")
    parts = Parts()

    def chosen(page: str) -> tuple[str, int]:
        result = played(tmp_path, tmp_path / "runs", parts, guesser={"name": "mine.py:build", "page": page})
        return result.traces[0].guesses[-1][0].page, result.made["guess"]  # type: ignore[index]

    assert [chosen(page) for page in ("one", "two", "one", "two")] == [("one", 1), ("two", 1), ("one", 0), ("two", 0)]
    (tmp_path / "two.py").write_text("PAGE = 'TWO'\n", encoding="utf-8")
    assert [chosen(page) for page in ("one", "two", "two")] == [("one", 0), ("TWO", 1), ("TWO", 0)]


METRIC = """
from sqa.metrics.quality.text_metric import MeanOfSegments

class Mine:
    name, label, unit, digits, kind, higher_is_better = "mine", "Mine", "words", 1, "lag", True
    def signature(self):
        return "mine"
    def stats(self, trace):
        import helper
        return [helper.VALUE, 1.0]
    def score(self, stats):
        return stats[0] / stats[1]

def score_of(segments):
    import helper
    return [helper.VALUE for _ in segments]

def texts():
    return MeanOfSegments("mine-texts", "mine", "always the same", score_of)

class Policy:
    start = 1
    def show(self, shown, translations, ended):
        import helper
        return translations[-1] if ended else translations[-1][:helper.VALUE]
"""


def test_metrics_and_policies_load_late_too(tmp_path: Path) -> None:
    """Values of an edited helper are computed anew, and not compared with those before; unchanged ones are found."""
    (tmp_path / "mine.py").write_text(METRIC, encoding="utf-8")
    keys = {
        "translator": {"name": "command", "command": ["cat"], "policy": {"name": "mine.py:Policy"}},
        "metrics": ["mine.py:Mine"],
        "quality": [{"mine.py:texts": {}}],
    }
    parts, results = Parts(), []
    for value in (1, 1, 2, 1):
        (tmp_path / "helper.py").write_text(f"VALUE = {value}\n", encoding="utf-8")
        result = played(tmp_path, tmp_path / "runs", parts, **keys)
        results.append(result)
        for name in ("mine", "mine-texts"):
            assert result.stats[name][:, 0].tolist() == [value, value]
        assert [emission.g for emission in result.traces[0].emissions][:value] == [1, 2][:value]
    assert [set(result.made.values()) for result in results] == [{1}, {0}, {1}, {0}]
    saved = [read(save(result, tmp_path / str(i))) for i, result in enumerate(results)]
    both = ["mine"]
    assert compare(saved[0], saved[3], 10, both)[0]
    with pytest.raises(NotComputable, match="mine: left out, signatures differ"):
        compare(saved[0], saved[2], 10, both)


def test_an_own_metric_scores_every_resample_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(METRIC, encoding="utf-8")
    rows = np.array([[3.0, 1.0], [1.0, 4.0], [6.0, 2.0]])
    assert own_metric(f"{tmp_path}/mine.py:Mine").score_many(rows).tolist() == [3.0, 0.25, 3.0]
    assert own_metric(f"{tmp_path}/mine.py:Mine").score_many(rows[1:]).tolist() == [0.25, 3.0]


EDITED = """
import importlib

class Mine:
    def guess(self, texts, n):
        import helper
        importlib.reload(helper)
        with open(helper.__file__, "a") as file:
            file.write("# more\\n")
        return [[("Peru", 1.0)] for _ in texts]
"""


def test_code_that_is_edited_while_it_is_at_work_is_refused(tmp_path: Path) -> None:
    """Two blocks by two versions of what is loaded late would be neither's results."""
    (tmp_path / "mine.py").write_text(EDITED, encoding="utf-8")
    (tmp_path / "helper.py").touch()
    write_questions(tmp_path / "questions.jsonl", 70)  # two blocks
    refused(DataError, r"helper was edited while", played, tmp_path, tmp_path / "runs", guesser="mine.py:Mine")


def test_what_the_process_has_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules, folders to search and finders: a notebook's own `helper` stays its own."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "helper.py").write_text("def page():\n    return 'theirs'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    helper = importlib.import_module("helper")
    monkeypatch.setitem(sys.modules, "sched", ModuleType("sched"))
    made = project(tmp_path / "project", [("as", "helper", True, False), ("as", "sched", False, False)])
    before = dict(sys.modules), list(sys.path), list(sys.meta_path), sys.dont_write_bytecode
    assert made.run(tmp_path / "runs") == ("root-aa word-1a word-2a", 1)
    assert (list(sys.path), list(sys.meta_path), sys.dont_write_bytecode) == before[1:]
    assert sys.modules["helper"] is helper and {name for name in before[0] if name not in sys.modules} == set()
    monkeypatch.delitem(sys.modules, "helper")


def test_a_part_of_no_file_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("of_no_file")
    exec("class Mine:\n    def guess(self, texts, n): return []\ndef build():\n    return Mine()", module.__dict__)
    monkeypatch.setitem(sys.modules, "of_no_file", module)
    refused(ConfigError, "of_no_file:build: has no source file", GUESSERS.build, "of_no_file:build", NoKeys())


def test_a_config_of_ones_own_goes_to_another_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CHOOSES, encoding="utf-8")
    target = f"{tmp_path / 'mine.py'}:build"
    config = ComponentConfig(target, GUESSERS.config_class(target)(page="one"))
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).options.page)"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(config), capture_output=True, check=True)
    assert done.stdout == b"one\n" and pickle.loads(pickle.dumps(config)) == config


def test_a_thread_waits_while_another_is_in_another_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """sys.modules is the process's: the modules of one part must not go while it is being built."""
    inside, second = threading.Event(), threading.Event()
    first, other = worlds.World(), worlds.World()
    first.modules["own_first"] = ModuleType("own_first")

    def enter_other() -> None:
        inside.wait()
        with other.running():
            second.set()

    thread = threading.Thread(target=enter_other)
    thread.start()
    with first.running():
        inside.set()
        assert not second.wait(0.2) and "own_first" in sys.modules
        with other.running():  # the same thread may
            pass
    assert second.wait(10) and "own_first" not in sys.modules
    thread.join()
    monkeypatch.setattr(worlds, "PATIENCE", 0.01)  # one that never leaves does not hold the others up for ever
    with first.running():
        late = threading.Thread(target=enter_other)
        late.start()
        late.join(10)
        assert not late.is_alive()


def test_a_thread_that_waits_for_another_leaves_its_world_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A translator and whoever pushes words to it take turns: each waits in a thread of its own."""
    monkeypatch.setattr(worlds, "PATIENCE", None)  # nobody is let in by the clock
    asked, answered, first, other = queue.SimpleQueue(), queue.SimpleQueue(), worlds.World(), worlds.World()
    first.modules["own_first"] = ModuleType("own_first")

    def answer() -> None:
        with other.running():
            answered.put(asked.get(timeout=10))

    thread = threading.Thread(target=answer, daemon=True)
    with first.running():
        thread.start()
        asked.put("own_first" in sys.modules)
        with worlds.waiting():
            assert answered.get(timeout=10) is True
        assert "own_first" in sys.modules
    thread.join()
    assert "own_first" not in sys.modules


def test_lines_that_are_shown_are_no_code_of_the_part(tmp_path):
    """Dask's profile of a worker, and tracebacks, read the files of whatever calls the part."""
    for name in ("mine", "caller", "helper"):
        (tmp_path / f"{name}.py").write_text("def build(config): ...\n", encoding="utf-8")
    code = Code.at(f"{tmp_path / 'mine.py'}:build")
    code.built()
    with code.running():
        assert linecache.getlines(str(tmp_path / "caller.py"))
        exec((tmp_path / "helper.py").read_text(encoding="utf-8"), {})
    assert [load.file for load in code.late] == ["helper.py"]


def test_what_a_library_looks_for_in_vain_is_no_code_of_the_part(tmp_path, monkeypatch):
    """It looks only when it is loaded for the first time; the part is the same whether others had loaded it before."""
    (tmp_path / "mine.py").write_text("import mimetypes\ntry:\n    import not_there\nexcept ImportError: pass\n")
    monkeypatch.delitem(sys.modules, "mimetypes", raising=False)
    first, again = (Code.at(f"{tmp_path / 'mine.py'}:build") for _ in range(2))
    assert "mimetypes" in sys.modules and "winreg" not in first.loads
    assert list(first.loads.values()) == list(again.loads.values()) and "not_there" in first.loads
