"""Figures 3, 6 and 7 of a config with two labels, two trainings and k = 3, 6 and full contain every run."""

from itertools import product
from statistics import fmean, stdev

import pytest
import yaml
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle
from small_ablation import changed, rows, write_small_ablation

from experiments.ablation.report import main as ablation
from experiments.paper import figure6, figure7
from sqa.report import plots

LABELS, SEEDS, KS = ("first", "second"), (0, 1), ("3", "6", "full")
RATES = {"first": (0.8, 1.5), "second": (0.7, 2.0)}
DIGITS = 5e-6  # numbers are written with six digits


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write the configs, in which emission rates stand for the seeds, and return their folder."""
    folder = tmp_path_factory.mktemp("trainings")
    entries = []
    for label, seed in product(LABELS, SEEDS):
        translator = {"name": "waitk", "model": "es-en", "emission_rate": RATES[label][seed]}
        entries.append({"label": label, "language": "es", "seed": seed, "translator": translator})
    single = {"label": "once", "language": "es", "translator": {"name": "waitk", "model": "es-en"}, "k": ["full"]}
    quality = [{"scores": {"file": str(folder / "{run}.txt"), "name": "missing"}}]
    oracle = {"guesser": {"name": "bm25"}, "buzzer": {"name": "oracle"}}
    write_small_ablation(folder, [3, 6, "full"], 2)
    changed(folder / "ablation.yaml", translators=[*entries, single], quality=quality, contestants=[oracle])
    bm25 = {"label": "BM25", "guesser": {"name": "bm25"}, "buzzer": {"name": "oracle"}}
    for name in ("figure6", "figure7"):
        mapping = {"name": name, "ablation": "ablation.yaml", "contestants": [bm25], "bins": 5}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def figures(folder):
    """Return the drawn figures by stem."""
    drawn = {}
    with pytest.MonkeyPatch.context() as patch:

        def saving(figure, to, stem):
            drawn[stem] = figure
            return []

        patch.setattr("experiments.outputs.save", saving)
        ablation(folder / "ablation.yaml", folder / "runs")
        figure6.main(folder / "figure6.yaml", folder / "runs")
        figure7.main(folder / "figure7.yaml", folder / "runs")
    yield drawn
    for figure in drawn.values():
        plots.close(figure)


def values_of(folder, metric):
    """Return the values of a metric's trainings by (label, k), from the table with one row per run."""
    found = {}
    for row in rows(folder / "runs" / "ablation" / "table.csv"):
        if row["metric"] == metric:
            found.setdefault((row["translator"].partition(",")[0], row["k"]), []).append(float(row["value"]))
    return found


def ends(area):
    """Return the lowest and highest y of a drawn band at each of its x."""
    points = area.get_paths()[0].vertices if isinstance(area, PolyCollection) else area.get_xy()
    if isinstance(area, Rectangle):
        return {0.0: (area.get_y(), area.get_y() + area.get_height())}
    xs = sorted({float(x) for x, _ in points})
    return {x: (min(y for a, y in points if a == x), max(y for a, y in points if a == x)) for x in xs}


def check_panel(axes, folder, metric, names):
    """Check the means of the lines and the standard deviations of the bands against the runs."""
    values = values_of(folder, metric)
    lines = {line.get_label(): line for line in axes.get_lines()}
    bands = [ends(area) for area in axes.collections if isinstance(area, PolyCollection)]
    levels = [ends(area) for area in axes.patches if isinstance(area, (Rectangle, Polygon))]
    for label, name in names.items():
        over = [values[label, k] for k in KS[:2]]
        assert all(len(trainings) == len(SEEDS) for trainings in over)
        assert lines[f"{name}, 2 trainings"].get_ydata() == pytest.approx([*map(fmean, over)], abs=DIGITS)
        wanted = [(fmean(v) - stdev(v), fmean(v) + stdev(v)) for v in over]
        assert any([*band.values()] == [pytest.approx(w, abs=DIGITS) for w in wanted] for band in bands)
        full = values[label, "full"]
        level = lines[f"{name}, full input, 2 trainings"].get_ydata()
        assert list(level) == pytest.approx([fmean(full)] * 2, abs=DIGITS)
        around = pytest.approx((fmean(full) - stdev(full), fmean(full) + stdev(full)), abs=DIGITS)
        assert any(band[0.0] == around for band in levels)


