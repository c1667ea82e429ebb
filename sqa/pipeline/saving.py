"""A run's folder as it is written, here or taken to another process (read: sqa/pipeline/folder.py).

    <runs>/<name>/report.tsv     one line per metric: value, interval, unit, signature
    <runs>/<name>/config.yaml    the whole config, defaults included; `sqa run` takes it back
    <runs>/<name>/stats.npz      additive statistics per question and metric: all that `sqa compare` needs
    <runs>/<name>/run.json       store keys of the stages, data set fingerprint, signatures, digests of the other files

The same config on the same data gives the same bytes in all four.  run.json is written last and removed first, so a
folder that has it is whole.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from sqa import __version__
from sqa.core.errors import NotComputable, RemoteProtocolError
from sqa.core.significance import bootstrap
from sqa.core.trace import scores_table
from sqa.files.atomic import bytes_digest, held, write_together
from sqa.files.model_files import model_digest
from sqa.files.records import parse_json
from sqa.files.store import table_bytes
from sqa.metrics import PRINTED
from sqa.pipeline.config import RunConfig, to_mapping
from sqa.pipeline.engine import EMPTY_QUESTIONS, EMPTY_SENTENCES, RunResult

REPORT, CONFIG, SUMMARY, STATS = "report.tsv", "config.yaml", "run.json", "stats.npz"
TIMES = "times.json"  # {stage: seconds of wall time}, of the stages that were made for this run in one go
RESAMPLES = 1000
UNKNOWN_PAGES = PRINTED[2]
COUNTED = ("questions", "sentences")  # units of lines that count
REPORT_HEADER = ("metric", "value", "low", "high", "n", "unit", "signature")


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
    try:
        if metric.name in result.refusals:
            raise NotComputable(result.refusals[metric.name])
        interval = bootstrap(result.stats[metric.name], metric, RESAMPLES, result.config.seed)
    except (NotComputable, RemoteProtocolError) as error:
        reason = " ".join(str(error).split()).removeprefix(f"{metric.name}: ")
        return ReportRow(metric.name, None, None, None, n, unit, f"not computed: {reason}")
    low, high = defined(interval.low), defined(interval.high)
    return ReportRow(metric.name, interval.value, low, high, n, unit, signature)


def save(result: RunResult, runs: Path) -> Path:
    """Write the folder of a run: `pack`, then `unpack`.  Returns the folder."""
    folder = runs / result.config.name
    unpack(pack(result), folder)
    return folder


def pack(result: RunResult) -> dict[str, bytes]:
    """Return the files of a run's folder by name, for this process or another one to write: `unpack`."""
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
    scores = {q.id: result.scores[q.id] for q in result.questions}
    files = {
        CONFIG: yaml.safe_dump(to_mapping(result.config), sort_keys=False).encode(),
        STATS: table_bytes(scores_table(scores), stamp(stage.dataset)),
        REPORT: tsv(REPORT_HEADER, (row.cells() for row in report_rows(result))).encode(),
    }
    summary["files"] = {name: bytes_digest(data) for name, data in files.items()}
    return {
        **files,
        TIMES: json.dumps(result.seconds).encode(),
        SUMMARY: (json.dumps(summary, indent=2, ensure_ascii=False) + "\n").encode(),
    }


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of `pack`, all or none; times of the same stages stay.

    A full disk leaves the run that was there.  The folder is locked meanwhile: of several equal runs each reads the
    times of the one before it.
    """
    with held(folder):
        times = times_of(folder, parse_json(files[SUMMARY])["stages"]) | parse_json(files[TIMES])
        write_together(folder, {**files, TIMES: f"{json.dumps(times)}\n".encode()})


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


def stages_of(folder: Path) -> dict[str, str]:
    """Store keys by stage of the run in a folder; empty where it is missing or damaged."""
    try:
        return dict(parse_json((folder / SUMMARY).read_bytes())["stages"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def times_of(folder: Path, keys: Mapping[str, str]) -> dict[str, float]:
    """The times that an earlier run in this folder recorded of the same stages, which are not made again."""
    try:
        earlier, times = stages_of(folder), parse_json((folder / TIMES).read_bytes())
        return {name: seconds for name, seconds in times.items() if earlier.get(name) == keys.get(name)}
    except (FileNotFoundError, ValueError, KeyError, AttributeError):
        return {}  # missing, or not written by this program


def tsv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A TSV text with a header line."""
    return "".join("\t".join(cells) + "\n" for cells in (header, *rows))


def stamp(dataset: str) -> dict[str, str]:
    return {"dataset": dataset, "stage": "run"}


def number_cell(value: float | None, whole: bool) -> str:
    """A number as the cells of a report have it."""
    if value is None:
        return "n/a"
    return str(int(value)) if whole else f"{value:.6f}"


def defined(value: float) -> float | None:
    """None in place of nan."""
    return None if math.isnan(value) else value
