"""Phrase-based SMT on a tiny language: training stages, tuning, translation, packed models, damaged folders."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from needs import require
from recorded import recorded
from refusals import refused
from tables import tables_of

from smt.statistical import packed, tokens
from smt.statistical import stages as statistical_train
from smt.statistical.packed import LANGUAGE, TABLE, PackingConfig, phrases_of, read_model, unpack, unpacked
from smt.statistical.pbmt import Statistical, StatisticalConfig, build
from smt.statistical.phrase_table import LEXICON
from smt.statistical.stages import STAGES, choose
from smt.statistical.stages_config import PbmtConfig, TuningConfig
from smt.statistical.tune import START
from sqa.core import ConfigError, DataError, Question
from sqa.files import lines
from tests.tiny_language import CONFIG, pairs, train_tiny, use_tiny_language

TABLES = tables_of(__file__)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the runs folder of a finished training run."""
    require("statistical")
    runs = tmp_path_factory.mktemp("runs")
    train_tiny(runs)
    return runs


@pytest.fixture(scope="module")
def system(trained):
    loaded = Statistical(trained / "smt" / "tiny" / "model")
    yield loaded
    loaded.engine.close()


def test_tables_match_reference(trained):
    """Compare training texts, tables and packed phrases, but not the weights, which depend on the processor."""
    with recorded(Path(__file__)) as keep:
        for path in sorted((trained / "smt" / "tiny").rglob("*")):
            if path.name in ("train.source", "train.target", "language.txt", "forms.json", LANGUAGE, f"{TABLE}.ttable"):
                keep(path.name, "\n".join(path.read_text("utf-8").splitlines()[:400]))
        table = trained / "smt" / "tiny" / "model" / f"{TABLE}.ttable"
        keep("kept", "\n".join(map(str, phrases_of(table, PackingConfig()))))


def test_tiny_model_translates_known_words(system):
    texts = ["El rey viejo busca el barco.", "el gato rojo", "", "Qwertz tiene España"]
    # Qwertz is unknown and copied. Spain is from the list of names.
    words = ["The old king seeks the ship.", "the red cat", "", "Qwertz has Spain"]
    assert [" ".join(row) for row in system.words(texts)] == words


@pytest.mark.needs("sil-machine")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:machine")
def test_sil_machine_reads_the_folder(trained, system):
    """sil-machine reads the tables, and its model writes equal words."""
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
    """Run `train` and return the stages that it ran."""
    ran: list[str] = []

    def noted(name, stage):
        return lambda *arguments: (ran.append(name), stage(*arguments))

    stages = tuple((name, noted(name, stage), parts) for name, stage, parts in STAGES)
    patch.setattr(statistical_train, "STAGES", stages)
    use_tiny_language(patch)
    statistical_train.train(config, runs, fresh)
    return ran


@pytest.fixture
def copied(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "runs")
    return tmp_path / "runs"


def test_finished_stages_run_again_only_after_a_change(copied, monkeypatch):
    assert stages_run(CONFIG, copied, monkeypatch) == []
    changed = replace(CONFIG, tuning=replace(CONFIG.tuning, sentences=0))
    assert stages_run(changed, copied, monkeypatch) == ["tuning", "packing"]
    assert read_model(copied / "smt" / "tiny" / "model")["weights"] == list(START)


@pytest.mark.parametrize("fresh", [False, True])
def test_restarted_training_equals_an_uninterrupted_one(copied, trained, monkeypatch, fresh):
    folder = copied / "smt" / "tiny"
    for name in ("phrases", "tuning", "packing"):  # as if killed while writing the phrase table
        (folder / f"{name}.done.json").unlink()
    (folder / "model" / "table.ttable").write_text("half a li")
    (folder / "model" / "config.json").unlink()
    stages = [name for name, _, _ in STAGES] if fresh else ["phrases", "tuning", "packing"]
    assert stages_run(CONFIG, copied, monkeypatch, fresh) == stages
    again, first = (read_model(runs / "smt" / "tiny" / "model") for runs in (copied, trained))
    assert again == first
    rounds = again["about"]["tuning"]
    assert len(rounds) == 3 and rounds[0]["weights"] == list(START)
    assert again["weights"] == max(rounds, key=lambda row: row["bleu"])["weights"]


def test_best_matching_pairs_come_first():
    rows = [("a", "the Duke of York", "c"), ("b", "a line without any name", "c"), ("d", "Dogs", "c")]
    assert choose(rows, {"c": 2}, 50) == [rows[0], rows[1]]
    assert choose(rows, {"c": 2}, 4) == [rows[0], rows[2]]


