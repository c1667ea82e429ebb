"""Commands that evaluate runs: experiments, figures, tables, curves, errors, viewer, published results."""

import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated, Literal

import typer

from sqa.cli import options
from sqa.cli.options import SETTINGS, argument, option, say
from sqa.core import ConfigError, Registry, SqaError, config_file, in_a_line
from sqa.core.paths import located
from sqa.results import show, show_lines

evidence_app = typer.Typer(**SETTINGS)
results_app = typer.Typer(help="Measure, check and list the published numbers.", **SETTINGS)

QuestionIds = Annotated[list[str] | None, option("--questions ID", "Only this question; may be repeated.")]
Asked = Annotated[
    Path | None, option("--questions FILE", "Print when these questions are answered instead (docs/ask.md).")
]
Convention = Annotated[
    str | None,
    option("--convention", "Formulas to use; see docs/latency.md.  Default: simuleval-1.1; of segments: omnisteval."),
]
LineSources = Annotated[
    Path | None, option("--sources FILE", "With --facts, --questions: file with a source for each line.")
]
Language = Annotated[str | None, option("--lang LANG", "With --segments: language of the tokenizer, such as de.")]
Computing = Annotated[
    Literal["accumulated", "increment"],
    option("--computing", "With --segments: computing time of a word; see docs/latency.md."),
]
Items = Annotated[list[str] | None, argument("[ITEM]...", "Names of items, or mine.py:ITEM.  Default: all.")]

PAPER = {  # figure or table of the paper -> (its function, its config in configs/)
    "fig3": ("experiments.ablation.report:main", "ablation.yaml"),
    "fig5": ("experiments.paper.figure5:main", "examples.yaml"),
    "table2": ("experiments.paper.figure5:main", "examples.yaml"),
    "table5": ("experiments.paper.figure5:table5", "examples.yaml"),
    "fig6": ("experiments.paper.figure6:main", "figure6.yaml"),
    "fig7": ("experiments.paper.figure7:main", "figure7.yaml"),
    "fig10": ("experiments.paper.figure7:main", "figure10.yaml"),
    "fig8": ("experiments.studies.translation_table:main", "translation_table.yaml"),
    "fig9": ("experiments.ablation.report:main", "figure9.yaml"),
    "table1": ("experiments.studies.guesser_report:main", "guessers.yaml"),
    "table3": ("experiments.studies.question_sets:main", "table3.yaml"),
    "table4": ("experiments.paper.table4:main", "table4.yaml"),
}


@evidence_app.command()
def ablation(
    config: options.Config,
    overrides: options.Overrides = None,
    runs: options.Runs = options.DEFAULT_RUNS,
    workers: options.Workers = None,
    scheduler: options.SchedulerOption = None,
    store: options.StoreOption = None,
) -> None:
    """Run the paper's ablation: every score over k, with table, figure and report."""
    from sqa.pipeline import scheduled

    with scheduled(scheduler, runs, store):
        options.call("experiments.ablation.report:main", config, runs, overrides or (), workers)


@evidence_app.command()
def reproduce(
    item: Annotated[str, argument("ITEM", f"One of {', '.join(PAPER)}, all, or your own file.py:main.")],
    config: Annotated[Path | None, argument("[CONFIG]", "Config that replaces the item's own.")] = None,
    runs: options.Runs = options.DEFAULT_RUNS,
    scheduler: options.SchedulerOption = None,
    store: options.StoreOption = None,
) -> None:
    """Make a figure or table of the paper, computing missing runs first."""
    from sqa.pipeline import scheduled

    with scheduled(scheduler, runs, store):
        _reproduce(item, config, runs)


def _reproduce(item: str, config: Path | None, runs: Path) -> None:
    if item != "all":
        usual = Path("configs", PAPER[item][1]) if item in PAPER else None
        _make(item, config or usual, runs)
        return
    if config is not None:
        raise ConfigError(f"{config}: each item has its own config; name one item")
    missing: dict[str, str] = {}
    for name, (_, file) in PAPER.items():
        try:
            _make(name, Path("configs", file), runs)
        except (SqaError, OSError, ImportError) as error:  # the other items can still be made
            missing[name] = in_a_line(error)
        except typer.Exit as end:  # the item has printed the reason
            missing[name] = f"ended with exit code {end.exit_code}"
        if name in missing:
            print(f"{name}: not made: {missing[name]}", file=sys.stderr)
    print(f"made {len(PAPER) - len(missing)} of {len(PAPER)} items, in {runs}", file=sys.stderr)
    for name, why in missing.items():
        print(f"not made: {name}: {why}", file=sys.stderr)
    if missing:
        raise typer.Exit(1)


def _make(item: str, config: Path | None, runs: Path) -> None:
    """Call an item's `main(config, runs)`; a user's file is first looked up in the config's folder."""
    registry = Registry("figure or table", {name: target for name, (target, _) in PAPER.items()})
    registry.target(item)  # refuses an unknown name before a missing config
    if config is None:
        raise ConfigError(f"{item}: your own figure or table needs a config: sqa reproduce {item} CONFIG")
    config = config_file(config)
    main = registry.resolve(located(item, config.parent))
    try:
        signature(main).bind(config, runs)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{item}: must be a function main(config, runs) that takes two paths ({error})") from error
    code = main(config, runs)
    for line in import_module("experiments.outputs").beside(item):
        show_lines(line)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


