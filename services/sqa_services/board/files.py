"""Files of the board, through fsspec: a local folder, s3://bucket/folder (needs s3fs), or memory:// in tests.

    datasets/<task>/[<prefix>-]<name>.jsonl               examples, as in Dynabench
    models/<task>/<name>.<kind>                           a submission, or a run's config
    predictions/<task>/<model>/[<prefix>-]<name>.jsonl    responses of a model

Writes are atomic.  Only the owner may read local files.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from sqa.core.errors import ConfigError, DataError
from sqa.core.packages import lacking
from sqa_services.board.task import NotFound


class Files:
    """Files below one URL, written atomically."""

    def __init__(self, url: str) -> None:
        try:
            self._fs, self._root = url_to_fs(url)
        except ImportError as error:
            raise lacking(error, f"--files {url}") from error
        except ValueError as error:  # fsspec does not know the protocol
            raise ConfigError(f"--files: {url}: {error}") from error

    def write(self, path: str, data: bytes) -> None:
        """Write a file atomically."""
        whole = f"{self._root}/{path}"
        local = isinstance(self._fs, LocalFileSystem)
        if local:
            make_private(Path(whole).parent)
        else:
            self._fs.makedirs(whole.rpartition("/")[0], exist_ok=True)
        file = self._fs.open(whole, "wb", autocommit=False)
        file.write(data)
        file.close()
        file.commit()
        if local:
            Path(whole).chmod(0o600)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file.  Raises DataError if it is missing."""
        try:
            return self._fs.cat_file(f"{self._root}/{path}")
        except FileNotFoundError as error:
            raise DataError(f"{path}: missing from the board's files") from error

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        if self._fs.exists(f"{self._root}/{path}"):
            self._fs.rm_file(f"{self._root}/{path}")

    def read_lines(self, path: str) -> list[Mapping[str, Any]]:
        """Return the objects of a file of JSON lines."""
        return [json.loads(line) for line in self.read(path).decode().split("\n") if line]


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, readable only by their owner."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def as_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Format objects as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def data_path(task: str, name: str, prefix: str = "") -> str:
    """Return the path of a data set's examples."""
    return f"datasets/{task}/{prefixed(prefix, name)}.jsonl"


def model_path(task: str, name: str, kind: str) -> str:
    """Return the path of a model's file."""
    return f"models/{task}/{name}.{kind}"


def predictions_path(task: str, model: str, name: str, prefix: str = "") -> str:
    """Return the path of a model's responses to a data set."""
    return f"predictions/{task}/{model}/{prefixed(prefix, name)}.jsonl"


def prefixed(prefix: str, name: str) -> str:
    """Return PREFIX-NAME, such as "fairness-mnli-dev", or NAME if the prefix is empty."""
    return f"{prefix}-{name}" if prefix else name


def split_prefix(name: str, names: Iterable[str]) -> tuple[str, str | None]:
    """Split NAME or PREFIX-NAME into data set and prefix (or None).  Raises NotFound if the data set is unknown."""
    names = set(names)
    if name in names:
        return name, None
    prefix, _, base = name.partition("-")
    if base in names:
        return base, prefix
    raise NotFound(f"Dataset {name} not found.")
