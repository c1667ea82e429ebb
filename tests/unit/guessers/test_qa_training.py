"""Training guessers and buzzers from a config: keys, folds, and complete training runs on generated tossups."""

import json
from dataclasses import fields

import numpy as np
import pytest
import yaml
from refusals import refused
from tables import tables_of

import buzzers.train
import guessers.train
import guessers.training_texts
from buzzers import learnt
from buzzers.histories import histories_of
from buzzers.learnt import LOGISTIC, MLP
from buzzers.recurrent import RECURRENT
from guessers.bert.train import BertTraining
from guessers.gru.train import GruTraining
from guessers.rerank.train import RerankTraining
from guessers.retrieval.bm25 import Bm25Guesser
from guessers.retrieval.counting import Bm25Training
from sqa.core import ROOT, ConfigError
from sqa.data.texts import Tossup, corrupt, fold_of, half_of
from sqa.files import parse_yaml, read_yaml
from sqa.pipeline import config as configs

TABLES = tables_of(__file__)

CONFIGS = {
    **dict.fromkeys(["bm25", "bm25-85", "bm25-lucene"], Bm25Training),
    **dict.fromkeys(["gru", "gru-bidirectional", "gru-paper"], GruTraining),
    "bert": BertTraining,
    "rerank": RerankTraining,
}
EXTRA = {"mlp": ("bert", "bm25-translated", "rerank", "rerank-translated")}
CONFIGS = {f"train_guessers.yaml:{name}": training for name, training in CONFIGS.items()} | {
    f"train_buzzers.yaml:{kind}-{guesser}": training
    for kind, training in buzzers.train.KINDS.items()
    for guesser in ("bm25", "gru", *EXTRA.get(kind, ()))
}


@pytest.mark.parametrize("name", CONFIGS)
def test_bundled_training_configs_are_valid(name):
    assert configs.load(ROOT / "configs" / name, CONFIGS[name])
    if CONFIGS[name] is GruTraining:
        assert set(read_yaml(ROOT / "configs" / name)) == {field.name for field in fields(GruTraining)}


IMPOSSIBLE = r"""
gru    | {hidden: 0, batch: 1, dropout: 1.0, rate_factor: 1.0} | hidden; batch; dropout; rate_factor
gru    | {bottleneck: 3}                  | needs it equal
gru    | {bottleneck: null}               | bottleneck: must be >= 1
gru    | {direction: bidirectional}       | bottleneck: must be null
gru    | {vectors: glove.txt}             | start: must be random if
bert   | {bottleneck: 0, dropout: 1.0}    | bottleneck; dropout
rerank | {points: 0, noise: 1.5, learning_rate: 0.0, limit: 7} | points; noise; learning_rate; limit
rerank | {learnt: {model: bm25, folds: [guesser, buzzer], bonus: true}} | learnt.folds: must not contain buzzer
"""


@pytest.mark.parametrize("row", IMPOSSIBLE.strip().splitlines())
def test_impossible_training_is_refused(tmp_path, row):
    name, change, says = map(str.strip, row.split("|"))
    mapping = read_yaml(ROOT / "configs" / f"train_guessers.yaml:{name}") | parse_yaml(change)
    path = write(tmp_path / "g.yaml", yaml.safe_dump(mapping))
    for said in says.split("; "):
        refused(ConfigError, said, configs.load, path, CONFIGS[f"train_guessers.yaml:{name}"])


def test_folds_are_stable_and_have_their_sizes():
    ids = [f"tossup-{i}" for i in range(4000)]
    folds = [fold_of(id) for id in ids]
    assert [place for place, fold in enumerate(folds[:60]) if fold != "guesser"] == [1, 9, 11, 19, 20, 29, 57]
    shares = {fold: folds.count(fold) / len(folds) for fold in ("guesser", "buzzer", "dev")}
    assert shares == pytest.approx({"guesser": 0.85, "buzzer": 0.10, "dev": 0.05}, abs=0.02)


def world(n: int = 400) -> list[Tossup]:
    """Return tossups that begin with general words; every fourth has only such words and none of the twelve pages."""
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
    monkeypatch.setattr("sqa.data.texts.load_tossups", world)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


TRAINING = """training:
  features: all
  objective: wins
  label_weight: 0.3
  batch: 8
  epochs: 3
  learning_rate: 0.01
  weight_decay: 0.0001
  seed: 0
"""
NETWORKS = {
    "logistic": (LOGISTIC, TRAINING),
    "mlp": (MLP, "network: {hidden: 8}\n" + TRAINING),
    "recurrent": (RECURRENT, "network: {hidden: 8, dropout: 0.4, skip: true}\n" + TRAINING),
}


@pytest.fixture
def guesser(made_up, tmp_path):
    """Return the folder of a BM25 guesser trained on the generated tossups."""
    folder = tmp_path / "guesser"
    text = yaml.safe_dump(
        read_yaml(ROOT / "configs" / "train_guessers.yaml:bm25-85") | {"output": str(folder), "bonus": False}
    )
    assert guessers.train.main(write(tmp_path / "g.yaml", text)) == folder
    return folder


