"""Command `sqa train smt CONFIG`: trains the model that the config selects, by default this project's Transformer."""

from pathlib import Path

from sqa.core import ConfigError
from sqa.files import read_yaml
from sqa.pipeline import load


def main(
    config_path: Path, runs: Path, fresh: bool = False, sweep: str | None = None, seeds: int | None = None
) -> None:
    """Train, resuming from the last checkpoint unless `fresh`, and print the model's folder.

    A config of `kind: pbmt` trains a phrase-based model; one with `base` fine-tunes a language model.

    Args:
        sweep: Values of k, with one training run each, as in "k=3,6,full".
        seeds: Number of seeds per k.
    """
    mapping = read_yaml(config_path)
    if mapping.get("kind") == "pbmt":
        from smt.statistical.stages import train as train_phrases
        from smt.statistical.stages_config import PbmtConfig

        if sweep is not None or seeds is not None:
            raise ConfigError("--sweep, --seeds: a phrase-based model needs the full input and has no seed")
        print(train_phrases(load(config_path, PbmtConfig), runs, fresh))
    elif "base" in mapping:
        from smt.lm.fine_tuning import main as fine_tune

        if sweep is not None:
            raise ConfigError("--sweep: one fine-tuned language model serves every k; use --seeds N to train several")
        fine_tune(config_path, runs, fresh, seeds)
    elif sweep is not None or seeds is not None:
        from smt.training.sweep import main as train_many

        train_many(config_path, runs, sweep, 1 if seeds is None else seeds, fresh)
    else:
        from smt.training.config import SmtConfig
        from smt.training.transformer_training import train

        print(train(load(config_path, SmtConfig), runs, fresh))
