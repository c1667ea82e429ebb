"""Helpers for servers in separate processes: a free port, an environment with this checkout, waiting, kill -9."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable

import requests

from sqa.core import ROOT

PATHS = os.pathsep.join(str(ROOT / part) for part in ("", "tests", "services", "services/tests"))
ENVIRONMENT = os.environ | {"PYTHONPATH": PATHS, "OMP_NUM_THREADS": "1"}


def free_port() -> int:
    """Return a loopback port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_until(holds: Callable[[], object], process: subprocess.Popen | None = None) -> None:
    """Wait up to a minute until `holds` returns a true value.

    A connection error counts as false. The function fails if `process` ends.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process is None or process.poll() is None, "the process ended"
        try:
            if holds():
                return
        except requests.RequestException:
            pass
        time.sleep(0.02)
    raise AssertionError("the condition did not hold within a minute")


def listens(port: int) -> bool:
    """Return True if a server on the port responds; raises an exception of requests if the connection fails."""
    return requests.get(f"http://127.0.0.1:{port}/", timeout=30).status_code > 0


def kill(process: subprocess.Popen) -> None:
    """Kill (-9) the process group of a process that was started in a new session."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
