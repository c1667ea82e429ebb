"""Existing text as a translator: valid and invalid logs of other systems, and text revealed at a fixed pace."""

import json
from dataclasses import replace
from functools import partial

import pytest
from refusals import refused
from stand_ins import recorded_logs
from stand_ins.recorded_logs import log
from tables import tables_of

from smt.engines import fixed
from smt.engines.fixed import FixedConfig
from smt.engines.recorded import RecordedConfig, build
from sqa.core import DataError, Emission, NotComputable, Question, QuestionTrace
from sqa.pipeline.export import write_instances

TABLES = tables_of(__file__)

FIRST = Question("one", "test", "es", (("a", "b", "c", "d"), ("e", "f")), ("One two.", "Three."), "Page")
SECOND = Question("two", "test", "es", (("g", "h", "i"),), ("Four.",), "Page")
DATA = [FIRST, SECOND]
emissions, problem = (partial(of, questions=DATA) for of in (recorded_logs.emissions, recorded_logs.problem))


def row(index, prediction, delays, **more):
    return {"index": index, "prediction": prediction, "delays": delays, **more}


MEANINGS = TABLES["meanings"]  # unit, objects of a log, expected emissions
ROWS = MEANINGS["release 1.1: the end comes with the last word"][1]
QUESTIONWIDE = MEANINGS["questions, cut at sentence ends"][1]


def recorded(tmp_path, content, unit="sentence"):
    """Write `content`, the objects of a log, to a file and return its config."""
    return RecordedConfig(log(tmp_path, content).file, unit=unit)


@pytest.mark.parametrize("kind", MEANINGS)
def test_parsed_logs_match_expected_emissions(tmp_path, kind):
    unit, content, expected = MEANINGS[kind]
    assert emissions(recorded(tmp_path, content, unit)) == expected


def test_fingerprint_covers_words_delays_and_units(tmp_path):
    other_word, other_delay = [row(0, "A B X", [1, 4, 4]), *ROWS[1:]], [row(0, "A B C", [1, 2, 4]), *ROWS[1:]]
    variants = [ROWS, other_word, other_delay, [{**r, "metric": {}} for r in ROWS]]
    prints = {build(log(tmp_path, rows)).fingerprint() for rows in variants}
    question = build(RecordedConfig(log(tmp_path, ROWS).file, unit="question")).fingerprint()
    assert len(prints | {question}) == 5
    assert build(log(tmp_path, [{**r, "elapsed": [0]} for r in ROWS])).fingerprint() in prints


PIECES = {
    "sentencepiece": row(0, "▁A ▁B b ▁C", [1, 1, 4, 4]),
    "bpe": row(0, "A B@@ b C", [1, 1, 4, 4]),
    None: row(0, "A Bb C", [1, 1, 4, 4], prediction_spm=["▁A", "▁B", "b", "▁C"]),
}


@pytest.mark.parametrize("kind", PIECES)
def test_declared_pieces_of_words_are_joined(tmp_path, kind):
    rows = [PIECES[kind], *ROWS[1:]]
    assert emissions(log(tmp_path, rows, pieces=kind)) == "0:A@1 0:Bb@4+ 0:C@4+ 1:D@1 | "
    if kind:
        assert f"set `pieces: {kind}`" in problem(log(tmp_path, rows))


WRONG = TABLES["wrong"]


@pytest.mark.parametrize("what", WRONG)
def test_invalid_log_is_refused(tmp_path, what):
    content, expected = WRONG[what]
    assert expected in problem(recorded(tmp_path, content))


def test_other_units_are_refused(tmp_path):
    assert "set `unit: question`" in problem(log(tmp_path, QUESTIONWIDE))


# --------------------------------------------------------------------------------------------------------- exporting


def trace(question, *rows):
    return QuestionTrace(question, tuple(Emission(*r) for r in rows))


TRACES = [
    trace(FIRST, (0, "A", 1, False), (0, "B", 4, True), (1, "C", 1, False), (1, "D", 2, True)),
    trace(SECOND, (0, "E", 2, False)),
]


@pytest.mark.parametrize("unit", ["sentence", "question"])
def test_exported_run_can_be_read_back(tmp_path, unit):
    path = write_instances(TRACES, tmp_path, unit)
    ended = "+" if unit == "sentence" else ""
    assert emissions(RecordedConfig(str(path), unit=unit)) == f"0:A@1 0:B@4{ended} 1:C@1 1:D@2+ | 0:E@2"
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert first["prediction_length"] == len(first["delays"]) == len(first["elapsed"])
    assert (tmp_path / "config.yaml").read_text() == "source_type: text\ntarget_type: text\n"


def test_export_has_references_and_refuses_retractions(tmp_path):
    uneven = Question("u", "test", "es", (("a", "b", "c"), ("d",)), ("One two three four.",), "Page")
    rows = write_instances([*TRACES, trace(uneven)], tmp_path).read_text(encoding="utf-8").splitlines()
    references = [json.loads(line)["reference"] for line in rows]
    assert references == ["One two.", "Three.", "Four.", "One two three", "four."]
    revised = trace(SECOND, (0, "E", 2, False), (0, "F", 2, False, 1))
    refused(NotComputable, "two retracts words", write_instances, [revised], tmp_path)


UNEVEN = replace(FIRST, id="uneven", reference=("One two three.",))
THREE = replace(FIRST, reference=("One two three.", "Four."))
DIAGONAL = FixedConfig(reveal="diagonal")
SOURCE = FixedConfig(text="source", reveal="diagonal")  # shows each source word when it is read
shown = partial(recorded_logs.emissions, build=fixed.build)


@pytest.mark.parametrize(
    ("config", "question", "expected"),
    [
        (FixedConfig(), FIRST, "0:One@4+ 0:two.@4+ 1:Three.@2+"),
        (DIAGONAL, FIRST, "0:One@2 0:two.@4 1:Three.@2"),
        (FixedConfig(), UNEVEN, "0:One@4+ 0:two@4+ 1:three.@2+"),
        (DIAGONAL, UNEVEN, "0:One@2 0:two@4 1:three.@2"),
        (DIAGONAL, THREE, "0:One@2 0:two@3 0:three.@4 1:Four.@2"),
        (SOURCE, UNEVEN, "0:a@1 0:b@2 0:c@3 0:d@4 1:e@1 1:f@2"),
    ],
)
def test_reveal_sets_when_words_appear(config, question, expected):
    assert shown(config, [question]) == expected


def test_text_files_are_read_or_refused(tmp_path):
    path = tmp_path / "out.txt"
    config = FixedConfig(str(path))
    refused(DataError, "or a file that exists", fixed.build, config)
    path.write_text("x y\n\nz\nw\n", encoding="utf-8")
    assert shown(config, [FIRST, UNEVEN]) == "0:x@4+ 0:y@4+ | 0:z@4+ 1:w@2+"
    path.write_text("x\ny\nz\n", encoding="utf-8")
    refused(DataError, "3 lines, expected 4", shown, config, [FIRST, UNEVEN])
    path.write_bytes("señal\n".encode("latin-1"))
    refused(DataError, "not UTF-8", fixed.build, config)
