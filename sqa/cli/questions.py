"""Commands `sqa questions` (print a question set, make questions) and `sqa ask` (find out when they are answered)."""

import json
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from sqa.cli import options
from sqa.cli.options import SETTINGS, argument, option, say
from sqa.core import ConfigError
from sqa.results import show, show_lines


class Shown(TyperGroup):
    """Group in which `sqa questions NAME` means `sqa questions show NAME`."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        known = {*self.commands, "-h", "--help"}
        return super().parse_args(ctx, args if not args or args[0] in known else ["show", *args])


questions_app = typer.Typer(
    help="Print a question set (`sqa questions show NAME`), or make questions about any text.", cls=Shown, **SETTINGS
)
ask_app = typer.Typer(**SETTINGS)

References = Annotated[Path | None, option("--references FILE", "Reference translation, one line per segment.")]
Sources = Annotated[Path | None, option("--sources FILE", "Source text, one line per segment.")]
Endpoint = Annotated[
    Path | None,
    option("--endpoint FILE.yaml", "With endpoint: base_url and model of the server, or base: a local model."),
]
Requests = Annotated[int, option("--limit-requests N", "With endpoint: greatest number of requests.", min=1)]
Cache = Annotated[Path | None, option("--cache FILE", "With endpoint: replies; default: in the cache folder.")]


def _asking(endpoint: Path | None, limit: int, cache: Path | None) -> tuple[Any, str]:
    """Return a language model that is asked for JSON objects, and its name."""
    from sqa.files import read_yaml
    from sqa.net.chat import Budget, CachedChat
    from sqa.net.chat import Cache as Replies
    from sqa.net.endpoint import CHAT, EndpointConfig
    from sqa.net.endpoint import Endpoint as Server
    from sqa.pipeline import load
    from sqa.questions.model import Asking

    if endpoint is None:
        raise ConfigError("--endpoint: give a YAML file with base_url and model of the server")
    if "base" in read_yaml(endpoint):
        local: Any = import_module("smt.lm.local")
        here = load(endpoint, local.LocalConfig)
        model = local.LocalModel(here, CHAT)
        return Asking(model), f"{Path(here.base).name}-{model.identity[:8]}"
    config = load(endpoint, EndpointConfig)
    chat = CachedChat(Server(config, Budget(limit)), Replies(cache))
    return Asking(chat), f"{config.label or config.model}-{chat.identity[:8]}"


@questions_app.command("show")
def show_questions(
    name: Annotated[str, argument("QUESTIONS", "Name or file of a question set.")],
    by_question: Annotated[bool, option("--questions/--sentences", "Unit of a line.")] = False,
    references: Annotated[bool, option("--references", "Print human translations instead of sources.")] = False,
    pairs: Annotated[
        bool, option("--pairs", "Print both, separated by a tab, in the format of training data.")
    ] = False,
    limit: options.Limit = None,
    output: options.Output = None,
) -> None:
    """Print a question set as lines, for SimulEval's --source and --target."""
    from sqa.data.datasets import load_questions
    from sqa.pipeline import question_texts
    from sqa.pipeline.export import Part

    if pairs and references:
        raise ConfigError("--pairs: already has the references; omit --references")
    part: Part = "pairs" if pairs else "references" if references else "sources"
    lines = question_texts(load_questions(name, limit), part, "question" if by_question else "sentence")
    options.write_lines(lines, output)


