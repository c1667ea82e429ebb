"""Expected wins and reciprocal ranks equal those of the public code that vectors/expected_wins.json names."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from needs import reason

from sqa.metrics import qa
from sqa.metrics.qa import CURVES

VECTORS = json.loads((Path(__file__).parent / "vectors" / "expected_wins.json").read_text())
CURVE = CURVES["qanta2018"]


def test_curve_equals_the_recorded_values():
    for t, expected in VECTORS["curve"]["values"].items():
        assert CURVE(float(t)) == pytest.approx(expected, rel=1e-14)


def test_curve_ends_above_zero():
    assert CURVE(1.0) == pytest.approx(0.3803757071078009, rel=1e-14)
    assert CURVES["xqb-interface"](1.0) == pytest.approx(0.367917801912388, rel=1e-12)


@pytest.mark.skipif(
    not Path(os.environ.get("SQA_MIRROR", "/nonexistent"), "human", "ew_curves.json").is_file(),
    reason=reason("SQA_MIRROR"),
)
@pytest.mark.parametrize("name,key", [("qanta2018", "qanta_codalab"), ("xqb-interface", "xqb_interface")])
def test_coefficients_equal_the_published_values(name, key):
    published = json.loads(Path(os.environ["SQA_MIRROR"], "human", "ew_curves.json").read_text())[key]
    assert CURVES[name].coefficients == (published["intercept"], *published["coef_x_x2_x3"])


@pytest.mark.parametrize("case", VECTORS["curve_score_cases"], ids=lambda case: case["id"])
def test_scores_equal_qb_and_codalab(case):
    fraction = np.array([step["char_index"] for step in case["guesses"]]) / case["text_length"]
    correct = np.array([step["guess"] == case["page"] for step in case["guesses"]])
    buzz = np.array([step["buzz"] for step in case["guesses"]])
    won = qa.expected_wins(CURVE, fraction, correct, buzz)
    assert won == pytest.approx(case["qb_score"], rel=1e-14)
    assert won == pytest.approx(case["codalab_score"], rel=1e-14)
    oracle = qa.oracle_expected_wins(CURVE, fraction, correct, never=CURVE(1.0))
    assert oracle == pytest.approx(case["qb_score_optimal"], rel=1e-14)
    last_wrong = qa.last_wrong_expected_wins(CURVE, fraction, correct)
    assert last_wrong == pytest.approx(case["qb_score_stable"], rel=1e-14)
    assert last_wrong == pytest.approx(case["codalab_score_optimal"], rel=1e-14)


def test_log_reciprocal_ranks_equal_simqa():
    case = VECTORS["simqa_translated"]
    rank = np.array([step["guesses"].index("P") + 1 if "P" in step["guesses"] else 0 for step in case["guesses"]])
    assert np.where(rank > 0, 1 / np.maximum(rank, 1), 0).tolist() == case["mrr_steps"]
    assert qa.log_reciprocal_rank(rank) == pytest.approx(case["log_mrr_steps"], abs=1e-15)


def test_expected_wins_of_a_trace_equal_simqa():
    """The positions are computed from the trace's g."""
    from sqa.core import Buzz, Emission, Guess, Question, QuestionTrace

    case = VECTORS["simqa_translated"]
    words = tuple(case["src"].split())
    question = Question("q", "d", "es", (words,), ("t",), "P")
    delays = case["idx_info"]["tgtdelay"]
    trace = QuestionTrace(
        question,
        tuple(Emission(0, t, g, g == 6) for t, g in zip(case["target_text"].split(), delays, strict=True)),
        tuple(tuple(Guess(page, -float(i)) for i, page in enumerate(step["guesses"])) for step in case["guesses"]),
        tuple(Buzz(float(step["buzz"]), step["buzz"]) for step in case["guesses"]),
    )
    metric = qa.ExpectedWins()
    assert metric.score(metric.stats(trace)) == pytest.approx(case["trans_score"], rel=1e-14)
    metric = qa.OracleExpectedWins(never="curve-end")
    assert metric.score(metric.stats(trace)) == pytest.approx(case["trans_score_optimal"], rel=1e-14)
