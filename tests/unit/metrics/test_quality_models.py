"""COMET, BERTScore and BLEURT with tiny models: scores equal to those of the packages, and invalid models."""

import pickle
import shutil
import socket
import warnings
from pathlib import Path
from types import ModuleType

import pytest
import torch
import yaml
from refusals import refused
from safetensors.torch import load_file, save_file
from small_runs import small_run
from stand_ins import quality_models
from tables import tables_of

from sqa.core import ConfigError, DataError, Emission, Question, QuestionTrace, SqaError
from sqa.metrics.quality import bertscore, bleurt, comet
from sqa.metrics.quality.bertscore import BertScoreConfig
from sqa.metrics.quality.bleurt import BleurtConfig
from sqa.metrics.quality.comet import CometConfig
from sqa.metrics.quality.text_metric import Segment, segment_of
from sqa.pipeline import report

TABLES = tables_of(__file__)

needs_comet, needs_bertscore, needs_bleurt = map(pytest.mark.needs, ("comet", "bert-score", "bleurt"))

TEXTS = TABLES["texts"]
SEGMENTS = [Segment(f"q{i}", *texts) for i, texts in enumerate(TEXTS)]


def problem(module: ModuleType, config: object) -> str:
    """Return the one-line error for a metric of this config."""
    return refused(SqaError, "^.*$", lambda: module.build(config).measure(SEGMENTS))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quality_models.save_bert(tmp_path_factory.mktemp("quality") / "bert")


@pytest.fixture(scope="module")
def xlmr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quality_models.save_xlmr(tmp_path_factory.mktemp("quality") / "xlmr")


@pytest.fixture(scope="module")
def comets(tmp_path_factory: pytest.TempPathFactory, bert: Path, xlmr: Path) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("comet")
    models = {"regression-bert": ("RegressionMetric", bert), "regression-xlmr": ("RegressionMetric", xlmr)}
    models["unified-xlmr"] = ("UnifiedMetric", xlmr)
    saved = {name: quality_models.save_comet(folder / name, encoder, kind) for name, (kind, encoder) in models.items()}
    return saved | {"kiwi-xlmr": quality_models.save_comet(folder / "kiwi-xlmr", xlmr, "UnifiedMetric", kiwi=True)}


# --------------------------------------------------------------------------------------------------------- COMET


