"""Default values of every config class in the given packages.

    python -m config_defaults PACKAGE...     prints {config class: {field: default}} as JSON

The program imports all modules of the packages, except those that need an optional package that is not installed.
"""

import dataclasses
import inspect
import json
import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from recorded import RECORD

from sqa.core.own import PACKAGES


def defaults(package: str) -> dict[str, dict[str, str]]:
    """Return a dict that maps each config class of a package to the repr of each field's default."""
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


def check(path: Path, *packages: str) -> None:
    """Compare the packages' config defaults with the reference file, in a subprocess that loads the modules."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "config_defaults", *packages]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    actual = json.loads(done.stdout)
    if os.environ.get(RECORD):
        path.write_text(json.dumps(actual, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    expected = json.loads(path.read_text("utf-8"))
    assert actual.keys() == expected.keys()
    for name, fields in actual.items():
        assert fields == expected[name], name


if __name__ == "__main__":
    print(json.dumps({name: fields for package in sys.argv[1:] for name, fields in defaults(package).items()}))
