"""Commands that compute a run, completely or up to a stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sqa.cli.options import DEFAULT_RUNS, SETTINGS, Config, Limit, Overrides, Runs, Workers, option, say
from sqa.core import ConfigError
from sqa.results import Table, show

if TYPE_CHECKING:
    from sqa.pipeline import RunConfig, RunResult

runs_app = typer.Typer(**SETTINGS)

Until = Annotated[
    Literal["translate", "guess", "buzz", "score"],
    option("--until STAGE", "Last stage to run; before the last one, the folders of the stages are printed."),
]


@runs_app.command()
def run(
    config: Config,
    overrides: Overrides = None,
    runs: Runs = DEFAULT_RUNS,
    limit: Limit = None,
    workers: Workers = None,
    until: Until = "score",
) -> None:
    """Translate, guess, buzz and score; write a run's folder and print its report."""
    set_threads(config, overrides or ())
    from sqa.files import Store
    from sqa.pipeline import engine

    def ahead(work: Any, progress: bool) -> None:
        from sqa.pipeline import make_ahead

        make_ahead(work, progress, workers)

    loaded = _load(config, overrides, limit)
    result = engine.run(loaded, Store(runs), until=until, ahead=None if workers == 1 else ahead)
    if until == "score":
        _finish(result, runs)
    else:
        _show_stages(result)


def set_threads(path: Path, words: Sequence[str]) -> None:
    """Set the number of threads for the parts that a config and its KEY=VALUE,... words name.

    Must be called before numpy and torch are imported, because they read the number on import.
    """
    from sqa.core import part_names, set_for
    from sqa.files import read_yaml

    given = [word.partition("=") for word in words]
    parts = ("translator", "translator.name", "guesser", "guesser.name", "buzzer", "buzzer.name")
    set_for(
        [*part_names(read_yaml(path)), *(name for key, _, names in given if key in parts for name in names.split(","))]
    )


def _load(path: Path, overrides: list[str] | None, limit: int | None) -> RunConfig:
    from sqa.pipeline import load_run, with_limit

    if limit is not None and limit < 1:
        raise ConfigError(f"--limit: must be >= 1, got {limit}")
    if overrides:
        from sqa.pipeline import load_with, parsed

        config = load_with(path, parsed(overrides))
    else:
        config = load_run(path)
    return config if limit is None else with_limit(config, limit)


def _finish(result: RunResult, runs: Path) -> None:
    from sqa.pipeline import saving

    before = saving.stages_of(runs / result.config.name)
    rows = saving.report(result)
    folder = saving.save(result, runs, rows)
    changed = [name for name, key in result.keys.items() if before.get(name, key) != key]
    if changed:
        say(f"{folder}: replaces a run with another {changed[0]} stage")
    say(*(f"{name}: no value: {reason.removeprefix(f'{name}: ')}" for name, reason in result.refusals.items()))
    n, why = result.answered or ("", "")
    say(*([f"no question is answered: {why}"] if why else []))
    answered = f"answered {n} of " if result.answered else ""
    say(f"{answered}{len(result.questions)} questions; report in {folder / saving.REPORT}")
    show(rows.table())


def _show_stages(result: RunResult) -> None:
    """Print the stages of a run that ended before its scores."""
    header = ("stage", "questions", "blocks_made", "folder")
    rows = [
        (name, len(result.questions), result.made[name], str(result.store.folder(stage)))
        for name, stage in result.stages.items()
    ]
    show(Table(header, rows))
