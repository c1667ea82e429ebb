"""Policies on translations short enough to follow by hand, and around a system that changes its mind."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Sequence

import pytest
from doubles import question, write_questions
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from smt.models.prefix_translator import PrefixConfig, build, system
from smt.models.waitk_translator import WaitKConfig
from smt.models.waitk_translator import build as build_waitk
from smt.policies.chosen import parse_policy
from smt.policies.hold import Hold
from smt.policies.local_agreement import LocalAgreement
from smt.policies.prefixes import PolicyTranslator, Remembered, written
from smt.policies.retranslate import Retranslate
from smt.policies.shown import agreed, writes
from smt.policies.waitk import FULL, WaitK
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import ROOT
from sqa.core.trace import check_emissions, hypotheses, prefixes
from sqa.core.types import Emission, Write
from sqa.data.datasets import load_questions
from sqa.files.store import Store
from sqa.run.config import run_from_mapping
from sqa.run.pipeline import CountedSource, run, stream

POLICIES = [*map(WaitK, (1, 3, FULL)), *map(LocalAgreement, (2, 3)), *map(Hold, (0, 2)), Retranslate(), Retranslate(2)]
APPENDING = [policy for policy in POLICIES if not isinstance(policy, Retranslate)]
# what a system makes of the first 1, 2, 3, 4 words of a sentence
GROWING = ["the", "the house", "the white house", "the white house falls"]


def emissions(policy, translations):
    """The emissions of a sentence whose first 1, 2, ... words are translated so."""
    source = [f"w{i}" for i in range(len(translations))]
    of = {" ".join(source[: i + 1]): tuple(text.split()) for i, text in enumerate(translations)}
    writes = written(policy, source, of.__getitem__)
    return [Emission(0, write.token, g, ended, write.erase) for write, g, ended in writes]


def shown(policy, translations):
    """(g, ended) -> the text shown after all writes of that moment; moments without a write are absent."""
    writes = emissions(policy, translations)
    steps = prefixes(question(sentences=["w " * len(translations)]), writes).texts
    return {(e.g, e.ended): text for e, text in zip(writes, steps, strict=True)}


WAITING = {(3, False): "the", (4, False): "the white", (4, True): "the white house falls"}
SHOWN = [  # policy, translations of the prefixes, (g, ended) -> the text shown
    (WaitK(3), GROWING, WAITING),
    (
        WaitK(1),
        GROWING,
        {
            (1, False): "the",
            (2, False): "the house",
            (3, False): "the house house",
            (4, False): "the house house falls",
        },
    ),
    (WaitK(FULL), GROWING, {(4, True): "the white house falls"}),
    (WaitK(5), ["x", "a b"], {(2, True): "a b"}),  # a sentence shorter than k
    (WaitK(1), ["the", "the", "the house"], {(1, False): "the", (3, False): "the house"}),  # no more words yet
    (
        LocalAgreement(2),
        GROWING,
        {(2, False): "the", (4, False): "the white house", (4, True): "the white house falls"},
    ),
    (LocalAgreement(3), GROWING, {(3, False): "the", (4, True): "the white house falls"}),
    (  # what was written stays, and goes on at the same place
        LocalAgreement(2),
        ["a b", "a b c", "x y c d", "x y c d e"],
        {(2, False): "a b", (4, False): "a b c d", (4, True): "a b c d e"},
    ),
    (Hold(2), GROWING, WAITING),
    (Hold(0), ["a", "a b"], {(1, False): "a", (2, False): "a b"}),
    (Retranslate(), GROWING, {(i, False): text for i, text in enumerate(GROWING, 1)}),
    (
        Retranslate(1),
        GROWING,
        {
            (2, False): "the",
            (3, False): "the white",
            (4, False): "the white house",
            (4, True): "the white house falls",
        },
    ),
]


@pytest.mark.parametrize(("policy", "translations", "expected"), SHOWN)
def test_what_a_policy_shows(policy, translations, expected):
    assert shown(policy, translations) == expected


def test_retranslation_retracts_what_differs_and_no_more():
    assert emissions(Retranslate(), ["the", "the house", "the white house"]) == [
        Emission(0, "the", 1, False),
        Emission(0, "house", 2, False),
        Emission(0, "white", 3, False, erase=1),
        Emission(0, "house", 3, False),
    ]


def test_a_translation_that_only_shrinks_retracts_without_a_word():
    assert writes(("a", "b", "c"), ("a",)) == [Write("", 2)]
    retracted = emissions(Retranslate(), ["a b", ""])
    assert retracted == [Emission(0, "a", 1, False), Emission(0, "b", 1, False), Emission(0, "", 2, False, erase=2)]
    q = question(sentences=["uno dos"])
    check_emissions(q, retracted)
    assert prefixes(q, retracted).texts == ("a", "a b", "") and hypotheses(q, retracted) == [""]


WORDS = st.lists(st.sampled_from("abc"), max_size=6).map(tuple)


@given(WORDS, WORDS)
def test_writes_lead_from_one_text_to_the_other_with_the_least_erasure(before, after):
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
    """Translates every text into some words or none, nothing to do with those of the text's beginning."""

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
def test_streaming_equals_batched_and_both_keep_the_rules(sentences, policy):
    q = question(sentences=sentences)
    [batched] = PolicyTranslator(Fickle(), policy).translate_batch([q])
    assert stream(PolicyTranslator(Fickle(), policy), q) == batched
    check_emissions(q, batched)
    if policy in APPENDING:
        assert all(e.erase == 0 for e in batched)
        assert all(isinstance(word, str) for word in PolicyTranslator(Fickle(), policy).translate(iter(["uno", "dos"])))
    else:
        complete = Fickle().words([" ".join(sentence) for sentence in q.sentences])
        assert hypotheses(q, batched) == [" ".join(words) for words in complete]


