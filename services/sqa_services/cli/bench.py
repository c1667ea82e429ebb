"""`sqa bench`: how fast the fast paths are."""

from __future__ import annotations

import typer

from sqa.cli.options import SETTINGS, call

bench_app = typer.Typer(**SETTINGS)


@bench_app.command("bench")
def bench() -> None:
    """Words per second of streaming and batched decoding, steps per second of the guessers."""
    call("sqa_services.bench.speed:main")
