"""The recorded conversation with `simuleval --standalone` replays byte for byte (vectors/http_transcripts.json).

The recording: SimulEval 536de82 with a wait-3 copying agent, run unmodified on loopback; here our server has the agent.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests

pytest.importorskip("simuleval", reason="needs the extra: pip install 'sqa[simul]'")

from stand_ins.http_server import serving_app

from sqa.core.paths import ROOT
from sqa_services.simuleval.server import ServiceConfig, agent_of, make_app

TRANSCRIPTS = Path(__file__).parent / "vectors" / "http_transcripts.json"
AGENT = ROOT / "services" / "tests" / "simuleval_copier.py"


def test_the_recorded_service_replays_byte_for_byte() -> None:
    recorded = json.loads(TRANSCRIPTS.read_text(encoding="utf-8"))["simuleval_head_agent_service"]["http"]
    with serving_app(make_app(agent_of("", f"{AGENT}:W"), ServiceConfig())) as url:
        for step in recorded:
            body = None if step["body"] is None else step["body"].encode()
            reply = requests.request(step["method"], url + step["path"], data=body, timeout=30)
            assert (reply.status_code, reply.text) == (step["status"], step["text"]), step
            assert reply.headers["Content-Type"] == "text/html; charset=UTF-8"
