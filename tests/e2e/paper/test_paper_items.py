"""Our own items and the paper's examples on a few bundled questions: files, numbers, rules, what is not there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from refusals import refused
from scipy.stats import kendalltau
from small_ablation import rows, write_small_ablation

from experiments.ablation import correlation, models
from experiments.ablation.over_k import main as ablation
from experiments.paper import examples as paper
from experiments.stepwise import errors as stepwise
from experiments.stepwise import systems
from experiments.stepwise.figure import red_curve
from experiments.stepwise.systems import RULES
from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.paths import ROOT
from sqa.diagnose.alignment import SEEDS, Alignment
from sqa.diagnose.detector import load_detector
from sqa.diagnose.step_errors import step_errors
from sqa.files.yaml_reader import read_yaml
from sqa.run import saving

KS = [3, 6, "full"]
LIMIT = 6


class Diagonal:
    """Links word i with word i, but nothing with every third target word and with source words 3 to 9.

    With one seed alone that is every third word from another place on.
    """

    def __init__(self, pair: str, seeds: Sequence[int] = SEEDS) -> None:
        self.pair, self.shift = pair, seeds[0]

    def align(self, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[Alignment]:
        results = []
        for source, target in pairs:
            shortest = min(len(source), len(target))
            links = tuple((i, i) for i in range(shortest) if (i + self.shift) % 3 and not 3 <= i <= 9)
            sides = [{link[side] for link in links} for side in (0, 1)]
            trust = [
                tuple(float(i in side) for i in range(n))
                for side, n in zip(sides, map(len, (source, target)), strict=True)
            ]
            results.append(Alignment(links, *trust))
        return results


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Configs cut down to a few bundled questions and one process."""
    folder = tmp_path_factory.mktemp("items")
    write_small_ablation(folder, KS, LIMIT)
    changed = {
        "correlation": {"resamples": 200},
        "stepwise": {"k": 3, "counted": [3, "full"]},
        "examples": {"hallucination": 3, "translators": ["wait-k"], "pages": ["Nowhere"]},
    }
    for name in ("stepwise", "correlation", "models", "examples"):
        mapping = read_yaml(ROOT / "configs" / f"{name}.yaml") | changed.get(name, {})
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(folder):
    """Where the ablation has finished."""
    ablation(folder / "ablation.yaml", folder / "runs")
    return folder / "runs"


@pytest.fixture(autouse=True)
def diagonal(monkeypatch):
    monkeypatch.setattr(systems, "load_aligner", lambda pair, cache, seeds=SEEDS: Diagonal(pair, seeds))


def test_the_figures_show_an_example_chosen_by_rule(folder, runs, capsys):
    selection = stepwise.subjects(folder / "stepwise.yaml", runs)
    subject = selection.subjects[0]
    assert (subject.dataset, subject.system, len(subject.errors)) == ("mini-es", "wait-3", LIMIT)
    stepwise.main(folder / "stepwise.yaml", runs)
    printed = capsys.readouterr()
    costs = rows(runs / "stepwise" / "errors_costs.csv")
    assert {line["kind"] for line in costs} == {kind.label for kind in stepwise.KINDS}
    assert all(",".join(line.values()) in printed.out for line in costs)
    drawn = {}
    for kind, costly, *_ in stepwise.KINDS:
        examples = stepwise.worst(subject, kind, costly)
        csv_file, png = (runs / "stepwise" / f"{kind}_mini-es.{end}" for end in ("csv", "png"))
        assert csv_file.is_file() == png.is_file() == bool(examples)
        if not examples:
            assert f"mini-es: no {kind} of the rule" in printed.err
            continue
        drawn[png] = png.read_bytes()
        best = examples[0]
        if costly:
            assert all(subject.cost(best) >= subject.cost(other) >= math.log(2) for other in examples)
        lines = [line for line in rows(csv_file) if line["of"] == "wait-3"]
        trace = subject.trace(best)
        assert {line["question"] for line in lines} == {best.question}
        assert [line["word"] for line in lines] == [e.token for e in trace.emissions]
        for line, rank in zip(lines, trace.rank, strict=True):
            assert float(line["log_mrr"]) == pytest.approx(-math.log(rank) if 0 < rank <= 50 else -4, abs=1e-6)
    stepwise.main(folder / "stepwise.yaml", runs)
    capsys.readouterr()
    assert drawn and {png: png.read_bytes() for png in drawn} == drawn


