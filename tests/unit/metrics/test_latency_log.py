"""`sqa latency` prints the latencies of the sentences of a log and names errors in the log by line."""

import io
import json
import math
from contextlib import nullcontext

import pytest
from refusals import refused
from tables import tables_of

from sqa.core import ConfigError, DataError
from sqa.metrics import latency_log
from sqa.metrics.latency_log import LogOptions, convention_named, main, score

TABLES = tables_of(__file__)


def log(folder, *rows):
    path = folder / "instances.log"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


def row(delays, source, length=None, **more):
    return {"delays": delays, "source_length": source, "reference_length": length} | more


def test_counted_sentence_end_is_added_to_a_log(tmp_path):
    """The published guide's wait-3 example: AL 3, AP .795918, DAL 3 with seven delays on seven source units."""
    added = log(tmp_path, row([3, 4, 5, 6, 7, 7], 6, prediction="Alice and Bob are good friends."))
    [values] = score(added, LogOptions("iwslt-2020-final")).rows()
    assert values == pytest.approx({"index": 0, "AL": 3.0, "AP": 0.795918, "DAL": 3.0}, rel=1e-6)
    ended = log(tmp_path, row([3, 4, 5, 6, 7, 7, 7], 6, prediction="Alice and Bob are good friends. </s>"))
    assert list(score(ended, LogOptions("iwslt-2020-final")).rows()) == [values]
    raw = log(tmp_path, row([3, 4, 5, 6, 7, 7, 7], 7))
    assert list(score(raw, LogOptions("iwslt-2020-final", end="log")).rows()) == [values]


def test_delays_of_characters_need_their_unit(tmp_path):
    path = log(tmp_path, row([1] * 5, 4, reference="多瑙河长。", prediction="多瑙河长。"))
    refused(DataError, "5 delays for a prediction of as many characters.*--unit char", score, path, LogOptions())
    assert len(list(score(path, LogOptions(unit="char")).rows())) == 1


def test_reference_and_unit_options_apply(tmp_path):
    path = log(tmp_path, row([1, 2], 4, reference="a b c d"), row([1], 2, reference="e f"))
    by_words, by_characters, without = (
        list(score(path, options).rows())
        for options in (LogOptions(), LogOptions(unit="char"), LogOptions(use_reference=False))
    )
    assert by_characters[0]["AP"] == pytest.approx(3 / (4 * 7))
    bare = log(tmp_path, row([1, 2], 4), row([1], 2))
    (tmp_path / "ref.txt").write_text("a b c d\ne f\n")
    assert list(score(bare, LogOptions(references=tmp_path / "ref.txt")).rows()) == by_words
    assert list(score(bare, LogOptions()).rows()) == without
    (tmp_path / "ref.txt").write_text("a\n")
    refused(DataError, "1 lines for 2", score, bare, LogOptions(references=tmp_path / "ref.txt"))
    assert list(score(log(tmp_path, row([1, 2], 4, 4), row([1], 2, 2)), LogOptions()).rows()) == by_words
    blank = log(tmp_path, row([1, 2], 4, reference="a b"), row([1], 2, reference=" "))
    refused(DataError, ":2: no reference_length or reference, although", score, blank, LogOptions(unit="char"))


def test_omnisteval_strips_blanks_of_a_reference(tmp_path):
    paths = log(tmp_path, *(spoken([500, 1500, 3000], 3000, None, reference=text) for text in (" a b c ", "a b c")))
    blanks, stripped = (row["AL"] for row in score(paths, LogOptions("omnisteval")).rows())
    assert blanks == stripped
    blanks, stripped = (row["AL"] for row in score(paths, LogOptions("simuleval-1.1")).rows())
    assert blanks > stripped


def test_messages_about_segments_name_the_log(tmp_path, capsys, monkeypatch):
    cut = log(tmp_path, row([2, 1], 3, 2))
    monkeypatch.setattr(latency_log, "resegmented", lambda path, options: nullcontext(cut))
    main("my.log", LogOptions(segments=tmp_path), as_json=False)
    assert capsys.readouterr().err.startswith("sqa: segments of my.log:1: 1 of 1 lines are odd")


def test_undefined_latencies_are_counted(tmp_path, capsys):
    path = log(tmp_path, row([], 3, 2), row([3, 3], 3, 2), row([1, 2], 3, 2))
    scored = score(path, LogOptions("omnisteval"))
    values = list(scored.rows())
    assert values[0]["AL"] is None and values[1]["YAAL"] is None and values[2]["YAAL"] is not None
    assert scored.means()["YAAL"][1:] == (1, 2)
    main(log(tmp_path, row([], 3, 2)), LogOptions(), as_json=False)
    assert "AL\tn/a\t0\t1\tsimuleval-1.1" in capsys.readouterr().out
    assert math.isnan(score(log(tmp_path, row([], 3, 2)), LogOptions("omnisteval")).whole["SWF"])


def test_degeneracy_equals_omnisteval(tmp_path):
    """The expected values are those recorded for the case 'long_jump'."""
    path = log(tmp_path, row([1, 1, 1, 1, 1, 20, 20, 20, 20, 20], 20, 10))
    assert score(path, LogOptions("omnisteval")).whole == pytest.approx({"SWF": 50, "EFSW": 115, "DSPTV": 65})


def test_stdin_is_read_and_json_is_written(monkeypatch, capsys):
    text = b'{"source_length": 6, "reference_length": 6, "delays": [3, 4, 5, 6, 6, 6]}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    main("-", LogOptions(), as_json=True)
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line)["LAAL"] == pytest.approx(3.0)


