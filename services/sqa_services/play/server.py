"""The page of `sqa play serve` and its requests (Starlette); words arrive as server-sent events.

    GET    /api/setup                     the runs, the consent text, the curve
    POST   /api/players                   {"consent": hash of the text}: a random id and a key
    DELETE /api/players                   delete everything about the player
    POST   /api/games                     {"run", "mode", "system", "pace", "questions"}: create a game
    POST   /api/games/GAME/join           join a game for two as the second player
    GET    /api/games/GAME/events         the player's stream: server-sent events, each a JSON object with "type"
    POST   /api/games/GAME/next|buzz      request the next question; buzz
    POST   /api/games/GAME/answer         {"answer": text}
    GET    /api/games/GAME/pages?text=    page titles that complete a text, after a buzz only

All requests except the first two need the player's key ("X-Player: KEY").  Beyond loopback, all requests need the
server's token.
"""

import asyncio
import hashlib
import json
import secrets
import sys
import unicodedata
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from sqa.files.atomic import claimed
from sqa.files.yaml_reader import is_config
from sqa.metrics.qa import curve_named
from sqa.pipeline.config import load_run
from sqa.pipeline.folder import read
from sqa.pipeline.parts import Parts
from sqa_services.net import serving
from sqa_services.net.address import Address
from sqa_services.net.guard import PAGE_HEADERS, Refused, json_page
from sqa_services.net.server import Route, application, parsed
from sqa_services.play.journal import FILE, Game, Journal, Mode
from sqa_services.play.runs import PlayedRun, drawn, made_for_game, open_runs, opponents
from sqa_services.play.table import Event, Seat, Table, Timing

SHOWN = 8
# letters that NFKD does not decompose
_WHOLE = str.maketrans({"ł": "l", "đ": "d", "ø": "o", "æ": "ae", "œ": "oe", "ı": "i"})


class Titles:
    """Page titles, searched by prefixes of their words."""

    def __init__(self, titles: Iterable[str]) -> None:
        plain = ((_plain(title), title) for title in titles)
        self._titles = sorted(plain, key=lambda pair: (len(pair[0]), pair))

    def like(self, text: str) -> list[str]:
        """Return at most SHOWN titles: first those that begin with the text, then those with a word that does.

        Shorter titles come first in both groups.  Case and accents are ignored.  Fewer than two letters match nothing.
        """
        prefix = _plain(text)
        if len(prefix) < 2:
            return []
        inner = f" {prefix}"
        matches = [(not plain.startswith(prefix), title) for plain, title in self._titles if inner in f" {plain}"]
        return [title for _, title in sorted(matches, key=lambda match: match[0])][:SHOWN]

    def meant(self, text: str) -> str:
        """Return the only title equal to a text up to case, accents and punctuation, or the text if there is none."""
        plain = _plain(text)
        matches = [title for other, title in self._titles if other == plain]
        return matches[0] if len(matches) == 1 else text


def _plain(text: str) -> str:
    """Remove case, accents and punctuation."""
    letters = unicodedata.normalize("NFKD", text.replace("_", " ")).casefold().translate(_WHOLE)
    kept = "".join(c if c.isalnum() else "" if unicodedata.combining(c) else " " for c in letters)
    return " ".join(kept.split())


ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # letters of a game's code, chosen to be easy to read aloud
PACES = (30.0, 1200.0)  # range of the pace, in words per minute
QUESTIONS = 500  # maximum number of questions in a game
TABLES = 200  # maximum number of games in progress
BODY = 1 << 14  # maximum bytes of a request
ANSWER = 300  # maximum number of characters of an answer
STILL_HERE = 15.0  # seconds between keep-alive comments in a silent stream


class Consent(Struct):
    """The hash of the consent text that a player agrees to."""

    consent: str


class NewGame(Struct, kw_only=True):
    """The settings of a new game."""

    run: str
    mode: Mode
    system: str | None = None  # system to play against
    pace: Annotated[float, Meta(ge=PACES[0], le=PACES[1])]
    questions: Annotated[int, Meta(ge=1, le=QUESTIONS)]


class Answer(Struct):
    """The text that a player typed."""

    answer: Annotated[str, Meta(max_length=ANSWER)]


@dataclass(frozen=True, slots=True)
class PlayConfig:
    """Runs to play on, and settings of the server."""

    runs: Annotated[
        tuple[Path, ...], "folders of runs, or configs (.yaml) whose model translates at the start of a game"
    ]
    games: Annotated[Path, "folder of the journal"] = Path("games")
    address: Address = field(default_factory=Address)
    consent: Annotated[Path | None, "file with your own consent text"] = None
    timing: Timing = field(default_factory=Timing)


