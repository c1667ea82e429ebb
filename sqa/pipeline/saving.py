"""Write a run's folder, here or in another process (sqa/pipeline/folder.py reads it).

    <runs>/<name>/report.tsv     one line per metric: value, interval, unit, signature
    <runs>/<name>/config.yaml    the whole config, defaults included; `sqa run` accepts it
    <runs>/<name>/stats.npz      additive statistics per question and metric, the input of `sqa compare`
    <runs>/<name>/run.json       store keys of the stages, data set fingerprint, signatures, digests of the other files

The same config on the same data gives identical bytes in all four files.  run.json is written last and removed first,
so a folder that contains it is complete.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from sqa import __version__
from sqa.core import NotComputable, RemoteProtocolError, bootstrap, in_a_line
from sqa.core.trace import scores_table
from sqa.files import bytes_digest, dump_yaml, locked, parse_json, write_bytes
from sqa.files.store import table_bytes
from sqa.metrics import PRINTED
from sqa.pipeline.config import to_mapping
from sqa.pipeline.engine import ANSWERED, EMPTY_QUESTIONS, EMPTY_SENTENCES, RunResult
from sqa.results import Frame, Row, row_of

REPORT, CONFIG, SUMMARY, STATS = "report.tsv", "config.yaml", "run.json", "stats.npz"
RESAMPLES = 1000
UNKNOWN_PAGES = PRINTED[2]
COUNTED = ("questions", "sentences", "replies", "tokens")  # units of counts


def report(result: RunResult) -> Frame:
    """Return a row per metric of the run, followed by the counts of empty output, unknown pages and model replies."""
    rows = [_metric_row(result, metric) for metric in result.metrics]
    for name, unit in ((EMPTY_QUESTIONS, "questions"), (EMPTY_SENTENCES, "sentences")):
        empty, of = map(int, result.stats[name].sum(axis=0))
        rows.append(Row((), name, empty, n=of, unit=unit, signature="no target word was written"))
    if result.unknown_pages is not None:
        signature = "the guesser does not know the answer page; scored as wrong"
        n = len(result.questions)
        rows.append(Row((), UNKNOWN_PAGES, result.unknown_pages, n=n, unit="questions", signature=signature))
    if result.answered is not None:
        n, why = result.answered
        notes = (f"none: {why}" if why else "questions with a buzz", result.mismatch)
        signature = "; ".join(filter(None, notes))
        rows.append(Row((), ANSWERED, n, n=len(result.questions), unit="questions", signature=signature))
    if getattr(result.config.translator.options, "COUNTS_REPLIES", False):
        from sqa.pipeline import usage

        rows += usage.rows(result.store, result.stages["translate"])
    return Frame((), tuple(rows))


def _metric_row(result: RunResult, metric: Any) -> Row:
    try:
        if metric.name in result.refusals:
            raise NotComputable(result.refusals[metric.name])
        interval = bootstrap(result.stats[metric.name], metric, RESAMPLES, result.config.seed)
    except (NotComputable, RemoteProtocolError) as error:
        reason = in_a_line(error).removeprefix(f"{metric.name}: ")
        n, signature = len(result.questions), f"not computed: {reason}"
        return Row((), metric.name, None, n=n, unit=metric.unit, signature=signature)
    return row_of((), metric.name, interval, metric.unit, signed(metric, result.settings))


def signed(metric: Any, settings: Mapping[str, str]) -> str:
    """Return a metric's signature with the guesser, the buzzer and the questions that its value depends on.

    The translation is what a metric measures, so no signature names the translator.
    """
    needs = ("guesses", "buzzes") if metric.kind == "answers" else ()
    needs = getattr(getattr(metric, "family", None), "needs", needs)
    parts = {"guesser": "guesses" in needs, "buzzer": "buzzes" in needs, "questions": True}
    return "|".join([metric.signature(), *(f"{name}:{settings[name]}" for name in settings if parts[name])])


def save(result: RunResult, runs: Path, rows: Frame | None = None) -> Path:
    """Write the folder of a run (`pack`, then `unpack`) and return it."""
    folder = runs / result.config.name
    unpack(pack(result, rows), folder)
    return folder


def pack(result: RunResult, rows: Frame | None = None) -> dict[str, bytes]:
    """Return the files of a run's folder by name, for `unpack` in this or another process.

    rows: the run's `report`, if it is known.
    """
    stage = result.stages["score"]
    summary = {
        "dataset": stage.dataset,
        "questions": len(result.questions),
        "seed": result.config.seed,
        "signatures": {metric.name: metric.signature() for metric in result.metrics},
        "refusals": result.refusals,
        "settings": result.settings,
        "stages": result.keys,
        "made_with": {"version of sqa": __version__},
    }
    if getattr(options := result.config.translator.options, "COUNTS_REPLIES", False):
        from sqa.pipeline import usage

        summary["translator"] = usage.spent(result.store, result.stages["translate"], options.prices)
    if computed := places(result.config):
        summary["computed_on"] = computed
    if models := hub_models(result.config):
        summary["models"] = models
    scores = {q.id: result.scores[q.id] for q in result.questions}
    files = {
        CONFIG: dump_yaml(to_mapping(result.config)).encode(),
        STATS: table_bytes(scores_table(scores), stamp(stage.dataset)),
        REPORT: (rows or report(result)).table().to_tsv().encode(),
    }
    summary["files"] = {name: bytes_digest(data) for name, data in files.items()}
    files[SUMMARY] = (json.dumps(summary, indent=2, ensure_ascii=False) + "\n").encode()
    return files


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of `pack` that differ from those of the folder.

    The summary, which comes last, has the digests of the others, so a reader refuses a mixture of two runs.
    """
    with locked(folder):
        for path, data in ((folder / name, data) for name, data in files.items()):
            if not path.is_file() or path.read_bytes() != data:
                write_bytes(path, data)


def _nested(config: object, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a config and everything within it, each with its key."""
    yield key, config
    inner: Any = enumerate(config) if isinstance(config, (tuple, list)) else ()
    if is_dataclass(config):
        inner = ((field.name, getattr(config, field.name)) for field in fields(config))
    for name, value in inner:
        yield from _nested(value, key if name == "options" else f"{key}.{name}".lstrip("."))


def hub_models(config: object) -> dict[str, str]:
    """Return the commits, by name, of the Hugging Face hub models that a config names and this machine has."""
    commits = {}
    for part in (part for _, part in _nested(config) if hasattr(part, "download")):
        for key, revision in (("model", "revision"), ("base", "revision"), ("encoder", "encoder_revision")):
            if isinstance(name := getattr(part, key, None), str):
                from sqa.files.hub import commit_of

                if commit := commit_of(name, getattr(part, revision, getattr(part, "revision", None))):
                    commits[name] = commit
    return commits


def places(config: object) -> dict[str, str]:
    """Return the device and element type, such as "cpu float32", of each part with weights, by its key."""
    found = {}
    for key, part in _nested(config):
        if hasattr(part, "ARITHMETIC"):
            from sqa.files import place

            found[key] = " ".join(place(part))
    return found


def stages_of(folder: Path) -> dict[str, str]:
    """Return the store keys of the run in a folder, by stage; empty if the run is missing or damaged."""
    try:
        return dict(parse_json((folder / SUMMARY).read_bytes())["stages"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def stamp(dataset: str) -> dict[str, str]:
    return {"dataset": dataset, "stage": "run"}
