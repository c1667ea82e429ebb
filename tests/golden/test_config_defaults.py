"""Defaults of configs equal the reference file, because changes affect users' results. `SQA_RECORD=1` updates it."""

import dataclasses
import inspect
import json
import os
import pkgutil
import warnings
from importlib import import_module
from pathlib import Path

from recorded import RECORD

from sqa.core.paths import PACKAGES

VECTORS = Path(__file__).with_name("vectors") / "config_defaults.json"


def defaults(package: str) -> dict[str, dict[str, str]]:
    """Return a dict that maps each config class of a package to the repr of each field's default.

    Import all modules of the package, except those that need an optional package that is not installed.
    """
    classes: dict[str, dict[str, str]] = {}
    for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        if found.name.endswith("__main__"):
            continue
        try:
            module = import_module(found.name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in PACKAGES:
                raise
            continue
        for name, cls in vars(module).items():
            ours = inspect.isclass(cls) and dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__
            if ours and name.endswith(("Config", "Options")):
                classes[f"{package} {name}"] = {
                    field.name: repr(field.default)
                    for field in dataclasses.fields(cls)
                    if field.default is not dataclasses.MISSING
                }
    return classes


def test_defaults_are_as_recorded() -> None:
    packages = ("sqa", "smt", "guessers", "buzzers", "experiments", "sqa_services")
    with warnings.catch_warnings(action="ignore"):  # of optional packages
        actual = {name: fields for package in packages for name, fields in defaults(package).items()}
    if os.environ.get(RECORD):
        VECTORS.write_text(json.dumps(actual, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    expected = json.loads(VECTORS.read_text("utf-8"))
    assert actual.keys() == expected.keys()
    for name, fields in actual.items():
        assert fields == expected[name], name