@given(SENTENCES, st.sampled_from(POLICIES))
def test_a_batch_asks_once_for_every_distinct_prefix_that_is_looked_at(sentences, policy):
    fickle = Fickle()
    q = question(sentences=sentences)
    PolicyTranslator(fickle, policy).translate_batch([q, q])
    [asked] = fickle.calls
    wanted = {" ".join(s[:n]) for s in q.sentences for n in range(min(policy.start, len(s)), len(s) + 1)}
    assert len(asked) == len(set(asked)) and set(asked) == wanted


def test_streaming_reads_no_further_than_it_writes():
    source = CountedSource("uno dos tres cuatro cinco".split())
    read = [source.read for _ in PolicyTranslator(Fickle(), Retranslate()).translate(source)]
    assert read[0] < 5 and read == sorted(read)
    assert list(PolicyTranslator(Fickle(), WaitK(1)).translate(iter(()))) == []


def test_a_remembered_system_is_asked_once_and_forgets_the_oldest():
    fickle = Fickle()
    remembered = Remembered(fickle, limit=2)
    first = remembered.words(["uno", "dos", "uno", "tres"])  # more than it can keep: all are answered all the same
    assert first == fickle.words(["uno", "dos", "uno", "tres"])
    fickle.calls.clear()
    assert remembered.words(["tres", "dos"]) == [first[3], first[1]] and fickle.calls == []
    remembered.words(["uno"])
    assert fickle.calls == [["uno"]]
    assert remembered.fingerprint() == "fickle"


def test_a_system_with_too_few_answers_is_refused():
    class Silent(Fickle):
        def words(self, texts):
            return []

    with pytest.raises(DataError, match="0 translations for 1 texts"):
        list(PolicyTranslator(Silent(), WaitK(1)).translate(iter(["uno"])))


def test_keys_of_a_config():
    assert [parse_policy(*keys) for keys in (("wait-k",), ("wait-k", 6))] == [WaitK(FULL), WaitK(6)]
    assert parse_policy("local-agreement") == LocalAgreement(2) and parse_policy("retranslate") == Retranslate(0)
    assert parse_policy("hold", "full", 3) == Hold(3)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (("wait-k", 6, 2), "n: wait-k takes k only, got n = 2"),
        (("hold",), "n: missing; hold needs the number of words held back"),
        (("hold", 6), "k: hold takes n"),
        (("retranslate", "full", True), "n: must be >= 0"),
        (("local-agreement", "full", 1), "n: must be >= 2"),
        (("wait", 6), "policy: must be wait-k, local-agreement, hold, retranslate, got 'wait'"),
    ],
)
def test_wrong_keys_are_named(keys, message):
    refused(ConfigError, message, parse_policy, *keys)


