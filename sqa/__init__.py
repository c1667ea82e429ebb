"""Simultaneous translation evaluated by question answering (Han, Carpuat and Boyd-Graber, EMNLP 2022).

    sqa.run("xqb_es_wait6_bm25", k=9)                         run a config: scores, steps and errors
    sqa.load("runs/x")                                        read a finished run
    sqa.compare("runs/x", "runs/y")                           compare two runs, paired over questions
    sqa.Experiment(translators=[...], guessers=[...]).run()   make many runs: one table and one figure

The names are imported on first use.  Tutorial: docs/python.md; reference: docs/api.md.
"""

from importlib import import_module as _import_module

__version__ = "1.0.0"
__all__ = ["Experiment", "Results", "Run", "Table", "compare", "load", "run"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'sqa' has no attribute {name!r}")
    return getattr(_import_module("sqa.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
