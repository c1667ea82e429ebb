"""`sqa report RUN [RUN...]`: results of finished runs, the origin of every number, and missing values with reasons.

    from sqa.report.report import main
    main([Path("runs/a"), Path("runs/b")], output=Path("report"))

    report/report.md       tables of all metrics with 95% intervals, paired tests against the first run, figures, gaps,
                           signatures, data hashes, fingerprints of translators, guessers and buzzers, versions, configs
    report/report.html     the same as one page that needs no network
    report/*.png .pdf .csv the figures, and the numbers drawn in them

Only the run folders and the store beside them are read: no model is loaded, no metric is computed.  Runs on
different questions get one table per question set and no test between them.
"""

import platform
import re
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sqa import __version__
from sqa.core.registry import QUALITY
from sqa.files.atomic import write_text
from sqa.files.yaml_reader import dump_yaml
from sqa.metrics import FAMILIES
from sqa.pipeline import paired
from sqa.pipeline.config import to_mapping
from sqa.pipeline.paired import QUESTIONS, ComparisonRow
from sqa.pipeline.saving import COUNTED, RESAMPLES
from sqa.report.data import Component, Gap, Reported, changes, compared, data_files, described, groups_of, read_runs
from sqa.report.figures import draw_all
from sqa.report.html import code, page, plain
from sqa.report.plots import Drawn
from sqa.results import Row, markdown, show_lines, with_interval

DEFAULT_OUTPUT = "report"  # default folder, in the first run's folder
MARKDOWN, HTML = "report.md", "report.html"
SIGNIFICANT = 0.05
PACKAGES = (
    "numpy scipy pyarrow sacrebleu torch numba sentencepiece transformers ctranslate2 simuleval unbabel-comet "
    "bert-score bleurt-pytorch matplotlib"
).split()
_USUAL_DIGITS = 3  # decimal places of a metric that cannot be built


def main(runs: Sequence[Path], output: Path | None = None, html: bool = True, over: str = QUESTIONS) -> None:
    """Write the report of finished runs and print the files' paths.

    All runs are compared with the first one.  With further levels in `over`, the two systems to which the runs belong
    are compared (`paired.compare_over`).
    """
    reported = read_runs([Path(run) for run in runs])
    folder = Path(output) if output is not None else reported[0].saved.folder / DEFAULT_OUTPUT
    text, figures, gaps = compose(reported, folder, over)
    write_text(folder / MARKDOWN, text)
    paths = [folder / MARKDOWN]
    if html:
        write_text(folder / HTML, page(text, title(reported), figures))
        paths.append(folder / HTML)
    missing = len({gap.what for gap in gaps})
    print(f"sqa: {len(reported)} runs, {len(figures)} figures, {missing} items not computed", file=sys.stderr)
    show_lines(*paths, *(path for figure in figures for path in figure.files))


def title(reported: Sequence[Reported]) -> str:
    """Return the title of the report."""
    return f"Report: {reported[0].label}" if len(reported) == 1 else f"Report: {len(reported)} runs"


def compose(reported: Sequence[Reported], folder: Path, over: str) -> tuple[str, list[Drawn], list[Gap]]:
    """Return the Markdown text, its figures (written to `folder`), and the missing values."""
    groups = groups_of(reported)
    gaps = [gap for run in reported for gap in _gaps(run)]
    figures: list[Drawn] = []
    parts = [f"# {plain(title(reported))}", "", *_introduction(reported, groups), "", *_runs_table(reported)]
    for i, group in enumerate(groups):
        differences, missing = _differences(group) if over == QUESTIONS else (_differences_over(group, over), [])
        gaps += missing
        drawn, missing = draw_all(group, folder, f"_{i + 1}" if len(groups) > 1 else "")
        gaps += missing
        figures += drawn
        parts += ["", f"## {_questions(group[0])}", "", *_scores(group)]
        for figure in drawn:
            parts += ["", *_figure(figure)]
        parts += ["", *differences] if differences else []
    data, missing = _data(groups)
    gaps += missing
    times = _times(reported)
    if not times:
        gaps.append(Gap("wall times", (), "these runs did not record them"))
    parts += ["", "## Not computed, and why", "", *_gap_lines(gaps, reported)]
    parts += ["", "## Signatures", "", *_signatures(reported)]
    parts += ["", "## Data", "", *data, "", "## Fingerprints", "", *_fingerprints(reported)]
    parts += ["", "## Versions", "", *_versions(), *times, "", "## Configurations", "", *_configs(reported)]
    return "\n".join(parts) + "\n", figures, gaps


