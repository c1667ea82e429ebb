"""The stages in a store, the runs that use them, and the reasons for recomputing a stage of a run."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqa.core.errors import DataError
from sqa.files.atomic import locked as locked
from sqa.files.records import parse_json
from sqa.files.store import Stage, Store
from sqa.pipeline import folder as folders
from sqa.pipeline import saving

PARTS = {  # part of a stage's key -> name shown to the user
    "dataset": "questions",
    "block_size": "questions per block",
    "schema_version": "version of the traces",
}
DIGITS = 12  # digits of a digest
Difference = tuple[str, str, str]  # (part, current value, value in the other stage)


class Held(NamedTuple):
    """A stage's folder in a store."""

    stage: str
    key: str
    blocks: int
    size: int  # bytes
    runs: tuple[str, ...]  # folders of runs that use it
    folder: Path


class Reason(NamedTuple):
    """One part in which a stage's key differs from the nearest stored key of that stage."""

    stage: str
    key: str
    nearest: str  # the nearest stored key; "" if there is no other
    part: str
    now: str
    then: str


def holdings(runs: Path) -> list[Held]:
    """Return all stages and question sets in the store of a runs folder, with the runs that use them."""
    users: dict[str, list[str]] = {}
    for name, summary in summaries(runs).items():
        for key in (*summary["stages"].values(), summary.get("dataset")):
            users.setdefault(key, []).append(name)
    stages = []
    for folder in sorted(path for path in (runs / "store").glob("*/*") if path.is_dir()):
        files = [path for path in folder.iterdir() if path.is_file()]
        if files:
            blocks = sum(path.suffix == ".npz" for path in files)
            size, runs_there = sum(path.stat().st_size for path in files), tuple(users.get(folder.name, ()))
            stages.append(Held(folder.parent.name, folder.name, blocks, size, runs_there, folder))
    return stages


def summaries(runs: Path) -> dict[str, Mapping[str, Any]]:
    """Return the run.json of every finished run by folder name.  Raises DataError if one of them is damaged."""
    summaries_by_name = {}
    for path in sorted(runs.glob(f"*/{saving.SUMMARY}")):
        try:
            summary = parse_json(path.read_bytes())
            dict(summary["stages"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: damaged ({error}); run its config again") from error
        summaries_by_name[path.parent.name] = summary
    return summaries_by_name


def prune(runs: Path) -> Iterator[Held]:
    """Remove the stages that no finished run of the folder uses; yield each removed stage."""
    for held in holdings(runs):
        if not held.runs:
            with locked(held.folder):
                shutil.rmtree(held.folder)
            yield held


def explain(run: Path) -> Iterator[Reason]:
    """Yield, for each stage of a finished run, its differences from the most similar stored stage."""
    store, stored = Store(run.parent), holdings(run.parent)
    for name, key in folders.read(run).stages.items():
        stage = store.stage(name, key)
        candidates = [held for held in stored if held.stage == name and held.key != key]
        if not candidates:
            yield Reason(name, key, "", "nothing to compare with", "", "")
            continue
        explained = [(held, list(_reasons(store, stage, store.stage(name, held.key)))) for held in candidates]
        nearest, reasons = min(explained, key=lambda pair: (len(pair[1]), -pair[0].folder.stat().st_mtime))
        yield from (Reason(name, key, nearest.key, *reason) for reason in reasons)


def _reasons(store: Store, stage: Stage, other: Stage) -> Iterator[Difference]:
    a, b = stage.inputs(), other.inputs()
    differing = [part for part in a if a[part] != b[part]]
    for part in differing:
        if part in PARTS:
            yield PARTS[part], str(a[part])[:DIGITS], str(b[part])[:DIGITS]
    if "upstream" in differing:
        yield "input", "another result of the previous stage", ""
    now, then = store.parts(stage), store.parts(other)
    changed = [part for part in {**now, **then} if now.get(part) != then.get(part)]
    # a VERSION that only one of the stages has belongs to another component
    changed = [part for part in changed if part in {*now} & {*then} or not part.startswith("VERSION ")]
    for part in changed:
        yield part, now.get(part, "not there"), then.get(part, "not there")
    if not changed and {"fingerprint", "implementation"} & {*differing}:
        yield "its code", "differs, but not in a recorded part", ""
