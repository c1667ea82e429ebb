"""When to write what, around any system that translates whole texts: successive prefix translations to emissions.

    policy: wait-k, k: 6             one word after each source word from the 6th on (Ma et al. 2019)
    policy: local-agreement, n: 2    the beginning that the last 2 translations share (LA-n: Liu et al. 2020,
                                     Polák et al. 2022)
    policy: hold, n: 3               the newest translation but for its last 3 words (hold-n: Liu et al. 2020)
    policy: retranslate, n: 0        the newest translation, in place of the one before, but for its last n words
                                     (Niehues et al. 2018; n is the mask-k of Arivazhagan et al. 2020)
    policy: {name: "mine.py:build", ...}    a `Policy` of your own

`policy: {name: wait-k, k: 6}` is the same as the first.

After every source word the prefix read so far is translated anew, as a text of its own.  A policy is one pure
function, `show`: what the reader has before him, and the translations so far, give what he has before him next.  The
difference of the two is what is written.  At the end of the sentence nothing is held back any more.

The first three only append.  The system cannot be made to go on from what was committed, so a later translation may
have other words there; the committed ones stay, and the translation is taken up at the same place (word j follows
word j - 1, whichever translation that came from).  Only `retranslate` retracts, and its final text is the system's
full-input translation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from smt.policies.full_input import FullInput
from smt.policies.own_policy import Policy, Words, own_policy
from smt.policies.waitk import FULL, parse_k
from sqa.core.errors import ConfigError, DataError
from sqa.core.own import OwnPart, short
from sqa.core.types import Emission, Question, Write

VERSION = 1  # raise when a policy changes its output
MEMORY = 1 << 18  # texts that a `Remembered` system keeps

PolicyConfig = Literal["wait-k", "local-agreement", "hold", "retranslate"] | OwnPart


@dataclass(frozen=True, slots=True)
class WaitK:
    """Prefix wait-k: one more word of the newest translation (none where it has no more) after each read from k on."""

    k: int  # source words, >= 1; FULL = all of them

    @property
    def start(self) -> int:
        return self.k

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        newest = translations[-1]
        return append(shown, newest if ended else newest[: len(shown) + 1])


@dataclass(frozen=True, slots=True)
class LocalAgreement:
    """LA-n: the longest common beginning of the last n translations."""

    n: int  # translations that must agree, >= 2
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        if ended:
            return append(shown, translations[-1])
        return append(shown, agreed(translations[-self.n :])) if len(translations) >= self.n else shown


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold-n: the newest translation without its last n words."""

    n: int  # words held back, >= 0
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        return append(shown, translations[-1] if ended else _without_last(translations[-1], self.n))


@dataclass(frozen=True, slots=True)
class Retranslate:
    """Re-translation: the newest translation replaces the one before."""

    n: int = 0  # words at its end not shown before the sentence has ended, >= 0
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        return translations[-1] if ended else _without_last(translations[-1], self.n)


def append(shown: Words, words: Words) -> Words:
    """`shown`, and what `words` has beyond that many words."""
    return shown + words[len(shown) :]


def agreed(translations: Sequence[Words]) -> Words:
    """The longest common beginning."""
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*translations, strict=False))
    return tuple(column[0] for column in columns)


def _without_last(words: Words, n: int) -> Words:
    return words[: max(0, len(words) - n)]


def writes(before: Words, after: Words) -> list[Write]:
    """What has to be written so that a reader of `before` sees `after`; the common beginning stays untouched.

    The first write retracts what must go.  If nothing takes its place that write has no word.
    """
    kept = len(agreed([before, after]))
    new, erase = after[kept:], len(before) - kept
    if not new:
        return [Write("", erase)] if erase else []
    return [Write(new[0], erase), *map(Write, new[1:])]


def emissions(
    policy: Policy, sentence: int, size: int, translations: Sequence[Words], complete: Words
) -> list[Emission]:
    """The emissions of sentence number `sentence`, of `size` source words.

    `translations` are those of its first policy.start, policy.start + 1, ..., size words (none if it is shorter),
    `complete` that of the complete sentence.
    """
    found: list[Emission] = []
    shown: Words = ()
    moments = [(g, translations[: g - policy.start + 1], False) for g in range(policy.start, size + 1)]
    for g, seen, ended in [*moments, (size, [*translations, complete], True)]:
        now = policy.show(shown, seen, ended)
        found += [Emission(sentence, write.token, g, ended, write.erase) for write in writes(shown, now)]
        shown = now
    return found


