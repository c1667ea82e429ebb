"""Training loop over optimiser steps, with a log line per step, periodic development BLEU, and the run's identity."""

import json
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from smt.models.decode import decode_batch
from smt.models.stepper import Writer
from smt.policies.waitk import Schedule
from sqa.files import place, write_text
from sqa.training.trainer import Trainer

WINDOW = 100  # steps in the displayed mean loss
LOG = "steps.tsv"  # one line per optimiser step; a resumed training run continues the file
HEADER = "step\tloss\tpieces\tlearning_rate\tseconds\n"  # steps count from 1; loss: nats per target piece


class Training(Protocol):
    """A training run whose rounds are optimiser steps."""

    trainer: Trainer
    settings: Any  # has `steps`, `checkpoint_every` and `evaluate_every` (0 = never)
    folder: Path

    def rate(self, number: int) -> float:
        """Return the learning rate of a step, numbered from 0."""

    def step(self, number: int) -> tuple[float, int]:
        """Make a step; return its mean loss and the number of pieces in that mean."""

    def evaluate(self) -> Mapping[str, float]:
        """Return development scores by name."""


def run_steps(training: Training) -> None:
    """Train to the last step with a progress bar, checkpoints, BLEU and log lines."""
    trainer, config, folder = training.trainer, training.settings, training.folder
    _cut(folder / LOG, trainer.done)
    bleu: Mapping[str, float] = {}
    since, pieces = time.monotonic(), 0
    window: list[float] = []
    for number in trainer.rounds(config.steps, config.checkpoint_every):
        began = time.monotonic()
        rate = training.rate(number)
        trainer.set_rate(rate)
        loss, n = training.step(number)
        with (folder / LOG).open("a") as file:
            file.write(f"{number + 1}\t{loss!r}\t{n}\t{rate:.6g}\t{time.monotonic() - began:.4f}\n")
        pieces, window = pieces + n, [*window[1 - WINDOW :], loss]
        mean, speed = float(np.mean(window)), pieces / (time.monotonic() - since)
        trainer.say(loss=f"{mean:.3f}", pieces_s=f"{speed:.0f}", **bleu)
        if config.evaluate_every and ((number + 1) % config.evaluate_every == 0 or number + 1 == config.steps):
            bleu = {name: round(score, 2) for name, score in training.evaluate().items()}
            row = {"step": number + 1, "loss": mean, "pieces_per_s": speed, **bleu}
            with (folder / "log.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            since, pieces = time.monotonic(), 0


def identity_of(config: Any, free: Container[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a resumed training run must match: a config without the keys `free`, and other inputs.

    A key of the config's `train` is named "train.KEY".
    """
    values = asdict(config)
    values |= {f"train.{key}": value for key, value in values.pop("train").items()}
    values["train.dtype"] = place(config.train).dtype
    return {key: value for key, value in values.items() if key not in free} | dict(inputs)


def _cut(log: Path, step: int) -> None:
    """Drop the log lines after `step`, because those steps will be repeated."""
    lines = log.read_text().splitlines(keepends=True)[1:] if log.exists() else []
    kept = [line for line in lines if line.endswith("\n") and int(line.split("\t")[0]) <= step]
    write_text(log, "".join([HEADER, *kept]))


def corpus_bleu(writer: Writer, pairs: Sequence[tuple[str, str]], schedule: Schedule) -> float:
    """Return the BLEU, 0 to 100 (sacrebleu, detokenised), of the greedy translations of (source, reference) lines."""
    import sacrebleu

    written = decode_batch(writer, [source.split() for source, _ in pairs], schedule)
    hypotheses = [" ".join(word.token for word in words) for words in written]
    return sacrebleu.corpus_bleu(hypotheses, [[reference for _, reference in pairs]]).score
