"""Drawings and HTML pages of a run for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqa.core import QuestionTrace
from sqa.diagnose.findings import errors_of
from sqa.files import write_text
from sqa.metrics.qa import curve_named
from sqa.report.plots import COLOURS, COLUMN, GREY, canvas, style
from sqa.report.steps import draw_steps
from sqa.report.viewer import render
from sqa.report.viewer_data import page_data

if TYPE_CHECKING:
    from sqa.pipeline import RunFolder
    from sqa.report.plots import Axes


@dataclass(frozen=True)
class Page:
    """A self-contained HTML page; Jupyter shows it inline, and `save` writes it.

    Args:
        html: Text of the page.
        height: Height of the inline frame in pixels.

    Examples:
        >>> Page("<p>Hello", height=40).save("page.html").name
        'page.html'
    """

    html: str
    height: int

    def __repr__(self) -> str:
        return "<page, shown inline by Jupyter>"

    def _repr_html_(self) -> str:
        frame = f'width="100%" height="{self.height}" style="border: 1px solid #ccc"'
        return f'<iframe srcdoc="{html.escape(self.html)}" {frame} sandbox="allow-scripts"></iframe>'

    def save(self, path: str | Path) -> Path:
        """Write the page to a file.

        Args:
            path: File to write; an older file is replaced.

        Returns:
            The path.

        Raises:
            OSError: If the file cannot be written.
        """
        write_text(Path(path), self.html)
        return Path(path)


def viewer(opened: RunFolder, questions: Sequence[int], height: int) -> Page:
    """Return the viewer's page of some questions, given by their indices."""
    return Page(render(page_data([opened], list(questions))), height)


def plot_question(trace: QuestionTrace, curve: str, ax: Axes | None) -> Axes:
    """Draw the expected wins of an answer over the share of the source read, and mark the buzz."""
    worth, share = curve_named(curve)(trace.fraction), 100 * trace.fraction
    buzzes = [step for step, buzz in enumerate(trace.buzzes or ()) if buzz.buzz][:1]
    with style(to_files=False):
        if ax is None:
            _, [[ax]] = canvas((1.5 * COLUMN, 2.3))
        ax.plot(share, worth, "--", color=GREY, label="a right answer")
        ax.step(share, worth * trace.correct, where="post", color=COLOURS[0], label="the best guess")
        ax.plot(share[buzzes], (worth * trace.correct)[buzzes], "o", color=COLOURS[1], label="the buzz")
        ax.set(xlabel="source read (% of its characters)", ylabel="expected wins", ylim=(0, None))
        ax.set_title(f"{trace.question.id}: {trace.question.page}", loc="left")
        ax.legend(loc="lower left")
    return ax


def plot_steps(opened: RunFolder, index: int) -> Axes:
    """Draw a question of a run word by word; return the axes of log MRR."""
    with style(to_files=False):
        figure = draw_steps(opened.traces[index], errors_of(opened)[index], opened.config.name)
    axes: Axes = figure.axes[0]
    return axes
