"""Lines over k, over a lag or over a share read: the points in their order, the same colours in every panel."""

import pytest
from matplotlib import pyplot

from experiments.lab.ledger import Row
from sqa.report.plots import Line, Panel, lines, order, over_k


@pytest.mark.parametrize("keys", [("0.1", "0.5", "0.95", "1"), ("1", "3", "12", "full")])
def test_points_are_joined_in_the_order_of_their_keys(keys: tuple[str, ...]) -> None:
    rows = [Row(("x", key), "ew", float(index)) for index, key in enumerate(keys)]
    shares = {key: 100.0 * index for index, key in enumerate(keys)}
    [line] = lines([rows[-1], *rows[:-1]], 0, 1)
    for panel in (Panel("over k", [line]), Panel("over shares", [line._replace(x=shares)])):
        figure = over_k([[panel]], "x")
        [drawn] = figure.axes[0].get_lines()
        assert list(drawn.get_ydata()) == [0.0, 1.0, 2.0, 3.0] and list(drawn.get_xdata()) == sorted(drawn.get_xdata())
        pyplot.close(figure)
    assert order("full") == order("diagonal") == float("inf") > order(15)


def test_a_system_looks_the_same_where_another_is_missing() -> None:
    rows = [Row((name, k), "ew", 0.5, 0.4, 0.6) for name in ("a", "b") for k in ("1", "3")]
    assert [(line.label, line.number) for line in lines(rows[2:], 0, 1, ("a", "b"))] == [("b", 1)]
    figure = over_k([[Panel("", [Line("dot", 0, {"1": rows[0]}), Line("line", 1, {"1": rows[2], "3": rows[3]})])]], "k")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["line", "dot"]
    pyplot.close(figure)
