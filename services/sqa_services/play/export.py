"""Export games as finished runs for `sqa compare`, `sqa report` and figures, and as a file of buzzes.

    OUT/buzzes.jsonl            every buzz, for `sqa curve fit`: rel_pos is the share of source characters read, by g(j)
    OUT/PLAYER-RUN/questions.jsonl   questions that a player finished on a run's translation
    OUT/PLAYER-RUN/PLAYER/      the player as a contestant: the run's translation, the player's answers and buzzes
    OUT/PLAYER-RUN/RUN/         the run, and the runs played against, restricted to these questions

A question counts once for each player, when it was shown for the first time.  Metrics that need a model (`quality:`)
are left out.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqa import metrics as metric_names
from sqa.core import trace as tr
from sqa.core.errors import DataError
from sqa.core.registry import BUZZERS, GUESSERS
from sqa.core.trace import QuestionTrace, Table
from sqa.core.types import Question, TextMetric
from sqa.data.datasets import load_questions
from sqa.files.atomic import write_text
from sqa.files.store import Stage, Store, dataset_fingerprint
from sqa.pipeline import engine, saving
from sqa.pipeline.config import ComponentConfig, RunConfig
from sqa.pipeline.engine import BLOCK_SIZE, RunResult
from sqa.pipeline.folder import read
from sqa.pipeline.parts import Parts
from sqa.report.data import run_names
from sqa_services.play import people
from sqa_services.play.journal import Game, Journal, Play
from sqa_services.play.runs import QUESTIONS, PlayedRun, write_questions

BUZZES = "buzzes.jsonl"


@dataclass(frozen=True, slots=True)
class Exported:
    """Summary of a player's questions on a run's translation."""

    player: str
    run: str
    questions: int
    buzzes: int
    right: int
    ew: float  # mean expected wins over the questions
    lost: int  # questions interrupted because the server ended; not in `questions`
    folder: Path  # the player's folder as a contestant


@dataclass
class _Played:
    """Plays of one player on one run's translation."""

    player: str
    run: PlayedRun
    plays: dict[str, tuple[Game, Play]]  # question -> game and first play, if the play is finished
    systems: dict[str, PlayedRun]  # folder -> run played against
    lost: int = 0


def export(journal: Journal, output: Path) -> list[Exported]:
    """Write all games to `output`.  Raises DataError if no question is finished."""
    played = list(_collected(journal).values())
    done = [entry for entry in played if entry.plays]
    if not done:
        raise DataError(f"{journal.path}: contains no finished question; play first")
    contestants = [_contestant(entry, output / f"{entry.player}-{entry.run.name}") for entry in done]
    buzzes = (line for entry in done for line in _buzzes(entry))
    write_text(output / BUZZES, "".join(json.dumps(line) + "\n" for line in buzzes))
    return contestants


def _collected(journal: Journal) -> dict[tuple[str, str], _Played]:
    """Return a dict that maps (player, folder of the run) to the player's plays, in the order of play."""
    games, plays = {game.id: game for game in journal.games()}, journal.plays()
    runs = _opened(games[id] for id in dict.fromkeys(play.game for play in plays))
    entries: dict[tuple[str, str], _Played] = {}
    known: set[tuple[str, str]] = set()  # (player, question)
    for play in plays:
        game = games[play.game]
        run = runs[game.run]
        if run.translation != game.translation:
            raise DataError(f"{game.run}: recomputed since game {game.id}, with another translation")
        entry = entries.setdefault((play.player, game.run), _Played(play.player, run, {}, {}))
        if play.state != "done":
            entry.lost += 1
        elif (play.player, play.question) not in known:
            entry.plays[play.question] = game, play
        known.add((play.player, play.question))
        if game.system is not None:
            entry.systems.setdefault(game.system, runs[game.system])
    return entries


def _opened(games: Iterable[Game]) -> dict[str, PlayedRun]:
    """Open the runs of games under distinct names, and return them by folder."""
    paths, parts = [Path(f) for f in dict.fromkeys(f for g in games for f in (g.run, g.system) if f)], Parts()
    names = (name.replace("/", "-") for name in run_names(paths))
    return {str(path): PlayedRun(name, read(path), parts) for path, name in zip(paths, names, strict=True)}


def _buzzes(entry: _Played) -> Iterator[dict[str, Any]]:
    """Yield records in the format of `sqa.data.human_buzzes`; each question becomes one "game" of that format."""
    for game, play in entry.plays.values():
        if play.step is not None:
            trace = _played(entry, entry.run.trace(play.question))
            yield {
                "qid": play.question,
                "correct": bool(trace.correct[play.step]),
                "rel_pos": float(trace.fraction[play.step]),
                "word_index": int(trace.source_words[play.step]),
                "n_words": len(trace.question.words),
                "game": f"{game.id}-{play.index}",
                "player": play.player,
            }


