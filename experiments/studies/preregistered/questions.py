"""Questions of the preregistered tests: unseen tossups, put into Spanish by machine.

A question is left out if it repeats a text of the guessers' training data.  The overlap of two texts is the number of
common six-word sequences ("runs"), as a share of the runs of the text with fewer runs.  A question repeats a text if
that share is at least .3 and there are at least four common runs.  Two tossups on the same answer with the same famous
quotation can reach .2; a reused question is near 1.
"""

import hashlib
import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from sqa.core import GUESSERS, DataError, Question, key
from sqa.data import download
from sqa.data.own_questions import record_of
from sqa.data.sentences import split
from sqa.files import records, write_text
from sqa.pipeline import Parts, read_parts

POOL, TRAINING = "human-buzzes", ("tossups",)
MODES = ("eng-cat", "cat-spa")  # Apertium pairs, used in sequence; no translator here was trained on their output
PACKAGES = "apertium-eng-cat and apertium-spa-cat"
GUESSER = {"name": "rerank"}
RUN = 6  # words per run
SHARE, RUNS = 0.3, 4  # minimum share and minimum number of common runs
_WORD = re.compile(r"\w+")

Run = tuple[str, ...]


def repeated(questions: Sequence[Question], training: Sequence[str]) -> set[str]:
    """Return the ids of the questions that repeat a training text.

    `training` lists names in the manifest or paths of JSON Lines files whose records have a `text`.
    """
    by_question = {question.id: runs_of(question.text) for question in questions}
    with_run: defaultdict[Run, list[str]] = defaultdict(list)
    for id, text_runs in by_question.items():
        for run in text_runs:
            with_run[run].append(id)
    found: set[str] = set()
    for text in tqdm(_texts(training), "training texts against the questions", mininterval=2, leave=False):
        text_runs = runs_of(text)
        for id, shared in Counter(id for run in text_runs for id in with_run.get(run, ())).items():
            if shared >= RUNS and shared / min(len(text_runs), len(by_question[id])) >= SHARE:
                found.add(id)
    return found


def runs_of(text: str) -> set[Run]:
    """Return all sequences of RUN consecutive words of a text, ignoring case and punctuation."""
    words = _WORD.findall(text.casefold())
    return set(zip(*(words[start:] for start in range(RUN)), strict=False))


def _texts(training: Sequence[str]) -> Iterator[str]:
    names = {entry.name for entry in download.entries()}
    for source in training:
        path = download.path_of(source) if source in names else Path(source)
        for i, record in enumerate(records.json_lines(path)):
            if not isinstance(record.get("text"), str):
                raise DataError(f"{path}: record {i}: has no text")
            yield record["text"]


def chosen(pool: Sequence[Question], n: int) -> list[Question]:
    """Return the first n usable questions, in the order of the hashes of their ids.

    A question is usable if no training text repeats it and the guesser can name its answer.
    """
    [config] = read_parts(guesser=GUESSER)
    known = {key(page) for page in Parts().component(GUESSERS, config).pages}
    repeats = repeated(pool, TRAINING)
    usable = [question for question in pool if key(question.page) in known and question.id not in repeats]
    if len(usable) < n:
        raise DataError(f"{POOL}: {len(usable)} usable questions, {n} are needed")
    return sorted(usable, key=lambda question: hashlib.sha256(f"unseen {question.id}".encode()).digest())[:n]


def in_spanish(sentences: Sequence[str]) -> list[str]:
    """Translate English sentences into Spanish; raise DataError if a sentence is lost or Apertium is missing."""
    text = "\n".join(sentences) + "\n"
    for mode in MODES:
        try:
            done = subprocess.run(["apertium", "-u", mode], input=text, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise DataError(f"apertium -u {mode}: {error}; install {PACKAGES}") from error
        text = done.stdout
    lines = text.split("\n")[:-1]
    if len(lines) != len(sentences) or not all(line.strip() for line in lines):
        raise DataError(f"apertium: {len(lines)} lines for {len(sentences)} sentences, or an empty one")
    return lines


def write_questions(questions: Sequence[Question], path: Path) -> None:
    """Write the questions with their sentences in Spanish and the English text as the human translation."""
    english = [[" ".join(words) for words in split(question.text, "en")] for question in questions]
    spanish = iter(in_spanish([sentence for text in english for sentence in text]))
    lines = []
    for question, text in zip(questions, english, strict=True):
        made = {"language": "es", "source": [next(spanish) for _ in text], "reference": text}
        lines.append(json.dumps({**record_of(question), **made}, ensure_ascii=False))
    write_text(path, "\n".join(lines) + "\n")
