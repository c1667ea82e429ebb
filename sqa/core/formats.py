"""Tables of text cells for other programs: CSV, LaTeX, HTML.  The first row is the header."""

import csv
import html
import io
from collections.abc import Sequence

Cells = Sequence[Sequence[str]]
_ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def csv_text(rows: Cells) -> str:
    """Return the rows as CSV text."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def html_table(rows: Cells) -> str:
    """Return a plain HTML table, as displayed by a notebook."""
    head, *body = (
        "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(("th", *["td"] * (len(rows) - 1)), rows, strict=True)
    )
    return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def latex_escaped(text: str) -> str:
    """Return the text with LaTeX's special characters escaped."""
    return "".join(_ESCAPED.get(sign, sign) for sign in text)


def booktabs(rows: Cells, columns: str) -> str:
    """Return a LaTeX tabular with booktabs rules; the cells are LaTeX code, and the first row is the header."""
    head, *body = [" & ".join(row) + r" \\" for row in rows]
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "".join(line + "\n" for line in lines)
