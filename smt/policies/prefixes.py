"""Simultaneous policies around any system that translates whole texts, by translating successive prefixes.

    policy: wait-k, k: 6             one word after each source word from the 6th on (Ma et al. 2019)
    policy: local-agreement, n: 2    the common prefix of the last 2 translations (LA-n: Liu et al. 2020,
                                     Polák et al. 2022)
    policy: hold, n: 3               the newest translation without its last 3 words (hold-n: Liu et al. 2020)
    policy: retranslate, n: 0        the newest translation without its last n words, replacing the previous one
                                     (Niehues et al. 2018; n is the mask-k of Arivazhagan et al. 2020)
    policy: {name: "mine.py:build", ...}    a `Policy` of the user

`POLICIES` (sqa/core/registry.py) names the class of each policy.  `policy_of` reads the keys.  A system is any object
with `words` and `fingerprint`, such as a pretrained model or a command.

After every source word, the prefix read so far is translated again, as an independent text.  A policy is one pure
function, `show`, which maps the text shown so far and the translations so far to the text shown next.  The difference
between the two texts is written.  At the end of the sentence, all held-back words are written.

The first three policies only append.  The system cannot be forced to continue the committed words, so a later
translation may have other words in their place.  The committed words stay, and the translation continues at the same
position: word j follows word j - 1, whichever translation word j - 1 came from.  Only `retranslate` retracts words, and
its final text is the system's full-input translation.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from smt.policies.policy import Policy, Words, own_policy, writes
from smt.policies.waitk import FULL, WaitK
from sqa.core import POLICIES, ConfigError, DataError, Emission, Question, Write, parse_k
from sqa.core.paths import OwnPart, short
from sqa.files import digest


class FullInput(Protocol):
    """A system that translates many whole texts at once, each independently of the others."""

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the target words (without spaces) of each text, in the given order, () for an empty text."""

    def fingerprint(self) -> str:
        """Return a SHA-256 of everything that can change the words."""


VERSION = 1  # increase when a policy changes its output


def written(
    policy: Policy, source: Iterable[str], translation: Callable[[str], Words]
) -> Iterator[tuple[Write, int, bool]]:
    """Yield each write of a sentence, the number of words of `source` read before it, and whether the source had ended.

    `translation` returns the system's translation of a prefix, whose words are joined by spaces.
    """
    shown: Words = ()
    translations: list[Words] = []
    for read, ended in moments(source, policy.start):
        translations.append(translations[-1] if ended and translations else translation(" ".join(read)))
        newest = policy.show(shown, translations, ended)
        yield from ((write, len(read), ended) for write in writes(shown, newest))
        shown = newest


def moments(source: Iterable[str], start: int) -> Iterator[tuple[Words, bool]]:
    """Yield (words read so far, whether the sentence has ended) after each word from the `start`-th on, and at the end.

    Yields nothing for an empty sentence.
    """
    read: Words = ()
    for word in source:
        read = (*read, word)
        if len(read) >= start:
            yield read, False
    if read:
        yield read, True


class PolicyTranslator:
    """A simultaneous translator from any full-input system; streaming and batched modes give the same emissions."""

    def __init__(self, system: FullInput, policy: Policy) -> None:
        self.system, self.policy = system, policy
        self.languages = getattr(system, "languages", None)
        if hasattr(system, "usage"):  # a language model's counts of replies and tokens
            self.usage = system.usage

    def translate(self, source: Iterator[str]) -> Iterator[str | Write]:
        """Yield the words of one sentence while `source` is read, or a `Write` where words are retracted."""
        for write, _, _ in written(self.policy, source, lambda text: words_of(self.system, [text])[text]):
            yield write if write.erase else write.token

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions, with one request to the system for all prefixes of all sentences."""
        sentences = [sentence for question in questions for sentence in question.sentences]
        prefixes = [" ".join(read) for sentence in sentences for read, _ in moments(sentence, self.policy.start)]
        words = words_of(self.system, prefixes)
        return [
            [
                Emission(i, write.token, g, ended, write.erase)
                for i, sentence in enumerate(question.sentences)
                for write, g, ended in written(self.policy, sentence, words.__getitem__)
            ]
            for question in questions
        ]

    def fingerprint(self) -> str:
        """Return a hash of the system and the policy."""
        return digest([VERSION, repr(self.policy), self.system.fingerprint()])


class Remembered:
    """A system that caches its translations, since prefixes recur in other sentences and under other policies."""

    def __init__(self, system: FullInput) -> None:
        self.system = system
        self.languages = getattr(system, "languages", None)
        self._memory: dict[str, Words] = {}
        self._known = ""  # fingerprint of the system that translated the cached texts

    def words(self, texts: Sequence[str]) -> list[Words]:
        """Return the target words of each text."""
        self._memory |= words_of(self.system, [text for text in texts if text not in self._memory])
        return [self._memory[text] for text in texts]

    def fingerprint(self) -> str:
        """Return the system's fingerprint; clear the cache if it changed (a program was edited)."""
        now = self.system.fingerprint()
        if now != self._known:
            self._memory.clear()
            self._known = now
        return now


def words_of(system: FullInput, texts: Sequence[str]) -> dict[str, Words]:
    """Return the target words of each text; each distinct text is translated once.

    Raises DataError if the system returns another number of translations.
    """
    distinct = list(dict.fromkeys(texts))
    translations = system.words(distinct) if distinct else []
    if len(translations) != len(distinct):
        raise DataError(f"the translation system returned {len(translations)} translations for {len(distinct)} texts")
    return dict(zip(distinct, translations, strict=True))


if TYPE_CHECKING:
    PolicyConfig = str | OwnPart
else:
    PolicyConfig = Literal[tuple(POLICIES.entries)] | OwnPart  # the registry defines the names
# types of a translator's keys `k` and `n`
PolicyK = Annotated[int | str, 'wait-k: source WORDS read before the first target word, or "full" = the whole sentence']
PolicyN = Annotated[
    int | None, "local-agreement: translations that must agree (2); hold, retranslate: number of words held back"
]


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
    factory: Any = POLICIES.resolve(policy)  # a class of a policy with one number, n
    if parse_k(k) != FULL:
        raise ConfigError(f"k: {policy} takes n ({factory.counts}), not k, got k = {k!r}")
    n = factory.usual if n is None else n
    if n is None:
        raise ConfigError(f"n: missing; {policy} needs the number of {factory.counts}")
    if not isinstance(n, int) or isinstance(n, bool) or n < factory.least:
        raise ConfigError(f"n: must be >= {factory.least} ({factory.counts}), got {n!r}")
    counted: Policy = factory(n)
    return counted
