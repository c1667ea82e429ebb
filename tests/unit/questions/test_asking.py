"""When questions are answered: logs, runs and texts, the search, outcomes, measures."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused

from smt.engines.speech_logs import read as recordings
from sqa.core import ROOT, ConfigError, DataError
from sqa.metrics.latency_log import LogOptions
from sqa.questions import measures
from sqa.questions.ask import ask, bisected
from sqa.questions.make import make, rule_maker
from sqa.questions.rules import Rules
from sqa.questions.texts import Segment, Translated, translated
from sqa.report.curves import draw_answered

REFERENCES = ["In 1830 Bolívar left London.", "He had three thousand men."]
SOURCES = ["En 1830 Bolívar dejó Londres .", "Tenía tres mil hombres ."]
QUESTIONS = make(rule_maker("es-en", REFERENCES, ["name", "number"]), REFERENCES, SOURCES, "es-en", 3)
READER = Rules("en")
EXAMPLE = ROOT / "docs" / "example"


def log(path: Path, *rows: tuple[str, list[float]], **more) -> str:
    lines = [
        {"index": n, "prediction": text, "delays": delays, "source": source, "source_length": len(source.split())}
        | more
        for n, ((text, delays), source) in enumerate(zip(rows, SOURCES, strict=True))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def answered(path: str, **options):
    asked = ask(translated(path, LogOptions(**options), recordings), QUESTIONS, READER)
    return {a.question.answers[0]: a for answers in asked.answers for a in answers}


def test_answers_have_source_words_and_lags(tmp_path):
    rows = ("Bolívar left London in 1830 </s>", [4, 5, 6, 6, 6, 6]), ("He had three thousand men", [2, 2, 3, 4, 5])
    found = answered(log(tmp_path / "a.log", *rows))
    assert {answer: (a.outcome, a.word, a.lag) for answer, a in found.items()} == {
        "1830": ("answered", 6, 4),
        "Bolívar": ("answered", 4, 1),
        "London": ("answered", 6, 1),
        "three thousand": ("answered", 4, 1),  # at 3 words the answer was three
    }


def test_answer_must_stay_right(tmp_path):
    rows = ("London", [5]), ("He had three thousand thousand men", [2, 2, 3, 3, 5, 5])
    found = answered(log(tmp_path / "a.log", *rows))
    assert found["three thousand"].outcome == "never" and found["three thousand"].word is None


def test_guesses_and_copies_are_no_answers(tmp_path):
    rows = ("1830 London", [1, 2]), ("Tenía tres mil hombres 3000", [1, 2, 3, 4, 5])
    found = answered(log(tmp_path / "a.log", *rows), references=lines(tmp_path, REFERENCES))
    outcomes = {answer: a.outcome for answer, a in found.items()}
    assert outcomes == {"1830": "answered", "London": "early", "Bolívar": "never", "three thousand": "copied"}


def lines(folder: Path, texts: list[str], name: str = "texts.txt") -> Path:
    (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return folder / name


def test_speech_is_measured_in_seconds(tmp_path):
    rows = ("In 1830", [1000.0, 2500.0]), ("He had three thousand men", [2000.0] * 5)
    path = log(tmp_path / "a.log", *rows, source=["/a.wav"], source_length=3000.0)
    found = answered(path)
    heard = 3 * len("En 1830 ") / len(SOURCES[0] + " ")
    assert (
        found["1830"].lag == pytest.approx(2.5 - heard, abs=1e-4) and found["1830"].record("seconds")["second"] == 2.5
    )
    assert found["1830"].word is None  # the log has no transcript
    assert answered(path, sources=lines(tmp_path, SOURCES))["1830"].word == 4


def test_simulstream_log_is_read_with_segments(tmp_path):
    pytest.importorskip("omnisteval")
    output = [("In 1830 Bolívar left Paris.", "", 2.0), ("London.", "Paris.", 3.0), ("He had three", "", 4.0)]
    rows = [{"id": 0, "metadata": {"wav_name": "a.wav"}}]
    for new, gone, time in [*output, ("thousand men.", "", 6.0)]:
        tokens = {"generated_tokens": new.split(), "deleted_tokens": gone.split()}
        rows.append({"id": 0, "total_audio_processed": time, "computation_time": 0.1, **tokens})
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    refused(DataError, "whole recordings; give their --segments", answered, str(path))
    cut = lines(tmp_path, [f"- {{wav: a.wav, offset: {n}.0, duration: 3.0}}" for n in (0, 3)], "cut.yaml")
    texts = {"segments": cut, "references": lines(tmp_path, REFERENCES)}
    assert translated(str(path), LogOptions(**texts), recordings).segments[0].text(9) == REFERENCES[0]
    found = answered(str(path), **texts)
    assert {answer: round(a.at or 0, 3) for answer, a in found.items()} == {
        "1830": 2.0,
        "Bolívar": 2.0,
        "London": 3.0,
        "three thousand": 3.0,  # six seconds, three of them in this segment
    }


def test_plain_text_has_no_times(tmp_path):
    texts = lines(tmp_path, ["There Bolívar left Paris in 1830.", "He had 3,000 men."])
    asked = ask(
        translated(str(texts), LogOptions(references=lines(tmp_path, REFERENCES, "r.txt")), recordings),
        QUESTIONS,
        READER,
    )
    rows = {(row["kind"], row.metric): row.value for row in measures.frame([asked], QUESTIONS, "rules", 10).rows}
    assert rows == {("all", "answered"): 0.75, ("all", "invented"): 0.25} | {
        ("name", "answered"): 0.5,
        ("number", "answered"): 1.0,
    }


def test_other_texts_are_refused(tmp_path):
    path = log(tmp_path / "a.log", ("x", [1]), ("y", [1]), reference="Another reference.")
    refused(DataError, "a.log:1: the questions are of another reference", answered, path)
    refused(DataError, "1 segments, but the questions are of 2", answered, str(lines(tmp_path, ["one"])))
    refused(DataError, ":1: not JSON: .*; expected JSON lines", answered, str(lines(tmp_path, ["{one"])))


# ------------------------------------------------------------------------------------------------------ the search


def searched(right: list[bool]) -> tuple[int | None, list[int]]:
    search, asked = bisected(len(right)), []
    try:
        moment = next(search)
        while True:
            asked.append(moment)
            moment = search.send(right[moment])
    except StopIteration as end:
        return end.value, asked


def test_bisection_finds_the_first_right_moment():
    for first in range(64):
        found, asked = searched([False] * first + [True] * (64 - first))
        assert found == first and len(asked) == len(set(asked)) <= 1 + 6 + 2
    assert searched([False] * 9) == (None, [8]) and searched([]) == (None, [])


def test_bisection_moves_behind_a_later_wrong_answer():
    found, asked = searched([n >= 16 and n not in range(45, 50) for n in range(64)])
    assert found == 50 and len(asked) == len(set(asked)) < 20


# -------------------------------------------------------------------------------------------------------- measures


def system(name: str, *rows: tuple[str, list[float]]) -> Translated:
    segments = [
        Segment(f"{name}:{n}", tuple(text.split()), tuple(reads), float(len(source.split())), tuple(source.split()))
        for n, ((text, reads), source) in enumerate(zip(rows, SOURCES, strict=True))
    ]
    return Translated(name, [replace(s, reference=r) for s, r in zip(segments, REFERENCES, strict=True)], "words")


GOOD = system("good", ("1830 Bolívar London", [2, 3, 5]), ("three thousand men", [3, 3, 4]))
LATE = system("late", ("1830 Bolívar London", [4, 5, 6]), ("three men", [3, 4]))
LISTED = system("listed", ("1830, Bolívar, London, Paris, Rome.", [6] * 5), ("and Anna, Peter, Rome.", [5] * 4))


def values(*systems: Translated) -> list[dict[tuple[str, str], float]]:
    asked = [ask(each, QUESTIONS, READER) for each in systems]
    frame = measures.frame(asked, QUESTIONS, "rules", 10)
    return [{(r["kind"], r.metric): r.value for r in frame.where(system=each.name)} for each in systems]


def test_measures_equal_hand_computed_values():
    good, late, listed = values(GOOD, LATE, LISTED)
    assert (good["all", "answered"], good["all", "lag"], good["all", "early"]) == (1.0, 0.0, 0.0)
    assert (late["all", "answered"], late["all", "lag"]) == (0.75, (2 + 2 + 1) / 3)
    assert (late["all", "answered@0"], late["all", "answered@1"], late["all", "answered@2"]) == (0.0, 0.25, 0.75)
    assert (late["number", "answered"], late["name", "answered"]) == (0.5, 1.0)
    assert (good["all", "estimated"], good["all", "invented"], listed["all", "invented"]) == (0, 0, 5 / 8)


def test_compared_systems_are_paired_by_segment():
    asked = [ask(each, QUESTIONS, READER) for each in (GOOD, LATE)]
    rows = {(row[2], row[3]): row for row in measures.differences(asked, 100).rows}
    assert rows["all", "answered"][4] == 0.25 and rows["all", "lag"][4] == -5 / 3 and rows["all", "lag"][8] == 2
    assert rows["all", "answered"][7] == 1.0  # a single segment differs
    refused(ConfigError, "--compare: give two or more logs", measures.differences, asked[:1], 100)


def test_signature_names_questions_and_reader():
    [row, *_] = measures.frame([ask(GOOD, QUESTIONS, READER)], QUESTIONS, "rules", 10).rows
    assert row.signature == f"questions:{QUESTIONS.digest}|reader:rules|right:stable|early:1|version:1"
    fewer = make(rule_maker("es-en", REFERENCES, ["name"]), REFERENCES, SOURCES, "es-en", 3)
    assert fewer.digest != QUESTIONS.digest


def test_picture_shows_a_curve_for_each_system(tmp_path):
    pytest.importorskip("matplotlib")
    asked = [ask(each, QUESTIONS, READER) for each in (GOOD, LATE)]
    assert [round(point.value, 2) for point in measures.curve(asked[1], [0, 1, 2, 3])] == [0, 0.25, 0.75, 0.75]
    paths = draw_answered(asked, tmp_path / "answered.png")
    assert sorted(path.name for path in paths) == ["answered.pdf", "answered.png"] and paths[0].stat().st_size > 1000
    refused(
        ConfigError,
        "--plot: needs logs",
        draw_answered,
        [replace(asked[0], system=replace(GOOD, unit=""))],
        tmp_path / "x.png",
    )


def test_the_bundled_article_gives_the_numbers_of_the_page():
    texts = [(EXAMPLE / f"voyage.{code}.txt").read_text("utf-8").splitlines() for code in ("en", "es")]
    questions = make(rule_maker("es-en", texts[0]), *texts, "es-en", 3)
    logs = [str(EXAMPLE / f"voyage_{name}.log") for name in ("wait2", "phrase3")]
    asked = [ask(translated(log, LogOptions(), recordings), questions, READER) for log in logs]
    answered = [row for row in measures.frame(asked, questions, "rules", 200).rows if row.metric == "answered"]
    assert [(f"{r.value:.0%}", r.n) for r in answered if r["kind"] == "all"] == [("54%", 71), ("87%", 71)]
    compared = {row[2:4]: row[7] for row in measures.differences(asked, 1000).rows}
    assert [f"{compared['all', measure]:.3f}" for measure in ("answered", "lag")] == ["0.001", "0.237"]
