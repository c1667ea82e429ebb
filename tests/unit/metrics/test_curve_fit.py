"""Expected-wins curves from human buzzes: the published formula, the monotone one, files, filters, bad input."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqa import metrics
from sqa.core.errors import ConfigError, DataError
from sqa.data import human_buzzes
from sqa.metrics import curve_fit
from sqa.metrics.curve_fit import GRID, KNOTS, FitConfig
from sqa.metrics.qa import CURVES, Curve, MonotoneCurve, curve_in, curve_named
from sqa.report import curves as curve_commands

VECTORS = json.loads((Path(__file__).parents[2] / "golden" / "vectors" / "expected_wins.json").read_text())
PUBLISHED = {"kind": "expected-wins curve", "version": 1, "method": "cubic"} | {
    "coefficients": list(CURVES["qanta2018"].coefficients)
}
STEPS = {**PUBLISHED, "method": "monotone", "knots": {"t": [0, 0.5, 1], "ew": [1, 0.75, 0.25]}}


def records(n: int = 400, seed: int = 0, **columns: Any) -> list[dict[str, Any]]:
    """Buzzes on 20 questions, mostly late, with ties."""
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
    """The points of Pinafore/qb, qanta/reporting/curve_score.py, step by step as it is described there."""
    count, ratios = 0, {}
    for row in sorted(rows, key=lambda row: row["rel_pos"]):
        ratios[int(row["rel_pos"] * 1000)] = count  # a later record of the same thousandth replaces an earlier one
        count += row["correct"]
    return [x / 1000 for x in sorted(ratios)], [1 - ratios[x] / len(rows) for x in sorted(ratios)]


# --- the published method --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_points_are_the_published_ones(seed: int) -> None:
    rows = records(seed=seed)
    x, y = curve_fit.points(*sorted_arrays(rows))
    expected_x, expected_y = as_published(rows)
    assert x.tolist() == expected_x
    assert y == pytest.approx(expected_y, abs=1e-15)


def test_points_by_hand() -> None:
    # positions are cut to thousandths, not rounded; the two buzzes at .9 are one point, of the last of them
    position, correct = np.array([0.25, 0.5699, 0.9, 0.9005]), np.array([True, False, True, True])
    x, y = curve_fit.points(position, correct)
    assert x.tolist() == [0.25, 0.569, 0.9]
    assert y.tolist() == [1.0, 0.75, 0.5]


def test_weights_count_like_repeated_records() -> None:
    position, correct = sorted_arrays(records(60))
    weight = np.random.default_rng(1).integers(0, 4, 60)
    again = np.repeat(np.arange(60), weight)
    x, y = curve_fit.points(position, correct, weight.astype(float))
    expected_x, expected_y = curve_fit.points(position[again], correct[again])
    assert x.tolist() == expected_x.tolist()
    assert y == pytest.approx(expected_y, abs=1e-12)


# --- the monotone one ------------------------------------------------------------------------------------------------


def test_survival_by_hand() -> None:
    position, correct = np.array([0.2, 0.4, 0.4, 1.0]), np.array([True, False, True, True])
    ew = curve_fit.survival(np.array([0.0, 0.2, 0.4, 0.41, 1.0, 2.0]), position, correct)
    assert ew.tolist() == [1.0, 1.0, 0.75, 0.5, 0.5, 0.25]  # "before t": a buzz at t itself does not count


buzz_lists = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


@given(buzz_lists)
def test_monotone_curve_never_rises_and_meets_the_data(buzzes: list[tuple[float, bool]]) -> None:
    buzzes.sort(key=lambda buzz: buzz[0])
    position, correct = (np.array(column) for column in zip(*buzzes, strict=True))
    ew = curve_fit.survival(KNOTS, position, correct)
    curve = MonotoneCurve("m", "", tuple(KNOTS.tolist()), tuple(ew.tolist()))
    values = np.asarray(curve(np.linspace(0, 1.2, 500)))
    assert (np.diff(values) <= 1e-12).all() and values[0] == 1.0 and values[-1] >= -1e-12
    assert np.asarray(curve(KNOTS)) == pytest.approx(ew, abs=1e-12)
    assert curve_fit.rises(curve) == []


def test_intervals_in_which_a_cubic_rises() -> None:
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
    assert document["data"]["sha256"] and document["filters"]["players"] == "no identities in the file"
    low, high = document["band"]["low"], document["band"]["high"]
    inside = [a - 1e-9 <= v <= b + 1e-9 for a, v, b in zip(low, curve(GRID).tolist(), high, strict=True)]
    assert sum(inside) > 90 and high[80] - low[80] > 0.01
    assert {path.name for path in output.parent.iterdir()} == {f"{method}{end}" for end in (".json", ".png", ".pdf")}


def test_fit_is_the_formula_and_the_same_every_time(tmp_path: Path) -> None:
    source = write(tmp_path / "buzzes.jsonl", rows := records())
    fitted = curve_fit.fit(source, FitConfig(resamples=20))
    x, y = as_published(rows)
    assert isinstance(fitted.curve, Curve)
    assert fitted.curve.coefficients == pytest.approx(np.polyfit(x, y, 3)[::-1], rel=1e-8)
    assert fitted.document == curve_fit.fit(source, FitConfig(resamples=20)).document
    assert fitted.low.tolist() != curve_fit.fit(source, FitConfig(resamples=20, seed=1)).low.tolist()


def test_csv_and_word_positions_give_the_same_curve(tmp_path: Path) -> None:
    rows = [row | {"rel_pos": round(row["rel_pos"] * 50) / 50} for row in records()]
    lines = [f"{row['qid']},{round(row['rel_pos'] * 50)},50,{str(row['correct']).lower()}" for row in rows]
    (tmp_path / "b.csv").write_text("\n".join(["qid,word_index,n_words,correct", *lines]) + "\n")
    from_csv = curve_fit.fit(str(tmp_path / "b.csv"), FitConfig(resamples=1, repeated="keep"))
    from_json = curve_fit.fit(write(tmp_path / "b.jsonl", rows), FitConfig(resamples=1, repeated="keep"))
    assert from_csv.curve.name == from_json.curve.name


def test_prompts_are_wrong(tmp_path: Path) -> None:
    rows = [{"qid": "q", "rel_pos": 0.5, "correct": value} for value in ("prompt", "true", False)]
    assert human_buzzes.load_buzzes(write(tmp_path / "b.jsonl", rows)).correct.tolist() == [False, True, False]


def test_players_are_filtered_as_published(tmp_path: Path) -> None:
    rows = records(420)
    often = [
        row | {"player": "often", "qid": f"p{i // 2}", "game": i} for i, row in enumerate(rows[:400])
    ]  # each twice
    seldom = [row | {"player": "seldom"} for row in rows[400:419]]
    loaded = human_buzzes.load_buzzes(write(tmp_path / "b.jsonl", often + seldom))
    kept = human_buzzes.regular_players(loaded)
    assert kept.position.tolist() == [row["rel_pos"] for row in often[::2]] and set(kept.player) == {"often"}
    few = human_buzzes.load_buzzes(write(tmp_path / "few.jsonl", seldom))
    with pytest.raises(DataError, match="none of its 1 players answered 20 questions or more; the busiest answered 19"):
        human_buzzes.regular_players(few)


def test_first_of_game(tmp_path: Path) -> None:
    rows = [
        {"qid": qid, "rel_pos": t, "correct": False, "tournament": cup, "game": 1}
        for qid, t, cup in (("a", 0.9, "x"), ("a", 0.2, "x"), ("b", 0.5, "x"), ("a", 0.7, "y"), ("a", 0.7, "y"))
    ]
    source = write(tmp_path / "b.jsonl", rows)
    first = human_buzzes.first_of_game(human_buzzes.load_buzzes(source, repeated="keep"))
    assert first.position.tolist() == [0.2, 0.5, 0.7]


def test_positions_beyond_the_end(tmp_path: Path) -> None:
    source = write(tmp_path / "b.jsonl", [*records(150), {**records(1)[0], "rel_pos": 1.5}])
    with pytest.raises(DataError, match=r"record 150: position 1\.5 is outside 0 to 1, as are 0 more of 151"):
        human_buzzes.load_buzzes(source)
    ends = {how: human_buzzes.load_buzzes(source, how).position[-1] for how in ("keep", "clip", "drop")}
    assert (ends["keep"], ends["clip"]) == (1.5, 1.0) and ends["drop"] <= 1
    assert (
        curve_fit.fit(source, FitConfig(beyond_end="clip", resamples=1)).document["filters"]["buzzes_beyond_end"] == 1
    )


GOOD = {"qid": "q", "rel_pos": 0.5, "correct": True}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no buzzes in it"),
        ([{"qid": "q", "position": 1}], r"missing columns: correct, rel_pos \(or word_index and n_words\); it has qid"),
        ([GOOD, {**GOOD, "rel_pos": -0.1}], r"record 1: Expected `float` >= 0\.0 - at `\$\.rel_pos`"),
        ([GOOD, {**GOOD, "rel_pos": "late"}], r"record 1: Expected `float`, got `str` - at `\$\.rel_pos`"),
        ([{**GOOD, "rel_pos": math.nan}], r"buzzes\.jsonl:1: not JSON: NaN is no number"),
        ([{**GOOD, "rel_pos": True}], r"record 0: Expected `float`, got `bool` - at `\$\.rel_pos`"),
        ([GOOD, {**GOOD, "correct": None}], "record 1: no value for correct"),
        ([{**GOOD, "correct": "maybe"}], "record 0: correct: expected true, false or prompt, got 'maybe'"),
        ([{**GOOD, "qid": " "}], r"record 0: Expected `str` .* - at `\$\.qid`"),
        (
            [{"qid": "q", "word_index": 3, "n_words": 0, "correct": True}],
            r"record 0: Expected `int` >= 1 - at `\$\.n_words`",
        ),
        (records(30), "30 buzzes are too few, 100 are needed"),
        ([{**row, "qid": "q", "game": i} for i, row in enumerate(records())], "all buzzes are on one question"),
        (
            [GOOD, {**GOOD, "qid": "r"}, dict(reversed(GOOD.items()))],
            r"buzzes\.jsonl:3: the same row as line 1; a buzz",
        ),
        ([{**row, "correct": False} for row in records()], "no buzz is right"),
        ([{**row, "rel_pos": i % 3 / 2} for i, row in enumerate(records())], "at 3 different positions"),
    ],
)
def test_bad_files_get_one_clear_line(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        curve_fit.fit(write(tmp_path / "buzzes.jsonl", rows), FitConfig(resamples=1))
    assert len(str(caught.value).splitlines()) == 1 and "buzzes.jsonl" in str(caught.value)


def test_bad_requests(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file of buzzes; give a .jsonl"):
        curve_fit.fit(str(tmp_path / "none.jsonl"), FitConfig())
    rows = [{key: row[key] for key in GOOD} for row in records()]
    source = write(tmp_path / "b.jsonl", rows)
    with pytest.raises(DataError, match="no column 'game', so the first buzz"):
        human_buzzes.first_of_game(human_buzzes.load_buzzes(source, repeated="keep"))
    with pytest.raises(ConfigError, match="resamples: must be >= 1, got 0\nmethod: must be one of cubic, monotone"):
        FitConfig(method="line", resamples=0)
    with pytest.raises(ConfigError, match=r"--output: a curve file's name ends in \.json"):
        curve_commands.main(source, tmp_path / "curve.yaml", FitConfig())


# --- curve files as metrics ------------------------------------------------------------------------------------------


def test_a_curve_in_a_file_scores_as_the_published_one(tmp_path: Path) -> None:
    path = tmp_path / "published.json"
    path.write_text(json.dumps(PUBLISHED))
    curve = curve_named(str(path))
    for t, expected in VECTORS["curve"]["values"].items():
        assert curve(float(t)) == pytest.approx(expected, rel=1e-14)
    names = [f"{base}@{path}" for base in ("ew", "oracle-ew", "stable-ew")]
    built = metrics.build(names)
    assert [metric.name for metric in built] == names
    assert built[0].signature() == f"ew|curve:{curve.name}|pos:source-char|every:word|never:0|end:silent|v:0.2.0"
    copy = tmp_path / "copy.json"
    copy.write_text(json.dumps({**PUBLISHED, "buzzes": 7}))
    assert metrics.build([f"ew@{copy}"])[0].signature() == built[0].signature()  # the same curve
    copy.write_text(json.dumps(STEPS))
    assert metrics.build([f"ew@{copy}"])[0].signature() != built[0].signature()
    assert metrics.build([f"ew@{copy}"])[0].stats is not None and curve_in(copy)(0.5) == 0.75


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "not a curve"),
        ({**PUBLISHED, "version": 2}, "not a curve"),
        (
            {**PUBLISHED, "method": "line"},
            "expected method 'cubic' with coefficients, or 'monotone' with knots, got 'line'",
        ),
        ({**PUBLISHED, "coefficients": [1, 2, 3]}, r"Expected `array` of length 4, got 3 - at `\$\.coefficients`"),
        ({**PUBLISHED, "coefficients": [1, 2, 3, "x"]}, r"Expected `float`, got `str` - at `\$\.coefficients\[3\]`"),
        ({**PUBLISHED, "coefficients": [1e9, 0, 0, 0]}, r"Expected `float` <= 1000000\.0 - at"),
        ({**PUBLISHED, "coeficients": [1, 0, 0, 0]}, "unknown key 'coeficients', did you mean 'coefficients'"),
        ({**STEPS, "knots": None}, "or 'monotone' with knots, got 'monotone'"),
        ({**STEPS, "knots": {"t": [0, 0.5], "ew": [1, 0.5]}}, "t ascending from 0 to 1"),
        ({**STEPS, "knots": {"t": [0, 0.7, 0.5, 1], "ew": [1] * 4}}, "knots.t: expected ascending, by steps of 1e-06"),
        ({**STEPS, "knots": {"t": [0, 1], "ew": [0.5, 0.6]}}, "that never rise"),
        ({**STEPS, "knots": {"t": [0, 1], "ew": [1.5, 0.6]}}, r"Expected `float` <= 1\.0 - at `\$\.knots\.ew\[0\]`"),
    ],
)
def test_damaged_curve_files(tmp_path: Path, document: Any, message: str) -> None:
    path = tmp_path / "curve.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match=message):
        curve_in(path)
    assert any(re.search(message, line) for line in metrics.problems(["accuracy", f"ew@{path}"]))


def test_unknown_curves() -> None:
    with pytest.raises(ConfigError, match="curve: must be one of qanta2018, xqb-interface or a curve file"):
        curve_named("qanta2019")
    absent, unknown = metrics.problems(["ew@none.json", "mrr@none.json"])
    assert (
        absent == "metrics[0]: none.json: there is no such curve; `sqa curve fit BUZZES --output none.json` makes one"
    )
    assert unknown.startswith("metrics[1]: no metric 'mrr@none.json'; nearest is")


def test_show_prints_all_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "steps.json"
    path.write_text(json.dumps(STEPS))
    curve_commands.show([path], tmp_path / "figure.png")
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:3] == ["t", "qanta2018", "xqb-interface"] and lines[-1][0] == "1.00"
    assert lines[-1][1:] == ["0.380376", "0.367918", "0.250000"]
    assert (tmp_path / "figure.png").is_file() and (tmp_path / "figure.pdf").is_file()


@pytest.mark.mirror
def test_real_buzzes() -> None:
    loaded = human_buzzes.load_buzzes("human-buzzes", "clip")
    assert (len(loaded), int(loaded.correct.sum()), loaded.beyond_end) == (71360, 53930, 225)
    assert (len(set(loaded.question.tolist())), loaded.player) == (3418, None)
    ordered = loaded.take(np.argsort(loaded.position, kind="stable"))
    coefficients = curve_fit.cubic(*curve_fit.points(ordered.position, ordered.correct))
    assert coefficients == pytest.approx([0.971302, 0.389121, -1.503904, 0.489875], abs=1e-6)
    assert curve_fit.survival(np.array([0.5, 1.0]), ordered.position, ordered.correct) == pytest.approx(
        [0.8594, 0.2893], abs=1e-4
    )


def test_a_curve_of_ones_own_with_other_names_of_answers(tmp_path: Path) -> None:
    path = tmp_path / "curve.json"
    path.write_text(json.dumps(STEPS))
    name = f"ew@{path}@aliases"
    assert metrics.problems([name]) == [] and metrics.aliased(["bleu", f"ew@{path}", "mrr@aliases"]) == (name,)
    [built] = metrics.build([name])
    assert built.name == name and "|match:aliases-" in built.signature()
    assert "there is no such curve" in metrics.problems(["ew@none.json@aliases"])[0]
    assert "no metric 'bleu@aliases'" in metrics.problems(["bleu@aliases"])[0]
