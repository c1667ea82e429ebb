"""Command `sqa train guesser CONFIG`: train the guesser of the config's `kind` and write it to `output`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from guessers.training_texts import check_output, learnt, training_texts
from sqa.core import ConfigError
from sqa.files import claimed, read_yaml
from sqa.pipeline import config as configs


def main(config_path: Path, output: Path | None = None) -> Path:
    """Train a guesser and return its folder (the config's `output` unless another is given)."""
    kind = read_yaml(config_path).get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"{config_path} kind: expected one of {', '.join(KINDS)}, got {repr(kind)[:60]}")
    module, name, trained = KINDS[kind]
    config: Any = configs.load(config_path, getattr(import_module(module), name))
    folder = output or config.output
    check_output(folder, getattr(config, "texts", ()))
    trained(config, folder)
    return folder


def _bm25(config: Any, folder: Path) -> None:
    from guessers.retrieval.counting import fit

    counted = training_texts(config.folds, config.bonus, config.texts)
    fit(counted, config.pair_min_count, analyzer=config.analyzer).save(folder)


def _gru(config: Any, folder: Path) -> None:
    from guessers.gru.examples import Material
    from guessers.gru.train import train

    tossups, dev = learnt(config.folds, config.texts), learnt(("dev",), config.texts)
    material = Material.of(tossups, dev, config.vocabulary, config.units)
    with claimed(config.work):
        train(config, material).save(folder)


def _bert(config: Any, folder: Path) -> None:
    from guessers.bert.train import train

    with claimed(config.work):
        taught = training_texts(config.folds, config.bonus, config.texts)
        train(config, taught, learnt(("dev",), config.texts)).save(folder)


def _alone(config: Any, folder: Path) -> None:
    """Train a guesser whose module reads its own training data."""
    import_module(KINDS[config.kind][0]).train(config).save(folder)


KINDS: dict[str, tuple[str, str, Callable[[Any, Path], None]]] = {  # kind -> module and class of config, training
    "bert": ("guessers.bert.train", "BertTraining", _bert),
    "bm25": ("guessers.retrieval.counting", "Bm25Training", _bm25),
    "gru": ("guessers.gru.train", "GruTraining", _gru),
    "rerank": ("guessers.rerank.train", "RerankTraining", _alone),
}
