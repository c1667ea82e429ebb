"""The config of a run as a model of the board: its stages up to the buzzes, here or on the workers of a scheduler."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from sqa.core.trace import QuestionTrace
from sqa.core.types import Question
from sqa.files.store import Stage, Store, Traces, blocks_of
from sqa.run import pipeline
from sqa.run.config import RunConfig
from sqa.run.parts import Parts
from sqa.run.scheduler import Scheduler, current
from sqa_services.board.metrics import Job

Response = Mapping[str, Any]
UNTIL = "buzz"  # the board scores by itself
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def answer(
    config: RunConfig, questions: Sequence[Question], work: Path, respond: Callable[[QuestionTrace], Response]
) -> tuple[list[Response], Job]:
    """`respond` of every trace, and how the run went; the store below `work` keeps what a killed run had made.

    Inside `scheduled(...)` the blocks are spread, and this process loads no model.  Time and memory of such a run tell
    nothing of the model: they are not known.
    """
    scheduler = current()
    if scheduler is not None:
        traces = _spread(scheduler, config, questions)
        return [respond(trace) for trace in traces], Job(len(questions), None, None)
    with PeakMemory() as memory:
        start = time.perf_counter()
        result = pipeline.run(config, Store(work), questions=questions, until=UNTIL, progress=False)
        seconds = time.perf_counter() - start
        responses = [respond(trace) for trace in result.traces]
    blocks = len(blocks_of(result.questions, pipeline.BLOCK_SIZE))
    whole = all(computed == blocks for computed in result.made.values())  # nothing was taken from the store
    return responses, Job(len(questions), seconds if whole else None, memory.peak)


def _spread(scheduler: Scheduler, config: RunConfig, questions: Sequence[Question]) -> Traces:
    """The traces, made by workers; these find the questions in the store, and know nothing of the board."""
    from sqa.run import spread

    given = scheduler.store.keep(questions)
    job = spread.Job(config, partial(_stages, config, given), UNTIL, given)
    [(_, stages)] = spread.spread(scheduler, [job], spread.PROCESSES)
    return Traces(scheduler.store, blocks_of(questions, pipeline.BLOCK_SIZE), stages)


def _stages(config: RunConfig, given: str, store: Store, _: Parts) -> dict[str, Stage]:
    """On a worker, when all blocks are in the store: where they lie."""
    from sqa.run.blocks import workshop_of

    return {stage.name: stage for stage in workshop_of(store).plan(config, UNTIL, given).stages}


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
