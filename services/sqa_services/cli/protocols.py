"""`sqa serve`, `client`, `scorer` and `validate`: the wire formats of other people's programs; `bench` beside them."""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from sqa.cli.options import SETTINGS, Json, argument, call, option
from sqa.core.errors import ConfigError
from sqa.results import show_lines
from sqa_services.cli.options import Host, HostNames, Port, Token
from sqa_services.net.address import Address

serve_app = typer.Typer(help="Servers for other people's programs.", **SETTINGS)
app = typer.Typer(**SETTINGS)  # commands that are no groups
client_app = typer.Typer(help="Clients of other people's servers.", **SETTINGS)
validate_app = typer.Typer(help="Check and score submissions.", **SETTINGS)
Dialect = Literal["iwslt-2020", "simuleval-1.0.2"]
RAW = {"allow_extra_args": True, "ignore_unknown_options": True}  # arguments in other programs' own style


Guesser = Annotated[str, option("--guesser YAML", "As in a config, or a config file.")]
Buzzer = Annotated[str, option("--buzzer YAML", "As in a config; none: without one.")]
Translator = Annotated[str, option("--translator YAML", "As in a config, or a config file.")]
AgentOptions = Annotated[list[str] | None, argument("[-- AGENT OPTIONS]")]
Patience = Annotated[
    float, option("--patience SECONDS", "To ask again when the server is gone; 0: do not.", min=0, max=86_400)
]


@serve_app.command("iwslt")
def serve_iwslt(
    target: Annotated[Path | None, option("--tgt-file FILE", "References; of speech a .json may do.")] = None,
    source: Annotated[Path | None, option("--src-file FILE", "Sentences, or .wav paths.")] = None,
    kind: Annotated[Literal["text", "speech"], option("--scorer-type", "What is read out.")] = "text",
    output: Annotated[Path | None, option("--output DIR", "For text, delay and scores.")] = None,
    host: Host = "127.0.0.1",
    port: Port = 12321,
    dialect: Annotated[Dialect, option("--dialect", "How GET / and GET /result answer.")] = "iwslt-2020",
    strict: Annotated[bool, option("--strict-2020", "Keep the originals' mistakes.")] = False,
    token: Token = None,
    questions: Annotated[str, option("--questions NAME", "A question set in place of the files: EW too.")] = "",
    guesser: Guesser = "",
    buzzer: Buzzer = "",
    names: HostNames = None,
    journal: Annotated[Path | None, option("--journal FILE", "Keeps the sessions; default: one in --output.")] = None,
    session_hours: Annotated[
        float, option("--session-hours N", "Without a request, then a session leaves the memory.")
    ] = 168.0,
    participants: Annotated[
        Path | None, option("--participants FILE", "NAME TOKEN a line: each has one session.")
    ] = None,
) -> None:
    """Read sentences out word by word, score what comes back; the server of IWSLT 2020."""
    from sqa_services.protocols.iwslt.http import ServeConfig, serve
    from sqa_services.protocols.iwslt.table import read_participants

    address = Address(host, port, token, tuple(names or ()))
    people = () if participants is None else tuple(read_participants(participants).items())
    config = ServeConfig(dialect, strict, output, address, journal, session_hours, people)
    serve(source, target, kind, config, questions, guesser, buzzer)


@app.command("simuleval-dir")
def simuleval_dir() -> None:
    """The folder for SimulEval's --user-dir: metrics SQA_EW, SQA_ORACLE_EW, SQA_STABLE_EW, SQA_ACCURACY."""
    show_lines(Path(__file__).parents[1] / "simuleval" / "sqa_scorers")


@app.command("simulstream-score", context_settings=RAW | {"help_option_names": []})
def simulstream_score(context: typer.Context) -> None:
    """simulstream_score_latency with the scorers SQA_EW, SQA_ORACLE_EW, SQA_STABLE_EW, SQA_ACCURACY."""
    call("sqa_services.simuleval.simulstream:main", context.args)


@serve_app.command("simuleval")
def serve_simuleval(
    translator: Translator = "",
    agent: Annotated[str, option("--agent FILE.py:CLASS", "A SimulEval agent instead; then -- its options.")] = "",
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
    agent: Annotated[str, option("--agent FILE.py:CLASS", "An agent as in the published guide.")] = "",
    translator: Translator = "",
    url: Annotated[str, option("--url", "The server.")] = "http://localhost:12321",
    start: Annotated[int, option("--start-idx N", "First sentence, from 0.", min=0)] = 0,
    end: Annotated[int | None, option("--end-idx N", "Last sentence, included.")] = None,
    threads: Annotated[int, option("--num-threads N", "Each with its own agent.", min=1)] = 1,
    reset: Annotated[bool, option("--reset-server", "Forget first what was translated.")] = False,
    scores: Annotated[bool, option("--scores", "Print the server's scores at the end.")] = False,
    session: Annotated[str, option("--session ID", "Keeps this client apart from others.")] = "",
    token: Token = None,
    patience: Patience = 60.0,
) -> None:
    """Translate what an evaluation server reads out, with an agent or a translator of this project."""
    from sqa.pipeline.named import translator_from
    from sqa_services.protocols.iwslt import client as iwslt

    if agent and translator:
        raise ConfigError("--agent and --translator: give one of them")
    if translator and threads > 1:
        raise ConfigError("--num-threads: a translator works at one sentence at a time; leave it at 1")
    if arguments and not agent:
        raise ConfigError(f"{' '.join(arguments)}: options of an agent, and no --agent was given")
    service = iwslt.EvaluationService(url, session, token or "", patience)
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
    metric: Annotated[str, argument("METRIC", "bleu, chrf, ter or meteor.")],
) -> None:
    """A metric for programs that speak cdec's SCORE/EVAL protocol; meteor takes its jar's arguments as well."""
    call("sqa_services.protocols.scorer:main", metric, context.args)


@validate_app.command("vist", context_settings=RAW | {"help_option_names": []})
def validate_vist(context: typer.Context) -> None:
    """The VIST challenge's evaluator: -testFile F -gsFile G [--template T] [--all-errors] [--json]."""
    call("sqa_services.protocols.vist:main", context.args)


@validate_app.command("sqa")
def validate_sqa(
    submission: Annotated[str, argument("SUBMISSION", "Rows as JSON lines.", show_default=True)] = "",
    questions: Annotated[str, option("--questions NAME", "The question set.")] = "",
    schema: Annotated[bool, option("--schema", "Print the JSON schema of a line.")] = False,
    as_json: Json = False,
) -> None:
    """Check a submission of (question, step, token, g) rows; then EW and latency."""
    call("sqa_services.protocols.submission:main", submission, questions, as_json, schema)


@app.command("bench")
def bench() -> None:
    """Words per second of streaming and batched decoding, steps per second of the guessers."""
    call("sqa_services.bench.speed:main")
