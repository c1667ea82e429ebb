"""The user's own parallel text in any language pair, from the files to a model."""

import json
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from recorded import recorded
from refusals import refused
from tables import tables_of

from smt.models.vocab import Vocabulary
from smt.models.waitk_translator import WaitKConfig, build
from smt.train import main
from smt.training.clean import Report
from smt.training.config import SmtConfig
from smt.training.corpus import Packed, lexicon, load_arrays, pack, with_links
from smt.training.prepare import cleaned, is_prepared, prepare
from sqa.core import ConfigError, DataError
from sqa.data.datasets import load_questions
from sqa.data.texts import load_own_pairs
from sqa.pipeline import load

TABLES = tables_of(__file__)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with pairs.tsv and dev.tsv, and fail if the project's data are read."""
    monkeypatch.delenv("SQA_MIRROR", raising=False)
    monkeypatch.setattr("sqa.data.download.path_of", lambda name: pytest.fail(f"{name} of the project was read"))
    rows = [
        f"{' '.join(source)}\t{target}\n"
        for question in load_questions("mini-es")
        for source, target in zip(question.sentences, question.reference, strict=False)
    ]
    (tmp_path / "pairs.tsv").write_text("".join(rows), encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("".join(rows[:3]), encoding="utf-8")
    return tmp_path


SMALL = TABLES["small"]


def config(folder: Path, **corpus: object) -> Path:
    files = {"train": str(folder / "pairs.tsv"), "development": str(folder / "dev.tsv")}
    corpus = {"pair": "fr-en", **files, "vocabulary_size": 600, "lexicon_width": 0, **corpus}
    path = folder / "own.yaml"
    path.write_text(f"{SMALL}\n{yaml.safe_dump({'corpus': corpus})}", encoding="utf-8")
    return path


def test_own_pairs_train_a_translator(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(config(folder), folder / "runs")
    model = Path(capsys.readouterr().out.strip())
    log = (folder / "runs/smt/own/log.jsonl").read_text("utf-8")
    assert "bleu_full" in log
    translator = build(WaitKConfig(str(model), k=2))
    assert isinstance(list(translator.translate(iter("un dos tres".split()))), list)


def test_prepared_data_match_reference(folder: Path) -> None:
    """Compare the counts of dropped pairs, the vocabulary, the segmented pairs, and a lexicon from given links."""
    weights = {"weights": {"own": 1.5}, "clean": {"max_words": 30}}
    prepare(load(config(folder, **weights), SmtConfig).corpus, folder / "data")
    packed = load_arrays(Packed, folder / "data" / "packed")
    vocabulary = Vocabulary.load(folder / "data" / "vocabulary.model")
    pairs = [(source, target, "own") for source, target, _ in load_own_pairs(folder / "pairs.tsv", "fr-en")]
    linked = with_links(pack(pairs, vocabulary), [[(i, i + i % 2) for i in range(6)] for _ in pairs])
    with recorded(Path(__file__)) as keep:
        keep("clean.tsv", (folder / "data" / "clean.tsv").read_text("utf-8"))
        keep("corpora", str(json.loads((folder / "data" / "prepared.json").read_text("utf-8"))["corpora"]))
        keep("vocabulary", " ".join(vocabulary.pieces))
        for field in fields(packed):
            keep(field.name, " ".join(map(str, getattr(packed, field.name).ravel()[:1500])))
        keep("lexicon", "\n".join(str(values.round(4).tolist()) for values in lexicon(linked, vocabulary.size, 3)))


def test_edited_file_causes_a_new_preparation(folder: Path) -> None:
    corpus = load(config(folder), SmtConfig).corpus
    prepare(corpus, folder / "data")
    assert is_prepared(corpus, folder / "data")
    assert "overlap" in (folder / "data/clean.tsv").read_text("utf-8")
    kept = len(list(cleaned(corpus, Report())))
    done = json.loads((folder / "data/prepared.json").read_text("utf-8"))
    assert done["pairs"] == kept and list(done["corpora"]) == ["own"]  # each pair once
    with (folder / "pairs.tsv").open("a", encoding="utf-8") as file:
        file.write("Una frase más de todas.\tOne more sentence of all.\n")
    assert not is_prepared(corpus, folder / "data")


@pytest.mark.parametrize(("corpus", "problem"), TABLES["incompatible_settings_are_refused"])
def test_incompatible_settings_are_refused(folder: Path, corpus: dict[str, object], problem: str) -> None:
    refused(ConfigError, problem, load, config(folder, **corpus), SmtConfig)
    refused(DataError, "nowhere.tsv", main, config(folder, train=str(folder / "nowhere.tsv")), folder / "runs")


def test_user_pairs_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("这是GPT-4。\tThis is GPT-4.\tnews\n你好\t \n", encoding="utf-8")
    pairs = load_own_pairs(path, "zh-en")
    assert next(pairs) == ("这 是 GPT-4 。", "This is GPT-4.", "news")
    refused(DataError, r"pairs.tsv:2: expected tab-separated source, target", next, pairs)
    [pair] = load_own_pairs(written(path, "首都はリマ\tIts capital is Lima\n"), "jpn-eng")
    assert pair.source == "首 都 は リ マ"
    thai = written(path, "กรุงเทพมหานคร\tBangkok\nเมืองหลวงของเปรูคือลิมา\tIts capital is Lima\n")
    refused(DataError, r"pairs.tsv:2: expected spaces between words, got .* 'th'", list, load_own_pairs(thai, "tha-en"))


def written(path: Path, text: str) -> Path:
    """Write the text to the file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_too_few_pairs_error_names_the_maximum(kind: Any) -> None:
    lines = ["le chat dort ici", "the cat sleeps here"]
    train = partial(Vocabulary.train, kind=kind)
    message = refused(ConfigError, r"^corpus\.vocabulary_size: at most \d+", train, lines, 600)
    most = int(message.split()[3])
    assert train(lines, most).size == most
    refused(ConfigError, f"at most {most} for these pairs", train, lines, most + 1)
    refused(ConfigError, r"at least \d+ for the letters", train, ["le chat"], 100)
    refused(DataError, "no vocabulary can be learnt", train, [], 300)
