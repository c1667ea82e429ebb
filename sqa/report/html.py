"""The report's Markdown and HTML page, one file without scripts or requests, light or dark as the browser prefers.

Texts from runs enter the Markdown only through `code` and `plain`, and the page is rendered with raw HTML disabled.
Therefore none of these texts can become markup in either format.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sqa.core import in_a_line
from sqa.report.plots import Drawn

if TYPE_CHECKING:
    from markdown_it.token import Token

_MARKUP = re.compile(r"([\\`*\[\]<>&~!#$]|(?<![^\W_])_|_(?![^\W_]))")
_NUMBER = re.compile(r"n/a|(\*\*)?[-+]?\d+(\.\d+)?(\*\*)?( \[.*\]| of \d+)?|\[[-+\d., ]+\]")  # right-aligned cells


def plain(text: object) -> str:
    """Return a text on one line, escaped so that Markdown shows it unchanged."""
    return _MARKUP.sub(r"\\\1", _visible(text))


def code(text: object) -> str:
    """Return a text on one line as a code span; empty for an empty text."""
    shown = _visible(text)
    if not shown:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _visible(text: object) -> str:
    """Return a text with white space replaced by single spaces, and unprintable characters by U+FFFD."""
    shown = in_a_line(text)
    return "".join(c if c.isprintable() or c == " " else "\ufffd" for c in shown)


def page(markdown: str, title: str, figures: Iterable[Drawn]) -> str:
    """Return the HTML page of a report in Markdown, with each figure's PNG image replaced by inline SVG."""
    from markdown_it import MarkdownIt

    images = {path.name: figure for figure in figures for path in figure.files if path.suffix == ".png"}
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", lambda *_: '<div class="wide"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("image", _image, fmt="html")
    tokens = parser.parse(markdown)
    _mark_numbers(tokens)
    style = page_file("report_page", "page.css")
    policy = f"default-src 'none'; img-src data:; style-src {source_hash(style)}; base-uri 'none'; form-action 'none'"
    body = parser.renderer.render(tokens, parser.options, {"figures": images})
    template = templates().get_template("report_page/page.html")
    return template.render(title=title, policy=Markup(policy), style=Markup(style), body=Markup(body))


def page_file(folder: str, name: str) -> str:
    """Return the text of a file in a folder of `sqa.report`, such as a template or a style sheet."""
    return (files("sqa.report") / folder / name).read_text(encoding="utf-8")


def templates(escaped: bool = True) -> Environment:
    """Return the templates of `sqa.report`; if `escaped`, every text is escaped for HTML, except `Markup`."""
    return Environment(
        loader=PackageLoader("sqa.report", ""),
        autoescape=escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _image(renderer: Any, tokens: Sequence[Token], at: int, options: Any, env: Mapping[str, Any]) -> str:
    """Render a figure, or the alternative text of any other image."""
    source = str(tokens[at].attrs.get("src", ""))
    alt = html.escape(tokens[at].content)
    figure = env["figures"].get(source.rpartition("/")[2])
    if figure is None:
        return alt
    svg = base64.b64encode(figure.svg.encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{svg}" alt="{alt}">'


def _mark_numbers(tokens: Sequence[Token]) -> None:
    """Give cells that contain a number the class for right alignment."""
    for opening, content in pairwise(tokens):
        if opening.type == "td_open" and _NUMBER.fullmatch(content.content):
            opening.attrSet("class", "number")


def source_hash(text: str) -> str:
    """Return the source expression of a content security policy that allows only this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
