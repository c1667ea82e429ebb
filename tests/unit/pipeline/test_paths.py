"""Relative paths in a config are looked up in its folder, then in the current folder."""

from pathlib import Path

import pytest
from refusals import refused
from tables import tables_of

from sqa.core import ConfigError, DataError, beside
from sqa.pipeline import Parts, load_run

TABLES = tables_of(__file__)

PARTS = TABLES["parts"]


def value_of(config, key):
    """Return the value of a dotted key as text."""
    for name in key.split("."):
        config = getattr(getattr(config, "options", config), name)
    return str(config)


@pytest.mark.parametrize("text", PARTS, ids=lambda text: f"{PARTS[text]}-{text[9:20]}")
def test_path_in_the_config_folder_is_found_first(tmp_path, monkeypatch, text):
    home = tmp_path / "home"
    (home / "in" / "model").mkdir(parents=True)
    for name in ("q.jsonl", "in/q.jsonl", "in/curve.json"):
        (home / name).write_text("")
    (home / "c.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sqa.metrics.problems", lambda names, where="metrics": [])
    assert "home/" in value_of(load_run(Path("home/c.yaml")), PARTS[text]).replace("./", "")


def test_current_folder_is_searched_second(tmp_path, monkeypatch):
    for folder in ("", "home/"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "both.txt").write_text("")
    (tmp_path / "here.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    home, absolute = Path("home"), str(tmp_path / "here.txt")
    names = ["both.txt", "here.txt", "neither.txt", absolute, "reference", "x" * 5000 + "/a", "a\0.txt"]
    assert [beside(name, home) for name in names] == ["home/both.txt", *names[1:]]
    assert beside("both.txt", None) == "both.txt"


def test_bundled_name_is_not_a_path(tmp_path, monkeypatch):
    """A folder with that name must be given as `./bm25`."""
    for name in ("bm25", "mini-es", "reference"):
        (tmp_path / name).mkdir()
    (tmp_path / "c.yaml").write_text("dataset: mini-es\ntranslator: {name: fixed, text: reference}\nguesser: bm25")
    config = load_run(tmp_path / "c.yaml")
    names = (config.dataset.name, config.translator.options.text, config.guesser.options.model)
    assert names == ("mini-es", "reference", "bm25")


@pytest.mark.parametrize(
    ("translator", "error"),
    [
        ("{name: recorded, file: no.log}", DataError),
        ("{name: fixed, text: no.txt}", DataError),
        ("{name: waitk, model: no/model, k: 1}", ConfigError),
    ],
)
def test_missing_file_error_lists_searched_places(tmp_path, translator, error):
    from sqa.core import TRANSLATORS

    (tmp_path / "c.yaml").write_text(f"dataset: mini-es\ntranslator: {translator}")
    config = load_run(tmp_path / "c.yaml")
    refused(
        error,
        "looked up in the config's folder, then in the current folder",
        Parts().component,
        TRANSLATORS,
        config.translator,
    )
