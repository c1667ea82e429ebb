"""Figures 6 and 7 on a few bundled questions: files, numbers against plain computation, what is left out."""

from __future__ import annotations

import math

import doubles
import numpy as np
import pytest
import yaml
from refusals import refused
from small_ablation import BUZZER, changed, rows, write_small_ablation

from experiments import grid
from experiments.ablation.report import main as ablation
from experiments.paper import contestants_over_k as paper
from experiments.paper.contestants_over_k import Agreement
from sqa.core.differences import bootstrap_band
from sqa.core.errors import ConfigError
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission, Guess
from sqa.data.datasets import load_questions
from sqa.files.store import Store
from sqa.files.yaml_reader import read_yaml
from sqa.run import folder as folders
from sqa.run.config import load
from sqa.run.pipeline import run

KS = [1, 3, 6, "full"]
KEYWORD = {"name": "doubles:build_guesser"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Configs cut down to four bundled questions and one process; a second contestant that cannot be had."""
    folder = tmp_path_factory.mktemp("figures")
    write_small_ablation(folder, KS, 4)
    bm25 = {"label": "BM25", "guesser": {"name": "bm25"}, "buzzer": BUZZER}
    keyword = {"label": "Keyword", "guesser": KEYWORD, "buzzer": BUZZER}
    gone = {"label": "Gone", "guesser": {"name": "bm25", "model": "nowhere"}, "buzzer": BUZZER, "optional": True}
    for name in ("figure6", "figure7"):
        mapping = {"name": name, "ablation": "ablation.yaml", "contestants": [bm25, keyword, gone], "questions": "all"}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(folder):
    """Where the ablation of the first contestant has finished."""
    ablation(folder / "ablation.yaml", folder / "runs")
    return folder / "runs"


@pytest.fixture
def other(folder, tmp_path):
    """Makes a figure's config with some of its contestants and other keys."""

    def made(figure, of=slice(None), /, **keys):
        keys = {"contestants": read_yaml(folder / f"{figure}.yaml")["contestants"][of], **keys}
        return changed(folder / f"{figure}.yaml", tmp_path, ablation=str(folder / "ablation.yaml"), **keys)

    return made


def test_figure7(folder, runs, capsys):
    stages = {path for path in (runs / "store").glob("*/*") if path.parent.name != "translate"}
    paper.figure7(folder / "figure7.yaml", runs)
    printed = capsys.readouterr()
    made = sorted(path.name for path in (runs / "figure7").iterdir())
    assert made == ["differences.tsv", "figure7_mini-es.csv", "figure7_mini-es.pdf", "figure7_mini-es.png"]
    lines = rows(runs / "figure7" / "figure7_mini-es.csv")
    assert sorted((line["contestant"], line["translator"], line["k"], line["metric"]) for line in lines) == sorted(
        (guesser, *system, metric)
        for guesser in ("BM25", "Keyword")
        for system in (*(("wait-k", str(k)) for k in KS), ("reference", "full"))
        for metric in paper.PANELS
    )
    for line in lines[: 3 * len(KS)]:  # the numbers are the ablation's
        report = rows(runs / f"ablation-mini-es-wait-k-{line['k']}-bm25-limit4" / "report.tsv")
        assert line["value"] == next(row["value"] for row in report if row["metric"] == line["metric"])
        assert float(line["low"]) <= float(line["value"]) <= float(line["high"])
    new = {path for path in (runs / "store").glob("*/*") if path.parent.name != "translate"} - stages
    assert len(new) == 3 * (len(KS) + 1)  # Keyword's guesses, buzzes and scores; nothing of BM25 was made again

    differences = rows(runs / "figure7" / "differences.tsv")
    of = {
        who: [row for row in differences if row["guesser"] == who]
        for who in ("BM25", "Keyword", "BM25, Keyword", "Gone")
    }
    claims = ["rise", "fall", "oracle rise", "oracle fall", "BLEU grows", "accuracy grows", "later peak"]
    assert [row["claim"] for row in of["BM25"]] == claims
    assert list(map(len, of.values())) == [7, 7, 3, 1] and len(differences) == 18
    assert of["Gone"][0]["difference"] == "" and "'nowhere'" in of["Gone"][0]["note"]
    assert "Gone: left out" in printed.err
    assert printed.out.startswith((runs / "figure7" / "differences.tsv").read_text(encoding="utf-8"))
    assert sorted(printed.out.splitlines()[-4:]) == [str(runs / "figure7" / name) for name in made]


def test_finished_runs_start_no_process_and_give_the_same_rows(folder, runs, monkeypatch):
    base = load(folder / "ablation.yaml", grid.AblationConfig)
    todo = list(grid.cells(base, ["mini-es"], {}))
    before = [(row.intervals, row.signatures, row.empty_sentences) for row in grid.run_cells(todo, base, runs)]
    assert grid.run_group(todo, runs) == len(todo)
    monkeypatch.setattr(grid, "ProcessPoolExecutor", None)
    assert [(r.intervals, r.signatures, r.empty_sentences) for r in grid.run_cells(todo, base, runs)] == before


def test_figure6(folder, runs):
    paper.figure6(folder / "figure6.yaml", runs)
    made = sorted(path.name for path in (runs / "figure6").iterdir())
    assert made == ["differences.tsv", "figure6_mini-es.csv", "figure6_mini-es.pdf", "figure6_mini-es.png"]
    lines = rows(runs / "figure6" / "figure6_mini-es.csv")
    assert len(lines) == 2 * (len(KS) + 1) * 25  # and the human translation
    assert [line["k"] for line in lines[::25]] == [*map(str, KS), "human"] * 2
    differences = rows(runs / "figure6" / "differences.tsv")
    assert len(differences) == 2 * (4 + 2) + 1 and differences[0]["claim"].startswith("k=1: log MRR rises")

    saved = folders.read(runs / "ablation-mini-es-wait-k-3-bm25-limit4")
    traces = list(run(saved.config, Store(runs), progress=False).traces)
    selected = [line for line in lines if (line["guesser"], line["k"]) == ("BM25", "3")]
    for bin, line in enumerate(selected):
        end, logs = (bin + 1) / 25, []
        for trace in traces:
            known = -4.0
            for fraction, rank in zip(trace.fraction, trace.rank, strict=True):
                here = -4.0 if rank == 0 else -math.log(rank)
                if fraction <= end + 1e-9:
                    known = here
            logs.append(known)
        assert line["bin"] == str(bin + 1) and float(line["value"]) == pytest.approx(np.mean(logs), abs=1e-6)
        assert -4 <= float(line["low"]) <= float(line["value"]) <= float(line["high"]) <= 0


def test_figure6_on_the_guessable_questions(other, runs, monkeypatch):
    path = other("figure6", slice(1), questions="guessable", name="known")
    requested = load_questions("mini-es", 4)
    monkeypatch.setattr(paper, "knows", lambda guesser, questions: np.array([q in requested[:3] for q in questions]))
    paper.figure6(path, runs)
    lines = rows(runs / "known" / "figure6_mini-es.csv")
    assert {line["n"] for line in lines} == {"3"}
    saved = folders.read(runs / "ablation-mini-es-reference-full-bm25-limit4")
    logs = [
        -math.log(trace.rank[-1]) if trace.rank[-1] else -4.0
        for trace in list(run(saved.config, Store(runs), progress=False).traces)[:3]
    ]
    assert (lines[-1]["k"], float(lines[-1]["value"])) == ("human", pytest.approx(np.mean(logs), abs=1e-6))


def test_a_guesser_that_does_not_say_what_it_knows_is_refused(other, runs):
    for name, main, word in (("figure6", paper.figure6, "guessable"), ("figure7", paper.figure7, "matched")):
        refused(ConfigError, f"questions: {word}: .*all", main, other(name, slice(1, 2), questions=word), runs)


def test_figure10_is_of_one_language_and_of_the_matched_questions(other, runs, monkeypatch):
    path = other("figure7", slice(1), name="figure10", questions="matched", language="es")
    monkeypatch.setattr(paper, "knows", lambda guesser, questions: np.arange(len(questions)) > 0)
    paper.figure7(path, runs)
    lines = rows(runs / "figure10" / "figure10_mini-es.csv")
    saved = folders.read(runs / "ablation-mini-es-wait-k-3-bm25-limit4")
    sums = saved.stats["oracle-ew"][1:].sum(axis=0)
    [line] = [line for line in lines if (line["k"], line["metric"]) == ("3", "oracle-ew")]
    assert line["n"] == "3" and float(line["value"]) == pytest.approx(sums[0] / sums[1], abs=1e-6)
    changed(path, language="pl")
    refused(ConfigError, "translators: no wait-k for a data set in pl that is here", paper.figure7, path, runs)


def test_a_full_input_line_stands_still_within_a_sentence():
    """Two sentences end at 7 and 25 of 25 characters: nothing is known before 7, rank 2 until 25, then rank 1."""
    question = doubles.question(page="Spain")
    assert len(question.text) == 25
    emissions = tuple(
        Emission(i, word, len(sentence), True) for i, sentence in enumerate(question.sentences) for word in sentence
    )
    second = (Guess("France", 2.0), Guess("Spain", 1.0))
    guesses = ((), second, second, second, second[1:])
    values = paper.at_bin_ends(QuestionTrace(question, emissions, guesses), 25)
    assert values.tolist() == [-4.0] * 6 + [-math.log(2)] * 18 + [0.0]
    silent = QuestionTrace(question, (), ())
    assert paper.at_bin_ends(silent, 5).tolist() == [-4.0] * 5


def test_one_guesser_with_two_buzzers_is_two_lines(folder, other, runs):
    """Each has its own numbers, and the ablation's runs of the first keep their folder."""
    first, _, gone = read_yaml(folder / "figure7.yaml")["contestants"]
    silent = {"label": "Silent", "guesser": {"name": "bm25"}, "buzzer": {**BUZZER, "threshold": 1e9}}
    path = other("figure7", contestants=[first, silent, gone])
    before = (runs / "ablation-mini-es-wait-k-3-bm25-limit4" / "report.tsv").read_bytes()
    paper.figure7(path, runs)
    assert (runs / "ablation-mini-es-wait-k-3-bm25-limit4" / "report.tsv").read_bytes() == before
    assert (runs / "ablation-mini-es-wait-k-3-bm25+doubles:build_buzzer-limit4" / "report.tsv").is_file()
    lines = rows(runs / "figure7" / "figure7_mini-es.csv")
    silent = [(line["metric"], line["value"]) for line in lines if line["contestant"] == "Silent"]
    assert {value for metric, value in silent if metric == "ew"} == {"0.000000"}
    assert {value for metric, value in silent if metric == "oracle-ew"} != {"0.000000"}


def test_a_question_is_matched_if_one_guesser_can_name_its_answer(runs):
    both = [{**KEYWORD, "pages": [page]} for page in ("Peru", "Iceland")]
    parts, questions = grid.workshop(runs).parts, load_questions("mini-es", 3)
    assert paper.nameable(both, questions, "matched", parts).tolist() == [True, True, False]


def test_agreement_is_kendalls_tau():
    scipy_stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    values = rng.permutation(12).reshape(2, 6).astype(float)
    stats = np.stack([values, np.ones_like(values)], axis=-1).reshape(1, -1)
    tau = scipy_stats.kendalltau(values[0], values[1]).statistic
    assert Agreement().score_many(stats)[0, 0] == pytest.approx(tau)
    assert bootstrap_band(np.repeat(stats, 5, axis=0), Agreement(), 20).low[0] == pytest.approx(tau)
