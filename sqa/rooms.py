"""The project's other packages by their names: `smt`, `guessers`, `buzzers`, `experiments`.

They lie beside `sqa` in the repository, and below it (`sqa/bundled`) in an installed package, so that nothing so
generic stands at the top of site-packages.  In a process that imports `sqa` these four names mean the project's; in
any other they mean what they meant before.  A process that has already imported another package of such a name (the
Surrogate Modeling Toolbox is an `smt` too) cannot have both: `import sqa` says so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

NAMES = ("smt", "guessers", "buzzers", "experiments")


class Rooms:
    """A finder of the four packages in one folder."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Of one of the four; of anything else, and where it is not there, None: others look for it."""
        start = self.home / name / "__init__.py"
        if name not in NAMES or not start.is_file():
            return None
        return spec_from_file_location(name, start, submodule_search_locations=[str(start.parent)])


def open_rooms(package: Path) -> None:
    """Make the four importable from where they lie with the package `sqa`.  One of another origin: ImportError."""
    home = package / "bundled" if (package / "bundled").is_dir() else package.parent
    if any(isinstance(finder, Rooms) for finder in sys.meta_path):
        return
    for name in NAMES:
        places = [Path(place).resolve() for place in getattr(sys.modules.get(name), "__path__", ())]
        if places and (home / name).resolve() not in places:
            raise ImportError(
                f"another package called {name!r} ({places[0]}) is imported in this process, and sqa has one of that "
                "name; use them in two processes"
            )
    sys.meta_path.insert(0, Rooms(home))
