"""Table 4 on a small copy of XOR-TyDi's files: its numbers against plain computation, what is kept, what is refused."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO

import pytest
import yaml
from refusals import refused
from small_ablation import rows as read_rows

from experiments.paper import table4_answers
from experiments.paper.table4 import COLUMNS, Table4Config, main
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import ROOT
from sqa.data import xor_tydi
from sqa.files.yaml_reader import read_yaml
from sqa.metrics.short_answers import exact_match, f1
from sqa.run.config import load

SHIPPED = ROOT / "configs" / "table4.yaml"
THINGS = ["Rome", "Paris", "Oslo", "Lima", "Cairo", "Delhi"]  # what each question is about
FOREIGN = {"fi": "Kuka perusti kaupungin {}?", "ru": "Кто основал город {}?"}
N = len(THINGS)


def founder(thing):
    return f"Founder of{thing.lower()}"


def question(split, language, i):
    """Even ones ask who, with a right answer in the passages; odd ones ask when (1) or whether (3, 5)."""
    thing, kind = THINGS[i], ("when" if i == 1 else "whether") if i % 2 else "who"
    answers = {"who": [founder(thing), "somebody"], "when": [f"10{i}0"], "whether": ["yes" if i == 3 else "no"]}[kind]
    english = {
        "who": f"Who founded the city of {thing}?",
        "when": f"When was {thing} founded?",
        "whether": f"Is {thing} a city?",
    }[kind]
    text = FOREIGN[language].format(f"numero {i}{split[0]}")
    row = {"id": f"{language}{i}", "lang": language, "split": split, "question": text, "answers": answers}
    return row, {"lang": language, "source": text, "reference": english}


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def prepared(folder, patch):
    """XOR-TyDi's two files with N questions for each set and language, and passages that answer some."""
    patch.setattr(xor_tydi.download, "path_of", lambda name: folder / f"{name}.jsonl")
    pairs = [
        question(split, lang, i)
        for split in ("train-engspan", "dev-engspan", "dev-full")
        for lang in ("fi", "ru")
        for i in range(N)
    ]
    write(folder / "xor-tydi.jsonl", [row for row, _ in pairs])
    translations = [translation for row, translation in pairs if row["split"] == "train-engspan"]
    write(folder / "xor-translations.jsonl", translations)
    passages = [
        {"id": thing, "title": founder(thing), "text": f"The city of {thing} was founded in 10{i}0, numero {i}."}
        for i, thing in enumerate(THINGS)
    ]
    write(folder / "passages.jsonl", passages)
    return folder


