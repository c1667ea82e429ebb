"""A user-defined quality metric, the share of reference words in the translation, which records its calls."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from sqa.metrics.quality.text_metric import MeanOfSegments, Segment

# A user part is loaded separately from the module that the test imports. This module without a file is shared by both.
_LOG: Any = sys.modules.setdefault("quality_log", SimpleNamespace(asked=[], refused=set()))  # type: ignore[arg-type]
asked: list[str] = _LOG.asked  # questions in the order of scoring
refused: set[str] = _LOG.refused  # questions at which the metric fails


@dataclass(frozen=True, slots=True)
class OverlapConfig:
    name: str = "overlap"
    version: int = 1
    broken: str = ""  # "nan", "few", "dies"


def build(config: OverlapConfig) -> MeanOfSegments:
    def scores(segments: Sequence[Segment]) -> list[float]:
        asked.extend(segment.id for segment in segments)
        if config.broken == "dies" or refused & {segment.id for segment in segments}:
            raise RuntimeError("no memory\nleft")
        found = [len({*s.hypothesis.split()} & {*s.reference.split()}) / len(s.reference.split()) for s in segments]
        return {"nan": [float("nan")] * len(found), "few": found[1:]}.get(config.broken, found)

    signature = f"overlap|segment:question|version:{config.version}"
    return MeanOfSegments(config.name, signature, f"overlap {config.version} {config.broken}", scores)
