"""Every picture drawn from a ledger follows the rules for figures, and planted mistakes are found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from figure_rules import problems
from matplotlib.figure import Figure

from experiments.results_book.item import items
from experiments.results_book.ledger import Row
from experiments.results_book.pages import ledger_of
from sqa.report import plots

SCREENSHOTS = {"docs/view.png"}
WITH_HUMAN = {"docs/figure3.png", "docs/text_at_pace.png"}  # figures of scores over k that show a human translation
DRAWN = {name: item for item in items().values() for name in item.figures if name not in SCREENSHOTS}


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_picture_follows_the_rules(name: str) -> None:
    with plots.style():
        figure = DRAWN[name].figures[name](ledger_of(DRAWN[name].name))
        found = problems(figure, human=name in WITH_HUMAN)
        plots.close(figure)
    assert found == []


@pytest.mark.parametrize("width", [plots.COLUMN, plots.PAGE])
def test_lines_follow_the_rules_at_both_widths(width: float) -> None:
    names = ("language model", "phrase-based", "small Transformer", "human translation, full input")
    by_k = {k: Row(("x", k), "ew", 0.3, 0.2, 0.4) for k in ("1", "2", "3", "4", "6", "9", "12", "15", "full")}
    panels = [plots.Panel("expected wins", [plots.Line(name, i, by_k) for i, name in enumerate(names)], "Spanish")]
    with plots.style():
        figure = plots.over_k([panels], "k (source words read before the first target word)", width=width)
        found = problems(figure, human=True)
        plots.close(figure)
    assert found == []


def small(figure: Figure) -> None:
    figure.axes[0].annotate("3", (0, 0.3), fontsize=5)


def clipped(figure: Figure) -> None:
    figure.text(0.99, 0.5, "a long remark")


def overlapping(figure: Figure) -> None:
    figure.text(0.5, 0.6, "one remark")
    figure.text(0.51, 0.6, "another remark")


def covered(figure: Figure) -> None:
    figure.legends[0].set_loc("center")


def alike(figure: Figure) -> None:
    for handle in figure.legends[0].legend_handles:
        handle.set_marker("o")


MISTAKES: dict[Callable[[Figure], Any], str] = {
    small: "5.0 points",
    clipped: "clipped by the canvas: 'a long remark'",
    overlapping: "overlapping: 'one remark' and 'another remark'",
    covered: "the legend covers",
    alike: "alike in greyscale: 'first' and 'second'",
}


@pytest.mark.parametrize("plant", MISTAKES, ids=lambda plant: plant.__name__)
def test_planted_mistake_is_found(plant: Callable[[Figure], Any]) -> None:
    by_k = {k: Row(("x", k), "ew", 0.3, 0.2, 0.4) for k in ("1", "3")}
    with plots.style():
        figure = plots.over_k(
            [[plots.Panel("EW", [plots.Line(name, i, by_k) for i, name in enumerate(("first", "second"))])]], "k"
        )
        assert problems(figure) == []
        plant(figure)
        assert any(problem.startswith(MISTAKES[plant]) for problem in problems(figure))
        assert problems(figure, human=True)[-1] == "no human translation in the legend"
        plots.close(figure)


def test_pdf_has_embedded_truetype_fonts(tmp_path: Path) -> None:
    with plots.style():
        figure, _ = plots.canvas((3, 2))
        figure.text(0.1, 0.1, "a remark")
        file, _ = plots.save(figure, tmp_path, "picture")
    pdf = file.read_bytes()
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
