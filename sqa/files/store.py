"""Store of stage results in files, keyed by everything that can change the results.

    <root>/store/<stage>/<key>/manifest.json    the inputs of the key
    <root>/store/<stage>/<key>/block-0003.npz   the rows of the fourth block of questions
    <root>/store/questions/<fingerprint>/questions.jsonl   the questions of runs, so that no data set is needed

`numpy.load` opens a block: NAME holds a column's values (indices for texts), NAME.offsets the starts of its lists,
NAME.words its texts as JSON, and `about` the metadata.  A checksum at the end detects changed bytes.

The key is the sha256 of everything that can change the rows, so an existing file is never recomputed and a killed run
continues with the missing blocks.  No file holds a time or a random value: the same inputs give the same bytes.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar, overload
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from msgspec import ValidationError, convert
from msgspec.json import encode
from numpy.typing import NDArray

from sqa.core import DataError, Question, QuestionTrace, Table, TraceError
from sqa.core import trace as tr
from sqa.core.trace import SCHEMA_VERSION, Column, Schema
from sqa.files.atomic import locked, write_bytes
from sqa.files.records import parse_json

T = TypeVar("T")
WAITS = (0.1, 0.4, 1.5, 5.0, 15.0, 40.0)  # seconds: a network file system remembers for 60 s that a file is missing
_DIGEST = 64  # hex digits of the sha256 of all preceding bytes; the ZIP archive stores it as its comment


def digest(value: Any) -> str:
    """Return the sha256 (hex) of a value's canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def dataset_fingerprint(questions: Iterable[Question]) -> str:
    """Return the sha256 (hex) over the questions as JSON lines with named fields, in order."""
    total = hashlib.sha256()
    for question in questions:
        total.update(encode(question) + b"\n")
    return total.hexdigest()


@dataclass(frozen=True, slots=True)
class Stage:
    """The inputs that determine a stage's rows; `key` names its folder."""

    name: str  # "translate", "guess", "buzz", "score"
    implementation: str  # "module:attribute" or the metrics' signatures
    fingerprint: str  # fingerprint of the component: weights, code version, config
    upstream: tuple[str, ...]  # keys of the stages that it reads
    dataset: str  # fingerprint of the questions
    block_size: int  # questions per block

    @property
    def key(self) -> str:
        """Sha256 (hex) of the inputs."""
        return digest(self.inputs())

    def inputs(self) -> dict[str, Any]:
        """Return all inputs of the key as JSON values."""
        values = {**asdict(self), "upstream": list(self.upstream), "schema_version": SCHEMA_VERSION}
        return {"stage": values.pop("name"), **values}


