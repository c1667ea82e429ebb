"""Prepare the folder in which the documented commands run: reduced configs and user files."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml
from small_ablation import write_small_ablation
from tables import tables_of

from sqa.core import ROOT, Question
from sqa.data.datasets import load_questions
from sqa.data.own_questions import record_of

TABLES = tables_of(__file__)
QUESTIONS = 3  # per config
LESS = {"xqb-es": "mini-es", "xqb-pl": "mini-pl", "limit: null": f"limit: {QUESTIONS}", "samples: 1000": "samples: 20"}
RUN: dict[str, Any] = TABLES["run"]
SMALL: dict[str, int] = TABLES["small"]
SHORT: dict[str, int] = TABLES["short"]
LINE = "Its capital is Lima ."  # reference translation for the evaluation servers
AGENT = TABLES["agent"].replace("LINE", LINE)


def prepare(folder: Path) -> None:
    """Write all files that the commands need, except finished runs and games."""
    (folder / "configs").mkdir()
    for path in (ROOT / "configs").glob("*.yaml"):
        text = path.read_text("utf-8")
        for usual, less in LESS.items():
            text = text.replace(usual, less)
        (folder / "configs" / path.name).write_text(text, encoding="utf-8")
    write_small_ablation(folder / "configs", [3, 6, "full"], QUESTIONS)
    (folder / "docs").mkdir()
    (folder / "docs" / "example").symlink_to(ROOT / "docs" / "example")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "runs" / "train").mkdir(parents=True)
    (folder / "runs" / "train" / "bm25-mine").symlink_to(ROOT / "data" / "models" / "bm25")
    questions = load_questions("mini-es")
    _lines(folder / "few.jsonl", map(record_of, questions[:2]))
    _lines(folder / "submission.jsonl", (row for question in questions for row in _copied(question)))
    _texts(folder, questions)
    _configs(folder)


def _copied(question: Question) -> Iterator[dict[str, object]]:
    """Yield the rows of a submission that copies each source word at once and answers at the last word."""
    last = len(question.words) - 1
    for step, word in enumerate(question.words):
        answer = {"guess": "Peru" if step == last else "", "buzz": step == last}
        yield {"question": question.id, "step": step, "token": word, "g": step + 1, **answer}


def _lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _texts(folder: Path, questions: list[Question]) -> None:
    """Write sentences and their translations for servers and training, and a VIST submission."""
    pairs: list[tuple[str, str]] = []
    for question in questions:
        pairs += zip(map(" ".join, question.sentences), question.reference, strict=False)
    for name, some in (("pairs", pairs), ("dev", pairs[:3])):
        (folder / f"{name}.tsv").write_text("".join(f"{x}\t{y}\n" for x, y in some), encoding="utf-8")
    for name, line in (("src.es", "Su capital es Lima ."), ("tgt.en", LINE)):
        (folder / name).write_text(f"{line}\n", encoding="utf-8")
    vectors = json.loads((ROOT / "services/tests/golden/vectors/vist_evaluator.json").read_text("utf-8"))
    (folder / "F").write_text(vectors["submissions_raw"]["ascii_cafe"], encoding="utf-8")
    (folder / "G").write_text(json.dumps(vectors["gs"]), encoding="utf-8")
    (folder / "T").write_text(json.dumps(vectors["template"]), encoding="utf-8")


def _configs(folder: Path) -> None:
    """Write configs and user code under the file names that the pages use."""
    [own] = re.findall(r"```yaml\n(name: fr-en\n.*?)```", (ROOT / "docs/own_data.md").read_text("utf-8"), re.DOTALL)
    shown = yaml.safe_load(own)
    corpus = shown["corpus"] | {"pair": "es-en", "vocabulary_size": 600, "lexicon_width": 0}
    training = shown | {"corpus": corpus, "model": SMALL | {"vocabulary": 600}, "train": SHORT}
    reference = RUN | {"translator": {"name": "fixed", "text": "reference", "reveal": "diagonal"}}
    for name, mapping in (
        ("fr_en", training),
        ("questions", RUN),
        ("other", RUN),
        ("third", reference),
        ("my", reference),
        ("waiting", {key: value for key, value in RUN.items() if key != "buzzer"}),
        ("mine", {"name": "of my own"}),
    ):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    (folder / "my.py").write_text(AGENT, encoding="utf-8")
    (folder / "mine.py").write_text(TABLES["item"], encoding="utf-8")
    shown = re.search(r"    # answered\.py\n(?:    .*\n|\n)+", (ROOT / "docs/board.md").read_text("utf-8"))
    (folder / "answered.py").write_text(dedent(shown[0]), encoding="utf-8")
    for name, token in (("token", "a" * 16), ("owners", "b" * 16), ("submitters", "c" * 16)):
        (folder / f"{name}.txt").write_text(token, encoding="utf-8")
