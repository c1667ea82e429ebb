"""`sqa config schema` and `sqa config keys`: bundled runs are valid, wrong keys are not, and every key is described."""

import functools
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from tables import tables_of

from sqa.cli.config_keys import KINDS, json_schema, keys_of
from sqa.core import CONFIGS, ROOT, ConfigError
from sqa.files import yaml_reader
from sqa.pipeline import run_from_mapping

TABLES = tables_of(__file__)

SCHEMA = json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
RUN: dict[str, Any] = {"dataset": {"name": "mini-es"}, "translator": {"name": "waitk", "model": "es-en", "k": 3}}


def bundled_runs() -> dict[str, dict[str, Any]]:
    """Return the config of every bundled run, by file and entry."""
    runs = {}
    for path in sorted([*CONFIGS.glob("*.yaml"), *(ROOT / "docs" / "example").glob("*.yaml")]):
        entries = yaml_reader.mapping_in(path.read_bytes(), str(path)).get("entries")
        for config in [path] if entries is None else [Path(f"{path}:{entry}") for entry in entries]:
            mapping = yaml_reader.read_yaml(config)
            if "translator" in mapping and "dataset" in mapping:
                runs[f"{path.stem}:{config.name.rpartition(':')[2]}"] = mapping
    return runs


def test_bundled_runs_are_valid_and_wrong_keys_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "mapping_in", functools.cache(yaml_reader.mapping_in))  # parse each file once
    runs = bundled_runs()
    assert len(runs) > 15 and [name for name in runs if not VALIDATOR.is_valid(runs[name])] == []
    for name, mapping in runs.items():
        mappings = [key for key in ("dataset", "translator", "guesser", "buzzer") if isinstance(mapping.get(key), dict)]
        parts = [key for key in mappings if ":" not in mapping[key]["name"]]  # user parts may have any keys
        for wrong in ({**mapping, "limitt": 3}, *({**mapping, key: {**mapping[key], "modell": "x"}} for key in parts)):
            assert not VALIDATOR.is_valid(wrong), (name, wrong)


FITS = TABLES["fits"]
DOES_NOT = TABLES["does_not"]


@pytest.mark.parametrize(("change", "fits"), [(c, True) for c in FITS] + [(c, False) for c in DOES_NOT])
def test_schema_accepts_what_the_loader_accepts(change: dict[str, Any], fits: bool) -> None:
    assert VALIDATOR.is_valid({**RUN, **change}) == fits
    if not fits:
        with pytest.raises(ConfigError):
            run_from_mapping({"name": "x", **RUN, **change})


# ------------------------------------------------------------------------------------------------ sqa config keys


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_every_part_has_a_description(kind: str) -> None:
    for row in (row for name in KINDS[kind].names() for row in keys_of(kind, name)):
        assert all(row), row
