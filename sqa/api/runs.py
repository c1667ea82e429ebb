"""Create a run (`run`), load it (`load`), and access its scores, steps, errors and comparisons."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from sqa.core import NotComputable, config_file, part_names, set_for, total
from sqa.core.paths import GIVEN
from sqa.files import Store
from sqa.pipeline import ComparisonRow, engine, load_with, make_ahead, paired, saving
from sqa.pipeline import folder as folders
from sqa.pipeline.config import PARTS, RunConfig, to_mapping
from sqa.pipeline.export import Step, steps
from sqa.pipeline.overrides import overridden
from sqa.results import Frame, Row, Table, frames

if TYPE_CHECKING:
    import pandas

    from sqa.api.views import Page
    from sqa.core import QuestionTrace
    from sqa.report.plots import Axes


_NUMBERS = count()  # makes the names of objects given as parts unique


@dataclass(frozen=True)
class Run:
    """A finished run, as returned by `sqa.run` and `sqa.load`.

    A run keeps its values if its folder is replaced later.

    Args:
        folder: Folder of the run.

    Raises:
        ConfigError: From any attribute, if the folder is not that of a finished run.
        DataError: From any attribute, if a file of the run is missing or was edited.

    Examples:
        >>> run = sqa.run("mini_es_wait6_bm25", limit=2, progress=False)
        >>> run.name.startswith("mini_es_wait6_bm25-limit2-"), len(run.traces), run.questions.index[0]
        (True, 2, 'mini-001-es')
    """

    folder: Path

    @cached_property
    def read(self) -> folders.RunFolder:
        """The contents of the run's folder."""
        return folders.read(self.folder)

    @property
    def opened(self) -> folders.RunFolder:
        """The run's folder, with its questions and traces."""
        return self.read

    def hold(self) -> None:
        """Read the folder now, so that a later run in it does not change this one; traces are stored by their keys."""
        _ = self.read

    @property
    def name(self) -> str:
        """The name of the run and of its folder."""
        return self.config.name

    @property
    def config(self) -> RunConfig:
        """The run's complete config."""
        return self.read.config

    @property
    def questions(self) -> pandas.DataFrame:
        """A frame with one row per question: source, text (the translation), answer, rank, buzz, ew.

        `rank` is the answer's rank at the last step (0: not among the guesses), `buzz` the step of the first buzz (from
        0), `ew` the question's expected wins (0 to 1).  A value is missing if no guesser or buzzer ran, or if there was
        no buzz.
        """
        won = self.read.stats.get("ew")
        rows = []
        for i, trace in enumerate(self.read.traces):
            rank = None if trace.guesses is None else int(trace.rank[-1]) if len(trace.rank) else 0
            buzz = next((step for step, buzz in enumerate(trace.buzzes or ()) if buzz.buzz), None)
            ew = None if won is None else float(won[i, 0])
            text = " ".join(filter(None, trace.hypotheses))
            rows.append((trace.question.id, trace.question.text, text, trace.question.page, rank, buzz, ew))
        table = frames().DataFrame(rows, columns=["question", "source", "text", "answer", "rank", "buzz", "ew"])
        return table.astype({"rank": "Int64", "buzz": "Int64", "ew": float}).set_index("question")

    @property
    def traces(self) -> list[QuestionTrace]:
        """The traces of all questions, one per question."""
        return list(self.read.traces)

    @property
    def metrics(self) -> dict[str, float]:
        """Values over all questions by metric; metrics without a value are left out (see `refusals`)."""
        values = {}
        for metric in paired.metrics_of(list(self.read.signatures), self.read):
            try:
                values[metric.name] = total(self.read.stats[metric.name], metric)
            except NotComputable:
                continue
        return values

    @property
    def rows(self) -> dict[str, Row]:
        """The rows of report.tsv by metric, to six digits."""
        return self.read.report

    @property
    def intervals(self) -> pandas.DataFrame:
        """A frame with one row per metric, as in report.tsv: value, low, high (95% interval), n, unit, signature."""
        table = Frame((), tuple(self.rows.values())).table().to_frame().set_index("metric")
        return table.astype(dict.fromkeys(("value", "low", "high"), float))

    @property
    def refusals(self) -> dict[str, str]:
        """Reasons for missing values by metric."""
        return dict(self.read.refusals)

    def steps(self) -> pandas.DataFrame:
        """Return one row per target word.

        Returns:
            A frame with the columns question, step (from 0), word, g (source words read of its sentence), share (of
            the question's source characters read, 0 to 1), guess (the best one, or empty), rank (of the answer,
            0: not among the guesses), score (of the buzzer) and buzz.
        """
        traces = self.read.traces
        table = frames().DataFrame(list(steps(traces)), columns=list(Step._fields))
        guesses = [step for trace in traces for step in trace.guesses or [()] * len(trace.emissions)]
        table.insert(4, "share", [share for trace in traces for share in trace.fraction.tolist()])
        table.insert(5, "guess", [step[0].page if step else "" for step in guesses])
        return table

    def over_source(self, points: int = 25) -> pandas.DataFrame:
        """Return how well the answer is known at growing shares of the source.

        Args:
            points: Number of shares of the source's characters, evenly spaced up to 1; at least 1.

        Returns:
            A frame indexed by share, with means over questions: `log_rank`, the log reciprocal rank of the answer at
            the newest target word (at least -4), and `ew`, the expected wins of answering there (0 to 1).

        Raises:
            TraceError: If no guesser ran.
        """
        from sqa.report.figures import log_ranks_at, wins_at

        shares = np.arange(1, points + 1) / points
        logs = np.mean([log_ranks_at(trace, points) for trace in self.traces], axis=0)
        wins = np.mean([wins_at(trace, points) for trace in self.traces], axis=0)
        return frames().DataFrame({"share": shares, "log_rank": logs, "ew": wins}).set_index("share")

    def view(self, *questions: str, height: int = 720) -> Page:
        """Return the word-by-word viewer, which Jupyter shows inline.

        Args:
            questions: Identifiers of the questions to show; none for all.
            height: Height of the inline frame in pixels.

        Returns:
            A self-contained page; its `save` writes it to a file.

        Raises:
            ConfigError: If a question is not in the run.
        """
        from sqa.api.views import viewer

        return viewer(self.read, [self._index(id) for id in questions] or range(len(self.traces)), height)

    def plot_question(self, question: str, curve: str = "qanta2018", ax: Axes | None = None) -> Axes:
        """Draw the expected wins of an answer over the share of the source read, with the buzz.

        Args:
            question: Identifier of a question of the run.
            curve: Expected-wins curve, by name or file.
            ax: Axes to draw into; None for a new figure.

        Returns:
            The axes: share of the source read in percent of its characters, against expected wins (0 to 1).

        Raises:
            ConfigError: If the question is not in the run, or the curve is unknown.
            TraceError: If no guesser ran.
        """
        from sqa.api.views import plot_question

        return plot_question(self.traces[self._index(question)], curve, ax)

    def plot_steps(self, question: str) -> Axes:
        """Draw the rank of the answer word by word, with the errors of the translation, as in Figure 5 of the paper.

        The red curve marks words without a source word.  The text is below, with the numbers of the marks.

        Args:
            question: Identifier of a question of the run.

        Returns:
            The axes: share of the source read in percent of its characters, against log MRR (nats, -4 to 0).

        Raises:
            ConfigError: If the question is not in the run, no guesser ran, or the questions are in several languages.
        """
        from sqa.api.views import plot_steps

        return plot_steps(self.read, self._index(question))

    def _index(self, question: str) -> int:
        """Return the index of a question."""
        return self.read.indices([question])[0]

    def errors(self) -> pandas.DataFrame:
        """Return the step-wise errors of the translations.

        Returns:
            A frame with one row per error, worst first, with the columns of `sqa diagnose` (docs/errors.md).

        Raises:
            ConfigError: If no guesser ran, or the questions are in several languages.
        """
        from sqa.diagnose.findings import findings_of, table

        frame = table(findings_of(self.read)).to_frame()
        # "Int64" keeps whole numbers even if some values are missing
        return frame.astype(dict.fromkeys(("rank_before", "rank_after"), "Int64"))

    def compare(self, other: Run) -> pandas.DataFrame:
        """Compare this run with another over the same questions.

        Args:
            other: A run of the same questions.

        Returns:
            A frame with one row per metric: this run minus the other, with its 95% interval and p-values.
            `.attrs["left out"]` lists the metrics that are not compared, with reasons.

        Raises:
            ConfigError: If the runs have different questions.
            NotComputable: If they have no metric in common that has a value.
        """
        rows, notes = paired.compare(self.read, other.read)
        table = Table.of(rows, ComparisonRow).to_frame().set_index("metric")
        table.attrs["left out"] = notes
        return table.astype(dict.fromkeys(("low", "high"), float))


