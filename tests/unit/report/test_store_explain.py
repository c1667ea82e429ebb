"""The store of a folder of runs: used and unused stages, and the reason why a stage was computed again."""

import json
import shutil
from pathlib import Path

import pytest
from stand_ins.keyed_parts import LESSONS

from guessers.retrieval import bm25, counting
from sqa.cli.data import COLUMNS, listing
from sqa.files.store import Store
from sqa.pipeline import folder as folders
from sqa.pipeline import saving
from sqa.pipeline.config import run_from_mapping
from sqa.pipeline.engine import STAGES, run
from sqa.report import store_explain as stored


def toy(runs: Path, name: str = "bm25", **options: object) -> dict[str, object]:
    """Return the config of a guesser whose model has two pages, which suffice to compare keys."""
    model = runs / "toy"
    if not model.exists():
        counting.fit(LESSONS, 1).save(model)
    return {"name": name, "model": str(model), **options}


def make(runs: Path, name: str, guesser: dict | None = None, **changes: object) -> Path:
    dataset = {"name": "mini-es", "limit": 2}
    mapping = {"name": name, "dataset": dataset, "translator": "fixed", "guesser": guesser or toy(runs)}
    config = run_from_mapping(mapping | {"buzzer": "oracle", "metrics": ["ew"]} | changes)
    return saving.save(run(config, Store(runs), progress=False), runs)


def parts(folder: Path) -> dict[str, set[str]]:
    by_stage: dict[str, set[str]] = {}
    for reason in stored.explain(folder):
        by_stage.setdefault(reason.stage, set()).add(reason.part)
    return by_stage


def test_stored_stages_name_their_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path, "a")
    make(tmp_path, "b", metrics=["ew", "accuracy"])
    held = {(stage.stage, stage.runs) for stage in stored.holdings(tmp_path)}
    both = {(stage, ("a", "b")) for stage in ("questions", "translate", "guess", "buzz")}
    assert held == both | {("score", ("a",)), ("score", ("b",))}
    for stage in stored.holdings(tmp_path):
        assert stage.size > 100 and (stage.blocks > 0) == (stage.stage != "questions")
    listing(tmp_path)
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split("\t") == list(COLUMNS) and len(rows) == 6


def test_prune_removes_unused_stages(tmp_path: Path) -> None:
    make(tmp_path, "a")
    shutil.rmtree(make(tmp_path, "b", toy(tmp_path, "tfidf"), dataset={"name": "mini-es", "limit": 1}))
    assert sorted(stage.stage for stage in stored.prune(tmp_path)) == sorted(["questions", *STAGES])
    assert not list(stored.prune(tmp_path)) and {stage.runs for stage in stored.holdings(tmp_path)} == {("a",)}
    folders.read(tmp_path / "a").open()  # the run is still complete


def test_changed_key_is_shown_with_both_values(tmp_path: Path) -> None:
    make(tmp_path, "a")
    changed = make(tmp_path, "b", toy(tmp_path, b=0.5))
    [reason] = [reason for reason in stored.explain(changed) if reason.stage == "guess"]
    assert (reason.part, reason.now) == ("guesser.b", "0.5") and float(reason.then) == bm25.Bm25Config().b
    assert parts(changed)["buzz"] == {"input"} and parts(changed)["translate"] == {"nothing to compare with"}


def test_changed_data_weights_and_code_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guesser = toy(tmp_path)
    make(tmp_path, "a", guesser)
    fewer = parts(make(tmp_path, "a", guesser, dataset={"name": "mini-es", "limit": 1}))
    assert fewer["guess"] >= {"questions", "dataset.limit"}
    assert parts(make(tmp_path, "a", toy(tmp_path, "tfidf")))["guess"] >= {"guesser.name"}
    file = tmp_path / "toy" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()), indent=2))
    assert parts(make(tmp_path, "a", guesser))["guess"] == {"weights of guesser.model"}
    monkeypatch.setattr(counting, "VERSION", 6, raising=False)
    monkeypatch.setattr(bm25, "counting", counting, raising=False)  # simulates an import
    monkeypatch.setattr(bm25.Bm25Guesser, "fingerprint", lambda self: "edited")
    assert parts(make(tmp_path, "a", guesser))["guess"] == {"its code"}
    monkeypatch.setattr(bm25.Bm25Guesser, "fingerprint", lambda self: "edited again")
    monkeypatch.setattr(counting, "VERSION", 7)
    assert parts(make(tmp_path, "a", guesser))["guess"] == {"VERSION of guessers.retrieval.counting"}


def test_changed_user_code_is_named(tmp_path: Path) -> None:
    own, words = tmp_path / "own.py", tmp_path / "words.txt"
    code = """
from pathlib import Path
class Shout:
    def translate(self, source):
        for word in source:
            yield word.upper()
    def fingerprint(self):
        return Path(FILE).read_text()
""".replace("FILE", repr(str(words)))

    def again(text: str, said: str) -> list[tuple[str, str, str]]:
        own.write_text(text)
        words.write_text(said)
        run_folder = make(tmp_path, "a", translator=f"{own}:Shout")
        return [reason[3:] for reason in stored.explain(run_folder) if reason.stage == "translate"]

    again(code, "one")
    [(part, now, then)] = again(code.replace("upper", "lower"), "one")
    assert part.startswith("code of") and "own" in part and now != then
    assert again(code.replace("upper", "lower"), "two") == [("fingerprint() of own.py:Shout", "two", "one")]
