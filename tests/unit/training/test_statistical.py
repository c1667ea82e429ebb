"""Phrase-based SMT end to end on a tiny language: training in stages, tuning, translating, folders that are broken."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused

from smt.statistical import tokens
from smt.statistical import train as statistical_train
from smt.statistical.config import PbmtConfig, TuningConfig
from smt.statistical.model import read_model
from smt.statistical.train import STAGES, choose
from smt.statistical.translator import Statistical
from smt.statistical.tune import START
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import ROOT
from sqa.run.config import load
from tests.tiny_language import CONFIG, pairs, train_tiny, use_tiny_language


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The runs folder of a finished training."""
    pytest.importorskip("thot")
    runs = tmp_path_factory.mktemp("runs")
    train_tiny(runs)
    return runs


@pytest.fixture(scope="module")
def system(trained):
    loaded = Statistical(trained / "smt" / "tiny" / "model")
    yield loaded
    loaded.engine.close()


def test_words(system):
    assert system.words(["El rey viejo busca el barco.", "el gato rojo", "", "Qwertz tiene España"]) == [
        ("The", "old", "king", "seeks", "the", "ship."),
        ("the", "red", "cat"),
        (),
        ("Qwertz", "has", "Spain"),  # unknown: copied; a name: from the list of names
    ]


def test_the_search_is_limited_to_what_can_matter(system):
    """Neither phrases longer than the table's nor a cost to come that is equal everywhere: the words are the same."""
    model, texts = system.engine.model, ["El rey viejo busca el barco.", "El perro negro mira el libro rojo de España."]
    quick = (model.a, model.heuristic)
    words = system.words(texts)
    model.a, model.heuristic = 10, 6
    assert system.words(texts) == words
    model.a, model.heuristic = quick
    assert quick == (4, 0)  # of 5 tokens that the training allows


def test_odd_texts(system):
    assert system.words(["Rey " + "rey " * 400]) == [("King", *["king"] * 400)]  # longer than the decoder takes
    assert system.words(["||| <unk> (rey) ({ 1 })"])[0] == ("|||", "<unk>", "(king)", "({", "1", "})")


@pytest.mark.filterwarnings("ignore::DeprecationWarning:machine")
def test_sil_machine_reads_the_folder(trained, system):
    """The tables are in the format of sil-machine, and its model gives the same words."""
    pytest.importorskip("machine")
    from machine.translation.thot import ThotSmtModel, ThotSmtParameters

    folder = trained / "smt" / "tiny" / "model"
    parameters = ThotSmtParameters(
        translation_model_filename_prefix=str(folder / "table"),
        language_model_filename_prefix=str(folder / "language"),
        model_weights=read_model(folder)["weights"],
    )
    with ThotSmtModel("fast_align", parameters) as model:
        for source, _, _ in list(pairs())[::31]:
            words = tokens.truecase(tokens.tokenise(source), system.forms)
            assert list(model.translate(words).target_tokens) == system.engine.translate([words])[0]


# ------------------------------------------------------------------------------------------------------- training


def stages_run(config: PbmtConfig, runs: Path, patch: pytest.MonkeyPatch, fresh: bool = False) -> list[str]:
    """Which stages `train` ran."""
    ran: list[str] = []

    def noted(name, stage):
        return lambda *arguments: (ran.append(name), stage(*arguments))

    patch.setattr(
        statistical_train, "STAGES", tuple((name, noted(name, stage), parts) for name, stage, parts in STAGES)
    )
    use_tiny_language(patch)
    statistical_train.train(config, runs, fresh)
    return ran


@pytest.fixture
def copied(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "runs")
    return tmp_path / "runs"


def test_what_is_finished_is_made_again_only_after_a_change(copied, monkeypatch):
    assert stages_run(CONFIG, copied, monkeypatch) == []
    changed = replace(CONFIG, tuning=replace(CONFIG.tuning, sentences=0))
    assert stages_run(changed, copied, monkeypatch) == ["tuning", "packing"]
    assert read_model(copied / "smt" / "tiny" / "model")["weights"] == list(START)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_killed_training_goes_on_or_starts_anew_and_ends_the_same(copied, trained, monkeypatch, fresh):
    folder = copied / "smt" / "tiny"
    for name in ("phrases", "tuning", "packing"):  # as if killed while it wrote the phrase table
        (folder / f"{name}.done.json").unlink()
    (folder / "model" / "table.ttable").write_text("half a li")
    (folder / "model" / "config.json").unlink()
    stages = [name for name, _, _ in STAGES] if fresh else ["phrases", "tuning", "packing"]
    assert stages_run(CONFIG, copied, monkeypatch, fresh) == stages
    again, first = (read_model(runs / "smt" / "tiny" / "model") for runs in (copied, trained))
    assert again == first
    rounds = json.loads((folder / "weights.json").read_text())["rounds"]
    assert len(rounds) == 3 and rounds[0]["weights"] == list(START)
    assert again["weights"] == max(rounds, key=lambda row: row["bleu"])["weights"]


def test_best_suited_pairs_come_first():
    rows = [("a", "the Duke of York", "c"), ("b", "a line without any name", "c"), ("d", "Dogs", "c")]
    assert choose(rows, {"c": 2}, 50) == [rows[0], rows[1]]
    assert choose(rows, {"c": 2}, 4) == [rows[0], rows[2]]


# --------------------------------------------------------------------------------------------------------- errors


def test_invalid_settings(tmp_path, monkeypatch):
    refused(ConfigError, "newstest2014' is not kept out", replace, CONFIG, tuning=TuningConfig(("newstest2014",)))
    refused(ConfigError, "pairs: at least one corpus", replace, CONFIG.corpus, pairs={"made": 0})
    pytest.importorskip("thot")
    use_tiny_language(monkeypatch)
    config = replace(CONFIG, corpus=replace(CONFIG.corpus, pairs={"made": 1, "mad": 2}))
    refused(ConfigError, "no clean pair in mad;", statistical_train.train, config, tmp_path)


@pytest.mark.parametrize("text", [None, "[]", '{"format": 1, "weights": 3}', '{"format": 9, "weights": []}'])
def test_a_configuration_of_something_else(tmp_path, text):
    if text is None:
        refused(ConfigError, "has no config.json; bundled are pbmt-es-en and pbmt-pl-en", read_model, tmp_path)
        return
    (tmp_path / "config.json").write_text(text)
    refused(DataError, "config.json: ", read_model, tmp_path)


def test_damaged_tables_do_not_reach_the_engine(copied):
    folder = copied / "smt" / "tiny" / "model"
    with (folder / "table.ttable").open("a") as file:
        file.write("x")
    refused(DataError, "table.ttable: not the file that was trained", read_model, folder)
    (folder / "table.ttable").unlink()
    refused(DataError, "table.ttable: not found", read_model, folder)


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("pbmt_*.yaml")), ids=lambda path: path.stem)
def test_shipped_configs_load(path):
    assert load(path, PbmtConfig).name.startswith("pbmt-")
