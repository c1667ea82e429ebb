"""Trainings whose rounds are optimiser steps: a rate for each, a line for each, development BLEU now and then."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sqa.files.atomic import write_text
from sqa.training.trainer import Trainer

WINDOW = 100  # steps whose mean loss is shown


def run_steps(
    trainer: Trainer,
    config: Any,
    folder: Path,
    rate: Callable[[int], float],
    step: Callable[[int], tuple[float, int]],
    evaluate: Callable[[], Mapping[str, float]],
    stop: Path,
) -> bool:
    """Train to the last step with a progress bar, checkpoints, BLEU and log lines.

    `config` says how many there are: `steps`, `checkpoint_every`, `evaluate_every` (0 = never).
    `step` takes the number of a step (from 0) and gives its mean loss and the pieces this is of.  A file at `stop` ends
    the training after the current step, with a checkpoint; returns whether the last step was reached.
    """
    log = StepLog(folder / "steps.tsv")
    log.cut(trainer.done)
    bleu: Mapping[str, float] = {}
    since, pieces = time.monotonic(), 0
    window: list[float] = []
    for number in trainer.rounds(config.steps, config.checkpoint_every, stop.exists):
        began = time.monotonic()
        trainer.set_rate(rate(number))
        loss, n = step(number)
        log.add(number + 1, loss, n, rate(number), time.monotonic() - began)
        pieces, window = pieces + n, [*window[1 - WINDOW :], loss]
        mean, speed = float(np.mean(window)), pieces / (time.monotonic() - since)
        trainer.say(loss=f"{mean:.3f}", pieces_s=f"{speed:.0f}", **bleu)
        if config.evaluate_every and ((number + 1) % config.evaluate_every == 0 or number + 1 == config.steps):
            bleu = {name: round(score, 2) for name, score in evaluate().items()}
            row = {"step": number + 1, "loss": mean, "pieces_per_s": speed, **bleu}
            with (folder / "log.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            since, pieces = time.monotonic(), 0
    return trainer.done == config.steps


class StepLog:
    """steps.tsv: one line per optimiser step; after a kill it resumes where the training does."""

    HEADER = "step\tloss\tpieces\tlearning_rate\tseconds\n"

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut(self, step: int) -> None:
        """Drop what was logged after `step`: it will be done again."""
        lines = self.path.read_text().splitlines(keepends=True)[1:] if self.path.exists() else []
        kept = [line for line in lines if line.endswith("\n") and int(line.split("\t")[0]) <= step]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, "".join([self.HEADER, *kept]))

    def add(self, step: int, loss: float, pieces: int, learning_rate: float, seconds: float) -> None:
        """One step: number from 1, smoothed cross-entropy (nats per piece), target pieces, learning rate, time."""
        with self.path.open("a") as file:
            file.write(f"{step}\t{loss!r}\t{pieces}\t{learning_rate:.6g}\t{seconds:.4f}\n")
