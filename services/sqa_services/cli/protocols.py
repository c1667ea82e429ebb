"""`sqa serve`, `client`, `scorer` and `validate`: the wire formats of other people's programs; `bench` beside them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sqa.cli.options import SETTINGS, Json, call
from sqa.core.errors import ConfigError
from sqa_services.cli.options import Host, HostNames, Port
from sqa_services.net.address import Address

serve_app = typer.Typer(help="Servers for other people's programs.", **SETTINGS)
app = typer.Typer(**SETTINGS)  # commands that are no groups
client_app = typer.Typer(help="Clients of other people's servers.", **SETTINGS)
validate_app = typer.Typer(help="Check and score submissions.", **SETTINGS)
Dialect = Literal["iwslt-2020", "simuleval-1.0.2"]
RAW = {"allow_extra_args": True, "ignore_unknown_options": True}  # arguments in other programs' own style


def _option(name: str, metavar: str | None, help: str, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=help, **more)


Guesser = Annotated[str, _option("--guesser", "YAML", "As in a config, or a config file.")]
Buzzer = Annotated[str, _option("--buzzer", "YAML", "As in a config; none: without one.")]
Translator = Annotated[str, _option("--translator", "YAML", "As in a config, or a config file.")]
AgentOptions = Annotated[list[str] | None, typer.Argument(metavar="[-- AGENT OPTIONS]", show_default=False)]
Token = Annotated[str | None, _option("--token", None, "Clients must bring it.", envvar="SQA_TOKEN")]
Patience = Annotated[
    float, _option("--patience", "SECONDS", "To ask again when the server is gone; 0: do not.", min=0, max=86_400)
]


@serve_app.command("iwslt")
def serve_iwslt(
    target: Annotated[Path | None, _option("--tgt-file", "FILE", "References; of speech a .json may do.")] = None,
    source: Annotated[Path | None, _option("--src-file", "FILE", "Sentences, or .wav paths.")] = None,
    kind: Annotated[Literal["text", "speech"], _option("--scorer-type", None, "What is read out.")] = "text",
    output: Annotated[Path | None, _option("--output", "DIR", "For text, delay and scores.")] = None,
    host: Host = "127.0.0.1",
    port: Port = 12321,
    dialect: Annotated[Dialect, _option("--dialect", None, "How GET / and GET /result answer.")] = "iwslt-2020",
    strict: Annotated[bool, _option("--strict-2020", None, "Keep the originals' mistakes.")] = False,
    token: Token = None,
    questions: Annotated[str, _option("--questions", "NAME", "A question set in place of the files: EW too.")] = "",
    guesser: Guesser = "",
    buzzer: Buzzer = "",
    names: HostNames = None,
    journal: Annotated[
        Path | None, _option("--journal", "FILE", "Keeps the sessions; default: one in --output.")
    ] = None,
    session_hours: Annotated[
        float, _option("--session-hours", "N", "Without a request, then a session is forgotten.")
    ] = 168.0,
    participants: Annotated[
        Path | None, _option("--participants", "FILE", "NAME TOKEN a line: each has one session.")
    ] = None,
) -> None:
    """Read sentences out word by word, score what comes back; the server of IWSLT 2020."""
    from sqa_services.protocols.iwslt.http import ServeConfig, serve
    from sqa_services.protocols.iwslt.table import read_participants

    address = Address(host, port, token, tuple(names or ()))
    people = () if participants is None else tuple(read_participants(participants).items())
    config = ServeConfig(dialect, strict, output, address, journal, session_hours, people)
    serve(source, target, kind, config, questions, guesser, buzzer)


@serve_app.command("qanta")
def serve_qanta(
    guesser: Guesser = "",
    buzzer: Buzzer = "",
    host: Host = "127.0.0.1",
    port: Port = 4861,
    token: Token = None,
    underscores: Annotated[bool, _option("--underscores", None, "Titles as QANTA's data has them.")] = False,
    names: HostNames = None,
) -> None:
    """Answer Quizbowl questions as QANTA's systems do: /api/1.0/quizbowl/status, /act and /batch_act."""
    address = Address(host, port, token, tuple(names or ()), max_body=4 << 20)
    call("sqa_services.protocols.qanta:serve", guesser, buzzer, address, underscores)


@app.command("simuleval-dir")
def simuleval_dir() -> None:
    """The folder for SimulEval's --user-dir: metrics SQA_EW, SQA_ORACLE_EW, SQA_STABLE_EW, SQA_ACCURACY."""
    print(Path(__file__).parents[1] / "simuleval" / "sqa_scorers")


