"""Names resolve lazily, to build functions whose annotation names a config class."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest
from doubles import EchoConfig, EchoTranslator

from sqa.core.errors import ConfigError
from sqa.core.registry import BUZZERS, GUESSERS, TRANSLATORS, Registry, did_you_mean

ALL = [(registry, name) for registry in (TRANSLATORS, GUESSERS, BUZZERS) for name in registry.names()]


@pytest.mark.parametrize(("registry", "name"), ALL, ids=lambda value: value if isinstance(value, str) else value.kind)
def test_every_registered_component_has_a_frozen_config(registry: Registry, name: str) -> None:
    cls = registry.config_class(name)
    assert is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "name" not in {f.name for f in fields(cls)}  # the run config's own key


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(
        ConfigError, match="unknown guesser 'bm52', did you mean 'bm25'; known: bert, bm25, elasticsearch, gru"
    ):
        GUESSERS.target("bm52")


def test_your_own_component_is_its_own_entry() -> None:
    assert TRANSLATORS.config_class("doubles:build_translator") is EchoConfig
    built = TRANSLATORS.build("doubles:build_translator", EchoConfig(k=3))
    assert isinstance(built, EchoTranslator) and built.config.k == 3


def test_a_missing_package_is_named() -> None:
    registry = Registry("translator", {"x": "package_that_is_not_there.module:build"})
    with pytest.raises(ConfigError, match="translator 'x' needs the Python package 'package_that_is_not_there'"):
        registry.resolve("x")


def test_nothing_near_is_not_suggested() -> None:
    assert did_you_mean("zzz", ["waitk", "fixed"]) == ""
