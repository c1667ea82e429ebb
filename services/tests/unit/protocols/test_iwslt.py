"""The IWSLT 2020 evaluation server: corpora, sessions and scores (latencies: golden/test_http_transcripts.py)."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stand_ins.http_server import anything, serving_app
from stand_ins.iwslt_loopback import recording
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from tables import tables_of

from sqa.core import ConfigError, DataError
from sqa.data.datasets import load_questions
from sqa_services.cli.protocols import serve_iwslt
from sqa_services.net.guard import Refused
from sqa_services.net.server import json_reply
from sqa_services.protocols.iwslt import client
from sqa_services.protocols.iwslt.client import GET, SEND, Agent, EvaluationService
from sqa_services.protocols.iwslt.corpus import EOS, TextCorpus, load
from sqa_services.protocols.iwslt.questions import corpus_of
from sqa_services.protocols.iwslt.session import MAX_TOKENS, Session

TABLES = tables_of(__file__)

CORPUS = TextCorpus((("Alice", "and", "Bob"), ("one",)), ("Alice und Bob", "eins"))


# -------------------------------------------------------------------------------------------------------- corpora


def test_reference_with_fewer_sentences_gives_empty_targets() -> None:
    one, two = load_questions("mini-es", limit=2)
    corpus = corpus_of([replace(one, reference=one.reference[:1]), two])
    count = len(one.sentences)
    assert corpus.sources == one.sentences + two.sentences and count > 1
    assert corpus.targets == ("",) * count + tuple(two.reference)


def test_speech_is_read_in_blocks_of_ten_ms(tmp_path: Path) -> None:
    wav = recording(tmp_path / "a.wav", 16 * 25)  # 25 ms
    content = {"utts": {"a": {"input": {"path": str(wav), "length_ms": 25}, "output": {"text": " eins zwei "}}}}
    (tmp_path / "dev.json").write_text(json.dumps(content))
    session = Session(load(None, tmp_path / "dev.json", "speech"))
    assert session.corpus.targets == ("eins zwei",)
    read = [session.read(0, size) for size in (None, 19, 500, None, None)]  # 19 ms are rounded down to one block
    expected = [list(range(160)), list(range(160, 320)), list(range(320, 400)), EOS, EOS]
    assert [segment["segment"] for segment in read] == expected
    assert [segment["segment_id"] for segment in read[:3]] == [0, 1, 2]
    session.write(0, ["eins", "zwei", EOS])
    assert session.sentences[0].delays == (25, 25, 25)
    with pytest.raises(Refused):
        session.read(0, 9)


@pytest.mark.parametrize("rate", [1_001, 8_000, 11_025, 22_050, 44_100])
@pytest.mark.parametrize("size", [None, 250, 60_000])
def test_speech_is_sent_up_to_its_last_sample(tmp_path: Path, rate: int, size: int | None) -> None:
    """Regression test: at 44.1 kHz, 44 samples were sent per millisecond, and the end of a recording was missing."""
    samples = 22 * rate + 7
    recording(tmp_path / "a.wav", samples, rate)
    (tmp_path / "src").write_text("a.wav\n")
    (tmp_path / "tgt").write_text("eins\n")
    session, read, reaches = Session(load(tmp_path / "src", tmp_path / "tgt", "speech")), [], []
    while (segment := session.read(0, size)["segment"]) != EOS:
        read += segment
        reaches.append((session.sentences[0].reach, len(read) * 1000 / rate))
    assert read == np.arange(samples, dtype="<i2").tolist()
    assert all(reach == pytest.approx(given, abs=1) for reach, given in reaches)


def test_invalid_recording_length_is_refused(tmp_path: Path) -> None:
    wav = recording(tmp_path / "a.wav", 16 * 1000)
    for length, fits in ((990, True), (1010, True), (500, False), (2000, False)):
        content = {"utts": {"a": {"input": {"path": str(wav), "length_ms": length}, "output": {"text": "eins"}}}}
        (tmp_path / "dev.json").write_text(json.dumps(content))
        if fits:
            load(None, tmp_path / "dev.json", "speech")
        else:
            with pytest.raises(DataError, match=rf"length_ms of .*a.wav is {length}, its samples are 1000 ms"):
                load(None, tmp_path / "dev.json", "speech")


def test_simuleval_requests_read_speech_by_samples(tmp_path: Path) -> None:
    recording(tmp_path / "a.wav", 200, rate=8_000)  # 25 ms
    (tmp_path / "src").write_text("a.wav\n")
    (tmp_path / "tgt").write_text("eins zwei\n")
    session = Session(load(tmp_path / "src", tmp_path / "tgt", "speech"))
    first, last, end = (session.read(0, 20, instance=True) for _ in range(3))
    assert (first["segment_id"], len(first["segment"]), first["finished"]) == (20.0, 160, False)
    assert (last["segment_id"], len(last["segment"]), last["finished"]) == (25.0, 40, True)
    assert (end["segment_id"], end["segment"], end["sample_rate"], end["finished"]) == (25.0, EOS, 8_000, True)
    session.write(0, ["eins", "zwei", EOS], wrap=False)
    result = session.instance(0)
    assert result["source_length"] == 25.0 and result["delays"] == (25.0,) * 3
    assert result["metric"]["latency"]["AL"] == 25.0 and set(result["metric"]["latency_ca"]) == {"AL", "AP", "DAL"}
    assert list(session.nested_result()["Latency"]) == ["AL", "AL_CA", "AP", "AP_CA", "DAL", "DAL_CA"]


@pytest.mark.parametrize(
    ("start", "content", "message"),
    [
        (40, b"\xff\xff\xff\xff", "a.wav: no .wav file, or shorter than its header announces; convert it"),
        (40, b"\x52\x03\0\0", "a.wav: no .wav file, or shorter than its header"),
        (20, b"\xfe\xff", r"not a plain .wav file \(unknown .*format.*\); convert it"),  # WAVE_FORMAT_EXTENSIBLE
    ],
)
def test_damaged_recordings_are_refused(tmp_path: Path, start: int, content: bytes, message: str) -> None:
    data = bytearray(recording(tmp_path / "a.wav", 424).read_bytes())
    data[start : start + len(content)] = content
    (tmp_path / "a.wav").write_bytes(data)
    (tmp_path / "src").write_text("a.wav\n")
    (tmp_path / "tgt").write_text("eins\n")
    with pytest.raises(DataError, match=message):
        load(tmp_path / "src", tmp_path / "tgt", "speech")


@pytest.mark.parametrize(("source", "target", "message"), TABLES["mismatched_files_are_refused"])
def test_mismatched_files_are_refused(tmp_path: Path, source: str | None, target: str, message: str) -> None:
    (tmp_path / "src").write_text(source or "")
    (tmp_path / "tgt.json").write_text(target)
    (tmp_path / "tgt").write_text(target)
    (tmp_path / "text.wav").write_text("text")
    recording(tmp_path / "two.wav", 10, channels=2)
    files = (None, tmp_path / "tgt.json") if source is None else (tmp_path / "src", tmp_path / "tgt")
    with pytest.raises(DataError, match=message):
        load(*files, "speech" if source is None or "wav" in source else "text")


# ------------------------------------------------------------------------------------------------------- sessions


def test_strict_guide_does_not_count_reading_the_end() -> None:
    session = Session(CORPUS, strict=True)
    assert [session.read(1, guide=True)["segment_id"] for _ in range(3)] == [0, 1, 1]


@pytest.mark.parametrize(("strict", "tokens", "text", "delays"), TABLES["only_strict_drops_the_last_token"])
def test_only_strict_drops_the_last_token(
    tmp_path: Path, strict: bool, tokens: list[str], text: str, delays: list[int]
) -> None:
    session = Session(TextCorpus((("one",),), ("eins",)), strict)
    session.read(0)
    session.read(0)
    session.write(0, tokens)
    session.result(tmp_path)
    assert (tmp_path / "text").read_text() == f"{text}\n"
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert json.loads((tmp_path / "delay").read_text()) == {"src_len": 2, "delays": delays}


def test_sentence_without_words_has_no_latency(tmp_path: Path) -> None:
    mended, strict = Session(CORPUS), Session(CORPUS, strict=True)
    for session in (mended, strict):
        session.read(1)
        session.write(1, ["eins", EOS])
    with pytest.raises(Refused):
        strict.result()
    scores = mended.result(tmp_path)
    written = dict(line.split(", ") for line in (tmp_path / "scores").read_text().splitlines())
    assert written == {key: str(scores[key] or "n/a") for key in scores if key != "SoFar"}
    assert scores["SoFar"]["AL"] == 0.5 and scores["SoFar"]["TER"] is None
    assert mended.nested_result()["SoFar"]["Latency"]["AP"] == 0.5
    assert scores["AL"] is scores["BLEU"] is None and (scores["Finished"], scores["Sentences"]) == (1, 2)


def test_unknown_sentences_and_long_texts_are_refused() -> None:
    session = Session(CORPUS)
    many = ["x"] * (MAX_TOKENS + 1)
    unknown = [(method, (number, *more)) for number in (-1, 2) for method, *more in (("read",), ("write", ["x"]))]
    for method, arguments in (("result", ()), ("write", (0, many)), *unknown):
        with pytest.raises(Refused):
            getattr(session, method)(*arguments)
    nested = session.nested_result()
    assert nested["Latency"] == {"AL": None, "AP": None, "DAL": None}
    assert nested["Quality"] == {"BLEU": None} and nested["Finished"] == 0


def test_number_of_unknown_sentences_is_limited() -> None:
    strict = Session(CORPUS, strict=True)  # accepts hypotheses of unknown sentences
    with pytest.raises(Refused, match="more sentences than the corpus can have"):
        for number in range(2 * len(CORPUS) + MAX_TOKENS + 1):
            strict.write(number, ["x"])


def test_sentence_bleu_excludes_the_end_token() -> None:
    session = Session(TextCorpus((("a",),), ("A B C D",)))
    assert session.instance(0)["metric"] == {}
    session.write(0, ["A", "B", "C", "D", EOS], wrap=False)
    assert session.instance(0)["metric"]["sentence_bleu"] == pytest.approx(100)


def test_only_the_13a_tokenizer_is_accepted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--tokenizer: BLEU of the shared task uses 13a, got 'intl'"):
        serve_iwslt(tmp_path / "target", tokenizer="intl")


def test_end_mark_of_the_guide_ends_a_sentence() -> None:
    session = Session(CORPUS)
    session.write(1, session.tokens_of(r"eins <\s> more"))
    assert session.sentence(1).tokens == ("eins", EOS) and session.sentence(1).finished


class Guided(Agent):
    """Copy the source; end with the guide's mark once `finish_eval` reports the end of the source."""

    def init_states(self) -> list[dict[str, object]]:
        return []

    def update_states(self, states: list[dict[str, object]], new_state: dict[str, object]) -> list[dict[str, object]]:
        return [*states, new_state]

    def policy(self, states: list[dict[str, object]]) -> dict[str, object]:
        if not states or not self.finish_eval(states, states[-1]):
            return {"key": GET, "value": None}
        return {"key": SEND, "value": r"<\s>"}


