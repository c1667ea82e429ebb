"""Expected-wins curves from human buzzes: the published formula, the monotone curve, files, filters and bad input."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tables import tables_of

from sqa import metrics
from sqa.core import ConfigError, DataError
from sqa.data import human_buzzes
from sqa.metrics import curve_fit
from sqa.metrics.curve_fit import GRID, KNOTS, FitConfig
from sqa.metrics.qa import CURVES, Curve, Knots, MonotoneCurve, curve_in, curve_named
from sqa.report import curves as curve_commands

TABLES = tables_of(__file__)
VECTORS = json.loads((Path(__file__).parents[2] / "golden" / "vectors" / "expected_wins.json").read_text())
COEFFICIENTS = list(CURVES["qanta2018"].coefficients)
PUBLISHED = {"kind": "expected-wins curve", "version": 1, "method": "cubic", "coefficients": COEFFICIENTS}
STEPS = {**PUBLISHED, "method": "monotone", "knots": {"t": [0, 0.5, 1], "ew": [1, 0.75, 0.25]}}


def records(n: int = 400, seed: int = 0, **columns: Any) -> list[dict[str, Any]]:
    """Return `n` random buzzes on 20 questions, mostly late, some at equal positions."""
    rng = np.random.default_rng(seed)
    positions = np.round(rng.beta(3, 1.5, n), 2)
    return [
        {"qid": f"q{i % 20}", "rel_pos": float(t), "correct": bool(rng.random() < 0.7), "game": i // 4, **columns}
        for i, t in enumerate(positions)
    ]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def sorted_arrays(rows: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    position = np.array([row["rel_pos"] for row in rows])
    order = np.argsort(position, kind="stable")
    return position[order], np.array([row["correct"] for row in rows])[order]


def as_published(rows: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Return the points that qanta/reporting/curve_score.py of Pinafore/qb computes."""
    count, ratios = 0, {}
    for row in sorted(rows, key=lambda row: row["rel_pos"]):
        ratios[int(row["rel_pos"] * 1000)] = count  # a later record of the same thousandth replaces an earlier one
        count += row["correct"]
    return [x / 1000 for x in sorted(ratios)], [1 - ratios[x] / len(rows) for x in sorted(ratios)]


# --- the published method --------------------------------------------------------------------------------------------


def test_points_equal_hand_computed_values() -> None:
    # Positions are truncated to thousandths, not rounded. Of the two buzzes at .900, only the last gives a point.
    position, correct = np.array([0.25, 0.5699, 0.5701, 0.9, 0.9005]), np.array([True, False, True, True, True])
    x, y = curve_fit.points(position, correct)
    assert x.tolist() == [0.25, 0.569, 0.57, 0.9]
    assert y.tolist() == [1.0, 0.8, 0.8, pytest.approx(0.4)]


def test_weights_count_like_repeated_records() -> None:
    position, correct = sorted_arrays(records(60))
    weight = np.random.default_rng(1).integers(0, 4, 60)
    again = np.repeat(np.arange(60), weight)
    weighted = curve_fit.points(position, correct, weight.astype(float))
    assert np.stack(weighted) == pytest.approx(np.stack(curve_fit.points(position[again], correct[again])), abs=1e-12)


# --- the monotone curve


def test_survival_equals_hand_computed_values() -> None:
    position, correct = np.array([0.2, 0.4, 0.4, 1.0]), np.array([True, False, True, True])
    ew = curve_fit.survival(np.array([0.0, 0.2, 0.4, 0.41, 1.0, 2.0]), position, correct)
    assert ew.tolist() == [1.0, 1.0, 0.75, 0.5, 0.5, 0.25]  # "before t" excludes a buzz at t itself


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_monotone_curve_never_rises_and_fits_the_data(buzzes: list[tuple[float, bool]]) -> None:
    buzzes.sort(key=lambda buzz: buzz[0])
    position, correct = (np.array(column) for column in zip(*buzzes, strict=True))
    ew = curve_fit.survival(KNOTS, position, correct)
    curve = MonotoneCurve(Knots(tuple(KNOTS.tolist()), tuple(ew.tolist())))
    values = np.asarray(curve(np.linspace(0, 1.2, 500)))
    assert (np.diff(values) <= 1e-12).all() and values[0] == 1.0 and values[-1] >= -1e-12
    assert np.asarray(curve(KNOTS)) == pytest.approx(ew, abs=1e-12)
    assert curve_fit.rises(curve) == []


def test_rising_intervals_of_a_cubic_are_found() -> None:
    assert curve_fit.rises(CURVES["qanta2018"]) == [[0.0, 0.03]]
    assert curve_fit.rises(CURVES["xqb-interface"]) == []


