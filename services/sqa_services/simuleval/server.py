"""`sqa serve simuleval`: a translator of this project, or a SimulEval agent, for `simuleval --remote-eval`.

    GET /          {"info": TEXT}                        POST /reset    forget the sentence in hand
    PUT /input     a segment of the source, as JSON      GET /output    a segment of the translation, as JSON

The same routes, bodies and status codes as `simuleval --standalone` (SimulEval 1.1), with a token beyond loopback and
limits.  The protocol has no name for a client or a sentence, so there is one at a time, and while it is under way a
second client is refused (409); a user in the address (any:TOKEN@host) tells clients apart.  Start a server for each.

`simuleval` cannot send a token by itself; it is the password in its address: --remote-address any:TOKEN@host.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqa.core.errors import ConfigError, lacking, need
from sqa_services.simuleval.agent import SimulevalConfig, SimulevalTranslator, quiet_imports

if TYPE_CHECKING:
    from simuleval.agents import GenericAgent


def agent_of(translator: str, agent: str = "", arguments: Sequence[str] = ()) -> GenericAgent:
    """The SimulEval agent to serve: around a translator (YAML, or a config file), or one "file.py:Class"."""
    need("simuleval", "sqa serve simuleval")
    if bool(translator) == bool(agent):
        raise ConfigError("--translator and --agent: give one of them")
    if agent:
        return SimulevalTranslator(SimulevalConfig(agent, tuple(arguments))).agent
    if arguments:
        raise ConfigError(f"{' '.join(arguments)}: options of an agent, and no --agent was given")
    with quiet_imports():
        from sqa_services.simuleval.translator_agent import TranslatorAgent
    return TranslatorAgent(Namespace(translator=translator))


def serve(
    translator: str,
    agent: str,
    arguments: Sequence[str],
    host: str,
    port: int,
    token: str | None,
    names: Sequence[str] = (),
) -> None:
    """Serve until interrupted.  starlette, uvicorn or simuleval missing: ConfigError."""
    try:
        from sqa_services.net.connections import run_app
        from sqa_services.simuleval.http import ServiceConfig, make_app
    except ModuleNotFoundError as error:
        raise lacking(error, "sqa serve simuleval") from error
    config = ServiceConfig(host, port, token, names=tuple(names))
    served = agent_of(translator, agent, arguments)
    print(f"sqa: {served} at http://{host}:{port}; simuleval --remote-eval --remote-port {port}", file=sys.stderr)
    run_app(make_app(served, config), host, port)
