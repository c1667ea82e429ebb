"""`sqa serve`, `client`, `scorer` and `validate`: the wire formats of other people's programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from sqa.cli.options import SETTINGS, Json, call
from sqa.core.errors import ConfigError
from sqa_services.cli.options import Host, HostNames, Port
from sqa_services.net.address import Address

serve_app = typer.Typer(help="Servers for other people's programs.", **SETTINGS)
scorer_app = typer.Typer(**SETTINGS)
simuleval_app = typer.Typer(**SETTINGS)
simulstream_app = typer.Typer(**SETTINGS)
client_app = typer.Typer(help="Clients of other people's servers.", **SETTINGS)
validate_app = typer.Typer(help="Check and score submissions.", **SETTINGS)
Guesser = Annotated[str, typer.Option("--guesser", metavar="YAML", help="As in a config, or a config file.")]
Buzzer = Annotated[str, typer.Option("--buzzer", metavar="YAML", help="As in a config; none: without one.")]
Token = Annotated[str | None, typer.Option("--token", envvar="SQA_TOKEN", help="Clients must bring it.")]
RAW = {"allow_extra_args": True, "ignore_unknown_options": True}  # arguments in other programs' own style


@serve_app.command("iwslt")
def serve_iwslt(
    target: Annotated[
        Path | None, typer.Option("--tgt-file", metavar="FILE", help="References; of speech a .json may do.")
    ] = None,
    source: Annotated[Path | None, typer.Option("--src-file", metavar="FILE", help="Sentences, or .wav paths.")] = None,
    kind: Annotated[Literal["text", "speech"], typer.Option("--scorer-type", help="What is read out.")] = "text",
    output: Annotated[Path | None, typer.Option("--output", metavar="DIR", help="For text, delay and scores.")] = None,
    host: Host = "127.0.0.1",
    port: Port = 12321,
    dialect: Annotated[
        Literal["iwslt-2020", "simuleval-1.0.2"], typer.Option("--dialect", help="How GET / and GET /result answer.")
    ] = "iwslt-2020",
    strict: Annotated[bool, typer.Option("--strict-2020", help="Keep the originals' mistakes.")] = False,
    token: Token = None,
    questions: Annotated[
        str, typer.Option("--questions", metavar="NAME", help="A question set in place of the files: EW too.")
    ] = "",
    guesser: Guesser = "",
    buzzer: Buzzer = "",
    names: HostNames = None,
    journal: Annotated[
        Path | None, typer.Option("--journal", metavar="FILE", help="Keeps the sessions; default: one in --output.")
    ] = None,
    session_hours: Annotated[
        float, typer.Option("--session-hours", metavar="N", help="Without a request, then a session is forgotten.")
    ] = 168.0,
    participants: Annotated[
        Path | None, typer.Option("--participants", metavar="FILE", help="NAME TOKEN a line: each has one session.")
    ] = None,
) -> None:
    """Read sentences out word by word, score what comes back; the server of IWSLT 2020."""
    from sqa_services.protocols.iwslt.http import ServeConfig, serve
    from sqa_services.protocols.iwslt.table import read_participants

    config = ServeConfig(
        dialect,
        strict,
        output,
        Address(host, port, token, tuple(names or ())),
        journal,
        session_hours,
        () if participants is None else tuple(read_participants(participants).items()),
    )
    serve(source, target, kind, config, questions, guesser, buzzer)


@serve_app.command("qanta")
def serve_qanta(
    guesser: Guesser = "",
    buzzer: Buzzer = "",
    host: Host = "127.0.0.1",
    port: Port = 4861,
    token: Token = None,
    underscores: Annotated[bool, typer.Option("--underscores", help="Titles as QANTA's data has them.")] = False,
    names: HostNames = None,
) -> None:
    """Answer Quizbowl questions as QANTA's systems do: /api/1.0/quizbowl/status, /act and /batch_act."""
    address = Address(host, port, token, tuple(names or ()), max_body=4 << 20)
    call("sqa_services.protocols.qanta:serve", guesser, buzzer, address, underscores)


