"""Atomic file writes, locks on folders, and digests.

Locks are `flock`s, which the system releases whenever the process ends.  Digests are sha256, in hex.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from sqa.core import ConfigError


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside `path`; rename it to `path` after the block, or remove it on an error.

    Each writer has its own temporary file, so the last writer to finish wins.  A killed writer leaves its file.
    """
    with _partial(path) as partial:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with atomic(path) as partial:
        partial.write_bytes(data)


def write_text(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a UTF-8 file atomically; the umask restricts its `mode`."""
    with atomic(path) as partial:
        partial.touch(mode)
        partial.write_text(text, encoding="utf-8")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; rename it to `path` after the block, or remove it on an error.

    Raises ConfigError, and keeps `path`, if `path` is a file or a folder with contents after the block.
    """
    with _partial(path, folder=True) as partial:
        yield partial
        try:
            partial.rename(path)
        except OSError as error:  # not empty, or a file
            raise ConfigError(f"{path}: already exists; name a new folder") from error


@contextmanager
def _partial(path: Path, folder: bool = False) -> Iterator[Path]:
    """Yield a partial file or folder, and remove it after the block unless it was renamed."""
    if path.is_dir() and not (folder and path.name):
        raise ConfigError(f"{path}: is a folder; give the name of a {'new folder' if folder else 'file'} in it")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid4().hex[:12]}.partial")
    if folder:
        partial.mkdir()
    try:
        yield partial
    finally:
        with suppress(OSError):  # it exists here only after an error
            _remove(partial)


def _remove(path: Path) -> None:
    """Remove a file, or a folder with its contents."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Lock a folder, created if missing, against other processes; yield False if it is locked and `wait` is False."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Lock a folder during a training run; raises ConfigError if another process holds it."""
    with locked(folder, wait=False) as is_ours:
        if not is_ours:
            raise ConfigError(f"{folder}: another process is working in it; wait for it, stop it, or change `name`")
        yield


def empty(folder: Path) -> None:
    """Remove everything in a folder."""
    for path in folder.iterdir():
        _remove(path)


def bytes_digest(data: bytes) -> str:
    """Return the sha256 (hex) of bytes."""
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """Return the sha256 (hex) of a file's bytes, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