# ----------------------------------------------------------------------------------------------- runs and questions


def _questions(run: Reported) -> str:
    """Return a question set as a heading: its name and its size."""
    dataset, n = run.saved.config.dataset, len(run.saved.questions)
    limited = "" if dataset.limit is None else f" (at most the first {dataset.limit})"
    return f"{plain(Path(dataset.name).name)}, {n} question{'s' * (n != 1)}{limited}"


def _introduction(reported: Sequence[Reported], groups: Sequence[Sequence[Reported]]) -> list[str]:
    note = (
        f"Values in brackets are 95% BCa bootstrap intervals over questions ({RESAMPLES} resamples). "
        "n/a: no value; the reason is under *Not computed, and why*."
    )
    apart = (
        "**These runs are on different questions.** Each set has its own table; runs are compared within "
        "a set only, and numbers of different sets cannot be compared."
    )
    return [note, *(["", apart] if len(groups) > 1 else [])]


def _runs_table(reported: Sequence[Reported]) -> list[str]:
    rows = []
    for run in reported:
        config = run.saved.config
        parts = (config.translator, config.guesser, config.buzzer)
        name, n = Path(config.dataset.name).name, str(len(run.saved.questions))
        rows.append([code(run.label), plain(name), n, *(plain(described(part)) for part in parts), str(config.seed)])
    head = ("run", "questions of", "count", "translator", "guesser", "buzzer", "seed")
    return ["## What was run", "", *markdown(head, rows)]


# ------------------------------------------------------------------------------------------------------------ scores


def _scores(group: Sequence[Reported]) -> list[str]:
    names = list(dict.fromkeys(metric for run in group for metric in run.rows))
    rows = []
    for name in names:
        of_metric = [run.rows.get(name) for run in group]
        unit = next(row.unit for row in of_metric if row is not None)
        digits = _digits(name, group)
        cells = ("not requested" if row is None else _cell(row, digits) for row in of_metric)
        rows.append([code(name), plain(unit), *cells])
    head = ("metric", "unit", *(code(run.label) for run in group))
    return ["### Scores", "", *markdown(head, rows)]


def _cell(row: Row, digits: int) -> str:
    if row.unit == "tokens":
        return str(row.value)
    return f"{row.value} of {row.n}" if row.unit in COUNTED else with_interval(row, f".{digits}f")


def _digits(name: str, group: Sequence[Reported]) -> int:
    """Return the decimal places of a metric, according to the runs that have it."""
    return next((run.digits[name] for run in group if name in run.digits), _USUAL_DIGITS)


def _interval(low: float | None, high: float | None, shape: str) -> str:
    """Return an interval as text, with its numbers in a format; "" if there is none."""
    return "" if low is None or high is None else f"[{low:{shape}}, {high:{shape}}]"