@simuleval_app.command("simuleval-dir")
def simuleval_dir() -> None:
    """The folder for SimulEval's --user-dir: metrics SQA_EW, SQA_ORACLE_EW, SQA_STABLE_EW, SQA_ACCURACY."""
    print(Path(__file__).parents[1] / "simuleval" / "sqa_scorers")


@simulstream_app.command("simulstream-score", context_settings=RAW | {"help_option_names": []})
def simulstream_score(context: typer.Context) -> None:
    """simulstream_score_latency with the scorers SQA_EW, SQA_ORACLE_EW, SQA_STABLE_EW, SQA_ACCURACY."""
    call("sqa_services.simuleval.simulstream:main", context.args)


@serve_app.command("simuleval")
def serve_simuleval(
    translator: Annotated[
        str, typer.Option("--translator", metavar="YAML", help="As in a config, or a config file.")
    ] = "",
    agent: Annotated[
        str, typer.Option("--agent", metavar="FILE.py:CLASS", help="A SimulEval agent instead; then -- its options.")
    ] = "",
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[-- AGENT OPTIONS]", show_default=False)] = None,
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
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[-- AGENT OPTIONS]", show_default=False)] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="FILE.py:CLASS", help="An agent as in the published guide.")
    ] = None,
    translator: Annotated[
        str | None, typer.Option("--translator", metavar="YAML", help="As in a config, or a config file.")
    ] = None,
    url: Annotated[str, typer.Option("--url", help="The server.")] = "http://localhost:12321",
    start: Annotated[int, typer.Option("--start-idx", min=0, metavar="N", help="First sentence, from 0.")] = 0,
    end: Annotated[int | None, typer.Option("--end-idx", metavar="N", help="Last sentence, included.")] = None,
    threads: Annotated[int, typer.Option("--num-threads", min=1, metavar="N", help="Each with its own agent.")] = 1,
    reset: Annotated[bool, typer.Option("--reset-server", help="Forget first what was translated.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Print the server's scores at the end.")] = False,
    session: Annotated[str, typer.Option("--session", metavar="ID", help="Keeps this client apart from others.")] = "",
    token: Annotated[str, typer.Option("--token", envvar="SQA_TOKEN")] = "",
    patience: Annotated[
        float,
        typer.Option(
            "--patience", min=0, max=86_400, metavar="SECONDS", help="To ask again when the server is gone; 0: do not."
        ),
    ] = 60.0,
) -> None:
    """Translate what an evaluation server reads out, with an agent or a translator of this project."""
    from sqa.run.named import translator_from
    from sqa_services.protocols.iwslt import client as iwslt

    if agent is not None and translator is not None:
        raise ConfigError("--agent and --translator: give one of them")
    if translator is not None and threads > 1:
        raise ConfigError("--num-threads: a translator works at one sentence at a time; leave it at 1")
    if agent is None and arguments:
        raise ConfigError(f"{' '.join(arguments)}: options of an agent, and no --agent was given")
    service = iwslt.EvaluationService(url, session, token or "", patience)
    build = None if agent is None else iwslt.agent_builder(agent, arguments or ())
    if translator is not None:
        shared = iwslt.TranslatorAgent(translator_from(translator))
        build = lambda: shared  # noqa: E731
    if reset:
        service.new_session()
    if build is not None:
        number = iwslt.evaluate(build, service, start, end, threads)
        print(f"sqa: {number} sentences translated", file=sys.stderr)
    if scores:
        print(json.dumps(service.get_scores()))


@scorer_app.command("scorer", context_settings=RAW)
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
    questions: Annotated[str, typer.Option("--questions", metavar="NAME", help="The question set.")] = "",
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of a line.")] = False,
    as_json: Json = False,
) -> None:
    """Check a submission of (question, step, token, g) rows; then EW and latency."""
    call("sqa_services.protocols.submission:main", submission, questions, as_json, schema)