@needs_comet
@pytest.mark.parametrize("name", ["regression-bert", "regression-xlmr", "unified-xlmr", "kiwi-xlmr"])
def test_comet_equals_the_package(comets: dict[str, Path], name: str) -> None:
    metric = comet.build(CometConfig(str(comets[name]), batch_size=3))
    scores = metric.measure(SEGMENTS)
    assert len({score for score, _ in scores}) == 4 and {count for _, count in scores} == {1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from comet import load_from_checkpoint

        model = load_from_checkpoint(str(comets[name] / "checkpoints" / "model.ckpt"), local_files_only=True)
        rows = [{"src": s.source, "mt": s.hypothesis, "ref": s.reference} for s in SEGMENTS]
        expected = model.predict(rows, gpus=0, num_workers=0, progress_bar=False)["scores"]
    assert [score for score, _ in scores] == pytest.approx(expected, abs=1e-5)


@needs_comet
def test_bfloat16_is_in_comets_signature(comets: dict[str, Path]) -> None:
    metrics = [comet.build(CometConfig(str(comets["unified-xlmr"]), dtype=d)) for d in ("float32", "bfloat16")]
    exact, rough = ([score for score, _ in metric.measure(SEGMENTS)] for metric in metrics)
    assert rough == pytest.approx(exact, abs=0.1) and rough != exact
    assert ["dtype:bfloat16" in metric.signature() for metric in metrics] == [False, True]
    assert len({metric.fingerprint() for metric in metrics}) == 2


@needs_comet
def test_comet_signature_names_the_model(comets: dict[str, Path], bert: Path, tmp_path: Path) -> None:
    names = ("regression-bert", "regression-xlmr")
    bert_metric, xlmr_metric = (comet.build(CometConfig(str(comets[name]))) for name in names)
    start = "comet|segment:sentence|unpaired:question|aggregate:mean|model:regression-bert|weights:"
    assert bert_metric.signature().startswith(start)
    assert "class:regression_metric|version:" in bert_metric.signature()
    assert bert_metric.fingerprint() != xlmr_metric.fingerprint() and bert_metric.signature() != xlmr_metric.signature()
    [(of_other_source, _)] = bert_metric.measure([Segment("q", "otro texto", *TEXTS[0][1:])])
    assert of_other_source != bert_metric.measure(SEGMENTS[:1])[0][0]
    other = comet.build(CometConfig(str(rewritten(comets["regression-bert"], tmp_path / "other", comment="x"))))
    assert other.fingerprint() != bert_metric.fingerprint()  # hparams.yaml also counts
    # The encoder of the config replaces the one that hparams.yaml names.
    moved = tmp_path / "moved"
    quality_models.save_comet(moved, bert, named="nobody/encoder")
    refused(ConfigError, "model nobody/encoder not found: neither a folder nor", comet.build, CometConfig(str(moved)))
    encoder = tmp_path / "encoder"
    shutil.copytree(bert, encoder)
    metric = comet.build(CometConfig(str(moved), encoder=str(encoder)))
    assert metric.measure(SEGMENTS) == bert_metric.measure(SEGMENTS)
    (encoder / "config.json").write_text((encoder / "config.json").read_text() + " ")
    assert comet.build(CometConfig(str(moved), encoder=str(encoder))).fingerprint() != metric.fingerprint()


def rewritten(source: Path, folder: Path, **hparams: object) -> Path:
    """Return a copy of a COMET model with other entries in its hparams.yaml."""
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "model.ckpt").write_bytes((source / "checkpoints" / "model.ckpt").read_bytes())
    entries = yaml.safe_load((source / "hparams.yaml").read_text(encoding="utf-8"))
    (folder / "hparams.yaml").write_text(yaml.safe_dump(entries | hparams), encoding="utf-8")
    return folder


@needs_comet
def test_invalid_comet_folders_are_refused(comets: dict[str, Path], bert: Path, xlmr: Path, tmp_path: Path) -> None:
    def wrong(folder: Path | str, encoder: Path | None = None) -> str:
        return problem(comet, CometConfig(str(folder), encoder=encoder and str(encoder)))

    good = comets["regression-bert"]
    assert wrong("./nowhere") == "model ./nowhere not found: this folder does not exist"
    assert "is not a COMET model: it has no hparams.yaml; it has a config.json" in wrong(bert)
    assert "COMET has no 'yet_another'" in wrong(rewritten(good, tmp_path / "a", class_identifier="yet_another"))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "hparams.yaml").write_text("layer: mix\n")
    assert "names no class_identifier and no pretrained_model" in wrong(tmp_path / "b")
    (tmp_path / "b" / "hparams.yaml").write_text((good / "hparams.yaml").read_text())
    assert "expected one checkpoints/*.ckpt, got 0" in wrong(tmp_path / "b")
    # the encoder of another model, and weights under the name of another class
    assert "COMET cannot load it as" in wrong(good, xlmr)
    renamed = rewritten(comets["unified-xlmr"], tmp_path / "c", class_identifier="regression_metric")
    assert "regression_metric" in wrong(renamed)


@needs_comet
def test_checkpoint_with_code_is_not_read(comets: dict[str, Path], tmp_path: Path) -> None:
    folder = rewritten(comets["regression-bert"], tmp_path / "bad")
    touched = tmp_path / "touched"

    class Bad:
        def __reduce__(self) -> tuple:
            return (Path.touch, (touched,))

    torch.save({"state_dict": {}, "x": Bad()}, folder / "checkpoints" / "model.ckpt")
    config = CometConfig(str(folder))
    assert "more than tensors and plain values, which is refused" in problem(comet, config)
    (folder / "checkpoints" / "model.ckpt").write_bytes(pickle.dumps(Bad()))
    problem(comet, config)
    assert not touched.exists()


