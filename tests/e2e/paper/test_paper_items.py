"""Our own items and the paper's examples on a few bundled questions: files, numbers, rules, what is not there."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from refusals import refused
from scipy.stats import kendalltau
from small_ablation import changed, rows, write_small_ablation

from experiments.ablation import correlation, models
from experiments.ablation.report import main as ablation
from experiments.paper import examples as paper
from experiments.stepwise import errors as stepwise
from experiments.stepwise import figure, systems
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

    def __init__(self, pair, seeds=SEEDS):
        self.pair, self.shift = pair, seeds[0]

    def align(self, pairs):
        results = []
        for source, target in pairs:
            both = range(min(len(source), len(target)))
            links = tuple((i, i) for i in both if (i + self.shift) % 3 and not 3 <= i <= 9)
            linked = {i for i, _ in links}
            trust = (tuple(float(i in linked) for i in range(len(s))) for s in (source, target))
            results.append(Alignment(links, *trust))
        return results


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Configs cut down to a few bundled questions and one process."""
    folder = tmp_path_factory.mktemp("items")
    write_small_ablation(folder, KS, LIMIT)
    for name, keys in (
        ("correlation", {"resamples": 200}),
        ("stepwise", {"k": 3, "counted": [3, "full"]}),
        ("examples", {"hallucination": 3, "translators": ["wait-k"], "pages": ["Nowhere"]}),
        ("models", {}),
    ):
        mapping = read_yaml(ROOT / "configs" / f"{name}.yaml") | keys
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


@pytest.fixture
def subject(folder, runs):
    return stepwise.subjects(folder / "stepwise.yaml", runs).subjects[0]


@pytest.fixture
def selection(folder, runs):
    return paper.load_systems(folder / "examples.yaml", runs)


def log_mrr(rank):
    return -math.log(rank) if 0 < rank <= 50 else -4.0


def test_the_figures_show_an_example_chosen_by_rule(folder, runs, subject, capsys):
    assert (subject.dataset, subject.system, len(subject.errors)) == ("mini-es", "wait-3", LIMIT)
    stepwise.main(folder / "stepwise.yaml", runs)
    printed = capsys.readouterr()
    words, costs = stepwise.KINDS[0], rows(runs / "stepwise" / "errors_costs.csv")
    assert {line["kind"] for line in costs} == {kind.label for kind in stepwise.KINDS}
    assert all(",".join(line.values()) in printed.out for line in costs)
    invented = [float(line["value"]) for line in costs if (line["kind"], line["metric"]) == (words.label, "places")]
    assert invented == [stepwise.word_gap(subject).sum(axis=0)[1]] == [sum(sum(e.hallucinated) for e in subject.errors)]
    shown = 0
    for kind, costly, *_ in stepwise.KINDS:
        examples = stepwise.worst(subject, kind, costly)
        csv_file, png = (runs / "stepwise" / f"{kind}_mini-es.{end}" for end in ("csv", "png"))
        assert csv_file.is_file() == png.is_file() == bool(examples) == (f"mini-es: no {kind}" not in printed.err)
        if costly:
            assert [subject.cost(e) for e in examples] == sorted((subject.cost(e) for e in examples), reverse=True)
            assert all(subject.cost(example) >= math.log(2) for example in examples)
        for best in examples[:1]:
            lines, trace = [line for line in rows(csv_file) if line["of"] == "wait-3"], subject.trace(best)
            assert {line["question"] for line in lines} == {best.question}
            assert [line["word"] for line in lines] == [e.token for e in trace.emissions]
            assert [float(line["log_mrr"]) for line in lines] == pytest.approx(list(map(log_mrr, trace.rank)), abs=1e-6)
            shown += 1
    assert shown


