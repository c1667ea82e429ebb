"""`kill -9` of `sqa play serve` in the middle of a game: the current question is lost, nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import play_games
import pytest
from play_games import Player
from stand_ins.processes import ENVIRONMENT, free_port, kill, listens, wait_until

from sqa_services.play.export import export


def started(run: Path, games: Path, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sqa", "play", "serve", str(run), "--games", str(games), "--port", str(port)]
    process = subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True)
    wait_until(lambda: listens(port), process)
    return process


def play(player: Player, until: int) -> None:
    """Answer every question at its third word; return in the middle of the one of number `until`, or at the end."""
    for event in player.events():
        if event["type"] in ("state", "scores"):
            player.act("next")
        elif event["type"] == "question":
            index = event["place"]
        elif event["type"] == "word" and event["step"] == 2:
            if index == until:
                return
            player.act("buzz")
        elif event["type"] == "buzzed":
            player.act("answer", {"answer": f"answer {index}"})
        elif event["type"] == "over":
            return


@pytest.mark.slow
def test_a_killed_server_loses_the_current_question_at_most(tmp_path: Path) -> None:
    shown, games = play_games.make(tmp_path), tmp_path / "games"
    port = free_port()
    process = started(shown.folder, games, port)
    try:
        player = Player(f"http://127.0.0.1:{port}")
        player.begin(questions=4)
        play(player, until=2)
        kill(process)
        process = started(shown.folder, games, port)
        state = next(player.events())
        assert (state["phase"], state["place"], state["scores"]["me"]["questions"]) == ("ready", 3, 2)
        play(player, until=-1)
    finally:
        kill(process)
    book = play_games.journal(tmp_path)
    assert [(p.index, p.state, p.answer) for p in book.plays(player.game)] == [
        (0, "done", "answer 0"),
        (1, "done", "answer 1"),
        (2, "lost", ""),
        (3, "done", "answer 3"),
    ]
    assert [(row.questions, row.lost) for row in export(book, tmp_path / "out")] == [(3, 1)]
