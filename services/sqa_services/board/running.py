"""Configs as models: a run up to its buzzes, with its duration and memory."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from sqa.core.trace import QuestionTrace
from sqa.core.types import Question
from sqa.files.store import Store, blocks_of
from sqa.pipeline import engine
from sqa.pipeline.config import RunConfig
from sqa_services.board.metrics import Job

UNTIL = "buzz"  # the board computes the scores itself
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def answer(config: RunConfig, questions: Sequence[Question], work: Path) -> tuple[Sequence[QuestionTrace], Job]:
    """Return the traces of a run, and its duration and memory; the store below `work` keeps finished stages."""
    measured, start = _peak_cleared(), time.perf_counter()
    result = engine.run(config, Store(work), questions=questions, until=UNTIL, progress=False)
    seconds, peak = time.perf_counter() - start, _peak() if measured else None
    blocks = len(blocks_of(result.questions, engine.BLOCK_SIZE))
    whole = all(computed == blocks for computed in result.made.values())  # the run used no stored block
    return result.traces, Job(len(questions), seconds if whole else None, peak)


def _peak_cleared() -> bool:
    """Reset the peak memory of this process (proc(5)); return False if Linux does not support it."""
    try:
        return bool(_CLEAR.write_text("5"))
    except OSError:
        return False


def _peak() -> int | None:
    """Return the peak memory in bytes since the reset, or None if Linux does not report it."""
    match = re.search(r"^VmHWM:\s*(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    return int(match[1]) * 1024 if match else None