def test_the_means_behind_the_differences(folder, runs, subject):
    words, others = [], []
    for errors, trace in zip(subject.errors, subject.run.traces, strict=True):
        logs = [-4.0, *map(log_mrr, trace.rank)]
        for step, bad in enumerate(errors.hallucinated):
            (words if bad else others).append(logs[step + 1] - logs[step])
    total = stepwise.word_gap(subject).sum(axis=0)
    assert total.tolist() == pytest.approx([sum(words), len(words), sum(others), len(others)])
    sentences = sum(len(question.sentences) for question in subject.run.questions)
    kinds = [stepwise.sentence_gap(subject, kind).sum(axis=0) for kind in ("omission", "under-translation")]
    assert all(counts[1] + counts[3] == sentences for counts in kinds)
    # over the whole question the deficits add up to what the human translation knows more at the end
    for index, (human, line) in enumerate(zip(subject.human, subject.lines, strict=True)):
        assert sum(subject.deficits(index)) == pytest.approx(human.log_mrr[-1] - line.log_mrr[-1])
    config = stepwise.subjects(folder / "stepwise.yaml", runs).ablation
    for n, metrics in ((9, ["places"]), (10, ["places", "log MRR"])):
        table = np.array([[1.0, n - 4, 1.0, 50], [1.0, 4, 1.0, 49]])
        few = stepwise.KINDS[0]._replace(gap=lambda _, table=table: table)
        assert [row.metric for row in few.rows(subject, config)] == metrics


def test_an_omission_goes_on_and_an_under_translation_does_not(subject):
    seen = set()
    for kind in ("omission", "under-translation"):
        for finding in subject.findings(kind):
            seen.add(kind)
            trace = subject.trace(finding)
            pairs = list(zip(trace.emissions, trace.source_words, strict=True))
            after = [e for e, read in pairs if e.sentence == finding.sentence and read >= finding.span.stop]
            assert bool(after) == (kind == "omission")
            steps = [(e.sentence <= finding.sentence, f) for e, f in zip(trace.emissions, trace.fraction, strict=True)]
            silence = max([0.0, *(f for before, f in steps if before)]), min([1.0, *(f for b, f in steps if not b)])
            assert subject.silence(finding) == silence
            lost = subject.deficits(subject.index_of(finding))[finding.sentence]
            assert subject.cost(finding) == (lost if finding.kind == "omission" else finding.loss)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("panel", "expected"), [("a", "a (1) **b** **c** d (2) **e**"), ("b", "a (1) **b** **c** [silence] d (2) **e**")]
)
def test_hallucinated_words_are_bold_and_numbered(panel, expected):
    lines = [SimpleNamespace(sentence=np.array([0, 0, 0, 1, 1]))]
    subject = SimpleNamespace(
        lines=lines,
        index_of=lambda _: 0,
        marks=lambda _: [SimpleNamespace(first=1, last=2), SimpleNamespace(first=4, last=4)],
        trace=lambda _: SimpleNamespace(emissions=[SimpleNamespace(token=token) for token in "abcde"]),
    )
    assert paper.marked(paper.Example(panel, subject, SimpleNamespace(sentence=0), 1.0)) == expected


@pytest.mark.parametrize(("log_mrr", "answerable"), [([-1.0, 0.0], True), ([0.0, -1.0], False), ([], False)])
def test_an_example_needs_the_answer_at_the_end_of_the_human_translation(log_mrr, answerable):
    assert paper.is_answerable(SimpleNamespace(human=[SimpleNamespace(log_mrr=np.array(log_mrr))]), 0) == answerable


def test_errors_are_counted(folder, runs, capsys):
    stepwise.main(folder / "stepwise.yaml", runs)
    counted = {(r["k"], r["kind"], r["metric"]): r for r in rows(runs / "stepwise" / "errors_counts.csv")}
    assert list(dict.fromkeys(k for k, *_ in counted)) == ["k = 3", "k = full", "k = 3 minus full"]
    full = stepwise.subjects(folder / "stepwise.yaml", runs).subjects[1]
    invented, words = (sum(sum(e.hallucinated) for e in full.errors), sum(len(e.unaligned) for e in full.errors))

    def value(k, metric="share"):
        return float(counted[k, "hallucinated content words", metric]["value"])

    assert value("k = full") == pytest.approx(invented / words, abs=1e-6)
    assert value("k = 3 minus full") == pytest.approx(value("k = 3") - value("k = full"), abs=2e-6)
    alone = []
    for seed in SEEDS:  # what one alignment finds alone
        errors = step_errors(full.run.traces, Diagonal("es-en", (seed,)), RULES, load_detector("es"))
        alone.append(sum(sum(one.hallucinated) for one in errors) / words)
    ends = [value("k = full", name) for name in stepwise.ALONE]
    assert ends == pytest.approx([min(alone), max(alone)], abs=1e-6) and ends[0] < ends[1]
    examples = rows(runs / "stepwise" / "errors_examples.csv")
    assert examples and {line["system"] for line in examples} == {"wait-3"}
    assert len({(line["kind"], line["question"]) for line in examples}) == len(examples)


