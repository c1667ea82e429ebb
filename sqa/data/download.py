"""Find, verify and download the data files listed in data/manifest.yaml.

A file is taken from the folder $SQA_MIRROR, else from the cache (`sqa.core.paths.cache_dir()`/data), else
downloaded from its public URL into the cache.  A file whose size or sha256 differs from the manifest is rejected.
A successful check is remembered by path and modification time, so that large files are not read again in each run.
"""

import functools
import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from sqa.core.errors import ChecksumError, ConfigError, DataError
from sqa.core.paths import DATA, cache_dir
from sqa.core.progress import bar
from sqa.core.registry import did_you_mean
from sqa.files.atomic import atomic, file_digest, write_bytes
from sqa.files.records import converted
from sqa.files.yaml_reader import parse_yaml

MANIFEST = DATA / "manifest.yaml"
ATTEMPTS = 4  # attempts per download
WAIT = 1.0  # seconds before the second attempt; doubles with each attempt
TIMEOUT = 10.0, 60.0  # seconds to connect, maximum seconds without data
BUSY = (429, 500, 502, 503, 504)  # status codes after which a download is tried again
_CHUNK = 1 << 16  # bytes


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the manifest.  `path` is relative to the mirror and to the cache's data folder."""

    name: str
    path: str
    home: str | None  # URL of the exact bytes, None for a derived file
    how: str | None  # for a derived file: its parts and their origin
    commit: str | None  # commit of the public repository
    sha256: str
    size: int  # bytes
    licence: str
    records: int  # lines, or items of a JSON document
    first: str  # sha256 of the first record (see tests/unit/data/test_corpora.py)
    last: str  # sha256 of the last record


