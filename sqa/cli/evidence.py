"""The commands that make evidence from runs: experiments, figures and tables, latencies, errors, the viewer."""

from __future__ import annotations

import sys
from dataclasses import asdict
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated, Literal

import typer

from sqa.cli.options import (
    DEFAULT_RUNS,
    SETTINGS,
    Config,
    Json,
    Metrics,
    Resamples,
    RunFolder,
    Runs,
    SchedulerOption,
    StoreOption,
    call,
    print_table,
)
from sqa.core.errors import ConfigError, SqaError
from sqa.core.own import located
from sqa.core.paths import config_file
from sqa.core.registry import Registry

evidence_app = typer.Typer(**SETTINGS)

QuestionIds = Annotated[
    list[str] | None, typer.Option("--questions", metavar="ID", help="This question only; may be repeated.")
]
Priors = Annotated[Path | None, typer.Option("--priors", metavar="DIR", help="Priors of the word aligner.")]

PAPER = {  # figure or table of the paper -> its function, its config in configs/
    "fig3": ("experiments.ablation.report:main", "ablation.yaml"),
    "fig5": ("experiments.paper.examples:figure5", "examples.yaml"),
    "table2": ("experiments.paper.examples:figure5", "examples.yaml"),
    "table5": ("experiments.paper.examples:table5", "examples.yaml"),
    "fig6": ("experiments.paper.contestants_over_k:figure6", "figure6.yaml"),
    "fig7": ("experiments.paper.contestants_over_k:figure7", "figure7.yaml"),
    "fig10": ("experiments.paper.contestants_over_k:figure7", "figure10.yaml"),
    "fig8": ("experiments.studies.translation_table:main", "translation_table.yaml"),
    "fig9": ("experiments.paper.figure9:main", "figure9.yaml"),
    "table1": ("experiments.studies.guesser_report:main", "guessers.yaml"),
    "table3": ("experiments.studies.guesser_report:table3", "table3.yaml"),
    "table4": ("experiments.paper.table4:main", "table4.yaml"),
}
OURS = {  # the same for items that are not in the paper
    "errors": ("experiments.stepwise.errors:main", "stepwise.yaml"),
    "correlation": ("experiments.ablation.correlation:main", "correlation.yaml"),
    "models": ("experiments.ablation.models:main", "models.yaml"),
}
ITEMS = PAPER | OURS


@evidence_app.command()
def ablation(
    config: Config, runs: Runs = DEFAULT_RUNS, scheduler: SchedulerOption = None, store: StoreOption = None
) -> None:
    """The paper's experiment: every score over k, as table, figure and report."""
    from sqa.run.scheduler import scheduled

    with scheduled(scheduler, runs, store):
        call("experiments.ablation.report:main", config, runs)


@evidence_app.command()
def translations(
    config: Config,
    runs: Runs = DEFAULT_RUNS,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME", help="A test set of the config; all when none is given."),
    ] = None,
    scheduler: SchedulerOption = None,
    store: StoreOption = None,
) -> None:
    """BLEU, chrF and lag of every translator on every test set: table and figure."""
    from sqa.run.scheduler import scheduled

    with scheduled(scheduler, runs, store):
        call("experiments.studies.translation_table:main", config, runs, sets or ())


@evidence_app.command()
def guessers(config: Config = Path("configs/guessers.yaml"), runs: Runs = DEFAULT_RUNS) -> None:
    """Accuracy, MRR and EW of every guesser as the question goes on, by category: tables and figure."""
    call("experiments.studies.guesser_report:main", config, runs)


@evidence_app.command()
def reproduce(
    item: Annotated[
        str, typer.Argument(metavar="ITEM", help=f"One of {', '.join(ITEMS)}, all, or your own file.py:main.")
    ],
    config: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="In place of the item's own; see configs/.")
    ] = None,
    runs: Runs = DEFAULT_RUNS,
    scheduler: SchedulerOption = None,
    store: StoreOption = None,
) -> None:
    """A figure or table of the paper, or of ours, from our runs; missing runs are made first."""
    from sqa.run.scheduler import scheduled

    with scheduled(scheduler, runs, store):
        _reproduce(item, config, runs)


def _reproduce(item: str, config: Path | None, runs: Path) -> None:
    if item != "all":
        usual = Path("configs", ITEMS[item][1]) if item in ITEMS else None
        _make(item, config or usual, runs)
        return
    if config is not None:
        raise ConfigError(f"{config}: all items have configs of their own; name one item")
    missing: dict[str, str] = {}
    for name, (_, file) in ITEMS.items():
        try:
            _make(name, Path("configs", file), runs)
        except (SqaError, OSError, ImportError) as error:  # the others can still be made
            missing[name] = " ".join(str(error).split())
        except typer.Exit as end:  # it has printed the reason
            missing[name] = f"ended with exit code {end.exit_code}"
        if name in missing:
            print(f"{name}: not made: {missing[name]}", file=sys.stderr)
    print(f"made {len(ITEMS) - len(missing)} of {len(ITEMS)} items, in {runs}", file=sys.stderr)
    for name, why in missing.items():
        print(f"not made: {name}: {why}", file=sys.stderr)
    if missing:
        raise typer.Exit(1)


