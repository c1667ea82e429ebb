"""The contract of a policy, and policies of your own: `policy: {name: "mine.py:build", patience: 2}`."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from smt.policies.shown import Words
from sqa.core.errors import ConfigError
from sqa.core.own import OwnPart, short
from sqa.core.registry import POLICIES


@runtime_checkable
class Policy(Protocol):
    """The text shown to the reader at each moment."""

    @property
    def start(self) -> int:
        """Source words of the shortest prefix that is translated, >= 1."""

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        """The text shown next.

        `shown` is the text so far, `translations` those of the first `start`, `start` + 1, ... words, newest last; with
        `ended` the newest is of the complete sentence.
        """


def own_policy(part: OwnPart) -> Policy:
    """The policy of your own that the config names; ConfigError for an object without `start` and `show`."""
    policy: Any = POLICIES.build(part.name, part.options)
    if not isinstance(policy, Policy):
        plain = getattr(policy, "own_part", policy)
        lacking = " and ".join(name for name in ("start", "show") if not hasattr(plain, name))
        raise ConfigError(f"policy: {short(part.name)} made a {type(plain).__name__}, which has no {lacking}")
    return policy
