"""Stage results in files: found by what made them, whole or not at all.

    <root>/store/<stage>/<key>/manifest.json        what the key was made from
    <root>/store/<stage>/<key>/block-0003.parquet   the rows of the fourth block of questions
    <root>/store/<stage>/<key>/loaded.json          code of one's own that was loaded while they were made
    <root>/store/questions/<fingerprint>/questions.jsonl   what was run on, so that a run is read without its data set

The key is the sha256 of everything that can change the rows, so a file that is there never needs to be made again and
a killed run continues with the blocks that are missing.  No file holds a time, a path or a random value: the same
inputs give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sqa.core.errors import DataError
from sqa.core.trace import SCHEMA_VERSION
from sqa.core.types import Question
from sqa.files.atomic import atomic
from sqa.files.json_reader import parse_json
from sqa.files.places import LocalFolder, Place


def digest(value: Any) -> str:
    """sha256 (hex) of a value's canonical JSON: sorted keys, no blanks, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def dataset_fingerprint(questions: Iterable[Question]) -> str:
    """sha256 (hex) over the canonical values of the questions, in order."""
    total = hashlib.sha256()
    for q in questions:
        total.update(digest([q.id, q.dataset, q.language, q.sentences, q.reference, q.page]).encode())
    return total.hexdigest()


@dataclass(frozen=True, slots=True)
class Stage:
    """What a stage's rows depend on.  `key` names its folder."""

    name: str  # "translate", "guess", "buzz", "score"
    implementation: str  # "module:attribute" or the metrics' signatures
    fingerprint: str  # of the component: weights, code version, config
    upstream: tuple[str, ...]  # keys of the stages it reads
    dataset: str  # fingerprint of the questions
    block_size: int  # questions per block

    @property
    def key(self) -> str:
        """64 hex digits."""
        return digest(self.inputs())

    def inputs(self) -> dict[str, Any]:
        """Everything the key is made from, as JSON values."""
        return {
            "stage": self.name,
            "implementation": self.implementation,
            "fingerprint": self.fingerprint,
            "upstream": list(self.upstream),
            "dataset": self.dataset,
            "block_size": self.block_size,
            "schema_version": SCHEMA_VERSION,
        }


@dataclass(frozen=True, slots=True)
class Store:
    """Stage results below a root.  Making one touches no disk."""

    root: Path
    place: Place = field(default_factory=LocalFolder)  # what the files lie on

    def folder(self, stage: Stage) -> Path:
        """Where the blocks of a stage lie."""
        return self.root / "store" / stage.name / stage.key

    def block(self, stage: Stage, index: int) -> Path:
        """The file of one block."""
        return self.folder(stage) / f"block-{index:04d}.parquet"

    def missing(self, stage: Stage, blocks: int) -> list[int]:
        """The blocks that are not there yet."""
        found = self.place.names(self.folder(stage))
        return [index for index in range(blocks) if self.block(stage, index).name not in found]

    def has(self, stage: Stage, index: int) -> bool:
        """Whether one block is there."""
        return self.place.exists(self.block(stage, index))

    def write(self, stage: Stage, index: int, table: pa.Table) -> None:
        """Write one block, whole or not at all."""
        metadata = {"key": stage.key, "stage": stage.name, "block": str(index)}
        self.place.write(self.block(stage, index), table_bytes(table, metadata))

    def read(self, stage: Stage, index: int, schema: pa.Schema) -> pa.Table:
        """Read one block.  A truncated, damaged or foreign file: DataError naming it."""
        wanted = {"key": stage.key, "block": str(index)}
        return read_table(self.block(stage, index), schema, wanted, self.place.read)

    def stage(self, name: str, key: str) -> Stage:
        """The stage of a key, from the manifest that lies with its blocks.  Missing or damaged: DataError."""
        manifest = self.root / "store" / name / key / "manifest.json"
        try:
            found = parse_json(self.place.read(manifest))
            version = found.pop("schema_version")
            stage = Stage(found.pop("stage"), **{**found, "upstream": tuple(found["upstream"])})
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
        """The file of the questions that `keep` puts there."""
        return self.root / "store" / "questions" / fingerprint / "questions.jsonl"

    def keep(self, questions: Sequence[Question]) -> str:
        """Write questions down, unless they lie there; their fingerprint."""
        fingerprint = dataset_fingerprint(questions)
        if not self.place.exists(self.questions(fingerprint)):
            lines = (json.dumps(asdict(question), ensure_ascii=False) + "\n" for question in questions)
            self.place.write(self.questions(fingerprint), "".join(lines).encode())
        return fingerprint

    def kept(self, fingerprint: str) -> list[Question]:
        """The questions that `keep` put there.  Not those that were put there: DataError."""
        path = self.questions(fingerprint)
        try:
            questions = [_question(parse_json(line)) for line in self.place.read(path).splitlines()]
            damaged = "" if dataset_fingerprint(questions) == fingerprint else "are not those that were put there"
        except (ValueError, TypeError, KeyError) as error:
            damaged = f"cannot be read ({error})"
        if damaged:
            raise DataError(f"{path}: the questions {damaged}; delete the file and run again")
        return questions

    @contextmanager
    def working_on(self, stage: Stage) -> Iterator[None]:
        """Hold the stage's folder: a second run of the same stage waits, then finds the blocks made."""
        with self.place.hold(self.folder(stage)):
            self.describe(stage)
            yield

    def describe(self, stage: Stage) -> None:
        """Write what the stage's key was made from, unless that lies there."""
        manifest = self.folder(stage) / "manifest.json"
        if not self.place.exists(manifest):
            self.place.write(manifest, (json.dumps(stage.inputs(), indent=2, sort_keys=True) + "\n").encode())


