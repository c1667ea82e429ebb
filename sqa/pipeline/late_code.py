"""Files that parts of your own load while they run, recorded beside their results (sqa/core/own/code.py)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from msgspec import ValidationError, convert

from sqa.core.errors import DataError
from sqa.core.own.code import Code, Load
from sqa.files.records import parse_json
from sqa.files.store import Stage, Store, digest


def settled(store: Store, stage: Stage, codes: Sequence[Code]) -> Stage:
    """The stage whose results are those of the code as it is now.

    The files that parts of your own load while they run are recorded beside the results (`record`).  If they
    would load other files now, the results are of other code, and the stage has another fingerprint.
    """
    while codes and (recorded := _recorded(store, stage)):
        now = [(code.label, code.now(recorded.get(code.label, []))) for code in codes]
        if all(hashes == [load.sha256 for load in recorded.get(label, [])] for label, hashes in now):
            for code in codes:
                code.assumed = tuple(recorded.get(code.label, ()))
            return stage
        stage = replace(stage, fingerprint=digest([stage.fingerprint, sorted(now)]))
    return stage


def record(store: Store, stage: Stage, codes: Sequence[Code]) -> None:
    """Record the files that were loaded late, before the results are written.  Edited meanwhile: DataError."""
    late = {code.label: code.late for code in codes if code.late}
    if not late:
        return
    before = _recorded(store, stage)
    after = {label: list(dict.fromkeys([*before.get(label, []), *late.get(label, [])])) for label in {*before, *late}}
    for label, loads in after.items():
        hashes: dict[Load, str] = {}
        for load in loads:
            if hashes.setdefault(replace(load, sha256=""), load.sha256) != load.sha256:
                file = load.module or load.file
                raise DataError(f"{label.partition(' ')[0]}: {file} was edited while it was at work; run again")
    if after != before:
        rows = {label: [asdict(load) for load in after[label]] for label in sorted(after)}
        store.backend.write(_file(store, stage), (json.dumps(rows, indent=2) + "\n").encode())


def late_parts(store: Store, stage: Stage) -> dict[str, str]:
    """File that was loaded late -> sha256 (hex), of a stage in the store."""
    loads = (load for loads in _recorded(store, stage).values() for load in loads)
    return {f"code of {load.module or load.file}": load.sha256 for load in loads}


def _recorded(store: Store, stage: Stage) -> dict[str, list[Load]]:
    """The recorded late loads by label."""
    file = _file(store, stage)
    if not store.backend.exists(file):
        return {}
    try:
        return convert(parse_json(store.backend.read(file)), dict[str, list[Load]])
    except (ValueError, ValidationError) as error:
        raise DataError(f"{file}: damaged ({error}); delete its folder and run the config again") from error


def _file(store: Store, stage: Stage) -> Path:
    return store.folder(stage) / "loaded.json"
