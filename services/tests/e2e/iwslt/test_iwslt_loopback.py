"""Clients and the evaluation server over real sockets: routes, sessions, many clients, invalid requests."""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from pathlib import Path

import doubles
import pytest
import requests
from stand_ins.iwslt_loopback import ECHO, WaitAgent, get, serving

from sqa.core import ConfigError, DataError, Question
from sqa.data.datasets import load_questions
from sqa.pipeline import contestant_from, stream
from sqa_services.cli.protocols import client_iwslt
from sqa_services.protocols.iwslt import http
from sqa_services.protocols.iwslt.client import EvaluationService, TranslatorAgent, evaluate
from sqa_services.protocols.iwslt.corpus import EOS, TextCorpus
from sqa_services.protocols.iwslt.http import ServeConfig
from sqa_services.protocols.iwslt.questions import QuestionScorer

GUIDE = TextCorpus((tuple("Alice and Bob are good friends".split()),), ("Alice und Bob sind gute freunde.",))


def corpus_of(dataset: str) -> TextCorpus:
    sentences = tuple(words for question in load_questions(dataset, 2) for words in question.sentences)
    return TextCorpus(sentences, tuple(" ".join(words).upper() for words in sentences))


# --------------------------------------------------------------------------------------------------------- clients


class ByTheGuide(EvaluationService):
    """A client that uses the routes of the published guide."""

    def get_src(self, sent_id: int, extra_params: dict | None = None) -> dict:
        return self._json("/get", {"info": json.dumps({"sent_id": sent_id, "value": extra_params})})

    def send_hypo(self, sent_id: int, hypo: str) -> None:
        self._call("GET", "/send", {"hypo": json.dumps({str(sent_id): hypo})})


def test_guide_routes_reproduce_the_published_table() -> None:
    """The wait-3 table of the guide was corrected one day later; strict mode reproduces the first version."""
    for strict, expected in ((False, (3.0, 3.0, 0.795918345451355)), (True, (4.0, 4.0, 0.9166666865348816))):
        with serving(GUIDE, ServeConfig(strict=strict)) as url:
            assert get(f"{url}/start").text == ""
            WaitAgent(GUIDE.targets).decode(ByTheGuide(url))
            scores = get(f"{url}/end").json()
        assert (scores["AL"], scores["DAL"], scores["AP"]) == expected
        assert scores["BLEU"] == pytest.approx(100)


@pytest.mark.parametrize(("strict", "length"), [(False, 2), (True, 1)])
def test_responses_match_the_guide(strict: bool, length: int) -> None:
    """Two words in one request count as two tokens, or as one token in strict mode."""
    with serving(GUIDE, ServeConfig(strict=strict, dialect="simuleval-1.0.2")) as url:
        for path, text in (
            ("/start", ""),
            ('/get?info={"sent_id": null, "value": null}', '{"num_sentences": 1}'),
            ('/get?info={"sent_id": 0, "value": null}', '{"sent_id": 0, "segment_id": 0, "segment": "Alice"}'),
            ('/send?hypo={"0": "two words"}', ""),
        ):
            reply = get(url + path)
            assert (reply.status_code, reply.text) == (200, text)
        assert get(f"{url}/result?instance_id=0").json()["prediction_length"] == length


def test_agent_delays_equal_those_of_a_run() -> None:
    corpus = corpus_of("mini-es")
    with serving(corpus) as url:
        agent = TranslatorAgent(ECHO)
        assert evaluate(lambda: agent, EvaluationService(url), end=3) == 4
        for number in range(4):
            got = get(f"{url}/result?instance_id={number}").json()
            question = Question("q", "d", "es", (corpus.sources[number],), ("-",), "page")
            emissions = stream(agent.translator, question)
            assert got["prediction"].split() == [*(e.token for e in emissions), EOS]
            assert got["delays"] == [*(e.g + e.ended for e in emissions), len(corpus.sources[number]) + 1]


