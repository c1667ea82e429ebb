"""Storage backends for several machines; the backend of one machine is `LocalFolder` (sqa/files/store.py).

    SharedFolder()       a network file system, without locks, which are often missing or unreliable there
    Objects("s3")        any object storage that fsspec supports (S3 with s3fs, memory:// in tests), without locks

Every backend writes files atomically.  Two writers without a lock write the same bytes, because a path identifies
everything that the bytes depend on.  So the second writer changes nothing.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError, DataError
from sqa.core.packages import lacking
from sqa.files.atomic import write_bytes
from sqa.files.store import Backend

WAITS = (0.1, 0.4, 1.5, 5.0, 15.0, 40.0)  # seconds to wait for another machine's file: NFS caches a miss for 60 s


@dataclass(frozen=True, slots=True)
class SharedFolder(Backend):
    """A folder shared by several machines, without locks."""

    def read(self, path: Path) -> bytes:
        """Return a file's bytes; wait up to 62 s for a missing file, which another machine may just have written."""
        for wait in WAITS:
            with suppress(FileNotFoundError):
                return path.read_bytes()
            if not path.parent.is_dir():
                break
            time.sleep(wait)
        return path.read_bytes()

    def write(self, path: Path, data: bytes) -> None:
        """Write a temporary file, then move it to `path`; a killed writer leaves its temporary file."""
        write_bytes(path, data)


@dataclass(frozen=True, slots=True)
class Objects(Backend):
    """Object storage by fsspec.  Its credentials and endpoint come from the environment, never from a task.

    Raises DataError if the storage refuses a request, and FileNotFoundError for a missing object.
    """

    protocol: str  # "s3", "gs", "memory", ...

    @contextmanager
    def _system(self, path: Path) -> Iterator[tuple[Any, str]]:
        import fsspec

        try:
            yield fsspec.filesystem(self.protocol, use_listings_cache=False), path.as_posix()
        except FileNotFoundError:
            raise
        except OSError as error:
            where = f"{self.protocol}://{path.as_posix()}"
            raise DataError(f"{where}: {error}; check the storage and run again") from error

    def names(self, folder: Path) -> set[str]:
        with self._system(folder) as (system, prefix):
            try:
                paths = system.ls(prefix, detail=False, refresh=True)
            except FileNotFoundError:
                return set()
        return {path.rpartition("/")[2] for path in paths}

    def exists(self, path: Path) -> bool:
        with self._system(path) as (system, name):
            return bool(system.exists(name))

    def read(self, path: Path) -> bytes:
        with self._system(path) as (system, name):
            return bytes(system.cat_file(name))

    def write(self, path: Path, data: bytes) -> None:
        """Write an object.  Object storage writes each object atomically."""
        with self._system(path) as (system, name):
            system.pipe_file(name, data)


def shared(url: str) -> tuple[Path, Backend]:
    """Return root and backend of a store for several machines: a folder, or a URL such as s3://bucket/folder.

    Raises ConfigError for an unknown protocol, or if its package is missing.
    """
    protocol, separator, path = url.partition("://")
    if not separator or protocol == "file":
        return Path(path if separator else url).resolve(), SharedFolder()
    if not path.strip("/"):
        raise ConfigError(f"--store: {url}: expected PROTOCOL://BUCKET/FOLDER")
    try:
        import fsspec

        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        raise lacking(error, f"--store {url}") from error
    except ValueError as error:
        raise ConfigError(f"--store: {url}: {error}") from error
    return Path(path.strip("/")), Objects(protocol)