def _differences(group: Sequence[Reported]) -> tuple[list[str], list[Gap]]:
    """Return a section with a table row per metric and run except the first, and gaps for missing comparisons."""
    first, *others = group
    if not others:
        return [], []
    pairs = {run.label: compared(first, run) for run in others}
    compared_rows = {label: rows for label, (rows, _) in pairs.items()}
    gaps = [gap for _, missing in pairs.values() for gap in missing]
    names = list(dict.fromkeys(row.metric for rows in compared_rows.values() for row in rows))
    lines = []
    for name in names:
        digits = _digits(name, [first])
        for label, rows in compared_rows.items():
            lines += [[code(name), code(label), *_difference(row, digits)] for row in rows if row.metric == name]
    if not lines:
        nothing = "None could be tested; see *Not computed, and why*."
        return [f"### Differences to {code(first.label)}", "", nothing], gaps
    note = (
        f"Run minus {code(first.label)}, paired over questions; percentile intervals. p: two-sided, by the paired "
        f"bootstrap and by approximate randomisation ({RESAMPLES} resamples each). Bold: both below {SIGNIFICANT:g}. "
        f"{len(lines)} tests, not corrected for their number."
    )
    head = ("metric", "run", "difference", "95% interval", "p, bootstrap", "p, randomisation")
    return [f"### Differences to {code(first.label)}", "", note, "", *markdown(head, lines)], gaps


def _differences_over(group: Sequence[Reported], over: str) -> list[str]:
    """Return a section with a table row per metric: first system minus second, with intervals over all levels."""
    lines = []
    for metric, value, low, high, *_ in paired.compare_over([run.saved for run in group], over).rows:
        shape = f"+.{_digits(metric, group)}f"
        lines.append([code(metric), f"{value:{shape}}", _interval(low, high, shape) or "n/a"])
    note = (
        f"The system of {code(group[0].label)} minus the other system; percentile intervals ({RESAMPLES} resamples). "
        "Runs of one system differ only in the levels, whose members are resampled like the questions."
    )
    heading = f"### Differences over {plain(over.replace(',', ', '))}"
    return [heading, "", note, "", *markdown(("metric", "difference", "95% interval"), lines)]


def _difference(row: ComparisonRow, digits: int) -> list[str]:
    shape = f"+.{digits}f"
    value = f"{row.diff:{shape}}"
    if max(row.p_bootstrap, row.p_randomization) < SIGNIFICANT:
        value = f"**{value}**"
    interval = _interval(row.low, row.high, shape) or "n/a"
    return [value, interval, f"{row.p_bootstrap:.3f}", f"{row.p_randomization:.3f}"]


def _figure(figure: Drawn) -> list[str]:
    png = next(path for path in figure.files if path.suffix == ".png")
    files = ", ".join(code(path.name) for path in figure.files)
    title, caption = plain(figure.title), plain(figure.caption)
    return [f"### {title}", "", f"![{title}]({png.name})", "", f"{caption} Files: {files}."]


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
    yield from (Gap(name, label, "not requested in the config (metrics)") for name in FAMILIES if name not in run.rows)
    asked = {"external", "scores", *(entry.kind for entry in config.quality)}
    yield from (Gap(k, label, "not requested in the config (quality)") for k in QUALITY.names() if k not in asked)


def _gap_lines(gaps: Sequence[Gap], reported: Sequence[Reported]) -> list[str]:
    """Return one line per reason, with the items and the runs that it applies to."""
    where: dict[tuple[str, str], dict[str, None]] = {}  # (item, reason) -> runs
    for gap in gaps:
        where.setdefault((gap.what, gap.why), {}).update(dict.fromkeys(gap.runs))
    lines: dict[tuple[str, tuple[str, ...]], list[str]] = {}  # (reason, runs) -> items
    for (what, why), runs in where.items():
        lines.setdefault((why, tuple(runs)), []).append(what)
    return [
        f"- {', '.join(map(code, dict.fromkeys(items)))}{_in_runs(runs, len(reported))}: {plain(why)}."
        for (why, runs), items in lines.items()
    ] or ["Every requested number has a value."]


def _in_runs(runs: Sequence[str], of: int) -> str:
    if not runs:
        return ""
    return " (every run)" if len(runs) == of else f" ({', '.join(map(code, runs))})"


