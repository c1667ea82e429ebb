"""The SCORE/EVAL protocol against recorded transcripts of cdec (redpony/cdec@f7c4899) and of METEOR 1.5's jar.

vectors/cdec_external_protocol.json and vectors/meteor15_stdio.json name what was run ("provenance").
"""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from stand_ins.cdec import eval_line, number, read_score, read_stats, score_line

from sqa_services.protocols import meteor
from sqa_services.protocols.external import HANDSHAKE
from sqa_services.protocols.meteor import Meteor
from sqa_services.protocols.scorer import Scorer

VECTORS = Path(__file__).parent / "vectors"
CDEC = json.loads((VECTORS / "cdec_external_protocol.json").read_text())
METEOR = json.loads((VECTORS / "meteor15_stdio.json").read_text())
WRITTEN = [line[1:-1] for line in CDEC["lines"] if line.startswith("[")]
READ = [re.fullmatch(r"(parse|strtod)\((.*)\) ?= ?(.*)", line, re.DOTALL) for line in CDEC["lines"] if line[0] != "["]
needs_meteor = pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pycocoevalcap") is None, reason="needs Java and pycocoevalcap"
)


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


@needs_meteor
@pytest.mark.slow
@pytest.mark.parametrize("config", METEOR["configs"], ids=lambda config: " ".join(config["args"]))
def test_our_meteor_scorer_answers_as_the_jar(config: dict) -> None:
    with meteor.start(config["args"]) as program:
        scorer = Scorer(Meteor(program), each=True)
        for row in config["rows"]:
            stats = scorer.reply(row["sent"])
            assert stats == row["stats"]
            assert scorer.reply(f"EVAL ||| {stats}").split("\n") == row["eval_lines"]
        groups = " ||| ".join(row["stats"] for row in config["rows"])
        each = scorer.reply(f"EVAL ||| {groups}").split("\n")
        assert each[:-1] == [row["eval_lines"][0] for row in config["rows"]]
        assert set(each[:-1]) <= set(config["eval_all_lines"])
        assert scorer.reply("HELLO") == config["unknown_command_reply"]
