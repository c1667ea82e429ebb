"""Export texts, words, steps and scores of finished runs, and sentences of question sets, for other programs."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from sqa import __version__
from sqa.core.errors import NotComputable
from sqa.core.packages import need
from sqa.core.significance import LEVEL
from sqa.core.trace import QuestionTrace
from sqa.core.types import Question
from sqa.data.own_questions import record_of
from sqa.metrics.measure import RANGES, sentence_references
from sqa.pipeline import paired
from sqa.pipeline.config import to_mapping
from sqa.pipeline.folder import RunFolder
from sqa.pipeline.saving import SUMMARY
from sqa.results import Row

EVERY_EVAL_EVER = "0.3.0"  # schema version of eval.schema.json in github.com/evaleval/every_eval_ever

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
        q, before = trace.question, [0, *accumulate(map(len, trace.question.sentences))]
        if any(emission.erase for emission in trace.emissions):
            raise NotComputable(f"{q.id}: retracts words, which a submission cannot represent")
        written = [(emission.token, before[emission.sentence] + emission.g) for emission in trace.emissions]
        for i, (token, g) in enumerate(written or [("", 0)]):
            row: dict[str, Any] = {"question": q.id, "step": i, "token": token, "g": g}
            if trace.guesses is not None and trace.buzzes is not None:
                best = trace.guesses[i][:1] if written else ()
                row |= {"guess": best[0].page if best else "", "buzz": bool(written) and trace.buzzes[i].buzz}
            yield json.dumps(row, ensure_ascii=False)


def parquet(traces: Iterable[QuestionTrace]) -> bytes:
    """Return the steps as a Parquet file; null where no guesser or buzzer ran."""
    need("pyarrow", "--to parquet")
    import pyarrow as pa
    from pyarrow.parquet import write_table

    kinds = (pa.string(), pa.int32(), pa.string(), pa.int32(), pa.int32(), pa.float64(), pa.bool_())
    schema, file = pa.schema([*zip(Step._fields, kinds, strict=True)]), io.BytesIO()
    write_table(pa.Table.from_pylist([row._asdict() for row in steps(traces)], schema=schema), file, compression="zstd")
    return file.getvalue()


def csv_lines(traces: Iterable[QuestionTrace]) -> Iterator[str]:
    """Yield the steps as CSV with a header; empty cells where no guesser or buzzer ran."""
    for row in (Step._fields, *steps(traces)):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(row)
        yield line.getvalue()


def every_eval_ever(run: RunFolder) -> str:
    """Return a run's scores as an Every Eval Ever document; metrics without a value are omitted."""
    config = to_mapping(run.config)
    translator, measured = run.config.translator.name, [row for row in run.report.values() if row.metric in run.stats]
    written = str(int((run.folder / SUMMARY).stat().st_mtime))
    source: dict[str, Any] = {"dataset_name": run.config.dataset.name, "source_type": "other"}
    source["additional_details"] = {"fingerprint": run.dataset, "questions": str(len(run.questions))}
    system = str(config["translator"].get("model", translator))
    known = {"deployment_type": "unknown", "model_availability": "unknown"}  # required, but not in a config
    stages = {stage: json.dumps(config[stage]) for stage in ("translator", "guesser", "buzzer") if config.get(stage)}
    metrics = paired.metrics_of([row.metric for row in measured], run)
    document = {
        "schema_version": EVERY_EVAL_EVER,
        "evaluation_id": f"sqa-{source['dataset_name']}/{translator}/{written}",
        "retrieved_timestamp": written,
        "source_metadata": {
            "source_name": "sqa",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "sqa", "version": __version__},
        "model_info": {"name": system, "id": f"{translator}/{system}", "additional_details": known | stages},
        "evaluation_results": [
            _result(row, metric.higher_is_better, source) for row, metric in zip(measured, metrics, strict=True)
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2)


def _result(row: Row, higher_is_better: bool, source: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of `evaluation_results`."""
    low, high = RANGES.get(row.unit, (-sys.float_info.max, sys.float_info.max))  # the schema requires bounds
    score: dict[str, Any] = {"score": row.value, "details": {"signature": row.signature}}
    if row.low is not None and row.high is not None:
        interval = {
            "lower": row.low,
            "upper": row.high,
            "confidence_level": LEVEL,
            "method": "bootstrap over questions",
        }
        score["uncertainty"] = {"confidence_interval": interval, "num_samples": row.n}
    scale = {"lower_is_better": not higher_is_better, "score_type": "continuous", "min_score": low, "max_score": high}
    config = {"evaluation_description": f"{row.metric}, {row.unit}", **scale}
    return {"evaluation_name": row.metric, "source_data": source, "metric_config": config, "score_details": score}
