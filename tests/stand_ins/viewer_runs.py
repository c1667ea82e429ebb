"""Helpers for the tests of the viewer: finished runs of copying systems, and an aligner and a detector of errors."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from tables import tables_of

from sqa.core import Floats
from sqa.diagnose.alignment import Alignment, Words
from sqa.files import Store
from sqa.pipeline import load_run, run, saving

TABLES = tables_of(__file__)
EVIL, RECORDS = TABLES["evil"], TABLES["records"]


def make(folder: Path, name: str, k: int = 1, records: Sequence[dict] = RECORDS, **parts: object) -> Path:
    """Make a run that copies with a lag of k - 1, whose guesser names Spain and France after reading them.

    Return the folder of the run.
    """
    questions = folder / "questions.jsonl"
    questions.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    config = {
        "dataset": {"name": str(questions)},
        "translator": {"name": "doubles:build_translator", "k": k},
        "guesser": {"name": "doubles:build_guesser"},
        "buzzer": {"name": "doubles:build_buzzer", "threshold": 0.5},
        "metrics": ["al"],
        **parts,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in config.items() if value is not None}))
    return saving.save(run(load_run(path), Store(folder / "runs"), progress=False), folder / "runs")


class CopyAligner:
    """An aligner that links equal words, except for "grande"."""

    pair = "es-en"

    def align(self, pairs: Sequence[tuple[Words, Words]]) -> list[Alignment]:
        return [self._align(*pair) for pair in pairs]

    def _align(self, source: Words, target: Words) -> Alignment:
        links = [(s, t) for s, x in enumerate(source) for t, y in enumerate(target) if x == y != "grande"]
        trust = [
            [float(any(link[side] == i for link in links)) for i in range(len((source, target)[side]))]
            for side in (0, 1)
        ]
        return Alignment(tuple(links), tuple(trust[0]), tuple(trust[1]))


class TrustJudge:
    """An error detector whose error probability is 1 minus the word's alignment trust."""

    def words(self, pairs: Sequence[tuple[Words, Words]], alignments: Sequence[Alignment]) -> list[Floats]:
        return [1.0 - np.array(alignment.target) for alignment in alignments]