def test_the_means_behind_the_differences(folder, runs):
    results = stepwise.subjects(folder / "stepwise.yaml", runs)
    subject = results.subjects[0]
    words, others = [], []
    for errors, trace in zip(subject.errors, subject.run.traces, strict=True):
        logs = [-4.0] + [-math.log(r) if 0 < r <= 50 else -4.0 for r in trace.rank]
        for step, bad in enumerate(errors.hallucinated):
            (words if bad else others).append(logs[step + 1] - logs[step])
    total = stepwise.word_gap(subject).sum(axis=0)
    assert total.tolist() == pytest.approx([sum(words), len(words), sum(others), len(others)])
    sentences = sum(len(question.sentences) for question in subject.run.questions)
    kinds = [stepwise.sentence_gap(subject, kind).sum(axis=0) for kind in ("omission", "under-translation")]
    assert all(results[1] + results[3] == sentences for results in kinds)
    # over the whole question the deficits add up to what the human translation knows more at the end
    for index, (human, line) in enumerate(zip(subject.human, subject.lines, strict=True)):
        assert sum(subject.deficits(index)) == pytest.approx(human.log_mrr[-1] - line.log_mrr[-1])
    for n, metrics in ((9, ["places"]), (10, ["places", "log MRR"])):
        table = np.array([[1.0, n - 4, 1.0, 50], [1.0, 4, 1.0, 49]])
        few = stepwise.KINDS[0]._replace(gap=lambda _, table=table: table)
        assert [row.metric for row in few.rows(subject, results.ablation)] == metrics


def test_errors_are_counted(folder, runs, capsys):
    stepwise.main(folder / "stepwise.yaml", runs)
    capsys.readouterr()
    made = runs / "stepwise"
    counted = {(row["k"], row["kind"], row["metric"]): row for row in rows(made / "errors_counts.csv")}
    assert [k for k, kind, metric in counted if (kind, metric) == ("drops of log MRR", "share")] == [
        "k = 3",
        "k = full",
        "k = 3 minus full",
    ]
    shares = [row for row in counted.values() if row["metric"] == "share"]
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in shares)
    full = stepwise.subjects(folder / "stepwise.yaml", runs).subjects[1]
    invented, words = (sum(sum(e.hallucinated) for e in full.errors), sum(len(e.unaligned) for e in full.errors))
    what = "hallucinated content words"
    assert float(counted["k = full", what, "share"]["value"]) == pytest.approx(invented / words, abs=1e-6)
    alone = []
    for seed in SEEDS:  # what one alignment finds alone
        errors = step_errors(full.run.traces, Diagonal("es-en", (seed,)), RULES, load_detector("es"))
        alone.append(sum(sum(one.hallucinated) for one in errors) / words)
    ends = [float(counted["k = full", what, name]["value"]) for name in stepwise.ALONE]
    assert ends == pytest.approx([min(alone), max(alone)], abs=1e-6) and ends[0] < ends[1]
    gap = float(counted["k = 3", what, "share"]["value"]) - float(counted["k = full", what, "share"]["value"])
    assert float(counted["k = 3 minus full", what, "share"]["value"]) == pytest.approx(gap, abs=2e-6)
    examples = rows(made / "errors_examples.csv")
    assert examples and {line["system"] for line in examples} == {"wait-3"}
    assert len({(line["kind"], line["question"]) for line in examples}) == len(examples)


def test_words_that_cannot_be_aligned_are_left_out(folder, tmp_path, runs, monkeypatch, capsys):
    for name in ("ablation.yaml", "stepwise.yaml"):
        text = (folder / name).read_text(encoding="utf-8") + "# another\n"  # not what an earlier test has read
        (tmp_path / name).write_text(text, encoding="utf-8")

    def none(pair: str, cache: Path, seeds: Sequence[int] = SEEDS) -> Diagonal:
        raise ConfigError("no aligner here")

    monkeypatch.setattr(systems, "load_aligner", none)
    systems._opened.cache_clear()
    assert not stepwise.subjects(tmp_path / "stepwise.yaml", runs).subjects
    captured = capsys.readouterr()
    assert "mini-es, k=3: left out, no aligner here" in captured.err
    systems._opened.cache_clear()