@pytest.fixture
def data(tmp_path, monkeypatch):
    return prepared(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished table, and what was printed."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        folder = prepared(tmp_path_factory.mktemp("table4"), patch)
        main(configure(folder), folder / "runs")
    return folder, printed.getvalue()


def configure(data, extra=(), **changes):
    """The shipped config on the small files, with systems that need nothing and one whose model is missing."""
    mapping = (
        read_yaml(SHIPPED)
        | {
            "passages": str(data / "passages.jsonl"),
            "depth": 2,
            "resamples": 50,
            "readers": read_yaml(SHIPPED)["readers"][:4],
            "systems": [
                {"label": "untranslated", "question": "source"},
                *extra,
                {"label": "gone", "languages": ["fi"], "translator": {"name": "pretrained", "model": "models/nowhere"}},
                {"label": "human", "question": "human"},
            ],
        }
        | changes
    )
    path = data / "table4.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


def rows(data):
    """(set, language, system, reader) -> its values by metric, its interval's ends as metric.low and .high."""
    results = {}
    for row in read_rows(data / "runs" / "table4" / "table4.csv"):
        cell = results.setdefault(tuple(row[key] for key in COLUMNS), {"questions": row["n"]})
        cell |= {row["metric"] + end: row[name] for end, name in (("", "value"), (".low", "low"), (".high", "high"))}
    return results


def reasons(data):
    """What was not computed -> why."""
    differences = read_rows(data / "runs" / "table4" / "differences.tsv")
    return {row["guesser"]: row["note"] for row in differences if row["note"]}


def test_the_numbers_are_those_of_the_predictions(finished):
    data, shown = finished
    results = rows(data)
    for language in ("fi", "ru"):
        row = results["train-engspan", language, "human", "typed"]
        name = f"train-engspan_{language}_human_typed.json"
        predictions = json.loads((data / "runs" / "table4" / "predictions" / name).read_text(encoding="utf-8"))
        right = {row["id"]: row["answers"] for row, _ in (question("train-engspan", language, i) for i in range(N))}
        assert predictions[f"{language}1"] == "1010" and predictions[f"{language}5"] == "yes"
        em = [exact_match(predictions[name], answers) for name, answers in right.items()]
        scores = [f1(predictions[name], answers) for name, answers in right.items()]
        assert float(row["em"]) == pytest.approx(sum(em) / N) == pytest.approx(5 / 6)  # all but the one "no"
        assert float(row["f1"]) == pytest.approx(sum(scores) / N)
        assert float(row["em.spans"]) == float(row["found"]) == 1 and row["questions"] == str(N)
        assert ("train-engspan", language, "human", "-") not in results  # no BLEU against itself
        assert float(results["train-engspan", language, "untranslated", "-"]["bleu"]) < 20
        assert float(results["train-engspan", language, "-", "always yes"]["em"]) == pytest.approx(1 / 6, abs=1e-6)
    mean = results["train-engspan", "mean", "human", "typed"]
    assert float(mean["em"]) == pytest.approx(5 / 6) and mean["questions"] == str(2 * N)
    assert "answers to human are better than to untranslated" in shown
    assert "answers to human are better than to always yes" in shown


def test_what_is_missing_has_a_reason(finished):
    results, why = rows(finished[0]), reasons(finished[0])
    assert why["dev-engspan fi gone all"].startswith("model models/nowhere not found")
    assert why["dev-engspan ru human all"].startswith("6 of 6 questions have no human")
    assert why["train-engspan all all extractive"].startswith("model models/roberta-base-squad2 not found")
    assert "dev-engspan ru gone all" not in why  # it is not for Russian
    assert len(why) == 6 and not any("gone" in cell or "extractive" in cell for cell in results)


def test_differences_are_paired_and_the_better_translation_comes_first(finished):
    results = rows(finished[0])
    pairs = [
        cell
        for cell in results
        if cell[:2] == ("train-engspan", "mean") and "f1.spans" in results[cell] and " minus " in cell[2]
    ]
    better = ("human minus untranslated", "human minus always yes", "untranslated minus always yes")
    assert sorted(cell[2:] for cell in pairs) == sorted((b, reader) for b in better for reader in ("title", "typed"))
    for name, mean, between, reader in pairs:
        a, _, b = between.partition(" minus ")
        other = (name, mean, "-", b) if b == "always yes" else (name, mean, b, reader)
        gap = float(results[name, mean, a, reader]["f1.spans"]) - float(results[other]["f1.spans"])
        row = results[name, mean, between, reader]
        assert float(row["f1.spans"]) == pytest.approx(gap, abs=1e-6)
        assert float(row["f1.spans.low"]) <= float(row["f1.spans"]) <= float(row["f1.spans.high"])
    assert float(results["train-engspan", "mean", "human minus untranslated", "typed"]["f1.spans"]) > 0


def test_a_second_run_looks_nothing_up_and_writes_the_same(finished, monkeypatch):
    data = prepared(finished[0], monkeypatch)
    folder = data / "runs" / "table4"
    before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}

    def refuse(_):
        raise AssertionError("indexed again")

    monkeypatch.setattr(table4_answers, "PassageIndex", refuse)
    main(configure(data), data / "runs")
    assert {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()} == before


def test_a_killed_run_goes_on_where_it_was(data, monkeypatch):
    monkeypatch.setattr(table4_answers, "BLOCK_SIZE", 2)
    config = configure(data, sets=["train-engspan"], languages=["fi"])
    answer, requested = table4_answers.RuleReader.answer, []

    def counted(self, text, passages):
        requested.append(text)
        if len(requested) == 4:
            raise KeyboardInterrupt
        return answer(self, text, passages)

    monkeypatch.setattr(table4_answers.RuleReader, "answer", counted)
    with pytest.raises(KeyboardInterrupt):
        main(config, data / "runs")
    main(config, data / "runs")
    assert len(requested) == 4 + 4 * N - 2  # two readers, two systems; only the block of the first two was kept
    assert float(rows(data)["train-engspan", "fi", "human", "typed"]["em"]) == pytest.approx(5 / 6, abs=1e-6)