def mapping(**keys):
    return {"name": "r", "dataset": {"name": "mini-es"}, "translator": {"name": "command", "command": ["cat"], **keys}}


def test_a_nested_policy_is_the_short_spelling():
    """So its config, its fingerprint and its store keys are the same."""
    for name, number in (("wait-k", {"k": 6}), ("hold", {"n": 2}), ("retranslate", {})):
        nested, short = mapping(policy={"name": name, **number}), mapping(policy=name, **number)
        assert run_from_mapping(nested) == run_from_mapping(short)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"policy": {"name": "hold", "m": 2}}, "translator.policy.m: unknown"),
        ({"policy": {"name": "hold", "n": 2}, "n": 3}, "translator.policy.n: given beside the policy too"),
        ({"policy": "hald", "n": 2}, "translator.policy: expected 'wait-k' or .*did you mean 'hold'"),
        ({"policy": {"n": 2}}, "translator.policy: expected 'wait-k' or "),
    ],
)
def test_wrong_keys_of_a_nested_policy_are_named(more, message):
    refused(ConfigError, message, run_from_mapping, mapping(**more))


# ------------------------------------------------------------------------------------------- a model of our own


def test_the_policy_that_reads_everything_is_full_input_translation(folder):
    questions = load_questions("mini-es", limit=2)
    translator = build(PrefixConfig(str(folder)))
    assert translator.translate_batch(questions) == build_waitk(WaitKConfig(str(folder))).translate_batch(questions)
    assert build(PrefixConfig(str(folder), "retranslate")).system is translator.system
    system.cache_clear()


# ----------------------------------------------------------------------------------------------- a run that revises


# Writes the text backwards, so that every word revises all words before it.
BACKWARDS = [sys.executable, "-c", "import sys\nfor line in sys.stdin: print(*line.split()[::-1])"]


def test_a_run_with_retranslation_from_end_to_end(tmp_path):
    config = {
        "name": "r",
        "dataset": {"name": str(write_questions(tmp_path / "questions.jsonl", 4))},
        "translator": {"name": "command", "command": BACKWARDS, "policy": "retranslate"},
        "guesser": {"name": "doubles:build_guesser", "pages": ["Spain", "France"]},
        "buzzer": "doubles:build_buzzer",
        "metrics": ["oracle-ew", "accuracy", "bleu", "al", "dal", "ne"],
    }
    result = run(run_from_mapping(config), Store(tmp_path), progress=False)
    assert set(result.refusals) == {"al", "dal"} and "retracts words" in result.refusals["dal"]
    config["translator"]["policy"] = "wait-k"
    full = run(run_from_mapping(config), Store(tmp_path), progress=False)
    for metric in ("bleu", "accuracy"):  # of the final text, which is the full-input translation
        assert (result.stats[metric] == full.stats[metric]).all()
    assert result.stats["oracle-ew"][:, 0].sum() > full.stats["oracle-ew"][:, 0].sum()
    # a sentence of n words is retracted 1, 2, ..., n - 1 times a word: sentences of 5 words, 10 for 5
    assert full.stats["ne"].sum(axis=0).tolist() == [0, 40] and result.stats["ne"].sum(axis=0).tolist() == [80, 40]
    first = result.traces[0].prefixes.texts  # of "pista número 0 sobre algo", "la respuesta es spain claro"
    assert first[:4] == ("pista", "número", "número pista", "0")
    assert first[-1] == "algo sobre 0 número pista claro spain es respuesta la"


def test_the_policies_and_a_command_under_them_need_no_torch():
    code = """import sys; sys.modules["torch"] = None
import sqa
from sqa.core.registry import POLICIES, TRANSLATORS
print([POLICIES.resolve(name).__name__ for name in POLICIES.names()], TRANSLATORS.resolve("command").__name__)"""
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout == "['Hold', 'LocalAgreement', 'Retranslate', 'WaitK'] build\n"
