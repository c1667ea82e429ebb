"""The built-in task: simultaneous question answering on XQB, one task per source language.

An example is a question: {"id", "language", "source": [sentence], "reference": [sentence], "page", "tags"}.  A
perturbed copy also has "input_id" and "transform".  A model receives "id", "language" and "source" and returns

    {"id": "q", "answered": true, "steps": [{"sentence": 0, "token": "The", "g": 3, "ended": false, "erase": 0,
                                             "guess": "Peru", "buzz": false}, ...]}

with one step per target word.  If `answered` is true, every step has `guess` and `buzz`; otherwise no step has them.  A
registered model is the config of a run, which the board runs on the data set, or a submission file for these questions
(protocols/submission.py).
"""

import dataclasses
import re
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqa.core import Buzz, ConfigError, DataError, Emission, Guess, Question, QuestionTrace, key
from sqa.data import perturb as perturbing
from sqa.data.datasets import load_questions
from sqa.data.own_questions import record_of
from sqa.files import Store, blocks_of
from sqa.files.records import lines_of
from sqa.pipeline import RunConfig, engine, run_in
from sqa_services.board.metrics import Answer, Job
from sqa_services.board.task import Example, Response, Task, joined
from sqa_services.protocols.submission import fitted, rows_of

UNTIL = "buzz"  # the board computes the scores itself
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def run_config(config: RunConfig, questions: Sequence[Question], work: Path) -> tuple[Sequence[QuestionTrace], Job]:
    """Return the traces of a run, and its duration and memory; the store below `work` keeps finished stages."""
    measured, start = _peak_cleared(), time.perf_counter()
    result = engine.run(config, Store(work), questions=questions, until=UNTIL, progress=False)
    seconds, peak = time.perf_counter() - start, _peak() if measured else None
    blocks = len(blocks_of(result.questions, engine.BLOCK_SIZE))
    whole = all(computed == blocks for computed in result.made.values())  # the run used no stored block
    return result.traces, Job(len(questions), seconds if whole else None, peak)


def _peak_cleared() -> bool:
    """Reset the peak memory of this process (proc(5)); return False if Linux does not support it."""
    try:
        return bool(_CLEAR.write_text("5"))
    except OSError:
        return False


