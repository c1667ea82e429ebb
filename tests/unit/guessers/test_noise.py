"""Noise in training texts depends on the tossup."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from refusals import refused

from guessers import noise
from sqa.core import DataError, Emission, Question
from sqa.data.texts import Tossup, load_translated

TOSSUPS = [
    Tossup(f"made-{i}", f"Vikings sailed past cape {i}. For 10 points, name it.", "Oslo", "", "Oslo", "made up", None)
    for i in range(noise.BLOCK + 30)
]


class Marker:
    """A translator that puts a mark before every word."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        return [
            [
                Emission(i, self.mark + word, j, False)
                for i, words in enumerate(q.sentences)
                for j, word in enumerate(words)
            ]
            for q in questions
        ]

    def fingerprint(self) -> str:
        return self.mark


def trip() -> noise.RoundTrip:
    return noise.RoundTrip(Marker("a"), {"3": Marker("b3"), "full": Marker("bf")})


# --- noise drawn while training


def test_seed_tossup_and_epoch_change_the_noise():
    drawn = {noise.rng_for(seed, name, time).random() for seed in (0, 1) for name in "ab" for time in (0, 1)}
    assert len(drawn) == 8


def test_share_of_hidden_words_is_close_to_the_requested():
    ids = np.arange(1, 20_001)
    hidden = noise.hide_words(ids, 0.15, noise.rng_for(0, "x"))
    assert np.mean(hidden == 0) == pytest.approx(0.15, abs=0.01) and set(hidden) <= {0, *ids.tolist()}
    assert noise.hide_words(ids, 0.0, noise.rng_for(0, "x")) is ids


# --- the file of machine-translated tossups


def test_tossups_are_translated_sentence_by_sentence(tmp_path):
    path = tmp_path / "deep" / "noisy.jsonl"
    noise.write(path, TOSSUPS[:5], trip(), 0)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == [tossup.id for tossup in TOSSUPS[:5]]
    assert len({row["k"] for row in rows}) == 2
    mark = "b" + rows[0]["k"][0]
    assert rows[0]["sentences"][0] == " ".join(f"{mark}a{word}" for word in "Vikings sailed past cape 0.".split())
    assert load_translated(path)["made-0"] == tuple(rows[0]["sentences"])


def test_translation_does_not_depend_on_other_tossups(tmp_path):
    noise.write(tmp_path / "few.jsonl", TOSSUPS[7:9], trip(), 0)
    noise.write(tmp_path / "many.jsonl", TOSSUPS[:20], trip(), 0)
    many = (tmp_path / "many.jsonl").read_text().splitlines()
    assert (tmp_path / "few.jsonl").read_text().splitlines() == many[7:9]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n", "noisy.jsonl:1: not JSON"),
        ('{"id": "a", "sentences": [1]}\n', r"record 1: Expected `str`, got `int` - at `\$\.sentences\[0\]`"),
        ('{"id": "a", "sentences": []}\n' * 2, "record 2: the tossup 'a' occurs twice"),
    ],
)
def test_bad_files_of_texts_are_refused(tmp_path, text, message):
    path = tmp_path / "noisy.jsonl"
    path.write_text(text, encoding="utf-8")
    refused(DataError, message, load_translated, path)
