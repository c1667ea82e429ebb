"""`sqa train guesser CONFIG`: trains what the config's `kind` names and writes it to the config's `output`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from guessers.lessons import check_output, learnt, lessons
from sqa.core.errors import ConfigError
from sqa.files.atomic import claimed
from sqa.run import config as configs


def main(config_path: Path, output: Path | None = None) -> Path:
    """Train a guesser; returns its folder (the config's `output` unless another is given)."""
    kind = configs.read_yaml(config_path).get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"{config_path} kind: expected one of {', '.join(KINDS)}, got {repr(kind)[:60]}")
    return KINDS[kind](config_path, output)


def _bm25(config_path: Path, output: Path | None) -> Path:
    from guessers.retrieval.bm25 import Bm25Guesser, Bm25Training

    config = configs.load(config_path, Bm25Training)
    folder = output or config.output
    check_output(folder, config.texts)
    counted = lessons(config.folds, config.bonus, config.texts)
    Bm25Guesser.fit(counted, config.pair_min_count, analyzer=config.analyzer).save(folder)
    return folder


def _gru(config_path: Path, output: Path | None) -> Path:
    from guessers.gru.examples import Material
    from guessers.gru.train import GruTraining, train
    from sqa.data.translated import load_texts

    config = configs.load(config_path, GruTraining)
    folder = output or config.output
    check_output(folder, config.texts)
    tossups, dev = learnt(config.folds, config.texts), learnt(("dev",), config.texts)
    texts = load_texts(config.noisy_texts) if config.noisy_texts else {}
    material = Material.of(tossups, dev, config.vocabulary, config.units, texts)
    with claimed(config.work):
        train(config, material).save(folder)
    return folder


def _bert(config_path: Path, output: Path | None) -> Path:
    from guessers.bert.train import BertTraining, train

    config = configs.load(config_path, BertTraining)
    folder = output or config.output
    check_output(folder, config.texts)
    with claimed(config.work):
        taught = lessons(config.folds, config.bonus, config.texts)
        train(config, taught, learnt(("dev",), config.texts)).save(folder)
    return folder


def _fusion(config_path: Path, output: Path | None) -> Path:
    from guessers.fusion.train import FusionTraining, train

    config = configs.load(config_path, FusionTraining)
    folder = output or config.output
    train(config).save(folder)
    return folder


def _rerank(config_path: Path, output: Path | None) -> Path:
    from guessers.rerank.train import RerankTraining, train

    config = configs.load(config_path, RerankTraining)
    folder = output or config.output
    train(config).save(folder)
    return folder


KINDS: dict[str, Callable[[Path, Path | None], Path]] = {
    "bert": _bert,
    "bm25": _bm25,
    "gru": _gru,
    "fusion": _fusion,
    "rerank": _rerank,
}
