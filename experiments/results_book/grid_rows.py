"""Rows of a grid of runs: every translator at every k, answered by every contestant, one row per metric."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments import grid
from experiments.grid import AblationConfig
from experiments.results_book.item import Item, dataset_digests, digest_of, model_digests
from experiments.results_book.ledger import Row
from sqa.api.experiment import COLUMNS, Cell, Results
from sqa.core.types import Floats
from sqa.pipeline.config import load


def measure(config_path: Path, runs: Path) -> Iterable[Row]:
    """Return the rows of every cell of a grid's config; missing runs are computed."""
    return finished(config_path, runs).frame.rows


def finished(config_path: Path, runs: Path, wanted: Callable[[Cell], bool] = lambda _: True) -> Results:
    """Return the wanted cells of a grid; missing runs are computed."""
    return grid.finished(load(config_path, AblationConfig), runs, wanted)


def inputs(config_path: Path) -> dict[str, str]:
    """Return digests of the config, of the models that it names, and of its data sets."""
    config = load(config_path, AblationConfig)
    digests = {f"config {config_path.name}": digest_of(replace(config, workers=None))}  # `workers` does not matter
    return digests | model_digests(config) | dataset_digests(config.datasets)


def values_of(
    metrics: tuple[str, ...], wanted: Callable[[Cell], bool]
) -> Callable[[Path, Path], dict[tuple[str, ...], Floats]]:
    """Return a function of (config, runs) that returns the statistics of `metrics` for the wanted cells of a grid."""

    def tables(config: Path, runs: Path) -> dict[tuple[str, ...], Floats]:
        grid = finished(config, runs, wanted)
        return {(*one.cell.key, name): one.stats[name] for one in grid for name in metrics if name in one.stats}

    return tables


def of_grid(
    name: str,
    shows: str,
    *,
    config: str = "ablation.yaml",
    columns: tuple[str, ...] = COLUMNS,
    measure: Callable[[Path, Path], Iterable[Row]] = measure,
    **options: Any,
) -> Item:
    """Return an item that is measured on the runs of a grid and has the inputs of these runs."""
    return Item(name, shows, config, columns, measure, inputs, **options)
