"""The report of finished runs: correct numbers, explained gaps, and escaped text."""

import csv
import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from doubles import echo, question
from recorded import Keep, recorded
from refusals import refused
from stand_ins.viewer_runs import EVIL, make

from smt.engines.pretrained import PretrainedConfig
from sqa.core import ConfigError, DataError, Guess, QuestionTrace
from sqa.metrics.qa import curve_named
from sqa.pipeline import ComponentConfig, saving
from sqa.pipeline import folder as runs
from sqa.report.data import Reported, changes, read_runs
from sqa.report.figures import draw_all, series_of, wins_at
from sqa.report.html import code, page, plain
from sqa.report.report import main
from sqa.results import markdown

METRICS = {"metrics": ["ew", "oracle-ew", "accuracy", "bleu", "al", "dal"]}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return three runs that differ in k."""
    folder = tmp_path_factory.mktemp("sweep")
    return [make(folder, f"wait{k}", k=k, **METRICS) for k in (1, 3, 6)]


@pytest.fixture(scope="module", autouse=True)
def keep() -> Iterator[Keep]:
    """Yield a function that compares texts with the recorded texts; figures are compared automatically."""
    with recorded(Path(__file__)) as keep:
        yield keep


@pytest.fixture(scope="module")
def report(sweep: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    main(sweep, folder)
    return folder


def test_texts_and_tables_match_reference(report: Path, keep: Keep) -> None:
    for path in sorted(report.rglob("*")):
        if path.suffix in (".md", ".csv", ".tsv"):
            text = path.read_text("utf-8")
            keep(path.name, re.sub(r"## (Versions)\n.*?(?=^## )", "", text, flags=re.DOTALL | re.MULTILINE))


def section(text: str, heading: str) -> str:
    """Return the part of a Markdown text under a heading, up to the next heading of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    _, heading_line, below = text.partition(f"{heading}\n")
    assert heading_line, heading
    return re.split(rf"^#{{1,{level}}} ", below, maxsplit=1, flags=re.MULTILINE)[0]


def cells(text: str) -> list[list[str]]:
    """Return the rows of the first Markdown table in a text, header first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [rows[0], *rows[2:]]


class Elements(HTMLParser):
    """A parser that collects a page's elements with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


# --------------------------------------------------------------------------------------------------------- contents


def test_report_names_runs_and_origins(report: Path, sweep: list[Path]) -> None:
    text = (report / "report.md").read_text()
    _, *rows = cells(section(text, "## What was run"))
    assert rows[1][:5] == ["`wait3`", "questions.jsonl", "3", "doubles:build_translator k=3", "doubles:build_guesser"]
    assert runs.read(sweep[0]).dataset in section(text, "## Data")
    summary = json.loads((sweep[1] / saving.SUMMARY).read_text())
    for signature in summary["signatures"].values():
        assert f"`{signature}|" in section(text, "## Signatures")
    key = summary["stages"]["translate"]
    manifest = json.loads((sweep[1].parent / "store" / "translate" / key / "manifest.json").read_text())
    prints = {(row[0], row[2]): row[3] for row in cells(section(text, "## Fingerprints"))}
    assert prints["translate", f"`{manifest['fingerprint']}`"] == "`wait3`"  # each k is another translator
    assert [runs for (stage, _), runs in prints.items() if stage == "guess"] == ["every run"]
    assert "written by sqa 1" in section(text, "## Versions")
    assert "`wait3` differs in `translator.k`: `3`." in section(text, "## Configurations")


def test_missing_values_have_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quality = [{"comet": {"model": "nowhere/such-a-model"}}]
    run = make(tmp_path, "nobody", guesser=None, buzzer=None, metrics=["ew", "bleu", "al"], quality=quality)
    main([run], tmp_path / "report")
    text = (tmp_path / "report" / "report.md").read_text()
    gaps = section(text, "## Not computed, and why")
    reason = json.loads((run / saving.SUMMARY).read_text())["refusals"]["comet"]
    assert plain(reason) in gaps
    assert "`all question answering` (every run): the config names no guesser." in gaps
    assert "`ew` (every run): no guesser ran on q0." in gaps
    assert "`expected wins over the source read` (every run): no guesser ran." in gaps
    assert "`figure over k` (every run): no two runs differ only in k." in gaps
    assert "`bertscore`, `bleurt` (every run): not requested in the config (quality)." in gaps
    shown = {row[0]: row[2] for row in cells(section(text, "### Scores"))[1:]}
    assert (shown["`ew`"], shown["`comet`"]) == ("n/a", "n/a")
    assert "Differences to" not in text
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()[:2]] == ["report.md", "report.html"]


