"""Every field of every registered part's config: another value gives another store key, or cannot change an output.

A field that is in neither list fails, so does a part that has no entry.  The parts are real ones of toy size (made by
tests/stand_ins/keyed_parts.py); what they need beside files (packages, servers) is named there.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from stand_ins.keyed_parts import Places

from guessers.bert.guesser import build as build_bert
from guessers.e5 import guesser as e5
from guessers.elastic import guesser as elastic
from smt.engines.pretrained import Pretrained
from smt.policies.prefixes import PolicyTranslator
from smt.statistical import translator as statistical
from sqa.core.errors import ConfigError
from sqa.core.paths import ROOT
from sqa.core.places import OwnPart
from sqa.core.registry import BUZZERS, GUESSERS, POLICIES, QUALITY, TRANSLATORS
from sqa.files.yaml_reader import Reader
from sqa.metrics.quality import bertscore
from sqa.run.config import SPECIAL, ComponentConfig
from sqa.run.pipeline import stage_of

Options = Mapping[str, Any]
Guessers = tuple[ComponentConfig, ...]
REGISTRIES = {registry.kind: registry for registry in (TRANSLATORS, GUESSERS, BUZZERS, POLICIES, QUALITY)}

AT_ONCE = "how much is computed at a time; the fast path's own test compares the words or scores"
FETCHED = "the files that are found are hashed"
WAITING = "how long and how often is asked, not what"
RENAMED = "a name in the report"
ELSEWHERE = "needs a GPU"  # so the field is not tried, see the last test

POLICY = {"policy": "local-agreement", "k": 3, "n": ({"policy": "hold", "n": 1}, {"policy": "hold", "n": 2})}
HELD = {"start": 2}
WEIGHTS = {"retrieval": 1.0, "likelihood": 1.0, "prior": 1.0, "none": 1.0}
LEARNT = {"model": "gru", "threshold": 0.123}
ONE_RULE = {"end": ("answer", "no bundled buzzer of this kind has a threshold of its own for either rule")}
# (kind, name) -> options that it is made with; field -> another value, or two sets of options that differ in it alone.
# "@x" is the place x of tests/stand_ins/keyed_parts.py.
CHANGES: dict[tuple[str, str], tuple[Options, Options]] = {
    ("translator", "waitk"): ({"model": "@ours"}, {
        "model": "@ours-2", "k": 3, "emission_rate": 0.9, "unit": "piece", "beam": 2, "copy_bonus": 2.0,
        "look_ahead": ({"beam": 2}, {"beam": 2, "look_ahead": 3}),
    }),
    ("translator", "prefix"): ({"model": "@ours"}, {"model": "@ours-2", "beam": 2, **POLICY}),
    ("translator", "causal-lm"): ({"model": "@adapter", "precision": "float32"}, {
        "model": "@adapter-2", "base": "@lm-2", "beam": 2, "bidirectional": True, "copy_bonus": 2.0,
        "precision": "bfloat16", **POLICY, "emission_rate": ({"k": 2}, {"k": 2, "emission_rate": 1.2}),
        "source_language": ({"model": "@lm", "source_language": "es"}, {"model": "@lm", "source_language": "pl"}),
        "target_language": ({"model": "@lm", "source_language": "es"},
                            {"model": "@lm", "source_language": "es", "target_language": "de"}),
    }),
    ("translator", "command"): ({"command": ["cat"]}, {
        "command": ["cat", "-u"], "blank_lines": 0, "separator": ".", **POLICY,
    }),
    ("translator", "pretrained"): ({"model": "@nllb", "source_language": "spa_Latn", "target_language": "eng_Latn"}, {
        "model": "@nllb-2", "source_language": "pol_Latn", "target_language": "deu_Latn", "beams": 2,
        "max_new_tokens": 20, **POLICY,
    }),
    ("translator", "ctranslate2"): ({"folder": "@ctranslate"}, {
        "folder": "@ctranslate-2", "source_language": "es", "target_language": "en", "beams": 2, "max_new_tokens": 20,
        "compute_type": "int8", **POLICY,
    }),
    ("translator", "pbmt"): ({"model": "@pbmt"}, {"model": "@pbmt-2", **POLICY}),
    ("translator", "moses"): ({}, {
        "url": "http://h/RPC2", "tokenize": "none", "source_language": "pl", "target_language": "de", "system": "v2",
        **POLICY,
    }),
    ("translator", "simuleval"): ({"agent": "services/tests/simuleval_copier.py:W"}, {
        "agent": "@agent.py:Other", "args": ["--output", "elsewhere"],
    }),
    ("translator", "simuleval_service"): ({}, {"url": "http://h:1", "label": "v2"}),
    ("translator", "recorded"): ({"file": "@log"}, {
        "file": "@log-2", "format": ({"file": "@log"}, {"file": "@tsv", "format": "tsv"}), "unit": "question",
    }),
    ("translator", "fixed"): ({}, {"text": "source", "reveal": "diagonal", "unit": "question"}),
    ("guesser", "bm25"): ({"model": "@bm25"}, {
        "model": "@bm25-2", "k1": 0.7, "b": 0.8, "pair_boost": 0.6, "similarity": "lucene",
    }),
    ("guesser", "tfidf"): ({"model": "@bm25"}, {"model": "@bm25-2", "b": 0.8, "pair_boost": 0.6}),
    ("guesser", "gru"): ({"model": "@gru"}, {"model": "@gru-2", "temperature": 2.0}),
    ("guesser", "bert"): ({"model": "@bert"}, {"model": "@bert-2", "temperature": 2.0, "precision": "bfloat16"}),
    ("guesser", "rerank"): ({"model": "@rerank"}, {"model": "@rerank-2"}),
    ("guesser", "fusion"): ({"guessers": [{"name": "bm25", "model": "@bm25"}]}, {
        "model": tuple({"guessers": [], "model": model} for model in ("@fusion", "@fusion-2")), "constant": 4.0,
        "guessers": [{"name": "bm25", "model": "@bm25", "b": 0.8}],
    }),
    ("guesser", "elasticsearch"): ({"model": "@bm25"}, {"model": "@bm25-2", "k1": 1.9, "b": 0.7}),
    ("guesser", "e5"): ({"pages": "one"}, {"pages": "two", "every": 5, "temperature": 0.03}),
    ("guesser", "llm"): ({"endpoint": {"base_url": "http://h/v1", "model": "m"}}, {
        "reply": "title", "every": 4, "guesses": 9, "pages": "@titles.txt", "prompt": "{text}?",
        **{f"endpoint.{key}": value for key, value in {
            "base_url": "http://g/v1", "model": "n", "label": "v2", "max_tokens": 500, "temperature": 0.5, "seed": 1,
            "token_limit": "max_completion_tokens", "json_mode": True}.items()},
        **{f"local.{key}": ({"endpoint": None, "local": {"folder": "@lm"}},
                            {"endpoint": None, "local": {"folder": "@lm", key: value}})
           for key, value in {"folder": "@lm-2", "max_tokens": 500, "dtype": "bfloat16"}.items()},
        **{f"base.{key}": ({"endpoint": None, "base": BASE}, {"endpoint": None, "base": BASE | {key: value}})
           for BASE in [{"base": "@lm", "retrieval": "@bm25", "precision": "float32"}]
           for key, value in {"base": "@lm-2", "answers": "free", "retrieval": "@bm25-2", "candidates": 14,
                              "precision": "bfloat16"}.items()},
        "base.max_tokens": tuple({"endpoint": None, "base": {"base": "@lm", "answers": "free", "max_tokens": n}}
                                 for n in (16, 15)),
        **{f"base.weights.{key}": tuple({"endpoint": None, "base": {"base": "@lm", "retrieval": "@bm25",
                                                                    "weights": WEIGHTS | {key: value}}}
                                        for value in (0.5, 0.25)) for key in WEIGHTS},
    }),
    ("guesser", "listener"): ({"reader": "lm", "base": "@lm"}, {"reader": "rules", "base": "@lm-2"}),
    ("guesser", "person"): ({"file": "@person"}, {"file": "@person-2"}),
    ("guesser", "qanta_service"): ({}, {"url": "http://h:1", "label": "v2"}),
    ("buzzer", "threshold"): ({}, {
        "threshold": 0.3, "signal": "margin", "model": ({"model": "bm25"}, {"model": "gru"}),
    }),
    ("buzzer", "logistic"): ({}, LEARNT),
    ("buzzer", "mlp"): ({}, {
        **LEARNT, "end": tuple({"model": "bm25-translated", "end": end} for end in ("silent", "answer")),
    }),
    ("buzzer", "recurrent"): ({}, LEARNT),
    ("buzzer", "oracle"): ({}, {}),
    ("buzzer", "person"): ({}, {}),
    ("buzzer", "qanta_service"): ({}, {}),
    ("policy", "wait-k"): ({"k": 2}, {"k": 3}),
    ("policy", "hold"): ({"n": 2}, {"n": 3, **HELD}),
    ("policy", "local-agreement"): ({"n": 2}, {"n": 3, **HELD}),
    ("policy", "retranslate"): ({"n": 2}, {"n": 3, **HELD}),
    ("quality metric", "comet"): ({"model": "@comet"}, {"model": "@comet-2", "encoder": "@bert"}),
    ("quality metric", "bertscore"): ({"model": "roberta-large", "layer": 1, "revision": "v1"}, {
        "model": "@lm", "layer": 2, "baseline": True,
    }),
    ("quality metric", "bleurt"): ({"model": "@bleurt"}, {"model": "@bleurt-2"}),
    ("quality metric", "external"): ({"command": ["cat"]}, {"command": ["rev"], "name": "mine"}),
    ("quality metric", "scores"): ({"file": "@titles.txt"}, {"made_by": "somebody", "name": "mine"}),
}  # fmt: skip
# Fields that cannot change an output: another value (the key must stay), and why.
MODEL_FIELDS = {"revision": ("main", FETCHED), "download": (True, FETCHED)}
QUALITY_FIELDS = {**MODEL_FIELDS, "name": ("mine", RENAMED), "batch_size": (3, AT_ONCE), "device": (None, ELSEWHERE)}
ASKING = {"timeout": (9.0, WAITING), "token_env": ("SQA_TEST_TOKEN", "who asks")}
SAME: dict[tuple[str, str], Mapping[str, tuple[Any, str]]] = {
    ("translator", "causal-lm"): MODEL_FIELDS,
    ("translator", "pretrained"): {**MODEL_FIELDS, "batch_tokens": (99, AT_ONCE), "device": (None, ELSEWHERE)},
    ("translator", "ctranslate2"): {
        "batch_tokens": (99, AT_ONCE), "threads": (1, AT_ONCE), "device": (None, ELSEWHERE),
    },
    ("translator", "moses"): {"timeout": ASKING["timeout"]},
    ("translator", "simuleval_service"): ASKING,
    ("guesser", "bert"): {
        **MODEL_FIELDS, "batch_tokens": (99, AT_ONCE), "device": (None, ELSEWHERE),
        "encoder": ("@encoder-copy", "one with other weights is refused"),
    },
    ("guesser", "elasticsearch"): {
        "index": ("other", "its texts and settings must be the same"), "url": ("http://h:1", "its version is hashed"),
        "batch": (9, AT_ONCE), "timeout": ASKING["timeout"], "retries": (9, WAITING),
    },
    ("buzzer", "logistic"): ONE_RULE,
    ("buzzer", "recurrent"): ONE_RULE,
    ("guesser", "llm"): {
        "max_requests": (9, WAITING), "cache": ("@titles.txt", "replies are kept under what decides them"),
        "cache_mb": (9, "the same"), "prices": ([1.0, 2.0], "for the estimate"),
        "local.device": (None, ELSEWHERE),
        **{f"endpoint.{key}": (value, WAITING) for key, value in {
            "api_key_env": "SQA_TEST_TOKEN", "requests_per_minute": 9.0, "concurrency": 9, "timeout": 9.0, "retries": 9,
            "backoff": 9.0}.items()},
    },
    ("guesser", "qanta_service"): {**ASKING, "retries": (9, WAITING), "ready": (9.0, WAITING)},
    ("quality metric", "comet"): {**QUALITY_FIELDS, "encoder_revision": ("main", FETCHED)},
    ("quality metric", "bertscore"): QUALITY_FIELDS,
    ("quality metric", "bleurt"): QUALITY_FIELDS,
    ("quality metric", "external"): {
        "timeout": ASKING["timeout"], "start_timeout": (9.0, WAITING),
        "eval_lines": ("each", "how the sum of statistics is asked for"), "higher_is_better": (False, RENAMED),
    },
    ("quality metric", "scores"): {
        "file": ("@log", "no statistics of a file are kept"), "higher_is_better": (False, RENAMED),
    },
}  # fmt: skip


PARTS = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.names()]
TRIED = [(*part, field) for part in CHANGES for field in CHANGES[part][1]]
HARMLESS = [(*part, field) for part in SAME for field, (value, _) in SAME[part].items() if value is not None]


def class_of(kind: str, name: str) -> type:
    """A policy is its own config."""
    return REGISTRIES[kind].resolve(name) if kind == "policy" else REGISTRIES[kind].config_class(name)


def flat(cls: type, prefix: str = "") -> Iterator[str]:
    """The fields of a config class, those of dataclasses in it by dotted names."""
    hints = typing.get_type_hints(cls)
    for field in fields(cls):
        hint = hints[field.name]
        inner = [part for part in (hint, *typing.get_args(hint)) if is_dataclass(part) and hint != Guessers]
        inner = [part for part in inner if part is not OwnPart]
        yield from flat(inner[0], f"{prefix}{field.name}.") if inner else [f"{prefix}{field.name}"]


def with_field(options: Options, field: str, value: Any) -> Options:
    first, _, rest = field.partition(".")
    return {**options, first: with_field(options[first], rest, value) if rest else value}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(tmp_path_factory.mktemp("parts"))


@pytest.fixture(autouse=True)
def surroundings(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is neither made nor installed: a decoder, a server, the texts of pages, a model by the name of a hub's."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SQA_TEST_TOKEN", "secret")
    monkeypatch.setenv("SQA_CACHE", str(places.root / "cache"))
    monkeypatch.setattr(statistical, "Engine", lambda *_: None)
    monkeypatch.setattr(elastic.elastic_index, "connect", lambda *_: None)
    monkeypatch.setattr(elastic.elastic_index, "check_server", lambda _: "9.0")
    monkeypatch.setattr(elastic.elastic_index, "check_index", lambda *_: None)
    monkeypatch.setattr(elastic.elastic_index, "explained", lambda *_: nullcontext())
    monkeypatch.setattr(e5, "page_texts", lambda pages: {"Lima": pages})
    found = bertscore.find_model
    monkeypatch.setattr(
        bertscore, "find_model", lambda name, *more: found(places.path("lm") if "/" not in name else name, *more)
    )


def filled(value: Any, places: Places) -> Any:
    """The same with the places' paths."""
    if isinstance(value, Mapping):
        return {key: filled(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, places) for item in value]
    if isinstance(value, str) and value.startswith("@"):
        place, colon, attribute = value[1:].partition(":")
        return f"{places.path(place)}{colon}{attribute}"
    return value


