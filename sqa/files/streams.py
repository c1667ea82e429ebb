"""Encoding of standard streams and of child programs: UTF-8 in every locale."""

import os
import sys
from io import TextIOWrapper

CHILD = {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}  # a child program in Python then reads and writes UTF-8


def use_utf8() -> None:
    """Read and write UTF-8 on the standard streams of this process, and in the child programs that it starts."""
    os.environ.update(CHILD)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")


def child_environment() -> dict[str, str]:
    """Return the environment for a child program, which reads and writes UTF-8."""
    return {**os.environ, **CHILD}