def test_runs_on_different_questions_are_separate(tmp_path: Path) -> None:
    first = make(tmp_path, "a", **METRICS)
    (tmp_path / "other").mkdir()
    second = make(tmp_path / "other", "b", dataset={"name": str(tmp_path / "questions.jsonl"), "limit": 2}, **METRICS)
    main([first, second])  # into the folder of the first run
    text = (first / "report" / "report.md").read_text()
    assert "**These runs are on different questions.**" in text
    assert cells(section(text, "## questions.jsonl, 3 questions"))[0] == ["metric", "unit", "`a`"]
    assert cells(section(text, "## questions.jsonl, 2 questions (at most the first 2)"))[0] == ["metric", "unit", "`b`"]
    assert "Differences" not in text
    assert (first / "report" / "over_source_1.png").is_file()


def test_trainings_are_drawn_as_their_mean(sweep: list[Path], tmp_path: Path) -> None:
    """Runs of models k3-seed0/model, k3-seed1/model, ... are one line, with one standard deviation as its band."""

    def training(run: Reported, seed: int) -> Reported:
        part = ComponentConfig("pretrained", PretrainedConfig(model=f"runs/smt/x/k{run.k}-seed{seed}/model", k=run.k))
        saved = replace(run.saved, config=replace(run.saved.config, translator=part))
        rows = {"ew": replace(run.rows["ew"], value=0.5 + seed / 10)}
        return replace(run, label=f"{run.k}-{seed}", saved=saved, rows=rows)

    group = [training(run, seed) for run in read_runs(sweep[:2]) for seed in (0, 1, 2)]
    assert list(map(len, series_of(group).values())) == [6]
    assert len(series_of([*group, group[0]])) == 2  # the same run twice is no fourth training
    drawn, _ = draw_all(group, tmp_path, "")
    tables = {figure.files[-1].stem: list(csv.reader(figure.files[-1].read_text().splitlines())) for figure in drawn}
    [_, *rows] = tables["over_k"]
    assert [row[1:] for row in rows] == [[k, "3", "ew", "0.600000", "0.500000", "0.700000"] for k in ("1", "3")]
    assert {row[3] for row in tables["over_source"][1:]} == {"3"}
    assert all("one standard deviation over the trainings" in figure.caption for figure in drawn)


def test_answered_questions_are_drawn_over_k(sweep: list[Path], tmp_path: Path) -> None:
    runs = read_runs(sweep[:2])
    group = [replace(run, rows={"answered": replace(run.rows["ew"], metric="answered")}) for run in runs]
    figure = draw_all(group, tmp_path, "")[0][0]
    assert [row.split(",")[3] for row in figure.files[-1].read_text().splitlines()[1:]] == ["answered"] * 2


def test_equal_runs_yield_identical_reports(report: Path, sweep: list[Path], tmp_path: Path) -> None:
    main(sweep, tmp_path)
    for name in ("report.md", "report.html", "over_k.csv", "over_k.pdf", "over_source.png"):
        assert (tmp_path / name).read_bytes() == (report / name).read_bytes(), name


# ----------------------------------------------------------------------------------------------------------- figures


def test_wins_follow_the_top_guess() -> None:
    q = question(sentences=("uno dos", "tres cuatro"))
    guesses = [(), (Guess("Spain", 1.0),), (Guess("France", 1.0),), (Guess("Spain", 1.0),)]
    trace = QuestionTrace(q, echo(q), tuple(guesses))
    wins = wins_at(trace, bins=4)
    curve = curve_named("qanta2018")
    ends = np.array([0.25, 0.5, 0.75, 1.0])
    right = [trace.correct[trace.fraction <= end + 1e-9][-1:].any() for end in ends]
    assert right == [False, True, False, True]
    assert wins == pytest.approx(np.where(right, curve(ends), 0.0))
    assert wins_at(QuestionTrace(question(), (), ()), bins=3).tolist() == [0, 0, 0]  # without words


# ------------------------------------------------------------------------------------------------ Markdown and HTML