def test_agent_ends_a_sentence_with_the_guide_mark() -> None:
    class Service:
        def __init__(self) -> None:
            self.source, self.sent = iter(["one", EOS]), list[str]()

        def get_src(self, number: int, size: object) -> dict[str, object]:
            return {"sent_id": number, "segment_id": 0, "segment": next(self.source)}

        def send_hypo(self, number: int, word: str) -> None:
            self.sent.append(word)

    service = Service()
    Guided()._decode_one(service, 0)  # type: ignore[arg-type]
    assert service.sent == [EOS] and next(service.source, None) is None


# --------------------------------------------------------------------------------------------------------- client


async def answer(request: Request) -> Response:
    if request.url.path.startswith("/away"):
        return RedirectResponse("/")
    if request.method == "POST":
        return Response(b"x" * 6000)
    return json_reply({"given": request.headers.get("Authorization", "")})


def test_client_checks_every_response(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(client, "MAX_REPLY", 5000)
    with serving_app(anything(answer)) as url:
        assert [EvaluationService(url, token=token).corpus_info()["given"] for token in ("", "secret")] == [
            "",
            "Bearer secret",
        ]
        named = EvaluationService(url.replace("//", "//me:secret@"))
        assert named.corpus_info()["given"].startswith("Basic ")
        with pytest.raises(DataError, match="refused a response of more than 5000 bytes"):
            named.new_session()
        with pytest.raises(DataError, match=r"GET http://127\.0\.0\.1:\d+/away/: the server answered 307"):
            EvaluationService(f"{url}/away").corpus_info()
    with pytest.raises(DataError, match="the connection failed"):
        EvaluationService(url).corpus_info()
