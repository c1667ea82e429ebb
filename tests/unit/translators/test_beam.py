"""Beam search: against a plain one without caches, against greedy decoding, and streaming against batched."""

from __future__ import annotations

import functools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from smt_models import random_model, vocabulary

from smt.models.beam import Beam, search_batch, search_stream
from smt.models.bundle import load_model
from smt.models.decode import decode_batch
from smt.models.next_piece import Past, piece_limit
from smt.models.prefix_translator import PrefixConfig, system
from smt.models.prefix_translator import build as build_prefix
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab import BOS, EOS
from smt.models.waitk_translator import WaitKConfig, build
from smt.policies.waitk import FULL, Schedule
from sqa.core.errors import ConfigError
from sqa.data.datasets import load_questions
from sqa.run.pipeline import CountedSource
from tests.doubles import question

WORDS = sorted({word for q in load_questions("mini-es") for word in q.sentences[0]})
SENTENCES = [list(sentence[:7]) for sentence in load_questions("mini-es", limit=1)[0].sentences[:3]]
sentences = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7), min_size=1, max_size=2)
model_of = functools.cache(random_model)


def writer(model):
    return TransformerWriter(model, vocabulary())


def streamed(model, sentence, schedule, beam):
    source = CountedSource(sentence)
    return [(token, source.read, source.ended) for token in search_stream(writer(model), source, schedule, beam)]


class Plain:
    """Rules 1 to 3 of smt.models.beam with lists: one forward pass per hypothesis and piece, for a causal encoder."""

    def __init__(self, model, sentence, k, beam):
        self.model, self.beam, self.k = model, beam, k
        ids, self.word = vocabulary().words(sentence)
        self.source, self.words = torch.tensor([[*ids, EOS]]), len(sentence)
        self.word = [*self.word, self.words]
        self.writer = writer(model)
        self.target, self.seen = [], []  # pieces published, and how many source pieces each was chosen with

    def run(self):
        written, read = [], min(self.k, self.words + 1)
        while True:
            now, ended = sum(word < read for word in self.word), read > self.words
            words = self.split(self.search(now, FULL if ended else self.beam.look_ahead))
            for word in words if ended else words[:1]:
                self.target += word
                self.seen += [now] * len(word)
                if token := vocabulary().decode_word(word):
                    written.append((token, min(read, self.words), ended))
            if ended:
                return written
            read += 1

    def split(self, pieces):
        words = []
        for piece in pieces:
            if not words or vocabulary().starts_word[piece]:
                words.append([])
            words[-1].append(piece)
        return words

    def search(self, now, limit):
        """Pieces of the best hypothesis, those beyond the limit left out."""
        beam = [(0.0, 0, [], False)]  # score, length, pieces, finished
        while not beam[0][3]:
            candidates = []
            for score, length, pieces, finished in beam:
                if finished:
                    candidates.append((score, length, pieces, True))
                    continue
                log_p = self.log_probabilities(pieces, now)
                ends = [i for i in range(600) if i == EOS or vocabulary().starts_word[i]]
                last_word = pieces and len(self.split(pieces)) >= limit
                if last_word:
                    end = max(ends, key=lambda i: log_p[i])
                    candidates.append((score + log_p[end], length + 1, pieces, True))
                elif log_p[EOS] > float("-inf"):
                    candidates.append((score + log_p[EOS], length + 1, pieces, True))
                for i in set(range(600)) - set(ends if last_word else [EOS]):
                    if log_p[i] > float("-inf"):
                        candidates.append((score + log_p[i], length + 1, [*pieces, i], False))
            beam = sorted(candidates, key=lambda h: -h[0] / h[1])[: self.beam.n]
        return beam[0][2]

    def log_probabilities(self, pieces, now):
        target, past = [*self.target, *pieces], Past.none(1)
        for piece in target:
            past = past.then(torch.tensor([piece]))
        seen = torch.tensor([*self.seen, *[now] * (len(pieces) + 1)])
        visible = torch.arange(self.source.shape[1]) < seen[:, None]
        x, alignment, _ = self.model(self.source, torch.tensor([[BOS, *target]]), visible[None])
        scores = self.writer.logits(x[:, -1], alignment[:, -1], self.writer.lexicon(self.source)).log_softmax(-1)
        [log_p] = self.writer.rules.forbid(scores, torch.tensor([bool(pieces)]), past).tolist()
        full = len(target) >= piece_limit(now)
        return [p if i == EOS or not full else float("-inf") for i, p in enumerate(log_p)]


@pytest.mark.parametrize(("k", "n", "look_ahead"), [(2, 3, 1), (3, 2, 2), (FULL, 4, 1)])
def test_it_finds_what_a_plain_search_finds(k, n, look_ahead):
    model, beam, texts = model_of(), Beam(n, look_ahead), SENTENCES[:2]
    batched = search_batch(writer(model), texts, Schedule(k), beam)
    with torch.inference_mode():
        plain = [Plain(model, sentence, k, beam).run() for sentence in texts]
    assert any(plain) and [[tuple(word) for word in written] for written in batched] == plain


@given(sentences, st.sampled_from([1, 2, 4, FULL]), st.sampled_from([0.7, 1.0, 1.4]), st.booleans())
@settings(max_examples=8)
def test_one_hypothesis_and_one_word_ahead_is_greedy(texts, k, rate, lexicon):
    model = model_of(lexicon_width=4 * lexicon)
    searched = search_batch(writer(model), texts, Schedule(k, rate), Beam(1, 1))
    assert searched == decode_batch(writer(model), texts, Schedule(k, rate))


@given(
    sentences,
    st.builds(
        Schedule, st.sampled_from([1, 3, FULL]), st.sampled_from([0.7, 1.0, 1.4]), st.sampled_from(["word", "piece"])
    ),
    st.builds(Beam, st.integers(2, 4), st.integers(1, 3)),
    st.sampled_from(["causal", "bidirectional"]),
)
@settings(max_examples=8)
def test_streaming_equals_batched(texts, schedule, beam, encoder):
    model = model_of(encoder)
    for text, written in zip(texts, search_batch(writer(model), texts, schedule, beam), strict=True):
        assert streamed(model, text, schedule, beam) == [tuple(word) for word in written]


def test_the_future_of_the_source_changes_nothing_written_before_it():
    a, b = SENTENCES[0], [*SENTENCES[0][:5], "Xyzzy", "Xyzzy"]
    early = [
        [w for w in written if w.g < 5] for written in search_batch(writer(model_of()), [a, b], Schedule(1), Beam(3))
    ]
    assert early[0] and early[0] == early[1]


# ------------------------------------------------------------------------------------------------- as translators


def test_a_beam_over_prefixes(folder):
    texts = [*map(" ".join, SENTENCES), ""]
    wide = system(folder, "digest", 3).words(texts)
    plain = search_batch(writer(load_model(folder)[0]), SENTENCES, Schedule(FULL), Beam(3))
    assert wide[:-1] == [tuple(word.token for word in written) for written in plain] and wide[-1] == ()
    assert wide != system(folder, "digest").words(texts)
    q = question(sentences=texts[:1])
    assert build_prefix(PrefixConfig(str(folder), beam=3)).translate_batch([q]) == build(
        WaitKConfig(str(folder), beam=3)
    ).translate_batch([q])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"beam": 65}, "beam: must be 1 to 64"), ({"look_ahead": 0}, "look_ahead: must be 1")],
)
def test_impossible_searches_are_refused(options, message):
    refused(ConfigError, message, WaitKConfig, "es-en", 3, **options)