def test_a_stepwise_config_that_the_ablation_does_not_fit(folder, tmp_path):
    (tmp_path / "ablation.yaml").write_text((folder / "ablation.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    mapping = read_yaml(folder / "stepwise.yaml") | {"guesser": "gru", "counted": [3, 7]}
    (tmp_path / "stepwise.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    with pytest.raises(ConfigError, match="k: 7 is not in ablation.yaml\nguesser: 'gru' is no contestant"):
        stepwise.subjects(tmp_path / "stepwise.yaml", tmp_path / "runs")


def test_correlation(folder, runs, capsys):
    correlation.main(folder / "correlation.yaml", runs)
    printed = capsys.readouterr().out
    made = runs / "correlation"
    names = ["correlation.csv", "correlation_mini-es.pdf", "correlation_mini-es.png", "correlation_tau.csv"]
    assert sorted(path.name for path in made.iterdir()) == names
    values = rows(made / "correlation.csv")
    report = rows(runs / f"ablation-mini-es-wait-k-6-bm25-limit{LIMIT}" / "report.tsv")
    for line in report:  # every metric of the runs is there, with the runs' own numbers
        results = [v for v in values if (v["translator"], v["k"], v["metric"]) == ("wait-k", "6", line["metric"])]
        assert [v["value"] for v in results] == [line["value"]] * (line["unit"] not in saving.COUNTED)
    taus = rows(made / "correlation_tau.csv")
    [tau] = [t for t in taus if (t["metric"], t["with"]) == ("ew", "bleu")]
    of = {
        m: [float(v["value"]) for v in values if v["metric"] == m and v["translator"] == "wait-k"]
        for m in ("ew", "bleu")
    }
    expected = kendalltau(of["ew"], of["bleu"]).statistic
    assert tau["systems"] == "3" and (
        tau["tau"] == "n/a" if np.isnan(expected) else float(tau["tau"]) == pytest.approx(expected, abs=1e-6)
    )
    assert any(v["translator"] == "reference" for v in values) and "\tew\tbleu\t" in printed


def test_too_few_systems_have_no_correlation(folder, runs, tmp_path, capsys):
    path = write_small_ablation(tmp_path, KS[:2], LIMIT)
    (tmp_path / "correlation.yaml").write_text(
        (folder / "correlation.yaml").read_text(encoding="utf-8").replace("name: correlation", "name: few"), "utf-8"
    )
    correlation.main(path.with_name("correlation.yaml"), runs)
    assert "mini-es, bm25: not computed, a correlation needs at least 3 runs" in capsys.readouterr().err
    assert sorted(path.name for path in (runs / "few").iterdir()) == ["correlation.csv", "correlation_tau.csv"]


def test_models(folder, tmp_path, capsys):
    models.main(folder / "models.yaml", tmp_path)
    assert capsys.readouterr().out.strip() == str(tmp_path / "models" / "models.csv")
    values = {(v["model"], v["setting"]): (v["value"], v["source"]) for v in rows(tmp_path / "models" / "models.csv")}
    assert values["es-en", "model.width"] == ("256", "data/models/es-en/config.json")
    assert values["the paper's recipe", "hidden"] == ("1500", "configs/train_guessers.yaml:gru-paper")
    size = (ROOT / "data" / "models" / "es-en" / "model.safetensors").stat().st_size
    assert (
        float(values["es-en", "size (MB)"][0]) >= round(size / 1e6, 1) and values["es-en", "size (MB)"][1] == "measured"
    )


def test_models_say_what_is_wrong(tmp_path):
    broken = tmp_path / "config.json"
    broken.write_text("[1]", encoding="utf-8")
    with pytest.raises(ConfigError, match="expected a mapping of keys to values, got list"):
        models.settings(models.Column("buzzer", "a", (broken,)))
    refused(DataError, "cannot be read", models.measure, tmp_path)


# -------------------------------------------------------------------------------------------- the paper's own examples


def test_the_examples_are_chosen_by_their_rule(folder, runs):
    selection = paper.load_systems(folder / "examples.yaml", runs)
    assert [(s.dataset, s.family, s.k) for s in selection.subjects] == [("mini-es", "wait-k", k) for k in (3, 6)]
    shown = {example.panel: example for example in paper.chosen(selection)}
    for panel, kind in paper.KINDS.items():
        possible = []
        for finding in selection.subjects[0].findings():  # both panels are of k = 3 here
            index = selection.subjects[0].index_of(finding)
            human, trace = selection.subjects[0].human[index].log_mrr, selection.subjects[0].run.traces[index]
            before = [r for e, r in zip(trace.emissions, trace.rank, strict=True) if e.sentence <= finding.sentence]
            if panel == "b" and before and before[-1] == 1:
                continue
            if panel == "a" and (
                len(finding.words) > 5 or len(trace.emissions) > 1.5 * len(trace.question.reference_text.split())
            ):
                continue
            if selection.subjects[0].kind(finding) == kind and len(human) and human[-1] == 0:
                start, end = selection.subjects[0].silence(finding)
                possible.append(finding.loss if panel == "a" else end - start)
        large = [size for size in possible if size > (math.log(2) if panel == "a" else 0)]
        assert (panel in shown) == bool(large)
        assert panel not in shown or shown[panel].size == max(large)
    assert len(shown) + len(paper.missing(selection, shown.values())) == 2 and shown


def test_the_silence_of_an_under_translation(folder, runs):
    selection = paper.load_systems(folder / "examples.yaml", runs)
    subject = selection.subjects[0]
    seen = 0
    for finding in subject.findings():
        if subject.kind(finding) != "under-translation":
            continue
        seen += 1
        trace = subject.trace(finding)
        before = [f for e, f in zip(trace.emissions, trace.fraction, strict=True) if e.sentence <= finding.sentence]
        after = [f for e, f in zip(trace.emissions, trace.fraction, strict=True) if e.sentence > finding.sentence]
        assert subject.silence(finding) == (before[-1] if before else 0.0, after[0] if after else 1.0)
    assert seen


def test_figure5_and_table2_show_the_same_examples(folder, runs, capsys):
    selection = paper.load_systems(folder / "examples.yaml", runs)
    paper.figure5(folder / "examples.yaml", runs)
    text = capsys.readouterr().out
    texts = rows(selection.folder / "table2.csv")
    for example in paper.chosen(selection):
        index = example.subject.index_of(example.finding)
        trace, step_errors = example.subject.trace(example.finding), example.subject.errors[index]
        lines = [line for line in rows(selection.folder / f"{example.stem}.csv") if line["of"] == "wait-3"]
        assert [line["word"] for line in lines] == [emission.token for emission in trace.emissions]
        assert [line["unaligned"] == "1" for line in lines] == list(step_errors.unaligned)
        assert all((selection.folder / f"{example.stem}.{end}").stat().st_size > 5000 for end in ("png", "pdf"))
        of = {line["what"]: line["text"] for line in texts if line["panel"] == example.panel}
        assert of["human"] == trace.question.reference_text and of["source"].replace("**", "") == trace.question.text
        assert all(f"({i})" in of["wait-3"] for i in range(1, len(example.subject.marks(example.finding)) + 1))
        assert ("[silence]" in of["wait-3"]) == (example.panel == "b")
        assert f"{example.panel},{example.subject.dataset},{trace.question.id},wait-3,source," in text
        assert ("rank" in of["error"]) == (example.panel == "a")


def test_the_red_curve_is_binary():
    positions = np.array([0.25, 0.5, 0.5, 0.5])
    x, y = red_curve(positions, (False, False, True, False))
    assert x.tolist() == [0, 0.25, 0.5, 1] and y.tolist() == [0, 0, 1, 1]
    assert red_curve(np.array([]), ())[1].tolist() == [0, 0]


def test_an_example_that_is_not_there_is_named(folder, tmp_path, runs, monkeypatch):
    for name in ("ablation.yaml", "examples.yaml"):
        (tmp_path / name).write_text((folder / name).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(paper, "is_answerable", lambda subject, index: False)
    for item in (paper.figure5, paper.table5):
        refused(NotComputable, "answer is known", item, tmp_path / "examples.yaml", runs)


def test_table5_shows_the_texts(folder, runs, capsys):
    paper.table5(folder / "examples.yaml", runs)
    capsys.readouterr()
    selection = paper.load_systems(folder / "examples.yaml", runs)
    texts = rows(selection.folder / "table5.csv")
    assert len({line["question"] for line in texts}) == paper.QUESTIONS
    assert [line["what"] for line in texts] == ["source", "human", "wait-3", "wait-6"] * paper.QUESTIONS
    traces = {trace.question.id: trace for trace in selection.subjects[1].run.traces}
    for line in texts[3::4]:
        assert line["text"] == " ".join(s for s in traces[line["question"]].hypotheses if s)


def test_table5_finds_the_questions_of_the_paper_by_their_answers(folder, runs):
    selection = paper.load_systems(folder / "examples.yaml", runs)
    page = selection.subjects[0].run.questions[4].page
    named = selection._replace(config=replace(selection.config, pages=(page,)))
    there = [selection.subjects[0].run.questions[i].page for i in paper.shown_questions(named, selection.subjects[0])]
    assert there and set(there) == {page}