def test_other_passages_are_looked_up_anew(data):
    main(configure(data), data / "runs")
    before = rows(data)["train-engspan", "fi", "human", "title"]["em"]
    path = data / "passages.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("Founder of", "Enemy of "), encoding="utf-8")
    main(configure(data), data / "runs")
    assert float(rows(data)["train-engspan", "fi", "human", "title"]["em"]) < float(before)


def test_translations_from_a_file(data):
    lines = [f"Who founded the city of {thing}?" for thing in THINGS]
    (data / "good.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (data / "short.txt").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    systems = [
        {
            "label": label,
            "sets": ["dev-engspan"],
            "languages": ["fi"],
            "translator": {"name": "fixed", "text": str(data / f"{label}.txt")},
        }
        for label in ("good", "short")
    ]
    main(configure(data, systems), data / "runs")
    results = rows(data)
    assert float(results["dev-engspan", "fi", "good", "title"]["em"]) == pytest.approx(
        0.5
    )  # who, but not when, whether
    assert ("dev-engspan", "fi", "good", "-") not in results  # no BLEU: nothing to compare with
    assert "5 lines, expected 6" in reasons(data)["dev-engspan fi short all"]


def test_a_command_as_translator_and_one_that_fails(data):
    systems = [
        {"label": "cat", "translator": {"name": "command", "command": ["cat"]}},
        {"label": "false", "translator": {"name": "command", "command": ["false"]}},
    ]
    main(configure(data, systems), data / "runs")
    results = rows(data)
    for reader in ("title", "typed"):
        same, floor = (results["dev-engspan", "fi", name, reader] for name in ("cat", "untranslated"))
        assert (same["em"], same["f1.low"]) == (floor["em"], floor["f1.low"])
    assert "non-zero exit status 1" in reasons(data)["dev-engspan ru false all"]


class Says:
    """In place of the language model: says the title of its first passage, and yes to what begins with Is."""

    def __init__(self, config):
        self.config = config

    def answers(self, questions, passages):
        return [
            "yes" if question.startswith("Is") else read[0].title if read else ""
            for question, read in zip(questions, passages, strict=True)
        ]

    def fingerprint(self):
        return "says"


LM = [
    {"label": "always yes", "answer": "always-yes"},
    {"label": "LM", "answer": "lm", "lm": {"passages": 1}, "sample": 4},
    {"label": "LM, gold", "answer": "lm", "lm": {"passages": 1}, "passages": "gold"},
]


def test_a_sample_and_gold_passages(data, monkeypatch):
    monkeypatch.setattr(table4_answers, "LmReader", Says)
    main(configure(data, readers=LM), data / "runs")
    results = rows(data)
    human = results["train-engspan", "fi", "human", "LM, gold"]
    assert human["questions"] == "4"  # three ask who, one when; whether is asked of no passage
    assert float(human["em"]) == 0.75 and float(human["found"]) == 1 and "em.yes_no" not in human
    foreign = results["train-engspan", "fi", "untranslated", "LM, gold"]
    assert foreign["em"] == human["em"]  # the same passages, whatever the system made of the question
    assert "no human translation to look up gold" in reasons(data)["dev-engspan fi all LM, gold"]
    question_ids = {}
    for system in ("human", "untranslated"):
        name = f"train-engspan_fi_{system}_lm.json"
        predictions = json.loads((data / "runs" / "table4" / "predictions" / name).read_text(encoding="utf-8"))
        question_ids[system] = list(predictions)
        assert results["train-engspan", "fi", system, "LM"]["questions"] == "4"
    assert question_ids["human"] == question_ids["untranslated"] == sorted(question_ids["human"])
    text = (data / "runs" / "table4" / "differences.tsv").read_text(encoding="utf-8")
    assert "always yes" not in text  # which was asked all questions


def test_yes_and_no_apart(data, monkeypatch):
    monkeypatch.setattr(table4_answers, "LmReader", Says)
    main(configure(data, readers=[LM[0], {**LM[1], "sample": None}], sets=["train-engspan"]), data / "runs")
    results = rows(data)
    assert float(results["train-engspan", "fi", "human", "LM"]["em.yes_no"]) == 0.5  # one yes, one no
    assert float(results["train-engspan", "fi", "-", "always yes"]["em.yes_no"]) == 0.5
    assert float(results["train-engspan", "fi", "untranslated", "LM"]["em.yes_no"]) == 0


