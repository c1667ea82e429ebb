"""Resegmentation of a log of whole recordings with OmniSTEval's SoftSegmenter, for `sqa latency LOG --segments FILE`.

SoftSegmenter aligns the words of each recording with those of the reference, and gives each word to the segment of its
reference word (Polak et al. 2025).  The package `OmniSTEval` does the work.  The log's `elapsed` values are
accumulated.  `LogOptions.computing` names the definition of delays with computing time:

    accumulated   source heard plus all computing until the word, as SimulEval writes it; waiting never overlaps with it
    increment     source heard before the word plus the computing since the previous word, as `omnisteval longform
                  --fix_simuleval_emission_ca`
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sqa.core.errors import ConfigError, DataError
from sqa.core.packages import need

RESEGMENTED = "instances.resegmented.jsonl"  # OmniSTEval's name of the file


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments of the recordings of a log."""

    file: Path  # YAML or JSON: a list of {"wav", "offset" (s), "duration" (s)}
    references: Path | None  # one line per segment
    language: str | None = None  # language of Moses' tokenizer, ISO 639-1; None: words are aligned as written
    by_character: bool = False
    increment: bool = True  # definition of delays with computing time: True is "increment", False "accumulated"


@contextmanager
def resegmented(log: str, segments: Segments) -> Iterator[str]:
    """Write a log's segments to a temporary file during the block, and yield its path.

    Raises ConfigError without the package or references, and DataError for a file that OmniSTEval refuses.
    """
    if segments.references is None:
        raise ConfigError("--segments: give --references, with a line for each segment")
    need("omnisteval", "--segments")
    if segments.language is not None:
        need("mosestokenizer", "--lang")
    with TemporaryDirectory() as folder:
        path = Path(folder) / RESEGMENTED
        path.write_text("".join(f"{line}\n" for line in _lines(log, segments)), encoding="utf-8")
        yield str(path)


def _lines(log: str, segments: Segments) -> list[str]:
    from omnisteval import resegment
    from omnisteval.io import load_resegmentation_inputs

    try:
        reference_words, words, segmentation, references = load_resegmentation_inputs(
            str(segments.file),
            None,
            str(segments.references),
            log,
            char_level=segments.by_character,
            fix_emission_ca_flag=segments.increment,
        )
        _, rows = resegment(
            reference_words,
            words,
            segmentation,
            references,
            char_level=segments.by_character,
            lang=segments.language,
        )
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise DataError(f"{log}: OmniSTEval cannot segment it by {segments.file}: {error}") from error
    return [json.dumps(row, ensure_ascii=False) for row in rows]
