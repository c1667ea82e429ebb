"""`sqa train guesser CONFIG`: trains what the config's `kind` names and writes it to the config's `output`."""

from __future__ import annotations

from pathlib import Path

from guessers.lessons import check_output, learnt, lessons
from sqa.core.errors import ConfigError
from sqa.files.atomic import claimed
from sqa.run import config as configs

KINDS = ("bert", "bm25", "gru", "fusion", "rerank")


def main(config_path: Path, output: Path | None = None) -> Path:
    """Train a guesser; returns its folder (the config's `output` unless another is given)."""
    kind = configs.read_yaml(config_path).get("kind")
    if kind == "bm25":
        from guessers.retrieval import bm25

        config = configs.load(config_path, bm25.Bm25Training)
        check_output(output or config.output, config.texts)
        counted = lessons(config.folds, config.bonus, config.texts)
        guesser = bm25.Bm25Guesser.fit(counted, config.pair_min_count, analyzer=config.analyzer)
    elif kind == "gru":
        from guessers.gru import train as gru_train
        from sqa.data.translated import load_texts

        config = configs.load(config_path, gru_train.GruTraining)
        check_output(output or config.output, config.texts)
        tossups, dev = learnt(config.folds, config.texts), learnt(("dev",), config.texts)
        texts = load_texts(config.noisy_texts) if config.noisy_texts else {}
        material = gru_train.Material.of(tossups, dev, config.vocabulary, config.units, texts)
        with claimed(config.work):
            guesser = gru_train.train(config, material)
    elif kind == "bert":
        from guessers.bert import train as bert_train

        config = configs.load(config_path, bert_train.BertTraining)
        check_output(output or config.output, config.texts)
        with claimed(config.work):
            taught = lessons(config.folds, config.bonus, config.texts)
            guesser = bert_train.train(config, taught, learnt(("dev",), config.texts))
    elif kind == "fusion":
        from guessers.fusion import train as fusion_train

        config = configs.load(config_path, fusion_train.FusionTraining)
        guesser = fusion_train.train(config)
    elif kind == "rerank":
        from guessers.rerank import train as rerank_train

        config = configs.load(config_path, rerank_train.RerankTraining)
        guesser = rerank_train.train(config)
    else:
        raise ConfigError(f"{config_path} kind: expected one of {', '.join(KINDS)}, got {repr(kind)[:60]}")
    folder = output or config.output
    guesser.save(folder)
    return folder
