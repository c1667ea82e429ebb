"""The `sqa` command.

stdout is data (TSV, or JSON with --json); stderr is talk and progress bars.  Exit codes: 0 ok, 1 a check failed,
2 usage or config, 3 data.  Every command imports what it needs when it runs, so that `sqa --help` is quick.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sqa import __version__
from sqa.errors import ConfigError, SqaError

if TYPE_CHECKING:
    from sqa.config import RunConfig
    from sqa.pipeline import RunResult

_SETTINGS = {"no_args_is_help": True, "rich_markup_mode": None, "pretty_exceptions_enable": False}
app = typer.Typer(help="Simultaneous translation evaluated by question answering.", add_completion=False, **_SETTINGS)
data_app = typer.Typer(help="The data files: what there is, getting it, checking it.", **_SETTINGS)
train_app = typer.Typer(help="Train a translator, a guesser or a buzzer.", **_SETTINGS)
curve_app = typer.Typer(help="Expected-wins curves from human buzzes.", **_SETTINGS)
convert_app = typer.Typer(help="Take over models trained elsewhere.", **_SETTINGS)
app.add_typer(data_app, name="data")
app.add_typer(train_app, name="train")
app.add_typer(convert_app, name="convert")
app.add_typer(curve_app, name="curve")

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file; see configs/.", show_default=False)]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Where results and the store of stages lie.")]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", help="Take the first N questions only (N >= 1).", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of TSV.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Files by name; all when none is given.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.", show_default=False)]
Fresh = Annotated[bool, typer.Option("--fresh/--resume", help="Start anew, or go on from the last checkpoint.")]
Curves = Annotated[list[Path] | None, typer.Option("--curve", metavar="FILE", help="A curve file; may be repeated.")]
DEFAULT_RUNS = Path("runs")
PAPER = {  # figure or table of the paper -> what makes it, and from which of configs/
    "fig3": ("experiments.ablation_over_k:main", "ablation.yaml"),
    "fig6": ("experiments.figure6:main", "figure6.yaml"),
    "fig7": ("experiments.figure7:main", "figure7.yaml"),
    "fig8": ("experiments.translation_table:main", "translation_table.yaml"),
    "table1": ("experiments.guesser_report:main", "guessers.yaml"),
}


def main() -> None:
    """The console script: one line per problem on stderr, never a traceback for a deliberate error."""
    try:
        app(prog_name="sqa")
    except SqaError as error:
        for line in str(error).splitlines():
            print(f"sqa: {line}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"sqa: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(3)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sqa {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Options before the command."""


# --------------------------------------------------------------------------------------------------------- runs


@app.command()
def run(config: Config, runs: Runs = DEFAULT_RUNS, limit: Limit = None, as_json: Json = False) -> None:
    """Translate, guess, buzz and score; write the run's folder and print its report."""
    _finish(_run(config, runs, limit, "score"), runs, as_json)


@app.command()
def translate(config: Config, runs: Runs = DEFAULT_RUNS, limit: Limit = None, as_json: Json = False) -> None:
    """Run the first stage only, and print where its rows lie."""
    _show_stages(_run(config, runs, limit, "translate"), as_json)


@app.command()
def guess(config: Config, runs: Runs = DEFAULT_RUNS, limit: Limit = None, as_json: Json = False) -> None:
    """Run the stages up to the guesses; translations that the store has are not made again."""
    _show_stages(_run(config, runs, limit, "guess"), as_json)


@app.command()
def buzz(config: Config, runs: Runs = DEFAULT_RUNS, limit: Limit = None, as_json: Json = False) -> None:
    """Run the stages up to the buzzes; what the store has is not made again."""
    _show_stages(_run(config, runs, limit, "buzz"), as_json)


@app.command()
def score(config: Config, runs: Runs = DEFAULT_RUNS, limit: Limit = None, as_json: Json = False) -> None:
    """Run the last stage, and those before it as far as the store lacks them; print the report as `run` does."""
    _finish(_run(config, runs, limit, "score"), runs, as_json)


