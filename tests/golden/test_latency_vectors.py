"""Latencies equal those of the public scorers, run unmodified on the same delays.

Each vector names its scorer and commit (vectors/latency.json, "provenance"). SimulEval 1.1 and OmniSTEval use float64.
SimulEval 1.0.2 and both scorers of IWSLT 2020 use torch float32, which has seven digits.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from needs import reason
from tables import tables_of

from sqa.metrics.delays import pack
from sqa.metrics.latency import CONVENTIONS, FORMULAS, OMNISTEVAL_0_1_10, SIMULEVAL_1_0_2

TABLES = tables_of(__file__)

VECTORS = json.loads((Path(__file__).parent / "vectors" / "latency.json").read_text())
RUNS = [(f"{case['id']}-{i}", run) for case in VECTORS["cases"] for i, run in enumerate(case["runs"])]
DIGITS = TABLES["digits"]


def packed(runs):
    """Pack the delays of runs that all have a reference length or all have none."""
    references = [run["reference_length"] for run in runs]
    return pack(
        [run["delays"] for run in runs],
        [run["source_length"] for run in runs],
        None if None in references else references,
        speech=any(run.get("speech", False) for run in runs),
    )


@pytest.mark.parametrize("run", [run for _, run in RUNS], ids=[name for name, _ in RUNS])
def test_latency_of_one_sentence_equals_the_scorers(run):
    convention = CONVENTIONS[run["convention"]]
    for formula, expected in run["values"].items():
        [value] = FORMULAS[formula](packed([run]), convention)
        expected = np.nan if expected is None else expected
        assert value == pytest.approx(expected, rel=DIGITS[convention.name], abs=1e-9, nan_ok=True), formula


@pytest.mark.parametrize("name,referenced", sorted({(r["convention"], bool(r["reference_length"])) for _, r in RUNS}))
def test_batched_and_single_latencies_are_equal(name, referenced):
    runs = [r for _, r in RUNS if (r["convention"], bool(r["reference_length"])) == (name, referenced)]
    runs = [r for r in runs if not r.get("speech", False)]
    for formula in runs[0]["values"]:
        together = FORMULAS[formula](packed(runs), CONVENTIONS[name])
        alone = np.concatenate([FORMULAS[formula](packed([run]), CONVENTIONS[name]) for run in runs])
        assert together == pytest.approx(alone, rel=1e-14, nan_ok=True)


# -------------------------------------------------------- published scores of 2,580 outputs of a simultaneous system
# pe-trik/OmniSTEval @b275fac, MuST-C en-de tst-COMMON: SimulEval 1.0.2's instances.log and OmniSTEval's scores.tsv


@pytest.fixture(scope="module")
def mustc():
    folder = Path(os.environ.get("SQA_MIRROR", ""), "simul", "mustc-en-de")
    if not folder.is_dir():
        pytest.skip(reason("SQA_MIRROR"))
    log = [json.loads(line) for line in (folder / "instances.log").read_text().splitlines()]
    return log, (folder / "references.txt").read_text().splitlines()


@pytest.mark.parametrize("formula", ["al", "ap", "dal"])
def test_mustc_sentences_equal_the_log_of_simuleval_102(mustc, formula):
    log, _ = mustc
    references = [row["reference_length"] + 1 for row in log]  # this release counts the end-of-sentence token
    delays = pack([row["delays"] for row in log], [row["source_length"] for row in log], references)
    published = [row["metric"]["latency"][formula.upper()] for row in log]
    assert FORMULAS[formula](delays, SIMULEVAL_1_0_2) == pytest.approx(published, rel=1e-5, abs=1e-3)


def test_mustc_corpus_equals_published_omnisteval(mustc):
    log, references = mustc
    lengths = [len(references[row["index"]].split()) for row in log]
    delays = pack([row["delays"] for row in log], [row["source_length"] for row in log], lengths)
    means = {
        name: float(np.nanmean(FORMULAS[name](delays, OMNISTEVAL_0_1_10)))
        for name in ("al", "laal", "yaal", "ap", "dal")
    }
    published = {"al": 1803.9192, "laal": 1857.7128, "yaal": 1135.6097, "ap": 0.7948, "dal": 3532.4812}
    assert means == pytest.approx(published, abs=5e-5)
