"""Export of games as runs: expected wins compared with hand-computed values, and which plays are exported."""

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import play_games
import pytest

from sqa.core.errors import DataError
from sqa.files.store import Store
from sqa.pipeline import folder as folders
from sqa.pipeline import saving
from sqa.pipeline.config import load_run
from sqa.pipeline.engine import run
from sqa_services.play.export import Exported, export
from sqa_services.play.journal import Play
from sqa_services.play.people import Person, PersonConfig
from sqa_services.play.runs import PlayedRun, drawn

CURVE = (0.9930799808912602, 0.07753813168299144, -1.278222873334493, 0.5879804678680423)


def by_hand(t: float) -> float:
    return sum(c * t**power for power, c in enumerate(CURVE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run and the games of five people on its 25 questions."""
    folder = tmp_path_factory.mktemp("play")
    shown = play_games.make(folder, n=25)
    book = play_games.journal(folder)
    for person in range(5):
        plays = []
        for i, question in enumerate(shown.finished.questions):
            step = None if (i + person) % 12 == 0 else (2 * i + 3 * person) % len(question.words)
            plays.append((question.id, step, question.page.lower() if (i + person) % 3 else "Portugal"))
        play_games.record(book, shown, plays, shown)
    book.close()
    return folder


@pytest.fixture(scope="module")
def exported(folder: Path) -> list[Exported]:
    return export(play_games.journal(folder), folder / "out")


@pytest.fixture(scope="module")
def shown(folder: Path) -> PlayedRun:
    return PlayedRun("echo", folders.read(folder / "runs" / "echo"))


def test_ew_of_a_person_equals_hand_computed_value(folder: Path, shown: PlayedRun, exported: list[Exported]) -> None:
    book = play_games.journal(folder)
    assert len(exported) == 5 and all(row.questions == 25 and row.lost == 0 for row in exported)
    for row in exported:
        [game] = [game for game in book.games() if book.seats(game.id) == [row.player]]
        total = 0.0
        for play in book.plays(game.id):
            words, page = shown.trace(play.question).question.words, shown.trace(play.question).question.page
            if play.step is not None and play.answer == page.lower():  # copying: step s has read s + 1 words
                total += by_hand(len(" ".join(words[: play.step + 1])) / len(" ".join(words)))
        saved = folders.read(row.folder)
        ew = float(saved.stats["ew"].sum(axis=0)[0] / 25)
        assert ew == pytest.approx(total / 25, abs=1e-12) and ew == pytest.approx(row.ew, abs=1e-12) and ew > 0
        system = folders.read(row.folder.parent / "echo")
        assert system.stats["ew"].tolist() == folders.read(folder / "runs" / "echo").stats["ew"].tolist()
        assert folders.open_run(row.folder).traces[0].emissions == shown.trace(saved.questions[0]).emissions


def test_every_buzz_is_exported_at_its_word(folder: Path, shown: PlayedRun, exported: list[Exported]) -> None:
    lines = [json.loads(line) for line in (folder / "out" / "buzzes.jsonl").read_text("utf-8").splitlines()]
    assert len(lines) == sum(row.buzzes for row in exported) and len({line["game"] for line in lines}) == len(lines)
    assert sum(line["correct"] for line in lines) == sum(row.right for row in exported)
    for line in lines:
        words = shown.trace(line["qid"]).question.words
        assert line["n_words"] == len(words)
        assert line["rel_pos"] == pytest.approx(len(" ".join(words[: line["word_index"]])) / len(" ".join(words)))


def test_config_of_a_person_reproduces_the_run(exported: list[Exported]) -> None:
    row = exported[0]
    before, stages = (row.folder / "report.tsv").read_bytes(), folders.read(row.folder).stages
    shutil.rmtree(row.folder.parent / "store")
    saving.save(run(load_run(row.folder / "config.yaml"), Store(row.folder.parent), progress=False), row.folder.parent)
    assert (row.folder / "report.tsv").read_bytes() == before and folders.read(row.folder).stages == stages
    answers = row.folder / f"{row.player}.jsonl"
    first = Person(PersonConfig(str(answers))).fingerprint()
    answers.write_text(answers.read_text("utf-8").replace("Portugal", "Spain"), encoding="utf-8")
    assert Person(PersonConfig(str(answers))).fingerprint() != first


def test_lost_and_repeated_plays_are_not_exported(shown: PlayedRun, tmp_path: Path) -> None:
    book = play_games.journal(tmp_path)
    with pytest.raises(DataError, match="no finished question"):
        export(book, tmp_path / "out")
    player = play_games.record(book, shown, [("q0", 1, "Spain")])
    book.begin(f"game-{player}", 1, "q1", [player])
    book.finish(Play(f"game-{player}", 1, 0, player, "q1", "lost"))
    again = replace(book.games()[0], id="again", questions=("q0",))
    book.add_game(again, player)
    book.begin("again", 0, "q0", [player])
    book.finish(Play("again", 0, 0, player, "q0", "done", 1, 1.0, "nonsense"))  # the first play counts
    assert [(row.questions, row.right, row.lost) for row in export(book, tmp_path / "out")] == [(1, 1, 1)]


def test_first_play_counts_even_in_a_later_game(shown: PlayedRun, tmp_path: Path) -> None:
    """Journals of earlier versions contain questions that a player was asked in two games."""
    book = play_games.journal(tmp_path)
    player = play_games.record(book, shown, [("q5", 1, "x")])
    early = replace(book.games()[0], id="opened first", questions=("q0", "q1"))
    late = replace(early, id="played first")
    for game in (early, late):
        book.add_game(game, player)
    plays = [("played first", 0, "q0", "done", ""), ("played first", 1, "q1", "lost", "")]
    plays += [("opened first", 0, "q0", "done", "Spain"), ("opened first", 1, "q1", "done", "France")]
    with sqlite3.connect(book.path) as db:
        for game, place, question, state, answer in plays:
            row = (game, place, 0, player, question, state, 1 if answer else None, 1.0, answer)
            db.execute("INSERT INTO plays VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    assert shown.trace("q0").question.page == "Spain"
    assert [(row.questions, row.right, row.lost) for row in export(book, tmp_path / "out")] == [(2, 0, 1)]


def test_seen_questions_are_not_drawn(shown: PlayedRun) -> None:
    questions = shown.finished.questions
    chosen = drawn(questions, 10, {"q3", "q4"}, seed=1)
    assert [question.id for question in chosen[:4]] == [
        "q10",
        "q20",
        "q24",
        "q21",
    ]  # a seed must draw the same questions in every version
    assert len({q.id for q in chosen}) == 10 and not {"q3", "q4"} & {q.id for q in chosen}
    assert len(drawn([*questions, *questions], 100, set(), seed=1)) == 25  # questions with the same text are drawn once
