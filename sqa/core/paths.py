"""Where things lie: the checkout, its bundled data, the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"


def cache_dir() -> Path:
    """The folder for downloads: $SQA_CACHE, else $XDG_CACHE_HOME/sqa, else ~/.cache/sqa. Not created here."""
    own = os.environ.get("SQA_CACHE")
    if own:
        return Path(own).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg).expanduser() if xdg else Path.home() / ".cache") / "sqa"
