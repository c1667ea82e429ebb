"""Logs written by simulstream, SimulStreaming and OmniSTEval, read by this project.

A script of commit 12c84463 recorded them.
"""

import json
from pathlib import Path

import pytest

import sqa
from smt.engines.recorded import RecordedConfig, build
from smt.engines.speech_logs import read
from sqa.core import ROOT, Emission, check_emissions, hypotheses
from sqa.data.datasets import load_questions

VECTORS = Path(__file__).parent / "vectors" / "speech"
EXAMPLE = ROOT / "docs" / "example"
QUESTIONS = load_questions(str(EXAMPLE / "heard.jsonl"))
LOGS = ["simulstream.append.jsonl", "simulstream.jsonl", "omnisteval.jsonl"]
LOGS += ["simulstreaming.whisper", "simulstreaming.translated"]


def pieces(log: str) -> dict[str, str]:
    """Return the option that simulstream's logs need."""
    return {"pieces": "sentencepiece"} if log.startswith("simulstream.") else {}


def place(file: str | Path) -> Path:
    """Return the path of a file in the vectors or in docs/example, where two of the files serve as an example."""
    return next(folder / file for folder in (VECTORS, EXAMPLE) if (folder / file).exists())


def emissions(log: str) -> list[list[Emission]]:
    """Return the emissions of all questions from a log (a file, or a folder in the case of SimulStreaming)."""
    translator = build(RecordedConfig(str(place(log)), **pieces(log)))
    translator.check(QUESTIONS)
    batch = translator.translate_batch(QUESTIONS)
    for question, written in zip(QUESTIONS, batch, strict=True):
        check_emissions(question, written)
    return batch


def expected(log: str) -> dict[str, dict]:
    """Return the recorded output of simulstream's own reader for its log."""
    return json.loads((VECTORS / log.replace(".jsonl", ".expected.json")).read_text(encoding="utf-8"))


def test_words_and_delays_equal_simulstreams_reader() -> None:
    log = "simulstream.append.jsonl"
    results = {recording.name: recording.wrote for recording in read(place(log), "sentencepiece")}
    assert {name: [word.seconds for word in wrote] for name, wrote in results.items()} == {
        name: output["delays"] for name, output in expected(log).items()
    }
    assert {name: " ".join(word.token for word in wrote) for name, wrote in results.items()} == {
        name: output["text"] for name, output in expected(log).items()
    }


@pytest.mark.parametrize("log", LOGS[:3])
def test_final_texts_equal_simulstreams_reader(log: str) -> None:
    texts = [" ".join(hypotheses(q, e)) for q, e in zip(QUESTIONS, emissions(log), strict=True)]
    assert texts == [output["text"] for output in expected(log.replace("omnisteval", "simulstream.append")).values()]


def test_deleted_words_are_retracted() -> None:
    first = emissions("simulstream.jsonl")[0]
    written = [("This", 2, 0), ("perhaps", 2, 0), ("river", 5, 1), ("rises", 5, 0)]
    assert [(e.token, e.g, e.erase) for e in first[:4]] == written
    assert sum(e.erase for e in first) > 5


def test_segmented_log_equals_the_whole_log() -> None:
    assert emissions("omnisteval.jsonl") == emissions("simulstream.append.jsonl")


def test_words_of_simulstreaming_are_written_whole() -> None:
    whisper, translated = emissions("simulstreaming.whisper")[0], emissions("simulstreaming.translated")[0]
    assert [(e.token, e.g) for e in whisper[:5]] == [("This", 2), ("river", 6), ("rises", 6), ("in", 6), ("the", 6)]
    assert [(e.token, e.g) for e in translated[:3]] == [("This", 6), ("river", 6), ("rises", 6)]
    words = "This river rises in the Black Forest and passes through Vienna. Name this river that perhaps"
    assert [e.token for e in translated] == words.split()  # COMPLETE lines repeat INCOMPLETE ones
    assert whisper[-1].ended and not whisper[0].ended


@pytest.mark.parametrize("log", LOGS)
def test_run_on_a_log_gives_expected_wins(log: str, tmp_path: Path) -> None:
    config = {
        "name": "heard",
        "dataset": {"name": str(EXAMPLE / "heard.jsonl")},
        "translator": {"name": "recorded", "file": str(place(log)), **pieces(log)},
        "guesser": "bm25",
        "buzzer": {"name": "mlp"},
    }
    result = sqa.run(config, runs=tmp_path, progress=False)
    assert 0 <= float(result.metrics["ew"]) <= float(result.metrics["oracle-ew"]) <= 1
