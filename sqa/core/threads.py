"""How many threads the libraries below take: one for small models, all processors for large ones.

Networks of a few million weights are slower on many threads than on one, and on a busy machine many times slower: a
thread that waits for a processor holds up all others.  Whoever sets OMP_NUM_THREADS has decided.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, MutableMapping
from pathlib import Path

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # read when numpy and torch are loaded
OURS = "SQA_SET_THREADS"  # names the number that was set here, so that it is not taken for the user's
# Parts whose model may be large, or is not known here; all others of the registry run best on one thread.
LARGE = frozenset(
    {
        "causal-lm",
        "llm",
        "e5",
        "pretrained",
        "ctranslate2",
        "command",
        "simuleval",
        "bert",
        "comet",
        "bleurt",
        "bertscore",
    }
)
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # "200000 100000": two processors' worth; "max 100000": no limit


def usable(quota: Path = QUOTA) -> int:
    """Processors that this process may use: those it is bound to, and no more than its share of time."""
    bound = len(os.sched_getaffinity(0))
    try:
        share, period = quota.read_text(encoding="ascii").split()
        return bound if share == "max" else max(1, min(bound, int(share) // int(period)))
    except (OSError, ValueError):
        return bound


def set_for(parts: Iterable[str], environment: MutableMapping[str, str] = os.environ) -> int | None:
    """Set the number of threads for parts of these names ("mine.py:build": one's own) and return it.

    None where the user has set it.  Works best before numpy and torch are loaded; a torch that is loaded is told.
    """
    given = environment.get(VARIABLES[0])
    if given is not None and given != environment.get(OURS):
        return None
    number = usable() if any(part in LARGE or ":" in part for part in parts) else 1
    for variable in VARIABLES:
        if environment.get(variable) in (None, environment.get(OURS)):
            environment[variable] = str(number)
    environment[OURS] = str(number)
    loaded = sys.modules.get("torch")
    if loaded is not None:
        loaded.set_num_threads(number)
    return number