def test_words_that_cannot_be_aligned_are_left_out(folder, runs, monkeypatch, capsys):
    def none(pair, cache, seeds=SEEDS):
        raise ConfigError("no aligner here")

    monkeypatch.setattr(systems, "load_aligner", none)
    systems._opened.cache_clear()
    assert not stepwise.subjects(folder / "stepwise.yaml", runs).subjects
    assert "mini-es, k=3: left out, no aligner here" in capsys.readouterr().err
    systems._opened.cache_clear()


def test_a_stepwise_config_that_the_ablation_does_not_fit(folder, tmp_path, runs):
    wrong = {"ablation": str(folder / "ablation.yaml"), "guesser": "gru", "counted": [7]}
    path = changed(folder / "stepwise.yaml", tmp_path, **wrong)
    refused(ConfigError, "(?s)k: 7 is not in .*guesser: 'gru' is no contestant", stepwise.subjects, path, runs)


def test_correlation(folder, runs, tmp_path, capsys):
    correlation.main(folder / "correlation.yaml", runs)
    printed, made = capsys.readouterr().out, runs / "correlation"
    names = ["correlation.csv", "correlation_mini-es.pdf", "correlation_mini-es.png", "correlation_tau.csv"]
    assert sorted(path.name for path in made.iterdir()) == names
    values = {(v["translator"], v["k"], v["metric"]): v["value"] for v in rows(made / "correlation.csv")}
    for line in rows(runs / f"ablation-mini-es-wait-k-6-bm25-limit{LIMIT}" / "report.tsv"):
        if line["unit"] not in saving.COUNTED:  # every metric of the runs is there, with the runs' own numbers
            assert values["wait-k", "6", line["metric"]] == line["value"]
    [tau] = [t for t in rows(made / "correlation_tau.csv") if (t["metric"], t["with"]) == ("ew", "bleu")]
    expected = kendalltau(*([float(values["wait-k", str(k), m]) for k in KS] for m in ("ew", "bleu"))).statistic
    assert tau["systems"] == "3"
    assert tau["tau"] == "n/a" if np.isnan(expected) else float(tau["tau"]) == pytest.approx(expected, abs=1e-6)
    assert ("reference", "full", "ew") in values and ("reference", "diagonal", "ew") not in values
    assert "\tew\tbleu\t" in printed

    write_small_ablation(tmp_path, KS[:2], LIMIT)
    correlation.main(changed(folder / "correlation.yaml", tmp_path, name="few"), runs)
    assert "mini-es, bm25: not computed, a correlation needs at least 3 runs" in capsys.readouterr().err
    assert sorted(path.name for path in (runs / "few").iterdir()) == ["correlation.csv", "correlation_tau.csv"]


def test_models(folder, tmp_path, capsys):
    models.main(folder / "models.yaml", tmp_path)
    assert capsys.readouterr().out == f"{tmp_path / 'models' / 'models.csv'}\n"
    values = {(v["model"], v["setting"]): (v["value"], v["source"]) for v in rows(tmp_path / "models" / "models.csv")}
    assert values["es-en", "model.width"] == ("256", "data/models/es-en/config.json")
    assert values["the paper's recipe", "hidden"] == ("1500", "configs/train_guessers.yaml:gru-paper")
    files = [path for path in (ROOT / "data" / "models" / "es-en").iterdir() if path.suffix != ".md"]
    size = sum(path.stat().st_size for path in files) / 1e6
    assert values["es-en", "size (MB)"] == (f"{size:.3g}", "measured")
    refused(DataError, "cannot be read", models.measure, tmp_path)


# -------------------------------------------------------------------------------------------- the paper's own examples


