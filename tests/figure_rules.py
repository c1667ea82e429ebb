"""Checks of a drawn figure: clipped or overlapping text, font sizes, and legibility in greyscale."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from sqa.report.plots import PAGE, SMALLEST

TOUCH = 1.0  # pixels by which two labels may overlap
LUMINANCE = (0.2126, 0.7152, 0.0722)  # weights of red, green and blue
FAR = 0.25  # minimum difference of two luminances (0 to 1) that can be distinguished in print


def problems(figure: Figure, human: bool = False) -> list[str]:
    """Return the problems of a figure.  With `human`, the legend must name a human translation."""
    texts = drawn_texts(figure)
    found = [*_clipped(figure, texts), *_overlaps(figure, texts), *_small(figure, texts), *_alike(figure)]
    if human and not any("human" in text.get_text() for legend in legends(figure) for text in legend.texts):
        found.append("no human translation in the legend")
    return found


def drawn_texts(figure: Figure) -> list[Text]:
    """Return the texts that appear when the figure is drawn, without tick labels beyond the axes."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts: list[Text] = []
    draw_text = renderer.draw_text

    def recorded(*arguments: Any, mtext: Text | None = None, **options: Any) -> None:
        if mtext is not None and mtext not in texts:
            texts.append(mtext)
        draw_text(*arguments, mtext=mtext, **options)

    renderer.draw_text = recorded  # type: ignore[method-assign]
    figure.draw(renderer)
    return texts


def legends(figure: Figure) -> list[Legend]:
    """Return the legends of a figure and of its axes."""
    return [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]


def _clipped(figure: Figure, texts: list[Text]) -> Iterator[str]:
    for text in texts:
        box = text.get_window_extent()
        if min(box.x0, box.y0) < -TOUCH or box.x1 > figure.bbox.x1 + TOUCH or box.y1 > figure.bbox.y1 + TOUCH:
            yield f"clipped by the canvas: {text.get_text()!r}"


def _overlaps(figure: Figure, texts: list[Text]) -> Iterator[str]:
    boxes = {text: text.get_window_extent() for text in texts}
    for a, b in combinations(texts, 2):
        if _meet(boxes[a], boxes[b]):
            yield f"overlapping: {a.get_text()!r} and {b.get_text()!r}"
    for legend in figure.legends:
        inside = {*legend.texts, legend.get_title()}
        others = [(text.get_text(), box) for text, box in boxes.items() if text not in inside]
        others += [("a panel", axes.get_window_extent()) for axes in figure.axes if axes.get_visible()]
        for name, box in others:
            if _meet(legend.get_window_extent(), box):
                yield f"the legend covers {name!r}"


def _meet(a: Bbox, b: Bbox) -> bool:
    """Return whether two boxes share more than a border."""
    both = Bbox.intersection(a, b)
    return both is not None and both.width > TOUCH and both.height > TOUCH


def _small(figure: Figure, texts: list[Text]) -> Iterator[str]:
    scale = min(1.0, PAGE / figure.get_figwidth())  # a figure wider than a page is shown smaller
    for text in texts:
        if scale * text.get_fontsize() < SMALLEST:
            yield f"{scale * text.get_fontsize():.1f} points: {text.get_text()!r}"


def _alike(figure: Figure) -> Iterator[str]:
    """Yield a problem for each pair of legend entries that look alike in greyscale."""
    for legend in legends(figure):
        looks = [
            (text.get_text(), *look(handle)) for text, handle in zip(legend.texts, legend.legend_handles, strict=True)
        ]
        for (a, shape_a, grey_a), (b, shape_b, grey_b) in combinations(looks, 2):
            if shape_a == shape_b and abs(grey_a - grey_b) < FAR:
                yield f"alike in greyscale: {a!r} and {b!r}"


def look(handle: Any) -> tuple[tuple[Any, ...], float]:
    """Return the shape (marker and line style, or hatch) and the luminance (0 to 1) of a legend's line or area."""
    if isinstance(handle, Line2D):
        return (handle.get_marker(), handle.get_linestyle()), luminance(handle.get_color(), handle.get_alpha())
    return (handle.get_hatch(),), luminance(handle.get_facecolor(), None)


def luminance(colour: Any, alpha: float | None) -> float:
    """Return the luminance (0 to 1) of a colour on white paper."""
    *rgb, opacity = to_rgba(colour, alpha)
    return sum(weight * (opacity * part + 1 - opacity) for weight, part in zip(LUMINANCE, rgb, strict=True))
