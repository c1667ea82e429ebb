"""Fine-tuning sees the same input as decoding, and a killed training run resumes with the same result."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
import yaml
from refusals import refused
from stand_ins.lm_models import make
from stand_ins.second_device import as_cuda
from tables import tables_of
from typer.testing import CliRunner

import smt.lm.fine_tuning as lm_train
import smt.train
from smt.lm.adapter import load_adapter
from smt.lm.base import load_base
from smt.lm.fine_tuning import Batches, LmTraining, Pairs, frequent, writable
from smt.lm.fine_tuning_config import LmConfig, LmTrainConfig
from smt.lm.lm_stepper import LmWriter
from smt.lm.tokenizer import Layout
from smt.policies.waitk import FULL, Schedule
from smt.statistical.lexicon import Glosses
from smt.training import prepare
from smt.training.prepare import CorpusConfig
from smt.training.steps import run_steps
from sqa.cli import app
from sqa.core import ConfigError
from sqa.files import Place, place

TABLES = tables_of(__file__)

pytestmark = pytest.mark.needs("peft")

TEXTS = TABLES["texts"]
GLOSSES = Glosses({"perr": [("dog", 1.0)]}, {"perr": 1}, "es")
SETTINGS = {"steps": 6, "batch_pieces": 60, "rank": 4, "warmup": 2, "cooldown": 2, "learning_rate": 0.01}
SETTINGS |= {"checkpoint_every": 2, "evaluate_every": 0, "compile": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make(tmp_path_factory.mktemp("base"), "gemma3_text", seed=3)


def parts(folder, runs, texts=TEXTS * 4, **settings):
    base = load_base(folder)
    base.network.place(Place(place(LmTrainConfig(**(SETTINGS | settings))).device, "float32"))
    layout = Layout.of(base.tokens, "es", "en")
    pairs = Pairs.of(texts, base.tokens, layout, 50)
    pieces = frequent(pairs, base.tokens, layout, 100)
    config = LmTrainConfig(**(SETTINGS | settings))
    return base, layout, pairs, LmTraining(base, pairs, layout, pieces, config, runs, never)


def test_training_agrees_across_devices(folder, tmp_path, monkeypatch):
    as_cuda(monkeypatch)
    trainings = [parts(folder, tmp_path / device, device=device)[3] for device in ("cpu", "cuda")]
    losses = [[training.step(number)[0] for number in range(3)] for training in trainings]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def never() -> float:
    raise AssertionError("nothing is evaluated here")


@torch.inference_mode()
@pytest.mark.parametrize(("k", "ahead"), [(1, False), (2, False), (3, False), (FULL, False), (FULL, True)])
def test_training_sees_the_input_of_decoding(folder, tmp_path, k, ahead):
    base, layout, pairs, trainer = parts(folder, tmp_path)
    batch = Batches(pairs, layout, 10_000, 0).make(np.arange(4), np.random.default_rng(0))
    s = batch.source_needs.shape[1]
    states = base.network(
        batch.pieces, batch.positions, batch.mask(torch.full((4,), k), torch.float32, torch.full((4,), ahead))
    )
    writer = LmWriter.of(base, layout, trainer.choice, ahead=ahead)
    for row, (source, target) in enumerate(TEXTS):
        stepper = writer.begin([source.split()], Schedule(k))
        chosen, words = base.tokens.words(target.split())
        for t, (piece, word) in enumerate(zip(chosen, words, strict=True)):
            stepper.state.read = torch.minimum(torch.tensor([word + k]), stepper.state.length + 1)
            trained = writer.scores(states[row, s + len(layout.asking) - 1 + t])
            assert torch.allclose(stepper.score()[0][0], trained, atol=1e-4), (row, t)
            stepper.state.commit((writer.pieces == piece).nonzero()[0], torch.tensor([True]))


def test_translation_may_use_words_unseen_in_training(folder, tmp_path):
    base, _, _, trainer = parts(folder, tmp_path)
    learnt, written = set(trainer.choice.tolist()), set(writable(trainer.choice, base.tokens).tolist())
    assert learnt < written and set(base.tokens.word("Polish")) <= written
    assert all(any(map(str.isalpha, base.tokens.texts[piece])) for piece in written - learnt)


@torch.inference_mode()
def test_only_full_input_is_read_bidirectionally(folder, tmp_path):
    _, _, _, trainer = parts(folder, tmp_path, full_share=0.5, bidirectional_share=0.5)
    k, ahead = trainer.draw(2000, np.random.default_rng(0))
    assert bool((k[ahead] == FULL).all()) and 0.4 < float((k == FULL).float().mean()) < 0.6
    assert 0.2 < float(ahead.float().mean()) < 0.3
    _, none = parts(folder, tmp_path)[3].draw(9, np.random.default_rng(0))
    assert none is None


def test_padding_has_no_effect_on_training(folder, tmp_path):
    *_, trainer = parts(folder, tmp_path)
    together = trainer.batches.make(np.arange(4), np.random.default_rng(0))
    loss, pieces = trainer.loss(together, torch.full((4,), FULL))
    alone = [
        trainer.loss(trainer.batches.make(np.array([i]), np.random.default_rng(0)), torch.tensor([FULL]))
        for i in range(4)
    ]
    assert pieces == sum(n for _, n in alone)
    assert loss.item() == pytest.approx(sum(x.item() * n for x, n in alone) / pieces, abs=1e-5)


def test_training_lowers_the_loss(folder, tmp_path):
    *_, trainer = parts(folder, tmp_path, steps=60, cooldown=10)
    run_steps(trainer)
    losses = [float(line.split("\t")[1]) for line in (tmp_path / "steps.tsv").read_text().splitlines()[1:]]
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:3])


def test_pairs_have_glosses_after_rare_source_words(folder, tmp_path, monkeypatch):
    base = load_base(folder)
    monkeypatch.setattr(prepare, "cleaned", lambda *_: [("perro", "dog", "prose")] * 99)
    monkeypatch.setattr(prepare, "lexicon_pairs", lambda _: [])
    monkeypatch.setattr(lm_train, "glosses_of", lambda config: config.glosses and GLOSSES)
    plain = LmConfig("a", str(folder), CorpusConfig("es-en", default_weight=1.0), full_weight_words=1)

    def sources(config):
        pairs, _ = lm_train.prepared(config, base, Layout.of(base.tokens, "es", "en"), tmp_path)
        bounds = pairwise(pairs.source_start)
        return {base.tokens.decode([int(piece) for piece in pairs.source[a:b]]).split()[-1] for a, b in bounds}

    assert sources(plain) == {"perro"}
    assert sources(replace(plain, glosses="pbmt-es-en")) == {"perro", "perro[dog]"}


def test_own_pairs_need_no_data_of_the_project(folder, tmp_path):
    base, file = load_base(folder), tmp_path / "pairs.tsv"
    config = LmConfig("a", str(folder), CorpusConfig("fr-en", train=str(file)), full_weight_words=1)

    def words(target):
        file.write_text(f"le chien noir dort\t{target}\n" * 3, encoding="utf-8")
        pairs, _ = lm_train.prepared(config, base, Layout.of(base.tokens, "fr", "en"), tmp_path / "prepared")
        return base.tokens.decode(pairs.target.tolist()).split()

    assert words("the black dog sleeps")[:4] == ["the", "black", "dog", "sleeps"]
    assert words("the black dog is asleep")[3:5] == ["is", "asleep"]  # an edited file is prepared again


@pytest.fixture
def config(folder, tmp_path, monkeypatch):
    """Write a config for `sqa train smt` and return its path; training uses the pairs of TEXTS."""

    def few(config, base, layout, data):
        pairs = Pairs.of(TEXTS * 4, base.tokens, layout, 50)
        return pairs, frequent(pairs, base.tokens, layout, 100)

    monkeypatch.setattr(lm_train, "prepared", few)
    mapping = {"name": "tiny", "base": str(folder), "corpus": {"pair": "es-en"}, "train": SETTINGS}
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


def test_command_fine_tunes_one_adapter_per_seed(config, tmp_path):
    def folders(*arguments):
        done = CliRunner().invoke(app, ["train", "smt", str(config), "--runs", str(tmp_path), *arguments])
        assert done.exit_code == 0, done.output
        return done.stdout.splitlines()

    tiny = tmp_path / "smt" / "tiny"
    assert folders() == [str(tiny / "model")]
    kept = {"source": "es", "target": "en", "rank": 4, "scale": 2.0, "bidirectional": False, "glosses": False}
    about = load_adapter(tiny / "model").config
    assert kept.items() <= about.items() and (about["about"]["pairs"], about["about"]["steps"]) == (16, 6)
    seeds = [tiny / f"seed{seed}" / "model" for seed in (0, 1)]
    assert folders("--seeds", "2") == list(map(str, seeds))
    first, second = (load_adapter(model).weights for model in seeds)
    assert any(not torch.equal(first[name], second[name]) for name in first)
    config.write_text(config.read_text(encoding="utf-8").replace("rank: 4", "rank: 8"), encoding="utf-8")
    refused(ConfigError, r"belongs to another config \(train.rank differ\)", smt.train.main, config, tmp_path)
    config.write_text(config.read_text(encoding="utf-8").replace("name: tiny", "name: a/b"), encoding="utf-8")
    refused(ConfigError, "name: must be a plain folder name", smt.train.main, config, tmp_path)


@pytest.mark.parametrize(("options", "message"), TABLES["impossible_fine_tuning_gives_one_line_error"])
def test_impossible_fine_tuning_gives_one_line_error(config, tmp_path, options, message):
    refused(ConfigError, message, smt.train.main, config, tmp_path, **options)
