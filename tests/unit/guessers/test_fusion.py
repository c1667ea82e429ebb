"""The fusion guesser: reciprocal rank by hand, what candidates are described by, weights that learn whom to believe."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

import guessers.fusion.train as training
from guessers.fusion import fitting
from guessers.fusion.candidates import BESIDE, DEPTH, OF_PAGE, OF_STEP, candidates, width
from guessers.fusion.guesser import FusionConfig, FusionGuesser, build
from guessers.fusion.scorer import Scorer
from guessers.retrieval.bm25 import Bm25Config
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import ROOT
from sqa.core.types import Guess
from sqa.data.texts import Tossup, fold_of, half_of
from sqa.run import config as configs
from sqa.run.config import ComponentConfig

CONFIG = ROOT / "configs" / "train_guessers.yaml:fusion"
BM25 = ComponentConfig("bm25", Bm25Config())


class Fixed:
    """Names the same pages whatever it reads; nothing for a text without words."""

    def __init__(self, *guesses: tuple[str, float]) -> None:
        self.guesses = [Guess(*guess) for guess in guesses]
        self.seen: list[Sequence[str]] = []

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        return [self.guesses[:n] if text.split() else [] for text in texts]

    def check_texts(self, texts) -> None:
        self.seen += texts

    def fingerprint(self) -> str:
        return repr(self.guesses)


def fusion(*parts, scorer=None, constant=5.0) -> FusionGuesser:
    return FusionGuesser([(BM25, part) for part in parts], scorer, constant)


LEFT, RIGHT = Fixed(("a", 9.0), ("b", 3.0)), Fixed(("b", 0.5), ("c", 0.25), ("a", 0.125))


def test_reciprocal_rank_is_the_sum_over_the_guessers():
    [actual] = fusion(LEFT, RIGHT).guess(["word"], 5)
    assert [guess.page for guess in actual] == ["b", "a", "c"]
    assert [guess.score for guess in actual] == pytest.approx([1 / 7 + 1 / 6, 1 / 6 + 1 / 8, 1 / 7])
    [actual] = fusion(LEFT, RIGHT, constant=0.0).guess(["word"], 2)
    assert [guess.score for guess in actual] == pytest.approx([1 / 2 + 1, 1 + 1 / 3])


def test_equal_scores_are_ordered_by_title_wherever_the_list_is_cut():
    one, two = Fixed(("z", 2.0), ("m", 1.0)), Fixed(("b", 2.0), ("a", 1.0))
    for n in range(1, 5):
        assert [guess.page for guess in fusion(one, two).guess(["x"], n)[0]] == ["b", "z", "a", "m"][:n]
    assert fusion(one, two).guess(["x"], 0) == [[]]


def test_it_knows_no_pages_if_a_part_cannot_say_and_shows_texts_to_the_parts_that_ask():
    left = Fixed(("a", 1.0))
    both = fusion(left, RIGHT)
    assert both.pages is None
    both.check_texts(iter([["x"], ["x y"]]))
    assert left.seen == [["x"], ["x y"]]


def test_candidates_are_described_by_place_score_and_step():
    actual = candidates([[LEFT.guesses, []], [RIGHT.guesses, RIGHT.guesses]], [1, 7])
    assert actual.rows.shape == (len(actual.pages) + 2, width(2)) and np.isfinite(actual.rows).all()
    assert [sorted(np.array(actual.pages)[actual.step == step]) for step in (0, 1)] == [["a", "b", "c"]] * 2
    a = actual.pages.index("a")
    assert actual.step[a] == 0 and actual.ranks[a].tolist() == [0, 2]
    of_page = actual.rows[a, : 2 * OF_PAGE].reshape(2, OF_PAGE)
    assert of_page[:, 0].tolist() == [1, 1] and of_page[:, 1] == pytest.approx([1, 6 / 8])
    assert of_page[:, 2] == pytest.approx([0, np.log(0.25)]) and of_page[0, 3] == pytest.approx(1.0)
    of_step = actual.rows[a, 2 * OF_PAGE : -BESIDE].reshape(2, OF_STEP)
    assert of_step[:, 0] == pytest.approx(np.log([9, 0.5]), abs=1e-4)
    assert of_step[:, 1] == pytest.approx(np.log([3, 2]), abs=1e-4)
    assert actual.rows[a, -BESIDE:] == pytest.approx([np.log(2), 1, 2, 0])  # a is on top of one; there are two tops
    nobody = actual.rows[len(actual.pages) + 1]
    assert nobody[-BESIDE:] == pytest.approx([np.log(8), 0, 1, 1]) and nobody[: 2 * OF_PAGE : OF_PAGE].tolist() == [
        0,
        0,
    ]
    assert not nobody[2 * OF_PAGE : 2 * OF_PAGE + OF_STEP].any()  # of a guesser that named nothing


# --- learning


class Sure:
    """Right if the text says its name, and then far ahead; else it names something else, hardly ahead."""

    def __init__(self, name: str) -> None:
        self.name = name

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        actual = []
        for text in texts:
            words = text.split()
            answer, wrong = f"page {words[0]}", f"wrong {self.name} {words[0]}"
            said = self.name in words
            actual.append([Guess(answer, 9.0), Guess(wrong, 1.0)] if said else [Guess(wrong, 9.0), Guess(answer, 8.0)])
        return actual


def lessons(n: int) -> list[Tossup]:
    """The third word says which guesser is right, or that the answer has no page."""
    kinds = ("left", "right", "nobody")
    return [
        Tossup(f"t{i}", f"w{i} is {kinds[i % 3]}", f"page w{i}" if i % 3 < 2 else None, "", "x", "made", None)
        for i in range(n)
    ]


@pytest.fixture(scope="module")
def config() -> training.FusionTraining:
    given = configs.load(CONFIG, training.FusionTraining)
    parts = (BM25, BM25)
    return replace(given, guessers=parts, points=1, hidden=16, epochs=40, batch=8, learning_rate=0.02)


@pytest.fixture(scope="module")
def scorer(config) -> Scorer:
    read = training.lessons_of([Sure("left"), Sure("right")], lessons(96), 1, 0)
    return training.fitted(config, read)


def test_the_weights_learn_whom_to_believe_when_and_when_nobody(scorer):
    both = fusion(Sure("left"), Sure("right"), scorer=scorer)
    for kind in ("left", "right"):
        texts = [f"new{i} is {kind}" for i in range(5)]
        for i, guesses in enumerate(both.guess(texts, 3)):
            assert guesses[0].page == f"page new{i}" and guesses[0].score > 0.8
    [unsure] = both.guess(["new9 is nobody"], 3)
    assert unsure[0].score < 0.5 and sum(guess.score for guess in unsure) < 0.5


def test_chances_of_a_step_and_none_of_them_add_up_to_one(scorer):
    actual = candidates(
        [Sure("left").guess(["a left", "b"], DEPTH), Sure("right").guess(["a left", "b"], DEPTH)], [2, 1]
    )
    chances = scorer.chances(actual.rows, actual.step)
    sums = np.bincount(actual.step, chances)
    assert (0 < chances).all() and (sums < 1).all()
    hidden = {**scorer.tensors, "output.weight": 0 * scorer.tensors["output.weight"]}
    equal = Scorer(hidden, width(2)).chances(actual.rows, actual.step)
    assert equal == pytest.approx(1 / 4)  # three pages and none of them


def test_one_text_in_eight_chooses_the_epoch_and_teaches_nothing(config, monkeypatch):
    seen: list[set[int]] = []
    joined, read = fitting.joined, training.lessons_of([Sure("left"), Sure("right")], lessons(20), 1, 0)
    number = {id(lesson): i for i, lesson in enumerate(read)}

    def noted(some, scale):
        seen.append({number[id(lesson)] for lesson in some})
        return joined(some, scale)

    monkeypatch.setattr(fitting, "joined", noted)
    training.fitted(replace(config, epochs=1, batch=99), read)
    assert seen == [set(range(20)) - {0, 8, 16}, {0, 8, 16}]


def test_a_training_writes_the_weights_twice_under_both_names(config, monkeypatch, tmp_path):
    learnt = ComponentConfig("bm25", Bm25Config(model="elsewhere"))
    made = [tossup for tossup in lessons(2000) if fold_of(tossup.id) == "buzzer" and half_of(tossup.id) == "first"]
    monkeypatch.setattr(training, "load_tossups", lambda: made)
    monkeypatch.setattr(
        training, "built", lambda parts: [(p, Sure(s)) for p, s in zip(parts, ("left", "right"), strict=True)]
    )
    more = {"translated": (), "noise": 0.0, "epochs": 2, "work": tmp_path / "work", "limit": None}
    given = replace(config, guessers=(learnt, BM25), published={"elsewhere": "bm25"}, **more)
    training.train(given).save(tmp_path / "out")
    models = [(tmp_path / name / "config.json").read_text("utf-8") for name in ("work", "out")]
    assert "elsewhere" in models[0] and "elsewhere" not in models[1]
    assert models[0].replace("elsewhere", "bm25") == models[1]
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("work", "out")]
    assert files[0] == files[1]


# --- configs and files


def test_a_damaged_folder_is_refused_by_name(scorer, tmp_path):
    fusion(LEFT, RIGHT, scorer=scorer).save(tmp_path)
    config = tmp_path / "config.json"
    whole = config.read_text("utf-8")
    config.write_text(whole.replace('"bm25"', '"bm52"'), "utf-8")
    refused(DataError, "bm52", build, FusionConfig(model=str(tmp_path)))
    shorter = Path(tmp_path / "shorter")
    FusionGuesser([(BM25, LEFT)], scorer).save(shorter)
    refused(DataError, "not a fusion", FusionGuesser.load, shorter)
    refused(ConfigError, "nothing to save", fusion(LEFT, RIGHT).save, tmp_path)
