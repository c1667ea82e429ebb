"""BERTScore F1 (Zhang et al. 2020) of each sentence's translation and reference, by the package bert-score."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar

from sqa.core import ConfigError, Count, DataError, File, checked
from sqa.files import check_folder
from sqa.metrics.quality.text_metric import MeanOfSegments, Segment, refused_with
from sqa.metrics.quality.text_model import SENTENCES, ModelConfig, TextModel

VERSION = 2  # increase when the scores of a model change


@dataclass(frozen=True, slots=True)
@checked
class BertScoreConfig(ModelConfig):
    """The encoder and its layer."""

    model: Annotated[File, "folder, or a hub name: roberta-large"]
    name: Annotated[str, "in the report"] = "bertscore"
    LABEL: ClassVar = "BERTScore"
    layer: Annotated[Count | None, "layer whose output is compared, from 1; null = the package's choice"] = None
    baseline: Annotated[bool, "rescale by the package's baseline for English and that hub name"] = False
    batch_size: Annotated[Count, "segments per batch"] = 16


@dataclass(frozen=True)
class BertScore(TextModel):
    """BERTScore with the encoder in a folder."""

    package, distribution = "bert_score", "bert-score"
    wanted = ("*.json", "*.safetensors", "*.model", "*.txt")

    @cached_property
    def layer(self) -> int:
        """Return the layer of the config, else the package's choice; raises ConfigError if it has none."""
        model = self.config.model
        layer: int | None = self.config.layer or _package().utils.model2layers.get(model)
        if layer is None:
            raise ConfigError(f"bertscore.layer: needed for model {model}, since the package has no default for it")
        return layer

    @cached_property
    def baseline(self) -> Path | None:
        """Return the file of rescaling baselines; None without rescaling.  Raises ConfigError if there is none."""
        if not self.config.baseline:
            return None
        path = Path(_package().__file__).parent / "rescale_baseline" / "en" / f"{self.config.model}.tsv"
        if not path.is_file():
            raise ConfigError(f"bertscore.baseline: the package has none for model {self.config.model}; omit it")
        return path

    def load(self) -> Any:
        bert_score = _package()
        with refused_with(f"model {self.folder}: BERTScore cannot use it"):
            scorer = bert_score.BERTScorer(
                model_type=str(self.folder),
                num_layers=self.layer,
                lang="en",
                device=self.where.device,
                batch_size=self.config.batch_size,
                rescale_with_baseline=self.baseline is not None,
                baseline_path=self.baseline and str(self.baseline),
            )
        self.where.take(scorer._model)
        tokenizer = scorer._tokenizer
        if not hasattr(tokenizer, "build_inputs_with_special_tokens"):  # transformers 5; used for an empty text
            tokenizer.build_inputs_with_special_tokens = lambda _: tokenizer("")["input_ids"]
        positions = getattr(scorer._model.config, "max_position_embeddings", 0)
        if positions > 2:  # some tokenizers state no limit; RoBERTa's positions start at 2
            tokenizer.model_max_length = min(tokenizer.model_max_length, positions - 2)
        return scorer

    def batches(self, segments: Sequence[Segment]) -> list[Sequence[Segment]]:
        return [segments]  # the package sorts all segments by length and forms the batches

    def score(self, batch: Sequence[Segment]) -> list[float]:
        """Return the F1 of each segment, at most 1; an empty translation has 0 before rescaling."""
        hypotheses, references = [s.hypothesis for s in batch], [s.reference for s in batch]
        _, _, f1 = self.loaded.score(hypotheses, references, batch_size=self.config.batch_size)
        return list(f1.tolist())


def build(config: BertScoreConfig) -> MeanOfSegments:
    """Return the metric of a config; its fingerprint contains a hash of the model's files.

    Raises ConfigError or DataError if the files are missing or invalid, or if the package would take the folder for a
    T5 model because of its path.
    """
    model = BertScore.found(config)
    kind = check_folder(model.folder)
    if "t5" in str(model.folder) and "t5" not in kind:
        t5 = "bert-score treats a path that contains 't5' as a T5 model"
        raise DataError(f"model {model.folder}: {t5}, but this is {kind}; rename the folder")
    settings = f"layer:{model.layer}|idf:no|rescaled:{'yes' if model.baseline else 'no'}"
    package = f"version:{model.version}{model.where.signature}"
    signature = f"bertscore|{SENTENCES}|stat:f1|{model.described}|{settings}|{package}"
    packages = model.version, version("transformers")
    return model.metric(signature, "bertscore", VERSION, *packages, model.weights, settings)


def _package() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import bert_score
        import bert_score.utils

    return bert_score