def serve(config: PlayConfig) -> None:
    """Serve until interrupted, holding an exclusive lock on the folder of games."""
    if not config.games.is_dir():
        config.games.mkdir(mode=0o700, parents=True)
    with claimed(config.games):
        app = make_app(config)
        print(f"sqa: play at {config.address.url}{'/#TOKEN' if config.address.token else ''}", file=sys.stderr)
        serving.run_app(app, config.address)


def make_app(config: PlayConfig) -> Starlette:
    """Build the application: page, requests, and access checks."""
    server = Server(config)
    routes = [
        Route("GET", "/api/setup", server.setup),
        Route("POST", "/api/players", server.agree),
        Route("DELETE", "/api/players", server.leave),
        Route("POST", "/api/games", server.begin),
        Route("POST", "/api/games/{game}/join", server.join),
        Route("GET", "/api/games/{game}/events", server.events),
        Route("POST", "/api/games/{game}/next", server.next),
        Route("POST", "/api/games/{game}/buzz", server.buzz),
        Route("POST", "/api/games/{game}/answer", server.answer),
        Route("GET", "/api/games/{game}/pages", server.pages),
    ]
    return application(
        config.address,
        routes,
        lambda status, problem: json_page(status, problem or "the requested object does not exist"),
        server.close,
        failure="the run cannot be read; the server's log says why",  # players need no details
        pages="sqa_services.play",
        headers=PAGE_HEADERS,
    )


