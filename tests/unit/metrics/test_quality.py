"""`quality:` in a run's config: valid values, stored scores, and missing metrics in the report."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles import echo, question, write_questions
from refusals import refused
from small_runs import small_config, small_run
from stand_ins import quality_doubles
from tables import tables_of

from sqa import metrics as metric_names
from sqa.core import ConfigError, DataError, QuestionTrace, Score, TextMetric
from sqa.files import Store
from sqa.metrics.quality.score_file import ScoreFileConfig, build, read
from sqa.metrics.quality.text_metric import Segment
from sqa.pipeline import Parts, RunResult, paired, saving, score_texts
from sqa.pipeline import folder as runs
from sqa.pipeline.config import QualityConfig, RunConfig, load_run, run_from_mapping, to_mapping
from sqa.pipeline.quality_stage import CHUNK
from sqa.results import Row
from sqa_services.protocols.external import ExternalConfig

TABLES = tables_of(__file__)

OVERLAP = "stand_ins.quality_doubles:build"
SCORER = "from sqa_services.protocols.scorer import main; main('bleu')"
BLEU = (sys.executable, "-c", SCORER)


def config_of(tmp_path: Path, **changes: object) -> RunConfig:
    return small_config(tmp_path, 6, **{"metrics": ["ew", "bleu"]} | changes)


def done(tmp_path: Path, parts: Parts | None = None, n: int = 6, **changes: object) -> RunResult:
    return small_run(tmp_path, n, parts, **{"metrics": ["ew", "bleu"]} | changes)


def rows_of(result: RunResult) -> dict[str, Row]:
    return {row.metric: row for row in saving.report(result).rows}


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    quality_doubles.asked.clear()
    quality_doubles.refused.clear()


# -------------------------------------------------------------------------------------------------------- configs


@pytest.mark.parametrize("written,kinds", TABLES["all_config_forms_are_read"])
def test_all_config_forms_are_read(tmp_path: Path, written: object, kinds: list[list[str]]) -> None:
    config = config_of(tmp_path, quality=written)
    assert [[entry.kind, entry.name] for entry in config.quality] == kinds
    assert run_from_mapping(to_mapping(config)) == config
    assert ("quality" in to_mapping(config)) == bool(kinds)  # configs without the key are unchanged
    if ["external", "external:cat"] in kinds:
        assert config.quality == (QualityConfig("external", ExternalConfig(("cat", "-u"))),)


@pytest.mark.parametrize("written,problem", TABLES["wrong_configs_are_refused"])
def test_wrong_configs_are_refused(tmp_path: Path, written: object, problem: str) -> None:
    refused(ConfigError, f"^{re.escape(problem)}", config_of, tmp_path, quality=written)


# ----------------------------------------------------------------------------------------------------------- runs


def test_score_is_reported_with_its_interval(tmp_path: Path) -> None:
    result = done(tmp_path, quality=[{OVERLAP: {}}])
    row = rows_of(result)["overlap"]
    assert (row.value, row.low, row.high, row.n, row.unit) == (1.0, 1.0, 1.0, 6, "mean score")
    assert re.fullmatch(
        r"overlap\|segment:question\|version:1\|source:[0-9a-f]{16}\|questions:[0-9a-f]{8}", row.signature
    )
    assert list(rows_of(result))[:3] == ["ew", "bleu", "overlap"]
    folder = saving.save(result, tmp_path / "runs")
    saved = runs.read(folder)
    assert saved.stats["overlap"].tolist() == [[1.0, 1.0]] * 6
    assert saved.config == load_run(folder / "config.yaml") == result.config
    assert "overlap\t1.000000\t1.000000\t1.000000\t6" in (folder / "report.tsv").read_text()
    plain = done(tmp_path, name="plain", metrics=["ew", "ter", "bleu"])
    assert plain.keys == result.keys and plain.made["score"] == 0  # found in the store
    assert list(rows_of(plain))[:3] == ["ew", "ter", "bleu"] and rows_of(plain)["ter"].value == 0.0


def test_text_is_scored_once(tmp_path: Path) -> None:
    done(tmp_path, quality=[{OVERLAP: {}}])
    assert sorted(quality_doubles.asked) == [f"q{i}" for i in range(6)]
    done(tmp_path, name="again", quality=[{OVERLAP: {}}])
    done(tmp_path, name="other-k", translator={"name": "doubles:build_translator", "k": 3}, quality=[{OVERLAP: {}}])
    assert len(quality_doubles.asked) == 6  # the final texts are equal for every system
    done(tmp_path, name="more", n=8, quality=[{OVERLAP: {}}])
    assert quality_doubles.asked[6:] == ["q6", "q7"]
    done(tmp_path, name="newer", quality=[{OVERLAP: {"version": 2}}])
    assert len(quality_doubles.asked) == 14


def test_equal_texts_are_scored_once_and_both_count(tmp_path: Path) -> None:
    lines = write_questions(tmp_path / "x.jsonl", 1).read_text().splitlines()
    again = [line.replace('"q0"', f'"{id}"') + "\n" for id in "ab" for line in lines]
    (tmp_path / "questions9.jsonl").write_text("".join(again))
    result = done(tmp_path, n=9, quality=[{OVERLAP: {}}])
    assert len(quality_doubles.asked) == 1 and result.stats["overlap"].tolist() == [[1.0, 1.0]] * 2


def test_scores_before_a_failure_are_kept(tmp_path: Path) -> None:
    quality_doubles.refused.add("q17")
    assert "overlap" in done(tmp_path, n=20, quality=[{OVERLAP: {}}]).refusals
    quality_doubles.asked.clear()
    quality_doubles.refused.clear()
    assert done(tmp_path, n=20, quality=[{OVERLAP: {}}]).stats["overlap"].tolist() == [[1.0, 1.0]] * 20
    assert quality_doubles.asked == [f"q{i}" for i in range(CHUNK, 20)]


def test_stored_scores_are_stable_and_damage_is_reported(tmp_path: Path) -> None:
    done(tmp_path, n=8, quality=[{OVERLAP: {}}])
    [kept] = (tmp_path / "runs" / "store" / "quality").glob("*/block-0000.npz")
    whole = kept.read_bytes()
    kept.unlink()
    done(tmp_path, name="few", quality=[{OVERLAP: {}}])
    done(tmp_path, n=8, name="all", quality=[{OVERLAP: {}}])
    assert kept.read_bytes() == whole
    kept.write_bytes(whole[:50])
    assert "truncated or damaged" in rows_of(done(tmp_path, quality=[{OVERLAP: {}}]))["overlap"].signature


@pytest.mark.parametrize("quality,reason", TABLES["failed_metric_reports_its_reason"], ids=str)
def test_failed_metric_reports_its_reason(tmp_path: Path, quality: Any, reason: str) -> None:
    result = done(tmp_path, quality=quality)
    [name] = [entry.name for entry in result.config.quality]
    row = rows_of(result)[name]
    assert (row.value, row.low, row.high) == (None, None, None)
    assert row.signature.startswith(f"not computed: {reason}") and "\n" not in row.signature
    assert reason in result.refusals[name] and name not in result.stats
    folder = saving.save(result, tmp_path / "runs")
    [line] = [line for line in (folder / "report.tsv").read_text().splitlines() if line.startswith(f"{name}\t")]
    assert line.split("\t")[1:4] == ["n/a"] * 3 and line.split("\t")[-1].startswith(f"not computed: {reason}")
    assert name not in runs.read(folder).stats
    assert rows_of(result)["bleu"].value == pytest.approx(100)  # the other metrics are computed


def test_question_without_reference_has_no_score(tmp_path: Path) -> None:
    without = replace(question("q1"), reference=())
    traces = [QuestionTrace(q, echo(q)) for q in (question("q0"), without)]
    metrics = [*metric_names.build(["ter"]), quality_doubles.build(quality_doubles.OverlapConfig())]
    _, scores = score_texts(metrics, traces, Store(tmp_path), progress=False)
    assert scores["q0"] == {"ter": Score((0.0, 5.0, 1.0)), "overlap": Score((0.0, 1.0))}
    assert {score.stats for score in scores["q1"].values()} == {None}
    assert "q1 has no human translation" in str(scores["q1"]["overlap"].refusal)


# ------------------------------------------------------------------------------------------------ external programs


def test_external_program_scores_a_run(tmp_path: Path) -> None:
    parts = Parts()
    changes = {"quality": {"external": [*BLEU]}, "metrics": ["bleu"]}
    translators = [{"name": "doubles:build_translator", "k": k} for k in (1, 3)]
    a, b = (done(tmp_path, parts, name=f"r{i}", translator=t, **changes) for i, t in enumerate(translators))
    rows = rows_of(a)
    bleu, external = rows["bleu"], rows[f"external:{Path(sys.executable).name}"]
    assert (external.value, external.low, external.high) == pytest.approx((bleu.value, bleu.low, bleu.high), abs=1e-9)
    assert external.unit == "score" and "|files:" in external.signature
    compared, notes = paired.compare(*(runs.read(saving.save(r, tmp_path / "runs")) for r in (a, b)), n_resamples=20)
    by_name = {row.metric: row for row in compared}
    assert not notes and by_name[external.metric].diff == by_name["bleu"].diff


def program(script: Path, text: str) -> dict[str, object]:
    """Write a Python program and return the config of the metric "mine" that it computes."""
    script.write_text(f"import pathlib, sys\n{text}")
    return {"external": {"command": [sys.executable, str(script)], "name": "mine"}}


def test_dead_program_is_restarted_for_the_next_run(tmp_path: Path) -> None:
    quality = program(
        tmp_path / "metric.py",
        "mark, asked = pathlib.Path(sys.argv[0]).with_name('died'), 0\nfor line in sys.stdin:\n    asked += 1\n"
        "    if asked == 4 and not mark.exists():\n        mark.touch()\n        sys.exit('once')\n"
        "    print(3 if line[0] == 'E' else asked, flush=True)\n",
    )
    parts = Parts()
    assert "once" in done(tmp_path, parts, quality=quality).refusals["mine"]
    assert rows_of(done(tmp_path, parts, name="next", quality=quality))["mine"].value == 3.0


def test_changed_program_causes_a_new_call(tmp_path: Path) -> None:
    def stats(number: int) -> Any:
        text = f"for line in sys.stdin: print(3 if line[0] == 'E' else {number}, flush=True)\n"
        return done(tmp_path, quality=program(tmp_path / "metric.py", text)).stats["mine"][0].tolist()

    assert [stats(7), stats(8), stats(7)] == [[7.0, 1.0], [8.0, 1.0], [7.0, 1.0]]


# --------------------------------------------------------------------------------------------------- files of scores

SEGMENTS = [Segment(f"q{i}", "s", f"h {i}", "r") for i in range(3)]


@pytest.mark.parametrize("text,scores", TABLES["files_of_scores_are_read"])
def test_files_of_scores_are_read(tmp_path: Path, text: str, scores: list[float]) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(text, encoding="utf-8", newline="")
    assert read(path, SEGMENTS) == scores
    metric = build(ScoreFileConfig(str(path), "yisi1", "YiSi-1 on roberta-large"))
    assert isinstance(metric, TextMetric) and metric.fingerprint() is None  # never stored, because the file may change
    assert metric.signature() == "yisi1|segment:question|aggregate:mean|from:file|by:YiSi-1 on roberta-large"
    assert metric.measure(SEGMENTS) == [(score, 1.0) for score in scores]


@pytest.mark.parametrize("text,message", TABLES["invalid_files_of_scores_are_refused"])
def test_invalid_files_of_scores_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.tsv"
    path.write_bytes(text.encode("latin-1"))
    assert refused(DataError, re.escape(message), read, path, SEGMENTS).startswith(str(path))


def test_score_files_of_two_runs_are_compared(tmp_path: Path) -> None:
    for name, scores in (("a", "123456"), ("b", "222222")):
        (tmp_path / f"{name}.txt").write_text("\n".join(scores) + "\n")
    quality = [{"scores": {"file": f"{tmp_path}/{{run}}.txt", "name": "human", "made_by": "us"}}]
    a, b = (done(tmp_path, name=name, quality=quality) for name in "ab")
    assert [rows_of(r)["human"].value for r in (a, b)] == [3.5, 2.0]
    compared, _ = paired.compare(*(runs.read(saving.save(x, tmp_path / "runs")) for x in (a, b)), n_resamples=20)
    [row] = [row for row in compared if row.metric == "human"]
    assert (row.a, row.b, row.diff, row.n) == (3.5, 2.0, 1.5, 6)
