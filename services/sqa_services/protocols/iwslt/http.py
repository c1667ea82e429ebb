"""HTTP interface of the evaluation server (Starlette): routes, limits, sessions, the token.

    GET /                  {"num_sentences": N}                      POST /                 forget everything
    GET /src?sent_id=I[&segment_size=MS]   the next segment          PUT /hypo?sent_id=I    words, in the body
    GET /result            the scores
    GET /start  /end  /get?info=JSON  /send?hypo=JSON                the same routes in the published guide
    /sessions/ID/...       all of these in a separate session; DELETE /sessions/ID ends it

Requests of SimulEval 1.0.2 use instance_id instead of sent_id and get SimulEval's responses: GET /src, PUT /hypo, GET
/result?instance_id=I.  GET / and a bare GET /result fit both, so `dialect` decides.

Every response has the body, status and content type of the original.  Scores are computed in another thread when they
are requested, so a stalled client blocks only its own connection.  A body that does not arrive in time is dropped.
"""

import asyncio
import re
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from sqa.core import ConfigError, checked
from sqa.data.datasets import load_questions
from sqa.files import parse_json
from sqa.pipeline import contestant_from
from sqa_services.net.guard import Address, Refused
from sqa_services.net.server import Route, application, json_reply, reply, run_app, tornado_page
from sqa_services.protocols.iwslt.corpus import Corpus, load
from sqa_services.protocols.iwslt.questions import QuestionScorer
from sqa_services.protocols.iwslt.session import Session

SESSION_ID = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_SESSIONS = 1024  # maximum number of sessions
STRICT = (
    "--strict-2020 reproduces faults of the original servers: any web page in a browser on this machine can reset "
    "and read sessions, tokens without a word have a delay, and references are public; do not use it for evaluations"
)


@dataclass(frozen=True, slots=True)
@checked
class ServeConfig:
    """Settings of the server."""

    dialect: Literal["iwslt-2020", "simuleval-1.0.2"] = "iwslt-2020"
    strict: Annotated[bool, "reproduce faults of the original servers; see `session.py`"] = False
    output: Annotated[Path | None, "folder of text, delays and scores; named sessions use its sessions/NAME"] = None
    address: Annotated[Address, "all requests except GET / need its token"] = field(default_factory=Address)


def serve(
    source: Path | None,
    target: Path | None,
    kind: Literal["text", "speech"],
    config: ServeConfig,
    questions: str = "",
    guesser: str = "",
    buzzer: str = "",
) -> None:
    """Serve the files, or the sentences of questions, until interrupted.

    `questions` is a question set or a file; `guesser` and `buzzer` are YAML, or a run's config file.
    """
    scorer = None
    if questions:
        if source or target or kind == "speech":
            raise ConfigError("--questions: they contain source and reference; omit the files and --scorer-type")
        scorer = QuestionScorer(load_questions(questions), *contestant_from(guesser, buzzer))
        corpus: Corpus = scorer.corpus()
    elif target is None:
        raise ConfigError("--tgt-file: give a file of references, or --questions")
    else:
        corpus = load(source, target, kind, config.strict)
    app = make_app(corpus, config, scorer)
    if config.strict:
        print(f"sqa: {STRICT}", file=sys.stderr)
    run_app(app, config.address, f"{len(corpus.targets)} sentences of {corpus.kind}")


def make_app(corpus: Corpus, config: ServeConfig, scorer: QuestionScorer | None = None) -> Starlette:
    """Return the application, which owns its sessions; a `scorer` needs the corpus of its own questions."""
    if scorer is not None and config.strict:
        raise ConfigError("--questions: the original server had none; omit --strict-2020")
    server, changes, session = Server(corpus, config, scorer), not config.strict, "/sessions/{session}"
    routes = [
        Route("GET", "/", server.info, public=True),
        Route("GET", f"{session}/", server.info),
        Route("GET", session, server.info),
        Route("POST", session, server.reset, programs=changes),
        Route("DELETE", session, server.drop, programs=changes),
    ]
    for prefix in ("", session):
        routes += [
            Route("POST", f"{prefix}/", server.reset, programs=changes),
            Route("GET", f"{prefix}/src", server.source, programs=changes),
            Route("PUT", f"{prefix}/hypo", server.hypothesis, programs=changes),
            Route("GET", f"{prefix}/result", server.result),
            Route("GET", f"{prefix}/start", server.reset, programs=changes),
            Route("GET", f"{prefix}/end", partial(server.result, guide=True)),
            Route("GET", f"{prefix}/get", server.guide_get, programs=changes),
            Route("GET", f"{prefix}/send", server.guide_send, programs=changes),
        ]
    return application(config.address, routes, tornado_page)


