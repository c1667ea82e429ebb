"""Sweeps: no model is trained twice, lost when a process is killed, or confused with another."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import pytest
from refusals import refused

import smt.training.sweep
from smt.models.bundle import load_model, save_model
from smt.models.vocab import Vocabulary
from smt.training.sweep import Finished, expand, finished, main, parse_sweep, sweep, table
from smt.training.transformer_training import prepared_data, train_in
from sqa.core import ConfigError, DataError
from sqa.files import locked
from sqa.pipeline import to_mapping
from tests.smt_models import random_model, vocabulary
from tests.sweep_process import config, sentence_pairs


def test_values_of_k_are_parsed():
    assert parse_sweep("k=3,6,full,multi") == (3, 6, "full", "multi")
    for wrong in ("3,6", "k=", "k=0", "k=3,3", "k=three", "seeds=3"):
        refused(ConfigError, "--sweep", parse_sweep, wrong)


def test_sweep_has_one_run_per_k_and_seed():
    base = replace(config(), full_encoder="bidirectional", train=replace(config().train, seed=5))
    trainings = expand(base, (2, "full", "multi"), 2, Path("f"))
    assert [run.folder.name for run in trainings] == [
        f"{k}-seed{seed}" for seed in (5, 6) for k in ("k2", "kfull", "multi")
    ]
    assert [run.config.train.k for run in trainings[:3]] == [(2,), ("full",), (2, "full")]
    assert [run.config.model.encoder for run in trainings[:3]] == ["causal", "bidirectional", "causal"]
    assert {run.config.train.seed for run in trainings} == {5, 6}
    refused(ConfigError, "--seeds", expand, base, (2,), 0, Path("f"))


def test_table_has_mean_and_sd_over_seeds():
    made = [Finished(6, seed, {"6": bleu}, 2.0, Path()) for seed, bleu in enumerate((10.0, 11.0, 13.0))]
    made += [
        Finished("full", 0, {"full": 14.0}, 4.0, Path()),
        Finished("multi", 0, {"6": 9.0, "full": 12.5}, 5.0, Path()),
    ]
    assert table(made) == [
        ("separate", "6", "3", "11.33", f"{stdev((10, 11, 13)):.2f}", "10.00 11.00 13.00", "2.0"),
        ("separate", "full", "1", "14.00", "n/a", "14.00", "4.0"),
        ("multi-path", "6", "1", "9.00", "n/a", "9.00", "5.0"),
        ("multi-path", "full", "1", "12.50", "n/a", "12.50", "5.0"),
    ]


def test_finished_training_runs_are_not_repeated(runs, monkeypatch, capsys):
    path = runs / "tiny.yaml"
    import yaml

    path.write_text(yaml.safe_dump(to_mapping(config())), encoding="utf-8")
    main(path, runs, "k=2,multi", 2)
    printed = capsys.readouterr().out
    header, *rows = [line.split("\t") for line in printed.splitlines()]
    assert [row[:3] for row in rows] == [["separate", "2", "2"], ["multi-path", "2", "2"], ["multi-path", "full", "2"]]
    assert header[3:5] == ["bleu_mean", "bleu_sd"] and (runs / "smt" / "tiny" / "sweep.tsv").read_text() == printed
    folder = runs / "smt" / "tiny" / "k2-seed0"
    assert not list(folder.glob("checkpoint-*")) and load_model(folder / "model")[2]["steps"] == 4
    assert len((folder / "steps.tsv").read_text().splitlines()) == 5

    monkeypatch.setattr(smt.training.sweep, "train_in", lambda *a, **k: pytest.fail("trained again"))
    main(path, runs, "k=2,multi", 2)
    assert capsys.readouterr().out == printed


def test_other_config_data_or_start_model_is_refused(runs):
    sweep(config(), (2,), 1, runs)
    changed = config(learning_rate=3e-3)
    with pytest.raises(ConfigError, match=r"k2-seed0 belongs to another config \(train.learning_rate differ\)"):
        sweep(changed, (2,), 1, runs)
    assert len(sweep(config(threads=2), (2,), 1, runs)) == 1  # has no effect on the result
    assert len(sweep(changed, (2,), 1, runs, fresh=True)) == 1
    data = runs / "smt" / "mini" / "data"
    (data / "lexicon_probabilities.npy").write_bytes((data / "lexicon_probabilities.npy").read_bytes()[:-1] + b"x")
    refused(ConfigError, r"another config \(data differ\)", sweep, changed, (2,), 1, runs)


def test_fresh_keeps_training_runs_of_other_processes(runs):
    folder = runs / "smt" / "tiny" / "k2-seed0"
    with locked(folder, wait=False) as is_free:
        assert is_free
        with locked(folder, wait=False) as second:
            assert not second
        refused(ConfigError, "--fresh", sweep, config(), (2,), 1, runs, fresh=True)


def test_run_starts_from_the_start_model(runs):
    model = random_model()
    folder = save_model(model, vocabulary(), runs / "start", {})
    start = replace(config(2, learning_rate=0.0), start=str(folder), model=model.config, full_encoder="bidirectional")
    sweep(start, (2, "full"), 1, runs)
    for name, encoder in (("k2-seed0", "causal"), ("kfull-seed0", "bidirectional")):
        trained = load_model(runs / "smt" / "tiny" / name / "model")[0]
        assert trained.config.encoder == encoder
        for key, theirs in load_model(folder)[0].state_dict().items():
            assert (trained.state_dict()[key] - theirs).abs().max() <= 1e-6, key


def test_mismatched_start_model_is_refused(runs, tmp_path):
    narrow = replace(config(), start=str(save_model(random_model(), vocabulary(), runs / "start", {})))
    data = prepared_data(narrow, runs)
    refused(ConfigError, r"model.heads: .* has 4, got 2", train_in, tmp_path / "a", narrow, data)
    of_targets = Vocabulary.train((y for _, y, _ in sentence_pairs()), 600)
    folder = str(save_model(random_model(), of_targets, runs / "alien", {}))
    alien = replace(config(), start=folder, model=random_model().config)
    refused(ConfigError, "the training data were not segmented", train_in, tmp_path, alien, prepared_data(alien, runs))
    nowhere = replace(config(), start="runs/smt/nowhere/model")
    refused(ConfigError, "^start: no model 'runs/smt/nowhere/model'", train_in, tmp_path, nowhere, data)


def test_data_of_another_corpus_is_refused(runs, tmp_path):
    refused(ConfigError, "data: .* contains no data", prepared_data, replace(config(), data="elsewhere"), runs)
    other = replace(config(), corpus=replace(config().corpus, lexicon_weight=2.0))
    refused(ConfigError, "data: .* contains no data", prepared_data, other, runs)
    folder = tmp_path / "k3-seed0"
    folder.mkdir()
    (folder / "done.json").write_text(json.dumps({"k": 3}))
    refused(DataError, r"done\.json: not a file of a sweep", finished, tmp_path)
