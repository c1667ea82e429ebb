"""Tables as earlier versions wrote them."""

from pathlib import Path

import pytest

from sqa.core.trace import Table


def as_older_versions_wrote(path: Path, table: Table, metadata: dict[str, str]) -> None:
    """The same table in Parquet, where pages and scores of guesses were one list of structs."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kinds = {"text": pa.string(), "i2": pa.int16(), "i4": pa.int32(), "f8": pa.float64(), "?": pa.bool_()}
    rows = {name: (column.kind, column.to_list()) for name, column in table.items()}
    columns = {}
    for name, (kind, values) in rows.items():
        columns[name] = pa.array(values, pa.list_(kinds[kind[1:-1]]) if kind[0] == "[" else kinds[kind])
    if "page" in columns:
        pairs = zip(columns.pop("page").to_pylist(), columns.pop("score").to_pylist(), strict=True)
        guess = pa.list_(pa.struct([("page", pa.string()), ("score", pa.float64())]))
        lists = [[{"page": p, "score": s} for p, s in zip(*pair, strict=True)] for pair in pairs]
        columns["guesses"] = pa.array(lists, guess)
    if "refusal" in columns:  # refused metrics had no list
        refused = zip(columns["stats"].to_pylist(), columns["refusal"].to_pylist(), strict=True)
        columns["stats"] = pa.array([stats if why is None else None for stats, why in refused], pa.list_(pa.float64()))
    about = {f"sqa.{key}": value for key, value in {"schema_version": "1", **metadata}.items()}
    parquet.write_table(pa.table(columns).replace_schema_metadata(about), path, compression="zstd")
