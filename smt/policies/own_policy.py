"""The contract of a policy, and policies of your own: `policy: {name: "mine.py:build", patience: 2}`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from smt.policies.shown import Words
from sqa.core import own
from sqa.core.errors import ConfigError
from sqa.core.registry import POLICIES


@runtime_checkable
class Policy(Protocol):
    """What is shown when."""

    @property
    def start(self) -> int:
        """Source words of the shortest prefix whose translation is looked at, >= 1."""
        ...

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        """What the reader sees next.

        `shown` is what he sees now, `translations` those of the first `start`, `start` + 1, ... words, newest last;
        with `ended` the newest is of the complete sentence.
        """
        ...


@dataclass(frozen=True, slots=True, repr=False)
class OwnPolicy:
    """A policy from elsewhere; its `repr`, which fingerprints are made of, is its place, source and config."""

    policy: Policy
    said: str

    @property
    def start(self) -> int:
        return self.policy.start

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        return self.policy.show(shown, translations, ended)

    def __repr__(self) -> str:
        return self.said


def own_policy(part: own.OwnPart) -> OwnPolicy:
    """The policy that a place builds.  One that is none: ConfigError."""
    built = POLICIES.build(part.name, part.options)
    if not isinstance(built, Policy):
        raise ConfigError(f"policy: {own.short(part.name)} made a {type(built).__name__}, which has no start and show")
    source = own.part_digest(POLICIES.target(part.name), built)
    return OwnPolicy(built, f"{own.short(part.name)} {source} {part.options!r}")
