"""Which questions repeat a text that a guesser may have been trained on.

Two texts overlap by the number of runs of six words that both have, as a share of the runs of the one that has fewer.
A question repeats a training text if that share is .3 or more, with four runs or more.  (Between tossups of different
tournaments on one answer a famous quotation can reach .2; a question that was used again is near 1.)
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from sqa.core.errors import DataError
from sqa.core.types import Question
from sqa.data import download
from sqa.files import records

RUN = 6  # words
SHARE, RUNS = 0.3, 4  # least share, and least number, of common runs
_WORD = re.compile(r"\w+")

Run = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The training text that a question has most in common with."""

    question: str  # id
    text: str  # "<file>:<record>"
    share: float  # common runs / runs of the text that has fewer, 0 to 1
    runs: int  # common runs

    @property
    def excluded(self) -> bool:
        """True if the question counts as seen in training."""
        return self.share >= SHARE and self.runs >= RUNS


def nearest(questions: Sequence[Question], training: Sequence[str]) -> dict[str, Repeat]:
    """question id -> its nearest training text; questions that share no run with any are absent.

    `training` holds names of the manifest or files of JSON lines whose records have a `text`.
    """
    runs_of = {question.id: runs(question.text) for question in questions}
    with_run: defaultdict[Run, list[str]] = defaultdict(list)
    for id, text_runs in runs_of.items():
        for run in text_runs:
            with_run[run].append(id)
    nearest_text: dict[str, Repeat] = {}
    for name, text in tqdm(_texts(training), "training texts against the questions", mininterval=2, leave=False):
        text_runs = runs(text)
        for id, shared in Counter(id for run in text_runs for id in with_run.get(run, ())).items():
            repeat = Repeat(id, name, shared / min(len(text_runs), len(runs_of[id])), shared)
            best = nearest_text.get(id)
            if best is None or (repeat.excluded, repeat.share) > (best.excluded, best.share):
                nearest_text[id] = repeat
    return nearest_text


def runs(text: str) -> set[Run]:
    """The runs of RUN words, letter case and punctuation aside."""
    words = _WORD.findall(text.casefold())
    return set(zip(*(words[start:] for start in range(RUN)), strict=False))


def _texts(training: Sequence[str]) -> Iterator[tuple[str, str]]:
    names = {entry.name for entry in download.entries()}
    for source in training:
        path = download.path_of(source) if source in names else Path(source)
        for i, record in enumerate(records.json_lines(path)):
            if not isinstance(record.get("text"), str):
                raise DataError(f"{path}: record {i}: has no text")
            yield f"{source}:{i}", record["text"]