def test_client_command_translates_and_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(
        "from stand_ins.iwslt_loopback import WaitAgent\n"
        "class Mine(WaitAgent):\n"
        "    def __init__(self, args): super().__init__((args.reference,), args.k)\n"
        "    @staticmethod\n"
        "    def add_args(parser):\n"
        "        parser.add_argument('--k', type=int)\n"
        "        parser.add_argument('--reference')\n"
    )
    with serving(GUIDE) as url:

        def run(name: str | None, arguments: tuple[str, ...], translator: str | None = None, threads: int = 1) -> None:
            client_iwslt([*arguments], name, translator, url, threads=threads, reset=True, scores=True)

        run(f"{agent}:Mine", ("--k", "3", "--reference", GUIDE.targets[0]), threads=4)
        assert json.loads(capsys.readouterr().out)["AL"] == 3.0
        with pytest.raises(ConfigError, match="give exactly one of them"):
            run("a.py:A", (), "{name: x}")
        with pytest.raises(ConfigError, match="options of an agent"):
            run(None, ("--k",))
    with pytest.raises(DataError, match="GET http"):
        EvaluationService(url).corpus_info()


BAD = [
    ("/src?sent_id=-1", None, 500),
    ("/src?sent_id=1e3", None, 500),
    ("/src?sent_id=0&segment_size=x", None, 500),
    ("/result?instance_id=77", None, 500),
    ("/get?info=" + "[" * 2000, None, 500),
    ('/send?hypo={"9": "word"}', None, 500),
    ('/send?hypo={"0": 5}', None, 500),
    ('/send?hypo={"0": "\\ud800"}', None, 500),
    ("/src", None, 400),
    ("/hypo?sent_id=4", b"word", 500),
    ("/hypo?sent_id=0", b"\xff\xfe", 500),
]


def test_bad_requests_get_the_original_statuses() -> None:
    with serving(GUIDE) as url:
        for path, body, status in BAD:
            reply = requests.request("GET" if body is None else "PUT", url + path, data=body, timeout=30)
            assert reply.status_code == status, path


# ------------------------------------------------------------------------------------------------- sessions, limits


def test_sessions_are_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_SESSIONS", 2)
    with serving(GUIDE) as url:
        one, two = EvaluationService(url, session="one"), EvaluationService(url, session="two")
        assert [one.get_src(0)["segment"] for _ in range(2)] == ["Alice", "and"]
        assert two.get_src(0)["segment"] == "Alice"
        two.new_session()
        assert (one.get_src(0)["segment"], two.get_src(0)["segment"]) == ("Bob", "Alice")
        assert get(f"{url}/src?sent_id=0").status_code == 503  # MAX_SESSIONS is reached
        assert requests.delete(f"{url}/sessions/one", timeout=30).status_code == 200
        assert get(f"{url}/src?sent_id=0").json()["segment"] == "Alice"
        assert get(f"{url}/sessions/a%2Fb/src?sent_id=0").status_code == 404


# ---------------------------------------------------------------------------------- many clients, and invalid clients


def test_concurrent_clients_score_like_one_client() -> None:
    """Each client translates one of six questions with its own lag, so a mix-up changes the scores."""
    questions, many = load_questions("mini-en", limit=6), 60
    scorer = QuestionScorer(questions, *contestant_from())
    first = [0, *accumulate(len(question.sentences) for question in questions)]

    def scores(url: str, number: int) -> dict:
        service = EvaluationService(url, session=f"client-{number}")
        agent = TranslatorAgent(doubles.EchoTranslator(doubles.EchoConfig(k=number % 7 + 1)))
        evaluate(lambda: agent, service, start=first[number % 6], end=first[number % 6])
        return service.get_scores()["SoFar"]

    with serving(scorer.corpus(), None, scorer) as url, ThreadPoolExecutor(many) as pool:
        results = list(pool.map(partial(scores, url), range(many)))
    with serving(scorer.corpus(), None, scorer) as url:
        assert [scores(url, number) for number in range(0, many, 10)] == results[::10]
    assert len({str(result) for result in results}) > 30 and any(row["OracleEW"] for row in results)
