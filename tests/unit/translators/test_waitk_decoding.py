"""The wait-k mask and the two decoders: equal words, equal g(j), nothing seen too early."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from smt.models.decode import decode_batch, decode_stream
from smt.models.int8 import Precision
from smt.models.next_piece import Past, piece_limit
from smt.models.transformer import ModelConfig, Transformer
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab import BOS, EOS, PAD
from smt.models.vocab_bpe import SPECIAL, BpeVocabulary, Cutting
from smt.policies.waitk import FULL, HIDDEN_WORD, Schedule, draw_k, parse_k
from smt.training.corpus import pack
from smt.training.train import Batches
from sqa.core.errors import ConfigError
from sqa.data.datasets import load_questions
from sqa.run.pipeline import CountedSource
from tests.smt_models import random_model, vocabulary

SENTENCES = [list(s) for q in load_questions("mini-es", limit=1) for s in q.sentences[:3]]


WORDS = sorted({word for sentence in SENTENCES for word in sentence})


def writer(model, of=vocabulary):
    return TransformerWriter(model, of())


def streamed(model, sentence, k, rate=1.0, unit="word", of=vocabulary):
    source = CountedSource(sentence)
    words = decode_stream(writer(model, of), source, Schedule(k, rate, unit))
    return [(token, source.read, source.ended) for token in words]


@torch.no_grad()
@pytest.mark.parametrize("precision", get_args(Precision))
def test_streaming_equals_batched_in_every_precision(precision):
    plain, fast = random_model(), random_model()
    fast.accelerate(precision)
    batched = decode_batch(writer(fast), SENTENCES, Schedule(3))
    for sentence, written in zip(SENTENCES, batched, strict=True):
        assert written and streamed(fast, sentence, 3) == [tuple(word) for word in written]
    pieces = torch.arange(4, 20)[None]
    states = [model(pieces, pieces, torch.ones(1, 16, 16, dtype=torch.bool))[0][0] for model in (plain, fast)]
    a, b = (model.logits(x, None) for model, x in zip((plain, fast), states, strict=True))
    assert not [name for name, layer in fast.named_modules() if isinstance(layer, torch.nn.Linear)]
    error = float((a - b).abs().mean() / a.abs().mean())
    assert error < 1e-5 if precision == "float32" else 1e-5 < error < 0.03


def test_reads_between_words_add_up_to_the_schedule():
    words = torch.arange(1, 60)
    for rate in (0.6, 0.97, 1.0, 1.4):
        reads = Schedule(1, rate).words_after(words).cumsum(0)
        assert reads.tolist() == [math.floor(j / rate) for j in words.tolist()]


@pytest.mark.parametrize(("k", "rate"), [(1, 1.0), (3, 1.0), (2, 0.6), (2, 1.4), (FULL, 1.0)])
def test_g_is_never_ahead_of_the_schedule(k, rate):
    batched = decode_batch(writer(random_model()), SENTENCES, Schedule(k, rate))
    for sentence, written in zip(SENTENCES, batched, strict=True):
        for j, word in enumerate(written, start=1):
            assert min(k + math.floor((j - 1) / rate), len(sentence)) <= word.g <= len(sentence)
            assert not word.ended or word.g == len(sentence)
            assert word.token.split() == [word.token] and word.token.isprintable()


@pytest.mark.parametrize("unit", ["word", "piece"])
@pytest.mark.parametrize("k", [1, 4])
def test_a_bidirectional_model_goes_on_from_what_it_wrote(k, unit):
    """Test-time wait-k: only what was read is encoded, each time anew."""
    model, texts = random_model("bidirectional"), [sentence[:12] for sentence in SENTENCES]
    changed = texts[0][:6] + ["Xyzzy"] * 6
    batched = decode_batch(writer(model), [*texts, changed], Schedule(k, unit=unit))
    for text, written in zip([*texts, changed], batched, strict=True):
        assert streamed(model, text, k, unit=unit) == [tuple(word) for word in written]
    early = [[word for word in written if word.g < 6] for written in (batched[0], batched[-1])]
    assert early[0] and early[0] == early[1]


# ---------------------------------------------------------------------------------------------- k in pieces


def plain_pieces(model, sentence, k, rate):
    """Greedy decoding by the piece: one forward pass per piece, without caches or batches, for a causal encoder."""
    ids, index = vocabulary().words(sentence)
    source, word, ours = torch.tensor([[*ids, EOS]]), [*index, len(sentence)], writer(model)
    written, target, seen, open_word, past, read = [], [], [], [], Past.none(1), 0
    while True:
        asked = min(k + math.floor(len(target) / rate), len(word))
        while sum(w < read for w in word) < asked:
            read += 1
        now = sum(w < read for w in word)
        mask = torch.arange(len(word)) < torch.tensor([*seen, now])[:, None]
        x, alignment, _ = model(source, torch.tensor([[BOS, *target]]), mask[None])
        scores = ours.logits(x[:, -1], alignment[:, -1], ours.lexicon(source))
        scores = ours.rules.forbid(scores, torch.tensor([bool(open_word)]), past)
        piece = EOS if len(target) >= piece_limit(now) else int(scores.argmax())
        if open_word and (piece == EOS or vocabulary().starts_word[piece]):
            if token := vocabulary().decode_word(open_word):
                written.append((token, min(read, len(sentence)), read > len(sentence)))
            open_word = []
        if piece == EOS and read > len(sentence):
            return written
        if piece == EOS:
            read += 1
            continue
        target, seen, open_word = [*target, piece], [*seen, now], [*open_word, piece]
        past = past.then(torch.tensor([piece]))


@pytest.mark.parametrize(("k", "rate"), [(1, 1.0), (4, 1.4), (7, 0.7), (FULL, 1.0)])
def test_pieces_are_chosen_as_one_forward_pass_each_chooses_them(k, rate):
    model, texts = random_model(), [sentence[:8] for sentence in SENTENCES[:2]]
    with torch.inference_mode():
        plain = [plain_pieces(model, text, k, rate) for text in texts]
    batched = decode_batch(writer(model), texts, Schedule(k, rate, "piece"))
    assert any(plain) and [[tuple(word) for word in written] for written in batched] == plain


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), min_size=1, max_size=3),
    st.sampled_from([1, 2, 5, 15, FULL]),
    st.sampled_from([0.6, 0.97, 1.0, 1.4]),
    st.sampled_from(["word", "piece"]),
    st.sampled_from([("causal", 4), ("causal", 0), ("bidirectional", 4)]),
)
@settings(max_examples=15)
def test_streaming_equals_batched(texts, k, rate, unit, kind):
    model = random_model(*kind)
    batched = decode_batch(writer(model), [*texts, []], Schedule(k, rate, unit))
    for text, written in zip([*texts, []], batched, strict=True):
        assert streamed(model, text, k, rate, unit) == [tuple(word) for word in written]


def test_where_every_word_is_a_piece_the_mask_is_fairseqs():
    """Piece j is the model's choice among what it says of k + j - 1 source pieces, the end of the source included."""
    names = (*SPECIAL, *(f"w{i}" for i in range(60)))
    torch.manual_seed(3)
    config = ModelConfig(len(names), 32, 4, 64, 2, 2, dropout=0.0, lexicon_width=0)
    model, words, k = Transformer(config).eval(), BpeVocabulary(names, names, Cutting()), 3
    sentence = [f"w{i}" for i in (5, 9, 1, 30, 44, 7, 12, 58, 3, 21, 36, 17)]
    [written] = decode_batch(TransformerWriter(model, words), [sentence], Schedule(k, unit="piece"))
    assert streamed(model, sentence, k, unit="piece", of=lambda: words) == [tuple(word) for word in written]
    target = [names.index(word.token) for word in written]
    source = torch.tensor([[*words.words(sentence)[0], EOS]])
    with torch.inference_mode():
        seen = Schedule(k).visible(torch.arange(13)[None], torch.arange(len(target) + 1)[None])
        x, _, _ = model(source, torch.tensor([[BOS, *target]]), seen)
        scores = model.logits(x[0], None)  # (T + 1, V)
        scores[:, :EOS] = float("-inf")
    agree = 0
    for j, word in enumerate(written, start=1):
        best = scores[j - 1].argmax()
        assert best == target[j - 1] or best == EOS or best in target[: j - 1]  # it may wait, and may not repeat itself
        agree += int(best == target[j - 1])
        assert word.g >= min(k + j, 12)  # complete when the next piece was chosen
    assert agree > 2


