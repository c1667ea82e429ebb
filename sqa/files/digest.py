"""What a file's bytes are named by: sha256, in hex."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def file_digest(path: Path) -> str:
    """sha256 (hex) of a file's bytes, which are not read into memory at once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def joined_digest(paths: Iterable[Path]) -> str:
    """sha256 (hex) over the bytes of files, one after the other."""
    total = hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())
    return total.hexdigest()