def blocks_of(questions: Sequence[Question], size: int) -> list[Sequence[Question]]:
    """The questions in blocks of `size`, the last one shorter."""
    return [questions[start : start + size] for start in range(0, len(questions), size)]


def _question(row: dict[str, Any]) -> Question:
    sentences = tuple(tuple(words) for words in row["sentences"])
    return Question(**row | {"sentences": sentences, "reference": tuple(row["reference"])})


# --------------------------------------------------------------------------------------------------- atomic files


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, whole or not at all."""
    with atomic(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_table(path: Path, table: pa.Table, metadata: Mapping[str, str]) -> None:
    """Write a Parquet file of `table_bytes`, whole or not at all."""
    with atomic(path) as partial:
        partial.write_bytes(table_bytes(table, metadata))


def table_bytes(table: pa.Table, metadata: Mapping[str, str]) -> bytes:
    """A table as a Parquet file: zstd, page checksums, `metadata` in its schema."""
    table = table.replace_schema_metadata({"sqa.schema_version": str(SCHEMA_VERSION), **_named(metadata)})
    file = BytesIO()
    pq.write_table(
        table,
        file,
        compression="zstd",
        compression_level=6,
        version="2.6",
        data_page_version="1.0",
        use_dictionary=True,
        row_group_size=1 << 16,
        write_page_checksum=True,
    )
    return file.getvalue()


def read_table(
    path: Path, schema: pa.Schema, metadata: Mapping[str, str], read: Callable[[Path], bytes] = Path.read_bytes
) -> pa.Table:
    """Read a Parquet file written by `write_table` with this schema and metadata; else DataError with the remedy."""
    remedy = "delete it and run again"
    try:
        with pq.ParquetFile(BytesIO(read(path)), page_checksum_verification=True) as file:
            table = file.read()
    except FileNotFoundError as error:
        raise DataError(f"{path}: is missing; run the stage again") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: truncated or damaged, not a readable Parquet file; {remedy}") from error
    metadata_bytes = table.schema.metadata or {}
    found = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in metadata_bytes.items()}
    version = found.get("sqa.schema_version")
    if version != str(SCHEMA_VERSION):
        raise DataError(f"{path}: has trace schema version {version}, expected {SCHEMA_VERSION}; {remedy}")
    for key, value in _named(metadata).items():
        if found.get(key) != value:
            raise DataError(f"{path}: holds {key} {found.get(key)}, expected {value}; {remedy}")
    if not table.schema.equals(schema):
        raise DataError(f"{path}: has the columns {table.schema.names}, expected {schema.names}; {remedy}")
    return table


def _named(metadata: Mapping[str, str]) -> dict[str, str]:
    return {f"sqa.{key}": value for key, value in metadata.items()}
