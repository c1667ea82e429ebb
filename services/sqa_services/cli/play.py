"""`sqa play`: people as contestants."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Typer

from sqa.cli.options import SETTINGS, argument, option
from sqa.core.errors import DataError
from sqa.results import Table, show
from sqa_services.cli.options import Host, HostNames, Port, Token
from sqa_services.net.address import Address

if TYPE_CHECKING:
    from sqa_services.play.journal import Journal

play_app = Typer(help="Let people read translations word by word, buzz and answer.", **SETTINGS)

Games = Annotated[Path, option("--games DIR", "Folder of the games.")]
DEFAULT_GAMES = Path("games")


@play_app.command()
def serve(
    runs: Annotated[
        list[Path],
        argument("RUN...", "Folders of finished runs, or configs whose model translates during the game."),
    ],
    games: Games = DEFAULT_GAMES,
    host: Host = "127.0.0.1",
    port: Port = 12390,
    token: Token = None,
    names: HostNames = None,
    consent: Annotated[Path | None, option("FILE", "File with your own consent text.")] = None,
    answer_seconds: Annotated[float, option("S", "Seconds to type an answer.")] = 20.0,
    end_seconds: Annotated[float, option("S", "Seconds to buzz after the last word.")] = 10.0,
) -> None:
    """Serve the page for playing alone, against a system, or as two people on two devices.

    The space bar buzzes.  With a token, players open http://HOST:PORT/#TOKEN.
    """
    from sqa_services.play import server
    from sqa_services.play.table import Timing

    address = Address(host, port, token, tuple(names or ()), server.BODY)
    server.serve(server.PlayConfig(tuple(runs), games, address, consent, Timing(answer_seconds, end_seconds)))


@play_app.command("list")
def list_players(games: Games = DEFAULT_GAMES) -> None:
    """List the players with their numbers of finished questions."""
    show(Table(("player", "questions"), _journal(games).players()))


@play_app.command()
def export(
    output: Annotated[Path, option("DIR", "Output folder of runs and buzzes.jsonl.")],
    games: Games = DEFAULT_GAMES,
) -> None:
    """Export games as finished runs, and as buzzes for `sqa curve fit`."""
    from sqa_services.play import export as exports

    rows = [asdict(row) | {"folder": str(row.folder)} for row in exports.export(_journal(games), output)]
    show(Table(list(rows[0]), [list(row.values()) for row in rows]))
    print(f"sqa: {output / exports.BUZZES}", file=sys.stderr)


@play_app.command()
def delete(
    player: Annotated[str, argument("PLAYER", "Name of the player in `sqa play list`.")],
    games: Games = DEFAULT_GAMES,
) -> None:
    """Delete all data of a player, except earlier exports."""
    if not _journal(games).forget(player):
        raise DataError(f"{games}: no player {player!r}; `sqa play list` lists the players")


def _journal(games: Path) -> Journal:
    """Open the journal of a folder.  Raises DataError if it is missing."""
    from sqa_services.play.journal import FILE, Journal

    if not (games / FILE).is_file():
        raise DataError(f"{games}: contains no games; `sqa play serve RUN --games {games}` creates some")
    return Journal(games / FILE)
