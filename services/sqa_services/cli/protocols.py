"""Commands `sqa serve`, `client`, `scorer` and `validate` for wire formats of other programs; options of servers."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from sqa.cli.options import SETTINGS, Json, argument, call, option
from sqa.core import ConfigError
from sqa.results import show_lines

TOKEN = "SQA_TOKEN"  # environment variable


def token_in(file: str) -> str:
    """Return the token in a file.  Raises ConfigError unless the file contains exactly one word."""
    from sqa.files import lines

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


serve_app = typer.Typer(help="Serve sentences or translations to other programs.", **SETTINGS)
app = typer.Typer(**SETTINGS)  # commands outside of groups
client_app = typer.Typer(help="Translate for the servers of other programs.", **SETTINGS)
validate_app = typer.Typer(help="Check and score submissions.", **SETTINGS)
Dialect = Literal["iwslt-2020", "simuleval-1.0.2"]
RAW = {"allow_extra_args": True, "ignore_unknown_options": True}  # arguments in the style of other programs


Guesser = Annotated[str, option("--guesser YAML", "Value as in a config, or a config file.")]
Buzzer = Annotated[str, option("--buzzer YAML", "Value as in a config; none for no buzzer.")]
Translator = Annotated[str, option("--translator YAML", "Value as in a config, or a config file.")]
AgentOptions = Annotated[list[str] | None, argument("[-- AGENT OPTIONS]")]


@serve_app.command("iwslt")
def serve_iwslt(
    target: Annotated[
        Path | None, option("--tgt-file FILE", "File of references; a .json file is accepted for speech.")
    ] = None,
    source: Annotated[Path | None, option("--src-file FILE", "File of sentences, or of .wav paths.")] = None,
    kind: Annotated[Literal["text", "speech"], option("--scorer-type", "Kind of source.")] = "text",
    tokenizer: Annotated[str, option("--tokenizer", "Tokenizer of BLEU; only 13a.")] = "13a",
    output: Annotated[Path | None, option("--output DIR", "Output folder for texts, delays and scores.")] = None,
    host: Host = "127.0.0.1",
    port: Port = 12321,
    dialect: Annotated[Dialect, option("--dialect", "Format of the answers to GET / and GET /result.")] = "iwslt-2020",
    strict: Annotated[bool, option("--strict-2020", "Reproduce the faults of the original server.")] = False,
    token: Token = None,
    questions: Annotated[str, option("--questions NAME", "Question set that replaces the files and adds EW.")] = "",
    guesser: Guesser = "",
    buzzer: Buzzer = "",
    names: HostNames = None,
) -> None:
    """Serve sentences word by word and score the translations, like the server of IWSLT 2020."""
    from sqa_services.net.guard import Address
    from sqa_services.protocols.iwslt.http import ServeConfig, serve

    if tokenizer != "13a":
        raise ConfigError(f"--tokenizer: BLEU of the shared task uses 13a, got {tokenizer!r}; omit the option")
    address = Address(host, port, token, tuple(names or ()))
    config = ServeConfig(dialect, strict, output, address)
    serve(source, target, kind, config, questions, guesser, buzzer)


@client_app.command("iwslt")
def client_iwslt(
    arguments: AgentOptions = None,
    agent: Annotated[str, option("--agent FILE.py:CLASS", "Agent as in the published guide.")] = "",
    translator: Translator = "",
    url: Annotated[str, option("--url", "Address of the server.")] = "http://localhost:12321",
    start: Annotated[int, option("--start-idx N", "First sentence, counted from 0.", min=0)] = 0,
    end: Annotated[int | None, option("--end-idx N", "Last sentence, inclusive.")] = None,
    threads: Annotated[int, option("--num-threads N", "Number of threads, each with its own agent.", min=1)] = 1,
    reset: Annotated[bool, option("--reset-server", "Reset the server first.")] = False,
    scores: Annotated[bool, option("--scores", "Print the server's scores at the end.")] = False,
    session: Annotated[str, option("--session ID", "Identifier of this client's session.")] = "",
    token: Token = None,
) -> None:
    """Translate an evaluation server's sentences with an agent or a translator of this project."""
    from sqa.pipeline import translator_from
    from sqa_services.protocols.iwslt import client as iwslt

    if agent and translator:
        raise ConfigError("--agent and --translator: give exactly one of them")
    if translator and threads > 1:
        raise ConfigError("--num-threads: a translator handles one sentence at a time; keep the default 1")
    if arguments and not agent:
        raise ConfigError(f"{' '.join(arguments)}: these are options of an agent, but no --agent was given")
    service = iwslt.EvaluationService(url, session, token or "")
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
    metric: Annotated[str, argument("METRIC", "bleu, chrf, ter or meteor; or simuleval or simulstream.")],
) -> None:
    """Score for other programs.

    With bleu, chrf, ter or meteor, serve cdec's SCORE/EVAL protocol; meteor also takes the arguments of its jar.
    With simuleval, print the folder for SimulEval's --user-dir.  With simulstream, run simulstream_score_latency.  Both
    have the scorers SQA_EW, SQA_ORACLE_EW, SQA_STABLE_EW and SQA_ACCURACY.
    """
    if metric == "simuleval":
        return show_lines(Path(__file__).parents[1] / "simuleval" / "sqa_scorers")
    target = "simuleval.simulstream:main" if metric == "simulstream" else "protocols.scorer:main"
    call(f"sqa_services.{target}", *(() if metric == "simulstream" else (metric,)), context.args)


@validate_app.command("vist", context_settings=RAW | {"help_option_names": []})
def validate_vist(context: typer.Context) -> None:
    """Evaluate a submission to the VIST challenge.

    The arguments are -testFile F -gsFile G [--template T].
    """
    call("sqa_services.protocols.vist:main", context.args)


@validate_app.command("sqa")
def validate_sqa(
    submission: Annotated[str, argument("SUBMISSION", "File with one JSON object per line.", show_default=True)] = "",
    questions: Annotated[str, option("--questions NAME", "Name of the question set.")] = "",
    schema: Annotated[bool, option("--schema", "Print the JSON schema of a line.")] = False,
    as_json: Json = False,
) -> None:
    """Check a submission of (question, step, token, g) rows, and score it."""
    if not schema and not (submission and questions):
        raise ConfigError("give a SUBMISSION and its --questions NAME, such as mini-es")
    call("sqa_services.protocols.submission:main", submission, questions, as_json, schema)
