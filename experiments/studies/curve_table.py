"""EW, oracle EW and stable EW of runs under every curve, side by side.

    sqa curve table configs/xqb_es_wait6_bm25.yaml --curve curves/cubic.json --curve curves/monotone.json

Question: how much of a system's EW, and of the distance between two systems, is the curve's?  Translations, guesses
and buzzes that the store holds are not made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sqa.core.errors import ConfigError, NotComputable
from sqa.core.significance import bootstrap_many
from sqa.files.store import Store
from sqa.metrics.curve import CURVES, read_curve
from sqa.run.config import RunConfig, load_run
from sqa.run.folder import tsv
from sqa.run.parts import Parts
from sqa.run.pipeline import RunResult
from sqa.run.pipeline import run as run_stages

RESAMPLES = 1000


def main(configs: Sequence[Path], curves: Sequence[Path], runs: Path) -> None:
    """Print the table: a line per run and metric, a value with its 95% bootstrap interval per curve.

    A file's curve goes by the name that its signature has, cubic-... or monotone-...; the same curve in two files is
    there once.
    """
    if not configs:
        raise ConfigError("sqa curve table: give at least one run's config")
    loaded = [load_run(path) for path in configs]
    files = {read_curve(path).name: path for path in curves}
    store, parts = Store(runs), Parts()
    rows = [row for config in loaded for row in rows_of(run_stages(with_curves(config, files), store, parts=parts))]
    heads = [f"{name}{end}" for name in (*CURVES, *files) for end in ("", ".low", ".high")]
    print(tsv(("run", "metric", "n", *heads), rows), end="")


def with_curves(config: RunConfig, files: dict[str, Path]) -> RunConfig:
    """The run with EW, oracle EW and stable EW under each published curve and each of the files, and nothing else."""
    bases = ["oracle-ew", "stable-ew"] if config.buzzer is None else ["ew", "oracle-ew", "stable-ew"]
    variants = ["" if name == "qanta2018" else f"@{name}" for name in CURVES] + [f"@{path}" for path in files.values()]
    return replace(config, metrics=tuple(base + variant for base in bases for variant in variants))


def rows_of(result: RunResult) -> list[list[str]]:
    """The lines of one run.  A metric without a value (no guesser ran): NotComputable."""
    for refusal in result.refusals.values():
        raise NotComputable(refusal)
    stats = [result.stats[metric.name] for metric in result.metrics]
    rows: dict[str, list[str]] = {}
    for metric, i in zip(
        result.metrics, bootstrap_many(stats, result.metrics, RESAMPLES, result.config.seed), strict=True
    ):
        base = metric.name.partition("@")[0]
        row = rows.setdefault(base, [result.config.name, base, str(i.n)])
        row += [f"{x:.6f}" for x in (i.value, i.low, i.high)]
    return list(rows.values())
