"""The log of a server, bounded: at most LINES a minute, each of LONGEST characters at most."""

from __future__ import annotations

import logging
import sys
import time

LINES = 60  # in a minute; further ones are counted, and the count is logged with the next line
LONGEST = 2_000  # characters of one message, a traceback's last ones
LOG = logging.getLogger("sqa_services.net")


class Bounded(logging.Handler):
    """Writes to stderr."""

    def __init__(self, lines: int = LINES) -> None:
        super().__init__()
        self._lines, self._minute, self._said, self._left_out = lines, 0, 0, 0

    def emit(self, record: logging.LogRecord) -> None:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            if self._left_out:
                print(f"sqa: {self._left_out} messages were left out", file=sys.stderr, flush=True)
            self._minute, self._said, self._left_out = minute, 0, 0
        if self._said >= self._lines:
            self._left_out += 1
            return
        self._said += 1
        print(self._text(record), file=sys.stderr, flush=True)

    def _text(self, record: logging.LogRecord) -> str:
        """The message without line ends; what failed on the way behind it, as far as there is room."""
        text = " ".join(record.getMessage().split())[:LONGEST]
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)[-LONGEST:]
        return text if text.startswith("sqa: ") else f"sqa: {text}"


def bound_logs() -> None:
    """Let this process's servers say what they say through one bounded handler."""
    handler = Bounded()
    for name in ("sqa_services.net", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)
