"""Tables in Parquet, which earlier versions wrote instead of .npz; read where pyarrow is installed."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from sqa.core.packages import need
from sqa.core.trace import Column, Table


def parquet_table(data: bytes) -> tuple[Table, dict[str, Any]]:
    """The table of a file's bytes, and its metadata.  Damaged: ValueError."""
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
