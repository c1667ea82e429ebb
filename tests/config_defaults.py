"""The defaults of every config class of some packages, as text."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from recorded import RECORD

ELSEWHERE = {"simulstream", "omnisteval"}  # packages of environments of their own


def defaults(*packages: ModuleType) -> dict[str, dict[str, str]]:
    """Config class -> field -> its default."""
    classes: dict[str, dict[str, str]] = {}
    for package in packages:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__"):
                continue
            try:
                module = import_module(found.name)
            except ModuleNotFoundError as error:
                if error.name not in ELSEWHERE:
                    pytest.skip(f"needs {error.name}")
                continue
            for name, cls in vars(module).items():
                ours = inspect.isclass(cls) and dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__
                if ours and name.endswith(("Config", "Options")):
                    classes[f"{package.__name__} {name}"] = {
                        field.name: repr(field.default)
                        for field in dataclasses.fields(cls)
                        if field.default is not dataclasses.MISSING
                    }
    return classes


def check(path: Path, *packages: ModuleType) -> None:
    """Compare with the record; another default changes numbers of configs that do not name it: CHANGELOG.md says so."""
    actual = defaults(*packages)
    if os.environ.get(RECORD):
        path.write_text(json.dumps(actual, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    expected = json.loads(path.read_text("utf-8"))
    assert actual.keys() == expected.keys()
    for name, fields in actual.items():
        assert fields == expected[name], name
