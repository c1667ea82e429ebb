"""Simultaneous translation evaluated by question answering (Han, Carpuat and Boyd-Graber, EMNLP 2022).

    sqa.run("xqb_es_wait6_bm25", k=9)                         run a config: scores, steps and errors
    sqa.load("runs/x")                                        read a finished run
    sqa.compare("runs/x", "runs/y")                           compare two runs, paired over questions
    sqa.Experiment(translators=[...], guessers=[...]).run()   make many runs: one table and one figure

The names are imported on first use.  Tutorial: docs/python.md; reference: docs/api.md.
"""

from sqa.core import exports

__version__ = "1.0.0"
__getattr__, __dir__, __all__ = exports(__name__, __file__)