def test_figure3_contains_every_run(folder, figures):
    figure = figures["figure3_mini-es"]
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles == ["EW", "oracle EW", "accuracy", "BLEU"]
    for axes, metric in zip(figure.axes, ("ew", "oracle-ew", "accuracy", "bleu"), strict=False):
        check_panel(axes, folder, metric, {label: label for label in LABELS})
        assert "once, full input" in [line.get_label() for line in axes.get_lines()]
    legend = [text.get_text() for text in figure.legends[0].texts]
    assert {"human translation, sentence by sentence", "human translation, word by word"} <= {*legend}


def test_figure7_contains_every_run(folder, figures):
    axes = figures["figure7_mini-es"].axes
    assert [row[0].get_ylabel() for row in (axes[:3], axes[3:6], axes[6:])] == [*LABELS, "once"]
    for index, metric in product(range(2), ("ew", "oracle-ew", "accuracy")):
        panel = axes[3 * index + ("ew", "oracle-ew", "accuracy").index(metric)]
        check_panel(panel, folder, metric, {LABELS[index]: "BM25"})


def test_figure6_contains_every_run(folder, figures):
    table = rows(folder / "runs" / "figure6" / "figure6_mini-es.csv")
    counted = {(row["translator"], row["k"], row["trainings"]) for row in table}
    assert counted == {
        *product(LABELS, KS, ["2"]),
        *((name, "human", "1") for name in (*LABELS, "once")),
        ("once", "full", "1"),
    }
    for label, axes in zip(LABELS, figures["figure6_mini-es"].axes, strict=False):
        drawn = {line.get_label(): line for line in axes.get_lines() if isinstance(line, Line2D)}
        assert [*drawn] == [*(f"k = {k}, 2 trainings" for k in KS), "human"]
        for k in KS:
            mine = [row for row in table if (row["translator"], row["k"]) == (label, k)]
            curve = [float(row["value"]) for row in mine]
            assert drawn[f"k = {k}, 2 trainings"].get_ydata() == pytest.approx(curve, abs=DIGITS)
            wanted = [(float(row["low"]), float(row["high"])) for row in mine]
            bands = [[*ends(area).values()] for area in axes.collections]
            assert any(band == [pytest.approx(w, abs=DIGITS) for w in wanted] for band in bands)


def test_tables_give_the_number_of_trainings(folder, figures):
    report = (folder / "runs" / "ablation" / "report.md").read_text("utf-8")
    assert "| first | 3 | 2 | " in report and " ± " in report and "| once | full | 1 |" in report
    assert report.count("| translator | k | trainings | BLEU |") == 1  # once, not once for each guesser
    assert "Not in the figure: missing of every run: " in report


def test_seed_is_a_level(folder, figures):
    from experiments.grid import AblationConfig, finished
    from sqa.pipeline import load

    results = finished(load(folder / "ablation.yaml", AblationConfig), folder / "runs")
    means = {row.cell[1:3]: row.value for row in results.over("seed", "ew").rows}
    values = values_of(folder, "ew")
    assert {key: means[key] for key in values} == {
        key: pytest.approx(fmean(v), abs=DIGITS) for key, v in values.items()
    }


def test_unknown_label_is_refused(folder, tmp_path):
    from refusals import refused

    from sqa.core import ConfigError

    path = changed(folder / "figure6.yaml", tmp_path, ablation=str(folder / "ablation.yaml"), labels=["third"])
    refused(
        ConfigError,
        f"labels: 'third' is no translator of {folder / 'ablation.yaml'}, which has first, second, once",
        figure6.main,
        path,
        folder / "runs",
    )
