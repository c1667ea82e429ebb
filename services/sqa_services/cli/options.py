"""Options of the commands that start a server."""

from __future__ import annotations

from typing import Annotated

import typer

Host = Annotated[str, typer.Option("--host", help="Beyond loopback a token is needed.")]
Port = Annotated[int, typer.Option("--port", metavar="N")]
HostNames = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST", help="A host name it is asked by; repeatable. Beyond loopback, none: any."),
]
MaxBody = Annotated[int, typer.Option("--max-body", metavar="BYTES", help="Of a request.")]