def test_the_examples_are_chosen_by_their_rule(selection):
    assert [(s.dataset, s.family, s.k) for s in selection.subjects] == [("mini-es", "wait-k", k) for k in (3, 6)]
    subject = selection.subjects[0]  # both panels are of k = 3 here
    shown = {example.panel: example for example in paper.chosen(selection)}
    for panel, kind in paper.KINDS.items():
        sizes = [0.0]
        for finding in subject.findings(kind):
            trace, human = subject.trace(finding), subject.human[subject.index_of(finding)].log_mrr
            before = [r for e, r in zip(trace.emissions, trace.rank, strict=True) if e.sentence <= finding.sentence]
            short = len(finding.words) <= 5 and len(trace.emissions) <= 1.5 * len(trace.question.reference_text.split())
            start, end = subject.silence(finding)
            if not len(human) or human[-1] != 0:
                continue
            if panel == "a" and short and finding.loss > math.log(2):
                sizes.append(finding.loss)
            if panel == "b" and not (before and before[-1] == 1):
                sizes.append(end - start)
        assert (panel in shown) == (max(sizes) > 0) and (panel not in shown or shown[panel].size == max(sizes))
    assert len(shown) + len(paper.missing(selection, shown.values())) == 2 and shown


def test_figure5_and_table2_show_the_same_examples(folder, runs, selection, capsys):
    paper.figure5(folder / "examples.yaml", runs)
    texts = rows(selection.folder / "table2.csv")
    for example in paper.chosen(selection):
        index = example.subject.index_of(example.finding)
        trace, found = example.subject.trace(example.finding), example.subject.errors[index]
        lines = [line for line in rows(selection.folder / f"{example.stem}.csv") if line["of"] == "wait-3"]
        assert [line["word"] for line in lines] == [emission.token for emission in trace.emissions]
        assert [line["unaligned"] == "1" for line in lines] == list(found.unaligned)
        assert all((selection.folder / f"{example.stem}.{end}").stat().st_size > 5000 for end in ("png", "pdf"))
        of = {line["what"]: line["text"] for line in texts if line["panel"] == example.panel}
        assert of["human"] == trace.question.reference_text and of["source"].replace("**", "") == trace.question.text
        assert all(f"({i})" in of["wait-3"] for i in range(1, len(example.subject.marks(example.finding)) + 1))
        assert ("[silence]" in of["wait-3"]) == (example.panel == "b") != ("rank" in of["error"])


def test_words_that_stand_for_none_and_the_finding_itself_are_marked(subject):
    finding = stepwise.worst(subject, "hallucination", False)[0]
    logs, _, text = figure.draw(subject, finding).axes
    written = [step for step, emission in enumerate(subject.trace(finding).emissions) if emission.token]
    unaligned = subject.errors[subject.index_of(finding)].unaligned
    leads = [line.get_color() == figure.RED for line in text.lines if len(line.get_xdata()) == 3]
    assert leads == [unaligned[step] for step in written] and len(set(leads)) == 2
    large = [line.get_markersize() == 5 for line in logs.lines if line.get_marker() == "o"]
    assert large == [mark == finding for mark in subject.marks(finding)] and large.count(True) == 1


def test_the_red_curve_is_binary():
    x, y = red_curve(np.array([0.25, 0.5, 0.5, 0.5]), (False, False, True, False))
    assert x.tolist() == [0, 0.25, 0.5, 1] and y.tolist() == [0, 0, 1, 1]
    assert red_curve(np.array([]), ())[1].tolist() == [0, 0]


def test_an_example_that_is_not_there_is_named(folder, runs, monkeypatch):
    monkeypatch.setattr(paper, "is_answerable", lambda subject, index: False)
    for item in (paper.figure5, paper.table5):
        refused(NotComputable, "answer is known", item, folder / "examples.yaml", runs)


def test_table5_shows_the_texts_of_the_papers_questions_or_the_first_known_ones(folder, runs, selection, capsys):
    paper.table5(folder / "examples.yaml", runs)
    texts = rows(selection.folder / "table5.csv")
    assert [line["what"] for line in texts] == ["source", "human", "wait-3", "wait-6"] * paper.QUESTIONS
    traces = {trace.question.id: trace for trace in selection.subjects[1].run.traces}
    for line in texts[3::4]:
        assert line["text"] == " ".join(s for s in traces[line["question"]].hypotheses if s)
    page = selection.subjects[0].run.questions[4].page
    named = selection._replace(config=replace(selection.config, pages=(page,)))
    assert paper.shown_questions(named, selection.subjects[0]) == [4]
