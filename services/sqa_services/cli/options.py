"""Options of the commands that start a server."""

from typing import Annotated

from sqa.cli.options import option

Host = Annotated[str, option("--host", "Beyond loopback a token is needed.")]
Port = Annotated[int, option("--port N")]
HostNames = Annotated[
    list[str] | None, option("--name HOST", "A host name it is asked by; repeatable. Beyond loopback, none: any.")
]
MaxBody = Annotated[int, option("BYTES", "Of a request.")]
