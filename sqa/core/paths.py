"""Paths of the project's folders, of the files that configs name, and of user-defined parts.

In a checkout, the folders next to `sqa` (configs, data, docs, smt, ...) belong to the repository.  In an installed
package they are below `sqa/bundled`.

A user-defined part is named by its target: `module:attribute` or `path/to/file.py:attribute`.  Its file is looked up
in the folder of the config that names it, then in the current folder.  `sqa/core/own` imports it.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError, did_you_mean

PACKAGE = Path(__file__).parents[1]
ROOT = PACKAGE / "bundled" if (PACKAGE / "bundled").is_dir() else PACKAGE.parent
DATA = ROOT / "data"
CONFIGS = ROOT / "configs"


def beside(name: str, folder: Path | None) -> str:
    """Return the path of `name` in the config's `folder`, relative to the current folder.

    A name is returned unchanged if it is a plain word or no such path exists.
    """
    path = Path(folder or "", name)
    there = path.parent if "{" in path.name else path  # prism/{run}.txt
    is_word = "/" not in name and not path.suffix
    return str(path) if not is_word and os.path.exists(there) else name  # noqa: PTH110  # no OSError for long names


def config_file(path: Path) -> Path:
    """Return the path of a config file, or of the bundled one (`xqb_es_wait6_bm25`, `configs/xqb.yaml:NAME`).

    Raises ConfigError for a name that is neither a file nor bundled.  Missing files in folders are left to the caller.
    """
    name, colon, entry = str(path).partition(":")
    file = Path(name)
    if file.exists() or file.parent not in (Path(), Path("configs")):
        return path
    bundled = CONFIGS / (file.name if file.suffix else f"{file.name}.yaml")
    if bundled.is_file():
        return Path(f"{bundled}{colon}{entry}")
    names = sorted(config.stem for config in CONFIGS.glob("*.yaml"))
    near = did_you_mean(file.name, names) or did_you_mean(f"{file.stem}.yaml", map(str, Path().glob("*.yaml")))
    raise ConfigError(f"{path}: neither a file nor a bundled config{near}; bundled are {', '.join(names)}")


def cache_dir() -> Path:
    """Return the folder for downloads: $SQA_CACHE, else $XDG_CACHE_HOME/sqa, else ~/.cache/sqa.  It is not created."""
    own = os.environ.get("SQA_CACHE")
    if own:
        return Path(own).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg).expanduser() if xdg else Path.home() / ".cache") / "sqa"


# --------------------------------------------------------------------------------------------- user-defined parts

# The project's packages.  Their version is in every signature, so keys do not include their code.
PACKAGES = frozenset({"sqa", "sqa_services", "smt", "guessers", "buzzers", "experiments"})

BUILT: list[Any] = []  # the `Code` of every user-defined part built by this process, in order
GIVEN: dict[str, Any] = {}  # name -> an object that was passed to `sqa.run` as a part


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A user-defined part inside another part's config: `policy: {name: "mine.py:build", patience: 2}`."""

    name: str  # target of the part
    options: Any  # instance of its build function's config dataclass


def in_file(target: str) -> bool:
    """Return whether a target is in a file (`mine.py:build`), not in an importable module."""
    return target.rpartition(":")[0].endswith(".py")


def is_own(target: str) -> bool:
    """Return whether a target is user-defined, that is, outside the project's packages."""
    return in_file(target) or split(target)[0].partition(".")[0] not in PACKAGES


def split(target: str) -> tuple[str, str]:
    """Split a target into its file or module, and its attribute."""
    return target.rpartition(":")[0], target.rpartition(":")[2]


def located(target: str, folder: Path | None = None) -> str:
    """Return a target with its file's absolute path; unchanged if it is in a module or its file is missing."""
    file, attribute = split(target)
    for path in (start / Path(file).expanduser() for start in (folder or Path(), Path())):
        if in_file(target) and path.is_file():
            return f"{path.resolve()}:{attribute}"
    return target


def short(target: str) -> str:
    """Return a target as shown in store keys and reports: with the name of its file instead of the path."""
    return target if not in_file(target) else f"{Path(split(target)[0]).name}:{split(target)[1]}"
