"""What a notebook wants: `sqa.run`, `sqa.load`, `sqa.compare`, `sqa.Experiment` (docs/python.md)."""

from sqa.api.experiment import Experiment, Results, Table
from sqa.api.runs import Run, compare, load, run

__all__ = ["Experiment", "Results", "Run", "Table", "compare", "load", "run"]
