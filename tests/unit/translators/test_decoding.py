"""Greedy decoding: the schedule and its mask, streaming and batches, repetitions, and long sentences."""

import functools
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import reason
from refusals import refused
from smt_models import random_model, streamed, vocabulary

from smt.models.bundle import load_model
from smt.models.decode import decode_batch, decode_stream
from smt.models.stepper import State
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab import PAD
from smt.models.waitk_translator import PrefixConfig, WaitKConfig, build, build_prefix, system
from smt.policies.waitk import FULL, HIDDEN_WORD, Schedule, draw_k
from smt.training.corpus import pack
from smt.training.transformer_training import Batches
from sqa.core import ConfigError, DataError, parse_k
from sqa.data.datasets import load_questions
from sqa.files import is_fast
from tests.doubles import question

SENTENCES = [list(s) for s in load_questions("mini-es", limit=1)[0].sentences[:3]]
SHORT = [sentence[:7] for sentence in SENTENCES]
WORDS = sorted({word for q in load_questions("mini-es") for word in q.sentences[0]})
model_of = functools.cache(random_model)


def writer(model):
    return TransformerWriter(model, vocabulary())


def searched(model, texts, schedule):
    """Return the written words of texts that are decoded in one batch."""
    return decode_batch(writer(model), texts, schedule)


def stream(model, schedule):
    """Return a function that decodes a source as it arrives, word by word."""
    return lambda source: decode_stream(writer(model), source, schedule)


@torch.no_grad()
@pytest.mark.parametrize("dtype", WaitKConfig.ARITHMETIC.can)
def test_streaming_equals_batched_in_every_dtype(dtype):
    if dtype == "int8" and not is_fast("int8"):
        pytest.skip(reason("vnni"))
    plain, fast = random_model(), random_model()
    fast.accelerate(dtype)
    together = searched(fast, SHORT, Schedule(3))
    assert all(together) and streamed(stream(fast, Schedule(3)), SHORT) == together
    pieces = torch.arange(4, 20)[None]
    states = [model(pieces, pieces, torch.ones(1, 16, 16, dtype=torch.bool))[0][0] for model in (plain, fast)]
    a, b = (model.logits(x, None) for model, x in zip((plain, fast), states, strict=True))
    assert not [name for name, layer in fast.named_modules() if isinstance(layer, torch.nn.Linear)]
    error = float((a - b).abs().mean() / a.abs().mean())
    assert error < 1e-5 if dtype == "float32" else 1e-5 < error < 0.03


def test_batch_that_exceeds_the_memory_is_halved():
    class Small(TransformerWriter):
        def begin(self, sentences, schedule):
            if len(sentences) > 1:
                raise torch.OutOfMemoryError
            return super().begin(sentences, schedule)

    small = Small(model_of(), vocabulary())
    assert decode_batch(small, SHORT, Schedule(3)) == searched(model_of(), SHORT, Schedule(3))


@pytest.mark.parametrize(("rate", "before"), [(1.0, [3, 4, 5, 6]), (0.7, [3, 4, 5, 7]), (1.4, [3, 3, 4, 5])])
def test_schedule_gives_source_pieces_before_each_piece(rate, before):
    assert Schedule(3, rate, "piece").pieces_before(torch.arange(4)).tolist() == before
    assert Schedule(3, rate).pieces_before(torch.arange(4)).tolist() == [1] * 4  # if k counts words


def test_reads_between_words_add_up_to_the_schedule():
    words = torch.arange(1, 60)
    for rate in (0.6, 0.97, 1.0, 1.4):
        reads = Schedule(1, rate).words_after(words).cumsum(0)
        assert reads.tolist() == [math.floor(j / rate) for j in words.tolist()]


@pytest.mark.parametrize(("k", "rate"), [(1, 1.0), (3, 1.0), (2, 0.6), (2, 1.4), (FULL, 1.0)])
def test_g_is_never_ahead_of_the_schedule(k, rate):
    for sentence, written in zip(SENTENCES, searched(model_of(), SENTENCES, Schedule(k, rate)), strict=True):
        for j, (_, g, ended) in enumerate(written, start=1):
            assert min(k + math.floor((j - 1) / rate), len(sentence)) <= g <= len(sentence)
            assert not ended or g == len(sentence)


texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), min_size=1, max_size=3)
rates = st.sampled_from([0.6, 0.97, 1.0, 1.4])


@given(
    texts,
    st.builds(Schedule, st.sampled_from([1, 2, 5, 15, FULL]), rates, st.sampled_from(["word", "piece"])),
    st.sampled_from([("causal", 4), ("causal", 0), ("bidirectional", 4)]),
)
@settings(max_examples=15)
def test_streaming_equals_batched(texts, schedule, kind):
    model, texts = model_of(*kind), [*texts, []]
    assert streamed(stream(model, schedule), texts) == searched(model, texts, schedule)


def test_mask_shows_k_plus_j_minus_1_words():
    source_word = torch.tensor([[0, 0, 1, 2, 3, HIDDEN_WORD]])  # word 0 has two pieces; word 3 is the end; padding
    target_word = torch.tensor([[0, 1, 1, 2]])
    for k, counts in ((1, [2, 3, 3, 4]), (FULL, [5, 5, 5, 5])):
        assert Schedule(k).visible(source_word, target_word)[0].sum(1).tolist() == counts


