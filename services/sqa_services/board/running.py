"""Configs as models: a run up to its buzzes, in this process or on the workers of a scheduler."""

import re
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqa.core.trace import QuestionTrace
from sqa.core.types import Question
from sqa.files.store import Stage, Store, Traces, blocks_of
from sqa.pipeline import engine
from sqa.pipeline.config import RunConfig
from sqa.pipeline.parts import Parts
from sqa.pipeline.scheduler import Scheduler, current
from sqa_services.board.metrics import Job

T = TypeVar("T")
UNTIL = "buzz"  # the board computes the scores itself
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


# ------------------------------------------------------------------------------------------------- a run's config


def answer(config: RunConfig, questions: Sequence[Question], work: Path) -> tuple[Sequence[QuestionTrace], Job]:
    """Return the traces of a run, and its duration and memory; the store below `work` keeps finished stages.

    Inside `scheduled(...)` other processes compute the blocks, so duration and memory are unknown.
    """
    scheduler = current()
    if scheduler is not None:
        return _spread(scheduler, config, questions), Job(len(questions), None, None)
    measured, start = _peak_cleared(), time.perf_counter()
    result = engine.run(config, Store(work), questions=questions, until=UNTIL, progress=False)
    seconds, peak = time.perf_counter() - start, _peak() if measured else None
    blocks = len(blocks_of(result.questions, engine.BLOCK_SIZE))
    whole = all(computed == blocks for computed in result.made.values())  # the run used no stored block
    return result.traces, Job(len(questions), seconds if whole else None, peak)


def _spread(scheduler: Scheduler, config: RunConfig, questions: Sequence[Question]) -> Traces:
    """Return traces computed by a scheduler's workers, which read the questions from the store."""
    from sqa.pipeline import spread

    given = scheduler.store.keep(questions)
    job = spread.Job(config, partial(_stages, config, given), UNTIL, given)
    [(_, stages)] = spread.spread([job], scheduler.store)
    return Traces(scheduler.store, blocks_of(questions, engine.BLOCK_SIZE), stages)


def _stages(config: RunConfig, given: str, store: Store, _: Parts) -> dict[str, Stage]:
    """Return the stages of a run; a worker calls this function when all blocks are in the store."""
    from sqa.pipeline.blocks import workshop_of

    return {stage.name: stage for stage in workshop_of(store).plan(config, UNTIL, given).stages}


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
