"""A worker in a process beside the server: begun again if it dies, ended with the server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from sqa_services.board.board import Board, BoardConfig

AGAIN_SECONDS = 5.0  # from the death of a worker to the next one
END_SECONDS = 10.0  # for a worker to end


@contextmanager
def beside(board: Board) -> Iterator[None]:
    """Until the block ends a worker runs; it says on stderr what it does."""
    stop = Event()
    watcher = Thread(target=_watch, args=(_command(board.config), stop), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def _command(config: BoardConfig) -> list[str]:
    options = ["--board", str(config.folder.absolute())]
    options += [] if config.db is None else ["--db", config.db]
    options += [] if config.files is None else ["--files", config.files]
    for task in config.tasks:
        options += ["--task", task]
    return [sys.executable, "-m", "sqa", "board", *options, "work", "--beside", str(os.getpid())]


def _watch(command: list[str], stop: Event) -> None:
    while not stop.is_set():
        # a new session: ^C is for the server, which then ends its worker
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        while process.poll() is None and not stop.wait(0.2):
            pass
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        else:
            stop.wait(AGAIN_SECONDS)
