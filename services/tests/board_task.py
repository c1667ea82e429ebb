"""A small labelling task for the board's tests; a model's file contains its answers and how long it takes.

If TOY_LOG is set, each model call writes a file into that folder.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqa.core import DataError, Question
from sqa.data.datasets import load_questions
from sqa_services.board.board import Board
from sqa_services.board.metrics import Job
from sqa_services.board.task import Example, Response, Task


class ToyTask(Task):
    """Examples with a label; every perturbation converts the text to upper case."""

    def load(self, source: str) -> list[Example]:
        """Load examples from `source`, a JSON list of {"id", "text", "label", "tags"?}."""
        return json.loads(source)

    def perturb(self, examples: Sequence[Example], kinds: Sequence[str], seed: int) -> dict[str, list[Example]]:
        copies = [
            {**e, "id": f"{e['id']}_{name}", "text": e["text"].upper(), "input_id": e["id"], "transform": name}
            for name in kinds
            for e in examples
            if e["text"] != e["text"].upper()
        ]
        return {"robustness": copies} if copies else {}

    def label(self, example: Example) -> dict[str, Any]:
        extra = {key: example[key] for key in ("input_id", "transform") if key in example}
        return {"id": example["id"], "answer": example["label"], "tags": example.get("tags", []), **extra}

    def prediction(self, response: Response) -> str:
        return str(response["label"])

    def answer(self, prediction: str) -> str:
        return prediction

    def verify_response(self, response: Response, example: Example) -> None:
        if set(response) != {"id", "label"} or response["id"] != example["id"]:
            raise DataError(f"response to {example['id']!r}: expected its id and a label")

    def respond(self, kind: str, model: bytes, examples: Sequence[Example], work: Path) -> tuple[list[Response], Job]:
        config = json.loads(model)
        if log := os.environ.get("TOY_LOG"):
            Path(log, f"{time.monotonic_ns()}-{os.getpid()}").write_text(f"{config['name']} {examples[0]['id']}")
        time.sleep(config.get("seconds", 0.0))
        if "mistake" in config:
            raise ValueError(config["mistake"])
        if "refusal" in config:
            raise DataError(config["refusal"])
        answers: Mapping[str, str] = config.get("answers", {})
        more = config.get("more", {})  # additional keys of a response
        responses = [{"id": e["id"], "label": answers.get(e["text"], answers.get("", "x")), **more} for e in examples]
        return responses, Job(len(examples), 0.5, 2**30)

    def check_model(self, kind: str, model: bytes) -> None:
        try:
            json.loads(model)
        except ValueError as error:
            raise DataError("toy model: not JSON") from error


def make() -> Task:
    return ToyTask(
        code="toy",
        input_keys=("id", "text"),
        eval_metrics=("accuracy", "macro_f1"),
        perf_metric="accuracy",
        delta_metrics=("robustness",),
        default_weights={"accuracy": 1.0, "robustness": 1.0},
    )


def not_a_task() -> int:
    return 1


EXAMPLES = json.dumps(
    [
        {"id": "1", "text": "eins", "label": "a", "tags": ["x"]},
        {"id": "2", "text": "zwei", "label": "b", "tags": ["x", "y"]},
        {"id": "3", "text": "DREI", "label": "c"},
    ]
)
RIGHT = {"eins": "a", "zwei": "b", "DREI": "c"}  # correct labels


def model(name: str = "m", **config: object) -> bytes:
    """Return the file of a model that answers correctly, or with the given `answers`."""
    return json.dumps({"name": name, "answers": RIGHT, **config}).encode()


def add_data(board: Board, name: str = "data", *perturbations: str, **more: Any) -> dict[str, Any]:
    """Register the examples as a dataset."""
    return board.register_dataset("toy", name, EXAMPLES, perturbations, **more)


def add_models(board: Board, **configs: dict[str, object]) -> None:
    """Register models by name; each config adds to the correct answers."""
    for name, config in configs.items():
        board.register_model("toy", name, "submission", model(name, **config))


Row = tuple[str, int, str, bool]  # token, g, guess, buzz


def submission(of: Callable[[Question, int], Iterable[Row]], suffix: str = "") -> list[dict[str, Any]]:
    """Return the lines of a submission for mini-es on a board.

    `of` maps a question and its index to rows; `suffix` is appended to the question ids.
    """
    names = ("token", "g", "guess", "buzz")
    return [
        {"question": q.id + suffix, "step": step, **dict(zip(names, row, strict=True))}
        for i, q in enumerate(load_questions("mini-es"))
        for step, row in enumerate(of(q, i))
    ]