# --------------------------------------------------------------------------------------------------------- errors


@pytest.mark.needs("statistical")
def test_invalid_settings_are_refused(tmp_path, monkeypatch):
    refused(ConfigError, "newstest2014' is not held out", replace, CONFIG, tuning=TuningConfig(("newstest2014",)))
    refused(ConfigError, "pairs: at least one corpus", replace, CONFIG.corpus, pairs={"made": 0})
    use_tiny_language(monkeypatch)
    config = replace(CONFIG, corpus=replace(CONFIG.corpus, pairs={"made": 1, "mad": 2}))
    refused(ConfigError, "no clean pairs in mad;", statistical_train.train, config, tmp_path)


def test_damaged_models_are_refused(copied):
    folder = copied / "smt" / "tiny" / "model"
    (folder / "table.ttable").write_text("x")
    refused(DataError, "table.ttable: differs from the trained file", read_model, folder)
    (folder / "table.ttable").unlink()
    refused(DataError, "table.ttable: not found", read_model, folder)
    for text in ("[]", '{"format": 1, "weights": 3}', '{"format": 9, "weights": []}'):
        (folder / "config.json").write_text(text)
        refused(DataError, "config.json: ", read_model, folder)
    (folder / "config.json").unlink()
    refused(ConfigError, "has no config.json; bundled are pbmt-es-en and pbmt-pl-en", read_model, folder)


@pytest.fixture
def model(trained):
    """Return the folder of the packed model of the tiny language."""
    return trained / "smt" / "tiny" / "packed"


def test_packed_model_writes_equal_words(model, tmp_path, monkeypatch):
    """Packing loses only combined phrases of the tiny language, so the words are equal."""
    monkeypatch.setenv("SQA_CACHE", str(tmp_path))
    whole, small = Statistical(model.parent / "model"), Statistical(unpacked(model))
    texts = [source for source, _, _ in list(pairs())[::7]]
    assert small.words(texts) == whole.words(texts) and len(texts) > 40
    for system in (whole, small):
        system.engine.close()
    assert [unpacked(model)] == list((tmp_path / "pbmt").iterdir())


def test_counts_round_trip(model, tmp_path):
    whole, small, again = (tmp_path / name for name in ("whole", "small", "again"))
    shutil.copytree(model.parent / "model", whole)
    rows = "king ||| rey ||| 7.0 3.0\nqueen ||| rey ||| 2.0 2.0\n"
    (whole / "table.ttable").write_text(rows, "utf-8")
    (whole / "language").write_text("a 5 3\nb 5 2\na b 3 2\na c 3 3\n", "utf-8")
    packed.pack(whole, small, PackingConfig(ngrams=3))
    assert list(lines(small / packed.NGRAMS)) == ["a\t3", "b\t2", "a c\t3"]
    assert list(lines(small / packed.PHRASES)) == ["rey\tking\t3\t7", "\tqueen\t2\t2"]
    again.mkdir()
    unpack(small, again)
    assert (again / "table.ttable").read_text("utf-8") == rows
    words = np.fromfile(again / "table_invswm.fa_lexnd", LEXICON)
    assert sorted(np.exp(words["log_count"] - words["log_total"])) == pytest.approx([0.4, 0.6])  # 2 and 3 of 5


PHRASES, NGRAMS, SETTINGS = packed.PHRASES, packed.NGRAMS, packed.CONFIG
DAMAGED = TABLES["damaged"]


@pytest.mark.parametrize(("name", "content", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_folders_are_refused(model, tmp_path, name, content, message):
    folder = shutil.copytree(model, tmp_path / "damaged")
    (folder / name).write_text(content) if name == SETTINGS else packed.write_zst(folder / name, iter(content))
    (tmp_path / "whole").mkdir()
    refused(DataError, message, unpack, folder, tmp_path / "whole")


@pytest.mark.needs("statistical")
def test_bundled_model_translates_polish():
    """tests/golden/test_recorded_runs.py covers Spanish."""
    question = Question("q", "d", "pl", (tuple("Ten autor napisał powieść o wojnie.".split()),), ("-",), "Page")
    trace = build(StatisticalConfig("pbmt-pl-en")).translate_batch([question])[0]
    assert " ".join(word.token for word in trace) == "This author wrote a novel about the war."