# ------------------------------------------------------------------------------------------- origin of the numbers


def _signatures(reported: Sequence[Reported]) -> list[str]:
    """List each signature once; runs are named if their signatures differ."""
    by_metric: dict[str, dict[str, list[str]]] = {}  # metric -> signature -> runs
    for run in reported:
        for metric, signature in run.saved.signatures.items():
            by_metric.setdefault(metric, {}).setdefault(signature, []).append(run.label)
    lines = []
    for metric, signatures in by_metric.items():
        for signature, runs in signatures.items():
            which = f" ({', '.join(map(code, runs))})" if len(signatures) > 1 else ""
            lines.append(f"- {code(metric)}: {code(signature)}{which}")
    return lines or ["No metric has a value."]


def _data(groups: Sequence[Sequence[Reported]]) -> tuple[list[str], list[Gap]]:
    rows, gaps = [], []
    for run in (run for group in groups for run in group):
        files, missing = data_files(run)
        rows += [(plain(name), code(sha256), plain(note)) for name, sha256, note in files]
        gaps += missing
    lines = markdown(("file", "sha256", "source"), dict.fromkeys(rows)) if rows else []
    prints = [f"- {_questions(group[0])}: {code(group[0].saved.dataset)}" for group in groups]
    note = "Fingerprint of the questions as the runs read them (ids, texts, references, pages, in order):"
    return [*lines, "", note, "", *prints], gaps


def _fingerprints(reported: Sequence[Reported]) -> list[str]:
    """List the components of each stage with their fingerprints and the runs that used them."""
    runs_of: dict[Component, list[str]] = {}
    for run in reported:
        for component in run.components:
            runs_of.setdefault(component, []).append(run.label)
    if not runs_of:
        return ["The store beside the runs no longer has their stages."]
    order = list(dict.fromkeys(c.stage for c in runs_of))
    rows = []
    for c, runs in sorted(runs_of.items(), key=lambda item: order.index(item[0].stage)):
        which = "every run" if len(runs) == len(reported) else ", ".join(map(code, runs))
        rows.append([plain(c.stage), code(c.implementation), code(c.fingerprint), which])
    note = "A hash over everything that can change the output of a part: weights, code version and settings."
    return [note, "", *markdown(("stage", "implementation", "fingerprint", "runs"), rows)]


def _versions() -> list[str]:
    """List the program and the packages that wrote this report; metric signatures contain the versions of a run."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    program = f"sqa {__version__}, Python {platform.python_version()} ({platform.system()} {platform.machine()})"
    note = "Versions of the program that wrote this report; signatures state the versions behind each score."
    return [note, "", f"- {plain(program)}", *(f"- {plain(line)}" for line in versions)]


def _times(reported: Sequence[Reported]) -> list[str]:
    """List the wall times of the stages of runs that recorded them."""
    timed = [(run.label, run.seconds) for run in reported if run.seconds]
    if not timed:
        return []
    stages = list(dict.fromkeys(stage for _, seconds in timed for stage in seconds))
    rows = [
        [code(label), *(f"{seconds[s]:.1f}" if s in seconds else "n/a" for s in stages)] for label, seconds in timed
    ]
    note = "Seconds that each stage took when it was computed."
    return ["", "## Wall times", "", note, "", *markdown(("run", *map(plain, stages)), rows)]


def _configs(reported: Sequence[Reported]) -> list[str]:
    """List the first config in full, then the differences of each other run."""
    first = reported[0]
    text = dump_yaml(to_mapping(first.saved.config))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    lines = [f"{code(first.label)}, defaults included:", "", f"{fence}yaml", text.rstrip("\n"), fence]
    for run in reported[1:]:
        differences = [f"{code(key)}: {code(value)}" for key, value in changes(first.saved.config, run.saved.config)]
        lines += ["", f"{code(run.label)} differs in {'; '.join(differences) or 'its name only'}."]
    return lines