@app.command("simulstream-score", context_settings=RAW | {"help_option_names": []})
def simulstream_score(context: typer.Context) -> None:
    """simulstream_score_latency with the scorers SQA_EW, SQA_ORACLE_EW, SQA_STABLE_EW, SQA_ACCURACY."""
    call("sqa_services.simuleval.simulstream:main", context.args)


@serve_app.command("simuleval")
def serve_simuleval(
    translator: Translator = "",
    agent: Annotated[str, _option("--agent", "FILE.py:CLASS", "A SimulEval agent instead; then -- its options.")] = "",
    arguments: AgentOptions = None,
    host: Host = "127.0.0.1",
    port: Port = 12321,
    token: Token = None,
    names: HostNames = None,
) -> None:
    """Translate for `simuleval --remote-eval`, as `simuleval --standalone` does."""
    address = Address(host, port, token, tuple(names or ()))
    call("sqa_services.simuleval.server:serve", translator, agent, arguments or (), address)


@client_app.command("iwslt")
def client_iwslt(
    arguments: AgentOptions = None,
    agent: Annotated[str, _option("--agent", "FILE.py:CLASS", "An agent as in the published guide.")] = "",
    translator: Translator = "",
    url: Annotated[str, _option("--url", None, "The server.")] = "http://localhost:12321",
    start: Annotated[int, _option("--start-idx", "N", "First sentence, from 0.", min=0)] = 0,
    end: Annotated[int | None, _option("--end-idx", "N", "Last sentence, included.")] = None,
    threads: Annotated[int, _option("--num-threads", "N", "Each with its own agent.", min=1)] = 1,
    reset: Annotated[bool, _option("--reset-server", None, "Forget first what was translated.")] = False,
    scores: Annotated[bool, _option("--scores", None, "Print the server's scores at the end.")] = False,
    session: Annotated[str, _option("--session", "ID", "Keeps this client apart from others.")] = "",
    token: Annotated[str, typer.Option("--token", envvar="SQA_TOKEN")] = "",
    patience: Patience = 60.0,
) -> None:
    """Translate what an evaluation server reads out, with an agent or a translator of this project."""
    from sqa.run.named import translator_from
    from sqa_services.protocols.iwslt import client as iwslt

    if agent and translator:
        raise ConfigError("--agent and --translator: give one of them")
    if translator and threads > 1:
        raise ConfigError("--num-threads: a translator works at one sentence at a time; leave it at 1")
    if arguments and not agent:
        raise ConfigError(f"{' '.join(arguments)}: options of an agent, and no --agent was given")
    service = iwslt.EvaluationService(url, session, token, patience)
    if agent:
        build = iwslt.agent_builder(agent, arguments or ())
    elif translator:
        shared = iwslt.TranslatorAgent(translator_from(translator))
        build = lambda: shared  # noqa: E731
    if reset:
        service.new_session()
    if agent or translator:
        number = iwslt.evaluate(build, service, start, end, threads)
        print(f"sqa: {number} sentences translated", file=sys.stderr)
    if scores:
        print(json.dumps(service.get_scores()))


@app.command("scorer", context_settings=RAW)
def scorer(
    context: typer.Context,
    metric: Annotated[str, typer.Argument(metavar="METRIC", help="bleu, chrf, ter or meteor.", show_default=False)],
) -> None:
    """A metric for programs that speak cdec's SCORE/EVAL protocol; meteor takes its jar's arguments as well."""
    call("sqa_services.protocols.scorer:main", metric, context.args)


@validate_app.command("vist", context_settings=RAW | {"help_option_names": []})
def validate_vist(context: typer.Context) -> None:
    """The VIST challenge's evaluator: -testFile F -gsFile G [--template T] [--all-errors] [--json]."""
    call("sqa_services.protocols.vist:main", context.args)


@validate_app.command("sqa")
def validate_sqa(
    submission: Annotated[str, typer.Argument(metavar="SUBMISSION", help="Rows as JSON lines.")] = "",
    questions: Annotated[str, _option("--questions", "NAME", "The question set.")] = "",
    schema: Annotated[bool, _option("--schema", None, "Print the JSON schema of a line.")] = False,
    as_json: Json = False,
) -> None:
    """Check a submission of (question, step, token, g) rows; then EW and latency."""
    call("sqa_services.protocols.submission:main", submission, questions, as_json, schema)


@app.command("bench")
def bench() -> None:
    """Words per second of streaming and batched decoding, steps per second of the guessers."""
    call("sqa_services.bench.speed:main")
