"""Names resolve lazily, to build functions whose annotation names a config class."""

from dataclasses import fields, is_dataclass

import pytest
from doubles import EchoConfig
from refusals import refused

from sqa.core.errors import ConfigError, SqaError
from sqa.core.own import located
from sqa.core.registry import BUZZERS, GUESSERS, TRANSLATORS, NoKeys, Registry, did_you_mean
from sqa.pipeline.config import ComponentConfig
from sqa.pipeline.engine import Parts

ALL = [(registry, name) for registry in (TRANSLATORS, GUESSERS, BUZZERS) for name in registry.names()]


@pytest.mark.parametrize(("registry", "name"), ALL, ids=lambda value: value if isinstance(value, str) else value.kind)
def test_every_registered_component_has_a_frozen_config(registry: Registry, name: str) -> None:
    cls = registry.config_class(name)
    assert is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "name" not in {f.name for f in fields(cls)}  # the run config's own key


def test_an_unknown_name_gets_the_nearest_and_a_missing_package_is_named() -> None:
    refused(ConfigError, "'bm52', did you mean 'bm25'; known: bert, bm25, e5, ", GUESSERS.target, "bm52")
    assert did_you_mean("zzz", ["waitk", "fixed"]) == ""
    registry = Registry("translator", {"x": "package_that_is_not_there.module:build"})
    refused(ConfigError, "translator 'x' needs the Python package package_that_is_not_there,", registry.resolve, "x")


def test_your_own_component_is_its_own_entry() -> None:
    """It is executed apart from what this process has imported; a config of either is a config of both."""
    own_class = TRANSLATORS.config_class("doubles:build_translator")
    assert own_class.__qualname__ == "EchoConfig" and own_class is TRANSLATORS.config_class("doubles:build_translator")
    for config in (EchoConfig(k=3), own_class(k=3)):
        built = TRANSLATORS.build("doubles:build_translator", config)
        assert list(built.translate(iter("a b c d".split()))) == ["a", "b", "c", "d"] and built.own_part.config.k == 3


def test_a_file_beside_the_config_comes_before_one_in_the_current_folder(tmp_path, monkeypatch):
    config, current = tmp_path / "config", tmp_path / "current"
    for folder in (config, current):
        folder.mkdir()
        (folder / "mine.py").touch()
    monkeypatch.chdir(current)
    assert located("mine.py:build", config) == f"{config / 'mine.py'}:build"
    (config / "mine.py").unlink()
    assert located("mine.py:build", config) == located("mine.py:build") == f"{current / 'mine.py'}:build"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from wrds import X", "imports 'wrds', neither installed nor a file beside mine.py, did you mean 'words'"),
        ("def build():\n    open('none.txt')", r"translator 'mine.py:build': \[Errno 2\] .*'none.txt'"),
        ("def build():\n    return open", "made a builtin_function_or_method, which has no translate$"),
        ("class build:\n    translate = 0", ""),
    ],
)
def test_what_a_part_of_your_own_lacks_is_named(tmp_path, monkeypatch, capsys, source, expected):
    (tmp_path / "mine.py").write_text(f"{source}\n", encoding="utf-8")
    (tmp_path / "words.py").touch()
    monkeypatch.chdir(tmp_path)
    if expected:
        refused(SqaError, expected, Parts().component, TRANSLATORS, ComponentConfig("mine.py:build", NoKeys()))
    else:
        TRANSLATORS.build("mine.py:build", NoKeys())
        assert "translator 'mine.py:build' has no fingerprint()" in capsys.readouterr().err


FIRST = """
translator: waitk=smt.neural prefix=smt.prefix causal-lm=smt.lm.translator command=smt.command
translator: pretrained=smt.pretrained ctranslate2=smt.ctranslate pbmt=smt.statistical simuleval=smt.simuleval_agent
translator: simuleval_service=smt.simuleval_service recorded=smt.recorded fixed=smt.fixed
guesser: bert=guessers.bert bm25=guessers.bm25 tfidf=guessers.tfidf gru=guessers.gru elasticsearch=guessers.elastic
guesser: llm=guessers.llm e5=guessers.e5.guesser
buzzer: threshold=buzzers.threshold logistic=buzzers.logistic mlp=buzzers.mlp recurrent=buzzers.recurrent
buzzer: oracle=buzzers.oracle
"""
KEYED = [  # what stores filled by version 0.1.0 are keyed by: kind, name, module of `build`
    (kind, *part.split("="))
    for kind, parts in (line.split(": ") for line in FIRST.strip().splitlines())
    for part in parts.split()
]


@pytest.mark.parametrize("registry", [TRANSLATORS, GUESSERS, BUZZERS], ids=lambda registry: registry.kind)
def test_store_keys_outlive_a_move_of_the_code(registry: Registry) -> None:
    """By its name, its place of today or its first place, a part is the same part."""
    assert set(registry.keyed) <= set(registry.entries)  # an old place without a new one is a part that was lost
    for name, first in ((name, f"{module}:build") for kind, name, module in KEYED if kind == registry.kind):
        for written in (name, registry.entries[name], first):
            assert registry.identity(written) == first
            assert registry.target(written) == registry.entries[name]
    assert registry.identity("mine:build") == registry.target("mine:build") == "mine:build"


@pytest.mark.parametrize("name", ["os:environ", "os:path", "os:getcwd", "builtins:dict", ":x", "..:x"])
def test_what_is_no_build_function_is_refused_and_never_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    with pytest.raises(ConfigError) as raised:
        TRANSLATORS.config_class(name)
    assert name in str(raised.value) and "hunter2" not in str(raised.value) and "\n" not in str(raised.value)
