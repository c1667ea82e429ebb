"""What a translator of a table or a grid needs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sqa.core.packages import lacking


@dataclass(frozen=True, slots=True)
class Needs:
    """A program, package or folder without which a translator is left out; null = none."""

    program: str | None = None  # on the PATH
    package: str | None = None  # of Python
    folder: Path | None = None  # relative to where the command is started
    hint: str | None = None  # how to get it, for the line that says what is missing

    def missing(self) -> str:
        """What is missing, in words; "" where nothing is."""
        problem = self._missing()
        return f"{problem} ({self.hint})" if problem and self.hint else problem

    def _missing(self) -> str:
        if self.program is not None and shutil.which(self.program) is None:
            return f"the program {self.program} is not installed"
        if self.package is not None and find_spec(self.package.partition(".")[0]) is None:
            return str(lacking(self.package, "it"))
        if self.folder is not None and not self.folder.is_dir():
            return f"there is no folder {self.folder}"
        return ""
