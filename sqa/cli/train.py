"""Commands for training, for cleaning training text, and for converting models trained elsewhere."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from sqa.cli.options import DEFAULT_RUNS, SETTINGS, Config, Runs, argument, call, option
from sqa.results import Table, show

train_app = typer.Typer(help="Train a translator, a guesser or a buzzer; clean training text.", **SETTINGS)
convert_app = typer.Typer(help="Convert models that were trained elsewhere.", **SETTINGS)


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


@train_app.command()
def clean(config: Config, runs: Runs = DEFAULT_RUNS) -> None:
    """Clean the parallel text of a training config.

    The command prints the number of pairs that each step dropped.
    """
    call("smt.training.prepare:main", config, runs)


def _print_folder(folder: Path) -> None:
    """Print the trained model's folder, which a config names as `model:`, and its size."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    show(Table(("model", "bytes"), [(folder, size)]))


@convert_app.command("fairseq")
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