@dataclass(frozen=True, slots=True)
class Store:
    """Stage results below a root; the constructor reads and writes nothing.

    Attributes:
        root: The folder.
        shared: Whether several machines share the folder.  It then has no locks, which network file systems often
            lack.  Two writers without a lock write the same bytes, because a path identifies everything that they
            depend on.
    """

    root: Path
    shared: bool = False

    def content(self, path: Path) -> bytes:
        """Return a file's bytes; in a shared folder, wait up to 62 s for a file that another machine has written."""
        for wait in WAITS if self.shared else ():
            if path.is_file() or not path.parent.is_dir():
                break
            time.sleep(wait)
        return path.read_bytes()

    def folder(self, stage: Stage) -> Path:
        """Return the folder of a stage's blocks."""
        return self.root / "store" / stage.name / stage.key

    def block(self, stage: Stage, index: int) -> Path:
        """Return the file of one block."""
        return self.folder(stage) / f"block-{index:04d}.npz"

    def missing(self, stage: Stage, blocks: int) -> list[int]:
        """Return the indices below `blocks` of missing blocks."""
        stored = set(self.folder(stage).glob("block-*.npz"))
        return [index for index in range(blocks) if self.block(stage, index) not in stored]

    def write(self, stage: Stage, index: int, table: Table) -> None:
        """Write one block atomically."""
        metadata = {"key": stage.key, "stage": stage.name, "block": str(index)}
        write_bytes(self.block(stage, index), table_bytes(table, metadata))

    def read(self, stage: Stage, index: int, schema: Schema) -> Table:
        """Read one block; raises DataError naming the file if it is truncated, damaged or of another stage."""
        wanted = {"key": stage.key, "block": str(index)}
        return read_table(self.block(stage, index), schema, wanted, self.content)

    def stage(self, name: str, key: str) -> Stage:
        """Return the stage of a key, from the manifest; raises DataError if it is missing or damaged."""
        manifest = self.root / "store" / name / key / "manifest.json"
        try:
            inputs = parse_json(self.content(manifest))
            version = inputs.pop("schema_version")
            stage = Stage(inputs.pop("stage"), **{**inputs, "upstream": tuple(inputs["upstream"])})
        except FileNotFoundError as error:
            raise DataError(f"{manifest}: is missing; run the config again with --runs {self.root}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{manifest}: damaged ({error}); delete its folder and run the config again") from error
        if version != SCHEMA_VERSION:
            raise DataError(f"{manifest}: has trace schema version {version}, expected {SCHEMA_VERSION}; run it again")
        if stage.key != key or stage.name != name:
            raise DataError(f"{manifest}: describes another stage; delete its folder and run the config again")
        return stage

    def questions(self, fingerprint: str) -> Path:
        """Return the path of the file to which `keep` writes the questions."""
        return self.root / "store" / "questions" / fingerprint / "questions.jsonl"

    def keep(self, questions: Sequence[Question]) -> str:
        """Write questions unless the store has them, and return their fingerprint."""
        fingerprint = dataset_fingerprint(questions)
        if not self.questions(fingerprint).is_file():
            write_bytes(self.questions(fingerprint), b"".join(encode(q) + b"\n" for q in questions))
        return fingerprint

    def kept(self, fingerprint: str) -> list[Question]:
        """Return the questions that `keep` wrote.  Raises DataError if they are changed or unreadable."""
        path = self.questions(fingerprint)
        try:
            questions = [convert(parse_json(line), Question) for line in self.content(path).splitlines()]
            if dataset_fingerprint(questions) != fingerprint:
                raise ValueError("they differ from those that were written")
        except (OSError, ValueError, ValidationError) as error:
            raise DataError(f"{path}: the questions cannot be read: {error}; delete the file and run again") from error
        return questions

    @contextmanager
    def working_on(self, stage: Stage) -> Iterator[None]:
        """Lock the stage's folder, so that another run of the same stage waits until the blocks are computed."""
        with nullcontext() if self.shared else locked(self.folder(stage)):
            self.describe(stage)
            yield

    def describe(self, stage: Stage) -> None:
        """Write the inputs of the stage's key unless the file exists."""
        path = self.folder(stage) / "manifest.json"
        if not path.is_file():
            text = json.dumps(stage.inputs(), indent=2, sort_keys=True, ensure_ascii=False)
            write_bytes(path, (text + "\n").encode())