class _Manifest(Struct):
    files: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """The result of `verify`: `ok`, `missing` (no copy) or `wrong` (a copy with different bytes)."""

    entry: Entry
    state: Literal["ok", "missing", "wrong"]
    path: Path | None
    message: str


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return all files of the manifest, in manifest order."""
    return read_manifest(MANIFEST)


_NO_QUOTES = str.maketrans("", "", "()[]'\"")


def read_manifest(path: Path) -> tuple[Entry, ...]:
    """Parse a manifest: a YAML mapping with a list `files`, whose items have exactly the keys of Entry."""
    try:
        raw = parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: the manifest cannot be read: {error}") from error
    return converted(str(path), raw, _Manifest).files


def entry(name: str) -> Entry:
    """Return the entry of the manifest with this name or path."""
    for item in entries():
        if name in (item.name, item.path):
            return item
    names = [item.name for item in entries()]
    near = did_you_mean(name, names) or f"; known: {', '.join(names)}"
    raise ConfigError(f"data file {name!r} is not in the manifest{near}")


def mirror() -> Path | None:
    """Return the folder $SQA_MIRROR, or None if the variable is not set; raises ConfigError if it is no folder."""
    value = os.environ.get("SQA_MIRROR")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"SQA_MIRROR: {value} is not a folder; name a folder with the manifest's files, or unset it")
    return folder


def _cached(item: Entry) -> Path:
    return cache_dir() / "data" / item.path


def where(name: str) -> Path | None:
    """Return the path of a local copy, unverified, or None if there is none."""
    item = entry(name)
    folder = mirror()
    if folder is not None and (folder / item.path).is_file():
        return folder / item.path
    return _cached(item) if _cached(item).is_file() else None


def path_of(name: str) -> Path:
    """Return the path of a verified copy, from the mirror, else the cache, else a new download.

    Raises ChecksumError if the copy differs from the manifest, DataError if no copy exists and none can be downloaded.
    """
    path = where(name)
    if path is None:
        return fetch(name)
    check(path, entry(name), remembered=True)
    return path


def fetch(name: str) -> Path:
    """Return the path of a verified copy as `path_of` does, but replace a wrong copy in the cache."""
    item = entry(name)
    copy, target = where(name), _cached(item)
    if copy is not None:
        try:
            check(copy, item, remembered=True)
            return copy
        except ChecksumError:
            if copy != target or item.home is None:
                raise
            target.unlink(missing_ok=True)  # another process may have removed it already
    if item.home is None:
        raise DataError(
            f"{item.name}: this file has no public URL and needs a mirror: set SQA_MIRROR to a "
            f"folder that holds {item.path} ({item.how})"
        )
    try:
        return _download(item, item.home, target)
    except OSError as error:
        raise DataError(f"{target}: cannot be written ({error}); set SQA_CACHE to a folder with free space") from error


def verify(names: list[str] | None = None) -> list[Status]:
    """Read the copies of the named files (None: all files) in full and compare them with the manifest."""
    items = entries() if names is None else tuple(entry(name) for name in names)
    return [_status(item) for item in items]


def _status(item: Entry) -> Status:
    path = where(item.name)
    if path is None:
        hint = "download it with sqa data fetch" if item.home else "it needs a mirror (SQA_MIRROR)"
        return Status(item, "missing", None, f"no copy; {hint}")
    try:
        check(path, item, remembered=False)
    except ChecksumError as error:
        return Status(item, "wrong", path, str(error))
    return Status(item, "ok", path, "")


# --- checksums -------------------------------------------------------------------------------------------------------


def check(path: Path, item: Entry, *, remembered: bool) -> None:
    """Raise ChecksumError unless the file has the manifest's size and sha256.

    With `remembered`, an earlier successful check at the same path and modification time suffices.
    """
    stat = path.stat()
    advice = "delete it and fetch it again, or use a matching mirror or version of this project"
    if stat.st_size != item.size:
        raise ChecksumError(f"{path}: {stat.st_size} bytes, the manifest says {item.size}; {advice}")
    state = f"{path.resolve()}\n{stat.st_mtime_ns}\n{item.sha256}".encode("utf-8", "surrogateescape")
    note = cache_dir() / "verified" / hashlib.sha256(state).hexdigest()[:32]
    if remembered and note.is_file():
        return
    digest = file_digest(path)
    if digest != item.sha256:
        raise ChecksumError(f"{path}: sha256 is {digest}, the manifest says {item.sha256}; {advice}")
    with suppress(OSError):  # an unwritable cache costs time, but the result is still correct
        write_bytes(note, b"")


# --- download --------------------------------------------------------------------------------------------------------


def _download(item: Entry, url: str, target: Path) -> Path:
    """Download `url` to `target`; repeat the request after a broken connection or if the server is busy."""
    import requests

    from sqa.net.client import attempts

    trouble = ""
    for _ in attempts(WAIT, 60.0, ATTEMPTS):
        try:
            with requests.get(url, stream=True, timeout=TIMEOUT, headers={"Accept-Encoding": "identity"}) as response:
                if response.ok:
                    with atomic(target) as partial:
                        _save(response, item, url, partial)
                    check(target, item, remembered=True)
                    return target
                trouble = f"HTTP {response.status_code}"
                if response.status_code not in BUSY:
                    raise DataError(f"{item.name}: {url} returned {trouble}; use a mirror (SQA_MIRROR)")
        except requests.RequestException as error:
            cause = (
                str(error).rsplit(": ", 1)[-1].translate(_NO_QUOTES)
            )  # urllib3 nests messages; the last is the cause
            trouble = f"{type(error).__name__}: {cause}"
    problem = f"{url} could not be downloaded in {ATTEMPTS} tries ({trouble})"
    raise DataError(f"{item.name}: {problem}; try again, or set SQA_MIRROR to a folder that holds {item.path}")


def _save(response: Any, item: Entry, url: str, path: Path) -> None:
    """Write the body of a response to a file; raises ChecksumError if it differs from the manifest."""
    with path.open("wb") as file, bar(item.name, item.size, 0, "B", unit_scale=True) as shown:
        for chunk in response.iter_content(_CHUNK):
            file.write(chunk)
            shown.update(len(chunk))
            if shown.n > item.size:
                break  # longer than in the manifest
    digest = file_digest(path)
    if digest != item.sha256:
        given = f"{url} gave {path.stat().st_size} bytes with sha256 {digest}"
        raise ChecksumError(
            f"{item.name}: {given}, the manifest says {item.size} bytes and {item.sha256}; the download was deleted"
        )
