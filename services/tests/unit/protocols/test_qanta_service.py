"""QANTA's act API, both ways: our players behind it, and systems behind it as guesser and buzzer of a run."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import doubles
import pytest
import requests
from small_runs import small_run
from stand_ins.http_server import anything, serving_app
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from buzzers.qanta_service import QantaServiceBuzzer
from guessers.qanta_service import QantaServiceConfig, build
from sqa.core.errors import ConfigError, RemoteProtocolError
from sqa.core.types import Buzz, Guess, guesses_per_word
from sqa.data.datasets import load_questions
from sqa.run.named import contestant_from
from sqa_services.net.address import Address
from sqa_services.net.server import json_reply, reply
from sqa_services.protocols import qanta
from sqa_services.protocols.qanta import Player, QantaConfig, make_app

API = "/api/1.0/quizbowl"


@pytest.fixture(scope="module", params=["mlp", "recurrent"])
def contestant(request):
    """Buzzers that look back one step, and to the beginning."""
    return contestant_from("bm25", f"{{name: {request.param}, model: bm25}}")


@pytest.fixture(scope="module")
def url(contestant) -> Iterator[str]:
    with serving_app(make_app(Player(*contestant), QantaConfig(address=Address(body_seconds=0.5)))) as url:
        yield url + API


def post(url: str, path: str, value: Any) -> requests.Response:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return requests.post(f"{url}/{path}", data=data, timeout=60)


def offline(contestant) -> list[dict[str, Any]]:
    """What is to be answered to the beginnings of two questions."""
    guesser, buzzer = contestant
    acts = []
    for question in load_questions("mini-en", limit=2):
        history = guesses_per_word(guesser, question.reference_text.split(), 50)
        pairs = zip(history, buzzer.decide(history), strict=True)
        acts += [{"guess": guesses[0].page if guesses else "", "buzz": buzz.buzz} for guesses, buzz in pairs]
    return acts


# ------------------------------------------------------------------------------------------------------ the server


def test_the_contracts_replies(url: str) -> None:
    status = requests.get(f"{url}/status", timeout=30).json()
    assert status == {"batch": True, "batch_size": 200, "ready": True, "include_wiki_paragraphs": False}
    question = {"question_idx": 0, "sent_index": 0, "char_index": 4, "text": "The "}
    nothing = {"guess": "", "buzz": False}
    assert post(url, "act", question).json() == nothing
    assert post(url, "batch_act", {"questions": [question] * 3}).json() == [nothing] * 3
    assert post(url, "batch_act", {"questions": []}).json() == []


def test_guesses_and_buzzes_are_those_of_a_run_in_any_order(url: str, contestant) -> None:
    expected = offline(contestant)
    words = [question.reference_text.split() for question in load_questions("mini-en", limit=2)]
    questions = [{"text": " ".join(each[:end])} for each in words for end in range(1, len(each) + 1)]
    order = [*range(1, len(questions), 2), *reversed(range(0, len(questions), 2))]
    acts: dict[int, Any] = {}
    for start in range(0, len(order), 60):
        asked = order[start : start + 60]
        reply = post(url, "batch_act", {"questions": [questions[i] for i in asked]})
        acts |= dict(zip(asked, reply.json(), strict=True))
    assert [acts[i] for i in range(len(questions))] == expected
    assert post(url, "act", questions[80]).json() == expected[80]
    assert {act["buzz"] for act in expected} == {True, False}


def test_texts_that_begin_alike_share_their_work_and_titles_may_have_underscores() -> None:
    class Guesser:
        asked = 0

        def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
            self.asked += 1
            return [[Guess("New York", 1.0)] if "b" in text else [] for text in texts]

    guesser = Guesser()
    player = Player(guesser, doubles.FirstGuessBuzzer(doubles.BuzzerConfig()))
    acts = player.act(["a b Spain", "a b", "a", "", "a c", "a b Spain x"])
    assert [act.guess for act in acts] == ["New York", "New York", "", "", "", "New York"]
    assert guesser.asked == 2  # "a b Spain x" and "a c"
    with serving_app(make_app(player, QantaConfig(underscores=True))) as url:
        assert post(url + API, "act", {"text": "b"}).json() == {"guess": "New_York", "buzz": True}


BAD = [
    ("act", b"no json", 400),
    ("act", b"[" * 100_000, 400),
    ("act", {"text": "w " * 3000}, 413),
    ("act", b" " * (5 << 20), 413),
    ("batch_act", {"questions": [5]}, 400),
    ("batch_act", {"questions": [{"text": "a"}] * 201}, 413),
    ("nothing", {}, 404),
]


def test_bad_requests(url: str) -> None:
    for path, body, status in BAD:
        answered = post(url, path, body)
        assert answered.status_code == status and ("error" in answered.text or len(body) > 1 << 20)


def test_the_token_and_what_cannot_be_served() -> None:
    player = Player(*contestant_from("{name: 'doubles:build_guesser'}", "{name: 'doubles:build_buzzer'}"))
    with serving_app(make_app(player, QantaConfig(address=Address(token="secret")))) as url:
        assert requests.get(f"{url}{API}/status", timeout=30).status_code == 200
        assert post(url + API, "act", {"text": "a"}).status_code == 401
        assert post(url.replace("//", "//any:secret@") + API, "act", {"text": "a"}).status_code == 200
    with pytest.raises(ConfigError, match="give a --token"):
        QantaConfig(address=Address(host="0.0.0.0"))
    with pytest.raises(ConfigError, match="name one"):
        qanta.serve("{name: 'doubles:build_guesser'}", "", Address(), False)
    with pytest.raises(ConfigError, match="needs the right answer"):
        Player(doubles.KeywordGuesser(doubles.GuesserConfig()), doubles.OracleBuzzer(doubles.BuzzerConfig()))


# ------------------------------------------------------------------------------------------------------ the client


@pytest.mark.parametrize("batch", [True, False])
def test_through_the_wire_a_run_is_the_same(tmp_path, batch: bool) -> None:
    """BM25 and the MLP behind the API, as guesser and buzzer of a run: EW, buzzes and guesses of the run without."""
    guesser, buzzer = contestant_from("bm25", "{name: mlp, model: bm25}")
    app = make_app(Player(guesser, buzzer), QantaConfig(batch_size=50 if batch else 1))
    data = {"dataset": {"name": "mini-en", "limit": 8 if batch else 2}, "metrics": ["ew", "oracle-ew", "accuracy"]}
    here = small_run(tmp_path, **data, guesser="bm25", buzzer={"name": "mlp", "model": "bm25"})
    with serving_app(app) as url:
        service = {"name": "guessers.qanta_service:build", "url": url}
        there = small_run(tmp_path, **data, guesser=service, buzzer="buzzers.qanta_service:build")
    for name in data["metrics"]:
        assert there.stats[name].tolist() == here.stats[name].tolist()
    for ours, theirs in zip(here.traces, there.traces, strict=True):
        assert [b.buzz for b in theirs.buzzes] == [b.buzz for b in ours.buzzes]
        assert [g[0].page if g else "" for g in theirs.guesses] == [g[0].page if g else "" for g in ours.guesses]
    assert any(b.buzz for trace in here.traces for b in trace.buzzes)


def system(replies: dict[str, Any]) -> Starlette:
    """A made-up system; `state.seen` of the application lists what it was asked, an iterator has its answers."""
    seen: list[Any] = []

    async def answer(request: Request) -> Response:
        if request.method == "POST":
            seen.append(await request.json())
        said = replies[request.url.path.rpartition("/")[2]]
        said = next(said) if isinstance(said, Iterator) else said
        return said if isinstance(said, Response) else json_reply(said)

    app = anything(answer)
    app.state.seen = seen
    return app


def test_what_a_system_is_sent() -> None:
    app = system({"status": {"ready": True, "batch": False}, "act": {"guess": "A_B", "buzz": False}})
    with serving_app(app) as url:
        guesser = build(QantaServiceConfig(url=url))
        assert guesses_per_word(guesser, ["One.", "Two"], 50) == [[Guess("A_B", 0.0)]] * 2
        assert guesser.guess(["Other", "  "], 50) == [[Guess("A_B", 0.0)], []]
        assert guesser.guess(["Other"], 0) == [[]]
    assert app.state.seen == [
        {"question_idx": 0, "sent_index": 0, "char_index": 4, "text": "One."},
        {"question_idx": 0, "sent_index": 1, "char_index": 8, "text": "One. Two"},
        {"question_idx": 1, "sent_index": 0, "char_index": 5, "text": "Other"},
    ]


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ({"guess": "A", "buzz": True}, [Guess("A", 1.0)]),
        ({"guess": "A", "buzz": 0}, [Guess("A", 0.0)]),
        ({"guess": None, "buzz": False}, []),
        ({"guess": "", "buzz": True}, [Guess("", 1.0)]),  # it has answered, and nobody is called so
    ],
)
def test_guesses_and_buzzes_of_a_system(act: Any, expected: list[Guess]) -> None:
    with serving_app(system({"status": {"batch": False}, "act": act})) as url:
        history = build(QantaServiceConfig(url=url)).guess(["text"], 50)
    assert history == [expected]
    [buzz] = QantaServiceBuzzer().decide(history)
    assert buzz == Buzz(expected[0].score if expected else 0.0, bool(act["buzz"]))


OVERLONG = "x" * (9 << 20)


@pytest.mark.parametrize(
    ("replies", "problem"),
    [
        ({"status": {"ready": False}}, "not ready after 0 seconds"),
        ({"status": {}, "act": {"guess": 5, "buzz": True}}, "was expected, it said"),
        ({"status": {}, "act": {"guess": "A" * 501, "buzz": True}}, "was expected, it said"),
        ({"status": {}, "act": reply("<html>")}, "JSON was expected, it said '<html>'"),
        ({"status": {}, "act": reply("broke", 500)}, "HTTP 500, it said 'broke'"),
        ({"status": {}, "act": reply(OVERLONG)}, "a reply of more than 8388608 bytes, refused"),
        ({"status": {"batch": True, "batch_size": 9}, "batch_act": []}, "a list of 1 was expected, it said"),
    ],
)
def test_a_system_that_misbehaves(replies: dict[str, Any], problem: str) -> None:
    with serving_app(system(replies)) as url, pytest.raises(RemoteProtocolError, match=problem):
        build(QantaServiceConfig(url=url, ready=0.0, retries=0)).guess(["text"], 50)


def test_a_system_that_fails_once_is_asked_again() -> None:
    answers = iter([reply("busy", 503), json_reply({"guess": "A", "buzz": False})])
    with serving_app(system({"status": {}, "act": answers})) as url:
        assert build(QantaServiceConfig(url=url)).guess(["text"], 50) == [[Guess("A", 0.0)]]


def test_the_buzzer_reads_no_other_guesses() -> None:
    buzzer = QantaServiceBuzzer()
    assert buzzer.decide([[], [Guess("A", 0.0)]]) == [Buzz(0.0, False)] * 2
    for guesses in ([Guess("A", 7.3)], [Guess("A", 1.0), Guess("B", 0.0)]):
        with pytest.raises(ConfigError, match="the guesser qanta_service only"):
            buzzer.decide([guesses])
