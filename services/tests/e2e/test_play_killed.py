"""`kill -9` of `sqa play serve` during a game loses only the current question."""

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


@pytest.mark.slow
def test_killed_server_loses_at_most_one_question(tmp_path: Path) -> None:
    shown, games = play_games.make(tmp_path), tmp_path / "games"
    port = free_port()
    process = started(shown.folder, games, port)
    try:
        player = Player(f"http://127.0.0.1:{port}")
        player.begin(questions=4)
        questions: list[int] = []
        player.play(
            lambda event: event["type"] == "word" and event["step"] == 2 and questions[-1] == 2,
            buzz=2,
            answer="known",
            on={"question": lambda event: questions.append(event["place"])},
        )
        kill(process)
        process = started(shown.folder, games, port)
        state = next(player.events())
        assert (state["phase"], state["place"], state["scores"]["me"]["questions"]) == ("ready", 3, 2)
        player.play("over", buzz=2, answer="known")
    finally:
        kill(process)
    book = play_games.journal(tmp_path)
    assert [(p.index, p.state, p.answer) for p in book.plays(player.game)] == [
        (0, "done", "known"),
        (1, "done", "known"),
        (2, "lost", ""),
        (3, "done", "known"),
    ]
    assert [(row.questions, row.lost) for row in export(book, tmp_path / "out")] == [(3, 1)]
