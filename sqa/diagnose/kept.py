"""Cache of results for unchanged texts in a file of the run's folder."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import MsgspecError, convert, to_builtins

from sqa.core.errors import DataError
from sqa.files.atomic import write_text
from sqa.files.records import parse_json

T = TypeVar("T")


def kept(path: Path | None, what: str, key: str, kind: type[T], compute: Callable[[], T]) -> T:
    """Return the values stored as `what` in a file with this key; otherwise compute them, and write them to the file.

    Without a `path`, nothing is stored.  If the file cannot be written, as in a read-only folder, a warning goes to
    stderr.  Raises DataError if the file is damaged.
    """
    if path is not None and path.is_file():
        try:
            record = parse_json(path.read_text(encoding="utf-8"))
            if record["key"] == key:
                return convert(record[what], kind)
        except (ValueError, KeyError, TypeError, MsgspecError) as error:
            raise DataError(f"{path}: the stored {what} are damaged ({error}); delete the file") from error
    values = compute()
    if path is not None:
        try:
            write_text(path, json.dumps({"key": key, what: to_builtins(values)}) + "\n")
        except OSError as error:
            reason = error.strerror or error
            print(f"sqa: {path}: {what} not stored ({reason}), so the next call recomputes them", file=sys.stderr)
    return values
