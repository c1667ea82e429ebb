"""Parts, commands and items that other packages bring.

A plugin is one entry point of the group `sqa`; importing the module that it names registers what it brings:

    [project.entry-points.sqa]
    mine = "my_package.parts"          # calls GUESSERS.register("mine", "my_package.guesser:build") and the like

Plugins are imported once: when a name is requested that no registry has, or when all names are listed.  A plugin that
cannot be imported is left out, with a line on stderr.
"""

from __future__ import annotations

import sys
from functools import cache

GROUP = "sqa"


@cache
def load() -> tuple[str, ...]:
    """Import every plugin that is installed; the names of those that were left out."""
    from importlib.metadata import entry_points  # takes longer to import than all the rest of this room

    failed = []
    for point in sorted(entry_points(group=GROUP)):
        try:
            point.load()
        except Exception as error:  # other people's code may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            print(f"sqa: the plugin {point.name} ({point.value}) is left out: {reason}", file=sys.stderr)
            failed.append(point.name)
    return tuple(failed)
