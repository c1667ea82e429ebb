"""A run's folder: what is written there, and how it is read back (two of them compared: sqa/run/paired.py).

    <runs>/<name>/report.tsv     one line per metric: value, interval, unit, signature
    <runs>/<name>/config.yaml    the whole config, defaults included; `sqa run` takes it back
    <runs>/<name>/run.json       store keys of the stages, data set fingerprint, signatures
    <runs>/<name>/stats.npz      additive statistics per question and metric: all that `sqa compare` needs

The same config on the same data gives the same bytes in all four.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from sqa import __version__
from sqa.core.errors import ConfigError, DataError, NotComputable, RemoteProtocolError
from sqa.core.significance import bootstrap
from sqa.core.trace import SCORES, Score, scores_rows, scores_table
from sqa.core.types import Question
from sqa.files.atomic import held, write_bytes, write_text
from sqa.files.model_files import model_digest
from sqa.files.records import parse_json
from sqa.files.store import OLDER, Store, Traces, blocks_of, dataset_fingerprint, read_table, write_table
from sqa.run.config import RunConfig, load_run, to_mapping
from sqa.run.parts import Parts
from sqa.run.pipeline import BLOCK_SIZE, EMPTY_QUESTIONS, EMPTY_SENTENCES, RunResult

REPORT, CONFIG, SUMMARY, STATS = "report.tsv", "config.yaml", "run.json", "stats.npz"
_KEY = re.compile(r"[0-9A-Za-z_-]+")  # of a stage in the store: the name of its folder
TIMES = "times.json"  # {stage: seconds of wall time}, of the stages that were made for this run in one go
RESAMPLES = 1000
UNKNOWN_PAGES = "unknown-pages"  # a line of the report beside EMPTY_QUESTIONS and EMPTY_SENTENCES
COUNTED = ("questions", "sentences")  # units of lines that count
TRACED = ("translate", "guess", "buzz")  # stages whose rows a trace holds


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One line of a report.  None = not applicable (a count has no interval; a refused metric no value)."""

    metric: str
    value: float | None
    low: float | None  # 95% BCa bootstrap interval over questions
    high: float | None
    n: int  # questions (for empty-sentences: sentences)
    unit: str  # "0-1", "0-100", "words", "per word", "per 100 words", "mean score", "score", "questions", "sentences"
    signature: str

    def cells(self) -> list[str]:
        """The cells of a TSV line; numbers with six digits, counts whole, "n/a" where there is no number."""
        whole = self.unit in COUNTED
        numbers = [number_cell(x, whole) for x in (self.value, self.low, self.high)]
        return [self.metric, *numbers, str(self.n), self.unit, self.signature]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run's folder as `read` returns it; `open` gives its traces."""

    folder: Path
    config: RunConfig
    dataset: str  # fingerprint of the questions
    signatures: dict[str, str]  # metric -> signature; only the metrics that have a value
    stats: dict[str, np.ndarray]  # metric -> (questions, d)
    questions: tuple[str, ...]  # ids in order
    refusals: dict[str, str] = field(default_factory=dict)  # metric -> why it has no value
    stages: dict[str, str] = field(default_factory=dict)  # stage -> store key

    @property
    def times(self) -> dict[str, float] | None:
        """Wall seconds of the stages; None where the run recorded none.  Damaged: DataError."""
        path = self.folder / TIMES
        if not path.is_file():
            return None
        try:
            times = parse_json(path.read_bytes())
            return {str(stage): float(seconds) for stage, seconds in times.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: damaged ({error}); delete it") from error

    @property
    def counts(self) -> dict[str, int]:
        """The counts by the name of their line in the report.  Damaged, or without EMPTY_SENTENCES: DataError."""
        path = self.folder / REPORT
        try:
            lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
            columns = [dict(zip(REPORT_HEADER, line, strict=True)) for line in lines[1:]]
            counts = {c["metric"]: int(c["value"]) for c in columns if c["unit"] in COUNTED}
        except ValueError as error:
            raise DataError(f"{path}: damaged ({error}); run the config again") from error
        if EMPTY_SENTENCES not in counts:
            raise DataError(f"{path}: has no line {EMPTY_SENTENCES}; run the config again")
        return counts

    def open(self, parts: Parts | None = None) -> FinishedRun:
        """The questions and traces, from the store beside the folder: no model or data set is loaded, nothing computed.

        If the store lacks the questions (it is of an earlier version), the data set is read.  DataError if that has
        changed, or the store lacks the run's stages or has them in another schema.
        """
        if "translate" not in self.stages:
            raise DataError(f"{self.folder / SUMMARY}: names no stages; run the config again")
        store = Store(self.folder.resolve().parent)
        if store.backend.exists(store.questions(self.dataset)):
            questions = store.kept(self.dataset)
        else:
            questions = (parts or Parts()).questions(self.config.dataset)
            if dataset_fingerprint(questions) != self.dataset:
                name = self.config.dataset.name
                raise DataError(f"{self.folder}: made from other questions than {name} now has; run it again")
        stages = {name: store.stage(name, self.stages[name]) for name in TRACED if name in self.stages}
        return FinishedRun(self.folder, self.config, questions, Traces(store, blocks_of(questions, BLOCK_SIZE), stages))


@dataclass(frozen=True)
class FinishedRun:
    """A finished run with its questions and traces."""

    folder: Path
    config: RunConfig
    questions: list[Question]
    traces: Traces  # read from the store block by block

    @property
    def guessed(self) -> bool:
        """Whether a guesser ran."""
        return self.config.guesser is not None


REPORT_HEADER = ("metric", "value", "low", "high", "n", "unit", "signature")


def report_rows(result: RunResult) -> list[ReportRow]:
    """One row per metric of the run, then the counts of empty output and unknown pages."""
    rows = [_metric_row(result, metric) for metric in result.metrics]
    for name, unit in ((EMPTY_QUESTIONS, "questions"), (EMPTY_SENTENCES, "sentences")):
        empty, of = result.stats[name].sum(axis=0)
        rows.append(ReportRow(name, float(empty), None, None, int(of), unit, "no target word was written"))
    if result.unknown_pages is not None:
        signature = "the guesser does not know the answer page; scored as wrong"
        n = len(result.questions)
        rows.append(ReportRow(UNKNOWN_PAGES, float(result.unknown_pages), None, None, n, "questions", signature))
    return rows


def _metric_row(result: RunResult, metric: Any) -> ReportRow:
    unit, n, signature = metric.unit, len(result.questions), metric.signature()
    if metric.name in result.refusals:
        return ReportRow(metric.name, None, None, None, n, unit, signature)
    try:
        interval = bootstrap(result.stats[metric.name], metric, RESAMPLES, result.config.seed)
    except NotComputable:
        return ReportRow(metric.name, None, None, None, n, unit, signature)
    except RemoteProtocolError as error:
        return ReportRow(metric.name, None, None, None, n, unit, f"not computed: {' '.join(str(error).split())}")
    low, high = defined(interval.low), defined(interval.high)
    return ReportRow(metric.name, interval.value, low, high, n, unit, signature)


def save(result: RunResult, runs: Path) -> Path:
    """Write the folder of a run, each file whole or not at all, the report last.  Returns the folder.

    The folder is locked meanwhile: of several equal runs each reads the times of the one before it.
    """
    folder = runs / result.config.name
    with held(folder):
        _save(result, folder)
    return folder


def _save(result: RunResult, folder: Path) -> None:
    stage = result.stages["score"]
    summary = {
        "dataset": stage.dataset,
        "questions": len(result.questions),
        "seed": result.config.seed,
        "signatures": {metric.name: metric.signature() for metric in result.metrics},
        "refusals": result.refusals,
        "stages": result.keys,
        "made_with": {"version of sqa": __version__, **weights(result.config)},
    }
    if models := hub_models(result.config):
        summary["models"] = models
    times = _times(folder, result.keys) | result.seconds
    write_text(folder / CONFIG, yaml.safe_dump(to_mapping(result.config), sort_keys=False))
    scores = {q.id: result.scores[q.id] for q in result.questions}
    write_table(folder / STATS, scores_table(scores), _stamp(stage.dataset))
    write_text(folder / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    write_text(folder / TIMES, json.dumps(times) + "\n")
    write_text(folder / REPORT, tsv(REPORT_HEADER, (row.cells() for row in report_rows(result))))


def hub_models(config: object) -> dict[str, str]:
    """Name -> commit of every model of the Hugging Face hub that a config names and this machine has."""
    if isinstance(config, (tuple, list)):
        return {name: commit for inner in config for name, commit in hub_models(inner).items()}
    if not is_dataclass(config):
        return {}
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    commits = {name: commit for inner in values.values() for name, commit in hub_models(inner).items()}
    for key, revision in (("model", "revision"), ("base", "revision"), ("encoder", "encoder_revision")):
        if "download" in values and isinstance(name := values.get(key), str):
            from sqa.files.hub import commit_of

            commit = commit_of(name, values.get(revision, values.get("revision")))
            commits |= {name: commit} if commit else {}
    return commits


def weights(config: RunConfig) -> dict[str, str]:
    """ "weights of the guesser" -> first digits of the digest of the files of each component's model."""
    digests = {}
    for part in ("translator", "guesser", "buzzer"):
        component = getattr(config, part)
        model = getattr(component.options, "model", None) if component is not None else None
        if isinstance(model, str) and (digest := model_digest(model, f"buzzer-{component.name}-")):
            digests[f"weights of the {part}"] = digest[:12]
    return digests


def made_with(folder: Path) -> dict[str, str]:
    """`weights` and the version when a run was finished; empty where its summary has none."""
    try:
        recorded = parse_json((folder / SUMMARY).read_bytes()).get("made_with", {})
        return {str(key): str(value) for key, value in recorded.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{folder / SUMMARY}: damaged ({error}); run the config again") from error


def pack(result: RunResult) -> dict[str, bytes]:
    """The files of a run's folder by name, for another process to write: `unpack`."""
    with TemporaryDirectory() as scratch:
        folder = save(result, Path(scratch))
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of `pack`, each whole or not at all, the report last; times of the same stages stay."""
    stages = parse_json(files[SUMMARY])["stages"]
    times = _times(folder, stages) | parse_json(files[TIMES])
    texts = {name: data.decode() for name, data in files.items() if name != STATS} | {TIMES: json.dumps(times) + "\n"}
    with held(folder):
        write_bytes(folder / STATS, files[STATS])
        for name in (CONFIG, SUMMARY, TIMES, REPORT):
            write_text(folder / name, texts[name])


def stages_of(folder: Path) -> dict[str, str]:
    """Store keys by stage of the run in a folder; empty where it is missing or damaged."""
    try:
        return dict(parse_json((folder / SUMMARY).read_bytes())["stages"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _times(folder: Path, keys: Mapping[str, str]) -> dict[str, float]:
    """The times that an earlier run in this folder recorded of the same stages, which are not made again."""
    try:
        earlier, times = stages_of(folder), parse_json((folder / TIMES).read_bytes())
        return {name: seconds for name, seconds in times.items() if earlier.get(name) == keys.get(name)}
    except (FileNotFoundError, ValueError, KeyError, AttributeError):
        return {}  # missing, or not written by this program


def read(folder: Path) -> RunFolder:
    """Read a run's folder back.  Not a run's folder, or a damaged one: ConfigError or DataError saying so."""
    for name in (CONFIG, SUMMARY, STATS):
        if not any((folder / name).with_suffix(suffix).is_file() for suffix in {Path(name).suffix, OLDER}):
            problem = f"is not the folder of a finished run (no {name})"
            raise ConfigError(f"{folder}: {problem}; make one with `sqa run CONFIG`")
    try:
        summary = parse_json((folder / SUMMARY).read_bytes())
        dataset, signatures, refusals = summary["dataset"], summary["signatures"], summary["refusals"]
        stages = summary.get("stages")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder / SUMMARY}: damaged ({error}); run the config again") from error
    valid = isinstance(dataset, str) and all(isinstance(texts, dict) for texts in (signatures, refusals))
    if not valid or not all(isinstance(text, str) for text in (*signatures.values(), *refusals.values())):
        problem = "expected a text as dataset, and texts by metric as signatures and as refusals"
        raise DataError(f"{folder / SUMMARY}: damaged ({problem}); run the config again")
    scores = scores_rows(read_table(folder / STATS, SCORES, _stamp(dataset)))
    signatures = {name: signature for name, signature in signatures.items() if name not in refusals}
    lacking = sorted(name for name in signatures if not all(name in row for row in scores.values()))
    if lacking:
        problem = f"a signature of {lacking[0]!r:.80}, of which {STATS} has no statistics"
        raise DataError(f"{folder / SUMMARY}: damaged ({problem}); run the config again")
    stats, questions = _stats(scores, signatures), tuple(scores)
    stages = stages if isinstance(stages, dict) else {}
    if not all(isinstance(key, str) and _KEY.fullmatch(key) for key in stages.values()):
        raise DataError(f"{folder / SUMMARY}: damaged (stages must be keys of the store); run the config again")
    return RunFolder(folder, load_run(folder / CONFIG), dataset, signatures, stats, questions, refusals, stages)


def open_run(folder: Path, parts: Parts | None = None) -> FinishedRun:
    """The run that `sqa run` wrote to `folder`: `read`, then `RunFolder.open`."""
    return read(folder).open(parts)


def tsv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A TSV text with a header line."""
    return "".join("\t".join(cells) + "\n" for cells in (header, *rows))


def _stats(scores: Mapping[str, Mapping[str, Score]], names: Iterable[str]) -> dict[str, np.ndarray]:
    return {name: np.array([row[name].stats for row in scores.values()], dtype=np.float64) for name in names}


def _stamp(dataset: str) -> dict[str, str]:
    return {"dataset": dataset, "stage": "run"}


def number_cell(value: float | None, whole: bool) -> str:
    """A number as the cells of a report have it."""
    if value is None:
        return "n/a"
    return str(int(value)) if whole else f"{value:.6f}"


def defined(value: float) -> float | None:
    """None in place of nan."""
    return None if math.isnan(value) else value
