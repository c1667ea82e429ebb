"""Training guessers and buzzers from a config: keys, folds, and a whole training on a made-up world."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import buzzers.train
import guessers.train
from buzzers.mlp import MlpBuzzer
from guessers import evaluate
from guessers.bm25 import Bm25Guesser, Bm25Training
from guessers.gru_train import GruTraining
from sqa import config as configs
from sqa.datasets import Tossup
from sqa.errors import ConfigError, DataError
from sqa.folds import fold_of
from sqa.paths import ROOT

CONFIGS = {
    "guesser_bm25": Bm25Training,
    "guesser_bm25_85": Bm25Training,
    "guesser_gru": GruTraining,
    "buzzer_mlp_bm25": buzzers.train.MlpTraining,
    "buzzer_mlp_gru": buzzers.train.MlpTraining,
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_configs_are_complete_and_every_key_is_explained(name):
    path = ROOT / "configs" / f"{name}.yaml"
    configs.load(path, CONFIGS[name])
    for line in path.read_text(encoding="utf-8").splitlines():
        assert not line or line.startswith("#") or "  # " in line or " # " in line, line


def test_folds_do_not_move_and_have_their_sizes():
    ids = [f"tossup-{i}" for i in range(4000)]
    folds = [fold_of(id) for id in ids]
    assert [place for place, fold in enumerate(folds[:60]) if fold != "guesser"] == [1, 9, 11, 19, 20, 29, 57]
    shares = {fold: folds.count(fold) / len(folds) for fold in ("guesser", "buzzer", "dev")}
    assert shares == pytest.approx({"guesser": 0.85, "buzzer": 0.10, "dev": 0.05}, abs=0.02)


def world(n: int = 400) -> list[Tossup]:
    """Tossups on twelve pages: words of no page first, the page's own words last; every fourth has no page."""
    rng = np.random.default_rng(0)
    tossups = []
    for i in range(n):
        page = int(rng.integers(12))
        common = [f"noise{rng.integers(30)}x" for _ in range(8)]
        own = [f"clue{page}y{rng.integers(4)}" for _ in range(6)]
        known = i % 4 > 0
        text = " ".join([*common, *(own if known else common)])
        tossups.append(Tossup(f"made-{i}", text, f"Page {page:02}" if known else None, "", "", "", None))
    return tossups


@pytest.fixture
def made_up(monkeypatch):
    monkeypatch.setattr(guessers.train, "load_tossups", world)
    monkeypatch.setattr(buzzers.train, "load_tossups", world)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_guesser_and_its_buzzer_train_from_configs(made_up, tmp_path, capsys):
    guesser = tmp_path / "guesser"
    config = write(tmp_path / "g.yaml", f"kind: bm25\noutput: {guesser}\nfolds: [guesser]\npair_min_count: 2\n")
    assert guessers.train.main(config) == guesser
    assert Bm25Guesser.load(guesser).guess(["clue3y1 clue3y2"], 1)[0][0].page == "Page 03"
    config = write(
        tmp_path / "b.yaml",
        f"kind: mlp\noutput: {tmp_path / 'buzzer'}\nguesser: {{name: bm25, model: {guesser}}}\nlimit: null\nhidden: 8\n"
        "batch: 64\nepochs: 6\nlearning_rate: 0.01\nweight_decay: 0.0001\nseed: 0\n",
    )
    folder = buzzers.train.main(config)
    buzzer = MlpBuzzer.load(folder)
    history = Bm25Guesser.load(guesser).guess_prefixes("noise1x noise2x clue3y1 clue3y2 clue3y0".split(), 10)
    assert buzzer.decide(history)[-1].score > buzzer.decide(history)[0].score
    again = buzzers.train.main(config, tmp_path / "again")
    assert MlpBuzzer.load(again).fingerprint() == buzzer.fingerprint()


def test_too_few_tossups_is_said(made_up, tmp_path, monkeypatch):
    monkeypatch.setattr(buzzers.train, "load_tossups", lambda: world(3))
    path = ROOT / "configs" / "buzzer_mlp_bm25.yaml"
    text = path.read_text(encoding="utf-8").replace("runs/train/bm25-85", "bm25")
    with pytest.raises(DataError, match="too few tossups"):
        buzzers.train.main(write(tmp_path / "b.yaml", text))


@pytest.mark.parametrize(
    ("text", "message"), [("kind: bm52\n", "expected one of bm25, gru"), ("folds: []\n", "got None")]
)
def test_an_unknown_kind_of_guesser_is_named(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        guessers.train.main(write(tmp_path / "g.yaml", text))


def test_a_mistyped_key_gets_the_nearest(tmp_path):
    path = ROOT / "configs" / "guesser_gru.yaml"
    text = path.read_text(encoding="utf-8").replace("dropout: 0.3 ", "dropuot: 0.3 ")
    with pytest.raises(ConfigError, match="dropuot: unknown, did you mean 'dropout'"):
        guessers.train.main(write(tmp_path / "g.yaml", text))


def test_mlp_sizes_are_checked():
    config = configs.load(ROOT / "configs" / "buzzer_mlp_bm25.yaml", buzzers.train.MlpTraining)
    with pytest.raises(ConfigError) as caught:
        dataclasses.replace(config, hidden=0, epochs=0)
    assert len(caught.value.problems) == 2


def test_evaluation_counts_unknown_pages_as_wrong(capsys):
    guesser = Bm25Guesser.fit([Tossup("a", "inca gold", "Peru", "", "", "", None)], 1)
    assert evaluate.evaluate(guesser, ["inca", "inca"], ["Peru", "Atlantis"]) == (0.5, 0.5, 0.5, 0.5)


def test_the_evaluation_command_prints_tsv(capsys):
    assert evaluate.main(["bm25", "--datasets", "mini-en"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split("\t") == list(evaluate.COLUMNS)
    name, dataset, n, *scores = row.split("\t")
    assert (name, dataset) == ("bm25", "mini-en") and int(n) >= 40 and all(0 < float(score) <= 1 for score in scores)


def test_the_evaluation_command_says_what_is_wrong(capsys):
    assert evaluate.main(["bm52"]) == 2
    assert "did you mean 'bm25'" in capsys.readouterr().err
