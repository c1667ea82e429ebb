"""How arguments and options are declared; options of the commands that start a server."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def argument(metavar: str, help: str) -> Any:
    """A positional argument that has to be given, or whose default says nothing."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def option(metavar: str, help: str, *names: str) -> Any:
    """An option with a value; `names`: where it is not called as its parameter."""
    return typer.Option(*names, metavar=metavar, help=help)


Host = Annotated[str, typer.Option("--host", help="Beyond loopback a token is needed.")]
Port = Annotated[int, typer.Option("--port", metavar="N")]
HostNames = Annotated[
    list[str] | None, option("HOST", "A host name it is asked by; repeatable. Beyond loopback, none: any.", "--name")
]
MaxBody = Annotated[int, option("BYTES", "Of a request.")]
