"""Scores from a file, one per question, computed by another program: YiSi-1, Prism, or human judgements.

The file has one number per line, in the order of the questions, as YiSi and Prism write it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sqa.core import ConfigError, DataError, File
from sqa.files import records
from sqa.metrics.quality.text_metric import MeanOfSegments, Segment


@dataclass(frozen=True, slots=True)
class ScoreFileConfig:
    """The file of the scores and their meaning."""

    file: Annotated[File, "path; {run} in it is replaced by the run's name"]
    name: Annotated[str, "in the report"] = "scores"
    made_by: Annotated[str, "program, version, model and settings, for the signature"] = ""
    higher_is_better: Annotated[bool, "false for an error rate"] = True
    LABEL: ClassVar = ""  # reports show the name

    def __post_init__(self) -> None:
        if not self.file or not self.name:
            raise ConfigError(f"scores.{'file' if not self.file else 'name'}: must not be empty")


def build(config: ScoreFileConfig) -> MeanOfSegments:
    """Return the metric of a config; raises ConfigError if the file does not exist."""
    path = Path(config.file).expanduser()
    if not path.is_file():
        raise ConfigError(f"file of scores not found: {path}")
    signature = f"{config.name}|segment:question|aggregate:mean|from:file|by:{config.made_by or 'not said'}"
    return MeanOfSegments(config.name, signature, None, lambda segments: read(path, segments), config.higher_is_better)


def read(path: Path, segments: Sequence[Segment]) -> list[float]:
    """Return the score of each segment; raises DataError for another number of lines, or invalid numbers."""
    rows = [(number, line) for number, line in enumerate(records.lines(path), start=1) if line.strip()]
    if len(rows) != len(segments):
        raise DataError(f"{path}: {len(rows)} scores for {len(segments)} questions")
    return [_number(path, line, row) for line, row in rows]


def _number(path: Path, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{path} line {line}: expected a number, got {text[:40]!r}")
    return value
