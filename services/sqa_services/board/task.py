"""What a task is: the form of examples and answers, its metrics, and how a registered model is made to answer."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from sqa.core.errors import ConfigError, DataError
from sqa.core.trace import QuestionTrace
from sqa_services.board.metrics import EVAL, Job, meta_of

Example = Mapping[str, Any]  # one line of a data set's file
Response = Mapping[str, Any]  # what a model answers to one example

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")  # of data sets, models and tasks
KINDS = ("config", "submission", "session")  # of models
RUN_HERE = ("config", "session")  # kinds whose answers the board made itself; those of the others are as owners say
PHASES = ("open", "closed", "hidden")  # of data sets: answers may be seen; inputs only; nothing leaves
SHOWN = 5  # problems of a submission or of a response listed on one line


def joined(problems: Sequence[str]) -> str:
    """The first problems on one line, and the number of the others."""
    more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    return "; ".join(problems[:SHOWN]) + more


class Unscorable(DataError):
    """A model that can never be scored, with every reason."""

    def __init__(self, what: str, reasons: Sequence[str], remedy: str = "") -> None:
        self.what, self.reasons, self.remedy = what, tuple(reasons), remedy
        super().__init__(f"{what}: {joined(self.reasons)}{'; ' if remedy else ''}{remedy}")

    def __reduce__(self) -> tuple[type, tuple[str, tuple[str, ...], str]]:
        """For the way between two processes."""
        return type(self), (self.what, self.reasons, self.remedy)


class NotFound(DataError):
    """The board has no such task, data set, model, view or evaluation."""


class DataSet(Protocol):
    """A kind of data set, as a Dynabench data set class: how examples come in, how labels and answers are read."""

    def load(self, source: str, seed: int, perturbations: Sequence[str]) -> dict[str, list[Example]]:
        """prefix -> examples: "" the data themselves, others their perturbed copies (with `input_id`, `transform`)."""

    def label_field_converter(self, example: Example) -> dict[str, Any]:
        """{"id", "answer", "tags"}; of a perturbed copy also "input_id" and "transform"."""

    def pred_field_converter(self, example: Example, response: Response) -> dict[str, Any]:
        """{"id", "pred"}."""


# kind, file and examples of a model, and a folder that keeps what a killed run had computed -> its answers
Respond = Callable[[str, bytes, Sequence[Example], Path], tuple[list[Response], Job]]


@dataclass(frozen=True, slots=True)
class Task:
    """One task of the board."""

    code: str
    input_keys: tuple[str, ...]  # what a model is given of an example; the first is the id
    data: DataSet
    respond: Respond
    answer: Callable[[Any], str]  # the one answer in a prediction; unperturbed percent compares it
    check_model: Callable[[str, bytes], None]  # kind and file: ConfigError or DataError if it can be no model
    eval_metrics: tuple[str, ...]
    perf_metric: str
    # DataError unless the response answers the example
    verify_response: Callable[[Response, Example], None] = lambda response, example: None
    delta_metrics: tuple[str, ...] = ()  # prefixes
    job_metrics: tuple[str, ...] = ("examples_per_second", "memory_utilization")
    difference_metrics: tuple[str, ...] = ()  # compared between perturbed and original
    default_weights: tuple[tuple[str, float], ...] = ()  # of the Dynascore; metrics not named weigh nothing
    # why it cannot be true
    implausible: Callable[[Sequence[Example], Sequence[Response]], list[str]] = lambda examples, responses: []
    comparable: Callable[[Response], Any] = lambda response: response  # JSON; equal for copies, see `worker.digest_of`
    # kind, file and data sets of a model -> data set -> why it fails there, of those where it does
    unscorable: Callable[[str, bytes, Mapping[str, Sequence[Example]]], Mapping[str, list[str]]] = lambda *_: {}
    # of a single example, beside its value
    shown: Callable[[Example, Response], dict[str, Any]] = lambda example, response: {}
    traces: Callable[[Sequence[Example], Sequence[Response]], list[QuestionTrace]] | None = None  # for the viewer

    def __post_init__(self) -> None:
        check_name(self.code, "task")
        unknown = {self.perf_metric, *self.difference_metrics} - set(self.eval_metrics)
        wrong = [f"task {self.code}: {name!r} is not among its eval_metrics" for name in sorted(unknown)]
        wrong += [f"task {self.code}: no eval metric {name!r}" for name in self.eval_metrics if name not in EVAL]
        if wrong:
            raise ConfigError(wrong)
        for name in self.metrics:
            meta_of(name)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric a leaderboard may show."""
        return (*self.eval_metrics, *self.delta_metrics, *self.job_metrics)

    def inputs(self, example: Example) -> dict[str, Any]:
        """What a model may see of an example."""
        return {key: example[key] for key in self.input_keys}


BUILT_IN = ("sqa_services.board.sqa_task:spanish", "sqa_services.board.sqa_task:polish")


def load_tasks(own: Sequence[str] = ()) -> dict[str, Task]:
    """code -> task: the built-in ones and those of `own`, "module:function" that makes a Task."""
    return {task.code: task for task in map(_make, (*BUILT_IN, *own))}


def _make(target: str) -> Task:
    module, _, function = target.partition(":")
    try:
        task = getattr(import_module(module), function)()
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise ConfigError(f"task {target!r}: expected module:function that makes a Task ({error})") from error
    if not isinstance(task, Task):
        raise ConfigError(f"task {target!r}: made a {type(task).__name__}, not a Task")
    return task


def check_name(name: str, what: str) -> None:
    """Lower-case letters, digits and dashes, as Dynabench wants them; else ConfigError."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"{what}: a name is 1 to 63 lower-case letters, digits and dashes, got {name[:80]!r}")


def answer_all(task: Task, responses: Sequence[Response], examples: Sequence[Example]) -> list[dict[str, Any]]:
    """Predictions, every response verified against its example first."""
    if len(responses) != len(examples):
        raise DataError(f"the model answered {len(responses)} of {len(examples)} examples")
    pairs = list(zip(examples, responses, strict=True))
    for example, response in pairs:
        task.verify_response(response, example)
    return [task.data.pred_field_converter(*pair) for pair in pairs]
