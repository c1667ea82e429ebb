"""Line plots over k, lag or source share: the order of points, the legend, and Jupyter."""

import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib import pyplot

from sqa.report.plots import Line, Panel, lines, order, over_k
from sqa.results import Frame, Row


@pytest.mark.parametrize("keys", [("0.1", "0.5", "0.95", "1"), ("1", "3", "12", "full")])
def test_points_are_joined_in_the_order_of_their_keys(keys: tuple[str, ...]) -> None:
    rows = [Row(("x", key), "ew", float(index)) for index, key in enumerate(keys)]
    shares = {key: 100.0 * index for index, key in enumerate(keys)}
    [line] = lines(Frame(("name", "key"), [rows[-1], *rows[:-1]]).rows, "name", "key")
    for panel in (Panel("over k", [line]), Panel("over shares", [line._replace(x=shares)])):
        figure = over_k([[panel]], "x")
        [drawn] = figure.axes[0].get_lines()
        assert list(drawn.get_ydata()) == [0.0, 1.0, 2.0, 3.0] and list(drawn.get_xdata()) == sorted(drawn.get_xdata())
        pyplot.close(figure)
    assert order("full") == order("diagonal") == float("inf") > order(15)


def test_legend_and_title_fit_above_the_panels() -> None:
    rows = [Row(("x", k), "ew", 0.5, 0.4, 0.6) for k in ("1", "3")]
    names = [f"a translator with quite a long name, number {i}" for i in range(5)]
    drawn = [Line(name, i, {"1": rows[0], "3": rows[1]}) for i, name in enumerate(names)]
    figure = over_k([[Panel("EW", drawn), Panel("BLEU", drawn)]], "k", width=5.0, title="mini-es, in place of xqb-es")
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= legend.x0 and legend.x1 <= figure.bbox.x1 and legend.y1 <= figure.bbox.y1
    assert all(axes.title.get_window_extent().y1 <= legend.y0 for axes in figure.axes)
    assert figure.legends[0].get_title().get_text() == "mini-es, in place of xqb-es" and not figure.get_suptitle()
    pyplot.close(figure)


JUPYTER = """import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas, FigureManagerBase as FigureManager
matplotlib.interactive(True)
"""


def test_plot_leaves_jupyter_interactive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jupyter's backend turns interactive mode on while it loads, and later cells need this mode for their figures."""
    (tmp_path / "like_jupyter.py").write_text(JUPYTER, encoding="utf-8")
    monkeypatch.setenv("MPLBACKEND", "module://like_jupyter")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    code = "import matplotlib\nfrom sqa.report import plots\nwith plots.style(to_files=False): plots.canvas((3, 2))\n"
    code += "print(matplotlib.is_interactive())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


def test_many_lines_have_distinct_colours() -> None:
    drawn = [Line(str(number), number, {"3": Row(("x", "3"), "ew", 0.5, 0.4, 0.6)}) for number in range(9)]
    figure = over_k([[Panel("EW", drawn)]], "k")
    colours = {container.lines[0].get_color() for container in figure.axes[0].containers}
    pyplot.close(figure)
    assert len(colours) == 9
