"""Every field of every registered part's config changes the store key or cannot change an output.

The test fails for a field or part that is not declared (tests/stand_ins/declarations.py). The parts are real but tiny,
and are made by tests/stand_ins/keyed_parts.py, which also names their requirements besides files (packages, servers).
"""

import typing
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from stand_ins.declarations import REGISTRIES, TABLE, Options, filled
from stand_ins.keyed_parts import Places

from guessers.bert.guesser import build as build_bert
from guessers.elastic import guesser as elastic
from smt.engines.pretrained import Pretrained
from smt.policies.prefixes import PolicyTranslator
from smt.statistical import pbmt as statistical
from sqa.core import QUALITY, ROOT, ConfigError
from sqa.core.paths import OwnPart
from sqa.metrics.quality import text_model
from sqa.pipeline import ComponentConfig, Reader
from sqa.pipeline.engine import stage_of

PARTS = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.names()]
TRIED = [(*part, field) for part, row in TABLE.items() for field in row.fields]
HARMLESS = [
    (*part, field) for part, row in TABLE.items() for field, (value, _) in row.same.items() if value is not None
]


def class_of(kind: str, name: str) -> type:
    """Return the config class of a part; a policy is its own config."""
    return REGISTRIES[kind].resolve(name) if kind == "policy" else REGISTRIES[kind].config_class(name)


def flat(cls: type, prefix: str = "") -> Iterator[str]:
    """Yield the fields of a config class; fields of nested dataclasses have dotted names."""
    hints = typing.get_type_hints(cls)
    for field in fields(cls):
        hint = hints[field.name]
        inner = [part for part in (hint, *typing.get_args(hint)) if is_dataclass(part) and part is not OwnPart]
        yield from flat(inner[0], f"{prefix}{field.name}.") if inner else [f"{prefix}{field.name}"]


def with_field(options: Options, field: str, value: Any) -> Options:
    first, _, rest = field.partition(".")
    return {**options, first: with_field(options[first], rest, value) if rest else value}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(tmp_path_factory.mktemp("parts"))


@pytest.fixture(autouse=True)
def surroundings(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the decoder, the server, the page texts and the hub model, which the tests neither create nor install."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SQA_TEST_TOKEN", "secret")
    monkeypatch.setenv("SQA_CACHE", str(places.root / "cache"))
    monkeypatch.setattr(statistical, "Engine", lambda *_: None)
    monkeypatch.setattr(elastic.elastic_index, "connect", lambda *_: None)
    monkeypatch.setattr(elastic.elastic_index, "check_server", lambda _: "9.0")
    monkeypatch.setattr(elastic.elastic_index, "check_index", lambda *_: None)
    monkeypatch.setattr(elastic.elastic_index, "explained", lambda *_: nullcontext())
    find_model = text_model.find_model
    monkeypatch.setattr(
        text_model, "find_model", lambda name, *more: find_model(places.path("lm") if "/" not in name else name, *more)
    )


class System:
    """A replacement for any full-input system."""

    def fingerprint(self) -> str:
        return "system"


def config_of(kind: str, name: str, options: Options, places: Places) -> Any:
    reader = Reader()
    config = reader.record(class_of(kind, name), filled(options, places), "")
    assert not reader.problems, reader.problems
    return config


def part_of(kind: str, name: str, config: Any) -> Any:
    """Return the part, or the policy around a system; skip the test if the part needs a missing package."""
    try:
        return PolicyTranslator(System(), config) if kind == "policy" else REGISTRIES[kind].build(name, config)
    except ConfigError as error:
        if "needs the " in str(error):
            pytest.skip(str(error))
        raise


def key_of(kind: str, name: str, options: Options, places: Places) -> str:
    """Return the store key of a part's stage; for a policy or a quality metric, the text that identifies it."""
    config = config_of(kind, name, options, places)
    built = part_of(kind, name, config)
    if kind == "policy":
        return built.fingerprint()
    if kind == "quality metric":
        return f"{built.signature()} {built.fingerprint()}"
    return stage_of("stage", REGISTRIES[kind], ComponentConfig(name, config), built, (), "questions").key


def test_every_field_of_every_registered_part_is_listed():
    assert set(TABLE) == set(PARTS)
    for part, row in TABLE.items():
        assert (part, sorted([*row.fields, *row.same])) == (part, sorted(flat(class_of(*part))))


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_rebuilt_part_has_the_same_key(kind, name, places):
    first, second = (key_of(kind, name, TABLE[kind, name].made, places) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("kind", "name", "field"), TRIED)
def test_changed_value_changes_the_key(kind, name, field, places):
    row = TABLE[kind, name]
    before, after = row.pairs.get(field) or ({}, with_field(row.made, field, row.changes[field]))
    assert key_of(kind, name, {**row.made, **before}, places) != key_of(kind, name, {**row.made, **after}, places)


@pytest.mark.parametrize(("kind", "name", "field"), HARMLESS)
def test_fields_without_effect_keep_the_key(kind, name, field, places):
    row = TABLE[kind, name]
    other = with_field(row.made, field, row.same[field][0])
    assert key_of(kind, name, row.made, places) == key_of(kind, name, other, places)


@pytest.mark.parametrize("name", QUALITY.names())
def test_text_metric_is_named_as_in_its_config(name, places):
    config = config_of("quality metric", name, {**TABLE["quality metric", name].made, "name": "mine"}, places)
    built = part_of("quality metric", name, config)
    assert built.name == "mine" and built.signature().startswith(
        ("mine|" if name in ("external", "scores") else f"{name}|") + "segment:"
    )


def test_other_device_changes_the_key(places, monkeypatch):
    for kind, name, build in (("guesser", "bert", build_bert), ("translator", "pretrained", Pretrained)):
        built = [build(config_of(kind, name, TABLE[kind, name].made, places)) for _ in range(2)]
        (built[1] if name == "pretrained" else built[1].encoder).device = "cuda"
        assert built[0].fingerprint() != built[1].fingerprint(), name
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    local = [
        {"endpoint": None, "local": {"base": "@lm", "device": device, "dtype": "float32"}}
        for device in ("cpu", "cuda", "auto")
    ]
    on_cpu, on_gpu, of_choice = (key_of("guesser", "llm", options, places) for options in local)
    assert on_cpu != on_gpu == of_choice
