"""The translators that a grid's config lists: every one has its rows and its curve, or a line that says why not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot

import experiments.ablation.figure as figure
from experiments.grid import AblationConfig, Cell, Row, System, cells, usable
from experiments.needs import Needs
from sqa.core.errors import ConfigError, DataError
from sqa.core.significance import Interval
from sqa.run.config import run_from_mapping

CAT = {"name": "command", "command": ["cat"]}
BM25 = {"guesser": {"name": "bm25"}, "buzzer": {"name": "mlp", "model": "bm25"}}


def config(*systems: System, **changes: object) -> AblationConfig:
    from experiments.contestant import Contestant

    values = {
        "name": "grid", "datasets": (), "fallback": ("mini-es",), "k": (1, 3, "full"), "models": {}, "commands": {},
        "contestants": (Contestant(**BM25),), "metrics": ("ew", "oracle-ew", "bleu", "dal"), "translators": systems,
    }  # fmt: skip
    return AblationConfig(**(values | changes))


def test_each_has_a_row_for_every_k_of_the_grid_or_of_its_own():
    grid = config(System("cat", "es", CAT), System("slow cat", "es", CAT, (6, "full")), System("polish", "pl", CAT))
    found = [(cell.family, cell.k) for cell in cells(grid, ["mini-es"], {}) if cell.family != "reference"]
    assert found == [("cat", 1), ("cat", 3), ("cat", "full"), ("slow cat", 6), ("slow cat", "full")]
    assert len({cell.run.name for cell in cells(grid, ["mini-es", "mini-pl"], {})}) == 5 + 3 + 4


@pytest.mark.parametrize("name", ["sub/mine_es.jsonl", "quiz.jsonl", "polish.jsonl"])
def test_the_language_is_the_questions_and_not_that_of_the_files_name(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    language = "pl" if name == "polish.jsonl" else "es"
    _write(tmp_path / name, [language] * 2)
    grid = config(System("cat", "es", CAT), System("dog", "pl", CAT), datasets=(name,), models={"es": "es-en"})
    found = list(cells(grid, usable(grid), {}))
    mine = {"es": {"wait-k", "cat"}, "pl": {"dog"}}[language]
    assert {cell.family for cell in found} == {*mine, "reference"} and {cell.dataset for cell in found} == {name}
    assert len({cell.run.name for cell in found}) == len(found)
    said = capsys.readouterr().err.splitlines()[1:]
    assert (
        said
        == {
            "es": ["dog: no rows, the questions are in es and it is for pl"],
            "pl": [f"{one}: no rows, the questions are in pl and it is for es" for one in ("wait-k", "cat")],
        }[language]
    )


def test_a_file_of_several_languages_is_refused_and_so_are_two_files_of_one_name(tmp_path):
    _write(tmp_path / "both.jsonl", ["es", "pl"])
    with pytest.raises(DataError, match="questions in es and pl; give each language a file of its own"):
        usable(config(datasets=(str(tmp_path / "both.jsonl"),)))
    with pytest.raises(ConfigError, match="datasets: two are called both.jsonl"):
        config(datasets=("a/both.jsonl", "b/both.jsonl"))


def _write(path: Path, languages: Sequence[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = [
        json.dumps({"id": str(i), "language": language, "page": "Spain", "source": ["a b"], "reference": ["c d"]})
        for i, language in enumerate(languages)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")


def test_trainings_of_a_translator_have_rows_of_their_own():
    grid = config(System("cat", "es", CAT, (3,), seed=0), System("cat", "es", CAT, (3,), seed=1))
    found = [cell for cell in cells(grid, ["mini-es"], {}) if cell.family == "cat"]
    assert [cell.translator for cell in found] == ["cat, seed 0", "cat, seed 1"]
    assert len({cell.run.name for cell in found}) == 2


def test_one_that_cannot_be_had_is_left_out_with_a_line(capsys):
    needs = Needs(package="no_such_package", hint="make lm")
    found = list(cells(config(System("far", "es", CAT, needs=needs)), ["mini-es"], {}))
    assert {cell.family for cell in found} == {"reference"}
    said = "far: left out, it needs the Python package no_such_package, which is not installed (make lm)\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("systems", "changes", "message"),
    [
        ((System("a", "es", CAT), System("a", "es", CAT)), {}, "translators: 'a' is there twice for es"),
        ((System("a", "es", CAT, seed=1), System("a", "es", CAT, seed=1)), {}, "'a, seed 1' is there twice"),
        ((System("wait-k", "es", CAT),), {"models": {"es": "es-en"}}, "translators: 'wait-k' is there twice for es"),
        ((System("reference", "es", CAT),), {}, "'reference' is there twice"),
        ((System("a b", "es", CAT), System("a-b", "es", CAT)), {}, "'a-b' is there twice"),
        ((System("cat wait-k", "es", CAT),), {"commands": {"es": ("cat",)}}, "'cat wait-k' is there twice"),
    ],
)
def test_names_that_would_mix_rows_are_refused(systems, changes, message):
    with pytest.raises(ConfigError, match=message):
        config(*systems, **changes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"translator": {**CAT, "k": 3}}, "translator.k: give it as `k`"),
        ({"k": ()}, "k: at least one value"),
        ({"label": " "}, "label: a name"),
        ({"seed": -1}, "seed: must be >= 0, got -1"),
        ({"translator": {"name": "waitkk", "model": "es-en"}}, "did you mean 'waitk'"),
    ],
)
def test_odd_entries_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        System(**({"label": "a", "language": "es", "translator": CAT} | values))


def rows(*families: str, ks: tuple[int | str, ...] = (1, 3, "full")) -> list[Row]:
    run = run_from_mapping({"name": "a", "dataset": {"name": "mini-es"}, "translator": {"name": "fixed"},
                            "metrics": ["bleu"]})  # fmt: skip
    value = {"ew": 0.2, "oracle-ew": 0.4, "bleu": 30.0, "dal": 4.0}
    found = [(family, k) for family in families for k in ks] + [("reference", "full"), ("reference", "diagonal")]
    return [
        Row(Cell("mini-es", family, k, "bm25", run), 5, {name: np.zeros((5, 2)) for name in value},
            {name: Interval(v, v - 0.1, v + 0.1, 5) for name, v in value.items()}, {}, 0, 0)
        for family, k in found
    ]  # fmt: skip


def test_a_translator_has_one_colour_in_all_figures(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figure, "save", lambda made, folder, name: drawn.append(made) or [])
    others = [replace(row, cell=replace(row.cell, dataset="mini-pl")) for row in rows("a", "c")]
    for dataset in ("mini-es", "mini-pl"):
        figure.draw([*rows("a", "b", "c"), *others], dataset, tmp_path)
    first, second = (
        {line.get_label(): line.get_color() for line in made.axes[n].get_legend().legend_handles}
        for made, n in zip(drawn, (3, 2), strict=True)
    )
    assert len(set(first.values())) == 3 and second == {name: first[name] for name in ("a", "c")}
    for made in drawn:
        pyplot.close(made)


@pytest.mark.parametrize("families", [(), ("a",), ("a", "b"), ("a", "b", "c", "d", "e")])
def test_the_figure_draws_every_translator(families, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figure, "save", lambda made, folder, name: drawn.append(made) or [])
    figure.draw(rows(*families), "mini-es", tmp_path)
    drawn[0].canvas.draw()  # a layout that does not fit warns, and a warning is an error here
    *answers, translation = [axes for axes in drawn[0].axes if axes.get_visible()]
    assert len(answers) == max(1, len(families))
    for axes, family in zip(answers, families, strict=False):
        assert len(families) == 1 or family in axes.get_title(loc="left")
        # EW and oracle EW: ours at each k; the human marker, both ends of its interval
        assert [len(line.get_xdata()) for line in axes.get_lines()] == [3, 1, 1, 1, 3, 1, 1, 1]
    if families:
        assert [text.get_text() for text in translation.get_legend().get_texts()] == list(families)
    else:
        assert "no translator" in answers[0].texts[0].get_text() and "no translator" in translation.texts[0].get_text()
    assert all(axes.get_position().width > 0.3 for axes in (*answers, translation))
    pyplot.close(drawn[0])
