"""Several configs in one file: which one is meant, what it takes over, and what is said when it is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqa.core.errors import ConfigError
from sqa.core.paths import ROOT
from sqa.files.yaml_reader import is_config, name_of, read_yaml, split_entry
from sqa.run.config import load_run
from sqa.run.named import translator_from

TEXT = """
entries:
  small: {dataset: {name: mini-es, limit: 3}, translator: {name: waitk, model: es-en, k: 6}, seed: 0}
  large:
    like: small
    dataset: {limit: null}
  other: {like: large, name: mine, translator: {name: fixed, text: reference}}
  round: {like: about}
  about: {like: round}
  lost: {like: smal}
  none: 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_an_entry_is_a_config_of_its_own(file: Path) -> None:
    run = load_run(Path(f"{file}:small"))
    assert (run.name, run.dataset.limit, run.translator.options.k) == ("small", 3, 6)


def test_an_entry_like_another_has_its_keys_but_for_those_it_gives(file: Path) -> None:
    large = read_yaml(Path(f"{file}:large"))
    assert large == {
        "dataset": {"name": "mini-es", "limit": None},
        "translator": {"name": "waitk", "model": "es-en", "k": 6},
        "seed": 0,
    }
    other = load_run(Path(f"{file}:other"))
    assert other.name == "mine" and other.dataset.limit is None
    assert other.translator.name == "fixed"  # the whole component: no k, no model


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("", "holds several configs; say which, .*some.yaml:NAME with one of small, large"),
        (":smal", "no entry 'smal', did you mean 'small'"),
        (":round", "like: a circle, round -> about -> round"),
        (":lost", r"some\.yaml:lost like: no entry 'smal', did you mean 'small'"),
        (":none", "some.yaml:none: expected a mapping"),
    ],
)
def test_what_is_no_entry_is_said(file: Path, entry: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_yaml(Path(f"{file}{entry}"))


def test_a_file_of_one_config_has_no_entries(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("seed: 0\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="has no `entries`.* leave `:x` out"):
        read_yaml(tmp_path / "one.yaml:x")
    (tmp_path / "one.yaml").write_text("entries: {x: {}}\nseed: 0\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="seed: unknown; a file of entries has no other key"):
        read_yaml(tmp_path / "one.yaml:x")


def test_names_of_files_and_entries() -> None:
    assert split_entry(Path("a/b.yaml:c")) == (Path("a/b.yaml"), "c")
    assert split_entry(Path("a/b.yaml")) == (Path("a/b.yaml"), None)
    assert split_entry(Path("mine.py:build")) == (Path("mine.py:build"), None)
    assert name_of(Path("a/b.yaml:c")) == "c" and name_of(Path("a/b.yaml")) == "b"
    assert is_config("b.yml") and is_config("b.yaml:c") and not is_config("{name: waitk, k: 6}")


def test_a_translator_is_taken_from_an_entry() -> None:
    assert translator_from(str(ROOT / "configs" / "xqb.yaml:es_prefix_agree2"))
