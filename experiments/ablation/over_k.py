"""Figure 3 and its claims: expected wins, accuracy, BLEU and lag over k, on real questions.   make reproduce

Claim (Han, Carpuat and Boyd-Graber 2022, Section 5): BLEU only grows with k and flattens, while expected wins rise,
peak and fall; oracle expected wins peak earlier; full input has the better BLEU and the worse expected wins.
"""

from __future__ import annotations

from pathlib import Path

from experiments.ablation.figure import draw
from experiments.ablation.report import write_report, write_table
from experiments.ablation.seeds import write_seeds
from experiments.contestants import VERDICTS, write_verdicts
from experiments.grid import AblationConfig, cells, run_cells, trained, usable
from experiments.verdicts import judge
from sqa import metrics as metric_names
from sqa.run.config import load


def main(config_path: Path, runs: Path) -> None:
    """`sqa ablation CONFIG`: run everything that the store lacks, write table, figures and report, print the claims."""
    config = load(config_path, AblationConfig)
    metric_names.build(config.metrics)
    datasets, models = usable(config), trained(runs, config.sweeps, config.k)
    rows = run_cells(list(cells(config, datasets, models)), config, runs)
    folder = runs / config.name
    folder.mkdir(parents=True, exist_ok=True)
    verdicts = judge([row for row in rows if row.cell.seed is None], config.resamples, config.seed)
    table = write_table(rows, folder / "table.tsv")
    figures = [path for dataset in dict.fromkeys(row.cell.dataset for row in rows)
               for path in draw(rows, dataset, folder)]  # fmt: skip
    report = write_report(rows, verdicts, figures, folder / "report.md")
    seeds = write_seeds(rows, folder)
    print("\t".join(VERDICTS))
    for verdict in verdicts:
        print("\t".join(verdict.cells()))
    judged = write_verdicts(verdicts, [], folder / "verdicts.tsv")
    for path in (table, judged, *figures, report, *seeds):
        print(path)