@pytest.mark.parametrize("k", [3, 15])
def test_emission_rate_of_97_percent_reads_ahead(k):
    source, target = torch.arange(301)[None], torch.arange(201)[None]
    plain, slower = (Schedule(k, rate).visible(source, target)[0].sum(1) for rate in (1.0, 0.97))
    extra = (slower - plain).tolist()
    assert extra[:33] == [0] * 33 and extra[33] == 1 and extra[97] == 3 and extra[194] == 6  # 194 / 0.97 = 200


def test_training_mask_equals_the_streaming_view():
    """Teacher-forced logits under the mask equal those of a model that receives only the visible source pieces."""
    model, k = random_model(), 2
    pair = (" ".join(SENTENCES[1]), "This is the second sentence of a test .", "-")
    batch = Batches(pack([pair], vocabulary()), vocabulary().starts_word, 1000, 0).make(np.array([0]))
    assert (int(batch.source_word.max()), int(batch.target_word.max())) == (len(SENTENCES[1]), 9)  # the end is a word
    seen = Schedule(k).visible(batch.source_word, batch.target_word)
    with torch.inference_mode():
        states, alignment, _ = model(batch.source, batch.target_input, seen)
        for t in range(states.shape[1]):
            source = batch.source[:, : int(seen[0, t].sum())]
            cut, _, _ = model(source, batch.target_input[:, : t + 1], seen[:, : t + 1, : source.shape[1]])
            torch.testing.assert_close(cut[0, t], states[0, t], rtol=1e-4, atol=1e-4)
    assert torch.allclose(alignment.exp().sum(-1), torch.ones(alignment.shape[:2]), atol=1e-5)


def test_multi_path_draws_k_by_weight():
    rng = np.random.default_rng(0)
    drawn = [draw_k((3, 9, FULL), (1.0, 0.0, 3.0), rng) for _ in range(400)]
    assert 9 not in drawn and 60 < drawn.count(3) < 140


def test_no_word_or_phrase_is_written_twice_in_a_row():
    rules = writer(random_model()).rules
    start = int(np.flatnonzero(vocabulary().starts_word)[5])
    inside = int(np.flatnonzero(~vocabulary().starts_word & ~vocabulary().has_digit)[-5])

    def banned(*history):
        state = State.begin(torch.zeros(1, 0), torch.tensor([1]), PAD)
        for piece in history:
            state.commit(torch.tensor([piece]), torch.tensor([True]))
        return set(rules.repeats(state)[0].tolist()) - {PAD}

    assert banned(start) == {start}  # no word twice
    assert banned(inside) == set() and banned(inside, inside) == {inside}  # no piece inside a word three times
    assert banned(start, inside, start) == {inside, start}  # no phrase twice
    assert banned() == set()


def test_prefixes_are_translated_as_full_input(folder):
    texts, q = [*map(" ".join, SHORT), ""], question(sentences=[" ".join(SHORT[0])])
    words = system(folder, "digest").words(texts)
    plain = searched(load_model(folder)[0], SHORT, Schedule(FULL))
    assert words[:-1] == [tuple(token for token, *_ in written) for written in plain] and words[-1] == ()
    whole = build(WaitKConfig(str(folder))).translate_batch([q])
    assert build_prefix(PrefixConfig(str(folder))).translate_batch([q]) == whole
    systems = [build_prefix(PrefixConfig(str(folder), policy)).system for policy in ("wait-k", "retranslate")]
    assert systems[0] is systems[1]
    system.cache_clear()


@pytest.mark.parametrize("encoder", ["causal", "bidirectional"])
@pytest.mark.parametrize("k", [3, FULL])
def test_too_long_sentences_are_refused(encoder, k):
    model, schedule = random_model(encoder, max_pieces=24), Schedule(k)
    pieces = vocabulary().words(SENTENCES[0])[1]
    fits = pieces[22] if pieces[23] > pieces[22] else pieces[22] - 1  # words that have at most 24 pieces with the end
    for n in range(1, fits + 1):  # the target may need more positions than exist
        text = SENTENCES[0][:n]
        assert streamed(stream(model, schedule), [text]) == searched(model, [text], schedule)
    sizes = f"has {len(pieces) + 1} pieces, but the model has 24 positions: split it"
    begins = re.escape(" ".join(SENTENCES[0][:6]))
    refused(DataError, f"a sentence .{begins} .... {sizes}", searched, model, SENTENCES[:1], schedule)
    refused(DataError, "pieces, but the model has 24 positions", list, stream(model, schedule)(iter(SENTENCES[0])))


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (parse_k, {"k": 0}, "must be >= 1 or 'full'"),
        (parse_k, {"k": True}, "must be >= 1 or 'full'"),
        (parse_k, {"k": 2.5}, "must be >= 1 or 'full'"),
        (parse_k, {"k": "all"}, "must be >= 1 or 'full'"),
        (Schedule, {"k": 3, "unit": "subword"}, "unit: must be word or piece, got 'subword'"),
        (Schedule, {"k": 3, "rate": 0.4}, "emission_rate: must be in"),
    ],
)
def test_impossible_searches_are_refused(make, options, message):
    refused(ConfigError, message, make, **options)
