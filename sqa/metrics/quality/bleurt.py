"""BLEURT (Sellam et al. 2020) of each sentence's reference and translation, by the package bleurt-pytorch."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, ClassVar

from sqa.core import DataError, File, checked
from sqa.files import check_folder
from sqa.metrics.quality.text_metric import MeanOfSegments, Segment, refused_with
from sqa.metrics.quality.text_model import SENTENCES, ModelConfig, TextModel

VERSION = 2  # increase when the scores of a model change


@dataclass(frozen=True, slots=True)
@checked
class BleurtConfig(ModelConfig):
    """The model and its settings."""

    model: Annotated[File, "folder, or a hub name: lucadiliello/BLEURT-20-D12"]
    name: Annotated[str, "in the report"] = "bleurt"
    LABEL: ClassVar = "BLEURT"


@dataclass(frozen=True)
class Bleurt(TextModel):
    """BLEURT with the model in a folder."""

    package, distribution = "bleurt_pytorch", "bleurt-pytorch"
    wanted = ("*.json", "*.safetensors", "pytorch_model.bin", "*.model", "*.txt")

    def load(self) -> tuple[Any, Any]:
        """Return (model in eval mode, tokenizer)."""
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

    def score(self, batch: Sequence[Segment]) -> list[float]:
        """Return the score of each segment, mostly 0 to 1 for BLEURT-20; texts over the length limit are truncated."""
        model, tokenizer = self.loaded
        inputs = tokenizer(
            [s.reference for s in batch],
            [s.hypothesis for s in batch],
            padding="longest",
            truncation=True,
            max_length=model.config.max_position_embeddings,
            return_tensors="pt",
        ).to(model.device)
        scores: list[float] = model(**inputs).logits.flatten().float().tolist()
        return scores


def build(config: BleurtConfig) -> MeanOfSegments:
    """Return the metric of a config; its fingerprint contains a hash of the model's files.

    Raises ConfigError or DataError if the files are missing or invalid.
    """
    model = Bleurt.found(config)
    if (kind := check_folder(model.folder, pickled=True)) != "bleurt":
        raise DataError(f"model {model.folder} is not a BLEURT model: its config.json has {kind!r}")
    signature = f"bleurt|{SENTENCES}|{model.described}|version:{model.version}{model.where.signature}"
    return model.metric(signature, "bleurt", VERSION, model.version, version("transformers"), model.weights)
