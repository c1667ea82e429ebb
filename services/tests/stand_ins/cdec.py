"""cdec as a client: the SCORE/EVAL lines as cdec (mteval/external_scorer.cc) writes them, and replies as it reads them.

A segment is `SCORE ||| reference ||| ... ||| hypothesis`, answered with numbers that add over segments;
`EVAL ||| numbers` is answered with a score.  There is no escape for `|||`.  cdec counts in float32.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

REPLY_LIMIT = 16_000  # bytes of a reply that cdec reads

_BLANKS = " \t\n"
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:\d+\.?\d*|\.\d+))([eE][+-]?\d*)?")
_STRTOD = re.compile(
    r"[ \t\n\v\f\r]*(?P<sign>[+-]?)(?:(?P<hex>0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)(?:[pP][+-]?\d+)?)"
    r"|(?P<word>inf(?:inity)?|nan)|(?P<decimal>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))",
    re.IGNORECASE,
)


def score_line(references: Sequence[str], hypothesis: str) -> str:
    """Fields of single-spaced words; an empty hypothesis leaves the line ending in `|||`."""
    return "SCORE" + "".join(" ".join([" |||", *text.split()]) for text in (*references, hypothesis))


def eval_line(stats: Iterable[float]) -> str:
    """The statistics as C++ prints a float32: 6 significant digits."""
    return " ".join(["EVAL |||", *map(number, stats)])


def number(value: float) -> str:
    """`ostream << float`: 1234567 is 1.23457e+06."""
    return format(float(np.float32(value)), ".6g")


def read_stats(reply: str) -> list[float]:
    """What `istream >> float` gets from a reply: the numbers up to the first thing that is none, as float32."""
    text = reply.encode()[:REPLY_LIMIT].decode("utf-8", "replace").strip(_BLANKS)
    numbers: list[float] = []
    at = 0
    while match := _NUMBER.match(text, at):
        mantissa, exponent = match.groups()
        if exponent and not exponent[-1].isdigit():
            break  # "1e" is taken as a whole and then fails
        with np.errstate(over="ignore"):
            value = float(np.float32(float(mantissa + (exponent or ""))))
        if np.isinf(value):
            break
        numbers.append(value)
        at = match.end()
    return numbers


def read_score(reply: str) -> float:
    """What `strtod` gets from a reply: the number it begins with (also hexadecimal, inf, nan), else 0."""
    match = _STRTOD.match(reply)
    if match is None:
        return 0.0
    text = match["sign"] + (match["hex"] or match["word"] or match["decimal"])
    return float.fromhex(text) if match["hex"] else float(text)
