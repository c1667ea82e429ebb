"""Replies to recorded requests of cdec (redpony/cdec@f7c4899).

vectors/cdec_external_protocol.json names the recorded program ("provenance"). cdec reads a reply up to the first word
that is not a plain number. METEOR's transcripts are in test_vist.py.
"""

import json
import re
from pathlib import Path

import pytest

from sqa_services.protocols.external import HANDSHAKE
from sqa_services.protocols.scorer import SACREBLEU, Scorer

CDEC = json.loads((Path(__file__).parent / "vectors" / "cdec_external_protocol.json").read_text())
WRITTEN = [line[1:-1] for line in CDEC["lines"] if line.startswith("[")]
EMPTY, MANY, OF_2011 = "SCORE ||| |||", "SCORE ||| a ||| b ||| c ||| d ||| a b", HANDSHAKE.replace("SCORE", "EVAL")
PLAIN = r"\d+(\.\d+)?(e[+-]\d+)?"


@pytest.mark.parametrize("metric", SACREBLEU)
def test_cdec_can_read_every_reply(metric: str) -> None:
    assert CDEC["handshake"] == HANDSHAKE
    server = Scorer(metric)
    size = server.size
    scored = [line for line in WRITTEN if line.startswith("SCORE")]
    assert len(scored) == 3
    sizes = dict.fromkeys((HANDSHAKE, OF_2011, EMPTY, MANY, *scored), size)
    for line, count in (sizes | {f"EVAL ||| {' '.join(['1e+00'] * size)}": 1}).items():
        words = server.reply(line).split()
        assert len(words) == count and all(re.fullmatch(PLAIN, word) for word in words), line
    assert server.reply("EVAL |||").startswith("Error: ")
