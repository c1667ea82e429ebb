"""Export texts, words and steps of finished runs, and sentences of question sets, for other programs."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sqa.core import NotComputable, Question, QuestionTrace
from sqa.data.own_questions import record_of
from sqa.files import write_text
from sqa.metrics.measure import sentence_references

Unit = Literal["sentence", "question"]
Side = Literal["hypotheses", "references", "sources"]
Part = Literal["sources", "references", "pairs"]  # part of a question; pairs: source and reference, separated by a tab


class Step(NamedTuple):
    """A target word with the guesser's and buzzer's state at its step."""

    question: str
    step: int  # 0-based
    word: str  # "" if the step only retracts words
    g: int  # words read of the source sentence
    rank: int | None  # rank of the first right guess, from 1; 0 = no right guess; None = no guesser ran
    score: float | None  # the buzzer's score; None = no buzzer ran
    buzz: bool | None


def steps(traces: Iterable[QuestionTrace]) -> Iterator[Step]:
    """Yield every step of every question, in order."""
    for trace in traces:
        nothing = [None] * len(trace.emissions)
        ranks = nothing if trace.guesses is None else trace.rank.tolist()
        rows = zip(trace.emissions, ranks, trace.buzzes or nothing, strict=True)
        for i, (emission, rank, buzz) in enumerate(rows):
            score, buzzed = (None, None) if buzz is None else (buzz.score, buzz.buzz)
            yield Step(trace.question.id, i, emission.token, emission.g, rank, score, buzzed)


def lines(traces: Iterable[QuestionTrace], to: str, side: Side, unit: Unit) -> Iterator[str]:
    """Yield the lines of an `sqa export` format."""
    if to == "text":
        return texts(traces, side, unit)
    return {"jsonl": json_lines, "csv": csv_lines, "submission": submission_lines}[to](traces)


def texts(traces: Iterable[QuestionTrace], side: Side, unit: Unit) -> Iterator[str]:
    """Yield the final translation, human translation or source text, one line per sentence or question."""
    for trace in traces:
        if side == "hypotheses":
            yield from trace.hypotheses if unit == "sentence" else [" ".join(filter(None, trace.hypotheses))]
        else:
            yield from question_texts([trace.question], side, unit)


def question_texts(questions: Iterable[Question], part: Part, unit: Unit) -> Iterator[str]:
    """Yield one line per sentence or question of a question set."""
    for question in questions:
        if unit == "question":
            sources, references = [question.text], [question.reference_text]
        else:
            sources, references = [" ".join(words) for words in question.sentences], sentence_references(question)
        pairs = ("\t".join(pair) for pair in zip(sources, references, strict=True))
        yield from {"sources": sources, "references": references, "pairs": pairs}[part]


def json_lines(traces: Iterable[QuestionTrace]) -> Iterator[str]:
    """Yield one JSON object per question: id, page, sentences of source and both translations, steps."""
    for trace in traces:
        document = {
            **record_of(trace.question),
            "hypothesis": trace.hypotheses,
            "steps": [
                {"sentence": emission.sentence}
                | {key: value for key, value in step._asdict().items() if key != "question"}
                for emission, step in zip(trace.emissions, steps([trace]), strict=True)
            ],
        }
        yield json.dumps(document, ensure_ascii=False)


def submission_lines(traces: Iterable[QuestionTrace]) -> Iterator[str]:
    """Yield one JSON object per step for `sqa validate sqa` and the board; `g` counts words of the whole question.

    The best guess and the buzz are included if both a guesser and a buzzer ran.  Raises NotComputable for retracted
    words.
    """
    for trace in traces:
        if any(emission.erase for emission in trace.emissions):
            raise NotComputable(f"{trace.question.id}: retracts words, which a submission cannot represent")
        written = [*zip((e.token for e in trace.emissions), trace.source_words.tolist(), strict=True)]
        for i, (token, g) in enumerate(written or [("", 0)]):
            row: dict[str, Any] = {"question": trace.question.id, "step": i, "token": token, "g": g}
            if trace.guesses is not None and trace.buzzes is not None:
                best = trace.guesses[i][:1] if written else ()
                row |= {"guess": best[0].page if best else "", "buzz": bool(written) and trace.buzzes[i].buzz}
            yield json.dumps(row, ensure_ascii=False)


def csv_lines(traces: Iterable[QuestionTrace]) -> Iterator[str]:
    """Yield the steps as CSV with a header; empty cells where no guesser or buzzer ran."""
    for row in (Step._fields, *steps(traces)):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(row)
        yield line.getvalue()


def write_instances(traces: Iterable[QuestionTrace], folder: Path, unit: Unit = "sentence") -> Path:
    """Write a run in SimulEval 1.1's format, for `simuleval --score-only --output FOLDER`; return the log's path.

    The translator `recorded` reads the log.  It has one line per sentence, or with `unit` "question" one per question
    with the delays of equation 1 (see `sqa.core.trace`).  A sentence's reference is its own human translation if source
    and translation have equally many sentences, else its share of the question's words.  Elapsed times are 0.  Raises
    NotComputable for a trace with retractions.
    """
    rows: list[str] = []
    for trace in traces:
        if any(emission.erase for emission in trace.emissions):
            raise NotComputable(f"{trace.question.id} retracts words, which an instances.log cannot represent")
        pairs = zip(*(question_texts([trace.question], side, unit) for side in ("sources", "references")), strict=True)
        for sentence, (source, reference) in enumerate(pairs):
            written = [e for e in trace.emissions if unit == "question" or e.sentence == sentence]
            delays = trace.source_words.tolist() if unit == "question" else [e.g for e in written]
            row = {"index": len(rows), "prediction": " ".join(e.token for e in written), "delays": delays}
            row |= {"elapsed": [0] * len(written), "prediction_length": len(written), "reference": reference}
            row |= {"source": source, "source_length": len(source.split())}
            rows.append(json.dumps(row) + "\n")
    write_text(folder / "config.yaml", "source_type: text\ntarget_type: text\n")
    write_text(folder / "instances.log", "".join(rows))
    return folder / "instances.log"
