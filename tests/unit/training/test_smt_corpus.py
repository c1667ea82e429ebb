"""Weighing, packing and aligning parallel text."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from smt.models.vocab import EOS, normalise
from smt.training.corpus import Packed, _merge, align, lexicon, load_arrays, pack, save_arrays, weigh
from tests.smt_models import vocabulary

GOOD = ("La reina fundó una ciudad junto al río.", "The queen founded a city by the river.", "a")


def test_links_of_one_direction_are_added_at_unaligned_words():
    assert _merge("0-0 1-1 1-2 2-2", "0-0 1-1 3-1 2-0") == [(0, 0), (1, 1), (1, 2), (2, 0), (3, 1)]


def test_weights_are_expected_copies():
    rng = np.random.default_rng(0)
    pairs = [("a", "b", "x")] * 1000 + [("c", "d", "y")] * 1000
    mixed = weigh(pairs, lambda pair: {"x": 2.5}.get(pair[2], 0.1), rng)
    assert 2400 < sum(corpus == "x" for *_, corpus in mixed) < 2600
    assert 60 < sum(corpus == "y" for *_, corpus in mixed) < 140


def test_packed_round_trip(tmp_path):
    pairs = [GOOD, ("Dos ríos", "Two rivers", "b")]
    packed = pack(pairs, vocabulary(), [[(0, 1), (2, 2)], []])
    save_arrays(packed, tmp_path)
    again = load_arrays(Packed, tmp_path)
    assert len(again) == 2
    for field in fields(Packed):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(packed, field.name))
    first = again.source[again.source_start[0] : again.source_start[1]]
    words = [vocabulary().decode_word(vocabulary().word(word)) for word in GOOD[0].split()]
    assert (
        first[-1] == EOS and list(first[:-1]) == vocabulary().words(words)[0] and " ".join(words) == normalise(GOOD[0])
    )


def test_aligner_and_lexicon_find_translations():
    pytest.importorskip("eflomal", reason="the extra 'train' is not installed")
    words = {"reina": "queen", "ciudad": "city", "guerra": "war", "libro": "book", "rey": "king", "mar": "sea"}
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(300):
        chosen = rng.choice(sorted(words), 4)
        pairs.append((" ".join(chosen), " ".join(words[w] for w in chosen), "-"))
    packed = pack(pairs, vocabulary(), None)
    links = align(packed)
    ids, probabilities = lexicon(pack(pairs, vocabulary(), links), vocabulary().size, 4)
    source, target = vocabulary().word("reina")[0], vocabulary().word("queen")[0]
    assert target in ids[source][probabilities[source] > 0.2]
    assert np.all(probabilities.sum(1) <= 1.0)
