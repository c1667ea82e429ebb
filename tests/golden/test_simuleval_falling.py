"""Scorers of SimulEval 1.1 and this project give equal latencies for decreasing delays and with computing time."""

import json
import random
import warnings

import pytest
from needs import require

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # importing the package gives warnings
    require("simul")
    from simuleval.evaluator.instance import LogInstance, TextToTextInstance
    from simuleval.evaluator.scorers.latency_scorer import LATENCY_SCORERS_DICT

from sqa.metrics.latency_log import LogOptions, score

NAMES = ("AL", "LAAL", "AP", "DAL", "StartOffset", "EndOffset", "NumChunks", "RTF")


def lines(count: int, speech: bool) -> list[dict]:
    """Return `count` lines of a log: a fixed example, then random delays in any order, some after the source's end."""
    rng = random.Random(17)
    results = [{"index": 0, "delays": [3, 2, 4, 1, 6], "source_length": 6, "reference": "a b c d e"}]
    while len(results) < count:
        size = rng.randint(1, 12)
        delays = [rng.randint(0, size + rng.choice((0, 0, 3))) for _ in range(rng.randint(1, 14))]
        reference = " ".join("w" * rng.randint(1, 10))
        results.append({"index": len(results), "delays": delays, "source_length": size, "reference": reference})
    if speech:
        for line in results:
            line["delays"] = [delay * 170.5 for delay in line["delays"]]
            line["source_length"] *= 170.5
            line["source"] = ["a.wav"]
    return results


@pytest.fixture
def log(tmp_path):
    def written(rows):
        path = tmp_path / "instances.log"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return written


@pytest.mark.parametrize("speech", [False, True], ids=["text", "speech"])
def test_simuleval_scorers_agree(log, speech):
    rows = lines(300, speech)
    scored = score(log(rows), LogOptions())
    assert sum("decrease" in message for message in scored.odd.values()) > 150
    for index, (row, values) in enumerate(zip(rows, scored.rows(), strict=True)):
        instance = LogInstance(json.dumps(row))
        for name in NAMES:
            wanted = LATENCY_SCORERS_DICT[name]().compute(instance)
            assert values[name] == pytest.approx(wanted, rel=1e-9, abs=1e-9), (index, name, row)
        source = instance
        if not speech:  # the command treats every log as speech
            source = TextToTextInstance.__new__(TextToTextInstance)
            source.delays = row["delays"]
        wanted = LATENCY_SCORERS_DICT["ATD"]()({0: source})
        assert values["ATD"] == pytest.approx(wanted, rel=1e-9, abs=1e-9), (index, row)


@pytest.mark.parametrize("shape", ["rising", "falling", "unmeasured"])
def test_computation_aware_values_equal_simuleval(log, shape):
    rng = random.Random(f"23 {shape}")
    rows = lines(200, speech=True)
    for row in rows:
        spent = 0.0
        row["delays"] = row["delays"] if shape == "falling" else sorted(row["delays"])
        row["elapsed"] = []
        for delay in row["delays"]:
            spent += rng.choice((0, 1.5, 80.25, 700))
            row["elapsed"].append(0 if shape == "unmeasured" else delay + spent)
    scored = score(log(rows), LogOptions(computation_aware=True))
    for row, values in zip(rows, scored.rows(), strict=True):
        instance = LogInstance(json.dumps(row))
        for name in NAMES:
            wanted = LATENCY_SCORERS_DICT[name](computation_aware=True).compute(instance)
            assert values[f"{name}_CA"] == pytest.approx(wanted, rel=1e-9, abs=1e-9), (name, row)
        wanted = LATENCY_SCORERS_DICT["ATD"](computation_aware=True)({0: instance})
        assert values["ATD_CA"] == pytest.approx(wanted, rel=1e-9, abs=1e-9), row


def test_example_has_hand_computed_values(log):
    [values] = score(log(lines(1, speech=False)), LogOptions()).rows()
    assert values["AL"] == pytest.approx(0.8) and values["odd"] == "delays[1]: 2 after 3: delays decrease"
