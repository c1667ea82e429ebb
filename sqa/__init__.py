"""Simultaneous translation evaluated by question answering (Han, Carpuat and Boyd-Graber, EMNLP 2022).

    sqa.run("xqb_es_wait6_bm25", k=9)                       a run, its scores, steps and errors
    sqa.load("runs/x")                                      one that is finished
    sqa.compare("runs/x", "runs/y")                         two, paired over questions
    sqa.Experiment(translators=[...], guessers=[...]).run()   many, as one table and one figure

What these need is imported on first use: docs/python.md.

`import sqa` also makes the project's other packages importable: `smt`, `guessers`, `buzzers`, `experiments`.  They lie
beside `sqa` in the repository, and below it (`sqa/bundled`) in an installed package, so that no such general name is
at the top of site-packages.  In a process that has already imported another package of such a name (the Surrogate
Modeling Toolbox is an `smt` too), `import sqa` raises an ImportError that names it.
"""

import sys as _sys
from importlib import import_module as _import_module
from importlib.machinery import ModuleSpec as _ModuleSpec
from importlib.util import spec_from_file_location as _spec_from_file_location
from pathlib import Path as _Path

__version__ = "0.2.0"
_LAZY = {"run": "sqa.run", **dict.fromkeys(("Experiment", "Results", "Run", "Table", "compare", "load"), "sqa.api")}
_ROOMS = ("smt", "guessers", "buzzers", "experiments")
_PACKAGE = _Path(__file__).parent
_HOME = _PACKAGE / "bundled" if (_PACKAGE / "bundled").is_dir() else _PACKAGE.parent


class _Rooms:
    """A finder of the four packages."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> _ModuleSpec | None:
        """The spec of one of the four where it is installed; None for anything else, which other finders know."""
        start = _HOME / name / "__init__.py"
        if name not in _ROOMS or not start.is_file():
            return None
        return _spec_from_file_location(name, start, submodule_search_locations=[str(start.parent)])


def _open_rooms() -> None:
    for name in _ROOMS:
        folders = [_Path(folder).resolve() for folder in getattr(_sys.modules.get(name), "__path__", ())]
        if folders and (_HOME / name).resolve() not in folders:
            other = f"another package called {name!r} ({folders[0]}) is imported in this process"
            raise ImportError(f"{other}, and sqa has one of that name; use them in two processes")
    _sys.meta_path.insert(0, _Rooms())


_open_rooms()


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'sqa' has no attribute {name!r}")
    module = _import_module(_LAZY[name])
    return module if name == "run" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