# ----------------------------------------------------------------------------------------------------- BERTScore


@needs_bertscore
def test_bertscore_equals_the_packages_f1(bert: Path, xlmr: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import bert_score

    for folder, layer in ((bert, 2), (xlmr, 3)):
        metric = bertscore.build(BertScoreConfig(str(folder), layer=layer, batch_size=3))
        scores = [score for score, _ in metric.measure(SEGMENTS)]
        pairs = [(s.hypothesis, s.reference) for s in SEGMENTS if s.hypothesis]
        _, _, expected = bert_score.score(*map(list, zip(*pairs, strict=True)), str(folder), num_layers=layer)
        assert scores.pop(2) == 0.0  # empty translation
        assert scores == pytest.approx(expected.tolist(), abs=1e-5) and len(set(scores)) == 3
        [(same, _)] = metric.measure([Segment("q", "x", TEXTS[0][2], TEXTS[0][2])])
        assert same == pytest.approx(1.0, abs=1e-5)
        assert f"model:{folder.name}|weights:" in metric.signature() and f"|layer:{layer}|" in metric.signature()
        assert metric.fingerprint() != bertscore.build(BertScoreConfig(str(folder), layer=1)).fingerprint()
        long = " ".join(["city country author novel"] * 200)  # longer than the encoder's positions
        [(cut, _)] = metric.measure([Segment("q", "x", long, long)])
        assert cut == pytest.approx(1.0, abs=1e-5)


@needs_bertscore
def test_invalid_bertscore_folders_are_refused(bert: Path, tmp_path: Path) -> None:
    def wrong(folder: Path | str, **options: object) -> str:
        return problem(bertscore, BertScoreConfig(str(folder), **options))

    assert wrong(bert) == f"bertscore.layer: needed for model {bert}, since the package has no default for it"
    assert "num_layers should be between 0 and 3" in wrong(bert, layer=9)
    assert "the package has none for model" in wrong(bert, layer=2, baseline=True)
    assert "no config.json" in wrong(tmp_path)
    (tmp_path / "at5").mkdir()
    (tmp_path / "at5" / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "at5" / "pytorch_model.bin").write_bytes(b"")
    assert "no *.safetensors weights" in wrong(tmp_path / "at5", layer=1)
    (tmp_path / "at5" / "model.safetensors").write_bytes(b"")
    assert "treats a path that contains 't5' as a T5 model, but this is bert" in wrong(tmp_path / "at5", layer=1)


# ------------------------------------------------------------------------------------------------------ sentences


def translated(*references: str) -> QuestionTrace:
    """Return a trace of two sentences, the second of which is not translated."""
    question = Question("q", "made", "es", (("esta", "ciudad"), ("el", "autor")), references, "P")
    return QuestionTrace(question, (Emission(0, "this", 1, False), Emission(0, "city", 2, True)))


@needs_comet
@needs_bertscore
@needs_bleurt
def test_paired_sentences_are_scored_separately(comets: dict[str, Path], bert: Path, tmp_path: Path) -> None:
    metrics = [
        comet.build(CometConfig(str(comets["unified-xlmr"]))),
        bertscore.build(BertScoreConfig(str(bert), layer=2)),
        bleurt.build(BleurtConfig(str(quality_models.save_bleurt(tmp_path / "bleurt", bert)))),
    ]
    whole = Segment("q", "esta ciudad el autor", "this city", "the city the author")
    alone = [Segment("q", "esta ciudad", "this city", "the city"), Segment("q", "el autor", "", "the author")]
    for metric in metrics:
        scores = [score for score, _ in metric.measure(alone)]
        assert metric.stats(translated("the city", "the author")).tolist() == pytest.approx([sum(scores), 2], abs=1e-5)
        [(score, _)] = metric.measure([whole])
        for unpaired in (("the city the author",), ("the city", "the", "author")):
            assert metric.stats(translated(*unpaired)).tolist() == pytest.approx([score, 1], abs=1e-5)
        assert "|segment:sentence|unpaired:question|" in metric.signature()
    keys = [segment_of(translated(*references)).key for references in (("the city", "the author"), (whole.reference,))]
    assert keys[0] != keys[1] == whole.key


# -------------------------------------------------------------------------------------------------------- BLEURT


@needs_bleurt
def test_bleurt_equals_the_models_logits(bert: Path, tmp_path: Path) -> None:
    from bleurt_pytorch import BleurtForSequenceClassification, BleurtTokenizer

    folder = quality_models.save_bleurt(tmp_path / "bleurt", bert)
    metric = bleurt.build(BleurtConfig(str(folder), batch_size=3))
    scores = [score for score, _ in metric.measure(SEGMENTS)]
    model, tokenizer = BleurtForSequenceClassification.from_pretrained(folder), BleurtTokenizer.from_pretrained(folder)
    for segment, score in zip(SEGMENTS, scores, strict=True):
        inputs = tokenizer([segment.reference], [segment.hypothesis], return_tensors="pt")
        with torch.no_grad():
            assert score == pytest.approx(model.eval()(**inputs).logits.item(), abs=1e-5)
    assert len(set(scores)) == 4
    long = Segment("q", "x", "city " * 500, "city " * 500)
    assert len(metric.measure([long])) == 1


@needs_bleurt
def test_bleurt_20_uses_sentencepiece(tmp_path: Path) -> None:
    folder = quality_models.save_bleurt_20(tmp_path / "bleurt20")
    built = bleurt.build(BleurtConfig(str(folder)))
    assert len({score for score, _ in built.measure(SEGMENTS)}) == 4
    assert type(bleurt.Bleurt(BleurtConfig(str(folder)), folder).loaded[1]).__name__ == "BleurtSPTokenizer"


@needs_bleurt
def test_invalid_bleurt_folders_are_refused(bert: Path, tmp_path: Path) -> None:
    for folder, message in ((bert, "has 'bert'"), (tmp_path, "no config.json"), ("./no", "folder does not exist")):
        assert message in problem(bleurt, BleurtConfig(str(folder)))
    folder = quality_models.save_bleurt(tmp_path / "bleurt", bert)
    weights = load_file(folder / "model.safetensors")
    save_file({name: weights[name] for name in sorted(weights)[1:]}, folder / "model.safetensors", {"format": "pt"})
    refused(DataError, "weights of BLEURT are missing", lambda: bleurt.Bleurt(BleurtConfig(str(folder)), folder).loaded)


# ----------------------------------------------------------------------------------------------------------- runs


@needs_comet
@needs_bertscore
def test_second_run_loads_no_model(comets, bert, tmp_path, monkeypatch):
    def connect(*_: object) -> None:
        raise AssertionError("a run with local models must not use the network")

    monkeypatch.setattr(socket.socket, "connect", connect)
    quality = [{"comet": str(comets["regression-bert"])}, {"bertscore": {"model": str(bert), "layer": 2}}]
    parts = {"guesser": None, "buzzer": None, "metrics": ["bleu", "chrf", "ter"], "quality": quality}
    rows = {row.metric: row for row in report(small_run(tmp_path, **parts)).rows}
    assert list(rows)[:5] == ["bleu", "chrf", "ter", "comet", "bertscore"]
    for name in ("comet", "bertscore"):
        row = rows[name]
        assert None not in (row.value, row.low, row.high) and row.low <= row.value <= row.high
        assert row.signature.startswith(f"{name}|") and "|version:" in row.signature
    monkeypatch.setattr(comet.Comet, "load", None)
    monkeypatch.setattr(bertscore.BertScore, "load", None)
    assert {row.metric: row for row in report(small_run(tmp_path, **parts)).rows} == rows


# -------------------------------------------------------------------------------------------------------- configs


@pytest.mark.parametrize("config", [CometConfig, BertScoreConfig, BleurtConfig])
def test_invalid_options_are_refused(config: type) -> None:
    refused(ConfigError, "model: must be a folder or a name.*\n.*name: must not be empty", config, model="", name="")
    refused(ConfigError, "batch_size: must be >= 1, got 0", config, model="m", batch_size=0)
