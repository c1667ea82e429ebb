"""`sqa report RUN [RUN...]`: results of finished runs, the origin of every number, and missing values with reasons.

    from sqa.report.report import main
    main([Path("runs/a"), Path("runs/b")], output=Path("report"))

    report/report.md       tables of all metrics with 95% intervals, paired tests against the first run, figures, gaps,
                           signatures, fingerprints of questions, translators, guessers and buzzers, versions, configs
    report/report.html     the same as one page that needs no network
    report/*.png .pdf .csv the figures, and the numbers drawn in them

Only the run folders and the store beside them are read: no model is loaded, no metric is computed.  Runs on
different questions get one table per question set and no test between them.
"""

import platform
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

from jinja2 import Template

from sqa import __version__
from sqa.core import QUALITY
from sqa.core.differences import DIFFERING
from sqa.files import dump_yaml, write_text
from sqa.metrics import TARGETS
from sqa.pipeline import COUNTED, RESAMPLES, ComparisonRow, to_mapping
from sqa.report.data import Gap, Reported, changes, compared, described, groups_of, read_runs
from sqa.report.figures import draw_all
from sqa.report.html import code, page, plain, templates
from sqa.report.plots import Drawn
from sqa.results import NOTHING, Row, grouped, in_cell, show_lines, with_interval

DEFAULT_OUTPUT = "report"  # default folder, in the first run's folder
MARKDOWN, HTML = "report.md", "report.html"
SIGNIFICANT = 0.05
_USUAL_DIGITS = 3  # decimal places of a metric that cannot be built


def main(runs: Sequence[Path], output: Path | None = None) -> None:
    """Write the report of finished runs and print the files' paths.

    All runs are compared with the first one.
    """
    reported = read_runs([Path(run) for run in runs])
    folder = Path(output) if output is not None else reported[0].saved.folder / DEFAULT_OUTPUT
    text, figures, gaps = compose(reported, folder)
    write_text(folder / MARKDOWN, text)
    write_text(folder / HTML, page(text, title(reported), figures))
    missing = len({gap.what for gap in gaps})
    print(f"sqa: {len(reported)} runs, {len(figures)} figures, {missing} items not computed", file=sys.stderr)
    show_lines(folder / MARKDOWN, folder / HTML, *(path for figure in figures for path in figure.files))


def title(reported: Sequence[Reported]) -> str:
    """Return the title of the report."""
    return f"Report: {reported[0].label}" if len(reported) == 1 else f"Report: {len(reported)} runs"


def compose(reported: Sequence[Reported], folder: Path) -> tuple[str, list[Drawn], list[Gap]]:
    """Return the Markdown text, its figures (written to `folder`), and the missing values."""
    gaps = [gap for run in reported for gap in _gaps(run)]
    figures: list[Drawn] = []
    groups = []
    of_questions = groups_of(reported)
    for i, group in enumerate(of_questions):
        differences, missing = _differences(group)
        drawn, absent = draw_all(group, folder, f"_{i + 1}" if len(of_questions) > 1 else "")
        gaps += [*missing, *absent]
        figures += drawn
        groups.append(
            {
                "questions": _questions(group[0]),
                "dataset": group[0].saved.dataset,
                "labels": [run.label for run in group],
                "scores": _scores(group),
                "figures": drawn,
                "differences": differences,
            }
        )
    config = dump_yaml(to_mapping(reported[0].saved.config)).rstrip("\n")
    text = _template(reported).render(
        title=title(reported),
        resamples=RESAMPLES,
        significant=SIGNIFICANT,
        differing=DIFFERING,
        reported=reported,
        groups=groups,
        gaps=_reasons(gaps),
        signatures=_signatures(reported),
        components=_components(reported),
        program=f"sqa {__version__}, Python {platform.python_version()} ({platform.system()} {platform.machine()})",
        fence="`" * max(3, 1 + max(map(len, re.findall("`+", config)), default=0)),
        config=config,
    )
    return text, figures, gaps


def _template(reported: Sequence[Reported]) -> Template:
    """Return the template of the Markdown, in which every text from a run passes the filter `code` or `plain`."""
    environment = templates(escaped=False)
    first = reported[0].saved.config

    def changed(run: Reported) -> str:
        return "; ".join(f"{code(key)}: {code(value)}" for key, value in changes(first, run.saved.config))

    def those(runs: Sequence[str]) -> str:
        named = "every run" if len(runs) == len(reported) else ", ".join(map(code, runs))
        return f" ({named})" if runs else ""

    filters: dict[str, Callable[..., str]] = {
        "code": code,
        "plain": plain,
        "cell": in_cell,
        "cells": lambda cells: " | ".join(in_cell(str(cell)) for cell in cells),
        "name": lambda path: Path(path).name,
        "png": lambda files: next(path.name for path in files if path.suffix == ".png"),
        "described": lambda part: plain(described(part)),
        "changes": changed,
        "those": those,
    }
    environment.filters |= filters
    return environment.get_template(f"report_page/{MARKDOWN}")


