"""Logs of speech systems: their emissions, invalid logs, and the text after a replay."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from stand_ins.recorded_logs import emissions, log, problem
from tables import tables_of

from smt.engines.recorded import RecordedConfig, build
from smt.engines.speech_logs import Shown, words_of
from sqa.core import DataError, Question, check_emissions, hypotheses
from sqa.data.datasets import load_questions
from sqa.files import dataset_fingerprint

TABLES = tables_of(__file__)

WORDS_ONE, TIMES = (("a", "b"), ("c", "d")), (1.0, 2.0, 3.0, 4.0)
ONE = Question("one", "test", "es", WORDS_ONE, ("A b c d.",), "Page", TIMES, "talks/one.wav")
TWO = Question("two", "test", "es", (("e", "f"),), ("E f.",), "Page", (0.5, 1.5), "two")
DATA = [ONE, TWO]


def wav(id: object, name: str) -> dict:
    return {"id": id, "metadata": {"wav_name": name}}


def out(id: object, seconds: object, new: object, gone: tuple = ()) -> dict:
    tokens = {"generated_tokens": new, "deleted_tokens": list(gone)}
    return {"id": id, "total_audio_processed": seconds, "computation_time": 0.1, **tokens}


STREAM = [{"model_loading_time": 1.5}, wav(7, "x/one.wav"), out(7, 1.0, ["A"]), out(7, 4.0, ["b", "c"])]
STREAM += [wav(8, "two.wav"), out(8, 2.0, ["E"])]
WHISPER = [{"emission_time": 0.9, "text": " E", "is_final": False}, {"is_final": True, "emission_time": 2}]


def segment(index: int, docid: int, text: str, times: list[float] | None, end: object = 5000.0) -> dict:
    times = {} if times is None else {"emission_cu": times, "time_to_recording_end": end}
    return {"index": index, "docid": docid, "segid": 0, "prediction": text, **times}


SEGMENTS = [segment(0, 0, "A b", [1000.0, 2500.0]), segment(1, 0, "c", [200.0], 2000.0), segment(2, 1, "E", [600.0])]


def speech(name: str, text: str, delays: list) -> dict:
    return {"index": 0, "prediction": text, "delays": delays, "source": [f"{name}.wav", "samplerate: 16000"]}


SIMULEVAL = [speech("one", "A b", [1000.0, 4100]), speech("a/two", "E", [500.0])]
TWICE = [wav(7, "two.wav"), out(7, 2.0, ["E"]), wav(7, "one.wav"), out(7, 0.5, [])]  # an id may occur twice
LATER = Question("three", "test", "es", (("g",),), ("G.",), "Page", (3.5,), "one.wav")  # same recording as ONE
MEANINGS = {
    "simulstream": (DATA, STREAM, "0:A@1 1:b@2+ 1:c@2+ | 0:E@2+"),
    "SimulStreaming": ([TWO], WHISPER, "0:E@1"),
    # the second segment begins 3 s after the first, so "c" is written at 3.2 s
    "OmniSTEval": (DATA, SEGMENTS, "0:A@1 0:b@2 1:c@1 | 0:E@1"),
    "SimulEval": (DATA, SIMULEVAL, "0:A@1 1:b@2+ | 0:E@1"),
    "in another order": (DATA, TWICE, " | 0:E@2+"),
    "two questions of one recording": ([ONE, LATER], STREAM[:4], "0:A@1 1:b@2+ 1:c@2+ | 0:A@0 0:b@1+ 0:c@1+"),
}


@pytest.mark.parametrize("kind", MEANINGS)
def test_parsed_logs_match_expected_emissions(kind: str, tmp_path: Path) -> None:
    data, rows, expected = MEANINGS[kind]
    assert emissions(log(tmp_path, rows), data) == expected


PIECES = TABLES["pieces"]


@pytest.mark.parametrize("kind", PIECES)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_tokens_are_joined_into_complete_words(kind: str, size: int, tmp_path: Path) -> None:
    tokens, words = PIECES[kind]
    chunks = [tokens[i : i + size] for i in range(0, len(tokens), size)]
    rows = [wav(1, "two.wav"), *(out(1, i * 0.25, chunk) for i, chunk in enumerate(chunks))]
    written = emissions(log(tmp_path, rows, pieces=kind), [TWO])
    assert [word.split(":")[1].split("@")[0] for word in written.split()] == words


@pytest.mark.parametrize(("tokens", "kind"), [(["▁a", "b"], "sentencepiece"), (["a@@", "b"], "bpe")])
def test_pieces_are_refused_unless_declared(tokens: list[str], kind: str, tmp_path: Path) -> None:
    rows = [wav(1, "two.wav"), out(1, 0.5, tokens)]
    assert f"set `pieces: {kind}`" in problem(log(tmp_path, rows), [TWO])
    assert emissions(log(tmp_path, rows, pieces="words"), [TWO]) == f"0:{tokens[0]}@1 0:b@1"


def test_letter_does_not_imply_a_byte_vocabulary(tmp_path: Path) -> None:
    words = "The temples of Ġgantija are on this island.".split()
    rows = [wav(1, "two.wav"), out(1, 0.5, words)]
    assert [each[2:-2] for each in emissions(log(tmp_path, rows), [TWO]).split()] == words
    bytes_of = [wav(1, "two.wav"), out(1, 0.5, ["ĠVien", "na", "Ġis", "Ġa"])]
    assert "set `pieces: bytes`" in problem(log(tmp_path, bytes_of), [TWO])


def test_times_and_words_are_in_the_fingerprint(tmp_path: Path) -> None:
    later, other = [*STREAM[:3], out(7, 4.1, ["b", "c"])], [*STREAM[:3], out(7, 4.0, ["b", "d"])]
    assert len({build(log(tmp_path, rows)).fingerprint() for rows in (STREAM[:4], later, other)}) == 3


BEFORE = ":4: retracts 1 words, some of them written before sentence 1 of question one began"
WRONG = TABLES["wrong"]
LATE = {"source_length": 3000.0}
WRONG |= {
    "seconds for milliseconds": (
        [{**SIMULEVAL[0], "delays": [1.0, 4.0], "source_length": 4.0}, SIMULEVAL[1]],
        ":1: the",
    ),
    "after the recording's end": ([{**SIMULEVAL[0], **LATE}, SIMULEVAL[1]], ":1: delays[1] is 4100, past the"),
    "a later segment first": ([SEGMENTS[0], segment(1, 0, "c", [1.0], 6000.0)], ":2: time_to_recording_end is 6000"),
    "segments that overlap": ([SEGMENTS[0] | {"source_length": 4000.0}, *SEGMENTS[1:]], ":2: time_to_recording_end is"),
    "a segment's words before the last": ([SEGMENTS[0], segment(1, 0, "c", [-900.0], 2000.0)], ":2: 'c' is written at"),
    "before the recording": ([segment(0, 0, "A", [-1.0])], ":1: 'A' is written at -0.001 s"),
}
WRONG_WHISPER = {
    "emission_time goes back": ([WHISPER[1], WHISPER[0]], ":2: emission_time is 0.9 after 2"),
    "no time": ([*WHISPER, {"text": "x"}], ":3: "),
    "a misspelt key": ([*WHISPER, {"emission_time": 3, "Text": "x"}], ":3: unknown key 'Text'"),
    "another status": ([{"emission_time": 3, "text": "x", "status": "DONE"}], ":1: "),
}


@pytest.mark.parametrize("what", [*WRONG, *WRONG_WHISPER])
def test_invalid_log_is_refused(what: str, tmp_path: Path) -> None:
    rows, message = (WRONG | WRONG_WHISPER)[what]
    assert message in problem(log(tmp_path, rows), [TWO] if what in WRONG_WHISPER else DATA)


def test_logs_that_do_not_fit_the_questions_are_refused(tmp_path: Path) -> None:
    assert ": expected a file NAME.jsonl for each recording" in problem(RecordedConfig(str(tmp_path)), DATA)
    text = Question("one", "test", "es", (("a",),), ("A.",), "Page")
    assert "question one has no `word_times`" in problem(log(tmp_path, SEGMENTS), [text])


# --------------------------------------------------------------------------------------------------- any log at all


TOKENS = st.lists(st.sampled_from(["▁a", "▁b", "c", "d"]), max_size=4)


@given(st.lists(st.tuples(st.integers(0, 4), TOKENS), max_size=12))
def test_replayed_edits_reproduce_the_final_text(tmp_path_factory, edits) -> None:
    tokens, rows = ["▁a"], [wav(1, "two.wav"), out(1, 0.0, ["▁a"])]
    for i, (deletes, new) in enumerate(edits):
        kept = max(0, len(tokens) - deletes)
        rows.append(out(1, i / 4, new, tuple(tokens[kept:])))
        tokens = [*tokens[:kept], *new]
    translator = build(log(tmp_path_factory.mktemp("log"), rows, pieces="sentencepiece"))
    translator.check([TWO])
    [written] = translator.translate_batch([TWO])
    check_emissions(TWO, written)
    assert hypotheses(TWO, written) == [" ".join("".join(tokens).replace("▁", " ").split())]
    assert any(deletes for deletes, _ in edits) or not any(emission.erase for emission in written)


@given(st.lists(st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4), min_size=1, max_size=8))
def test_each_state_is_shown_completely(states) -> None:
    """After the writes of each state, the visible text consists of exactly the words of this state."""
    seen, after = [], {}
    for wrote in words_of([Shown(float(i), i, words, revised=True) for i, words in enumerate(states)]):
        del seen[len(seen) - wrote.erase :]
        seen += [wrote.token] * bool(wrote.token)
        after[wrote.line] = list(seen)
    for i, words in enumerate(states):
        assert after.get(i, words) == words


# ---------------------------------------------------------------------------------------------------------- questions

RECORD = {"id": "q", "language": "es", "source": "Uno dos. Tres.", "reference": "One two. Three.", "page": "P"}


def questions(folder: Path, **more) -> list[Question]:
    path = folder / "q.jsonl"
    path.write_text(json.dumps({**RECORD, **more}) + "\n", encoding="utf-8")
    return load_questions(str(path))


def test_word_times_change_the_key_but_not_the_source(tmp_path: Path) -> None:
    [question] = questions(tmp_path, word_times=[0.5, 1, 1], recording="talk.wav")
    assert question.sentences == (("Uno", "dos.", "Tres."),) and question.word_times == (0.5, 1.0, 1.0)
    assert question.recording == "talk.wav" and questions(tmp_path, word_times=[0, 0, 0])[0].recording == "q"
    [cut] = questions(tmp_path, source=["Uno dos.", "Tres."], word_times=[0.5, 1, 1])
    assert cut.sentences == (("Uno", "dos."), ("Tres.",))
    timed = [questions(tmp_path, word_times=[1, 2, last]) for last in (3, 4)]
    prints = [dataset_fingerprint(each) for each in (questions(tmp_path), *timed)]
    assert prints[0][:16] == "d3d2cab0faaba6eb" and len(set(prints)) == 3  # the key without times is unchanged


@pytest.mark.parametrize(("more", "message"), TABLES["invalid_times_are_refused"])
def test_invalid_times_are_refused(more: dict, message: str, tmp_path: Path) -> None:
    refused(DataError, rf"record 0\.{message}", questions, tmp_path, **more)
