"""Names resolve lazily to build functions whose annotation names a config class."""

from dataclasses import fields, is_dataclass

import pytest
from refusals import refused
from tables import tables_of

from sqa.core import BUZZERS, GUESSERS, TRANSLATORS, ConfigError, NoKeys, Registry, SqaError, did_you_mean
from sqa.core.paths import located
from sqa.pipeline import ComponentConfig, Parts

TABLES = tables_of(__file__)

ALL = [(registry, name) for registry in (TRANSLATORS, GUESSERS, BUZZERS) for name in registry.names()]


@pytest.mark.parametrize(("registry", "name"), ALL, ids=lambda value: value if isinstance(value, str) else value.kind)
def test_every_registered_component_has_a_frozen_config(registry: Registry, name: str) -> None:
    cls = registry.config_class(name)
    assert is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "name" not in {f.name for f in fields(cls)}  # reserved key of the run config


def test_errors_suggest_similar_name_or_missing_package() -> None:
    refused(ConfigError, "'bm52', did you mean 'bm25'; known: bert, bm25, elasticsearch, ", GUESSERS.target, "bm52")
    assert did_you_mean("zzz", ["waitk", "fixed"]) == ""
    registry = Registry("translator", {"x": "package_that_is_not_there.module:build"})
    refused(ConfigError, "translator 'x' needs the Python package package_that_is_not_there,", registry.resolve, "x")


def test_user_component_needs_no_registration() -> None:
    own_class = TRANSLATORS.config_class("doubles:build_translator")
    assert own_class.__qualname__ == "EchoConfig" and own_class is TRANSLATORS.config_class("doubles:build_translator")
    built = TRANSLATORS.build("doubles:build_translator", own_class(k=3))
    assert list(built.translate(iter("a b c d".split()))) == ["a", "b", "c", "d"] and built.own_part.config.k == 3


def test_file_in_the_config_folder_has_priority(tmp_path, monkeypatch):
    config, current = tmp_path / "config", tmp_path / "current"
    for folder in (config, current):
        folder.mkdir()
        (folder / "mine.py").touch()
    monkeypatch.chdir(current)
    assert located("mine.py:build", config) == f"{config / 'mine.py'}:build"
    (config / "mine.py").unlink()
    assert located("mine.py:build", config) == located("mine.py:build") == f"{current / 'mine.py'}:build"


@pytest.mark.parametrize(("source", "expected"), TABLES["faults_of_user_components_are_reported"])
def test_faults_of_user_components_are_reported(tmp_path, monkeypatch, capsys, source, expected):
    (tmp_path / "mine.py").write_text(f"{source}\n", encoding="utf-8")
    (tmp_path / "words.py").touch()
    monkeypatch.chdir(tmp_path)
    if expected:
        refused(SqaError, expected, Parts().component, TRANSLATORS, ComponentConfig("mine.py:build", NoKeys()))
    else:
        TRANSLATORS.build("mine.py:build", NoKeys())
        assert "translator 'mine.py:build' has no fingerprint()" in capsys.readouterr().err


def test_identity_does_not_depend_on_the_folder() -> None:
    assert GUESSERS.identity("bm25") == "bm25" and GUESSERS.identity("/somewhere/mine.py:Mine") == "mine.py:Mine"


@pytest.mark.parametrize("name", ["os:environ", "os:path", "os:getcwd", "builtins:dict", ":x", "..:x"])
def test_invalid_build_function_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    with pytest.raises(ConfigError) as raised:
        TRANSLATORS.config_class(name)
    assert name in str(raised.value) and "hunter2" not in str(raised.value) and "\n" not in str(raised.value)
