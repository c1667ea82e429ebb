"""Options of the commands that start a server or send requests to one."""

import os
from pathlib import Path
from typing import Annotated

from sqa.cli.options import option
from sqa.core.errors import ConfigError
from sqa.files.records import lines

TOKEN = "SQA_TOKEN"  # environment variable


def token_in(file: str) -> str:
    """Return the token in a file.  Raises ConfigError unless the file contains exactly one word."""
    words = [word for line in lines(Path(file)) for word in line.split()]
    if len(words) != 1:
        raise ConfigError(f"--token-file: {file} must contain exactly one token, but has {len(words)} words")
    return words[0]


def _given_or_set(token: str | None) -> str | None:
    return token or os.environ.get(TOKEN) or None


Host = Annotated[str, option("--host", "Address to listen on.  Every address except loopback needs a token.")]
Port = Annotated[int, option("--port N")]
HostNames = Annotated[
    list[str] | None,
    option(
        "--name HOST", "Host name of the server; may be repeated.  Default: any name, if the address is not loopback."
    ),
]
MaxBody = Annotated[int, option("BYTES", "Maximum size of a request.")]
Token = Annotated[  # not the token itself: `ps` shows command lines to every user
    str | None,
    option(
        "--token-file FILE",
        f"File with the server's token; default: ${TOKEN}.",
        parser=token_in,
        callback=_given_or_set,
    ),
]
