"""Logs of systems that listen: every way in which they can be wrong, and what replaying them must give."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from stand_ins.recorded_logs import emissions, log, problem

from smt.engines.recorded import RecordedConfig, build
from smt.engines.speech_logs import Shown, words_of
from sqa.core.errors import DataError
from sqa.core.trace import check_emissions, hypotheses
from sqa.core.types import Emission, Question
from sqa.data.datasets import load_questions
from sqa.files.store import dataset_fingerprint

ONE = Question(
    "one", "test", "es", (("a", "b"), ("c", "d")), ("A b c d.",), "Page", (1.0, 2.0, 3.0, 4.0), "talks/one.wav"
)
TWO = Question("two", "test", "es", (("e", "f"),), ("E f.",), "Page", (0.5, 1.5), "two")
DATA = [ONE, TWO]


def wav(id: object, name: str) -> dict:
    return {"id": id, "metadata": {"wav_name": name}}


def out(id: object, seconds: object, new: object, gone: object = (), computing: object = 0.1) -> dict:
    tokens = {"generated_tokens": new, "deleted_tokens": list(gone) if isinstance(gone, tuple) else gone}
    return {"id": id, "total_audio_processed": seconds, "computation_time": computing, **tokens}


STREAM = [{"model_loading_time": 1.5}, wav(7, "x/one.wav"), out(7, 1.0, ["A"]), out(7, 4.0, ["b", "c"])]
STREAM += [wav(8, "two.wav"), out(8, 2.0, ["E"])]
WHISPER = [{"emission_time": 0.9, "text": " E", "is_final": False}, {"is_final": True, "emission_time": 2}]


def segment(index: int, docid: int, text: str, times: list[float] | None, end: object = 5000.0, **more) -> dict:
    times = {} if times is None else {"emission_cu": times, "time_to_recording_end": end}
    return {"index": index, "docid": docid, "segid": 0, "prediction": text, **times, **more}


SEGMENTS = [segment(0, 0, "A b", [1000.0, 2500.0]), segment(1, 0, "c", [200.0], 2000.0), segment(2, 1, "E", [600.0])]


def speech(name: str, text: str, delays: list) -> dict:
    return {"index": 0, "prediction": text, "delays": delays, "source": [f"{name}.wav", "samplerate: 16000"]}


SIMULEVAL = [speech("one", "A b", [1000.0, 4100]), speech("a/two", "E", [500.0])]


# ---------------------------------------------------------------------------------------------------- what logs mean


MEANINGS = {
    "simulstream": (
        STREAM,
        [[(0, "A", 1, False), (1, "b", 2, True), (1, "c", 2, True)], [(0, "E", 2, True)]],
    ),
    "SimulStreaming": (WHISPER, [[(0, "E", 1, False)]]),
    "OmniSTEval": (  # the second segment begins 3 s after the first, so "c" is written at 3.2 s
        SEGMENTS,
        [[(0, "A", 1, False), (0, "b", 2, False), (1, "c", 1, False)], [(0, "E", 1, False)]],
    ),
    "SimulEval": (SIMULEVAL, [[(0, "A", 1, False), (1, "b", 2, True)], [(0, "E", 1, False)]]),
}


@pytest.mark.parametrize("program", MEANINGS)
def test_logs_of_each_program(program: str, tmp_path: Path) -> None:
    rows, expected = MEANINGS[program]
    assert emissions(log(tmp_path, rows), DATA if len(expected) > 1 else [TWO]) == expected


def test_recordings_are_identified_by_name_in_any_order_and_ids_come_again(tmp_path: Path) -> None:
    rows = [wav(7, "two.wav"), out(7, 2.0, ["E"]), wav(7, "one.wav"), out(7, 0.5, [])]
    assert emissions(log(tmp_path, rows), DATA) == [[], [(0, "E", 2, True)]]


def test_two_questions_may_be_heard_in_one_recording(tmp_path: Path) -> None:
    later = Question("three", "test", "es", (("g",),), ("G.",), "Page", (3.5,), "one.wav")
    assert emissions(log(tmp_path, STREAM[:4]), [ONE, later])[1] == [
        (0, "A", 0, False),
        (0, "b", 1, True),
        (0, "c", 1, True),
    ]


def test_a_table_is_seen_from_its_header(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    path.write_text("index\ttoken\tdelay\n0\tA\t1\n1\t\t\n2\t\t\n", encoding="utf-8")
    assert emissions(RecordedConfig(str(path)), DATA) == [[(0, "A", 1, False)], []]


PIECES = {
    "pieces": (["▁Vien", "na", "▁<0xC3>", "<0xA9>", "t", "é"], ["Vienna", "été"]),
    "bytes": (["ĠVien", "na", "ĠÃ", "©", "t", "Ã©"], ["Vienna", "été"]),
    "words": (["Vienna", "été"], ["Vienna", "été"]),
}


@pytest.mark.parametrize("kind", PIECES)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_tokens_are_joined_and_words_written_when_whole(kind: str, size: int, tmp_path: Path) -> None:
    tokens, words = PIECES[kind]
    chunks = [tokens[i : i + size] for i in range(0, len(tokens), size)]
    rows = [wav(1, "two.wav"), *(out(1, i * 0.25, chunk) for i, chunk in enumerate(chunks))]
    [written] = emissions(log(tmp_path, rows), [TWO])
    assert [token for _, token, *_ in written] == words


# --------------------------------------------------------------------------------------------------- what can be wrong

WRONG = {
    "no program's": ([{"a": 1, "b": 2}], ":1: not a log of a supported program: expected SimulEval's (pre"),
    "an empty object": ([{}], "(emission_time), OmniSTEval's (docid, segid, emission_cu) or a table"),
    "truncated": ([*STREAM[:3], '{"id": 7, "total_au'], ":4: not JSON"),
    "another program's line": ([*STREAM, WHISPER[0]], ':7: expected simulstream\'s "id" with'),
    "NaN": ([*STREAM[:2], json.dumps(out(7, math.nan, []))], ":3: not JSON: NaN is no number"),
    "infinite": ([*STREAM[:2], json.dumps(out(7, 1.0, [])).replace("1.0", "1e999")], ":3: not JSON: 1e999 is no"),
    "huge": ([*STREAM[:2], out(7, 1e8, [])], ":3: total_audio_processed must be a number of seconds, 0 to 1e+07"),
    "of many digits": ([*STREAM[:2], out(7, 10**30, [])], ":3: the whole number 1000000000000000000000000000000 has"),
    "negative": ([*STREAM[:2], out(7, -1, [])], ":3: total_audio_processed must be a number of seconds, 0 to"),
    "truth": ([*STREAM[:2], out(7, True, [])], ":3: total_audio_processed must be"),
    "a time in letters": ([*STREAM[:2], out(7, "1", [])], ":3: total_audio_processed must be"),
    "time goes back": ([*STREAM[:4], out(7, 3.9, [])], ":5: total_audio_processed is 3.9 after 4; time"),
    "a text of tokens": ([*STREAM[:2], out(7, 1, "A")], ':3: expected a list of texts as "generated_tokens"'),
    "numbers for tokens": ([*STREAM[:2], out(7, 1, [], [3])], ':3: expected a list of texts as "deleted_tokens"'),
    "a count of deletes": ([*STREAM[:2], out(7, 1, [], -1)], ':3: expected a list of texts as "deleted_tok'),
    "no deletes": (
        [*STREAM[:2], {"id": 7, "total_audio_processed": 1, "computation_time": 0, "generated_tokens": []}],
        ':3: expected a list of texts as "deleted_tokens", got nothing',
    ),
    "more deleted than there is": (
        [*STREAM[:3], out(7, 2, [], ("A", "b"))],
        ":4: deleted_tokens ['A', 'b'] are not the last ones written",
    ),
    "something else deleted": ([*STREAM[:3], out(7, 2, [], ("B",))], ":4: deleted_tokens ['B'] are not the last"),
    "no metadata": ([out(7, 1, ["A"])], ':1: id 7 has no line with "metadata" before; is the log cut off?'),
    "an id that is a list": ([wav([7], "one.wav")], ':1: expected a whole number or a text as "id", got [7]'),
    "no wav": ([{"id": 7, "metadata": {"wav": "one.wav"}}], ':1: expected "metadata" with a file as "wav_name"'),
    "twice": ([*STREAM, wav(9, "one.wav")], ":7: the recording 'one' appears twice (line 2)"),
    "cut off after metadata": ([*STREAM[:5]], ":5: the recording 'two' has no other line; is the log cut off?"),
    "one recording too few": (STREAM[:4], ": the recording 'two' of question two is missing; the log has 'one'"),
    "one too many": ([*STREAM, wav(9, "three.wav"), out(9, 1, [])], ":7: the recording 'three' belongs to no question"),
    "words of another sentence taken back": (
        [*STREAM[:3], out(7, 4, ["c"], ("A",)), *STREAM[4:]],
        ":4: retracts 1 words, some of them written before sentence 1 of question one began",
    ),
    "SimulStreaming's of one recording": (WHISPER, ":1: the log of one recording, but the data set has 2"),
    "segments out of order": ([SEGMENTS[1]], ":1: index 1 where 0 is due"),
    "a segment twice": ([SEGMENTS[0], SEGMENTS[0]], ":2: index 0 where 1 is due"),
    "recordings out of order": ([SEGMENTS[0], segment(1, 2, "E", [1])], ":2: docid 2 where 1 is due"),
    "too many recordings": ([*SEGMENTS, segment(3, 2, "X", [1])], ":4: docid 2, but the data set has"),
    "a segment without times": ([segment(0, 0, "A b", None)], ":1: 2 words but 0 emission_cu; each word needs one"),
    "a segment without end": ([segment(0, 0, "A", [1.0], None)], ":1: time_to_recording_end must be a number"),
    "segments that fall": ([segment(0, 0, "A b", [9, 8])], ":1: emission_cu[1] is 8 after 9; time"),
    "a first segment without words": (
        [segment(0, 0, "", None), segment(1, 0, "A", [1])],
        ":2: the first segment of its recording has no words",
    ),
    "SimulEval's twice": ([SIMULEVAL[0], SIMULEVAL[0]], ":2: the recording 'one' appears twice (line 1)"),
    "SimulEval's that falls": ([speech("one", "A b", [5, 4])], ":1: delays[1] is 4 after 5; time"),
    "SimulEval's of letters": ([speech("one", "A", ["5"])], ":1: delays[0] must be a number of milliseconds"),
    "text after speech": (
        [SIMULEVAL[0], {"prediction": "A", "delays": [1], "source": "a b"}],
        ":2: expected a list as \"source\", the recording's file first, got 'a b'",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_log(what: str, tmp_path: Path) -> None:
    rows, message = WRONG[what]
    assert message in problem(log(tmp_path, rows), DATA)


WRONG_WHISPER = {
    "time goes back": ([WHISPER[1], WHISPER[0]], ":2: emission_time is 0.9 after 2; time never goes back, one"),
    "no time": ([*WHISPER, {"text": "x"}], ":3: emission_time must be a number of seconds, 0 to 1e+07, got nothing"),
    "a misspelt key": ([*WHISPER, {"emission_time": 3, "Text": "x"}], ":3: unknown key 'Text', did you mean 'text'"),
    "no text": ([{"emission_time": 3, "text": None}], ':1: expected a text as "text", got None'),
    "another status": ([{"emission_time": 3, "text": "x", "status": "DONE"}], ":1: expected COMPLETE or INCOMPLETE"),
}


@pytest.mark.parametrize("what", WRONG_WHISPER)
def test_a_wrong_log_of_simulstreaming(what: str, tmp_path: Path) -> None:
    rows, message = WRONG_WHISPER[what]
    assert message in problem(log(tmp_path, rows), [TWO])


def test_a_folder_without_logs(tmp_path: Path) -> None:
    assert ": expected a file NAME.jsonl for each recording" in problem(RecordedConfig(str(tmp_path)), DATA)


@pytest.mark.parametrize("rows", [STREAM, SEGMENTS, SIMULEVAL])
def test_questions_of_text_cannot_be_heard(rows: list, tmp_path: Path) -> None:
    text = Question("one", "test", "es", (("a",),), ("A.",), "Page")
    assert "question one has no `word_times`: the second at" in problem(log(tmp_path, rows), [text])


# --------------------------------------------------------------------------------------------------- any log at all


TOKENS = st.lists(st.sampled_from(["▁a", "▁b", "c", "d"]), max_size=4)


@given(st.lists(st.tuples(st.integers(0, 4), TOKENS), max_size=12))
def test_replaying_deletes_and_inserts_gives_the_final_text(tmp_path_factory, edits) -> None:
    tokens, rows = [], [wav(1, "two.wav"), out(1, 0.0, ["▁a"])]
    tokens.append("▁a")
    for i, (deletes, new) in enumerate(edits):
        gone = tokens[len(tokens) - min(deletes, len(tokens)) :]
        rows.append(out(1, i / 4, new, tuple(gone)))
        tokens = [*tokens[: len(tokens) - len(gone)], *new]
    config = log(tmp_path_factory.mktemp("log"), rows)
    translator = build(config)
    translator.check([TWO])
    [written] = translator.translate_batch([TWO])
    check_emissions(TWO, written)
    assert hypotheses(TWO, written) == [" ".join("".join(tokens).replace("▁", " ").split())]
    if not any(deletes for deletes, _ in edits):
        assert not any(emission.erase for emission in written)


@given(st.lists(st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4), min_size=1, max_size=8))
def test_each_state_is_shown_whole(states) -> None:
    """Revised states are what the reader sees after their writes, word for word."""
    shown = [Shown(float(i), i, words, revised=True) for i, words in enumerate(states)]
    seen: list[str] = []
    after: dict[int, list[str]] = {}
    for wrote in words_of(shown):
        del seen[len(seen) - wrote.erase :]
        seen += [wrote.token] * bool(wrote.token)
        after[wrote.line] = list(seen)
    for i, words in enumerate(states):
        assert after.get(i, words) == words


@given(st.binary(max_size=200))
def test_any_bytes_after_a_good_line_give_one_line(tmp_path_factory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "log"
    path.write_bytes(json.dumps(STREAM[0]).encode() + b"\n" + data)
    assert problem(RecordedConfig(str(path)), DATA)


# ---------------------------------------------------------------------------------------------------------- questions

RECORD = {"id": "q", "language": "es", "source": "Uno dos. Tres.", "reference": "One two. Three.", "page": "P"}


def questions(folder: Path, **more) -> list[Question]:
    path = folder / "q.jsonl"
    path.write_text(json.dumps({**RECORD, **more}) + "\n", encoding="utf-8")
    return load_questions(str(path))


def test_a_source_with_times_is_not_cut(tmp_path: Path) -> None:
    [question] = questions(tmp_path, word_times=[0.5, 1, 1], recording="talk.wav")
    assert question.sentences == (("Uno", "dos.", "Tres."),) and question.word_times == (0.5, 1.0, 1.0)
    assert question.recording == "talk.wav" and questions(tmp_path, word_times=[0, 0, 0])[0].recording == "q"
    [cut] = questions(tmp_path, source=["Uno dos.", "Tres."], word_times=[0.5, 1, 1])
    assert cut.sentences == (("Uno", "dos."), ("Tres.",))


def test_times_are_in_the_store_keys_and_text_has_those_of_before(tmp_path: Path) -> None:
    timed = [questions(tmp_path, word_times=[1, 2, last]) for last in (3, 4)]
    prints = [dataset_fingerprint(each) for each in (questions(tmp_path), *timed)]
    assert prints[0][:16] == "1197024740555072" and len(set(prints)) == 3  # text: as before there were times


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"word_times": [1, 2]}, ".word_times: expected 3 seconds, one for each word, got 2"),
        ({"word_times": "1"}, ".word_times: expected 3 seconds, one for each word, got '1'"),
        ({"word_times": [1, 3, 2]}, ".word_times[2]: expected seconds, 3 (no word ends before the one"),
        ({"word_times": [-1, 3, 2]}, ".word_times[0]: expected seconds, 0 (no word"),
        ({"word_times": [1, True, 2]}, ".word_times[1]: expected seconds, 1 (no word"),
        ({"word_times": [1, 2, 1e9]}, ".word_times[2]: expected seconds, 2 (no word"),
        ({"word_times": [1, 2, 3], "recording": 5}, ".recording: expected the name of a file, got 5"),
        ({"recording": "a.wav"}, ".word_times: expected 3 seconds, one for each word, got None"),
    ],
)
def test_wrong_times(more: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="record 0") as caught:
        questions(tmp_path, **more)
    assert message in str(caught.value)


def test_emissions_are_typed(tmp_path: Path) -> None:
    translator = build(log(tmp_path, STREAM))
    refused(DataError, "not yet compared with the data set of question one", translator.translate_batch, DATA)
    translator.check(DATA)
    assert all(isinstance(e, Emission) for row in translator.translate_batch(DATA) for e in row)