@evidence_app.command()
def correlate(
    runs: Annotated[list[Path], argument("RUN...", "Folders of three or more runs.")],
    metrics: options.Metrics = None,
    against: Annotated[
        list[str] | None, option("--against NAME", "Metric to correlate with; default: ew, oracle-ew, accuracy, mrr.")
    ] = None,
    resamples: options.Resamples = 10_000,
) -> None:
    """Correlate the rankings of systems by two metrics (Kendall's tau, soft pairwise accuracy)."""
    from sqa.pipeline import folder as folders
    from sqa.report.correlation import ANSWERS, correlate_runs, table

    opened = [folders.read(run) for run in runs]
    rows, notes = correlate_runs(opened, metrics or (), tuple(against or ANSWERS), resamples)
    say(*notes)
    show(table(rows))


@evidence_app.command()
def report(
    runs: Annotated[list[Path], argument("RUN...", "Folders of finished runs.  The first is the baseline.")],
    output: Annotated[Path | None, option("--output DIR", "Output folder; default: report/ in the first RUN.")] = None,
) -> None:
    """Write a report of finished runs as Markdown and one HTML page.

    The report has scores, tests, figures and origins, and says what is missing and why.
    """
    options.call("sqa.report.report:main", runs, output)


@evidence_app.command()
def latency(
    log: Annotated[str, argument("LOG", "An instances.log, or JSON lines.  - reads standard input.")],
    convention: Convention = None,
    references: Annotated[
        Path | None, option("--references FILE", "File with a reference for each line of LOG, or for each segment.")
    ] = None,
    unit: Annotated[
        Literal["word", "char"], option("--unit", "Unit in which the length of a reference is counted.")
    ] = "word",
    source: options.Delays = "auto",
    end: Annotated[
        Literal["auto", "log"], option("--end", "With log, a missing end of a sentence is not added.")
    ] = "auto",
    use_ref_len: Annotated[
        bool, option("--use-ref-len/--no-use-ref-len", "Use the length of the reference for |y|.")
    ] = True,
    computation_aware: Annotated[bool, option("--computation-aware", "Use the elapsed times.")] = False,
    strict: Annotated[
        bool, option("--strict", "Refuse lines with decreasing delays.  By default they are computed and marked.")
    ] = False,
    segments: options.Segmentation = None,
    language: Language = None,
    computing: Computing = "increment",
    facts: Annotated[bool, option("--facts", "Score the facts that arrive instead (docs/facts.md).")] = False,
    sources: LineSources = None,
    pair: Annotated[str, option("--pair PAIR", "With --facts: the languages, such as es-en.")] = "-en",
    questions: Asked = None,
    as_json: options.Json = False,
) -> None:
    """Compute the latencies of a log.

    The means are printed as TSV.  With --json each sentence is one line.
    """
    if questions:
        from sqa.cli.questions import ask

        if computation_aware or strict or facts or as_json or unit == "char":
            raise ConfigError("--questions: takes --references, --source, --sources and --segments; see also sqa ask")
        return ask([log], questions, references, sources, segments, source)
    from sqa.metrics.latency_log import LogOptions, main

    chosen = convention or ("omnisteval" if segments else "simuleval-1.1")
    common = (chosen, unit, source, end, references, use_ref_len, computation_aware, strict)
    reading = LogOptions(*common, sources, segments, language, computing)
    if not facts:
        return main(log, reading, as_json)
    if computation_aware or strict or unit == "char" or segments:
        raise ConfigError("--facts: takes --references, --source, --sources, --pair and --json")
    options.call("sqa.questions.facts_log:main", log, pair, reading, as_json)


@evidence_app.command()
def diagnose(
    run: options.RunFolder,
    top: Annotated[int, option("--top N", "Number of findings to show.")] = 20,
    questions: QuestionIds = None,
    kinds: Annotated[
        list[str] | None, option("--kind KIND", "Kind of error: hallucination, omission or drop; may be repeated.")
    ] = None,
    detector: Annotated[
        str,
        option(
            "--detector",
            "Model that also scores every word: language-model (the best; needs make lm), or words "
            "for none. auto: the best that is installed.",
        ),
    ] = "auto",
) -> None:
    """List the words of a run that lowered the rank of the answer most.

    Each row has the probability of an error, the source span, and the answer's rank before and after.
    """
    options.call("sqa.diagnose.findings:main", run, top, questions or (), kinds or (), detector)


@evidence_app.command()
def view(
    runs: Annotated[list[Path], argument("RUN...", "Folders of finished runs.")],
    output: Annotated[
        Path | None, option("--output FILE.html", "Output file; default: view.html in the first RUN.")
    ] = None,
    questions: QuestionIds = None,
) -> None:
    """Write one HTML page that shows runs word by word, offline."""
    options.call("sqa.report.viewer:main", runs, output, questions or ())


# ----------------------------------------------------------------------------------------------- sqa results


@results_app.command("list")
def listing() -> None:
    """List the items with title, date of measurement, and the reason why an item is stale."""
    options.call("experiments.results_book.main:listing")


@results_app.command()
def update(
    names: Items = None,
    runs: options.Runs = options.DEFAULT_RUNS,
    force: Annotated[bool, option("--force", "Also measure items that are not stale.")] = False,
) -> None:
    """Measure stale items again, and remake pages and pictures.

    An item is stale if its config, model, data set or version has changed.
    """
    options.call("experiments.results_book.main:update", names or (), runs, force)


@results_app.command()
def check(names: Items = None) -> None:
    """List stale ledgers, and pictures and lines that do not match their ledgers.

    The exit code is 1 if there are any.
    """
    options.call("experiments.results_book.main:check", names or ())