class PolicyTranslator:
    """Any full-input system as a simultaneous translator; streaming and batched give the same emissions."""

    def __init__(self, system: FullInput, policy: Policy) -> None:
        self.system, self.policy = system, policy

    def translate(self, source: Iterator[str]) -> Iterator[str | Write]:
        """Words of one sentence, written while `source` is read; a `Write` where words are retracted."""
        read: list[str] = []
        translations: list[Words] = []
        shown: Words = ()
        for word in source:
            read.append(word)
            if len(read) >= self.policy.start:
                translations.append(self._words(read))
                now = self.policy.show(shown, translations, False)
                yield from _as_words(writes(shown, now))
                shown = now
        if read:
            complete = translations[-1] if translations else self._words(read)  # the same text, so the same words
            yield from _as_words(writes(shown, self.policy.show(shown, [*translations, complete], True)))

    def _words(self, read: Sequence[str]) -> Words:
        [words] = words_of(self.system, [" ".join(read)]).values()
        return words

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Emissions of whole questions; the system is asked once, for all prefixes of all sentences."""
        sentences = [sentence for question in questions for sentence in question.sentences]
        known = words_of(self.system, [text for sentence in sentences for text in self._prefixes(sentence)])
        return [
            [e for i, sentence in enumerate(question.sentences) for e in self._emissions(i, sentence, known)]
            for question in questions
        ]

    def _prefixes(self, sentence: Sequence[str]) -> list[str]:
        """The texts to translate: all prefixes that the policy looks at, the complete sentence last."""
        first = min(self.policy.start, len(sentence))
        return [" ".join(sentence[:n]) for n in range(first, len(sentence) + 1)]

    def _emissions(self, index: int, sentence: Sequence[str], known: dict[str, Words]) -> list[Emission]:
        *_, complete = translations = [known[text] for text in self._prefixes(sentence)]
        looked_at = translations if len(sentence) >= self.policy.start else []
        return emissions(self.policy, index, len(sentence), looked_at, complete)

    def fingerprint(self) -> str:
        """Hash of the system and the policy."""
        return hashlib.sha256(f"{VERSION} {self.policy!r} {self.system.fingerprint()}".encode()).hexdigest()


def _as_words(found: Sequence[Write]) -> Iterator[str | Write]:
    yield from (write if write.erase else write.token for write in found)


class Remembered:
    """A system that is not asked for the same text again, as long as the text is among the last `limit`.

    Prefixes recur: between sentences, and between policies that share the system.
    """

    def __init__(self, system: FullInput, limit: int = MEMORY) -> None:
        self.system, self.limit = system, limit
        self._known: dict[str, Words] = {}  # oldest first

    def words(self, texts: Sequence[str]) -> list[Words]:
        """Target words of each text."""
        new = words_of(self.system, [text for text in texts if text not in self._known])
        answers = [new[text] if text in new else self._known[text] for text in texts]
        self._known |= new
        for text in list(self._known)[: max(0, len(self._known) - self.limit)]:
            del self._known[text]
        return answers

    def fingerprint(self) -> str:
        """That of the system."""
        return self.system.fingerprint()


def words_of(system: FullInput, texts: Sequence[str]) -> dict[str, Words]:
    """text -> target words, each distinct text asked for once.  Another number of answers than texts: DataError."""
    distinct = list(dict.fromkeys(texts))
    answers = system.words(distinct) if distinct else []
    if len(answers) != len(distinct):
        raise DataError(f"the translation system gave {len(answers)} translations for {len(distinct)} texts")
    return dict(zip(distinct, answers, strict=True))


def parse_policy(policy: PolicyConfig, k: int | str = "full", n: int | None = None) -> Policy:
    """The policy of a config's keys `policy`, `k` and `n`.  A key that is missing, wrong or of no use: ConfigError."""
    if isinstance(policy, OwnPart):
        if k != "full" or n is not None:
            raise ConfigError(f"policy: {short(policy.name)} takes its own keys, inside `policy`, not k or n")
        return own_policy(policy)
    if policy == "wait-k":
        if n is not None:
            raise ConfigError(f"n: wait-k takes k only, got n = {n!r}")
        return WaitK(parse_k(k))
    if policy not in _COUNTED:
        raise ConfigError(f"policy: must be wait-k, {', '.join(_COUNTED)}, got {policy!r}")
    make, least, usual, what = _COUNTED[policy]
    if parse_k(k) != FULL:
        raise ConfigError(f"k: {policy} takes n ({what}), not k, got k = {k!r}")
    n = usual if n is None else n
    if n is None:
        raise ConfigError(f"n: missing; {policy} needs the number of {what}")
    if not isinstance(n, int) or isinstance(n, bool) or n < least:
        raise ConfigError(f"n: must be >= {least} ({what}), got {n!r}")
    return make(n)


# policy -> class, least n, n where none is given (None: it must be), what n counts
_COUNTED: dict[str, tuple[type[LocalAgreement] | type[Hold] | type[Retranslate], int, int | None, str]] = {
    "local-agreement": (LocalAgreement, 2, 2, "successive translations that must agree"),
    "hold": (Hold, 0, None, "words held back"),
    "retranslate": (Retranslate, 0, 0, "words held back"),
}
