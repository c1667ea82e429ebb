"""One game in progress: the server sends each word when it is due, and a buzz counts at the last word sent.

A player's stream contains only words that are due until all players are done with the question.  Then it shows the
answer, the source, the reference and the system's result.  Each player reads to the end or to their own buzz: a buzz
does not stop the other player, so every play has expected wins.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from sqa.core.errors import SqaError
from sqa.core.schema import checked
from sqa.core.trace import QuestionTrace
from sqa_services.net.guard import Refused
from sqa_services.net.serving import LOG
from sqa_services.play import people
from sqa_services.play.journal import Game, Journal, Play
from sqa_services.play.people import Outcome
from sqa_services.play.runs import PlayedRun

Event = dict[str, Any]
Phase = Literal["waiting", "reading", "answering", "saving", "done"]
GRACE = 5.0  # seconds after the last request during which a game without a stream stays open
Seconds = Annotated[float, Meta(gt=0, le=3600)]


@dataclass(frozen=True, slots=True)
@checked
class Timing:
    """Time limits."""

    answer_seconds: Annotated[Seconds, "seconds to type the answer after the buzz"] = 20.0
    end_seconds: Annotated[Seconds, "seconds to buzz after the last word"] = 10.0


@dataclass(slots=True)
class Totals:
    """Totals of a contestant in a game."""

    questions: int = 0
    right: int = 0
    points: int = 0
    ew: float = 0.0  # sum of expected wins over the questions

    def add(self, outcome: Outcome, points: int) -> None:
        self.questions += 1
        self.right += outcome.right
        self.points += points
        self.ew += outcome.ew


@dataclass(slots=True)
class Seat:
    """A player of the game."""

    player: str
    number: int
    stream: asyncio.Queue[Event | None] | None = None  # unsent events; None ends the stream
    phase: Phase = "waiting"
    ready: bool = False
    step: int | None = None
    seconds: float | None = None
    deadline: float = 0.0  # end of the time to answer, on the event loop's clock
    outcome: Outcome | None = None
    result: Event | None = None
    totals: Totals = field(default_factory=Totals)

    def send(self, event: Event) -> None:
        if self.stream is not None:
            self.stream.put_nowait(event)


class Table:
    """A game, resumed from the journal."""

    def __init__(
        self, game: Game, shown: PlayedRun, system: PlayedRun | None, journal: Journal, timing: Timing
    ) -> None:
        self.game, self._shown, self._system = game, shown, system
        self._journal, self._timing = journal, timing
        self.seats = [Seat(player, number) for number, player in enumerate(journal.seats(game.id))]
        self.rival = Totals()  # totals of the system when playing against it
        self._index, self._step, self._asking, self._started = 0, -1, False, 0.0
        self.used, self.closed, self._left = 0.0, False, False  # `used`: time of the last request, on the loop's clock
        self._trace: QuestionTrace | None = None
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._go_on()

    def start(self) -> None:
        """Start the game in the current event loop."""
        self._spawn(self._run())

    def close(self) -> None:
        """End the game; plays that are not in the journal are lost."""
        self.closed = True
        for task in self._tasks:
            task.cancel()
        for seat in self.seats:
            if seat.stream is not None:
                seat.stream.put_nowait(None)

    @property
    def idle(self) -> bool:
        """Whether the game is closed, or has no page, no question in progress and no recent request."""
        left = asyncio.get_running_loop().time() - self.used > GRACE
        return self.closed or (left and not self._asking and all(seat.stream is None for seat in self.seats))

    # ------------------------------------------------------------------------------------------- actions of players

    def seat_of(self, player: str) -> Seat:
        """Return the player's seat."""
        for seat in self.seats:
            if seat.player == player:
                return seat
        raise Refused(404, "this player is not in that game")

    def join(self, player: str) -> None:
        """Give the free seat to a player."""
        if any(seat.player == player for seat in self.seats):
            return
        if len(self.seats) == self.game.seats:
            raise Refused(409, "that game has all its players")
        self._journal.sit_down(self.game.id, len(self.seats), player)
        self.seats.append(Seat(player, len(self.seats)))
        self._changed.set()
        for seat in self.seats:
            seat.send(self.state(seat))

    def attach(self, seat: Seat) -> asyncio.Queue[Event | None]:
        """Open a stream of a player's events; it replaces the previous one."""
        if seat.stream is not None:
            seat.stream.put_nowait({"type": "elsewhere"})
            seat.stream.put_nowait(None)
        seat.stream = asyncio.Queue()
        seat.send(self.state(seat))
        return seat.stream

    def detach(self, seat: Seat, stream: asyncio.Queue[Event | None]) -> None:
        if seat.stream is stream:
            seat.stream = None

    def leave(self, seat: Seat) -> None:
        """Remove a deleted player; the other player finishes the question, then the table closes."""
        self._left, seat.phase = True, "done"
        if seat.stream is not None:
            seat.stream.put_nowait(None)
        if not self._asking or self._all_done():
            self.close()
        self._changed.set()

    def next(self, seat: Seat) -> None:
        """Record that the player is ready for the next question."""
        if self._asking and seat.phase != "done":
            raise Refused(409, "this question has not ended")
        seat.ready = True
        for other in self.seats:
            other.send({"type": "ready", "me": other.ready, "all": all(each.ready for each in self.seats)})
        self._changed.set()

    def buzz(self, seat: Seat) -> None:
        """Buzz at the last step that was sent."""
        if seat.phase != "reading" or self._step < 0:
            raise Refused(409, "there is no word to buzz at")
        now, left = asyncio.get_running_loop().time(), self._timing.answer_seconds
        seat.phase, seat.step, seat.seconds, seat.deadline = "answering", self._step, now - self._started, now + left
        self._spawn(self._time_up(seat, seat.deadline))
        seat.send({"type": "buzzed", "step": seat.step, "left": left})
        self._changed.set()

    async def answer(self, seat: Seat, text: str) -> None:
        """Record the player's answer after the buzz."""
        if seat.phase != "answering":
            raise Refused(409, "there is no question to answer")
        await self._finish(seat, text)

    async def _time_up(self, seat: Seat, deadline: float) -> None:
        """Record a missing answer as wrong after the time limit."""
        await asyncio.sleep(self._timing.answer_seconds)
        if seat.phase == "answering" and seat.deadline == deadline:
            await self._finish(seat, "")

    # --------------------------------------------------------------------------------------------- course of the game

    async def _run(self) -> None:
        try:
            await self._until(lambda: len(self.seats) == self.game.seats)
            while self._index < len(self.game.questions):
                await self._until(lambda: all(seat.ready for seat in self.seats))
                while self._index < len(self.game.questions) and not self.closed:
                    asked = await self._ask(self.game.questions[self._index])
                    self._index += 1
                    if asked:
                        break
                if self._left:
                    return self.close()
            for seat in self.seats:
                seat.send({"type": "over"})
        except SqaError as error:  # the run is damaged or was recomputed meanwhile
            LOG.warning("game %s: %s", self.game.id, error)
            self._asking = False
            for seat in self.seats:
                seat.send({"type": "problem", "text": "The game cannot continue; see the server's log."})

    async def _ask(self, question: str) -> bool:
        """Ask a question and wait until all players are done with it; return False if a player has seen it before."""
        players, loop = [seat.player for seat in self.seats], asyncio.get_running_loop()
        self._asking = True
        self._trace = trace = await asyncio.to_thread(self._shown.trace, question)
        same = [other.id for other in self._shown.finished.questions if other.text == trace.question.text]
        begin = self._journal.begin
        self._asking = await asyncio.to_thread(begin, self.game.id, self._index, question, players, same)
        if not self._asking:
            return False
        for seat in self.seats:
            seat.phase, seat.ready, seat.step, seat.seconds = "reading", False, None, None
            seat.outcome = seat.result = None
            seat.send({"type": "question", "place": self._index, "of": len(self.game.questions)})
        self._step, self._started = -1, loop.time()
        await self._read_out(trace)
        await self._until(self._all_buzzed, loop.time() + self._timing.end_seconds)
        for seat in self.seats:
            if seat.phase == "reading":
                await self._finish(seat, "")
        await self._until(self._all_done)
        for seat in self.seats:  # send to all players at the same time, since one person may occupy both seats
            if seat.outcome is not None:
                seat.result = self._revealed(trace, seat.outcome)
                seat.send(seat.result)
        given = self._count(question, [(seat.outcome, seat.seconds) for seat in self.seats])
        for seat in self.seats:
            seat.send(self._scores(seat, given))
        self._asking = False
        return True

    async def _read_out(self, trace: QuestionTrace) -> None:
        """Send each word when it is due, until all players have buzzed."""
        for step, emission in enumerate(trace.emissions):
            if await self._until(self._all_buzzed, self._started + (step + 1) * 60.0 / self.game.pace):
                return
            self._step = step
            for seat in self.seats:
                if seat.phase == "reading":
                    seat.send({"type": "word", "step": step, "word": emission.token, "erase": emission.erase})

    async def _finish(self, seat: Seat, answer: str) -> None:
        """Persist a play; its result is revealed after all players are done."""
        assert self._trace is not None
        seat.phase, question = "saving", self._trace.question.id
        buzz = (seat.step, seat.seconds, answer)
        play = Play(self.game.id, self._index, seat.number, seat.player, question, "done", *buzz)
        await asyncio.to_thread(self._journal.finish, play)
        seat.outcome = people.outcome(people.played(self._trace, seat.step, answer))
        seat.phase = "done"
        if not self._all_done():
            seat.send({"type": "waiting"})
        self._changed.set()

    def _all_buzzed(self) -> bool:
        return all(seat.phase != "reading" for seat in self.seats)

    def _all_done(self) -> bool:
        return all(seat.phase == "done" for seat in self.seats)

    def _revealed(self, trace: QuestionTrace, outcome: Outcome) -> Event:
        """Return the result event: answer, texts, and outcomes of the player and the system."""
        question, system, rival = trace.question, self._system, None
        plain = trace.prefixes.append_only
        words = list(trace.prefixes.words) if plain else " ".join(filter(None, trace.hypotheses)).split()
        if system is not None:
            rival = asdict(people.outcome(system.trace(question.id)))
            rival |= {"name": system.name, "same": system is self._shown and plain}
        return {
            "type": "result",
            "page": question.page,
            "source": list(question.words),
            "language": question.language,
            "reference": question.reference_text,
            "translation": words,
            "marks": plain,
            "mine": asdict(outcome),
            "system": rival,
        }

    def _count(self, question: str, plays: Sequence[tuple[Outcome | None, float | None]]) -> list[int]:
        """Add a question to all totals and return the players' points; `plays`: outcome and seconds of each player."""
        buzzes, rival = [_when(*play) for play in plays], None
        outcome = plays[0][0]
        if self.game.mode == "system" and self._system is not None and outcome is not None:
            rival = people.outcome(self._system.trace(question))
            buzzes = [_when(contestant, contestant.fraction) for contestant in (outcome, rival)]
        points = people.points(buzzes)
        if rival is not None:
            self.rival.add(rival, points[1])
        for seat, (outcome, _) in zip(self.seats, plays, strict=True):
            if outcome is not None:
                seat.totals.add(outcome, points[seat.number])
        return points

    def _scores(self, seat: Seat, given: list[int] | None) -> Event:
        """Return the scores event of a player."""
        opposite = self.seats[1 - seat.number] if len(self.seats) == 2 else None
        against_system = self.game.mode == "system" and self._system is not None
        rival = self.rival if against_system else opposite and opposite.totals
        beside = opposite and opposite.outcome
        return {
            "type": "scores",
            "points": None if given is None else given[seat.number],
            "me": asdict(seat.totals),
            "rival": None if rival is None else asdict(rival),
            "beside": None if beside is None or given is None else asdict(beside),
        }

    def state(self, seat: Seat) -> Event:
        """Return the state event for a newly opened page."""
        reading = self._asking and seat.phase in ("reading", "answering", "saving")
        at = self._step if seat.step is None else seat.step
        phase = "ready"
        if len(self.seats) < self.game.seats:
            phase = "gathering"
        elif reading:
            phase = "reading" if seat.phase == "reading" else "answering"
        elif self._asking:
            phase = "waiting"
        elif self._index >= len(self.game.questions):
            phase = "over"
        words = self._trace.prefixes.texts[at].split() if reading and self._trace is not None and at >= 0 else []
        return {
            "type": "state",
            "phase": phase,
            "game": self.game.id,
            "mode": self.game.mode,
            "run": self._shown.name,
            "system": None if self._system is None else self._system.name,
            "place": self._index,
            "of": len(self.game.questions),
            "words": words,
            "left": max(0.0, seat.deadline - asyncio.get_running_loop().time()),
            "ready": seat.ready,
            "result": seat.result,
            "scores": self._scores(seat, None),
        }

    # ------------------------------------------------------------------------------------------------------- helpers

    def _go_on(self) -> None:
        """Restore the totals from the journal, and continue after the last question that was started."""
        plays = self._journal.plays(self.game.id)
        self._index = 1 + max((play.index for play in plays), default=-1)
        for index, question in enumerate(self.game.questions[: self._index]):
            done: list[tuple[Outcome | None, float | None]] = [(None, None)] * len(self.seats)
            for play in plays:
                if play.index == index and play.state == "done" and play.seat < len(done):
                    trace = people.played(self._shown.trace(question), play.step, play.answer)
                    done[play.seat] = people.outcome(trace), play.seconds
            self._count(question, done)

    async def _until(self, condition: Callable[[], bool], deadline: float | None = None) -> bool:
        """Wait for a condition until `deadline` on the event loop's clock, and return whether it holds."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        return condition()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _when(outcome: Outcome | None, time: float | None) -> tuple[float, bool] | None:
    """Return (time, right) of a contestant's buzz for `people.points`."""
    if outcome is None or outcome.step is None or time is None:
        return None
    return time, outcome.right
