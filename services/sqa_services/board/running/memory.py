"""How much memory this process holds at most while a block of code runs."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """A context; afterwards `peak` holds bytes, what was held before included, or None where Linux does not tell."""

    def __init__(self) -> None:
        self.peak: int | None = None

    def __enter__(self) -> PeakMemory:
        try:
            _CLEAR.write_text("5")  # the peak starts again from what is held now (proc(5))
            self._measuring = True
        except OSError:
            self._measuring = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._measuring:
            match = re.search(r"^VmHWM:\s*(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
            self.peak = int(match[1]) * 1024 if match else None
