"""Where a store's files lie that several machines use; on one machine it is a `LocalFolder` (sqa/files/store.py).

    SharedFolder()       a network file system: no locks, which such systems often lack or fake
    Objects("s3")        any object storage that fsspec knows (S3 with s3fs, memory:// in tests): no locks either

In each of them a file is there whole or not at all.  Two writers without a lock write the same bytes, as a path says
everything that the bytes depend on; so the second one changes nothing.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqa.core.errors import ConfigError, DataError, lacking
from sqa.files.store import Place, file_names

LATE = (0.1, 0.4, 1.5, 5.0, 15.0, 40.0)  # seconds to wait for a file of another machine: NFS forgets a miss after 60 s


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """A folder that several machines see, without locks."""

    def names(self, folder: Path) -> set[str]:
        """The files in a folder."""
        return file_names(folder)

    def exists(self, path: Path) -> bool:
        """Whether a file is there, as far as this machine has heard."""
        return path.is_file()

    def read(self, path: Path) -> bytes:
        """A file's bytes; one that is not there yet is waited for (62 s), as the news may be late."""
        for wait in LATE:
            with suppress(FileNotFoundError):
                return path.read_bytes()
            if not path.parent.is_dir():
                break
            time.sleep(wait)
        return path.read_bytes()

    def write(self, path: Path, data: bytes) -> None:
        """Write a file in a folder beside its place, then move it there.

        Writers of one file share that folder, and the first to be done removes it: what a killed one left goes with
        it, and one that is still writing finds its own gone, but the same bytes in their place.
        """
        writing = path.with_name(f".{path.name}.partial")
        partial = writing / uuid4().hex[:12]
        try:
            writing.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError:  # the folder is gone (FileNotFoundError, on NFS a stale handle), or the disk is full
            if not path.is_file():
                raise
        finally:
            with suppress(OSError):  # after an error; else it has moved
                partial.unlink()
        shutil.rmtree(writing, ignore_errors=True)

    @contextmanager
    def hold(self, folder: Path) -> Iterator[None]:
        """Nothing is held."""
        yield


@dataclass(frozen=True, slots=True)
class Objects:
    """Object storage by fsspec.  Its keys and endpoint come from the environment, never with a task."""

    protocol: str  # "s3", "gs", "memory", ...

    def _system(self) -> Any:
        import fsspec

        return fsspec.filesystem(self.protocol, use_listings_cache=False)

    def names(self, folder: Path) -> set[str]:
        """The objects below a prefix."""
        with self._said(folder):
            try:
                found = self._system().ls(folder.as_posix(), detail=False, refresh=True)
            except FileNotFoundError:
                return set()
        return {name.rpartition("/")[2] for name in found}

    def exists(self, path: Path) -> bool:
        """Whether an object is there."""
        with self._said(path):
            return bool(self._system().exists(path.as_posix()))

    def read(self, path: Path) -> bytes:
        """An object's bytes."""
        with self._said(path):
            return bytes(self._system().cat_file(path.as_posix()))

    def write(self, path: Path, data: bytes) -> None:
        """Put an object, which object storage does whole or not at all."""
        with self._said(path):
            self._system().pipe_file(path.as_posix(), data)

    @contextmanager
    def hold(self, folder: Path) -> Iterator[None]:
        """Nothing is held."""
        yield

    @contextmanager
    def _said(self, path: Path) -> Iterator[None]:
        """What the storage refuses as DataError; only that an object is missing stays what it is."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DataError(
                f"{self.protocol}://{path.as_posix()}: {error}; see to the storage and run again"
            ) from error


def shared(url: str) -> tuple[Path, Place]:
    """The root and place of a store that several machines use: a folder, or a URL such as s3://bucket/folder.

    A protocol that fsspec does not know or whose package is missing: ConfigError.
    """
    protocol, separator, rest = url.partition("://")
    if not separator or protocol == "file":
        return Path(rest if separator else url).resolve(), SharedFolder()
    if not rest.strip("/"):
        raise ConfigError(f"--store: {url}: expected PROTOCOL://BUCKET/FOLDER")
    try:
        import fsspec

        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        raise lacking(error, f"--store {url}") from error
    except ValueError as error:
        raise ConfigError(f"--store: {url}: {error}") from error
    return Path(rest.strip("/")), Objects(protocol)