def _peak() -> int | None:
    """Return the peak memory in bytes since the reset, or None if Linux does not report it."""
    match = re.search(r"^VmHWM:\s*(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    return int(match[1]) * 1024 if match else None


SHOWN_OF_PROBLEM = 300  # maximum number of characters of a problem
STEP, LAST = 25, 125  # source words per length tag; lower end of the last tag
MANY = 6  # minimum number of sentences for the last tag


@dataclasses.dataclass(frozen=True)
class QuestionTask(Task):
    """Task of questions in one source language."""

    language: str = "es"

    def load(self, source: str) -> list[Example]:
        """Return the questions of a named data set or of a file."""
        questions = load_questions(source)
        for question in questions:
            if question.language != self.language:
                raise DataError(
                    f"{source}: {question.id} is in {question.language!r}, but the task is in {self.language!r}"
                )
        return [record_of(question) | {"tags": tags_of(question)} for question in questions]

    def perturb(self, examples: Sequence[Example], kinds: Sequence[str], seed: int) -> dict[str, list[Example]]:
        """Return perturbed copies of questions by family."""
        copies: dict[str, list[Example]] = {}
        chosen = perturbing.chosen(kinds)
        for example in examples:
            question = question_of(example)
            for kind in chosen:
                if copy := perturbing.perturb(question, kind, seed):
                    more = {"tags": example["tags"], "input_id": question.id, "transform": kind.name}
                    copies.setdefault(kind.family, []).append(record_of(copy) | more)
        return copies

    def label(self, example: Example) -> dict[str, Any]:
        """Return the label; its `answer` is the whole question, with page and source."""
        extra = {key: example[key] for key in ("input_id", "transform") if key in example}
        return {"id": example["id"], "answer": question_of(example), "tags": list(example["tags"]), **extra}

    def prediction(self, response: Response) -> Answer:
        """Return words, guesses and buzzes of a model on the question."""
        steps = response["steps"]
        emissions = tuple(Emission(s["sentence"], s["token"], s["g"], s["ended"], s["erase"]) for s in steps)
        if not response["answered"]:
            return Answer(emissions, None, None)
        guesses = tuple((Guess(s["guess"], 1.0),) if s["guess"] else () for s in steps)
        return Answer(emissions, guesses, tuple(Buzz(float(s["buzz"]), s["buzz"]) for s in steps))

    def answer(self, prediction: Answer) -> str:
        """Return the top guess on the complete translation."""
        return prediction.page

    def answer_at(self, prediction: Answer) -> Any:
        """Return the answer at the first buzz, or at the end if there is none, and the sentence and words read."""
        steps = [*zip(prediction.emissions, prediction.guesses or (), prediction.buzzes or (), strict=False)]
        answered = ([step for step in steps if step[2].buzz] or steps[-1:])[:1]  # empty without words
        return [[key(guesses[0].page) if guesses else "", word.sentence, word.g] for word, guesses, _ in answered]

    def check_model(self, kind: str, model: bytes) -> None:
        """Raise ConfigError for an invalid config, or DataError for an invalid or empty submission."""
        if kind == "config":
            config = run_in(model, "model")
            if config.guesser is None or config.buzzer is None:
                raise ConfigError("model: a model of this task needs a guesser and a buzzer")
            return
        problems: list[str] = []
        rows, _ = rows_of(lines_of([model], "submission"), problems)
        if problems:
            shown = joined([problem[:SHOWN_OF_PROBLEM] for problem in problems])
            raise DataError(f"submission: {shown}; `sqa validate sqa` checks a file")
        if not rows:
            raise DataError("submission: has no rows")

    def respond(self, kind: str, model: bytes, examples: Sequence[Example], work: Path) -> tuple[list[Response], Job]:
        """Return the responses of a run's config or of a submission."""
        questions, job = list(map(question_of, examples)), Job(len(examples), None, None)
        if kind == "config":
            traces, job = run_config(run_in(model, "model"), questions, work)
        else:
            traces = submitted(model, questions)
        return list(map(_response, traces)), job


def question_of(example: Example) -> Question:
    """Return the question of an example."""
    sentences = tuple(tuple(sentence.split()) for sentence in example["source"])
    return Question(
        example["id"], "board", example["language"], sentences, tuple(example["reference"]), example["page"]
    )


def _response(trace: QuestionTrace) -> dict[str, Any]:
    """Return a trace as a response: the top guess and the buzz at each step."""
    answered = trace.guesses is not None and trace.buzzes is not None
    steps: list[dict[str, Any]] = [dataclasses.asdict(emission) for emission in trace.emissions]
    if answered:
        for step, guesses, buzz in zip(steps, trace.guesses, trace.buzzes, strict=True):  # type: ignore[arg-type]
            step |= {"guess": guesses[0].page if guesses else "", "buzz": buzz.buzz}
    return {"id": trace.question.id, "answered": answered, "steps": steps}


# ------------------------------------------------------------------------------------------------------------ tags


def tags_of(question: Question) -> list[str]:
    """Return the tags of a question.

    length:50-74          source words, in steps of 25
    sentences:3           source sentences, at most "6+"
    """
    start = min(len(question.words) // STEP * STEP, LAST)
    length = f"{start}+" if start == LAST else f"{start}-{start + STEP - 1}"
    sentences = f"{MANY}+" if len(question.sentences) >= MANY else str(len(question.sentences))
    return [f"length:{length}", f"sentences:{sentences}"]


# --------------------------------------------------------------------------------------------------------- models


def submitted(submission: bytes, questions: Sequence[Question]) -> list[QuestionTrace]:
    """Return the traces of a submission's rows for these questions; rows for other questions are ignored."""
    problems: list[str] = []
    traces = fitted(*rows_of(lines_of([submission], "submission"), problems), questions, problems)
    if traces and traces[0].buzzes is None:
        problems.append("guess, buzz: no row has them, but expected wins need answers")
    if problems:
        raise DataError(f"submission: {joined(problems)}")
    return traces


def _task(language: str) -> QuestionTask:
    return QuestionTask(
        code=f"sqa-{language}",
        language=language,
        input_keys=("id", "language", "source"),
        eval_metrics=("ew", "oracle_ew", "qa_accuracy", "corpus_bleu", "chrf", "al", "laal", "ap", "dal"),
        perf_metric="ew",
        delta_metrics=perturbing.FAMILIES,
        default_weights={"ew": 4.0, "dal": 1.0, "fairness": 1.0, "robustness": 1.0, "simultaneous": 1.0},
    )


spanish, polish = partial(_task, "es"), partial(_task, "pl")
