"""The Python interface for notebooks: `sqa.run`, `sqa.load`, `sqa.compare`, `sqa.Experiment` (docs/python.md)."""

from sqa.api.experiment import Entry, Experiment, Results
from sqa.api.runs import Run, compare, load, run
from sqa.results import Table

__all__ = ["Entry", "Experiment", "Results", "Run", "Table", "compare", "load", "run"]
