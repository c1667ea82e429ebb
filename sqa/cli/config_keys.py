"""The keys of a part's config as a table, from the dataclass that the loader reads and its annotations."""

import json

from sqa.core import schema
from sqa.core.errors import ConfigError
from sqa.core.registry import BUZZERS, GUESSERS, POLICIES, QUALITY, TRANSLATORS, did_you_mean
from sqa.core.schema import describe
from sqa.metrics import all_names

KINDS = {"translator": TRANSLATORS, "guesser": GUESSERS, "buzzer": BUZZERS, "quality": QUALITY, "policy": POLICIES}


Row = tuple[str, str, str, str]  # key, type, default ("required" if there is none), meaning


def keys_of(kind: str, name: str) -> list[Row]:
    """Return the keys of a part, in the order of its dataclass; raises ConfigError for an unknown kind or name."""
    if kind == "metric":
        every = all_names()
        variants = [each for each in every if each.partition("@")[0] == name.partition("@")[0]] or every
        raise ConfigError(f"a metric has no keys: `metrics:` is a list of names, such as {', '.join(variants)}")
    if kind not in KINDS:
        raise ConfigError(f"unknown kind {kind!r}{did_you_mean(kind, KINDS)}; known: {', '.join(KINDS)}")
    shown = schema.keys(KINDS[kind].config_class(name)).values()
    return [
        (key.name, describe(key.hint), _default(key), key.help)
        for key in shown
        if kind != "policy" or ":" in name or key.name in ("k", "n")
    ]


def _default(key: schema.Key) -> str:
    if key.required:
        return "required"
    return key.default if isinstance(key.default, str) and key.default else json.dumps(key.default, default=str)