@questions_app.command("make")
def make_questions(
    references: Annotated[Path, option("--references FILE", "Reference translation, one line per segment.")],
    sources: Sources = None,
    pair: Annotated[str, option("--pair PAIR", "Languages of source and reference, such as es-en.")] = "-en",
    kinds: Annotated[
        list[str] | None, option("--kind KIND", "name, number, date, role or negation; may be repeated.  Default: all.")
    ] = None,
    before: Annotated[int, option("--before N", "Drop questions that the N segments before answer.", min=0)] = 3,
    maker: Annotated[
        Literal["rules", "endpoint"], option("--maker MAKER", "rules: clozes; endpoint: a language model.")
    ] = "rules",
    most: Annotated[int, option("--most N", "With endpoint: most questions about a segment.", min=1)] = 2,
    endpoint: Endpoint = None,
    requests: Requests = 10_000,
    cache: Cache = None,
    output: options.Output = None,
) -> None:
    """Make questions about a reference translation, as JSON lines.

    Rules write clozes of names, numbers, dates, roles and negations.  A language model writes questions of any kind.
    """
    from sqa.files import clean_lines
    from sqa.metrics.log_lines import lines_beside
    from sqa.questions.files import languages
    from sqa.questions.make import Maker, make, rule_maker

    texts = clean_lines(references)
    read = lines_beside(str(references), sources, len(texts)) if sources else []
    if maker == "endpoint":
        from sqa.questions.model import ModelMaker, announce, estimate_making

        if kinds:
            raise ConfigError("--kind: only for --maker rules")
        asking, name = _asking(endpoint, requests, cache)
        model = ModelMaker(asking, languages(pair), name, most)
        announce(*estimate_making(model, texts, read), requests)
        writer: Maker = model
    else:
        writer = rule_maker(pair, texts, kinds or ())
    made = make(writer, texts, read, pair, before)
    dropped = ", ".join(f"{n} {reason}" for reason, n in made.header["dropped"].items() if n)
    say(f"{len(made.questions)} questions about {len(texts)} segments; dropped: {dropped or 'none'}")
    options.write_lines(made.text().split("\n")[:-1], output)


@ask_app.command()
def ask(
    logs: Annotated[list[str], argument("LOG...", "Logs, folders of runs, or plain texts with a line per segment.")],
    questions: Annotated[Path, option("--questions FILE", "Questions, made by sqa questions make.")],
    references: References = None,
    sources: Sources = None,
    segments: options.Segmentation = None,
    source: options.Delays = "auto",
    compare: Annotated[bool, option("--compare", "Print the paired differences of the logs instead.")] = False,
    answers: Annotated[Path | None, option("--answers FILE", "Also write every answer there, as JSON lines.")] = None,
    plot: Annotated[Path | None, option("--plot FILE.png", "Also draw the share answered over time.")] = None,
    reader: Annotated[
        Literal["rules", "endpoint"], option("--reader READER", "rules: finds answers; endpoint: a language model.")
    ] = "rules",
    every_word: Annotated[bool, option("--every-word", "Read the translation after every word.")] = False,
    endpoint: Endpoint = None,
    requests: Requests = 10_000,
    cache: Cache = None,
    resamples: options.Resamples = 1000,
) -> None:
    """Find out when a listener to a translation could answer questions about the text.

    For each question, the reader looks for the first source word after which the answer is right and stays right.
    """
    from sqa.metrics.latency_log import LogOptions
    from sqa.questions import measures
    from sqa.questions.ask import ask as answered
    from sqa.questions.ask import pairs_of
    from sqa.questions.files import read_questions
    from sqa.questions.make import Reader
    from sqa.questions.rules import Rules
    from sqa.questions.texts import translated

    made = read_questions(questions)
    reading = LogOptions(references=references, sources=sources, source=source, segments=segments)
    recordings = import_module("smt.engines.speech_logs").read
    texts = [translated(log, reading, recordings) for log in logs]
    if reader == "endpoint":
        from sqa.questions.model import ModelReader, announce, estimate_asking

        asking, name = _asking(endpoint, requests, cache)
        person: Reader = ModelReader(asking, made.pair[1], name)
        announce(*estimate_asking([pair for text in texts for pair in pairs_of(text, made)], every_word), requests)
    else:
        person = Rules(made.pair[1])
    systems = [answered(text, made, person, every_word) for text in texts]
    if reader == "endpoint":
        say(*(f"{kind}: {n} replies" for kind, n in sorted(asking.problems.items()) if n))
    if answers:
        lines = (json.dumps(record, ensure_ascii=False) for record in measures.records(systems))
        options.write_lines(lines, answers)
    if plot:
        show_lines(*import_module("sqa.report.curves").draw_answered(systems, plot))
    if compare:
        show(measures.differences(systems, resamples))
    else:
        show(measures.frame(systems, made, person.name, resamples).table())