def run(
    config: str | Path | Mapping[str, Any],
    /,
    *,
    runs: str | Path = "runs",
    progress: bool = True,
    workers: int | None = None,
    **keys: Any,
) -> Run:
    """Run a config and return the run, reusing the blocks stored below `runs`.

    Args:
        config: A file, the name of a bundled config, or plain values.
        runs: The folder of results and of the store.
        progress: Whether to print progress on stderr.
        workers: Number of processes for more than a hundred questions; None: one per processor.
        keys: Values that replace those of the config, as on the command line (`sqa.pipeline.overrides`): `k=9`,
            `guesser="gru"`, `**{"guesser.model": "mine"}`.  An object given as `translator`, `guesser` or `buzzer` is
            used directly; the run's folder is then deleted together with the returned value.

    Returns:
        The finished run.

    Raises:
        ConfigError: If the config has problems; the message lists all of them.
        DataError: If a file that the run reads is missing or malformed.

    Examples:
        >>> run = sqa.run("mini_es_wait6_bm25", k=9, limit=3, progress=False)
        >>> round(run.metrics["ew"], 3)
        0.264
    """
    with ExitStack() as discarded:
        objects = [kind for kind in PARTS if not isinstance(keys.get(kind), (str, Mapping, NoneType))]
        for kind in objects:
            name = f"object:{type(keys[kind]).__name__}-{next(_NUMBERS)}"
            GIVEN[name], keys[kind] = keys[kind], name
            discarded.callback(GIVEN.pop, name)
        folder = Path(discarded.enter_context(TemporaryDirectory(prefix="sqa-")) if objects else runs)
        overrides = {key: to_mapping(value) for key, value in keys.items()}
        if isinstance(config, Mapping):
            wanted = overridden(config, str(config.get("name", "run")), overrides, "config", None)
        else:
            wanted = load_with(config_file(Path(config)), overrides)
        set_for(part_names(to_mapping(wanted)))
        ahead = None if objects or workers == 1 else partial(make_ahead, workers=workers)
        made = Run(saving.save(engine.run(wanted, Store(folder), progress=progress, ahead=ahead), folder))
        made.hold()
        if objects:
            weakref.finalize(made, discarded.pop_all().close)
        return made