@app.command()
def compare(a: RunFolder, b: RunFolder, as_json: Json = False) -> None:
    """Paired differences A - B over the same questions, with 95% intervals and two-sided p-values."""
    from sqa import runs as folders

    rows, notes = folders.compare(folders.read(a), folders.read(b))
    for note in notes:
        print(f"sqa: {note}", file=sys.stderr)
    _print(folders.COMPARISON_HEADER, [row.cells() for row in rows], [asdict(row) for row in rows], as_json)


def _run(path: Path, runs: Path, limit: int | None, until: str) -> RunResult:
    from sqa import pipeline
    from sqa.store import Store

    return pipeline.run(_load(path, limit), Store(runs), until=until)


def _load(path: Path, limit: int | None) -> RunConfig:
    from sqa.config import load_run, with_limit

    if limit is not None and limit < 1:
        raise ConfigError(f"--limit: must be >= 1, got {limit}")
    config = load_run(path)
    return config if limit is None else with_limit(config, limit)


def _finish(result: RunResult, runs: Path, as_json: bool) -> None:
    from sqa import runs as folders

    folder = folders.save(result, runs)
    for name, reason in result.refusals.items():
        print(f"sqa: {name}: no value: {reason}", file=sys.stderr)
    print(f"sqa: {len(result.questions)} questions; report in {folder / folders.REPORT}", file=sys.stderr)
    rows = folders.report_rows(result)
    _print(folders.REPORT_HEADER, [row.cells() for row in rows], [asdict(row) for row in rows], as_json)


def _show_stages(result: RunResult, as_json: bool) -> None:
    header = ("stage", "questions", "blocks_made", "folder")
    rows = [
        (name, len(result.questions), result.made[name], str(result.store.folder(stage)))
        for name, stage in result.stages.items()
    ]
    _print(header, rows, [dict(zip(header, row, strict=True)) for row in rows], as_json)


# --------------------------------------------------------------------------------------------------------- data


@data_app.command("list")
def data_list(as_json: Json = False) -> None:
    """Every file of the manifest, and whether a copy is here."""
    from sqa import download

    header = ("name", "here", "bytes", "records", "licence", "home")
    rows = [
        (e.name, "yes" if download.where(e.name) else "no", e.size, e.records, e.licence, e.home or e.how or "")
        for e in download.entries()
    ]
    _print(header, rows, [dict(zip(header, row, strict=True)) for row in rows], as_json)


@data_app.command("fetch")
def data_fetch(names: Names = None) -> None:
    """Get files from the mirror or their public home, resuming what was cut off; every byte is checked."""
    from sqa import download

    for name in names or [e.name for e in download.entries() if e.home or download.where(e.name)]:
        path = download.fetch(name)
        print(f"{name}\t{path}")


@data_app.command("verify")
def data_verify(names: Names = None, as_json: Json = False) -> None:
    """Read every copy in full and compare it with the manifest.  Exit 3 on a wrong file, or a missing named one."""
    from sqa import download

    found = download.verify(names or None)
    header = ("name", "state", "path", "message")
    rows = [(status.entry.name, status.state, str(status.path or ""), status.message) for status in found]
    _print(header, rows, [dict(zip(header, row, strict=True)) for row in rows], as_json)
    bad = [s for s in found if s.state == "wrong" or (names and s.state != "ok")]
    for status in bad:
        print(f"sqa: {status.entry.name}: {status.message}", file=sys.stderr)
    if bad:
        raise typer.Exit(3)


# ----------------------------------------------------------------------------------------- training and the rest


@train_app.command("smt")
def train_smt(
    config: Config,
    runs: Runs = DEFAULT_RUNS,
    fresh: Fresh = False,
    sweep: Annotated[
        str | None, typer.Option("--sweep", metavar="k=...", help="One model per k: k=3,6,full,multi.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", help="Trainings per k (default 1).")] = None,
) -> None:
    """Train a translator, or one per k and seed; goes on from the last checkpoint unless told otherwise."""
    if sweep is not None or seeds is not None:
        _call("smt.sweep:main", config, runs, sweep, 1 if seeds is None else seeds, fresh)
    else:
        _call("smt.train:main", config, runs, fresh)


