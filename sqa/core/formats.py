"""Tables in LaTeX.  The first row is the header."""

from collections.abc import Sequence

Cells = Sequence[Sequence[str]]
_ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


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
