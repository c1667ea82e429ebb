"""Figures 6, 7 and 10 on a few bundled questions: reused runs, unavailable contestants, and selected questions."""

import math

import doubles
import numpy as np
import pytest
import yaml
from refusals import refused
from small_ablation import BUZZER, changed, write_small_ablation

from experiments.ablation.report import main as ablation
from experiments.paper import figure6, figure7, wait_k_runs
from sqa.core import ConfigError, Emission, Guess, QuestionTrace, bootstrap_band
from sqa.data.datasets import load_questions
from sqa.files import read_yaml
from sqa.pipeline import Parts
from sqa.report.figures import log_ranks_at

KS = [1, 3, "full"]
KEYWORD = {"name": "doubles:build_guesser"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write configs with three bundled questions and an unavailable contestant, and return their folder."""
    folder = tmp_path_factory.mktemp("figures")
    write_small_ablation(folder, KS, 3)
    bm25 = {"label": "BM25", "guesser": {"name": "bm25"}, "buzzer": BUZZER}
    keyword = {"label": "Keyword", "guesser": KEYWORD, "buzzer": BUZZER}
    gone = {"label": "Gone", "guesser": {"name": "bm25", "model": "nowhere"}, "buzzer": BUZZER, "optional": True}
    for name in ("figure6", "figure7"):
        mapping = {"name": name, "ablation": "ablation.yaml", "contestants": [bm25, keyword, gone], "questions": "all"}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(folder):
    """Return a folder of runs in which the ablation of the first contestant has finished."""
    ablation(folder / "ablation.yaml", folder / "runs")
    return folder / "runs"


@pytest.fixture
def other(folder, tmp_path):
    """Return a function that writes a figure's config with some of its contestants and with changed keys."""

    def made(figure, of=slice(None), /, **keys):
        keys = {"contestants": read_yaml(folder / f"{figure}.yaml")["contestants"][of], **keys}
        return changed(folder / f"{figure}.yaml", tmp_path, ablation=str(folder / "ablation.yaml"), **keys)

    return made


def test_figure7_reuses_finished_runs(folder, runs, capsys):
    stages = {path for path in (runs / "store").glob("*/*") if path.parent.name != "translate"}
    figure7.main(folder / "figure7.yaml", runs)
    printed, made = capsys.readouterr(), runs / "figure7"
    new = {path for path in (runs / "store").glob("*/*") if path.parent.name != "translate"} - stages
    assert len(new) == 3 * (len(KS) + 1)  # Keyword's guesses, buzzes and scores; everything of BM25 is reused
    differences = (made / "differences.tsv").read_text(encoding="utf-8")
    assert "'nowhere'" in differences and "Gone: left out" in printed.err
    assert printed.out.startswith(differences)
    assert sorted(printed.out.splitlines()[-4:]) == sorted(map(str, made.iterdir()))


def test_figure6_has_all_and_guessable_questions(folder, other, runs, monkeypatch):
    figure6.main(folder / "figure6.yaml", runs)
    requested = load_questions("mini-es", 3)
    monkeypatch.setattr(
        wait_k_runs, "knows", lambda guesser, questions: np.array([q in requested[:2] for q in questions])
    )
    figure6.main(other("figure6", slice(1), questions="guessable", name="known"), runs)


def test_guessers_without_a_page_list_are_refused(other, runs):
    for name, main, word in (("figure6", figure6.main, "guessable"), ("figure7", figure7.main, "matched")):
        refused(ConfigError, f"questions: {word}: .*all", main, other(name, slice(1, 2), questions=word), runs)


def test_figure10_has_one_language_and_matched_questions(other, runs, monkeypatch):
    path = other("figure7", slice(1), name="figure10", questions="matched", language="es")
    monkeypatch.setattr(wait_k_runs, "knows", lambda guesser, questions: np.arange(len(questions)) > 0)
    figure7.main(path, runs)
    changed(path, language="pl")
    refused(ConfigError, "translators: no wait-k translator for an available data set in pl", figure7.main, path, runs)


def test_full_input_rank_is_constant_within_a_sentence():
    """The sentences end after 7 and 25 characters: no rank before 7, rank 2 from 7 to 24, rank 1 at 25."""
    question = doubles.question(page="Spain")
    assert len(question.text) == 25
    emissions = tuple(
        Emission(i, word, len(sentence), True) for i, sentence in enumerate(question.sentences) for word in sentence
    )
    second = (Guess("France", 2.0), Guess("Spain", 1.0))
    guesses = ((), second, second, second, second[1:])
    values = log_ranks_at(QuestionTrace(question, emissions, guesses), 25)
    assert values.tolist() == [-4.0] * 6 + [-math.log(2)] * 18 + [0.0]
    silent = QuestionTrace(question, (), ())
    assert log_ranks_at(silent, 5).tolist() == [-4.0] * 5


def test_question_matches_if_one_guesser_knows_it(runs):
    both = [{**KEYWORD, "pages": [page]} for page in ("Peru", "Iceland")]
    parts, questions = Parts(), load_questions("mini-es", 3)
    assert wait_k_runs.nameable(both, questions, "matched", parts).tolist() == [True, True, False]


def test_agreement_equals_kendalls_tau():
    from scipy.stats import kendalltau

    values = np.random.default_rng(0).permutation(12).reshape(2, 6).astype(float)
    stats = np.stack([values, np.ones_like(values)], axis=-1).reshape(1, -1)
    tau = kendalltau(*values).statistic
    assert figure7.agreement(stats)[0, 0] == pytest.approx(tau)
    assert bootstrap_band(np.repeat(stats, 5, axis=0), figure7.agreement, 20)[0].low == pytest.approx(tau)
