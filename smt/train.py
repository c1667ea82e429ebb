"""`sqa train smt CONFIG`: the config's `kind` says what is trained; without one it is a Transformer of our own."""

from __future__ import annotations

from pathlib import Path

from sqa.run.config import read_yaml


def main(config_path: Path, runs: Path, fresh: bool = False) -> None:
    """Train (going on from the last checkpoint unless `fresh`) and print the model's folder.

    A config of `kind: pbmt` is phrase-based.
    """
    if read_yaml(config_path).get("kind") == "pbmt":
        from smt.statistical.train import main as train
    else:
        from smt.training.train import main as train
    train(config_path, runs, fresh)
