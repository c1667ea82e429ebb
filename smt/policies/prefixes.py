"""When to write what, around any system that translates whole texts: successive prefix translations to emissions.

    policy: wait-k, k: 6             one word after each source word from the 6th on (Ma et al. 2019)
    policy: local-agreement, n: 2    the beginning that the last 2 translations share (LA-n: Liu et al. 2020,
                                     Polák et al. 2022)
    policy: hold, n: 3               the newest translation but for its last 3 words (hold-n: Liu et al. 2020)
    policy: retranslate, n: 0        the newest translation, in place of the one before, but for its last n words
                                     (Niehues et al. 2018; n is the mask-k of Arivazhagan et al. 2020)
    policy: {name: "mine.py:build", ...}    a `Policy` of your own

`policy: {name: wait-k, k: 6}` is the same as the first.  Each is a module of this folder, named in `POLICIES`
(sqa/core/registry.py); smt/policies/chosen.py reads the keys.

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

from smt.policies.full_input import FullInput
from smt.policies.own_policy import Policy
from smt.policies.shown import Words, writes
from sqa.core.errors import DataError
from sqa.core.types import Emission, Question, Write

VERSION = 1  # raise when a policy changes its output
MEMORY = 1 << 18  # texts that a `Remembered` system keeps


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
        self.languages = getattr(system, "languages", None)

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
        self.languages = getattr(system, "languages", None)
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
