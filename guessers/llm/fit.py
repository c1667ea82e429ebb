"""`python -m guessers.llm.fit`: the weights of a base model's candidates, fitted on QANTA's guessdev questions.

Each question is read up to a quarter, a half, three quarters and its end.  The weights maximise the likelihood of the
right candidate, or of "none" if it was not retrieved (a conditional logit without a prior over weights).  The TSV on
stdout has the accuracy of the first page by retrieval alone, and by weights fitted on the other four fifths of the
questions.  It also has the share of steps with the right page among the candidates, and the weights.  Replies are
stored as in any run.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from guessers.llm.base import BaseConfig, Candidate, Weights
from guessers.llm.guesser import LlmConfig, LlmGuesser, build
from sqa.core.answers import is_right
from sqa.core.errors import DataError, returns_exit_code
from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa.files.records import parse_json

PARTS = (0.25, 0.5, 0.75, 1.0)  # shares of a question
FOLDS = 5
BEST_OF = 4_000  # maximum number of optimiser steps


class Step(NamedTuple):
    """The candidates of one text."""

    question: int
    features: np.ndarray  # (candidates, 3) retrieval, likelihood, prior
    right: np.ndarray  # (candidates,) bool


def steps_of(guesser: LlmGuesser, questions: Sequence[Question]) -> list[Step]:
    """Return the candidates of a guesser with `base` for parts of questions; parts without candidates are left out."""
    steps = []
    for number, question in enumerate(tqdm(questions, desc="questions", file=sys.stderr, mininterval=1)):
        words = question.reference_text.split()
        prompts = [guesser.prompt(" ".join(words[: round(len(words) * part)])) for part in PARTS]
        replies = guesser.chat.ask([prompt for prompt in prompts if prompt])
        for reply in replies.values():
            candidates = [Candidate(**fields) for fields in parse_json(reply.text)["candidates"]]
            if candidates:
                features = np.array([[c.retrieval, c.likelihood, c.prior] for c in candidates])
                steps.append(Step(number, features, np.array([is_right(c.page, question.page) for c in candidates])))
    return steps


def fitted(steps: Sequence[Step]) -> Weights:
    """Return the weights of maximum likelihood; raises DataError if no step has the right page among its candidates."""
    from scipy.optimize import minimize

    if not any(step.right.any() for step in steps):
        raise DataError("no question's page is among the candidates of retrieval: nothing to fit; give more questions")

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = 0.0, np.zeros(4)
        for step in steps:  # inputs: (candidates + 1, 4)
            inputs = np.vstack([np.c_[step.features, np.zeros(len(step.features))], [0, 0, 0, 1]])
            right = np.append(step.right, not step.right.any())
            logits = inputs @ w
            odds = np.exp(logits - logits.max())
            share, target = odds / odds.sum(), odds * right / (odds * right).sum()
            total -= float(np.log((odds * right).sum() / odds.sum()))
            slope += (share - target) @ inputs
        return total / len(steps), slope / len(steps)

    solution = minimize(
        loss, np.array([0.1, 0.1, -0.1, 1.0]), jac=True, method="L-BFGS-B", options={"maxiter": BEST_OF}
    )
    return Weights(*(round(float(value), 4) for value in solution.x))


def hits(steps: Sequence[Step], weights: Weights) -> list[bool]:
    """Return whether the best candidate of each step is right."""
    return [bool(step.right[np.argmax(step.features @ np.array(astuple(weights)[:3]))]) for step in steps]


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m guessers.llm.fit", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", default="gemma3-270m", help="the model (default: %(default)s)")
    parser.add_argument(
        "--questions", type=int, default=100, help="number of questions, evenly spaced over guessdev (default: 100)"
    )
    parser.add_argument("--every", type=int, default=10, help="words of a portion (default: %(default)s)")
    parser.add_argument("--cache", type=Path, help="file of stored replies")
    options = parser.parse_args(arguments)
    every, most = options.every, len(PARTS) * max(options.questions, 1)
    config = LlmConfig(base=BaseConfig(base=options.base), every=every, max_requests=most, cache=options.cache)
    questions = load_questions("guessdev")
    chosen = questions[:: max(1, len(questions) // max(options.questions, 1))][: options.questions]
    steps = steps_of(build(config), chosen)
    blind = [
        hit
        for fold in range(FOLDS)
        for hit in hits(
            [step for step in steps if step.question % FOLDS == fold],
            fitted([step for step in steps if step.question % FOLDS != fold]),
        )
    ]
    alone = hits(steps, Weights(1.0, 0.0, 0.0, 0.0))
    weights = fitted(steps)
    among = [bool(step.right.any()) for step in steps]
    cells = [len(chosen), len(steps), *(f"{np.mean(row):.3f}" for row in (alone, blind, among)), *astuple(weights)]
    print("questions", "steps", "retrieval", "weighed", "among", *(field.name for field in fields(Weights)), sep="\t")
    print(*cells, sep="\t")


if __name__ == "__main__":
    sys.exit(main())
