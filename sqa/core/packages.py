"""Missing Python packages: all messages about them, with the commands that install them."""

import re
import sys
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from sqa import __version__
from sqa.core.errors import ConfigError
from sqa.core.paths import PACKAGES, in_file, is_own, split

# import name of a Python package -> its distribution, or one that brings it, if their names differ in more than marks
DISTRIBUTIONS = {"comet": "unbabel-comet", "huggingface_hub": "transformers", "thot": "sil-thot"}
# import name of a package that is in no extra of this distribution -> argument for pip
ELSEWHERE = {
    **dict.fromkeys(("fastapi", "starlette", "uvicorn"), "sqa[services]"),
    **dict.fromkeys(("mosestokenizer", "omnisteval"), "OmniSTEval==0.1.10"),  # for `sqa latency --segments`
    **{name: name for name in ("mweralign", "simulstream")},  # simulstream needs its own torch
}
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)")
_BELOW = re.compile(r"python_version < ['\"]([\d.]+)")

SERVICES = Path(__file__).resolve().parents[2] / "services"  # in a checkout


@cache
def requirements() -> dict[str, list[tuple[str, str]]]:
    """Return the requirements of each extra: a distribution, and the Python version that it needs to be below."""
    from importlib.metadata import PackageNotFoundError, requires  # slow to import

    extras: dict[str, list[tuple[str, str]]] = {}
    with suppress(PackageNotFoundError):  # sqa is not installed
        for line in requires("sqa") or ():
            if extra := _EXTRA.search(line):
                below = _BELOW.search(line)
                name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
                extras.setdefault(extra[1], []).append((name, below[1] if below else ""))
    return extras


def installed_by(package: str) -> tuple[str, str]:
    """Return the argument for pip that installs a package, and the Python version that it needs to be below.

    Of several extras with the package, the smallest one is returned.  Both texts are empty for an unknown package.
    """
    if package in ELSEWHERE:
        return ELSEWHERE[package], ""
    wanted = DISTRIBUTIONS.get(package, package).replace("_", "-").lower()
    for extra, rows in sorted(requirements().items(), key=lambda item: (len(item[1]), item[0])):
        if found := [below for name, below in rows if name.replace("_", "-").lower() == wanted]:
            return f"sqa[{extra}]", found[0]
    return "", ""


def too_new(below: str) -> bool:
    """Return whether Python is not below a version; "" is no version."""
    return bool(below) and sys.version_info >= tuple(map(int, below.split(".")))


def install_command(wanted: str) -> str:
    """Return the command that installs an extra or a package.

    For an extra with sqa-services, the command names the checkout, or the wheel whose folder the user must name.
    """
    if wanted not in ("sqa[services]", "sqa[simul]"):
        return f"pip install '{wanted}'"
    if (SERVICES / "pyproject.toml").is_file():
        return f"pip install -e {SERVICES}" + (f" '{wanted}'" if wanted != "sqa[services]" else "")
    wheel = f"sqa_services-{__version__}-py3-none-any.whl"
    return f"pip install --find-links FOLDER '{wanted}', where FOLDER has {wheel}"


def lacking(package: str | ImportError, what: str = "this", extra: str = "") -> ConfigError:
    """Return the error for a missing package that `what` needs, with the install command.

    All such messages are made here.  `package` may be the exception raised by its import; `extra` is the extra to
    install if several contain the package.
    """
    if isinstance(package, ImportError):
        package = package.name or getattr(package.__cause__, "name", None) or str(package)
    top = package.partition(".")[0]
    install, below = installed_by(top)
    if too_new(below):
        return ConfigError(f"{what} needs the Python package {top}, which needs a Python version below {below}")
    install = f"sqa[{extra}]" if extra and install else install
    how = f": {install_command(install)}" if install else ", which is not installed"
    return ConfigError(f"{what} needs the Python package {top}{how}")


def need(package: str, what: str = "this", extra: str = "") -> None:
    """Raise the error of `lacking` if a package is not installed, without importing it."""
    if find_spec(package) is None:
        raise lacking(package, what, extra)


def not_imported(what: str, target: str, error: Exception) -> Exception:
    """Return the error to raise for a part whose module cannot be imported.

    If a registered part lacks a module of this project, the original error is returned, since that is a bug.
    """
    home, _ = split(target)
    if isinstance(error, ConfigError):  # about the user's file
        return ConfigError([f"{what}: {problem.removeprefix(f'{what}: ')}" for problem in error.problems])
    if not isinstance(error, ModuleNotFoundError):
        return ConfigError(f"{what}: {home!r} cannot be imported: {error}")
    missing = (error.name or "").partition(".")[0]
    if missing in PACKAGES and not is_own(target):
        return error
    if not in_file(target) or installed_by(missing)[0]:
        return lacking(error, what)
    near = get_close_matches(missing, [file.stem for file in Path(home).parent.glob("*.py")], 1, 0.5)
    meant = f", did you mean {near[0]!r}" if near else ""
    return ConfigError(
        f"{what}: imports {missing!r}, which is neither installed nor in the folder of {Path(home).name}{meant}"
    )
