"""BERTScore F1 (Zhang et al. 2020) of each sentence's translation and reference, by the package bert-score."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar

from sqa.core.errors import ConfigError, DataError
from sqa.core.packages import need
from sqa.core.schema import Count, File, checked
from sqa.files.devices import CPU, FLOATS, Arithmetic, Device, Dtype, Place, place
from sqa.files.hub import check_shards, files_digest, find_model
from sqa.metrics.quality.text_metric import (
    SENTENCES,
    MeanOfSegments,
    Segment,
    model_label,
    model_problems,
    model_type,
    refused_with,
)

WANTED = ("*.json", "*.safetensors", "*.model", "*.txt")
VERSION = 2  # increase when the scores of a model change


@dataclass(frozen=True, slots=True)
@checked
class BertScoreConfig:
    """The encoder and its layer."""

    model: Annotated[File, "folder, or a hub name: roberta-large"]
    name: Annotated[str, "in the report"] = "bertscore"
    layer: Annotated[Count | None, "layer whose output is compared, from 1; null = the package's choice"] = None
    baseline: Annotated[bool, "rescale by the package's baseline for English and that hub name"] = False
    revision: Annotated[str | None, "branch, tag or commit of a hub model; required for a download"] = None
    download: Annotated[bool, "download a hub model that is not in the local cache"] = False
    batch_size: Annotated[Count, "segments per batch"] = 16
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "element type of the weights; bfloat16 is faster on a GPU"] = "float32"
    ARITHMETIC: ClassVar = Arithmetic(FLOATS)

    def problems(self) -> list[str]:
        return model_problems(self)


@dataclass(frozen=True)
class BertScore:
    """BERTScore with the encoder in a folder, which is loaded when the first segment is scored."""

    config: BertScoreConfig
    folder: Path
    layer: int
    baseline: Path | None  # file of rescaling baselines
    where: Place = CPU

    @cached_property
    def scorer(self) -> Any:
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

    def scores(self, segments: Sequence[Segment]) -> list[float]:
        """Return the F1 of each segment, at most 1; an empty translation has 0 before rescaling."""
        hypotheses, references = [s.hypothesis for s in segments], [s.reference for s in segments]
        _, _, f1 = self.scorer.score(hypotheses, references, batch_size=self.config.batch_size)
        return list(f1.tolist())


def build(config: BertScoreConfig) -> MeanOfSegments:
    """Return the metric of a config; its fingerprint contains a hash of the model's files.

    Raises ConfigError or DataError if the files are missing or invalid.
    """
    need("bert_score", "BERTScore")
    folder = find_model(config.model, config.revision, config.download, WANTED)
    _check(folder)
    layer = config.layer or _package().utils.model2layers.get(config.model)
    if layer is None:
        raise ConfigError(f"bertscore.layer: needed for model {config.model}, since the package has no default for it")
    baseline = _baseline(config.model) if config.baseline else None
    weights, package = files_digest(folder, WANTED), version("bert-score")
    settings = f"layer:{layer}|idf:no|rescaled:{'yes' if baseline else 'no'}"
    where = place(config)
    identity = f"bertscore {VERSION} {package} {version('transformers')} {weights} {settings}{where.signature}"
    signature = (
        f"bertscore|{SENTENCES}|stat:f1|model:{model_label(config.model, folder)}"
        f"|weights:{weights[:12]}|{settings}|version:{package}{where.signature}"
    )
    scores = BertScore(config, folder, layer, baseline, where).scores
    return MeanOfSegments(config.name, signature, identity, scores, by_sentence=True)


def _check(folder: Path) -> None:
    """Raise DataError for a folder without an encoder, or with a path that the package would take for a T5 model."""
    kind = model_type(folder, "BERTScore")
    if not any(folder.glob("*.safetensors")):
        raise DataError(
            f"model {folder}: no *.safetensors weights, the only supported format; save_pretrained writes them"
        )
    check_shards(folder)
    if "t5" in str(folder) and "t5" not in kind:
        t5 = "bert-score treats a path that contains 't5' as a T5 model"
        raise DataError(f"model {folder}: {t5}, but this is {kind}; rename the folder")


def _baseline(model: str) -> Path:
    path = Path(_package().__file__).parent / "rescale_baseline" / "en" / f"{model}.tsv"
    if not path.is_file():
        raise ConfigError(f"bertscore.baseline: the package has none for model {model}; omit it")
    return path


def _package() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import bert_score
        import bert_score.utils

    return bert_score