def buzzer_config(tmp_path, guesser, kind: str, rest: str):
    data = f"{{guesser: bm25, model: {guesser}, limit: null, noise: 0.5, cache: {tmp_path / 'played'}}}"
    return write(tmp_path / f"{kind}.yaml", f"kind: {kind}\noutput: {tmp_path / kind}\ndata: {data}\n{rest}")


@pytest.mark.parametrize("kind", NETWORKS)
def test_buzzer_trains_from_a_config(kind, guesser, tmp_path, capsys):
    network, rest = NETWORKS[kind]
    config = buzzer_config(tmp_path, guesser, kind, rest)
    buzzer = learnt.load(network, buzzers.train.main(config))
    assert capsys.readouterr().out == ""
    history = Bm25Guesser.load(guesser).guess_prefixes("noise1x noise2x clue3y1 clue3y2 clue3y0".split(), 10)
    chances = [buzz.score for buzz in buzzer.decide(history)]
    assert chances[-1] > chances[0]
    again = buzzers.train.main(config, tmp_path / "again")
    assert learnt.load(network, again).fingerprint() == buzzer.fingerprint()
    assert 0 < buzzer.threshold <= 1 and buzzer.card.guesser == "bm25"


def test_buzzer_trains_on_translations(guesser, tmp_path, monkeypatch, capsys):
    whole = [tossup for tossup in world() if fold_of(tossup.id) == "buzzer"]
    lines = [{"id": tossup.id, "sentences": tossup.text.split()[::2]} for tossup in whole[:20]]
    file = write(tmp_path / "translated.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    played: dict[str, list[Tossup]] = {}

    def histories(guesser, tossups, name, cache):
        played[name] = list(tossups)
        return histories_of(guesser, tossups, name, cache)

    monkeypatch.setattr(buzzers.train, "histories_of", histories)
    config = buzzer_config(tmp_path, guesser, "mlp", "end: answer\n" + NETWORKS["mlp"][1])
    text = config.read_text("utf-8").replace("data: {", f"data: {{half: first, translated: [{file}], ")
    buzzer = learnt.load(MLP, buzzers.train.main(write(config, text)), end="answer")
    assert buzzer.card.end == "answer" and set(buzzer.card.thresholds) == {"answer", "silent"}
    names = {"buzzer", "dev", "buzzer translated.jsonl"}
    assert set(played) == names | {f"{name} corrupted" for name in names}
    first = [tossup for tossup in whole if half_of(tossup.id) == "first"]
    assert 0 < len(first) < len(whole) and played["buzzer"] == first
    texts = {line["id"]: " ".join(line["sentences"]) for line in lines}
    made = played["buzzer translated.jsonl"]
    assert {tossup.id for tossup in made} == {t.id for t in first} & set(texts)
    assert all(tossup.text == texts[tossup.id] for tossup in made)


def test_held_out_data_is_not_trained_on(guesser, tmp_path):
    data = buzzers.train.load_config(buzzer_config(tmp_path, guesser, "threshold", "")).data
    learnt, kept, tuning, dev = buzzers.train.material(data)
    n = sum(fold_of(tossup.id) == "buzzer" for tossup in world())
    assert len(kept) == 2 * len(range(0, n, buzzers.train.KEPT_BACK)) and len(learnt) == 2 * n - len(kept)
    assert tuning == kept and set(dev) == {"dev", "dev corrupted"}


@pytest.mark.parametrize(("kind", "network", "takes"), TABLES["buzzer_refuses_keys_of_other_networks"])
def test_buzzer_refuses_keys_of_other_networks(kind, network, takes, tmp_path):
    path = buzzer_config(tmp_path, "bm25", kind, f"network: {network}\n{TRAINING}")
    refused(ConfigError, f"network: {kind} takes {takes}", buzzers.train.load_config, path)


def test_corruption_is_repeatable_and_keeps_lengths():
    tossups = world(60)

    def shares(corrupted):
        """Return the share of changed words of each tossup."""
        words = [(a.text.split(), b.text.split()) for a, b in zip(tossups, corrupted, strict=True)]
        return [np.mean([x != y for x, y in zip(*pair, strict=True)]) for pair in words]

    corrupted = corrupt(tossups, 0.6)
    assert corrupted == corrupt(tossups, 0.6) and corrupt(tossups, 0.0) == tossups
    assert [(t.id, t.page) for t in corrupted] == [(t.id, t.page) for t in tossups]
    assert 0.2 < np.mean(shares(corrupted)) < 0.35 and max(shares(corrupted)) < 0.95 and min(shares(corrupted)) < 0.1
    assert any("the" in after.text.split() for after in corrupted)
    drawn = [corrupt([Tossup(str(i), "Lima", "Peru", "", "", "made", None)], 1.0, 1.0) for i in range(9)]
    assert {tossup.text for [tossup] in drawn} == {"Lima", "the"}  # words are drawn from its own text
    assert 0.8 < np.mean(shares(corrupt(tossups, 0.9, 0.9))) < 0.95
