"""Modules that parts of your own import late, recorded beside the results of a stage: `loaded.json`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from msgspec import convert

from sqa.core.errors import DataError
from sqa.core.own.code import at_work, late, now
from sqa.files.records import parse_json
from sqa.files.store import Stage, Store, digest

LATE = "loaded.json"


def settled(store: Store, stage: Stage) -> Stage:
    """Return the stage whose results are of the code as it is now.

    Modules that parts of your own import late are recorded beside the results (`recording`).  If one is another today,
    the results are of other code, and the stage has another fingerprint.
    """
    while known := recorded(store, stage):
        today = now(known)
        if today == known:
            break
        stage = replace(stage, fingerprint=digest([stage.fingerprint, today]))
    return stage


@contextmanager
def recording(store: Store, stage: Stage) -> Iterator[None]:
    """Record what is imported late while a block is made, before it is written.  Edited meanwhile: DataError."""
    with at_work():
        yield
    known, today = recorded(store, stage), late()
    if edited := [name for name in known if today.get(name, known[name]) != known[name]]:
        raise DataError(f"{edited[0]} was edited while it was at work; run again")
    if today.keys() - known.keys():
        store.backend.write(store.folder(stage) / LATE, json.dumps(known | today, indent=2, sort_keys=True).encode())


def recorded(store: Store, stage: Stage) -> dict[str, str]:
    """Return module -> sha256 (hex) of what parts of your own imported late for a stage in the store."""
    file = store.folder(stage) / LATE
    if not store.backend.exists(file):
        return {}
    try:
        return convert(parse_json(store.backend.read(file)), dict[str, str])
    except ValueError as error:  # msgspec's too
        raise DataError(f"{file}: damaged ({error}); delete its folder and run the config again") from error