class Server:
    """Request handlers for one corpus."""

    def __init__(self, corpus: Corpus, config: ServeConfig, scorer: QuestionScorer | None) -> None:
        self.corpus, self.config, self.scorer = corpus, config, scorer
        self.sessions: dict[str, Session] = {}  # by name; "" is the session of requests without a name
        self._scoring = asyncio.Lock()

    # ------------------------------------------------------------------------------------------------- routes

    async def info(self, request: Request) -> Response:
        info: dict[str, Any] = {"num_sentences": len(self.corpus.targets)}
        if self.config.dialect == "simuleval-1.0.2":
            info["data_type"] = self.corpus.kind
        return json_reply(info)

    async def reset(self, request: Request) -> Response:
        self._session(request).reset()
        return reply("")

    async def source(self, request: Request) -> Response:
        key = self._key(request)
        number = _integer(_argument(request, key))
        text = request.query_params.get("segment_size", "").strip()
        size = _integer(text) if text else None
        return json_reply(self._session(request).read(number, size, instance=key == "instance_id"))

    async def hypothesis(self, request: Request) -> Response:
        key = self._key(request)
        number = _integer(_argument(request, key))
        try:
            text = (await request.body()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refused(500) from error
        session = self._session(request)
        session.write(number, session.tokens_of(text), key == "sent_id")
        return reply("")

    async def result(self, request: Request, guide: bool = False) -> Response:
        if "instance_id" in request.query_params and self._key(request) == "instance_id":
            number = _integer(_argument(request, "instance_id"))
            return json_reply(await self._frozen(self._session(request), "instance", number))
        session = self._session(request)
        if self.config.dialect == "simuleval-1.0.2" and not guide:
            session.scored = True
            scores = await self._frozen(session, "nested_result")
        else:
            scores = await self._frozen(session, "result", self._folder(request), guide)
        return json_reply(scores)

    async def guide_get(self, request: Request) -> Response:
        arguments = _object(_argument(request, "info"))
        if arguments.get("sent_id") is None:
            return json_reply({"num_sentences": len(self.corpus.targets)})
        value = arguments.get("value") or {}
        if not isinstance(value, dict):
            raise Refused(500)
        number, asked = _integer(arguments["sent_id"]), value.get("segment_size")
        size = None if asked is None else _integer(asked)
        return json_reply(self._session(request).read(number, size, guide=True))

    async def guide_send(self, request: Request) -> Response:
        words = _object(_argument(request, "hypo"))
        if not all(isinstance(word, str) for word in words.values()):
            raise Refused(500)
        for key, word in words.items():
            number = _integer(key)
            session = self._session(request)
            session.write(number, session.tokens_of(word, guide=True))
        return reply("")

    async def drop(self, request: Request) -> Response:
        self.sessions.pop(_session_name(request), None)
        return reply("")

    # ------------------------------------------------------------------------------------------------ helpers

    def _session(self, request: Request) -> Session:
        """Return the session of the path; create one if there is room, else refuse (503)."""
        name = _session_name(request)
        if name not in self.sessions:
            if len(self.sessions) >= MAX_SESSIONS:  # empty sessions make room
                self.sessions = {known: other for known, other in self.sessions.items() if other.sentences}
            if len(self.sessions) >= MAX_SESSIONS:
                raise Refused(503)
            self.sessions[name] = Session(self.corpus, self.config.strict, self.scorer)
        return self.sessions[name]

    async def _frozen(self, session: Session, method: str, *arguments: Any) -> Any:
        """Call a method on a copy of the session in a thread, one call at a time, and keep its scored questions."""
        async with self._scoring:
            copy, rows = session.frozen(), session.rows
            result = await run_in_threadpool(getattr(copy, method), *arguments)
            rows |= copy.rows
        return result

    def _key(self, request: Request) -> str:
        """Return the query argument that holds the sentence index: the dialect's or, unless strict, the other one's."""
        key, alternative = ("sent_id", "instance_id")[:: 1 if self.config.dialect == "iwslt-2020" else -1]
        if self.config.strict or key in request.query_params or alternative not in request.query_params:
            return key
        return alternative

    def _folder(self, request: Request) -> Path | None:
        """Return the folder of a session's text, delays and scores, or None without --output."""
        name, output = _session_name(request), self.config.output
        return output / "sessions" / name if output is not None and name else output


def _session_name(request: Request) -> str:
    """Return the session of the path, or "" without one.  Raises Refused (404) if its name is invalid."""
    name = str(request.path_params.get("session", ""))
    if name and not SESSION_ID.fullmatch(name):
        raise Refused(404)
    return name


def _argument(request: Request, name: str) -> str:
    """Return the last value of an argument.  Raises Refused (400) if it is missing."""
    values = request.query_params.getlist(name)
    if not values:
        raise Refused(400)
    return values[-1].strip()


def _integer(value: object) -> int:
    """Return an integer from JSON or text.  Raises Refused for anything else (500, as in the original)."""
    if not re.fullmatch(r"\s*[+-]?\d{1,9}\s*", str(value)):
        raise Refused(500)
    return int(str(value))


def _object(text: str) -> dict[str, Any]:
    try:
        value = parse_json(text.encode("utf-8", "replace"))
    except ValueError as error:
        raise Refused(500) from error
    if not isinstance(value, dict):
        raise Refused(500)
    return value
