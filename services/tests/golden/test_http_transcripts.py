"""The responses to recorded requests equal those of the servers of 2020 (vectors/http_transcripts.json).

The recorded servers are fairseq 50ecb32b eval/server.py and SimulEval v1.0.2 online/server.py, run unmodified.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import requests
from stand_ins.iwslt_loopback import WaitAgent, serving

from sqa.metrics.latency import IWSLT_2020_FINAL, IWSLT_2020_FIRST, SIMULEVAL_1_0_2
from sqa_services.protocols.iwslt.client import EvaluationService
from sqa_services.protocols.iwslt.corpus import TextCorpus, load
from sqa_services.protocols.iwslt.http import ServeConfig
from sqa_services.protocols.iwslt.scores import sentence_latency

VECTORS = Path(__file__).parent / "vectors"
TRANSCRIPTS = json.loads((VECTORS / "http_transcripts.json").read_text(encoding="utf-8"))
LATENCIES = json.loads((VECTORS / "iwslt2020_latency.json").read_text(encoding="utf-8"))
FILES = TRANSCRIPTS["iwslt2020_server"]["files"]


def corpus(tmp_path: Path) -> TextCorpus:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return load(tmp_path / "src.txt", tmp_path / "tgt.txt", "text")


def send(url: str, step: dict[str, Any]) -> requests.Response:
    body = None if step["body"] is None else step["body"].encode()
    return requests.request(step["method"], url + step["path"], params=step.get("params"), data=body, timeout=30)


def expect(reply: requests.Response, step: dict[str, Any]) -> None:
    assert (reply.status_code, reply.text) == (step["status"], step["text"]), step
    assert reply.headers["Content-Type"] == step.get("content_type", "text/html; charset=UTF-8")


def test_iwslt_2020_transcript_replays(tmp_path: Path) -> None:
    recorded = TRANSCRIPTS["iwslt2020_server"]
    data = corpus(tmp_path)
    with serving(data, ServeConfig(strict=True, output=tmp_path / "out")) as url:
        for step in recorded["http"][:-1]:
            expect(send(url, step), step)
        WaitAgent(data.targets).decode(EvaluationService(url))  # the recording does not contain the client's requests
        expect(send(url, recorded["http"][-1]), recorded["http"][-1])
    for name, content in recorded["output_files"].items():
        assert (tmp_path / "out" / name).read_bytes() == content.encode(), name


def test_without_strict_only_three_responses_differ(tmp_path: Path) -> None:
    recorded = TRANSCRIPTS["iwslt2020_server"]["http"]
    data, differs = corpus(tmp_path), []
    with serving(data) as url:
        for step in recorded[:-1]:
            reply = send(url, step)
            if (reply.status_code, reply.text) != (step["status"], step["text"]):
                differs.append((step["method"], step["params"], step["status"], reply.status_code))
        service = EvaluationService(url)
        service.new_session()
        WaitAgent(data.targets).decode(service)
        scores = service.get_scores()
    assert differs[:2] == [("GET", {"sent_id": -1}, 200, 500), ("PUT", {"sent_id": 99}, 200, 500)]
    assert differs[2:] == [("GET", None, 500, 200)]  # /result, which fails in the original after the unknown sentence
    assert scores == json.loads(recorded[-1]["text"]) | {"TER": None, "METEOR": None}


def test_simuleval_1_0_2_transcript_replays(tmp_path: Path) -> None:
    recorded = TRANSCRIPTS["simuleval_102_server"]["http"]
    data = corpus(tmp_path)
    clock = re.compile(r'"elapsed": \[[^]]*\]')
    with serving(data, ServeConfig(strict=True, dialect="simuleval-1.0.2")) as url:
        translated: set[int] = {0}
        for step in recorded:
            number = (step.get("params") or {}).get("instance_id", 0)
            if step["path"] == "/result" and number not in translated:  # not in the recording
                translated.add(number)
                WaitAgent(data.targets)._decode_one(BySimuleval(url), number)
            reply = send(url, step)
            assert reply.status_code == step["status"]
            assert clock.sub("", reply.text) == clock.sub("", step["text"])
            if match := clock.search(reply.text):
                elapsed = json.loads("{" + match[0] + "}")["elapsed"]
                assert elapsed == sorted(elapsed) and len(elapsed) == len(json.loads(reply.text)["delays"])


class BySimuleval(EvaluationService):
    """A client that sends SimulEval's requests."""

    def get_src(self, sent_id: int, extra_params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._json("/src", {"instance_id": sent_id}) | {"sent_id": sent_id}

    def send_hypo(self, sent_id: int, hypo: str) -> None:
        self._call("PUT", "/hypo", {"instance_id": sent_id}, hypo.encode())


def latencies(given: dict[str, Any], convention: Any, reference: int | None = None) -> Any:
    """Return the latencies by the names of the recorded servers, up to the order of a float32 sum."""
    length = given.get("source_length", given.get("src_len"))
    value = sentence_latency(given["delays"], length, convention, reference)
    names = {"DAL": "differentiable_average_lagging", "AL": "average_lagging", "AP": "average_proportion"}
    if convention is SIMULEVAL_1_0_2:
        names = {name: name for name in names}
    return pytest.approx({names[name]: number for name, number in value._asdict().items()}, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("case", LATENCIES["cases"], ids=lambda case: case["id"])
def test_float32_latencies_equal_the_servers(case: dict[str, Any]) -> None:
    """Recorded from fairseq f04775e9 and 50ecb32b and from SimulEval v1.0.2, run unmodified with torch 2.13."""
    raw = case["simuleval_1.0.2_raw"]
    assert raw["no_ref"] == latencies(case, SIMULEVAL_1_0_2)
    assert raw["ref_len"] == latencies(case, SIMULEVAL_1_0_2, case["reference_length"])
    if "fairseq_f04775e9_guide" in case:
        assert case["fairseq_f04775e9_guide"] == latencies(case, IWSLT_2020_FIRST)
    for key in ("fairseq_iwslt2020_final", "fairseq_iwslt2020_final_eosread"):
        if key in case:
            assert case[key] == latencies(case[f"{key}_input"], IWSLT_2020_FINAL)


@pytest.mark.parametrize(("which", "convention"), [("final", IWSLT_2020_FINAL), ("first_commit", IWSLT_2020_FIRST)])
def test_guide_table_is_reproduced(which: str, convention: Any) -> None:
    row = LATENCIES["guide_table"][which]
    assert row["scores"] == latencies(row, convention)
