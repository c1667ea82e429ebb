"""Tables in files: numpy's .npz with a checksum at its end, so that no changed byte is ever read.

`numpy.load` opens them: NAME has a column's values (of texts, indices), NAME.offsets where its lists begin, NAME.words
its texts as JSON, and `about` the metadata.  Parquet, which earlier versions wrote, is read where pyarrow is installed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from sqa.core.errors import DataError, need
from sqa.core.trace import SCHEMA_VERSION, Column, Schema, Table
from sqa.files.atomic import write_bytes
from sqa.files.records import parse_json

OLDER = ".parquet"  # the suffix of what earlier versions wrote in place of .npz
_DIGEST = 64  # hex digits of the sha256 of all before them: the comment of the archive


def write_table(path: Path, table: Table, metadata: Mapping[str, str]) -> None:
    """Write the file of `table_bytes`, whole or not at all."""
    write_bytes(path, table_bytes(table, metadata))


def table_bytes(table: Table, metadata: Mapping[str, str]) -> bytes:
    """A table as a file; the same rows give the same bytes."""
    about = {"schema_version": str(SCHEMA_VERSION), **metadata, "kinds": {name: c.kind for name, c in table.items()}}
    arrays: dict[str, NDArray[Any]] = {"about": _json_array(about)}
    for name, column in table.items():
        arrays[name] = column.values
        if column.offsets is not None:
            arrays[f"{name}.offsets"] = column.offsets
        if column.words:
            arrays[f"{name}.words"] = _json_array(column.words)
    file = BytesIO()
    with ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            member = BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(ZipInfo(f"{name}.npy"), member.getvalue(), ZIP_DEFLATED)  # ZipInfo: of no time
    data = file.getvalue()[:-2] + _DIGEST.to_bytes(2, "little")  # an archive ends with the length of its comment
    return data + hashlib.sha256(data).hexdigest().encode()


def read_table(
    path: Path, schema: Schema, metadata: Mapping[str, str], read: Callable[[Path], bytes] = Path.read_bytes
) -> Table:
    """Read a table written by `write_table` with this schema and metadata; else DataError with the remedy."""
    remedy = "delete it and run again"
    try:
        try:
            table, about = _unpacked(read(path))
        except FileNotFoundError:
            table, about = _of_parquet(read(path := path.with_suffix(OLDER)))
    except FileNotFoundError as error:
        raise DataError(f"{path.with_suffix('.npz')}: is missing; run the stage again") from error
    except (ValueError, KeyError, OSError, BadZipFile) as error:
        raise DataError(f"{path}: truncated or damaged, not a readable table; {remedy}") from error
    version = about.get("schema_version")
    if version != str(SCHEMA_VERSION):
        raise DataError(f"{path}: has trace schema version {version}, expected {SCHEMA_VERSION}; {remedy}")
    for key, value in metadata.items():
        if about.get(key) != value:
            raise DataError(f"{path}: holds {key} {about.get(key)}, expected {value}; {remedy}")
    if {name: column.kind for name, column in table.items()} != schema:
        raise DataError(f"{path}: has the columns {[*table]}, expected {[*schema]}; {remedy}")
    return table


def _json_array(value: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value, ensure_ascii=False).encode(), np.uint8)


def _unpacked(data: bytes) -> tuple[Table, dict[str, Any]]:
    """The table of a file's bytes, and its metadata."""
    if hashlib.sha256(data[:-_DIGEST]).hexdigest().encode() != data[-_DIGEST:]:
        raise ValueError("not what its checksum says")
    with ZipFile(BytesIO(data)) as archive:
        arrays: dict[str, Any] = {
            name.removesuffix(".npy"): np.lib.format.read_array(BytesIO(archive.read(name)), allow_pickle=False)
            for name in archive.namelist()
        }
    about = parse_json(arrays["about"].tobytes())
    table = {}
    for name, kind in about["kinds"].items():
        words = parse_json(arrays[f"{name}.words"].tobytes()) if f"{name}.words" in arrays else ()
        table[name] = Column(kind, arrays[name], tuple(words), arrays.get(f"{name}.offsets"))
    return table, about


def _of_parquet(data: bytes) -> tuple[Table, dict[str, Any]]:
    """The same of a Parquet file."""
    need("pyarrow", "a store or run of an earlier version, in Parquet,")
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(BytesIO(data), page_checksum_verification=True) as file:
            arrow = file.read()
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    about = {key.decode().removeprefix("sqa."): value.decode() for key, value in (arrow.schema.metadata or {}).items()}
    fields = ((name, arrow.column(name).combine_chunks()) for name in arrow.column_names)
    return {name: column for field in fields for name, column in _columns(*field)}, about


def _columns(name: str, array: Any) -> Iterator[tuple[str, Column]]:
    """The columns of a field of Parquet: one, or of a list of structs one for each part."""
    kinds = {"string": "text", "int16": "i2", "int32": "i4", "double": "f8", "bool": "?"}
    offsets = None
    if str(array.type).startswith("list"):
        offsets, array = array.offsets.to_numpy(), array.values
    inner = {field.name: array.field(field.name) for field in array.type} if array.type.num_fields else {name: array}
    for part, values in inner.items():
        kind = kinds.get(str(values.type), str(values.type))
        column = Column.of(kind, values.to_pylist())
        yield part, Column(kind if offsets is None else f"[{kind}]", column.values, column.words, offsets)
