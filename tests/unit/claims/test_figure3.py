"""The human translation at wait-k's pace in the figure of scores by k."""

from experiments.paper.figure3 import HUMAN, figure3, human_at_pace
from experiments.results_book.pages import ledger_of
from sqa.report.plots import close, style


def test_figure_has_the_human_translation_at_equal_pace():
    with style():
        figure = figure3(ledger_of("over-k"))
        lines = [[line.get_label() for line in axes.lines].count(HUMAN) for axes in figure.axes]
        assert lines == [0, 1, 1, 0, 1, 1]  # in the panels of EW and oracle EW, but not of BLEU
        close(figure)


def test_human_line_falls_with_delay():
    for dataset in ("xqb-es", "xqb-pl"):
        values = [row.value for row in human_at_pace() if (row["dataset"], row.metric) == (dataset, "ew")]
        assert len(values) == 9 and values == sorted(values, reverse=True)
