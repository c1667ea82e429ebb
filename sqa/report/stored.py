"""The stages in a store, the runs that use them, and why a stage of a run was made again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqa.core.errors import DataError
from sqa.files.atomic import held as locked
from sqa.files.records import parse_json
from sqa.files.store import OLDER, Store
from sqa.run import folder as folders
from sqa.run import saving
from sqa.run.config import to_mapping

COMPONENTS = {"translate": "translator", "guess": "guesser", "buzz": "buzzer"}  # stage -> key of a run's config
PARTS = {  # of a stage's key -> what a reader calls it
    "implementation": "code that makes it",
    "dataset": "questions",
    "block_size": "questions per block",
    "schema_version": "version of the traces",
}
MOST = 50  # stored stages that are compared with


class Held(NamedTuple):
    """A stage's folder in a store."""

    stage: str
    key: str
    blocks: int
    size: int  # bytes
    runs: tuple[str, ...]  # folders of runs that use it
    folder: Path


class Reason(NamedTuple):
    """One part in which a stage's key differs from the nearest stored one of that stage."""

    stage: str
    key: str
    nearest: str  # key; "" where there is no other
    part: str
    now: str
    then: str


def holdings(runs: Path) -> list[Held]:
    """Every stage of a runs folder's store, and its data sets' questions, with the runs there that use them."""
    users: dict[str, list[str]] = {}
    for name, summary in summaries(runs).items():
        for key in (*summary["stages"].values(), summary.get("dataset")):
            users.setdefault(key, []).append(name)
    stages = []
    for folder in sorted(path for path in (runs / "store").glob("*/*") if path.is_dir()):
        files = [path for path in folder.iterdir() if path.is_file()]
        if files:
            blocks = sum(path.suffix in (".npz", OLDER) for path in files)
            size = sum(path.stat().st_size for path in files)
            stages.append(
                Held(folder.parent.name, folder.name, blocks, size, tuple(users.get(folder.name, ())), folder)
            )
    return stages


def summaries(runs: Path) -> dict[str, Mapping[str, Any]]:
    """Folder name -> run.json of every finished run.  A damaged one: DataError."""
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
    """Remove the stages that no finished run of the folder uses; each as it is removed."""
    for held in holdings(runs):
        if not held.runs:
            with locked(held.folder):
                shutil.rmtree(held.folder)
            yield held


def explain(run: Path) -> Iterator[Reason]:
    """For each stage of a finished run, what differs from the most similar stored stage."""
    this = folders.read(run)
    store, stored = Store(run.parent), holdings(run.parent)
    for name, key in this.stages.items():
        inputs = store.stage(name, key).inputs()
        candidates = [
            (held, _differing(inputs, store.stage(name, held.key).inputs()))
            for held in stored
            if held.stage == name and held.key != key
        ]
        if not candidates:
            yield Reason(name, key, "", "nothing to compare with", "", "")
            continue
        candidates.sort(key=lambda candidate: (len(candidate[1]), -candidate[0].folder.stat().st_mtime))
        fewest = len(candidates[0][1])
        most_similar = [candidate for candidate in candidates if len(candidate[1]) == fewest][:MOST]
        explained = [(held, list(_reasons(run, this, name, held, differing))) for held, differing in most_similar]
        nearest, reasons = min(explained, key=lambda pair: len(pair[1]))
        yield from (Reason(name, key, nearest.key, *reason) for reason in reasons)


def _reasons(
    run: Path, this: folders.RunFolder, stage: str, nearest: Held, differing: Mapping[str, tuple[Any, Any]]
) -> Iterator[tuple[str, str, str]]:
    for part, (now, then) in differing.items():
        if part == "fingerprint":
            yield from _of_component(run, this, stage, nearest)
        elif part == "upstream":
            yield "what it reads", "another result of the stage before", ""
        else:
            yield PARTS[part], str(now), str(then)


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {part: (a[part], b[part]) for part in a if a[part] != b[part]}


def _of_component(run: Path, this: folders.RunFolder, stage: str, nearest: Held) -> list[tuple[str, str, str]]:
    """What differs in a component: its config, else its weights, else the program's version or code."""
    if stage not in COMPONENTS:
        return [("its code", "other", "")]
    if not nearest.runs:
        return [("its config, weights or code", "other", "no run folder says of what")]
    other, name = run.parent / nearest.runs[0], COMPONENTS[stage]
    now, then = (_flat(to_mapping(getattr(folders.read(folder).config, name)), name) for folder in (run, other))
    keys = [key for key in {**now, **then} if now.get(key) != then.get(key)]
    if keys:
        return [(key, now.get(key, "not there"), then.get(key, "not there")) for key in keys]
    made_with = [folders.made_with(folder) for folder in (run, other)]
    for part in (f"weights of the {name}", "version of sqa"):
        if made_with[0].get(part) != made_with[1].get(part):
            return [(part, made_with[0].get(part, "not recorded"), made_with[1].get(part, "not recorded"))]
    return [("its code", "edited, or a raised VERSION", "")]


def _flat(value: Any, at: str) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {key: text for name, part in value.items() for key, text in _flat(part, f"{at}.{name}").items()}
    return {at: str(value)}
