"""Find, verify and download the data files listed in data/manifest.yaml.

A file is taken from the folder $SQA_MIRROR, else from the cache (`sqa.core.paths.cache_dir()`/data), else
downloaded from its public URL into the cache.  A file whose size or sha256 differs from the manifest is rejected.
"""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from sqa.core import DATA, ChecksumError, ConfigError, DataError, bar, cache_dir, did_you_mean
from sqa.files import converted, file_digest, parse_yaml
from sqa.files.atomic import atomic

MANIFEST = DATA / "manifest.yaml"
ATTEMPTS = 4  # attempts per download
WAIT = 1.0  # seconds, doubled before each further attempt
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

    name: str
    state: Literal["ok", "missing", "wrong"]
    path: str  # empty without a copy
    message: str


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return all files of the manifest, in manifest order."""
    return read_manifest(MANIFEST)


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
    item, path = entry(name), where(name)
    if path is None:
        return _download(item)
    check(path, item)
    return path


def verify(names: list[str] | None = None) -> list[Status]:
    """Read the copies of the named files (None: all files) in full and compare them with the manifest."""
    items = entries() if names is None else tuple(entry(name) for name in names)
    return [_status(item) for item in items]


def _status(item: Entry) -> Status:
    path = where(item.name)
    if path is None:
        hint = "download it with sqa data fetch" if item.home else "it needs a mirror (SQA_MIRROR)"
        return Status(item.name, "missing", "", f"no copy; {hint}")
    try:
        check(path, item)
    except ChecksumError as error:
        return Status(item.name, "wrong", str(path), str(error))
    return Status(item.name, "ok", str(path), "")


def check(path: Path, item: Entry, source: object = "") -> None:
    """Raise ChecksumError unless the file has the manifest's size and sha256; `source` (default: path) names it."""
    size, digest = path.stat().st_size, file_digest(path)
    if (size, digest) != (item.size, item.sha256):
        found = f"{size} bytes with sha256 {digest}, the manifest says {item.size} bytes and {item.sha256}"
        advice = "delete it and fetch it again, or use a matching mirror or version of this project"
        raise ChecksumError(f"{source or path}: {found}; {advice}")


def _download(item: Entry) -> Path:
    """Download a file into the cache; repeat the request if the server is busy or does not answer."""
    if item.home is None:
        mirror_needed = f"set SQA_MIRROR to a folder that holds {item.path} ({item.how})"
        raise DataError(f"{item.name}: this file has no public URL and needs a mirror: {mirror_needed}")
    import requests
    from requests.adapters import HTTPAdapter, Retry

    target, session = _cached(item), requests.Session()
    retries = Retry(  # only one retry, without a pause, if there is no connection
        ATTEMPTS - 1, connect=1, backoff_factor=WAIT, status_forcelist=BUSY, respect_retry_after_header=False
    )
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=retries))
    headers = {"Accept-Encoding": "identity"}
    try:
        with session, session.get(item.home, stream=True, timeout=TIMEOUT, headers=headers) as response:
            response.raise_for_status()
            with atomic(target) as partial:
                _save(response, item, partial)
                check(partial, item, item.home)
    except requests.RequestException as error:
        cause = str(error).rpartition("(Caused by ")[2].removesuffix(")")
        remedy = f"try again, or set SQA_MIRROR to a folder that holds {item.path}"
        raise DataError(f"{item.name}: {item.home} could not be downloaded ({cause}); {remedy}") from error
    except OSError as error:
        raise DataError(f"{target}: cannot be written ({error}); set SQA_CACHE to a folder with free space") from error
    return target


def _save(response: Any, item: Entry, path: Path) -> None:
    """Write the body of a response to a file, at most about as many bytes as in the manifest."""
    with path.open("wb") as file, bar(item.name, item.size, 0, "B", unit_scale=True) as shown:
        for chunk in response.iter_content(_CHUNK):
            file.write(chunk)
            shown.update(len(chunk))
            if shown.n > item.size:
                break