def load(folder: str | Path) -> Run:
    """Read a finished run.

    Args:
        folder: Folder of the run, such as "runs/mine".

    Returns:
        The run.

    Raises:
        ConfigError: If the folder is not that of a finished run.
        DataError: If a file of the run is missing or was edited.

    Examples:
        >>> run = sqa.run("mini_es_wait6_bm25", limit=2, progress=False)
        >>> sqa.load(f"runs/{run.name}").metrics == run.metrics
        True
    """
    finished = Run(Path(folder))
    finished.hold()
    return finished


def compare(a: Run | str | Path, b: Run | str | Path) -> pandas.DataFrame:
    """Compare two runs over the same questions, like `Run.compare`.

    Args:
        a: A run, or its folder.
        b: The run to subtract, or its folder.

    Returns:
        A frame with one row per metric: a, b, their difference (a minus b) with its 95% interval, and p-values.

    Raises:
        ConfigError: If the runs have different questions.
        NotComputable: If they have no metric in common that has a value.

    Examples:
        >>> early, late = (sqa.run("mini_es_wait6_bm25", k=k, limit=3, progress=False) for k in (3, 9))
        >>> round(float(sqa.compare(late, early).loc["dal", "diff"]), 2)  # in source words
        5.49
    """
    first, second = (run if isinstance(run, Run) else load(run) for run in (a, b))
    return first.compare(second)
