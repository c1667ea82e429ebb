"""Simultaneous translation evaluated by question answering (Han, Carpuat and Boyd-Graber, EMNLP 2022).

    sqa.run("xqb_es_wait6_bm25", k=9)                       a run, its scores, steps and errors
    sqa.load("runs/x")                                      a finished run
    sqa.compare("runs/x", "runs/y")                         two runs, paired over questions
    sqa.Experiment(translators=[...], guessers=[...]).run()   many runs, as one table and one figure

Other modules are imported on first use (docs/python.md).
"""

from importlib import import_module as _import_module

__version__ = "0.2.0"
_LAZY = ("Experiment", "Results", "Run", "Table", "compare", "load", "run")


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'sqa' has no attribute {name!r}")
    return getattr(_import_module("sqa.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
