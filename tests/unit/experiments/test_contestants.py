"""Contestants of an ablation: names, unusual configs, errors, and worker processes."""

import pickle
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from refusals import refused
from tables import tables_of

from experiments.contestants import Contestant, names_of
from experiments.grid import AblationConfig, ablation_of, experiment
from experiments.paper.examples import ExamplesConfig
from experiments.paper.table4_systems import Table4Config
from experiments.paper.wait_k_runs import FigureConfig
from experiments.studies.question_sets import ReportConfig
from experiments.studies.translation_table import TableConfig
from guessers.retrieval.bm25 import Bm25Config
from sqa.core import ROOT, ConfigError, SqaError, TraceError
from sqa.core.paths import PACKAGES
from sqa.files import read_yaml
from sqa.pipeline import load
from tests.small_ablation import WAIT_K, changed

TABLES = tables_of(__file__)

BM25 = {"name": "bm25"}
MLP = {"name": "mlp", "model": "bm25"}


def one(guesser: dict = BM25, **buzzer: object) -> Contestant:
    return Contestant(guesser, {**MLP, **buzzer} if "name" not in buzzer else buzzer)


GRU, ORACLE = one({"name": "gru"}, model="gru"), one(name="oracle")


@pytest.mark.parametrize(
    ("contestants", "known", "names"),
    [
        ([one(), GRU], [], ["bm25", "gru"]),
        ([one(), ORACLE, GRU], [], ["bm25+mlp", "bm25+oracle", "gru"]),
        ([one(), one({"name": "bm25", "k1": 2.0}), ORACLE], [], ["bm25+mlp-*", "bm25+mlp-*", "bm25+oracle"]),
        ([ORACLE, one()], [one()], ["bm25+oracle", "bm25"]),  # a known name is kept and assigned to no other contestant
        ([ORACLE], [one()], ["bm25+oracle"]),
    ],
)
def test_contestants_have_the_shortest_unique_name(contestants, known, names):
    results = names_of(contestants, names_of(known))
    assert [re.sub(r"-[0-9a-f]{8}$", "-*", name) for name in results.values()] == names
    assert len(set(results.values())) == len(names)
    assert results == names_of(list(reversed(contestants)), names_of(known))  # independent of the order


def test_equal_contestants_are_refused():
    written_out = one({"name": "bm25", "k1": Bm25Config().k1})
    refused(ConfigError, r"contestants\[1\]: the same guesser and buzzer", names_of, [one(), written_out])
    refused(ConfigError, r"contestants\[1\].guesser.name: unknown", names_of, [one(), one({"name": "bn25"})])


def ablation(folder: Path, **changes: object) -> AblationConfig:
    return load(changed(ROOT / "configs" / "ablation.yaml", folder, **changes), AblationConfig)


def test_runs_have_the_listed_names(tmp_path):
    runs = [cell.config.name for cell in experiment(ablation(tmp_path), ["mini-es"], Path()).cells()]
    assert "ablation-mini-es-wait-k-6-bm25" in runs and "ablation-mini-es-reference-full-gru" in runs
    both = [{"guesser": BM25, "buzzer": buzzer} for buzzer in ({"name": "oracle"}, MLP)]
    results = experiment(ablation(tmp_path, translators=WAIT_K, contestants=both), ["mini-es"], Path()).cells()
    assert len({cell.config.name for cell in results}) == len(results) == 2 * 11
    assert {cell.contestant for cell in results} == {"bm25+oracle", "bm25+mlp"}


@pytest.mark.parametrize(("changes", "problem"), TABLES["invalid_ablations_are_refused"])
def test_invalid_ablations_are_refused(tmp_path, changes, problem):
    refused(ConfigError, re.escape(problem), ablation, tmp_path, **changes)


# ------------------------------------------------------------------------------------------------ between processes


RAISED = re.compile(r"^class (\w+)\((?:\w*Error|\w*Exception)\):", re.MULTILINE)


def exceptions() -> list[type[BaseException]]:
    """Return every exception class of the project's modules, without those that need a missing package."""
    results = []
    for package in ("sqa", "smt", "guessers", "buzzers", "experiments", "services/sqa_services"):
        home = (ROOT / package).parent
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in RAISED.findall(path.read_text(encoding="utf-8")):
                module = ".".join(path.relative_to(home).with_suffix("").parts)
                try:
                    results.append(getattr(import_module(module), name))
                except ModuleNotFoundError as error:  # of an optional package
                    assert error.name not in PACKAGES
    return results


MADE = TABLES["made"]


def test_every_exception_can_be_pickled():
    kinds = exceptions()
    assert {"SqaError", "ConfigError", "TraceError", "ChecksumError", "Halted"} <= {kind.__name__ for kind in kinds}
    for kind in kinds:
        arguments = MADE.get(kind.__name__, ("what is wrong",))
        error = kind(*arguments[: 1 if kind.__module__.endswith("net.server") else None])
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    error = pickle.loads(pickle.dumps(ConfigError(["a: one", "b: two"])))
    assert error.problems == ("a: one", "b: two") and error.exit_code == 2
    assert issubclass(TraceError, SqaError)


SHIPPED = {"ablation": AblationConfig, "figure9": AblationConfig}
SHIPPED |= dict.fromkeys(("figure6", "figure7", "figure10"), FigureConfig)
SHIPPED |= dict.fromkeys(("guessers", "table3"), ReportConfig)
SHIPPED |= {"table4": Table4Config, "examples": ExamplesConfig}
SHIPPED |= {"translation_table": TableConfig}


@pytest.mark.parametrize("name", SHIPPED)
def test_bundled_configs_load_and_name_their_limit(name):
    path = ROOT / "configs" / f"{name}.yaml"
    assert load(path, SHIPPED[name]).limit is None and "limit" in read_yaml(path)


def test_limit_of_a_figure_replaces_that_of_the_ablation():
    config = load(ROOT / "configs" / "figure6.yaml", FigureConfig)
    limits = [ablation_of(replace(config, limit=limit), ROOT / "configs").limit for limit in (None, 3)]
    assert limits == [None, 3]