def spoken(delays, source, length=None, **more):
    return row(delays, source, length) | {"source": ["a.wav", "samplerate: 16000 Hz"]} | more


def test_computing_time_is_optional(tmp_path):
    """ATD keeps the chunks of the delays and adds the computing time of each word."""
    path = log(tmp_path, spoken([1000.0, 2000.0], 2000.0, 2, elapsed=[1100.0, 2300.0]))
    scored = score(path, LogOptions(computation_aware=True))
    [values] = scored.rows()
    assert scored.signature == "simuleval-1.1|ca:accumulated"
    assert values["AL_CA"] == pytest.approx((1100 + 2300 - 1000) / 2)
    assert values["ATD_CA"] == pytest.approx(1200.0)


@pytest.mark.parametrize("rows,message", TABLES["invalid_lines_are_refused"])
def test_invalid_lines_are_refused(tmp_path, rows, message):
    refused(DataError, r"instances\.log" + message, score, log(tmp_path, *rows), LogOptions())


ODD = [  # a line, and the reason why it is odd
    (row([3, 2, 4, 1, 6], 6, prediction_length=5), r"delays[1]: 2 after 3: delays decrease"),
    (row([1, 7], 6, prediction_length=2), r"delays[1]: 7 of 6 words: after the end"),
    (row([1, 2.5], 6, prediction_length=2), r"delays[1]: 2.5 is not a whole number of words"),
    (row([1, 2], 6, prediction_length=5), r"prediction_length is 5, but there are 2 delays"),
]


@pytest.mark.parametrize("line,reason", ODD, ids=[reason for _, reason in ODD])
def test_odd_lines_are_marked_or_refused(tmp_path, capsys, line, reason):
    good = row([1, 2], 6, prediction_length=2)
    path = log(tmp_path, good, line, good)
    scored = score(path, LogOptions(source="text"))
    assert scored.odd == {2: reason} and not any(math.isnan(values[1]) for values in scored.values.values())
    assert [row.get("odd") for row in scored.rows()] == [None, reason, None]
    main(path, LogOptions(source="text"), as_json=True)
    captured = capsys.readouterr()
    assert json.loads(captured.out.splitlines()[1])["odd"] == reason
    assert f"instances.log:2: 1 of 3 lines are odd, the first: {reason}" in captured.err
    refused(
        DataError, r"instances\.log:2: .*; --strict refuses it", score, path, LogOptions(source="text", strict=True)
    )


def test_plain_lines_are_not_marked(tmp_path):
    """Delays at a counted sentence end, and OmniSTEval's delays after the end of a segment, are not odd."""
    end = row([1, 4], 3, prediction="a </s>", prediction_length=1)
    assert not score(log(tmp_path, end), LogOptions("simuleval-1.0.2", strict=True)).odd
    assert not score(log(tmp_path, spoken([0.5, 3000.5], 3000.5)), LogOptions(strict=True)).odd
    long = spoken([0.5, 4000.5], 3000.5, time_to_recording_end=4000.0)
    assert not score(log(tmp_path, long), LogOptions("omnisteval", strict=True)).odd


ODD_SPEECH = TABLES["odd_speech"]


@pytest.mark.parametrize("line,reason", ODD_SPEECH, ids=[reason for _, reason in ODD_SPEECH])
def test_strict_refuses_odd_lines_of_speech(tmp_path, line, reason):
    good = {**line, "delays": [300, 400]} | {key: [300, 400] for key in ("elapsed",) if key in line}
    good |= {key: 2 for key in ("prediction_length",) if key in line}
    path = log(tmp_path, good, line)
    assert score(path, LogOptions()).odd == {2: reason}
    assert f":2: {reason}; --strict" in str(refused(DataError, "", score, path, LogOptions(strict=True)))


@pytest.mark.parametrize("end,value", [(2000, 2500 / 3), (None, 4000 / 3), (400, None)])
def test_long_yaal_ends_with_the_recording(tmp_path, end, value):
    """As in OmniSTEval 0.1.10, words written at or after the end of the recording do not count."""
    path = log(tmp_path, spoken([500, 1500, 3000], 400 if end == 400 else 1000, 3, time_to_recording_end=end))
    [values] = score(path, LogOptions("omnisteval")).rows()
    assert values["LongYAAL"] == (None if value is None else pytest.approx(value))


def test_segments_of_omnisteval_are_read(tmp_path):
    """A word may be written before its segment begins, and a segment without words has no times."""
    segment = {"index": 0, "docid": 0, "segid": 0, "prediction": "a b", "reference": "a b", "source_length": 1000}
    timed = {"emission_cu": [-200, 500], "emission_ca": [-100, 700], "time_to_recording_end": 3000}
    path = log(tmp_path, segment | timed, segment | {"index": 1, "prediction": ""})
    values, none = score(path, LogOptions("omnisteval")).rows()
    assert values["LongYAAL"] == pytest.approx((-200 + 500 - 500) / 2) and none["LongYAAL"] is None
    scored = score(path, LogOptions("omnisteval", computation_aware=True))
    [values, _] = scored.rows()
    assert scored.signature == "omnisteval-0.1.10|ca:logged"
    assert values["LongYAAL_CA"] == pytest.approx((-100 + 700 - 500) / 2)


def test_conventions_match_by_prefix():
    assert convention_named("omni").name == "omnisteval-0.1.10"
    refused(ConfigError, "--convention: expected one of .*, got 'iwslt-2020'", convention_named, "iwslt-2020")
