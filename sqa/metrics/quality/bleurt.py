"""BLEURT (Sellam et al. 2020) of each sentence's reference and translation, by the package bleurt-pytorch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar

from sqa.core.errors import DataError
from sqa.core.packages import need
from sqa.core.schema import Count, File, checked
from sqa.files.devices import CPU, FLOATS, Arithmetic, Device, Dtype, Place, place
from sqa.files.hub import check_shards, files_digest, find_model
from sqa.metrics.quality.text_metric import (
    SENTENCES,
    MeanOfSegments,
    Segment,
    batches,
    model_label,
    model_problems,
    model_type,
    refused_with,
)

WANTED = ("*.json", "*.safetensors", "pytorch_model.bin", "*.model", "*.txt")
VERSION = 2  # increase when the scores of a model change


@dataclass(frozen=True, slots=True)
@checked
class BleurtConfig:
    """The model and its settings."""

    model: Annotated[File, "folder, or a hub name: lucadiliello/BLEURT-20-D12"]
    name: Annotated[str, "in the report"] = "bleurt"
    revision: Annotated[str | None, "branch, tag or commit of a hub model; required for a download"] = None
    download: Annotated[bool, "download a hub model that is not in the local cache"] = False
    batch_size: Annotated[Count, "segments per batch"] = 8
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "element type of the weights; bfloat16 is faster on a GPU"] = "float32"
    ARITHMETIC: ClassVar = Arithmetic(FLOATS)

    def problems(self) -> list[str]:
        return model_problems(self)


@dataclass(frozen=True)
class Bleurt:
    """BLEURT with the model in a folder, which is loaded when the first segment is scored."""

    config: BleurtConfig
    folder: Path
    where: Place = CPU

    @cached_property
    def loaded(self) -> tuple[Any, Any]:
        """Return (model in eval mode, tokenizer)."""
        check_shards(self.folder)
        from bleurt_pytorch import BleurtForSequenceClassification, BleurtTokenizer

        with refused_with(f"model {self.folder}: BLEURT cannot load it"):
            model, loading = BleurtForSequenceClassification.from_pretrained(
                self.folder, output_loading_info=True, local_files_only=True
            )
            tokenizer = BleurtTokenizer.from_pretrained(str(self.folder), local_files_only=True)
            model = self.where.take(model)
        missing = [key for key in loading["missing_keys"] if "position_ids" not in key]
        if missing or loading["mismatched_keys"]:
            raise DataError(f"model {self.folder}: weights of BLEURT are missing: {', '.join(missing[:3])}")
        return model.eval().requires_grad_(False), tokenizer

    def scores(self, segments: Sequence[Segment]) -> list[float]:
        """Return the score of each segment, mostly 0 to 1 for BLEURT-20; texts over the length limit are truncated."""
        model, tokenizer = self.loaded
        scores: list[float] = []
        for batch in batches(segments, self.config.batch_size):
            inputs = tokenizer(
                [s.reference for s in batch],
                [s.hypothesis for s in batch],
                padding="longest",
                truncation=True,
                max_length=model.config.max_position_embeddings,
                return_tensors="pt",
            ).to(model.device)
            scores += model(**inputs).logits.flatten().float().tolist()
        return scores


def build(config: BleurtConfig) -> MeanOfSegments:
    """Return the metric of a config; its fingerprint contains a hash of the model's files.

    Raises ConfigError or DataError if the files are missing or invalid.
    """
    need("bleurt_pytorch", "BLEURT")
    folder = find_model(config.model, config.revision, config.download, WANTED)
    if (kind := model_type(folder, "BLEURT")) != "bleurt":
        raise DataError(f"model {folder} is not a BLEURT model: its config.json has {kind!r}")
    weights, package = files_digest(folder, WANTED), version("bleurt-pytorch")
    where = place(config)
    identity = f"bleurt {VERSION} {package} {version('transformers')} {weights}{where.signature}"
    model = f"model:{model_label(config.model, folder)}|weights:{weights[:12]}"
    signature = f"bleurt|{SENTENCES}|{model}|version:{package}{where.signature}"
    return MeanOfSegments(config.name, signature, identity, Bleurt(config, folder, where).scores, by_sentence=True)