class System:
    """Stands for any full-input system."""

    def fingerprint(self) -> str:
        return "system"


def config_of(kind: str, name: str, options: Options, places: Places) -> Any:
    problems: list[str] = []
    config = Reader(problems, SPECIAL).dataclass(class_of(kind, name), filled(options, places), "")
    assert not problems, problems
    return config


def part_of(kind: str, name: str, config: Any) -> Any:
    """The part, or the policy around a system; skips where its package is missing."""
    try:
        return PolicyTranslator(System(), config) if kind == "policy" else REGISTRIES[kind].build(name, config)
    except ConfigError as error:
        if "needs the " in str(error):
            pytest.skip(str(error))
        raise


def key_of(kind: str, name: str, options: Options, places: Places) -> str:
    """The key of the stage that a part makes; of a metric of texts all that says which number it gives."""
    config = config_of(kind, name, options, places)
    built = part_of(kind, name, config)
    if kind == "policy":
        return built.fingerprint()
    if kind == "quality metric":
        return f"{built.signature()} {built.fingerprint()}"
    return stage_of("stage", REGISTRIES[kind], ComponentConfig(name, config), built, (), "questions").key


def test_every_field_of_every_registered_part_is_here():
    assert set(CHANGES) == set(PARTS) and set(SAME) <= set(PARTS)
    for part in PARTS:
        changed, same = set(CHANGES[part][1]), set(SAME.get(part, ()))
        assert (part, changed | same) == (part, set(flat(class_of(*part)))) and not changed & same


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_a_part_that_is_built_again_has_the_same_key(kind, name, places):
    assert key_of(kind, name, CHANGES[kind, name][0], places) == key_of(kind, name, CHANGES[kind, name][0], places)