@train_app.command("guesser")
def train_guesser(config: Config) -> None:
    """Train a guesser on the tossups."""
    _call("guessers.train:main", config)


@train_app.command("buzzer")
def train_buzzer(config: Config) -> None:
    """Train a buzzer on the guesses for tossups that the guesser has not seen."""
    _call("buzzers.train:main", config)


@convert_app.command("fairseq")
def convert_fairseq(
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", show_default=False)],
    source_dict: Annotated[Path, typer.Option("--source-dict", help="dict.SRC.txt of fairseq-preprocess.")],
    target_dict: Annotated[Path, typer.Option("--target-dict", help="dict.TGT.txt of fairseq-preprocess.")],
    output: Annotated[Path, typer.Option("--output", help="The folder to make.")],
    bpe: Annotated[str, typer.Option("--bpe", help="subword-nmt, sentencepiece or none.")] = "none",
    codes: Annotated[
        Path | None, typer.Option("--codes", help="BPE codes, or the source's SentencePiece model.")
    ] = None,
    moses: Annotated[str, typer.Option("--moses", help="Source language, if a Moses tokeniser came first.")] = "",
) -> None:
    """Convert a fairseq Transformer (also wait-k of its example and of attn2d) to a model of this program."""
    made = import_module("smt.fairseq").convert(checkpoint, source_dict, target_dict, output, bpe, codes, moses)
    _print(
        ("architecture", "parameters", "k_pieces", "folder"),
        [(made.architecture, made.parameters, made.k, made.folder)],
        [],
        as_json=False,
    )


@convert_app.command("ctranslate2")
def convert_ctranslate2(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model folder, or a hub name.", show_default=False)],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make.", show_default=False)],
    storage: Annotated[str, typer.Option("--storage", help="Numbers written: float32, float16 or int8.")] = "float32",
    revision: Annotated[str | None, typer.Option("--revision", help="Of the hub's model.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch the model from the hub if need be.")] = False,
) -> None:
    """Convert a full-input model for CTranslate2, a fast engine: one of `transformers`, or ours without a lexicon."""
    print(import_module("smt.ctranslate_export").convert(model, folder, storage, revision, download))


@app.command()
def ablation(config: Config, runs: Runs = DEFAULT_RUNS) -> None:
    """The paper's experiment: every score over k, as table, figure and report."""
    _call("experiments.ablation_over_k:main", config, runs)


@app.command()
def translations(
    config: Config,
    runs: Runs = DEFAULT_RUNS,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME", help="A test set of the config; all when none is given."),
    ] = None,
) -> None:
    """BLEU, chrF and lag of every translator on every test set: table and figure."""
    _call("experiments.translation_table:main", config, runs, sets or ())


@app.command()
def guessers(config: Config = Path("configs/guessers.yaml"), runs: Runs = DEFAULT_RUNS) -> None:
    """Accuracy, MRR and EW of every guesser as the question goes on, by category: tables and figure."""
    _call("experiments.guesser_report:main", config, runs)


