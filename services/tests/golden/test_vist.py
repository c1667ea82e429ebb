"""Recorded outputs of the VIST evaluator (windx0303/VIST-Challenge-NAACL-2018@b04bf1d6, unmodified) and of METEOR.

vectors/vist_evaluator.json and vectors/meteor15_stdio.json name the recorded programs ("provenance"). METEOR is the jar
of pycocoevalcap. Its data take five seconds to load, so all VIST cases share one process.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_ins.processes import ENVIRONMENT

from sqa.metrics.quality.text_metric import Segment
from sqa_services.protocols import vist
from sqa_services.protocols.external import (
    DEFAULT_ARGUMENTS,
    HTER_ARGUMENTS,
    External,
    ExternalConfig,
    ExternalMetric,
    meteor_jar,
    start_meteor,
)

VECTORS = json.loads((Path(__file__).parent / "vectors" / "vist_evaluator.json").read_text())
METEOR = json.loads((Path(__file__).parent / "vectors" / "meteor15_stdio.json").read_text())
LENIENT = ("len_after", "len_comment", "len_single")  # accepted by Gson, but not JSON
SCORED = [name for name, output in VECTORS["outputs"].items() if output["rc"] == 0 and name not in LENIENT]
LINES = ("its capital is lima", "it has old ruins", "it lies in the andes")
REFUSED = [name for name in VECTORS["outputs"] if name not in (*SCORED, *LENIENT)]
needs_meteor = pytest.mark.needs("java", "pycocoevalcap")


@pytest.fixture(scope="module")
def program() -> Iterator[External]:
    """Yield a METEOR process that all cases share."""
    with start_meteor(HTER_ARGUMENTS) as running:
        yield running


def words(name: str, folder: Path) -> list[str]:
    """Write the input files of a case and return the arguments of the evaluator."""
    if name == "noarg":
        return []
    gold = VECTORS["gs"]
    if name.endswith("_flat"):
        gold = {"annotations": [annotation for [annotation] in gold["annotations"]]}
    paths = {n: folder / f"{n}.json" for n in ("test", "gold", "template")}
    paths["test"].write_text(VECTORS["submissions_raw"][name.removesuffix("_flat")], encoding="utf-8")
    paths["gold"].write_text(json.dumps(gold), encoding="utf-8")
    paths["template"].write_text(json.dumps(VECTORS["template"]), encoding="utf-8")
    return ["-testFile", str(paths["test"]), "-gsFile", str(paths["gold"]), "--template", str(paths["template"])]


def check(name: str, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    said, expected = capfd.readouterr(), VECTORS["outputs"][name]
    assert (code, said.out, said.err) == (expected["rc"], expected["stdout"], expected["stderr_head"])


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_equal_recorded_outputs(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def start() -> External:
        raise AssertionError("METEOR is not needed to refuse a submission")

    check(name, vist.main(words(name, tmp_path), start), capfd)


@pytest.mark.parametrize("name", LENIENT)
def test_lenient_json_of_gson_is_refused(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert vist.main(words(name, tmp_path)) == 1
    assert capfd.readouterr().out == "[Error] Incorrect JSON syntax (JsonSyntaxException).\n"


@needs_meteor
@pytest.mark.slow
@pytest.mark.parametrize("name", SCORED)
def test_scores_equal_recorded_outputs(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], program: External
) -> None:
    code = vist.main(words(name, tmp_path), lambda: nullcontext(program))
    *lines, score = capfd.readouterr().out.splitlines()
    *recorded, value = VECTORS["outputs"][name]["stdout"].splitlines()
    assert (code, lines) == (0, recorded) and float(score) == pytest.approx(float(value), abs=1e-6, nan_ok=True)


@needs_meteor
@pytest.mark.slow
@pytest.mark.parametrize(
    ("translations", "score"),
    [(("its capital is lima", "it has old ruins", "is it in andes"), 0.4596071984), (LINES, 1)],
)
def test_meteor_of_a_run_equals_the_jar(translations: Sequence[str], score: float) -> None:
    """Recorded from `java -jar meteor-1.5.jar translations references -l en -norm` on files with these lines."""
    command = ("java", "-jar", str(meteor_jar()), "-", "-", "-stdio", *DEFAULT_ARGUMENTS)
    metric = ExternalMetric(ExternalConfig(command))
    segments = [Segment("", "", *pair) for pair in zip(translations, LINES, strict=True)]
    assert metric.score_all(np.array(metric.measure(segments))) == pytest.approx(score)
    metric.program.close()


@needs_meteor
@pytest.mark.slow
@pytest.mark.parametrize("config", METEOR["configs"], ids=lambda config: " ".join(config["args"]))
def test_our_meteor_scorer_answers_like_the_jar(config: dict[str, Any]) -> None:
    requests, replies = [], []
    for row in config["rows"]:
        requests += [row["sent"], f"EVAL ||| {row['stats']}"]
        replies += [row["stats"], *row["eval_lines"]]
    command = (sys.executable, "-m", "sqa", "scorer", "meteor", *config["args"])
    asked = "".join(f"{line}\n" for line in [*requests, "HELLO"])
    done = subprocess.run(command, input=asked, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    assert done.stdout.splitlines() == [*replies, config["unknown_command_reply"]]
