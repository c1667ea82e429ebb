"""What a notebook wants: `sqa.run`, `sqa.load`, `sqa.Experiment` (docs/python.md)."""

from sqa.api.experiment import Experiment, Results, Table
from sqa.api.runs import Run, load, run

__all__ = ["Experiment", "Results", "Run", "Table", "load", "run"]