@app.command()
def reproduce(
    item: Annotated[str, typer.Argument(metavar="ITEM", help=f"One of {', '.join(PAPER)}, or all.")],
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """A figure or table of the paper from our runs, with its claims judged; what the runs lack is made first."""
    if item not in (*PAPER, "all"):
        raise ConfigError(f"{item}: expected one of {', '.join(PAPER)}, all")
    for name, (target, config) in PAPER.items():
        if item in (name, "all"):
            _call(target, Path("configs", config), runs)


@app.command()
def clean(config: Config, runs: Runs = DEFAULT_RUNS) -> None:
    """Clean the parallel text of a training config; print what each step dropped."""
    _call("smt.prepare:main", config, runs)


@app.command()
def latency(
    log: Annotated[str, typer.Argument(metavar="LOG", help="instances.log or JSON lines; - is standard input.")],
    convention: Annotated[str, typer.Option(help="Whose formulas; see the README.")] = "simuleval-1.1",
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
    as_json: Json = False,
) -> None:
    """Every latency of a log: means as TSV, or with --json one line a sentence."""
    from sqa.latency_log import LogOptions, main

    options = LogOptions(convention, unit, source, end, references, use_ref_len, computation_aware)
    main(log, options, as_json)


@app.command()
def diagnose(
    run: RunFolder,
    top: Annotated[int, typer.Option("--top", metavar="N", help="Findings shown.")] = 20,
    questions: Annotated[
        list[str] | None, typer.Option("--questions", metavar="ID", help="This question only; may be repeated.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="hallucination, omission or drop; may be repeated."),
    ] = None,
    priors: Annotated[Path | None, typer.Option("--priors", metavar="DIR", help="Priors of the word aligner.")] = None,
    as_json: Json = False,
) -> None:
    """The worst step-wise errors of a run: word, source span, rank of the answer before and after."""
    _call("sqa.diagnose_command:main", run, top, questions or (), kinds or (), priors, None, as_json)


@app.command()
def bench() -> None:
    """Words per second of streaming and batched decoding, steps per second of the guessers."""
    _call("experiments.bench:main")


@curve_app.command("fit")
def curve_fit(
    buzzes: Annotated[
        str, typer.Argument(metavar="BUZZES", help="human-buzzes, or a .jsonl, .jsonl.zst or .csv.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", metavar="FILE.json", help="The curve; figures go beside it.")],
    method: Annotated[
        Literal["cubic", "monotone"], typer.Option("--method", help="As published, or the data, never rising.")
    ] = "cubic",
    beyond_end: Annotated[
        Literal["refuse", "keep", "clip", "drop"],
        typer.Option("--beyond-end", help="What is done with positions above 1."),
    ] = "refuse",
    first_of_game: Annotated[
        bool, typer.Option("--first-of-game", help="Take only the first buzz of each game on a question.")
    ] = False,
    unit: Annotated[
        Literal["questions", "games"], typer.Option("--unit", help="What the band resamples.")
    ] = "questions",
    resamples: Annotated[int, typer.Option("--resamples", metavar="N", help="Of the band.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the band.")] = 0,
) -> None:
    """Fit an expected-wins curve to people's buzzes; `ew@FILE.json` is then a metric."""
    from sqa import curve_commands
    from sqa.curve_fit import FitConfig

    config = FitConfig(method, beyond_end, first_of_game, unit, resamples, seed)
    curve_commands.main(buzzes, output, config)


@curve_app.command("show")
def curve_show(
    files: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", show_default=False)] = None,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE.png", help="Draw them as well.")] = None,
) -> None:
    """EW(t) of the published curves and of the files."""
    _call("sqa.curve_commands:show", files or (), output)


@curve_app.command("table")
def curve_table(
    configs: Annotated[list[Path], typer.Argument(metavar="CONFIG...", show_default=False)],
    curves: Curves = None,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """EW, oracle EW and stable EW of runs under every curve, side by side."""
    _call("experiments.curve_table:main", configs, curves or (), runs)


@app.command("head-to-head")
def head_to_head(config: Config, runs: Runs = DEFAULT_RUNS) -> None:
    """Guessers and buzzers against the people who played the same questions."""
    _call("experiments.head_to_head:main", config, runs)


def _call(target: str, *arguments: Any) -> None:
    """Call "module:function"; an int it returns is the exit code."""
    module, _, function = target.partition(":")
    code = getattr(import_module(module), function)(*arguments)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


def _print(header: Sequence[str], rows: Iterable[Sequence[Any]], objects: list[dict[str, Any]], as_json: bool) -> None:
    """Data to stdout: TSV with a header, or a JSON list of objects."""
    if as_json:
        print(json.dumps(objects, indent=2, ensure_ascii=False))
        return
    for cells in (header, *rows):
        print("\t".join(str(cell).replace("\t", " ").replace("\n", " ") for cell in cells))


if __name__ == "__main__":
    main()