def test_nothing_to_measure_is_an_error(data):
    with pytest.raises(DataError, match="table4: no system could be measured") as caught:
        main(configure(data, sets=["dev-engspan"], systems=[{"label": "h", "question": "human"}]), data / "runs")
    assert "dev-engspan fi h all: 6 of 6 questions have no human translation" in str(caught.value)
    (data / "passages.jsonl").unlink()
    refused(DataError, "no such file of passages", main, configure(data), data / "runs")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"sets": ["dev-full"]}, "sets[0]: expected"),
        ({"depth": 0}, "depth: must be >= 1"),
        (
            {"systems": [{"label": "x", "question": "human"}] * 2},
            "systems: two labels give files of predictions the name",
        ),
        ({"systems": [{"label": "x"}]}, "translator: needed for question: translated"),
        ({"systems": [{"label": "x", "translator": {"name": "waitk", "kk": 3}}]}, "kk"),
        ({"readers": [{"label": "x", "answer": "model"}]}, "model: needed for answer: model"),
        ({"readers": [{"label": n, "answer": "title"} for n in ("A b", "a-B")]}, "the name 'a-b'"),
        ({"readers": [{"label": "x", "answer": "lm"}]}, "lm: needed for answer: lm"),
        ({"readers": [{"label": "x", "answer": "title", "sample": 0}]}, "sample: must be >= 1"),
        ({"passage": None}, "passage"),
    ],
)
def test_bad_configs(data, changes, problem):
    with pytest.raises(ConfigError) as caught:
        load(configure(data, **changes), Table4Config)
    assert problem in str(caught.value)


def test_the_shipped_config_loads():
    config = load(SHIPPED, Table4Config)
    answers = [reader.answer for reader in config.readers]
    assert answers == ["always-yes", "title", "typed", "model", "lm", "typed", "lm", "typed"]


def test_a_model_learnt_from_translations_of_other_questions(data, monkeypatch):
    """Word for word Finnish of 150 questions: the model translates what it never saw whole."""
    pytest.importorskip("thot")
    from experiments.paper import xor_translator

    monkeypatch.setattr(xor_translator, "HELD_BACK", 30)
    monkeypatch.setattr(xor_translator, "names", lambda language: iter([("Lima", "Lima", "cldr")]))
    verbs = {"perusti": "founded", "näki": "saw", "osti": "bought", "myi": "sold", "tunsi": "knew"}
    nouns = {"kaupungin": "city", "talon": "house", "kirjan": "book", "koiran": "dog", "laivan": "ship"}
    pairs = [
        {"lang": lang, "source": f"Kuka {verb} {noun} {thing}?", "reference": f"Who {did} {what} {thing}?"}
        for lang in ("fi", "ru")
        for verb, did in verbs.items()
        for noun, what in nouns.items()
        for thing in THINGS
    ]
    requested = [
        {"id": f"x{i}", "lang": pair["lang"], "split": split, "question": pair["source"], "answers": ["x"]}
        for split in ("train-engspan", "dev-engspan", "dev-full")
        for i, pair in enumerate(pairs)
        if i % 10 == ord(split[-1]) % 10
    ]
    write(data / "xor-tydi.jsonl", requested)
    write(data / "xor-translations.jsonl", pairs)
    learnt_from = {source for source, _ in xor_translator.training_pairs("fi")}
    assert learnt_from and not learnt_from & {row["question"] for row in requested}
    systems = [{"label": "phrase-based", "question": "trained"}]
    main(configure(data, systems, sets=["train-engspan"]), data / "runs")
    assert float(rows(data)["train-engspan", "fi", "phrase-based", "-"]["bleu"]) > 80
    monkeypatch.setattr(xor_translator, "make_language", None)  # not trained again from the same questions
    assert xor_translator.model("fi", data / "runs") == data / "runs" / "smt" / "xor-fi-en" / "model"
    write(data / "xor-translations.jsonl", pairs[:-1])
    with pytest.raises(TypeError):
        xor_translator.model("ru", data / "runs")


@pytest.mark.mirror
def test_on_the_real_questions(data, monkeypatch):
    """40 questions of each set and language, real human translations, passages of a file."""
    monkeypatch.undo()
    main(configure(data, limit=40), data / "runs")
    results = rows(data)
    assert ("train-engspan", "mean", "human", "typed") in results
    assert results["dev-engspan", "fi", "untranslated", "typed"]["questions"] == "40"