def test_mask_shows_k_plus_j_minus_1_words():
    source_word = torch.tensor([[0, 0, 1, 2, 3, HIDDEN_WORD]])  # word 0 has two pieces; word 3 is the end; padding
    target_word = torch.tensor([[0, 1, 1, 2]])
    for k, counts in ((1, [2, 3, 3, 4]), (FULL, [5, 5, 5, 5])):
        assert Schedule(k).visible(source_word, target_word)[0].sum(1).tolist() == counts


@pytest.mark.parametrize("k", [3, 15])
def test_an_emission_rate_of_97_percent_reads_one_more_word_every_33(k):
    source, target = torch.arange(301)[None], torch.arange(201)[None]
    plain, slower = (Schedule(k, rate).visible(source, target)[0].sum(1) for rate in (1.0, 0.97))
    extra = (slower - plain).tolist()
    assert extra[:33] == [0] * 33 and extra[33] == 1 and extra[97] == 3 and extra[194] == 6  # 194 / 0.97 = 200


def test_training_mask_equals_what_streaming_sees():
    """Teacher-forced logits under the mask are those of a model that was given only the visible source pieces."""
    model, k = random_model(), 2
    pair = (" ".join(SENTENCES[1]), "This is the second sentence of a test .", "-")
    batch = Batches(pack([pair], vocabulary(), None), vocabulary().starts_word, 1000, 0).make(np.array([0]))
    seen = Schedule(k).visible(batch.source_word, batch.target_word)
    with torch.inference_mode():
        states, alignment, _ = model(batch.source, batch.target_input, seen)
        for t in range(states.shape[1]):
            source = batch.source[:, : int(seen[0, t].sum())]
            cut, _, _ = model(source, batch.target_input[:, : t + 1], seen[:, : t + 1, : source.shape[1]])
            torch.testing.assert_close(cut[0, t], states[0, t], rtol=1e-4, atol=1e-4)
    assert torch.allclose(alignment.exp().sum(-1), torch.ones(alignment.shape[:2]), atol=1e-5)