def _contestant(entry: _Played, folder: Path) -> Exported:
    """Write runs of the player and the systems, restricted to the questions that the player finished."""
    config = entry.run.saved.config
    dataset = write_questions(folder / QUESTIONS, [q for q in entry.run.finished.questions if q.id in entry.plays])
    questions = load_questions(dataset.name)
    fingerprint = dataset_fingerprint(questions)
    shown = _restricted(entry.run, questions)
    traces = [_played(entry, trace) for trace in shown]
    answers = folder / entry.player / f"{entry.player}.jsonl"
    write_text(answers, "".join(f"{line}\n" for line in _answers(entry, shown)))
    options = people.PersonConfig(str(answers.resolve()))
    guesser = ComponentConfig(people.NAME, options)
    buzzer = ComponentConfig(people.NAME, people.PersonBuzzerConfig())
    person = replace(config, name=entry.player, dataset=dataset, guesser=guesser, buzzer=buzzer, quality=())
    translate = _stages_of(entry.run, fingerprint)["translate"]
    upstream, answering = (translate.key,), people.Person(options)
    guess = engine.stage_of("guess", GUESSERS, guesser, answering, upstream, fingerprint)
    buzz = engine.stage_of("buzz", BUZZERS, buzzer, people.PersonBuzzer(), (guess.key,), fingerprint)
    stages = {"translate": translate, "guess": guess, "buzz": buzz}
    written = _written(person, traces, stages, folder)
    for system in {run.folder: run for run in (entry.run, *entry.systems.values())}.values():
        restricted = replace(system.saved.config, name=system.name, dataset=dataset, quality=())
        _written(restricted, _restricted(system, questions), _stages_of(system, fingerprint), folder)
    outcomes = [people.outcome(trace) for trace in traces]
    buzzes, right = sum(o.step is not None for o in outcomes), sum(o.right for o in outcomes)
    ew = sum(o.ew for o in outcomes) / len(outcomes)
    return Exported(entry.player, entry.run.name, len(traces), buzzes, right, ew, entry.lost, written)


def _restricted(run: PlayedRun, questions: Sequence[Question]) -> list[QuestionTrace]:
    """Return the traces of selected questions of a run."""
    return [replace(run.trace(question.id), question=question) for question in questions]


def _played(entry: _Played, shown: QuestionTrace) -> QuestionTrace:
    """Return the player's trace of a question."""
    _, play = entry.plays[shown.question.id]
    return people.played(shown, play.step, play.answer)


def _answers(entry: _Played, shown: Sequence[QuestionTrace]) -> Iterator[str]:
    """Yield the lines of the file that `people.Person` reads."""
    for trace in shown:
        if trace.emissions:
            _, play = entry.plays[trace.question.id]
            record = {"text": trace.prefixes.texts[-1], "step": play.step, "answer": play.answer}
            yield json.dumps(record, ensure_ascii=False)


def _stages_of(run: PlayedRun, dataset: str) -> dict[str, Stage]:
    """Return the stages of a run on other questions, with the keys that its config gives for these questions."""
    store, stages = Store(run.folder.parent), dict[str, Stage]()
    before: tuple[str, ...] = ()
    for name in engine.STAGES[:-1]:
        if name in run.saved.stages:
            stage = store.stage(name, run.saved.stages[name])
            stages[name] = replace(stage, upstream=before, dataset=dataset)
            before = (stages[name].key,)
    return stages


def _written(config: RunConfig, traces: Sequence[QuestionTrace], stages: Mapping[str, Stage], runs: Path) -> Path:
    """Write a run from given traces: store its stages, compute its scores, and return its folder."""
    store = Store(runs)
    names = zip(config.metrics, metric_names.build(config.metrics), strict=True)
    of_traces = {name: metric for name, metric in names if not isinstance(metric, TextMetric)}
    config, built = replace(config, metrics=tuple(of_traces)), list(of_traces.values())
    scored = engine.stage_of_scores(built, stages, stages["translate"].dataset)
    tables: dict[str, Callable[[Sequence[QuestionTrace]], Table]] = {
        "translate": lambda block: tr.emissions_table({t.question.id: t.emissions for t in block}),
        "guess": lambda block: tr.guesses_table({t.question.id: t.guesses or () for t in block}),
        "buzz": lambda block: tr.buzzes_table({t.question.id: t.buzzes or () for t in block}),
        "score": lambda block: engine.score(built, block, lambda _: None),
    }
    whole = {**stages, "score": scored}
    for name, stage in whole.items():
        with store.working_on(stage):
            for index, start in enumerate(range(0, len(traces), BLOCK_SIZE)):
                if not store.has(stage, index):
                    store.write(stage, index, tables[name](traces[start : start + BLOCK_SIZE]))
    result = RunResult(config, [trace.question for trace in traces], whole, store, built, None)
    return saving.save(result, runs)