def _make(item: str, config: Path | None, runs: Path) -> None:
    """Call an item's `main(config, runs)`; a user's file is searched in its config's folder, then here."""
    registry = Registry("figure or table", {name: target for name, (target, _) in ITEMS.items()})
    registry.target(item)  # refuses an unknown name before a missing config
    if config is None:
        raise ConfigError(f"{item}: a figure or table of your own needs a config: sqa reproduce {item} CONFIG")
    config = config_file(config)
    main = registry.resolve(located(item, config.parent))
    try:
        signature(main).bind(config, runs)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{item}: must be a function main(config, runs) of two paths ({error})") from error
    code = main(config, runs)
    for line in import_module("experiments.beside").beside(item) if item in PAPER else ():
        print(line)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


@evidence_app.command()
def correlate(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of three or more runs.", show_default=False)
    ],
    metrics: Metrics = None,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="NAME", help="With which; default: ew, oracle-ew, accuracy, mrr."),
    ] = None,
    resamples: Resamples = 10_000,
    as_json: Json = False,
) -> None:
    """Kendall's tau: do two metrics rank the systems in the same order, with 95% intervals over questions."""
    from sqa.report.correlation import ANSWERS, HEADER, correlate_runs
    from sqa.run import folder as folders

    opened = [folders.read(run) for run in runs]
    rows, notes = correlate_runs(opened, metrics or (), tuple(against or ANSWERS), resamples)
    for note in notes:
        print(f"sqa: {note}", file=sys.stderr)
    print_table(HEADER, [row.cells() for row in rows], as_json, [asdict(row) for row in rows])


@evidence_app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Folders of finished runs; the first is compared with.", show_default=False
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Default: report/ in the first RUN.")
    ] = None,
    html: Annotated[bool, typer.Option("--html/--no-html", help="The page beside the Markdown.")] = True,
) -> None:
    """Scores, tests, figures and origins of finished runs, as Markdown and one HTML page; what is missing and why."""
    call("sqa.report.report:main", runs, output, html)


@evidence_app.command()
def latency(
    log: Annotated[str, typer.Argument(metavar="LOG", help="instances.log or JSON lines; - is standard input.")],
    convention: Annotated[str, typer.Option(help="Whose formulas; see docs/latency.md.")] = "simuleval-1.1",
    references: Annotated[Path | None, typer.Option(metavar="FILE", help="A reference for each line of LOG.")] = None,
    unit: Annotated[Literal["word", "char"], typer.Option(help="What references are counted in.")] = "word",
    source: Annotated[
        Literal["auto", "text", "speech"], typer.Option(help="What delays count: words, or ms of speech.")
    ] = "auto",
    end: Annotated[
        Literal["auto", "log"], typer.Option(help="log: do not add the end of the sentence to texts without it.")
    ] = "auto",
    use_ref_len: Annotated[bool, typer.Option("--use-ref-len/--no-use-ref-len", help="|y| of the reference.")] = True,
    computation_aware: Annotated[bool, typer.Option("--computation-aware", help="From elapsed.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse odd lines (delays that fall), which are computed and marked else.")
    ] = False,
    facts: Annotated[bool, typer.Option("--facts", help="Instead: facts that arrive; docs/facts.md.")] = False,
    sources: Annotated[Path | None, typer.Option(metavar="FILE", help="--facts: a source for each line.")] = None,
    pair: Annotated[str, typer.Option(metavar="PAIR", help="--facts: the languages, as es-en.")] = "-en",
    as_json: Json = False,
) -> None:
    """Every latency of a log: means as TSV, or with --json one line a sentence."""
    if facts:
        from sqa.metrics.facts_log import FactOptions

        if computation_aware or strict or unit == "char":
            raise ConfigError("--facts: takes --references, --sources, --pair and --json")
        return call("sqa.metrics.facts_log:main", log, FactOptions(pair, references, sources), as_json)
    from sqa.metrics.latency_log import LogOptions, main

    options = LogOptions(convention, unit, source, end, references, use_ref_len, computation_aware, strict)
    main(log, options, as_json)


@evidence_app.command()
def diagnose(
    run: RunFolder,
    top: Annotated[int, typer.Option("--top", metavar="N", help="Findings shown.")] = 20,
    questions: QuestionIds = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="hallucination, omission or drop; may be repeated."),
    ] = None,
    priors: Priors = None,
    detector: Annotated[
        str,
        typer.Option(
            help="Which model scores every word, too: language-model (the strongest; make lm), transformer, or words: "
            "none. auto: the strongest there is."
        ),
    ] = "auto",
    as_json: Json = False,
) -> None:
    """The worst step-wise errors of a run: probability, source span, rank of the answer before and after."""
    call("sqa.diagnose.findings:main", run, top, questions or (), kinds or (), priors, as_json, detector)


@evidence_app.command()
def view(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE.html", help="Default: view.html in the first RUN.")
    ] = None,
    questions: QuestionIds = None,
    curve: Annotated[str, typer.Option("--curve", metavar="NAME|FILE", help="Expected-wins curve.")] = "qanta2018",
    priors: Priors = None,
) -> None:
    """One HTML page to watch runs word by word, without any network."""
    from sqa.report.viewer_data import ViewConfig

    call("sqa.report.viewer:main", runs, output, questions or (), ViewConfig(curve, priors))


@evidence_app.command("head-to-head")
def head_to_head(config: Config, runs: Runs = DEFAULT_RUNS) -> None:
    """Guessers and buzzers against the people who played the same questions."""
    call("experiments.studies.head_to_head:main", config, runs)
