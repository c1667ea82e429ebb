"""Commands for training, for converting fairseq models, and for fitting curves."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from sqa.cli.options import DEFAULT_RUNS, SETTINGS, Config, Runs, argument, call, option
from sqa.results import Table, show

train_app = typer.Typer(help="Train or convert a model, fit an expected-wins curve, clean training text.", **SETTINGS)


@train_app.command("smt")
def train_smt(
    config: Config,
    runs: Runs = DEFAULT_RUNS,
    fresh: Annotated[bool, option("--fresh/--resume", "Start again, or continue from the last checkpoint.")] = False,
    sweep: Annotated[str | None, option("--sweep k=...", "One model per k: k=3,6,full,multi.")] = None,
    seeds: Annotated[int | None, option("--seeds N", "Training runs per k (default 1).")] = None,
) -> None:
    """Train a translator, or one per k and seed.

    Training continues from the last checkpoint unless --fresh is given.  Several processes may share the training runs
    of a sweep.
    """
    call("smt.train:main", config, runs, fresh, sweep, seeds)


@train_app.command("guesser")
def train_guesser(config: Config) -> None:
    """Train a guesser on the tossups, and print its folder."""
    _print_folder(import_module("guessers.train").main(config))


@train_app.command("buzzer")
def train_buzzer(config: Config) -> None:
    """Train a buzzer on held-out tossups, and print its folder."""
    _print_folder(import_module("buzzers.train").main(config))


def _print_folder(folder: Path) -> None:
    """Print the trained model's folder, which a config names as `model:`, and its size."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    show(Table(("model", "bytes"), [(folder, size)]))


@train_app.command("fairseq")
def convert_fairseq(
    checkpoint: Annotated[Path, argument("CHECKPOINT")],
    source_dict: Annotated[Path, option("--source-dict", "dict.SRC.txt of fairseq-preprocess.")],
    target_dict: Annotated[Path, option("--target-dict", "dict.TGT.txt of fairseq-preprocess.")],
    output: Annotated[Path, option("--output", "Folder to create.")],
    bpe: Annotated[str, option("--bpe", "subword-nmt, sentencepiece or none.")] = "none",
    codes: Annotated[Path | None, option("--codes", "File of BPE codes, or the source's SentencePiece model.")] = None,
    moses: Annotated[str, option("--moses", "Source language, if the text was tokenised with Moses.")] = "",
) -> None:
    """Convert a fairseq Transformer to a model of SQA.

    Wait-k models of fairseq's example and of attn2d are also supported.
    """
    convert = import_module("smt.engines.fairseq").convert
    model = convert(checkpoint, source_dict, target_dict, output, bpe, codes, moses)
    header = ("architecture", "parameters", "k_pieces", "folder")
    show(Table(header, [(model.architecture, model.parameters, model.k, model.folder)]))


@train_app.command("curve")
def train_curve(
    buzzes: Annotated[str, argument("BUZZES", "human-buzzes, or a .jsonl or .jsonl.zst.")],
    output: Annotated[Path, option("--output FILE.json", "Output file of the curve.  Figures are written beside it.")],
    method: Annotated[
        Literal["cubic", "monotone"],
        option("--method", "cubic as published, or monotone, which follows the data and never rises."),
    ] = "cubic",
    beyond_end: Annotated[
        Literal["refuse", "clip"], option("--beyond-end", "Treatment of positions above 1.")
    ] = "refuse",
    resamples: Annotated[int, option("--resamples N", "Number of resamples for the band.")] = 1000,
    seed: Annotated[int, option("--seed N", "Seed of the band.")] = 0,
) -> None:
    """Fit an expected-wins curve to people's buzzes; `ew@FILE.json` is then a metric."""
    from sqa.metrics.curve_fit import FitConfig

    call("sqa.report.curves:main", buzzes, output, FitConfig(method, beyond_end, resamples, seed))
