"""`sqa latency --segments` prints the numbers of `omnisteval longform` 0.1.10, for each definition of computing time.

    omnisteval longform --speech_segmentation segments.yaml --ref_sentences_file references.txt \\
        --hypothesis_file recordings.log --word_level --no_quality --output_folder out   # ACCUMULATED
    ... --fix_simuleval_emission_ca                                                      # INCREMENT
"""

from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused

from sqa.core import ConfigError, DataError
from sqa.metrics.latency_log import LogOptions, score

FOLDER = Path(__file__).parent / "vectors" / "segments"
LOG = str(FOLDER / "recordings.log")
SEGMENTS = LogOptions("omnisteval", segments=FOLDER / "segments.yaml", references=FOLDER / "references.txt")
needs_omnisteval = pytest.mark.needs("omnisteval")
IDEAL = {"LongYAAL": 1272.8968, "AL": 1144.4881, "LAAL": 1285.7579, "AP": 0.8077, "DAL": 1489.4896}
ACCUMULATED = {"LongYAAL": 1448.7897, "AL": 1294.7619, "LAAL": 1436.0317, "AP": 0.8688, "DAL": 1666.0075}
INCREMENT = {"LongYAAL": 1310.3968, "AL": 1181.9881, "LAAL": 1323.2579, "AP": 0.8192, "DAL": 1526.9896}


@needs_omnisteval
@pytest.mark.parametrize(
    ("computing", "aware", "printed"),
    [("increment", False, IDEAL), ("increment", True, INCREMENT), ("accumulated", True, ACCUMULATED)],
)
def test_latencies_of_segments_equal_omnisteval(computing, aware, printed):
    scored = score(LOG, replace(SEGMENTS, computation_aware=aware, computing=computing))
    suffix = "_CA" if aware else ""
    means = {name: mean for name, (mean, *_) in scored.means().items()}
    assert {name: round(means[name + suffix], 4) for name in printed} == printed
    assert scored.signature == "omnisteval-0.1.10|segments:soft" + f"|ca:{computing}" * aware


@needs_omnisteval
def test_missing_recording_is_an_error(tmp_path):
    log = tmp_path / "one.log"
    log.write_text(Path(LOG).read_text("utf-8").splitlines()[0], encoding="utf-8")
    refused(
        DataError,
        "OmniSTEval cannot segment it by .*segments.yaml, .*: Number of hypotheses",
        score,
        str(log),
        SEGMENTS,
    )


@needs_omnisteval
def test_log_of_simulstream_names_its_command(tmp_path):
    log = tmp_path / "simulstream.jsonl"
    log.write_text('{"id": 0, "metadata": {"wav_name": "one.wav"}}\n')
    refused(
        DataError, "only SimulEval's logs of speech: .*; docs/latency.md names the commands", score, str(log), SEGMENTS
    )


def test_segments_need_references():
    refused(ConfigError, "--segments: give --references", score, LOG, replace(SEGMENTS, references=None))
