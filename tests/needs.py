"""Requirements of tests: optional packages, programs, data and servers.

A test declares its requirements with `@pytest.mark.needs("comet", "java")`.  A module that imports an optional package,
and a fixture, call `require` instead.  Both skip with the same message.  A requirement is the name of an extra of
pyproject.toml, of a distribution in an extra or a lock file, or a key of `EXTERNAL`.
"""

import functools
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tables import tables_of

TABLES = tables_of(__file__)

ROOT = Path(__file__).resolve().parents[1]
LOCKS = TABLES["locks"]
EXTERNAL = TABLES["external"]


def chromium() -> str | None:
    """Return the path of Chromium, or None."""
    return os.environ.get("SQA_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def nginx() -> str | None:
    """Return the path of nginx, which is in no ordinary user's PATH, or None."""
    return shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")


def require(*names: str) -> None:
    """Skip the test, or the module that is being imported, if a requirement is missing."""
    for name in names:
        if reason := missing(name):
            pytest.skip(reason, allow_module_level=True)


@functools.cache
def missing(name: str) -> str:
    """Return the reason to skip a test that has this requirement, or "" if the requirement is met."""
    if name in EXTERNAL:
        return "" if _provided(name) else reason(name)
    extras, locked = _extras(), _locked()
    if name not in extras and name not in locked:
        raise ValueError(f"{name!r} is no extra and no package of pyproject.toml or a lock file, and not in EXTERNAL")
    for wanted in _requirements(name) if name in extras else [Requirement(name)]:
        package = wanted.name if wanted.name == name else f"{name} ({wanted.name})"
        if wanted.marker is not None and not wanted.marker.evaluate():
            return f"needs {package}, which needs {wanted.marker}"
        try:
            found = version(wanted.name)
        except PackageNotFoundError:
            how = locked.get(wanted.name) or f"pip install 'sqa[{name}]'"
            return f"needs {package}: {how}"
        if not wanted.specifier.contains(found, prereleases=True):
            return f"needs {package}: {wanted}, not {found}"
    return ""


def reason(name: str) -> str:
    """Return the reason to skip a test that has an external requirement."""
    return f"needs {name}: {EXTERNAL[name]}"


def _provided(name: str) -> bool:
    value = os.environ.get(name, "") if name.isupper() else ""
    if name == "SQA_MIRROR":
        return bool(value) and Path(value).is_dir()
    programs = {"chromium": chromium, "nginx": nginx}
    return bool(value or programs.get(name, functools.partial(shutil.which, name))())


@functools.cache
def _extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(project["optional-dependencies"])


def _requirements(extra: str) -> Iterator[Requirement]:
    """Yield the packages of an extra, with those of the extras that it includes."""
    for wanted in map(Requirement, _extras()[extra]):
        if wanted.name == "sqa":
            for included in wanted.extras:
                yield from _requirements(included)
        else:
            yield wanted


@functools.cache
def _locked() -> dict[str, str]:
    """Return the make target that installs each package of the lock files."""
    targets = {}
    for name, target in LOCKS.items():
        text = (ROOT / f"{name}.lock").read_text(encoding="utf-8")
        targets |= dict.fromkeys(re.findall(r"^([\w.-]+)(?:\[.*?\])?==", text, re.MULTILINE), target)
    return targets