def blocks_of(rows: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return questions or other values in blocks of `size`; the last one may be shorter."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


class Traces(Sequence[QuestionTrace]):
    """The traces of a run in question order, read from the store one block at a time."""

    def __init__(self, store: Store, blocks: Sequence[Sequence[Question]], stages: Mapping[str, Stage]) -> None:
        self._store, self._blocks, self._stages = store, blocks, stages
        self._size = len(blocks[0]) if blocks else 1  # questions per block, except the last block
        self._cached: tuple[int, list[QuestionTrace]] = (-1, [])  # the most recently indexed block

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def __iter__(self) -> Iterator[QuestionTrace]:
        for index in range(len(self._blocks)):
            yield from self.block(index)

    @overload
    def __getitem__(self, index: int) -> QuestionTrace: ...
    @overload
    def __getitem__(self, index: slice) -> list[QuestionTrace]: ...
    def __getitem__(self, index: int | slice) -> QuestionTrace | list[QuestionTrace]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        block, offset = divmod(range(len(self))[index], self._size)
        if self._cached[0] != block:
            self._cached = (block, self.block(block))
        return self._cached[1][offset]

    def block(self, index: int) -> list[QuestionTrace]:
        """Return the traces of one block of questions, with all stages joined and checked."""
        questions = self._blocks[index]
        stages = [self._stages.get(name) for name in ROWS]
        emissions, guesses, buzzes = (
            {} if stage is None else read_rows(self._store, stage, index, questions) for stage in stages
        )
        try:
            return [QuestionTrace(q, emissions[q.id], guesses.get(q.id), buzzes.get(q.id)) for q in questions]
        except TraceError as error:
            paths = ", ".join(str(self._store.block(stage, index)) for stage in self._stages.values())
            raise DataError(f"{paths}: {error}; delete them and run again") from error


# stage -> its columns, and the function that groups its rows by question id; in the order of a trace
ROWS: Mapping[str, tuple[Schema, Callable[[Table], dict[str, Any]]]] = {
    "translate": (tr.EMISSIONS, tr.emissions_rows),
    "guess": (tr.GUESSES, tr.guesses_rows),
    "buzz": (tr.BUZZES, tr.buzzes_rows),
}


def read_rows(store: Store, stage: Stage, index: int, block: Sequence[Question]) -> dict[str, Any]:
    """Return the emissions, guesses or buzzes of every question of a block, by question id."""
    schema, rows_of = ROWS[stage.name]
    try:
        rows = rows_of(store.read(stage, index, schema))
    except TraceError as error:
        raise DataError(f"{store.block(stage, index)}: {error}; delete it and run again") from error
    if unrelated := rows.keys() - {q.id for q in block}:
        problem = f"has rows of {min(unrelated)!r}, which is not a question of this block"
        raise DataError(f"{store.block(stage, index)}: {problem}; delete it and run again")
    return {q.id: rows.get(q.id, ()) for q in block}


# --------------------------------------------------------------------------------------------------- tables in files


def table_bytes(table: Table, metadata: Mapping[str, str]) -> bytes:
    """Return a table as the bytes of a file; equal rows give equal bytes."""
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
            archive.writestr(ZipInfo(f"{name}.npy"), member.getvalue(), ZIP_DEFLATED)  # ZipInfo: without a time
    data = file.getvalue()[:-2] + _DIGEST.to_bytes(2, "little")  # an archive ends with the length of its comment
    return data + hashlib.sha256(data).hexdigest().encode()


def read_table(
    path: Path, schema: Schema, metadata: Mapping[str, str], read: Callable[[Path], bytes] = Path.read_bytes
) -> Table:
    """Read a table that `table_bytes` made with this schema and metadata; else raise DataError with the remedy."""
    remedy = "delete it and run again"
    try:
        table, about = _unpacked(read(path))
    except FileNotFoundError as error:
        raise DataError(f"{path}: is missing; run the stage again") from error
    except (ValueError, KeyError, OSError, BadZipFile) as error:
        raise DataError(f"{path}: truncated or damaged, not a readable table; {remedy}") from error
    version = about.get("schema_version")
    if version != str(SCHEMA_VERSION):
        raise DataError(f"{path}: has trace schema version {version}, expected {SCHEMA_VERSION}; {remedy}")
    for key, value in metadata.items():
        if about.get(key) != value:
            raise DataError(f"{path}: has {key} {about.get(key)}, expected {value}; {remedy}")
    if {name: column.kind for name, column in table.items()} != schema:
        raise DataError(f"{path}: has the columns {[*table]}, expected {[*schema]}; {remedy}")
    return table


def _json_array(value: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value, ensure_ascii=False).encode(), np.uint8)


def _unpacked(data: bytes) -> tuple[Table, dict[str, Any]]:
    """Return the table and the metadata that a file's bytes hold; raises ValueError if their checksum differs."""
    if hashlib.sha256(data[:-_DIGEST]).hexdigest().encode() != data[-_DIGEST:]:
        raise ValueError("its checksum differs")
    with np.load(BytesIO(data), allow_pickle=False) as arrays:
        about = parse_json(arrays["about"].tobytes())
        table = {}
        for name, kind in about["kinds"].items():
            words = parse_json(arrays[f"{name}.words"].tobytes()) if f"{name}.words" in arrays else ()
            offsets = arrays[f"{name}.offsets"] if f"{name}.offsets" in arrays else None
            table[name] = Column(kind, arrays[name], tuple(words), offsets)
    return table, about
