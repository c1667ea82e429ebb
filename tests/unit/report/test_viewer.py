"""The viewer's page: its data, its refusals, and escaping of all texts."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from stand_ins.viewer_runs import EVIL, RECORDS, CopyAligner, TrustJudge, make
from tables import tables_of

from sqa.core import ROOT, ConfigError, Emission, QuestionTrace
from sqa.diagnose.findings import UNSCORED
from sqa.diagnose.pearmut import campaign
from sqa.pipeline import open_run
from sqa.report import viewer, viewer_data
from sqa.report.viewer import UPLOT, as_script, main, open_runs, render
from sqa.report.viewer_data import page_data

TABLES = tables_of(__file__)


@pytest.fixture
def aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer_data, "load_aligner", lambda *_: CopyAligner())
    monkeypatch.setattr(viewer_data, "load_detector", lambda *_: TrustJudge())


def data_in(page: str) -> dict:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


@pytest.mark.usefixtures("aligned")
def test_page_data_equal_the_traces(tmp_path: Path) -> None:
    run = open_run(make(tmp_path, "wait2", k=2))
    data = page_data([run], [0, 2])
    assert [question["id"] for question in data["questions"]] == ["q0", "q2"]
    assert data["questions"][0]["sentences"] == ["el país llamado Spain era grande", "ganó contra France después"]
    [shown] = data["runs"]
    assert (shown["name"], shown["notes"], shown["aligned"]) == ("wait2", [], True)
    assert shown["parts"]["translator"] == "doubles:build_translator k=2"
    first, trace = shown["traces"][0], run.traces[0]
    assert first["w"] == "el país llamado Spain era grande ganó contra France después"
    assert np.cumsum(first["s"]).tolist() == trace.source_words.tolist()
    assert first["r"] == trace.rank.tolist()
    assert first["u"] == "0000020000"  # "grande" is a content word
    assert first["l"][3] == [3]
    assert first["z"] == 3
    assert (first["o"], shown["threshold"]) == ([], 0.5)
    assert [data["pages"][i] for i in first["g"][-1][::2]] == ["France", "Spain"]
    assert first["g"][-1][1::2] == [9, 4]  # scores; integers without a decimal point
    assert first["b"][-1] == 9
    drop = first["f"][0]
    assert (drop["kind"], drop["words"], drop["before"], drop["after"]) == ("drop", "France", 1, 2)
    assert shown["traces"][1]["z"] is None
    curve = data["curve"]
    assert (curve["t"][0], curve["t"][-1], len(curve["ew"])) == (0, 1, 101)
    assert curve["ew"][-1] == pytest.approx(0.3804, abs=1e-4)  # EW(1) of the published curve


@pytest.mark.parametrize(("buzzer", "expected"), TABLES["threshold_explains_every_buzz_or_is_null"])
def test_threshold_explains_every_buzz_or_is_null(tmp_path: Path, buzzer: object, expected: float | None) -> None:
    [shown] = page_data([open_run(make(tmp_path, "one", buzzer=buzzer))], [0])["runs"]
    assert shown["threshold"] == expected


def test_retractions_and_empty_questions_are_kept(tmp_path: Path) -> None:
    run = open_run(make(tmp_path, "plain", guesser=None, buzzer=None))
    emissions = (Emission(0, "a", 1, False), Emission(0, "", 1, False, erase=1), Emission(0, "b", 1, True))
    question = run.questions[2]
    vars(run)["traces"] = [QuestionTrace(question, emissions), QuestionTrace(question, ())]
    [shown] = page_data([run], [0, 1])["runs"]
    assert [trace["w"] for trace in shown["traces"]] == ["a  b", None]
    assert [trace["s"] for trace in shown["traces"]] == [[1, 0, 0], []] and shown["traces"][0]["e"] == {1: 1}
    assert not shown["guessed"] and {"no guesser ran", "no buzzer ran"} <= set(shown["notes"])


def test_no_text_can_end_the_script(tmp_path: Path) -> None:
    assert as_script({"a": "</script><!--&\u2028\u2029"}) == (r'{"a":"\u003c/script\u003e\u003c!--\u0026\u2028\u2029"}')
    refused(ValueError, "not JSON compliant", as_script, {"a": float("nan")})
    data = page_data([open_run(make(tmp_path, "one"))], [0, 1, 2])
    page = render(data)
    assert EVIL not in page
    assert page.count("</script>") == 2
    assert data_in(page)["questions"][1]["answer"] == EVIL
    assert data_in(render({"text": "{{policy}}"})) == {"text": "{{policy}}"}  # placeholders are filled once


def test_page_makes_no_external_request() -> None:
    page = render({})
    assert "default-src 'none'; script-src 'sha256-" in page
    assert not re.findall(r"(?:src|href)=.(?:https?:)?//", page)
    assert "@import" not in page and "url(" not in page
    assert "The MIT License" in page and f"uPlot {UPLOT}" in page
    assert f"(v{UPLOT})" in (ROOT / "sqa" / "report" / "viewer_page" / "uPlot.iife.min.js").read_text(encoding="utf-8")


def test_scripts_of_the_viewer_never_set_html() -> None:
    for path in (ROOT / "sqa" / "report" / "viewer_page").glob("*.js"):
        if not path.name.startswith("uPlot"):
            script = path.read_text(encoding="utf-8")
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(", script), path


@pytest.mark.parametrize("language", ["ja", "cs", "ar"])
def test_words_are_aligned_without_stemmer(tmp_path, language, capsys):
    folder = make(tmp_path, "one", records=[{**record, "language": language} for record in RECORDS])
    main([folder], questions=["q0"])
    assert f"no priors for {language}-en" in capsys.readouterr().err
    [shown] = data_in((folder / "view.html").read_text(encoding="utf-8"))["runs"]
    assert shown["aligned"] and len(shown["traces"][0]["u"]) == 10
    assert json.loads(campaign(open_run(folder), UNSCORED))["campaign_id"] == "one"


def test_other_runs_or_questions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    less = {"name": str(tmp_path / "questions.jsonl"), "limit": 2}
    run, shorter = make(tmp_path, "one"), make(tmp_path, "two", dataset=less)
    refused(ConfigError, r"not on the same questions .*, 3 and .*, 2\)", open_runs, [run, shorter])
    refused(ConfigError, "named twice", open_runs, [run, run / ".." / "one"])
    refused(ConfigError, "give at least one", open_runs, [])
    refused(ConfigError, "is not the folder of a finished run", main, [tmp_path])
    refused(ConfigError, "'q9' is not a question of .*, did you mean 'q", main, [run], questions=["q9"])
    assert not (run / viewer.DEFAULT_OUTPUT).exists()
