"""The policy selected by a translator's keys `policy`, `k` and `n`: a built-in policy or a user's own."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, cast

from smt.policies.policy import Policy, own_policy
from smt.policies.prefixes import FullInput, PolicyTranslator, Remembered
from smt.policies.waitk import FULL, WaitK
from sqa.core.errors import ConfigError
from sqa.core.own import OwnPart, short
from sqa.core.registry import POLICIES
from sqa.core.schema import parse_k

if TYPE_CHECKING:
    PolicyConfig = str | OwnPart
else:
    PolicyConfig = Literal[tuple(POLICIES.entries)] | OwnPart  # the registry defines the names
# types of a translator's keys `k` and `n`
PolicyK = Annotated[int | str, 'wait-k: source WORDS read before the first target word, or "full" = the whole sentence']
PolicyN = Annotated[
    int | None, "local-agreement: translations that must agree (2); hold, retranslate: number of words held back"
]


class Counted(Protocol):
    """Class of a policy with one number, n; all registered policies except wait-k are such classes."""

    counts: str  # description of what n counts
    least: int  # minimum of n
    usual: int | None  # default of n; None: n is required

    def __call__(self, n: int) -> Policy: ...


def simultaneous(load: Callable[[Any], FullInput], config: Any) -> PolicyTranslator:
    """Return the system that `load` creates, made simultaneous by the `policy`, `k` and `n` of `config`."""
    return PolicyTranslator(remembered(load, replace(config, policy="wait-k", k="full", n=None)), policy_of(config))


@lru_cache(maxsize=4)
def remembered(load: Callable[[Any], FullInput], config: Any) -> Remembered:
    """Return the system of a config without its policy; runs with different policies share it and its translations."""
    return Remembered(load(config))


def policy_of(config: Any) -> Policy:
    """Return the policy given by a config's `policy`, `k` and `n`.  Raises ConfigError for an invalid or unused key."""
    policy: PolicyConfig = config.policy
    k, n = config.k, config.n
    if isinstance(policy, OwnPart):
        if k != "full" or n is not None:
            raise ConfigError(f"policy: {short(policy.name)} takes its own keys inside `policy`, not k or n")
        return own_policy(policy)
    if policy == "wait-k":
        if n is not None:
            raise ConfigError(f"n: wait-k takes only k, got n = {n!r}")
        return WaitK(parse_k(k))
    if policy not in POLICIES.entries:
        raise ConfigError(f"policy: must be one of {', '.join(POLICIES.entries)}, got {policy!r}")
    factory = cast(Counted, POLICIES.resolve(policy))
    if parse_k(k) != FULL:
        raise ConfigError(f"k: {policy} takes n ({factory.counts}), not k, got k = {k!r}")
    n = factory.usual if n is None else n
    if n is None:
        raise ConfigError(f"n: missing; {policy} needs the number of {factory.counts}")
    if not isinstance(n, int) or isinstance(n, bool) or n < factory.least:
        raise ConfigError(f"n: must be >= {factory.least} ({factory.counts}), got {n!r}")
    return factory(n)
