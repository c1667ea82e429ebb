"""Models that score segments, and the keys of their configs: the base of COMET, BERTScore and BLEURT."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from sqa.core import Count, File, checked, need
from sqa.files import CPU, FLOATS, Arithmetic, Device, Dtype, Place, files_digest, find_model, place
from sqa.files.hub import unpinned
from sqa.metrics.quality.text_metric import MeanOfSegments, Segment

SENTENCES = "segment:sentence|unpaired:question|aggregate:mean"  # in signatures of metrics by sentence


@dataclass(frozen=True, slots=True)
@checked
class ModelConfig:
    """The model and its settings."""

    model: Annotated[File, "folder or hub name"]
    name: Annotated[str, "in the report"]
    revision: Annotated[str | None, "branch, tag or commit of a hub model; required for a download"] = None
    download: Annotated[bool, "download hub models that are not in the local cache"] = False
    batch_size: Annotated[Count, "segments per batch"] = 8
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "element type of the weights; bfloat16 is faster on a GPU"] = "float32"
    ARITHMETIC: ClassVar = Arithmetic(FLOATS)
    LABEL: ClassVar[str]  # in figures and tables

    def problems(self) -> list[str]:
        wrong = [] if self.model else ["model: must be a folder or a name on the Hugging Face hub"]
        wrong += [problem] if (problem := unpinned(self.model, self.revision, self.download)) else []
        return wrong if self.name else [*wrong, "name: must not be empty"]


@dataclass(frozen=True)
class TextModel(ABC):
    """A model in a folder, which is loaded when the first segment is scored."""

    package: ClassVar[str]  # imported module
    distribution: ClassVar[str]  # its package on PyPI
    wanted: ClassVar[tuple[str, ...]]  # patterns of the model's files

    config: Any  # a ModelConfig
    folder: Path
    where: Place = CPU

    @classmethod
    def found(cls, config: ModelConfig) -> Self:
        """Return the model of a config.  Raises ConfigError or DataError if its package or files are missing."""
        need(cls.package, config.LABEL)
        folder = find_model(config.model, config.revision, config.download, cls.wanted)
        return cls(config, folder, place(config))

    @cached_property
    def weights(self) -> str:
        """Hash of the model's files."""
        return files_digest(self.folder, self.wanted)

    @property
    def version(self) -> str:
        return version(self.distribution)

    @property
    def described(self) -> str:
        """The model in a signature."""
        return f"model:{model_label(self.config.model, self.folder)}|weights:{self.weights[:12]}"

    @cached_property
    def loaded(self) -> Any:
        return self.load()

    @abstractmethod
    def load(self) -> Any:
        """Return the model in eval mode, with its tokenizer if it has one; raises DataError for invalid files."""

    @abstractmethod
    def score(self, batch: Sequence[Segment]) -> list[float]:
        """Return the score of each segment of a batch."""

    def batches(self, segments: Sequence[Segment]) -> list[Sequence[Segment]]:
        size = self.config.batch_size
        return [segments[start : start + size] for start in range(0, len(segments), size)]

    def scores(self, segments: Sequence[Segment]) -> list[float]:
        """Return the score of each segment."""
        return [score for batch in self.batches(segments) for score in self.score(batch)]

    def metric(self, signature: str, *identity: object) -> MeanOfSegments:
        """Return the mean of the scores, whose fingerprint consists of `identity` and the arithmetic."""
        fingerprint = " ".join(map(str, identity)) + self.where.signature
        return MeanOfSegments(
            self.config.name, signature, fingerprint, self.scores, by_sentence=True, label=self.config.LABEL
        )


def model_label(model: str, folder: Path) -> str:
    """Return a model's name for signatures: the folder's name, or the hub name with the commit."""
    return folder.name if Path(model).expanduser().is_dir() else f"{model}@{folder.name[:12]}"
