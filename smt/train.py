"""`sqa train smt CONFIG`: the config says what is trained; by default it is a Transformer of our own."""

from __future__ import annotations

from pathlib import Path

from sqa.run.config import read_yaml


def main(config_path: Path, runs: Path, fresh: bool = False) -> None:
    """Train (going on from the last checkpoint unless `fresh`) and print the model's folder.

    A config of `kind: pbmt` is phrase-based, one with `base` fine-tunes a language model.
    """
    mapping = read_yaml(config_path)
    if mapping.get("kind") == "pbmt":
        from smt.statistical.train import main as train
    elif "base" in mapping:
        from smt.lm.train import main as train
    else:
        from smt.training.train import main as train
    train(config_path, runs, fresh)
