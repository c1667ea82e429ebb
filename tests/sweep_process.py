"""A small sweep on the bundled questions, which tests can run in a separate process in order to kill it."""

import json
import os
import random
import signal
import threading
from dataclasses import asdict
from pathlib import Path

import numpy as np

import sqa.data.datasets
import sqa.data.texts
from smt.models.transformer import ModelConfig
from smt.training.config import CorpusConfig, SmtConfig, TrainConfig
from smt.training.corpus import lexicon, pack, save_arrays, with_links
from smt.training.sweep import parse_sweep, sweep
from smt.training.transformer_training import SmtTraining
from tests.smt_models import vocabulary

CORPUS = CorpusConfig("es-en", vocabulary_size=600, lexicon_width=4)
QUESTIONS = sqa.data.datasets.load_questions("mini-es", limit=20)


def sentence_pairs(*_: str) -> list[tuple[str, str, str]]:
    """Return sentence pairs of the bundled questions; replaces `sqa.data.texts.load_parallel`."""
    return [(" ".join(x), y, "mini") for q in QUESTIONS for x, y in zip(q.sentences, q.reference, strict=True)]


def prepared(runs: Path, name: str = "mini") -> Path:
    """Write training data to runs/smt/<name>/data, as `prepare` does, and return the folder."""
    pairs, data = sentence_pairs(), runs / "smt" / name / "data"
    packed = with_links(pack(pairs, vocabulary()), [[(0, 0), (1, 1)]] * len(pairs))
    save_arrays(packed, data / "packed")
    (data / "vocabulary.model").write_bytes(vocabulary().model)
    ids, probabilities = lexicon(packed, 600, 4)
    np.save(data / "lexicon_ids.npy", ids)
    np.save(data / "lexicon_probabilities.npy", probabilities)
    (data / "prepared.json").write_text(json.dumps({"config": json.dumps(asdict(CORPUS)), "corpora": {}, "files": {}}))
    return data


def config(steps: int = 4, **train: object) -> SmtConfig:
    """Return the config of a short training run with dropout on the data in runs/smt/mini."""
    settings = {"batch_pieces": 300, "warmup": 2, "cooldown": 2, "checkpoint_every": 3, "keep": 2, "evaluate_every": 0}
    settings |= {"evaluate_sentences": 1, "k": (2, "full"), "threads": 1, "steps": steps}
    model = ModelConfig(600, 32, 2, 64, 1, 1, 0.1, lexicon_width=4)
    return SmtConfig("tiny", CORPUS, model, TrainConfig(**settings | train), data="mini")


def swept(runs: Path, ks: str, seeds: int, steps: int, killed_in: int | None = None) -> None:
    """Run the sweep; kill this process (-9) at a random moment after the step `killed_in` has begun."""
    sqa.data.texts.load_parallel = sentence_pairs
    step = SmtTraining.step

    def deadly(self: SmtTraining, number: int) -> tuple[float, int]:
        if number == killed_in:
            threading.Timer(random.random() * 0.02, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return step(self, number)

    SmtTraining.step = deadly  # type: ignore[method-assign]
    sweep(config(steps), parse_sweep(ks), seeds, runs)