def test_odd_schedules_are_refused():
    for k in (0, True, 2.5, "all"):
        refused(ConfigError, "must be >= 1 or 'full'", parse_k, k)
    refused(ConfigError, "unit: must be word or piece, got 'subword'", Schedule, 3, unit="subword")


def test_multi_path_draws_by_weight():
    rng = np.random.default_rng(0)
    drawn = [draw_k((3, 9, FULL), (1.0, 0.0, 3.0), rng) for _ in range(400)]
    assert 9 not in drawn and 60 < drawn.count(3) < 140


def test_nothing_is_written_twice_in_a_row():
    rules = writer(random_model()).rules
    start = int(np.flatnonzero(vocabulary().starts_word)[5])
    inside = int(np.flatnonzero(~vocabulary().starts_word & ~vocabulary().has_digit)[-5])

    def banned(*history):
        past = Past.none(1)
        for piece in history:
            past = past.then(torch.tensor([piece]))
        return set(rules.repeats(past)[0].tolist()) - {PAD}

    assert banned(start) == {start}  # no word twice
    assert banned(inside) == set() and banned(inside, inside) == {inside}  # no piece inside a word three times
    assert banned(start, inside, start) == {inside, start}  # no phrase twice
    assert banned() == set()


def test_a_sentence_has_two_target_pieces_for_each_source_piece_and_ten_more():
    assert piece_limit(torch.tensor([0, 3])).tolist() == [10, 16]