# ------------------------------------------------------------------------------------------------- questions, scores


def _questions(run: Reported) -> str:
    """Return a question set as a heading: its name and its size."""
    dataset, n = run.saved.config.dataset, len(run.saved.ids)
    limited = "" if dataset.limit is None else f" (at most the first {dataset.limit})"
    return f"{plain(Path(dataset.name).name)}, {n} question{'s' * (n != 1)}{limited}"


def _scores(group: Sequence[Reported]) -> list[tuple[str, str, list[str]]]:
    """Return name, unit and values of each metric."""
    rows = []
    for name in dict.fromkeys(metric for run in group for metric in run.rows):
        of_metric = [run.rows.get(name) for run in group]
        unit = next(row.unit for row in of_metric if row is not None)
        digits = _digits(name, group)
        rows.append((name, unit, ["not requested" if row is None else _cell(row, digits) for row in of_metric]))
    return rows


def _cell(row: Row, digits: int) -> str:
    if row.unit == "tokens":
        return str(row.value)
    return f"{row.value} of {row.n}" if row.unit in COUNTED else with_interval(row, f".{digits}f")


def _digits(name: str, group: Sequence[Reported]) -> int:
    """Return the decimal places of a metric, according to the runs that have it."""
    return next((run.digits[name] for run in group if name in run.digits), _USUAL_DIGITS)


def _differences(group: Sequence[Reported]) -> tuple[list[tuple[str, str, list[str]]], list[Gap]]:
    """Return metric, run and cells for each metric and run except the first, and gaps for missing comparisons."""
    first, *others = group
    pairs = {run.label: compared(first, run) for run in others}
    by_metric = grouped((row.metric, (label, row)) for label, (of_run, _) in pairs.items() for row in of_run)
    lines = [
        (metric, label, _difference(row, _digits(metric, [first])))
        for metric, rows in by_metric.items()
        for label, row in rows
    ]
    return lines, [gap for _, missing in pairs.values() for gap in missing]


def _difference(row: ComparisonRow, digits: int) -> list[str]:
    shape = f"+.{digits}f"
    value = f"{row.diff:{shape}}"
    if row.p <= SIGNIFICANT:
        value = f"**{value}**"
    interval = NOTHING if row.low is None or row.high is None else f"[{row.low:{shape}}, {row.high:{shape}}]"
    return [value, interval, f"{row.p:.3f}"]


# ---------------------------------------------------------------------------------------------------- missing values


def _gaps(run: Reported) -> Iterable[Gap]:
    """Yield missing values of a run: parts that did not run, metrics without a value, metrics not requested."""
    config, label = run.saved.config, (run.label,)
    if config.guesser is None:
        yield Gap("all question answering", label, "the config names no guesser")
    elif config.buzzer is None:
        yield Gap("expected wins at a buzz", label, "the config names no buzzer")
    yield from (Gap(metric, label, why) for metric, why in run.refusals.items())
    yield from run.gaps
    yield from (Gap(name, label, "not requested in the config (metrics)") for name in TARGETS if name not in run.rows)
    asked = {entry.kind for entry in config.quality}
    models = [kind for kind in QUALITY.names() if getattr(QUALITY.config_class(kind), "LABEL", "")]
    yield from (Gap(k, label, "not requested in the config (quality)") for k in models if k not in asked)


def _reasons(gaps: Sequence[Gap]) -> list[tuple[str, tuple[str, ...], list[str]]]:
    """Return each reason with the runs and the items that it applies to."""
    where = grouped(((gap.what, gap.why), gap.runs) for gap in gaps)
    of_item = ((what, why, tuple(dict.fromkeys(chain(*runs)))) for (what, why), runs in where.items())
    return [(*key, items) for key, items in grouped(((why, runs), what) for what, why, runs in of_item).items()]


# ------------------------------------------------------------------------------------------- origin of the numbers


def _signatures(reported: Sequence[Reported]) -> list[tuple[str, str, list[str]]]:
    """Return each signature once, with its metric, and with its runs if their signatures differ."""
    signed = grouped(
        (metric, (row.signature, run.label))
        for run in reported
        for metric, row in run.rows.items()
        if metric in run.saved.signatures and row.value is not None
    )
    by_metric = {metric: grouped(pairs) for metric, pairs in signed.items()}
    return [
        (metric, signature, runs if len(signatures) > 1 else [])
        for metric, signatures in by_metric.items()
        for signature, runs in signatures.items()
    ]


def _components(reported: Sequence[Reported]) -> list[tuple[tuple[str, str, str], list[str]]]:
    """Return stage, implementation and fingerprint of each component, by stage, with the runs that used it."""
    stages = ((stage, run.label) for run in reported for stage in run.stages)
    runs_of = grouped(((stage.name, stage.implementation, stage.fingerprint), label) for stage, label in stages)
    order = list(dict.fromkeys(stage for stage, _, _ in runs_of))
    return sorted(runs_of.items(), key=lambda item: order.index(item[0][0]))
