"""Paths of the project's folders, the bundled data and the user's cache.

In a checkout, the folders next to `sqa` (configs, data, docs, smt, ...) belong to the repository.  In an installed
package they are below `sqa/bundled`.
"""

import os
from pathlib import Path

from sqa.core.errors import ConfigError
from sqa.core.registry import did_you_mean

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
