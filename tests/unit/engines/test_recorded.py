"""Logs of other systems as translators: what they mean, and every way in which they can be wrong."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from stand_ins import recorded_logs
from stand_ins.recorded_logs import log

from smt.engines.instances import write_instances
from smt.engines.recorded import RecordedConfig, build
from sqa.core.errors import DataError, NotComputable
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission, Question
from sqa.data.datasets import load_questions
from sqa.files.store import Store
from sqa.run.config import run_from_mapping
from sqa.run.pipeline import run

FIRST = Question("one", "test", "es", (("a", "b", "c", "d"), ("e", "f")), ("One two.", "Three."), "Page")
SECOND = Question("two", "test", "es", (("g", "h", "i"),), ("Four.",), "Page")
DATA = [FIRST, SECOND]
emissions, problem = (partial(of, questions=DATA) for of in (recorded_logs.emissions, recorded_logs.problem))


def row(index, prediction, delays, **more):
    return {"index": index, "prediction": prediction, "delays": delays, **more}


ROWS = [row(0, "A B C", [1, 4, 4]), row(1, "D", [1]), row(2, "", [])]  # as SimulEval 1.1 has it


def tsv(tmp_path, text, unit="sentence"):
    path = tmp_path / "out.tsv"
    path.write_text(text, encoding="utf-8")
    return RecordedConfig(str(path), "tsv", unit)


# ---------------------------------------------------------------------------------------------------- what logs mean


def test_release_1_1_tells_the_end_with_the_last_word(tmp_path):
    assert emissions(log(tmp_path, ROWS)) == [
        [(0, "A", 1, False), (0, "B", 4, True), (0, "C", 4, True), (1, "D", 1, False)],
        [],
    ]


def test_release_1_0_reads_the_end_like_a_word_and_writes_it_too(tmp_path):
    rows = [
        row(0, "A B C </s>", [1, 4, 5, 5], metric={}, source="a b c d", source_length=4, prediction_length=4),
        row(1, "D </s>", [2, 3], metric={}, source="e f", source_length=2, prediction_length=2),
        row(2, "</s>", [4], metric={}, source="g h i", source_length=3, prediction_length=1),
    ]
    assert emissions(log(tmp_path, rows)) == [
        [(0, "A", 1, False), (0, "B", 4, False), (0, "C", 4, True), (1, "D", 2, False)],
        [],
    ]


def test_questions_as_units_are_cut_at_sentence_ends(tmp_path):
    config = log(tmp_path, [row(0, "A B C D E", [0, 4, 5, 6, 6]), row(1, "F", [3])])
    assert emissions(RecordedConfig(config.file, unit="question")) == [
        [(0, "A", 0, False), (0, "B", 4, False), (1, "C", 1, False), (1, "D", 2, True), (1, "E", 2, True)],
        [(0, "F", 3, True)],
    ]


TABLES = {  # unit, text, emissions
    "by index": (
        "sentence",
        "index\ttoken\tdelay\n0\tA\t1\n0\tB\t5\n1\t\t\n2\tC\t3\r\n",
        [[(0, "A", 1, False), (0, "B", 4, True)], [(0, "C", 3, False)]],
    ),
    "by question and sentence": (
        "sentence",
        "question\tsentence\ttoken\tdelay\none\t0\tA\t1\none\t1\tB\t2\ntwo\t0\tC\t0\n",
        [[(0, "A", 1, False), (1, "B", 2, False)], [(0, "C", 0, False)]],
    ),
    "by question": (
        "question",
        "question\ttoken\tdelay\none\tA\t1\none\tB\t5\none\tC\t7\ntwo\t\t\n",
        [[(0, "A", 1, False), (1, "B", 1, False), (1, "C", 2, True)], []],
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables(tmp_path, kind):
    unit, text, expected = TABLES[kind]
    assert emissions(tsv(tmp_path, text, unit)) == expected


def test_fingerprints_tell_words_delays_units_and_releases_apart(tmp_path):
    variants = [
        ROWS,
        [row(0, "A B X", [1, 4, 4]), *ROWS[1:]],
        [row(0, "A B C", [1, 2, 4]), *ROWS[1:]],
        [{**r, "metric": {}} for r in ROWS],
    ]
    prints = {build(log(tmp_path, rows)).fingerprint() for rows in variants}
    question = build(RecordedConfig(log(tmp_path, ROWS).file, unit="question")).fingerprint()
    assert len(prints | {question}) == 5
    assert build(log(tmp_path, [{**r, "elapsed": [0]} for r in ROWS])).fingerprint() in prints


def test_a_log_runs_through_the_pipeline(tmp_path):
    questions = load_questions("mini-es", limit=2)
    sentences = [sentence for question in questions for sentence in question.sentences]
    rows = [row(i, "x y", [1, len(s)], source=" ".join(s)) for i, s in enumerate(sentences)]
    translator = {"name": "smt.engines.recorded:build", "file": log(tmp_path, rows).file}
    config = {
        "name": "r",
        "dataset": {"name": "mini-es", "limit": 2},
        "translator": translator,
        "metrics": ["al", "dal"],
    }
    result = run(run_from_mapping(config), Store(tmp_path / "runs"), progress=False)
    assert [trace.hypotheses for trace in result.traces] == [["x y"] * len(q.sentences) for q in questions]


# --------------------------------------------------------------------------------------------------- what can be wrong

WRONG_ROWS = {
    "a line too few": (ROWS[:2], ":2: ends after 2 of 3 sentences, two sentence 0 is missing"),
    "nothing at all": ([], ":1: ends after 0 of 3 sentences, one sentence 0 is missing"),
    "a line too many": ([*ROWS, row(3, "E", [1])], ":4: one sentence too many; the data set has 3"),
    "out of order": ([ROWS[1], ROWS[0], ROWS[2]], ":1: expected index 0 here, got index 1"),
    "twice": ([ROWS[0], ROWS[0], *ROWS[1:]], ":2: expected index 1 here, got index 0"),
    "past the source": (
        [row(0, "A B", [1, 5]), *ROWS[1:]],
        ":1: delay 5 of word 1 is past the source: one sentence 0 has 4",
    ),
    "past the end": ([row(0, "A", [6], metric={}), *ROWS[1:]], ":1: delay 6 of word 0 is past the source"),
    "falling": ([ROWS[0], row(1, "D E", [2, 1])], ":2: delays[1] is 1 after 2; delays never fall"),
    "negative": ([row(0, "A", [-1])], ":1: delays[0] must be a whole number of source words >= 0, got -1"),
    "fractions": ([row(0, "A", [1.5])], ":1: delays[0] must be a whole number"),
    "seconds": ([row(0, "A", [1000.0])], ":1: delays[0] must be a whole number"),
    "truth": ([row(0, "A", [True])], ":1: delays[0] must be a whole number"),
    "text for a delay": ([row(0, "A", ["1"])], ":1: delays[0] must be a whole number"),
    "a delay too few": ([row(0, "A B", [1])], ":1: 2 words but 1 delays"),
    "a wrong length": (
        [row(0, "A B", [1, 1], prediction_length=3)],
        ":1: prediction_length is 3, but there are 2 words",
    ),
    "another sentence": (
        [row(0, "A", [1], source="a b x d"), *ROWS[1:]],
        ":1: the source differs from one sentence 0: word 2 is 'x', expected 'c'",
    ),
    "half a sentence": (
        [row(0, "A", [1], source="a b"), *ROWS[1:]],
        ":1: the source differs from one sentence 0: word 2",
    ),
    "more than a sentence": ([row(0, "A", [1], source="a b c d e"), *ROWS[1:]], "word 4 is 'e', expected ''"),
    "another length": (
        [row(0, "A", [1], source_length=5), *ROWS[1:]],
        ":1: source_length is 5, but one sentence 0 has 4",
    ),
    "speech": (
        [row(0, "A", [1000.0], source=["a.wav"])],
        ":1: the source is speech, its times are those of a recording, but question one has no `word_times`",
    ),
    "a source of numbers": ([row(0, "A", [1], source=7)], ':1: expected a text "source", got int'),
    "no index": ([{"prediction": "A", "delays": [1]}], ':1: expected a whole number "index"'),
    "a word after the end": ([row(0, "A </s> B", [1, 2, 3])], ":1: word 1 is </s>, but more words follow"),
    "a list": ([[1, 2]], ":1: expected a JSON object, got list"),
}


@pytest.mark.parametrize("what", WRONG_ROWS)
def test_a_wrong_log(tmp_path, what):
    rows, expected = WRONG_ROWS[what]
    assert expected in problem(log(tmp_path, rows))


WHOLE = "".join(json.dumps(r) + "\n" for r in ROWS).encode()
BYTES = {
    "cut off in a line": (WHOLE[:-9], ":3: not JSON"),
    "not UTF-8": ('{"index": 0, "prediction": "señal", "delays": [1]}\n'.encode("latin-1"), ":1: not UTF-8"),
    "nested without end": (b"[" * 100_000, ":1: lists and objects lie more than 100 deep in one another"),
}


@pytest.mark.parametrize("what", BYTES)
def test_damaged_bytes(tmp_path, what):
    content, expected = BYTES[what]
    config = log(tmp_path, [])
    Path(config.file).write_bytes(content)
    assert expected in problem(config)


def test_a_byte_order_mark_and_blank_lines_at_the_end_are_ignored(tmp_path):
    config = log(tmp_path, ROWS)
    Path(config.file).write_bytes(b"\xef\xbb\xbf" + WHOLE + b"\n\n")
    assert len(emissions(config)[0]) == 4


def test_a_missing_file(tmp_path):
    assert "cannot be read: No such file" in problem(RecordedConfig(str(tmp_path / "none.log")))
    assert "cannot be read" in problem(RecordedConfig(str(tmp_path / "none.tsv"), "tsv"))


INDEXED = "index\ttoken\tdelay\n"
WRONG_TSV = {
    "empty": ("", ":1: expected the tab-separated header index token delay"),
    "no header": ("0\tA\t1\n", ":1: expected the tab-separated header"),
    "the header of another unit": (
        "question\ttoken\tdelay\none\tA\t1\n",
        "(unit: sentence), got 'question token delay'",
    ),
    "a column too few": (INDEXED + "0\tA\n", ":2: expected 3 tab-separated columns, got 2"),
    "two words": (INDEXED + "0\tA B\t1\n", ":2: a token is one word without blanks, got 'A B'"),
    "no word but a delay": (INDEXED + "0\t\t1\n", ":2: a token is one word without blanks, got ''"),
    "a word without delay": (INDEXED + "0\tA\t\n", ":2: delay must be a whole number >= 0, got ''"),
    "a float": (INDEXED + "0\tA\t1.0\n", ":2: delay must be a whole number >= 0, got '1.0'"),
    "a delay of many digits": (INDEXED + "0\tA\t" + "9" * 5000 + "\n", ":2: delay must be a whole number"),
    "other digits": (INDEXED + "0\tA\t²\n", ":2: delay must be a whole number"),
    "an index in letters": (INDEXED + "a\tA\t1\n", ":2: index must be a whole number >= 0, got 'a'"),
    "falling": (INDEXED + "0\tA\t2\n0\tB\t1\n", ":3: delay is 1 after 2; delays never fall"),
    "past the source": (INDEXED + "0\tA\t2\n0\tB\t6\n1\t\t\n2\t\t\n", ":3: delay 6 of word 1 is past the source"),
    "silence and words": (
        INDEXED + "0\tA\t2\n0\t\t\n",
        ":3: an empty token stands for nothing written, but index 0 has",
    ),
    "a unit left out": (INDEXED + "0\tA\t2\n2\tA\t2\n", ":3: expected index 1 here, got index 2"),
    "a unit in two places": (INDEXED + "0\tA\t2\n1\tA\t2\n0\tA\t2\n", ":4: expected index 2 here, got index 0"),
    "units missing": (INDEXED + "0\tA\t2\n0\tB\t2\n", ":3: ends after 1 of 3 sentences, one sentence 1 is missing"),
    "a unit too many": (INDEXED + "0\t\t\n1\t\t\n2\t\t\n3\t\t\n", ":5: one sentence too many; the data set has 3"),
    "cut off": (INDEXED + "0\tA\t2\n1\tA\t1", ":3: the last line has no line end; is the file cut off?"),
}


@pytest.mark.parametrize("what", WRONG_TSV)
def test_a_wrong_tsv(tmp_path, what):
    text, expected = WRONG_TSV[what]
    assert expected in problem(tsv(tmp_path, text))


def test_a_tsv_of_unknown_questions(tmp_path):
    text = "question\ttoken\tdelay\none\tA\t1\nthree\tA\t1\n"
    assert ":3: expected question 'two' here, got question 'three'" in problem(tsv(tmp_path, text, "question"))
    text = "question\tsentence\ttoken\tdelay\none\t0\tA\t1\none\t2\tA\t1\n"
    assert ":3: expected question 'one' sentence 1 here, got question 'one' sentence 2" in problem(tsv(tmp_path, text))


def test_questions_that_were_not_checked(tmp_path):
    with pytest.raises(DataError, match="not yet compared with the data set of question one"):
        build(log(tmp_path, ROWS)).translate_batch(DATA)


@given(st.binary(max_size=200), st.sampled_from(["simuleval", "tsv"]))
def test_any_bytes_give_one_line(tmp_path_factory, data, format):
    path = tmp_path_factory.mktemp("bytes") / "log"
    path.write_bytes(data)
    problem(RecordedConfig(str(path), format))


# --------------------------------------------------------------------------------------------------------- exporting


def trace(question, *rows):
    return QuestionTrace(question, tuple(Emission(*r) for r in rows))


TRACES = [
    trace(FIRST, (0, "A", 1, False), (0, "B", 4, True), (1, "C", 1, False), (1, "D", 2, True)),
    trace(SECOND, (0, "E", 2, False)),
]


@pytest.mark.parametrize("unit", ["sentence", "question"])
def test_an_exported_run_reads_back(tmp_path, unit):
    path = write_instances(TRACES, tmp_path, unit)
    back = emissions(RecordedConfig(str(path), unit=unit))
    questionwide = [(0, "B", 4, False) if unit == "question" else (0, "B", 4, True)]
    assert back == [[(0, "A", 1, False), *questionwide, (1, "C", 1, False), (1, "D", 2, True)], [(0, "E", 2, False)]]
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert first["prediction_length"] == len(first["delays"]) == len(first["elapsed"])
    assert (tmp_path / "config.yaml").read_text() == "source_type: text\ntarget_type: text\n"


def test_references_of_exported_sentences(tmp_path):
    uneven = Question("u", "test", "es", (("a", "b", "c"), ("d",)), ("One two three four.",), "Page")
    rows = write_instances([*TRACES, trace(uneven)], tmp_path).read_text(encoding="utf-8").splitlines()
    references = [json.loads(line)["reference"] for line in rows]
    assert references == ["One two.", "Three.", "Four.", "One two three", "four."]


def test_retractions_cannot_be_exported(tmp_path):
    revised = trace(SECOND, (0, "E", 2, False), (0, "F", 2, False, 1))
    refused(NotComputable, "two retracts words", write_instances, [revised], tmp_path)


# ------------------------------------------------------------------------------------------------------- a real log


@pytest.mark.mirror
def test_a_real_log_of_speech_is_refused():
    path = Path(os.environ["SQA_MIRROR"], "simul", "mustc-en-de", "instances.log")
    assert ":1: the source is speech" in problem(RecordedConfig(str(path)))


@pytest.mark.mirror
def test_a_real_log_of_release_1_0_with_words_for_milliseconds(tmp_path):
    """2,580 real predictions and delay profiles: a text source of as many words as there are distinct delays."""
    path = Path(os.environ["SQA_MIRROR"], "simul", "mustc-en-de", "instances.log")
    rows, questions, ends = [], [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        given = json.loads(line)
        moments = sorted({*given["delays"], given["source_length"]})
        delays = [moments.index(delay) + 1 for delay in given["delays"]]
        words = tuple(f"w{i}" for i in range(len(moments)))
        source = {"source": " ".join(words), "source_length": len(words)}
        rows.append({**given, **source, "delays": [*delays[:-1], len(words) + 1]})
        questions.append(Question(f"q{len(rows)}", "test", "de", (words,), ("x",), "Page"))
        ends.append(given["prediction"].split()[:-1])
    batch = emissions(log(tmp_path, rows), questions=questions)
    assert [[token for _, token, _, _ in written] for written in batch] == ends
    assert [[g for _, _, g, _ in written] for written in batch] == [r["delays"][:-1] for r in rows]


def test_a_limit_takes_the_beginning_of_a_whole_log(tmp_path):
    """A log of the whole data set is as good as one of the limited part; one of neither is refused as before."""
    questions = load_questions("mini-es")
    sentences = [sentence for question in questions for sentence in question.sentences]

    def of(n: int) -> str:
        file = tmp_path / f"{n}.log"
        rows = [row(i, "word", [1], source=" ".join(sentence)) for i, sentence in enumerate(sentences[:n])]
        file.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
        return str(file)

    def written(file: str) -> int:
        translator = {"name": "recorded", "file": file}
        config = {"name": "x", "dataset": {"name": "mini-es", "limit": 2}, "translator": translator}
        return len(run(run_from_mapping(config), Store(tmp_path / "store"), progress=False).traces)

    two = sum(len(question.sentences) for question in questions[:2])
    third = two + len(questions[2].sentences)
    assert written(of(two)) == written(of(third)) == written(of(len(sentences))) == 2
    refused(DataError, f"one sentence too many; the data set has {two}", written, of(third - 1))