@pytest.mark.parametrize(("kind", "name", "field"), TRIED)
def test_another_value_gives_another_key(kind, name, field, places):
    options, changes = CHANGES[kind, name]
    change = changes[field]
    before, after = change if isinstance(change, tuple) else ({}, with_field(options, field, change))
    assert key_of(kind, name, {**options, **before}, places) != key_of(kind, name, {**options, **after}, places)


@pytest.mark.parametrize(("kind", "name", "field"), HARMLESS)
def test_what_cannot_change_an_output_changes_no_key(kind, name, field, places):
    options, value = CHANGES[kind, name][0], SAME[kind, name][field][0]
    assert key_of(kind, name, options, places) == key_of(kind, name, with_field(options, field, value), places)


@pytest.mark.parametrize("name", QUALITY.names())
def test_a_metric_of_texts_is_called_as_its_config_says(name, places):
    config = config_of("quality metric", name, {**CHANGES["quality metric", name][0], "name": "mine"}, places)
    built = part_of("quality metric", name, config)
    assert built.name == "mine" and built.signature().startswith(
        ("mine|" if name in ("external", "scores") else f"{name}|") + "segment:question|"
    )


def test_another_processor_gives_another_key(places, monkeypatch):
    for kind, name, build in (("guesser", "bert", build_bert), ("translator", "pretrained", Pretrained)):
        built = [build(config_of(kind, name, CHANGES[kind, name][0], places)) for _ in range(2)]
        (built[1] if name == "pretrained" else built[1].encoder).device = "cuda"
        assert built[0].fingerprint() != built[1].fingerprint(), name
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    local = [{"endpoint": None, "local": {"folder": "@lm", "device": device}} for device in ("cpu", "cuda", "auto")]
    on_cpu, on_gpu, of_choice = (key_of("guesser", "llm", options, places) for options in local)
    assert on_cpu != on_gpu == of_choice
