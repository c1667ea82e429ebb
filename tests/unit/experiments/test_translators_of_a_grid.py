"""Each translator of a grid has rows, or a message says why it has none."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused
from tables import tables_of

from experiments.contestants import Needs
from experiments.grid import AblationConfig, System, experiment, following, usable
from experiments.paper.figure3 import axis_of_k
from sqa.core import ConfigError, DataError

TABLES = tables_of(__file__)

CAT = {"name": "command", "command": ["cat"]}
BM25 = {"guesser": {"name": "bm25"}, "buzzer": {"name": "mlp", "model": "bm25"}}


def config(*systems: System, **changes: object) -> AblationConfig:
    from experiments.contestants import Contestant

    values = {"name": "grid", "datasets": (), "fallback": ("mini-es",), "k": (1, 3, "full"), "translators": systems}
    values |= {"contestants": (Contestant(**BM25),), "metrics": ("ew", "oracle-ew", "bleu", "dal")}
    return AblationConfig(**(values | changes))


def test_translators_have_rows_at_every_k():
    grid = config(System("cat", "es", CAT), System("slow cat", "es", CAT, (6, "full")), System("polish", "pl", CAT))
    results = [
        (cell.family, cell.k) for cell in experiment(grid, ["mini-es"], Path()).cells() if cell.family != "reference"
    ]
    assert results == [("cat", 1), ("cat", 3), ("cat", "full"), ("slow cat", 6), ("slow cat", "full")]
    assert len({cell.config.name for cell in experiment(grid, ["mini-es", "mini-pl"], Path()).cells()}) == 5 + 3 + 4


def test_language_comes_from_questions_not_file_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "sub" / "es.jsonl", ["pl", "pl"])
    name = "sub/es.jsonl"
    grid = config(System("cat", "es", CAT), System("dog", "pl", CAT), datasets=(name,))
    results = experiment(grid, usable(grid), Path()).cells()
    assert {cell.family for cell in results} == {"dog", "reference"} and {cell.dataset for cell in results} == {name}
    assert len({cell.config.name for cell in results}) == len(results)
    expected = ["cat: no rows, the questions are in pl and it is for es"]
    assert capsys.readouterr().err.splitlines()[1:] == expected


def test_language_may_have_several_codes(tmp_path, monkeypatch, capsys):
    """The codes spa and es name one language in the config and in questions, even within one file."""
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "mine.jsonl", ["spa", "es"])
    systems = (System(name, code, CAT) for name, code in (("cat", "es"), ("cow", "spa"), ("dog", "pol")))
    grid = config(*systems, datasets=("mine.jsonl",))
    assert {cell.family for cell in experiment(grid, usable(grid), Path()).cells()} == {"cat", "cow", "reference"}
    assert "dog: no rows, the questions are in es and it is for pl" in capsys.readouterr().err


def test_mixed_languages_and_equal_names_are_refused(tmp_path):
    _write(tmp_path / "both.jsonl", ["es", "pl"])
    refused(DataError, "questions in es and pl", usable, config(datasets=(str(tmp_path / "both.jsonl"),)))
    refused(ConfigError, "datasets: two are called both.jsonl", config, datasets=("a/both.jsonl", "b/both.jsonl"))


def _write(path: Path, languages: Sequence[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = [
        json.dumps({"id": str(i), "language": language, "page": "Spain", "source": ["a b"], "reference": ["c d"]})
        for i, language in enumerate(languages)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")


def test_training_runs_of_a_translator_have_separate_rows():
    grid = config(System("cat", "es", CAT, (3,), seed=0), System("cat", "es", CAT, (3,), seed=1))
    results = [cell for cell in experiment(grid, ["mini-es"], Path()).cells() if cell.family == "cat"]
    assert [cell.translator for cell in results] == ["cat, seed 0", "cat, seed 1"]
    assert len({cell.config.name for cell in results}) == 2


def test_missing_translator_is_skipped_with_a_message(capsys):
    needs = Needs(package="no_such_package", hint="make lm")
    results = experiment(config(System("far", "es", CAT, needs=needs)), ["mini-es"], Path()).cells()
    assert {cell.family for cell in results} == {"reference"}
    text = "far: left out, it needs the Python package no_such_package, which is not installed (make lm)\n"
    assert capsys.readouterr().err == text


@pytest.mark.parametrize(
    ("systems", "changes", "message"),
    [
        ((System("a", "es", CAT), System("a", "es", CAT)), {}, "translators: 'a' occurs twice for es"),
        ((System("a", "es", CAT, seed=1), System("a", "es", CAT, seed=1)), {}, "'a,-seed-1' occurs twice"),
        ((System("reference", "es", CAT),), {}, "'reference' occurs twice"),
        ((System("a b", "es", CAT), System("a-b", "es", CAT)), {}, "'a-b' occurs twice"),
    ],
)
def test_ambiguous_names_are_refused(systems, changes, message):
    refused(ConfigError, message, config, *systems, **changes)


@pytest.mark.parametrize(("values", "message"), TABLES["invalid_entries_are_refused"])
def test_invalid_entries_are_refused(values, message):
    values |= {"k": ()} if "k" in values else {}
    refused(ConfigError, message, System, **{"label": "a", "language": "es", "translator": CAT} | values)


def test_given_k_restricts_the_own_k_of_translators(capsys):
    grid = config(System("a", "es", CAT), System("b", "es", CAT, (2, 3, 6)), System("c", "es", CAT, (2,)))
    assert [system.k for system in following(replace(grid, k=(3, "full")), ["k=3,full"]).translators] == [None, (3,)]
    assert "c, es: left out, it has none of the given k" in capsys.readouterr().err
    assert following(grid, ["limit=3"]).translators == grid.translators


def test_axis_names_translators_that_count_pieces():
    systems = [System("a", "es", CAT), System("b", "es", {"name": "waitk", "model": "es-en", "unit": "piece"})]
    assert "; pieces of words for b\n" in axis_of_k(systems) and "pieces" not in axis_of_k(systems[:1])
