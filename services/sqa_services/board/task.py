"""Tasks: formats of examples and responses, metrics, and running of registered models."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqa.core import ConfigError, DataError, NoKeys, Registry, SqaError
from sqa_services.board.metrics import JOB, Job, meta_of, metric

Example = Mapping[str, Any]  # one line of a data set's file
Response = Mapping[str, Any]  # a model's response to one example

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")  # names of data sets, models and tasks
KINDS = ("config", "submission")  # kinds of models
SHOWN = 5  # maximum number of problems listed in a message


def joined(problems: Sequence[str]) -> str:
    """Return the first problems on one line, and the number of further ones."""
    more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    return "; ".join(problems[:SHOWN]) + more


class Taken(ConfigError):
    """Raised for a name that is already in use."""


class TooMany(SqaError):
    """Raised for a submission beyond the daily limit."""


class NotFound(DataError):
    """Raised if a task, data set, model or evaluation does not exist."""


@dataclass(frozen=True)
class Task(ABC):
    """A task of the board; subclasses define its examples, responses and models.

    A response is a model's output for one example.  A prediction is the part of a response that metrics use.
    """

    code: str
    input_keys: tuple[str, ...]  # keys of an example that a model receives; the first is the id
    eval_metrics: tuple[str, ...]
    perf_metric: str  # the sorting metric
    delta_metrics: tuple[str, ...] = ()  # prefixes of perturbed copies
    default_weights: Mapping[str, float] = field(default_factory=dict)  # weights of the Dynascore, all positive

    @abstractmethod
    def load(self, source: str) -> list[Example]:
        """Return the examples of a source.  Raises DataError if they do not fit the task."""

    @abstractmethod
    def perturb(self, examples: Sequence[Example], kinds: Sequence[str], seed: int) -> dict[str, list[Example]]:
        """Return perturbed copies by prefix; a copy has the keys `input_id` (of its original) and `transform`."""

    @abstractmethod
    def label(self, example: Example) -> dict[str, Any]:
        """Return {"id", "answer", "tags"}; a perturbed copy also has "input_id" and "transform"."""

    @abstractmethod
    def prediction(self, response: Response) -> Any:
        """Return the prediction of a response."""

    @abstractmethod
    def answer(self, prediction: Any) -> str:
        """Return the answer in a prediction, which should be the same on perturbed copies."""

    def answer_at(self, prediction: Any) -> Any:  # noqa: B027
        """Return an answer and its position as JSON values, by which copies are found, or None to find no copies."""

    @abstractmethod
    def check_model(self, kind: str, model: bytes) -> None:
        """Raise ConfigError or DataError if a file cannot be a model of this kind."""

    @abstractmethod
    def respond(self, kind: str, model: bytes, examples: Sequence[Example], work: Path) -> tuple[list[Response], Job]:
        """Run a model on examples; the folder `work` keeps the results of a killed run."""

    def verify_response(self, response: Response, example: Example) -> None:  # noqa: B027
        """Raise DataError if a response does not fit its example."""

    def __post_init__(self) -> None:
        check_name(self.code, "task")
        if self.perf_metric not in self.eval_metrics:
            raise ConfigError(f"task {self.code}: {self.perf_metric!r} is not among its eval_metrics")
        for name in self.eval_metrics:
            metric(name)
        for name in self.metrics:
            meta_of(name)

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics of a leaderboard."""
        return (*self.eval_metrics, *self.delta_metrics, *JOB)

    def inputs(self, example: Example) -> dict[str, Any]:
        """Return the part of an example that a model receives."""
        return {key: example[key] for key in self.input_keys}


_HOME = "sqa_services.board.sqa_task"
TASKS = Registry("board task", {"sqa-es": f"{_HOME}:spanish", "sqa-pl": f"{_HOME}:polish"})


def load_tasks(own: Sequence[str] = (), metrics: Sequence[str] = ()) -> dict[str, Task]:
    """Return a dict of tasks by code: registered ones, and those of the user.

    Each task also computes the evaluation metrics in `metrics`.
    """
    tasks = (replace(task, eval_metrics=(*task.eval_metrics, *metrics)) for task in map(_make, (*TASKS.names(), *own)))
    return {task.code: task for task in tasks}


def _make(target: str) -> Task:
    task = TASKS.build(target, NoKeys())
    if not isinstance(task, Task):
        raise ConfigError(f"task {target!r}: returned a {type(task).__name__}, not a Task")
    return task


def check_name(name: str, what: str) -> None:
    """Raise ConfigError unless a name consists of lower-case letters, digits and dashes, as in Dynabench."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"{what}: a name is 1 to 63 lower-case letters, digits and dashes, got {name[:80]!r}")