# --- fitting a file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", curve_fit.METHODS)
def test_fit_writes_a_curve_that_is_read_back(tmp_path: Path, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = write(tmp_path / "buzzes.jsonl", records()), tmp_path / "curves" / f"{method}.json"
    curve_commands.main(source, output, FitConfig(method=method, resamples=40))
    printed = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    curve, document = curve_in(output), json.loads(output.read_text())
    assert printed["curve"] == curve.name and curve.name.startswith(f"{method}-")
    assert (document["buzzes"], document["questions"], document["band"]["units"]) == (400, 20, 20)
    assert document["data"]["sha256"]
    low, high = document["band"]["low"], document["band"]["high"]
    inside = [a - 1e-9 <= v <= b + 1e-9 for a, v, b in zip(low, curve(GRID).tolist(), high, strict=True)]
    assert sum(inside) > 90 and high[80] - low[80] > 0.01
    assert {path.name for path in output.parent.iterdir()} == {f"{method}{end}" for end in (".json", ".png", ".pdf")}
    refused(ConfigError, r"ends in \.json", curve_commands.main, source, tmp_path / "curve.yaml", FitConfig())


def test_fit_equals_the_formula_and_is_deterministic(tmp_path: Path) -> None:
    source = write(tmp_path / "buzzes.jsonl", rows := records())
    fitted = curve_fit.fit(source, FitConfig(resamples=20))
    x, y = as_published(rows)
    assert isinstance(fitted.curve, Curve)
    assert fitted.curve.coefficients == pytest.approx(np.polyfit(x, y, 3)[::-1], rel=1e-8)
    assert fitted.document == curve_fit.fit(source, FitConfig(resamples=20)).document
    assert fitted.low.tolist() != curve_fit.fit(source, FitConfig(resamples=20, seed=1)).low.tolist()


def loaded(path: Path, rows: list[dict[str, Any]], beyond_end: human_buzzes.BeyondEnd = "refuse") -> Any:
    return human_buzzes.load_buzzes(write(path / "b.jsonl", rows), beyond_end)


def test_prompts_count_as_wrong(tmp_path: Path) -> None:
    rows = [{"qid": "q", "rel_pos": 0.5, "correct": value} for value in ("prompt", True, False)]
    assert loaded(tmp_path, rows).correct.tolist() == [False, True, False]


def test_positions_beyond_the_end_need_an_option(tmp_path: Path) -> None:
    source = write(tmp_path / "b.jsonl", [*records(150), {**records(1)[0], "rel_pos": 1.5}])
    refused(DataError, r"b\.jsonl:151: position 1\.5 is outside 0 to 1", human_buzzes.load_buzzes, source)
    assert human_buzzes.load_buzzes(source, "clip").position[-1] == 1.0
    filters = curve_fit.fit(source, FitConfig(beyond_end="clip", resamples=1)).document["filters"]
    assert (filters["beyond_end"], filters["buzzes_beyond_end"]) == ("clip", 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        *TABLES["bad_files_raise_a_one_line_error"],
        (records(30), "30 buzzes are too few"),
        ([{**row, "qid": "q", "game": i} for i, row in enumerate(records())], "all buzzes are on one question"),
        ([{**row, "correct": False} for row in records()], "no buzz is right"),
        ([{**row, "rel_pos": i % 3 / 2} for i, row in enumerate(records())], "at 3 different positions"),
        (
            [{**row, "correct": row["rel_pos"] > 0.9} for row in records()],
            r"the cubic leaves 0 to 1: EW\(0\) = 1\.\d+, .* fit a curve with --method monotone",
        ),
    ],
)
def test_bad_files_raise_a_one_line_error(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    source = write(tmp_path / "buzzes.jsonl", rows)
    assert "buzzes.jsonl" in refused(DataError, message, curve_fit.fit, source, FitConfig(resamples=1))


# --- curve files as metrics ------------------------------------------------------------------------------------------


def test_curve_file_scores_like_the_published_curve(tmp_path: Path) -> None:
    path, copy = tmp_path / "published.json", tmp_path / "copy.json"
    path.write_text(json.dumps(PUBLISHED))
    curve = curve_named(str(path))
    for t, expected in VECTORS["curve"]["values"].items():
        assert curve(float(t)) == pytest.approx(expected, rel=1e-14)
    names = [f"{base}@{path}" for base in ("ew", "oracle-ew", "stable-ew")]
    built = metrics.build(names)
    assert [metric.name for metric in built] == names
    assert built[0].signature() == f"ew|curve:{curve.name}|pos:source-char|every:word|never:0|end:silent|version:1"
    assert curve.name == "cubic-d156e545324c"
    copy.write_text(json.dumps({**PUBLISHED, "buzzes": 7}))
    assert metrics.build([f"ew@{copy}"])[0].signature() == built[0].signature()  # the same curve
    copy.write_text(json.dumps(STEPS))
    assert metrics.build([f"ew@{copy}"])[0].signature() != built[0].signature() and curve_in(copy)(0.5) == 0.75
    name = f"ew@{copy}@aliases"
    [aliased] = metrics.build([name])
    assert aliased.name == name and "|match:aliases-" in aliased.signature()


@pytest.mark.parametrize(("base", "changes", "message"), TABLES["damaged_curve_files_are_refused"])
def test_damaged_curve_files_are_refused(tmp_path: Path, base: str, changes: dict[str, Any], message: str) -> None:
    document = {"published": PUBLISHED, "steps": STEPS, "empty": {}}[base] | changes
    path = tmp_path / "curve.json"
    path.write_text(json.dumps(document))
    refused(DataError, message, curve_in, path)
    assert any(re.search(message, line) for line in metrics.problems(["accuracy", f"ew@{path}"]))


def test_unknown_curves_are_refused() -> None:
    refused(ConfigError, "curve: must be one of qanta2018, xqb-interface or a curve file", curve_named, "qanta2019")
    assert "this curve does not exist" in metrics.problems(["ew@none.json@aliases"])[0]


@pytest.mark.mirror
def test_real_buzzes_give_the_published_curve() -> None:
    real = human_buzzes.load_buzzes("human-buzzes", "clip")
    assert (len(real), int(real.correct.sum()), real.beyond_end) == (71360, 53930, 225)
    assert len(set(real.question.tolist())) == 3418
    coefficients = curve_fit.cubic(*curve_fit.points(real.position, real.correct))
    assert coefficients == pytest.approx([0.971302, 0.389121, -1.503904, 0.489875], abs=1e-6)
    ew = curve_fit.survival(np.array([0.5, 1.0]), real.position, real.correct)
    assert ew == pytest.approx([0.8594, 0.2893], abs=1e-4)