def test_page_has_no_script_and_no_request(report: Path) -> None:
    text = (report / "report.html").read_text()
    elements = Elements(text)
    tags = {tag for tag, _ in elements.elements}
    assert not tags & {"script", "link", "iframe", "object", "embed", "form", "base"}
    images = [value for tag, a in elements.elements for value in (a.get("src"), a.get("srcset")) if value]
    assert len(images) == 3
    assert all(image.startswith("data:image/svg+xml;base64,") for image in images)
    assert not any(name.startswith("on") or name == "style" for _, a in elements.elements for name in a)
    [policy] = [a["content"] for tag, a in elements.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")


def test_texts_of_runs_are_escaped(tmp_path: Path) -> None:
    name = "_a|b`<img src=x onerror=alert(1)> $x$ **c** &amp; [d](e)"
    run = make(tmp_path, name, **METRICS)
    second = make(tmp_path, f"{name}2", k=2, **METRICS)
    summary = json.loads((run / saving.SUMMARY).read_text())
    summary["refusals"]["dal"] = f"{EVIL}\n## {EVIL} | `x` \x1b[31m"
    (run / saving.SUMMARY).write_text(json.dumps(summary))
    main([run, second], tmp_path / "report")
    text = (tmp_path / "report" / "report.html").read_text()
    elements = Elements(text)
    assert not {"script"} & {tag for tag, _ in elements.elements}
    assert all(str(a["src"]).startswith("data:") for tag, a in elements.elements if tag == "img")
    assert not any(key.startswith("on") for _, a in elements.elements for key in a)
    assert name in elements.text
    assert " ".join(f"{EVIL} ## {EVIL} | `x` \ufffd[31m".split()) in elements.text
    header = cells(section((tmp_path / "report" / "report.md").read_text(), "### Scores"))[0]
    assert len(header) == 4


TEXTS = [*"word a|b ` ``x x` <b>&amp;</b> a_b \\`\\| tab\there $x$".split(" "), "*a* _b_ ~c~ ![d](e)", EVIL]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_escaped_in_markdown(text: str) -> None:
    rendered = page("\n".join(["# T", "", *markdown([code("h"), "h"], [[code(text), plain(text)]])]), "T", [])
    shown = re.findall(r"<td[^>]*>(.*?)</td>", rendered)
    expected = " ".join(text.split())
    assert html.unescape(shown[0]).removeprefix("<code>").removesuffix("</code>") == expected
    assert html.unescape(shown[1]) == expected
    assert "<" not in shown[1]
    paragraph = page(f"text {plain(text)} and {code(text)}", "T", []).partition("<main>")[2].partition("</main>")[0]
    assert html.unescape(re.sub(r"</?(p|code)>", "", paragraph)).strip() == f"text {expected} and {expected}"


# -------------------------------------------------------------------------------------------------------- refusals


def test_invalid_folders_are_refused(sweep: list[Path], tmp_path: Path) -> None:
    refused(ConfigError, r"named twice", main, [sweep[0], sweep[1], sweep[0].parent / "." / "wait1"], tmp_path)
    refused(ConfigError, r"give at least one", main, [], tmp_path)
    refused(ConfigError, r"nowhere: is not the folder of a finished run", main, [tmp_path / "nowhere"], tmp_path)


def test_damaged_manifest_is_reported_as_a_gap(tmp_path: Path) -> None:
    run = make(tmp_path, "damaged")
    summary = json.loads((run / saving.SUMMARY).read_text())
    key = summary["stages"]["guess"]
    (run.parent / "store" / "guess" / key / "manifest.json").write_text("{}")
    [reported] = read_runs([run])
    [gap] = reported.gaps
    assert (gap.what, gap.why.endswith("or its manifest is damaged")) == ("fingerprint of guess", True)
    (run / saving.SUMMARY).write_text(json.dumps(summary | {"refusals": ["ew"]}))
    refused(DataError, "damaged", read_runs, [run])


# ------------------------------------------------------------------------------------------------------------ names


def test_changed_part_is_shown_in_full(sweep: list[Path], tmp_path: Path) -> None:
    first = runs.read(sweep[0]).config
    changed = runs.read(make(tmp_path, "x", translator={"name": "fixed", "text": "reference"}, buzzer=None)).config
    differences = dict(changes(first, changed))
    assert differences["translator"].startswith("{name: fixed, text: reference")
    assert (differences["buzzer"], differences["metrics"]) == ("null", "[al]")
    assert "name" not in differences
    assert changes(first, runs.read(sweep[1]).config) == [("translator.k", "3")]