class Server:
    """Request handlers with the runs, the journal and the games in progress."""

    def __init__(self, config: PlayConfig) -> None:
        self.parts, self.timing, self.folder = Parts(), config.timing, config.games
        folders = [path for path in config.runs if not is_config(str(path))]
        self.runs = {run.name: run for run in open_runs(folders, self.parts)}
        live = [load_run(path) for path in config.runs if is_config(str(path))]
        self.live = {f"{config.name} (live)": config for config in live}
        text = config.consent or files("sqa_services.play") / "page" / "consent.txt"
        self.consent = text.read_text(encoding="utf-8-sig").strip()
        self.consent_hash = hashlib.sha256(self.consent.encode()).hexdigest()
        self.journal = Journal(config.games / FILE)
        self.journal.lose_open()
        self.tables: dict[str, Table] = {}
        self._titles: dict[str, Titles] = {}
        self._loading = asyncio.Lock()
        self._working = asyncio.Lock()  # only one model translates at a time

    def close(self) -> None:
        for table in self.tables.values():
            table.close()
        self.journal.close()

    # ------------------------------------------------------------------------------------------------- requests

    async def setup(self, _: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(self._setup))

    async def agree(self, request: Request) -> Response:
        if (await parsed(request, Consent)).consent != self.consent_hash:
            raise Refused(409, "the consent text has changed; read it again")
        player, key = await asyncio.to_thread(self.journal.add_player, self.consent_hash)
        return JSONResponse({"player": player, "key": key}, 201)

    async def leave(self, request: Request) -> Response:
        player = await self._player(request)
        for table in list(self.tables.values()):
            for seat in table.seats:
                if seat.player == player:
                    table.leave(seat)
        await asyncio.to_thread(self.journal.forget, player)
        return JSONResponse({})

    async def begin(self, request: Request) -> Response:
        player = await self._player(request)
        return JSONResponse({"game": await self._new_game(player, await parsed(request, NewGame))}, 201)

    async def join(self, request: Request) -> Response:
        player = await self._player(request)
        table = await self._table(request.path_params["game"])
        table.join(player)
        return JSONResponse({"game": table.game.id})

    async def events(self, request: Request) -> Response:
        return StreamingResponse(_stream(*await self._seat(request)), media_type="text/event-stream")

    async def next(self, request: Request) -> Response:
        table, seat = await self._seat(request)
        table.next(seat)
        return JSONResponse({})

    async def buzz(self, request: Request) -> Response:
        table, seat = await self._seat(request)
        table.buzz(seat)
        return JSONResponse({"step": seat.step})

    async def answer(self, request: Request) -> Response:
        table, seat = await self._seat(request)
        text = (await parsed(request, Answer)).answer
        titles = await self._titles_of(table)  # accept answers without accents, which some keyboards lack
        await table.answer(seat, titles.meant(" ".join(text.split())))
        return JSONResponse({})

    async def pages(self, request: Request) -> Response:
        table, seat = await self._seat(request)
        if seat.phase in ("waiting", "reading"):
            raise Refused(409, "titles are only available after the buzz")
        titles = await self._titles_of(table)
        return JSONResponse({"pages": titles.like(request.query_params.get("text", "")[:ANSWER])})

    async def _player(self, request: Request) -> str:
        player = await asyncio.to_thread(self.journal.player, request.headers.get("x-player", ""))
        if player is None:
            raise Refused(403, "no player has this key")
        return player

    async def _seat(self, request: Request) -> tuple[Table, Seat]:
        player = await self._player(request)
        table = await self._table(request.path_params["game"])
        return table, table.seat_of(player)

    # ------------------------------------------------------------------------------------------------- helpers

    def _setup(self) -> dict[str, Any]:
        """Return the data that the page loads first: runs, consent text, curve and range of paces."""
        offered = [
            {"name": name, "questions": len(run.finished.questions), "systems": [other.name for other in against]}
            for name, run in self.runs.items()
            for against in [opponents(run, self.runs.values())]
        ]
        for name, live in self.live.items():
            systems = [name] if live.guesser and live.buzzer else []
            offered.append({"name": name, "questions": len(self.parts.questions(live.dataset)), "systems": systems})
        curve = np.asarray(curve_named("qanta2018")(np.linspace(0, 1, 101)))
        return {
            "runs": offered,
            "consent": {"text": self.consent, "hash": self.consent_hash},
            "curve": [round(float(ew), 4) for ew in curve],
            "paces": PACES,
        }

    async def _table(self, id: str) -> Table:
        """Return a game's table, resumed from the journal if needed.  Raises Refused if there are too many games."""
        async with self._loading:
            if id not in self.tables or self.tables[id].closed:
                self.tables.pop(id, None)
                for other in [other for other, table in self.tables.items() if table.idle]:
                    self.tables.pop(other).close()  # the journal can resume the game
                if len(self.tables) >= TABLES:
                    raise Refused(503, "too many games are in progress")
                self.tables[id] = await asyncio.to_thread(self._resumed, id)
                self.tables[id].start()
            self.tables[id].used = asyncio.get_running_loop().time()
            return self.tables[id]

    def _resumed(self, id: str) -> Table:
        """Resume a game from the journal."""
        game = self.journal.game(id)
        if game is None:
            raise Refused(404, "this game does not exist")
        shown = self._run_at(game.run)
        if shown.translation != game.translation:
            raise Refused(409, "its run was recomputed, with another translation")
        if not self.journal.seats(id):
            raise Refused(410, "the player who began this game has left it")
        system = None if game.system is None else self._run_at(game.system)
        return Table(game, shown, system, self.journal, self.timing)

    def _run_at(self, folder: str) -> PlayedRun:
        for run in self.runs.values():
            if str(run.folder) == folder:
                return run
        return PlayedRun(Path(folder).name, read(Path(folder)))

    async def _new_game(self, player: str, request: NewGame) -> str:
        """Create a game and return its id."""
        live, run = self.live.get(request.run), self.runs.get(request.run)
        id = "".join(secrets.choice(ALPHABET) for _ in range(6))
        if run is not None:
            questions = run.finished.questions
        elif live is not None:
            questions = self.parts.questions(live.dataset)
        else:
            raise Refused(400, "run: this run does not exist here")
        seen = await asyncio.to_thread(self.journal.seen, player)
        chosen = drawn(questions, request.questions, seen, secrets.randbits(32))
        if not chosen:
            raise Refused(409, "you have seen all questions of this run")
        if run is None:
            assert live is not None  # the request is refused above if both are None
            async with self._working:
                folder = self.folder / "live" / id
                run = await asyncio.to_thread(made_for_game, live, chosen, folder, self.parts)
        against = opponents(run, [] if live else self.runs.values())
        rival = next((other for other in against if other.name == request.system), against[0] if against else None)
        if request.mode == "system" and rival is None:
            raise Refused(400, "system: this run has no guesser and buzzer to play against")
        ids, beside = tuple(question.id for question in chosen), None if rival is None else str(rival.folder)
        game = Game(id, str(run.folder), run.translation, beside, request.mode, request.pace, ids)
        await asyncio.to_thread(self.journal.add_game, game, player)
        return id

    async def _titles_of(self, table: Table) -> Titles:
        """Return the titles of a game's run, for completion."""
        folder = table.game.run
        if folder not in self._titles:
            run = await asyncio.to_thread(self._run_at, folder)
            self._titles[folder] = await asyncio.to_thread(lambda: Titles(run.pages))
        return self._titles[folder]


async def _stream(table: Table, seat: Seat) -> AsyncIterator[str]:
    """Yield a player's events until the page disconnects."""
    stream = table.attach(seat)
    try:
        while True:
            try:
                async with asyncio.timeout(STILL_HERE):
                    event: Event | None = await stream.get()
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if event is None:
                return
            yield f"data: {json.dumps(event)}\n\n"
    finally:
        table.detach(seat, stream)
