"""The SCORE/EVAL protocol against recorded transcripts of cdec (redpony/cdec@f7c4899).

vectors/cdec_external_protocol.json names what was run ("provenance"); METEOR's transcripts: test_vist.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from stand_ins.cdec import eval_line, number, read_score, read_stats, score_line

from sqa_services.protocols.external import HANDSHAKE

VECTORS = Path(__file__).parent / "vectors"
CDEC = json.loads((VECTORS / "cdec_external_protocol.json").read_text())
WRITTEN = [line[1:-1] for line in CDEC["lines"] if line.startswith("[")]
READ = [re.fullmatch(r"(parse|strtod)\((.*)\) ?= ?(.*)", line, re.DOTALL) for line in CDEC["lines"] if line[0] != "["]


def rewritten(line: str) -> str:
    """The line, from what a client of cdec has in hand."""
    command, *fields = line.split("|||")
    if command.strip() == "SCORE":
        *references, hypothesis = fields
        return score_line(references, hypothesis)
    return eval_line([float(word) for word in fields[0].split()])


@pytest.mark.parametrize("line", [*WRITTEN, CDEC["handshake"]])
def test_requests_of_cdec(line: str) -> None:
    assert rewritten(line) == line


def test_handshake_of_cdec() -> None:
    assert CDEC["handshake"] == HANDSHAKE


@pytest.mark.parametrize("match", READ, ids=lambda match: match[0])
def test_replies_as_cdec_reads_them(match: re.Match[str]) -> None:
    kind, reply, expected = match.groups()
    if kind == "parse":
        assert " ".join(map(number, read_stats(reply))) == expected
    else:
        assert format(read_score(reply), "g") == expected
