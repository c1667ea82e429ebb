"""Policies on short translations that can be checked by hand, and with a system that revises its output."""

import subprocess
import sys
import zlib
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from doubles import question
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tables import tables_of

from smt.policies.policy import Hold, LocalAgreement, Retranslate, agreed, writes
from smt.policies.prefixes import PolicyTranslator, Remembered, policy_of, written
from smt.policies.waitk import FULL, WaitK
from sqa.core import ROOT, ConfigError, DataError, Emission, Write, check_emissions, hypotheses, prefixes
from sqa.pipeline import CountedSource, run_from_mapping, stream

TABLES = tables_of(__file__)

POLICIES = [*map(WaitK, (1, 3, FULL)), *map(LocalAgreement, (2, 3)), *map(Hold, (0, 2)), Retranslate(), Retranslate(2)]
APPENDING = [policy for policy in POLICIES if not isinstance(policy, Retranslate)]


def emissions(policy, translations):
    """Return a policy's emissions for a sentence, given the translations of its first 1, 2, ... words."""
    source = [f"w{i}" for i in range(len(translations))]
    of = {" ".join(source[: i + 1]): tuple(text.split()) for i, text in enumerate(translations)}
    writes = written(policy, source, of.__getitem__)
    return [Emission(0, write.token, g, ended, write.erase) for write, g, ended in writes]


def shown(policy, translations):
    """Return the text shown after each g at which the policy writes; + marks the end of the source."""
    writes = emissions(policy, translations)
    steps = prefixes(question(sentences=["w " * len(translations)]), writes).texts
    return " | ".join(
        {(e.g, e.ended): f"{e.g}{'+' * e.ended} {text}" for e, text in zip(writes, steps, strict=True)}.values()
    )


SHOWN = TABLES["shown"]  # policy, translations of the prefixes, text after each number of source words


@pytest.mark.parametrize(("policy", "translations", "expected"), SHOWN)
def test_policy_shows_the_listed_text(policy, translations, expected):
    assert shown(policy_of(asked(*policy)), translations) == expected


def test_shrinking_translation_retracts_without_a_word():
    assert writes(("a", "b", "c"), ("a",)) == [Write("", 2)]
    retracted = emissions(Retranslate(), ["a b", ""])
    assert retracted == [Emission(0, "a", 1, False), Emission(0, "b", 1, False), Emission(0, "", 2, False, erase=2)]
    q = question(sentences=["uno dos"])
    check_emissions(q, retracted)
    assert prefixes(q, retracted).texts == ("a", "a b", "") and hypotheses(q, retracted) == [""]


WORDS = st.lists(st.sampled_from("abc"), max_size=6).map(tuple)


@given(WORDS, WORDS)
def test_writes_change_a_text_with_minimal_erasure(before, after):
    text = list(before)
    for write in writes(before, after):
        del text[len(text) - write.erase :]
        text += [write.token] if write.token else []
    assert tuple(text) == after
    kept = agreed([before, after])
    assert before[: len(kept)] == kept == after[: len(kept)]
    assert before[len(kept) : len(kept) + 1] != after[len(kept) : len(kept) + 1] or before == after == kept
    assert sum(write.erase for write in writes(before, after)) == len(before) - len(kept)


class Fickle:
    """A system that translates every text into some words or none, unrelated to those of its prefixes."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        self.calls.append(list(texts))
        return [self._words(text) for text in texts]

    def _words(self, text: str) -> tuple[str, ...]:
        code = zlib.crc32(text.encode())
        return tuple("abc"[(code >> (2 * i)) % 3] for i in range(code % (len(text.split()) + 2)))

    def fingerprint(self) -> str:
        return "fickle"


SENTENCES = st.lists(
    st.lists(st.sampled_from(["uno", "dos", "tres"]), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=3
)


@given(SENTENCES, st.sampled_from(POLICIES))
def test_streaming_equals_batched(sentences, policy):
    q, fickle = question(sentences=sentences), Fickle()
    batched, _ = PolicyTranslator(fickle, policy).translate_batch([q, q])
    [asked] = fickle.calls
    wanted = {" ".join(s[:n]) for s in q.sentences for n in range(min(policy.start, len(s)), len(s) + 1)}
    assert len(asked) == len(set(asked)) and set(asked) == wanted
    assert stream(PolicyTranslator(Fickle(), policy), q) == batched
    check_emissions(q, batched)
    if policy in APPENDING:
        assert all(e.erase == 0 for e in batched)
        assert all(isinstance(word, str) for word in PolicyTranslator(Fickle(), policy).translate(iter(["uno", "dos"])))
    else:
        complete = Fickle().words([" ".join(sentence) for sentence in q.sentences])
        assert hypotheses(q, batched) == [" ".join(words) for words in complete]


def test_streaming_reads_source_words_only_when_needed():
    source = CountedSource("uno dos tres cuatro cinco".split())
    read = [source.read for _ in PolicyTranslator(Fickle(), Retranslate()).translate(source)]
    assert read[0] < 5 and read == sorted(read)
    assert list(PolicyTranslator(Fickle(), WaitK(1)).translate(iter(()))) == []


def test_cached_system_translates_each_text_once():
    fickle = Fickle()
    remembered = Remembered(fickle)
    first = remembered.words(["uno", "dos", "uno"])
    assert first == fickle.words(["uno", "dos", "uno"])
    fickle.calls.clear()
    assert remembered.words(["dos", "uno"]) == [first[1], first[0]] and fickle.calls == []


def test_system_with_too_few_translations_is_refused(monkeypatch):
    monkeypatch.setattr(Fickle, "words", lambda self, texts: [])
    refused(
        DataError, "0 translations for 1 texts", list, PolicyTranslator(Fickle(), WaitK(1)).translate(iter(["uno"]))
    )


def asked(policy, k="full", n=None):
    return SimpleNamespace(policy=policy, k=k, n=n)


@pytest.mark.parametrize(
    ("keys", "policy"),
    [
        (("wait-k",), WaitK(FULL)),
        (("wait-k", 6), WaitK(6)),
        (("local-agreement",), LocalAgreement(2)),
        (("retranslate",), Retranslate(0)),
        (("hold", "full", 0), Hold(0)),
        (("local-agreement", "full", 3), LocalAgreement(3)),
    ],
)
def test_policy_keys_of_a_config_are_read(keys, policy):
    assert policy_of(asked(*keys)) == policy


@pytest.mark.parametrize(("keys", "message"), TABLES["invalid_keys_are_refused"])
def test_invalid_keys_are_refused(keys, message):
    refused(ConfigError, message, policy_of, asked(*keys))


def configured(**keys):
    translator = {"name": "command", "command": ["cat"], **keys}
    return run_from_mapping({"name": "r", "dataset": {"name": "mini-es"}, "translator": translator})


@pytest.mark.parametrize(("more", "message"), TABLES["invalid_keys_of_a_config_are_refused"])
def test_invalid_keys_of_a_config_are_refused(more, message):
    refused(ConfigError, message, configured, **more)


def test_policies_and_commands_need_no_torch():
    code = """import sys; sys.modules["torch"] = None
import sqa
from sqa.core.registry import POLICIES, TRANSLATORS
print([POLICIES.resolve(name).__name__ for name in POLICIES.names()], TRANSLATORS.resolve("command").__name__)"""
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout == "['Hold', 'LocalAgreement', 'Retranslate', 'WaitK'] build\n"
