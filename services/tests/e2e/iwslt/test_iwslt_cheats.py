"""Clients cannot falsify latencies or see hidden text, and pages of other sites cannot read or reset a session."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from stand_ins.iwslt_loopback import WaitAgent, get, put, recording, serving
from tables import tables_of

from sqa_services.protocols.iwslt import http
from sqa_services.protocols.iwslt.client import EvaluationService
from sqa_services.protocols.iwslt.corpus import EOS, SpeechCorpus, TextCorpus, load
from sqa_services.protocols.iwslt.http import ServeConfig

TABLES = tables_of(__file__)

CORPUS = TextCorpus((tuple("Alice and Bob are good friends".split()),), ("Alice und Bob sind gute Freunde .",))
NOTHING = (*("", " ", "\n", "\t", "\u00a0"), *"\u200b\u00ad\u2060\ufeff\u2800\u3164\u0301", "<skipped>")

BROWSERS = TABLES["browsers"]
DIALECTS = ("iwslt-2020", "simuleval-1.0.2")


# ------------------------------------------------------------------------------------------- tokens without a word


def send(url: str, route: str, text: str) -> int:
    """Send a text for sentence 0 and return the status."""
    if route == "guide":
        return get(f"{url}/send?hypo={quote(json.dumps({'0': text}))}").status_code
    return put(f"{url}/hypo?{route}=0", text)


def instance(url: str) -> dict:
    """Return the server's record of sentence 0."""
    return get(f"{url}/result?instance_id=0").json()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("route", ["guide", "sent_id", "instance_id"])
def test_token_without_a_word_has_no_delay(dialect: str, route: str) -> None:
    """Regression test: empty tokens sent before the first read lowered a DAL of 13 to .05 at a BLEU of 100."""
    scores = []
    for nothing in (False, True):
        with serving(CORPUS, ServeConfig(dialect=dialect)) as url:
            assert all(send(url, route, text) == 200 for text in NOTHING * nothing)
            WaitAgent(CORPUS.targets).decode(EvaluationService(url))
            assert instance(url)["prediction"].split() == [*CORPUS.targets[0].split(), EOS]
            scores.append(EvaluationService(url).get_scores())
    assert scores[0] == scores[1]


# ---------------------------------------------------------------------------------------- source sent counts as read


MS, RATE = 1000, 16_000


def recorded(tmp_path: Path, samples: int, rate: int) -> SpeechCorpus:
    (tmp_path / "src").write_text(f"{recording(tmp_path / 'a.wav', samples, rate)}\n")
    (tmp_path / "tgt").write_text("eins zwei\n")
    return load(tmp_path / "src", tmp_path / "tgt", "speech")


@pytest.fixture
def speech(tmp_path: Path) -> SpeechCorpus:
    return recorded(tmp_path, RATE * MS // 1000, RATE)


WAYS = {  # requests that gave a delay of at most 10 ms for a whole recording in an earlier version
    "another name": ("sent_id=0&segment_size=60000", "instance_id=0&segment_size=10"),
    "a size that is refused": ("sent_id=0&segment_size=60000", "sent_id=0&segment_size=0"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_source_sent_counts_as_read(speech: SpeechCorpus, dialect: str, way: str) -> None:
    with serving(speech, ServeConfig(dialect=dialect)) as url:
        whole, back = (get(f"{url}/src?{query}") for query in WAYS[way])
        assert len(whole.json()["segment"]) == RATE * MS // 1000
        assert back.status_code == (500 if "refused" in way else 200)
        send(url, "sent_id", "eins")
        send(url, "sent_id", "zwei </s>")
        assert instance(url)["delays"] == [MS] * 3


@pytest.mark.parametrize("rate", [8000, 22_050])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_latency_is_the_same_by_sent_id_and_instance_id(dialect: str, rate: int, tmp_path: Path) -> None:
    """Regression test: requests by `sent_id` did not count the last fraction of a millisecond, which halved the AL."""
    speech, scores = recorded(tmp_path, 2 * rate + 7, rate), []
    for query in ("sent_id=0&segment_size=60000", "sent_id=0&segment_size=10", "instance_id=0&segment_size=60000"):
        with serving(speech, ServeConfig(dialect=dialect)) as url:
            while get(f"{url}/src?{query}").json()["segment"] != EOS:
                pass
            send(url, "sent_id", "eins zwei </s>")
            latencies = EvaluationService(url).get_scores()
            latencies = latencies.get("Latency", latencies)
            scores.append([latencies[name] for name in ("AL", "AP", "DAL")])
    assert scores[0] == scores[1] == scores[2] and scores[0][0] == pytest.approx(2000, abs=1)


# ----------------------------------------------------------------------------------------------------- hidden text


MANY = TextCorpus(
    tuple(tuple(f"w{n}-{i}" for i in range(4 + n % 5)) for n in range(12)), tuple(f"r{n} a b c" for n in range(12))
)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_results_show_only_words_that_were_read(dialect: str) -> None:
    """Regression test: a client that requested results before translating had a BLEU of 100 and an AL of -10.4."""
    with serving(MANY, ServeConfig(dialect=dialect)) as url:
        service = EvaluationService(url)
        untold = {"reference": None, "source_length": None, "reference_length": None, "metric": {}}
        result = get(f"{url}/result?instance_id=3").json()
        assert result | untold | {"source": ""} == result
        service.get_src(3)
        service.send_hypo(3, "word")
        get(f"{url}/result")  # regression: a request for all scores revealed the sentence's BLEU
        result = get(f"{url}/result?instance_id=3").json()
        assert result | untold | {"source": "w3-0"} == result
        service.send_hypo(3, "</s>")
        result = get(f"{url}/result?instance_id=3").json()
        assert result["source"] == "w3-0" and result["source_length"] == 7
        assert result["metric"]["sentence_bleu"] >= 0 and result["reference"] is None
        assert not any(
            ref in get(f"{url}/result?instance_id={n}").text for n in range(12) for ref in ("a b c", f"r{n}")
        )


# --------------------------------------------------------------------------------------------- pages of other sites


def asked(path: str) -> str:
    return path + quote(json.dumps({"sent_id": 0, "value": None} if "info" in path else {"0": "word"}))


CHANGES = ("/src?sent_id=0", "/start", asked("/get?info="), asked("/send?hypo="))


@pytest.mark.parametrize("browser", BROWSERS, ids=lambda headers: next(iter(headers)))
def test_browser_pages_cannot_read_write_or_reset(browser: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression test: `GET /start` from a link, frame or image of another site reset the client's session."""
    monkeypatch.setattr(http, "MAX_SESSIONS", 2)
    with serving(CORPUS) as url:
        service = EvaluationService(url)
        service.get_src(0)
        service.send_hypo(0, "Alice")
        for path in (*CHANGES, *(f"/sessions/x{change}" for change in CHANGES)):
            assert requests.get(url + path, headers=browser, timeout=30).status_code == 403, path
        for session in "abc":  # viewing a session does not count towards MAX_SESSIONS
            assert get(f"{url}/sessions/{session}/result?instance_id=0").json()["prediction"] == ""
        assert instance(url)["prediction"] == instance(url)["source"] == "Alice"
        assert requests.get(url, headers={"User-Agent": "Mozilla/5.0"}, timeout=30).status_code == 200
        assert EvaluationService(url, session="mine").get_src(0)["segment"] == "Alice"


def test_strict_dialect_allows_browser_requests() -> None:
    with serving(CORPUS, ServeConfig(strict=True)) as url:
        assert requests.get(f"{url}/start", headers=BROWSERS[1], timeout=30).status_code == 200
