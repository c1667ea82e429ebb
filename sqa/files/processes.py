"""Worker processes that end with their parent process."""

import os
from multiprocessing import parent_process
from multiprocessing.connection import wait
from threading import Thread


def end_with_parent() -> None:
    """End this process when its parent ends, even by kill -9; call it when a worker starts.

    The parent holds one end of a pipe, which the system closes when the parent ends.  Nothing happens in a process
    that `multiprocessing` did not start.  Files are written atomically, so ending at any moment does not corrupt them.
    """
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_after, args=(parent.sentinel,), name="end-with-parent", daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)  # the queue to a dead parent would block any cleaner exit
