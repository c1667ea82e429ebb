"""The HTTP side of the evaluation server (aiohttp): routes, limits, sessions, the token.

    GET /                  {"num_sentences": N}                      POST /                 forget everything
    GET /src?sent_id=I[&segment_size=MS]   the next segment          PUT /hypo?sent_id=I    words, in the body
    GET /result            the scores
    GET /start  /end  /get?info=JSON  /send?hypo=JSON                the same by the published guide
    /sessions/ID/...       all of these in a session of its own; DELETE /sessions/ID ends it

SimulEval 1.0.2's requests say instance_id for sent_id and are answered in its way: GET /src, PUT /hypo, GET /result?
instance_id=I.  GET / and a bare GET /result cannot show which is meant, so `dialect` says it.

Every reply has the body, status and content type of the original.  It runs in one thread, the scoring in a second, so
a client that stalls holds nothing but its own connection; a body that does not arrive in time is given up.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

from aiohttp import web

from sqa.errors import ConfigError
from sqa.protocols.iwslt_corpus import BadSegmentSize, SpeechCorpus, TextCorpus
from sqa.protocols.iwslt_scores import Files, NothingToScore
from sqa.protocols.iwslt_session import Session, TooLong, UnknownSentence

DIALECTS = ("iwslt-2020", "simuleval-1.0.2")
BODY_SECONDS = 30.0  # for a request's body to arrive
IDLE_SECONDS = 3600.0  # after which a session may make room for another
SESSION_ID = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
TYPE = "text/html; charset=UTF-8"


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """How the server answers."""

    tokenizer: str = "13a"  # of BLEU: "13a" or "none"
    dialect: Literal["iwslt-2020", "simuleval-1.0.2"] = "iwslt-2020"
    strict: bool = False  # keep the originals' mistakes; see `iwslt_session`
    output: Path | None = None  # folder of text, delay and scores; a session's lie in a folder of its name
    host: str = "127.0.0.1"
    port: int = 12321
    token: str | None = None  # "Authorization: Bearer TOKEN" is then needed for all but GET /
    max_body: int = 1 << 20  # bytes
    max_sessions: int = 1024

    def __post_init__(self) -> None:
        wrong = []
        if self.tokenizer not in ("13a", "none"):
            wrong.append(f"--tokenizer: must be 13a or none, got {self.tokenizer!r}")
        if self.dialect not in DIALECTS:
            wrong.append(f"--dialect: must be one of {', '.join(DIALECTS)}, got {self.dialect!r}")
        if not 0 <= self.port <= 65535:
            wrong.append(f"--port: must be 0 to 65535, got {self.port}")
        if not is_loopback(self.host) and not self.token:
            wrong.append(f"--host: {self.host} can be reached from other machines; give a --token")
        if min(self.max_body, self.max_sessions) < 1:
            wrong.append("--max-body and --max-sessions must be at least 1")
        if wrong:
            raise ConfigError(wrong)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Refused(Exception):
    """A request that is answered with an error page."""

    def __init__(self, status: int) -> None:
        self.status = status


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(corpus: TextCorpus | SpeechCorpus, config: ServeConfig) -> web.Application:
    """The application: its sessions live as long as it."""
    server = Server(corpus, config)
    app = web.Application(client_max_size=config.max_body, middlewares=[server.guarded])
    routes: list[tuple[str, str, Handler]] = [
        ("GET", "/", server.info),
        ("POST", "/", server.reset),
        ("GET", "/src", server.source),
        ("PUT", "/hypo", server.hypothesis),
        ("GET", "/result", server.result),
        ("GET", "/start", server.reset),
        ("GET", "/end", partial(server.result, guide=True)),
        ("GET", "/get", server.guide_get),
        ("GET", "/send", server.guide_send),
    ]
    for method, path, handler in routes:
        app.router.add_route(method, path, handler)
        app.router.add_route(method, f"/sessions/{{session:{SESSION_ID}}}{path}", handler)
    app.router.add_route("GET", f"/sessions/{{session:{SESSION_ID}}}", server.info)
    app.router.add_route("POST", f"/sessions/{{session:{SESSION_ID}}}", server.reset)
    app.router.add_route("DELETE", f"/sessions/{{session:{SESSION_ID}}}", server.drop)
    app.on_cleanup.append(server.close)
    return app


class Server:
    """The routes of one corpus."""

    def __init__(self, corpus: TextCorpus | SpeechCorpus, config: ServeConfig) -> None:
        self.corpus = corpus
        self.config = config
        self.sessions: dict[str, Session] = {}
        self._scorer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scorer")

    async def close(self, _: web.Application) -> None:
        """End the scoring thread."""
        self._scorer.shutdown(wait=False, cancel_futures=True)

    # ------------------------------------------------------------------------------------------------- routes

    async def info(self, request: web.Request) -> web.Response:
        reply: dict[str, Any] = {"num_sentences": len(self.corpus.targets)}
        if self.config.dialect == "simuleval-1.0.2":
            reply["data_type"] = self.corpus.kind
        return _json(reply)

    async def reset(self, request: web.Request) -> web.Response:
        self._session(request).reset()
        return _reply("")

    async def source(self, request: web.Request) -> web.Response:
        key = self._key(request)
        number = _integer(_argument(request, key))
        size = request.query.get("segment_size", "").strip()
        session = self._session(request)
        return self._segment(session, key, number, _integer(size) if size else None)

    async def hypothesis(self, request: web.Request) -> web.Response:
        key = self._key(request)
        number = _integer(_argument(request, key))
        try:
            tokens = (await self._body(request)).decode("utf-8").split()
        except UnicodeDecodeError as error:
            raise Refused(500) from error
        self._session(request).write(number, tokens, wrap=key == "sent_id")
        return _reply("")

    async def result(self, request: web.Request, guide: bool = False) -> web.Response:
        session = self._session(request)
        if "instance_id" in request.query and self._key(request) == "instance_id":
            number = _integer(_argument(request, "instance_id"))
            return _json(await self._score(session.frozen().instance, number))
        if self.config.dialect == "simuleval-1.0.2" and not guide:
            session.scored = True
            return _json(await self._score(session.frozen().nested_result, self.config.tokenizer))
        files = self._files(request, guide)
        return _json(await self._score(session.frozen().result, self.config.tokenizer, files, guide))

    async def guide_get(self, request: web.Request) -> web.Response:
        wanted = _object(_argument(request, "info"))
        if wanted.get("sent_id") is None:
            return _json({"num_sentences": len(self.corpus.targets)})
        value = wanted.get("value") or {}
        if not isinstance(value, dict):
            raise Refused(500)
        size = value.get("segment_size")
        number = _integer(wanted["sent_id"])
        return self._segment(self._session(request), "sent_id", number, None if size is None else _integer(size), True)

    async def guide_send(self, request: web.Request) -> web.Response:
        words = _object(_argument(request, "hypo"))
        if not all(isinstance(word, str) for word in words.values()):
            raise Refused(500)
        session = self._session(request)
        for number, word in words.items():
            session.write(_integer(number), [word])
        return _reply("")

    async def drop(self, request: web.Request) -> web.Response:
        self.sessions.pop(request.match_info["session"], None)
        return _reply("")

    # ------------------------------------------------------------------------------------------------ the rest

    @web.middleware
    async def guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The token, and error pages as the original's."""
        try:
            if self.config.token and not (request.method == "GET" and request.path == "/"):
                given = request.headers.get("Authorization", "")
                if not hmac.compare_digest(given.encode(), f"Bearer {self.config.token}".encode()):
                    raise Refused(401)
            return await handler(request)
        except (UnknownSentence, BadSegmentSize, NothingToScore):
            return _page(500)
        except TooLong:
            return _page(413)
        except Refused as refused:
            return _page(refused.status)
        except web.HTTPException as error:
            return _page(error.status)

    def _session(self, request: web.Request) -> Session:
        """The session of the path; a new one if there is room, else 503."""
        name = request.match_info.get("session", "")
        session = self.sessions.get(name)
        if session is None:
            if len(self.sessions) >= self.config.max_sessions:
                self._make_room()
            session = self.sessions[name] = Session(self.corpus, self.config.strict)
        session.used = time.monotonic()
        return session

    def _make_room(self) -> None:
        name, oldest = min(self.sessions.items(), key=lambda item: item[1].used)
        if time.monotonic() - oldest.used < IDLE_SECONDS:
            raise Refused(503)
        del self.sessions[name]

    def _segment(self, session: Session, key: str, number: int, size: int | None, guide: bool = False) -> web.Response:
        if key == "sent_id":
            return _json(session.read(number, size, guide))
        return _json(session.read_instance(number, size))

    async def _score(self, score: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._scorer, partial(score, *arguments))

    async def _body(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await request.read()
        except TimeoutError as error:
            raise Refused(408) from error

    def _key(self, request: web.Request) -> str:
        """The name of the sentence number: that of the dialect; of either, if not strict."""
        own, other = ("sent_id", "instance_id")[:: 1 if self.config.dialect == "iwslt-2020" else -1]
        return other if not self.config.strict and own not in request.query and other in request.query else own

    def _files(self, request: web.Request, guide: bool) -> Files | None:
        if self.config.output is None:
            return None
        folder = self.config.output / request.match_info.get("session", "")
        if guide and self.config.strict:
            return Files(*(folder.with_name(f"{folder.name}.{name}") for name in ("text", "delay", "scores")))
        return Files(folder / "text", folder / "delay", folder / "scores")


def _argument(request: web.Request, name: str) -> str:
    """The last value of an argument; missing: 400."""
    values = request.query.getall(name, [])
    if not values:
        raise Refused(400)
    return values[-1].strip()


def _integer(value: object) -> int:
    """A whole number, from JSON or from text as int() reads it; otherwise 500, as the original answered."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | str)
        or not re.fullmatch(r"[+-]?\d{1,9}", str(value).strip())
    ):
        raise Refused(500)
    return int(value)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(500) from error
    if not isinstance(value, dict):
        raise Refused(500)
    return value


def _reply(text: str, status: int = 200) -> web.Response:
    return web.Response(body=text.encode(), status=status, headers={"Content-Type": TYPE})


def _json(value: object) -> web.Response:
    return _reply(json.dumps(value))


def _page(status: int) -> web.Response:
    """tornado's error page."""
    title = f"{status}: {HTTPStatus(status).phrase}"
    return _reply(f"<html><title>{title}</title><body>{title}</body></html>", status)
