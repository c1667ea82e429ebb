"""A run as blocks that any process can make, in any order that its stages allow.

    workshop = workshop_of(store)
    planned = workshop.plan(config)                       # stages and how many blocks each has
    workshop.make(config, planned.stages[0], index=3)     # False: the store had it

`sqa.run.pipeline.run` finds the blocks in the store, whoever made them: the keys are the same.

Questions that are no data set of a worker's (sentences of a news test, the examples of a board) lie in the store too:

    given = store.keep(questions)                         # a fingerprint, small enough to go with every task
    planned = workshop.plan(config, given=given)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqa import metrics as metric_names
from sqa.core.errors import ConfigError, DataError
from sqa.core.interfaces import ChecksTexts
from sqa.core.places import own_codes
from sqa.core.registry import BUZZERS, GUESSERS, TRANSLATORS
from sqa.core.table import Table
from sqa.core.types import Question
from sqa.files.store import Stage, Store, Traces, blocks_of, dataset_fingerprint, digest, read_emissions, read_guesses
from sqa.metrics.quality.text_metric import TextMetric
from sqa.run import pipeline
from sqa.run.config import DatasetConfig, RunConfig, to_mapping
from sqa.run.folder import CONFIG, REPORT, SUMMARY, RunFolder, read
from sqa.run.parts import Parts, check_questions, settled, written_down
from sqa.run.pipeline import BLOCK_SIZE, STAGES

if TYPE_CHECKING:
    from sqa.core.own.code import Code

COMPONENTS = 24  # kept by a process: models of the runs it works on, not of a thousand runs before
GIVEN = 8  # question sets of `Store.keep` that a process holds in memory


@dataclass(frozen=True, slots=True)
class Planned:
    """What has to be made for a run."""

    stages: tuple[Stage, ...]  # in the order of STAGES
    blocks: int  # of each stage


class Workshop:
    """Questions, components and plans of one process, each loaded once, for blocks of many runs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.parts = Parts(COMPONENTS)
        self._datasets: dict[DatasetConfig, str] = {}  # fingerprints
        self._plans: dict[str, tuple[Planned, tuple[Code, ...]]] = {}
        self._described: set[str] = set()  # keys of stages whose manifest is there

    def plan(self, config: RunConfig, until: str = "score", given: str | None = None) -> Planned:
        """The stages of a run up to `until`; their components are loaded, and asked whether they take the questions.

        `given`: what `Store.keep` said of questions that take the place of those of `config.dataset`.
        """
        mapping = to_mapping(config)
        identity = digest([until, given, {key: mapping.get(key) for key in ("dataset", *_PARTS, "metrics")}])
        if identity not in self._plans or not all(code.current() for code in self._plans[identity][1]):
            self._plans[identity] = self._plan(config, until, given)
        return self._plans[identity][0]

    def _plan(self, config: RunConfig, until: str, given: str | None) -> tuple[Planned, tuple[Code, ...]]:
        """The plan, and the code of one's own that it is made of."""
        questions, dataset = self._questions(config, given)
        translator = self.parts.component(TRANSLATORS, config.translator)
        check_questions(
            config.translator, translator, questions, self.parts.whole(config.dataset) if given is None else None
        )
        stages: dict[str, Stage] = {}
        before: tuple[str, ...] = ()
        codes: list[Code] = []
        for name, part, registry in zip(STAGES, _PARTS, _REGISTRIES, strict=False):
            component = getattr(config, part)
            if component is not None and STAGES.index(name) <= STAGES.index(until):
                built = self.parts.component(registry, component)
                stage = pipeline.stage_of(name, registry, component, built, before, dataset)
                stages[name] = settled(self.store, stage, self.parts.codes(built))
                codes += self.parts.codes(built)
                before = (stages[name].key,)
        if until == "score":
            metrics = _of_traces(config)
            stage = pipeline.stage_of_scores(metrics, stages, dataset)
            stages["score"] = settled(self.store, stage, own_codes(metrics))
            codes += own_codes(metrics)
        return Planned(tuple(stages.values()), len(blocks_of(questions, BLOCK_SIZE))), tuple(codes)

    def finished(self, config: RunConfig, folder: Path) -> RunFolder | None:
        """The folder of a run as `sqa.run.folder.save` would write it now, read back; None where it has to be made.

        That is one of this very config whose stages have the keys that its components have here, all blocks being in
        the store.  A run with metrics of texts is never taken: their models are not among the keys of its stages.
        """
        there = all((folder / name).is_file() for name in (CONFIG, SUMMARY, REPORT))
        if not there or len(_of_traces(config)) < len(config.scored) + len(config.quality):
            return None
        try:
            saved = read(folder)
            same = bool(saved.counts) and saved.config == config
        except (ConfigError, DataError):
            return None  # it is written anew, whole
        if not same:
            return None
        planned = self.plan(config)
        if saved.stages != {stage.name: stage.key for stage in planned.stages}:
            return None
        return None if any(self.store.missing(stage, planned.blocks) for stage in planned.stages) else saved

    def make(self, config: RunConfig, wanted: Stage, index: int, given: str | None = None) -> bool:
        """Make one block of one stage, whose blocks of the same index before it are there; False: it was there too.

        DataError where this process has other models, code or questions than the one that planned the stage.
        """
        if self.store.has(wanted, index):
            return False
        stages = {stage.name: stage for stage in self.plan(config, wanted.name, given).stages}
        if stages[wanted.name] != wanted:
            differ = "models, code or questions here are not those of the machine that planned it"
            raise DataError(f"{config.name}: stage {wanted.name}: {differ}; use the same version and files everywhere")
        questions, _ = self._questions(config, given)
        table = self._table(config, stages, index, blocks_of(questions, BLOCK_SIZE))
        if wanted.key not in self._described:
            self.store.describe(wanted)
            self._described.add(wanted.key)
        written_down(self.store, wanted, self._codes(config, wanted.name))
        self.store.write(wanted, index, table)
        return True

    def _codes(self, config: RunConfig, stage: str) -> Sequence[Code]:
        """The code of one's own of a stage."""
        if stage == "score":
            return own_codes(_of_traces(config))
        name, registry = dict(zip(STAGES, zip(_PARTS, _REGISTRIES, strict=True), strict=False))[stage]
        return self.parts.codes(self.parts.component(registry, getattr(config, name)))

    def _table(
        self, config: RunConfig, stages: Mapping[str, Stage], index: int, blocks: Sequence[Sequence[Question]]
    ) -> Table:
        """The rows of a block of the last of `stages`."""
        block, last = blocks[index], list(stages)[-1]
        if last == "translate":
            return pipeline.translate(self.parts.component(TRANSLATORS, config.translator), block, _silent)
        if last == "guess" and config.guesser is not None:
            guesser = self.parts.component(GUESSERS, config.guesser)
            if isinstance(guesser, ChecksTexts):
                traces = Traces(self.store, blocks, {"translate": stages["translate"]})
                guesser.check_texts(trace.prefixes.texts for trace in traces.block(index))
            emissions = read_emissions(self.store, stages["translate"], index, block)
            return pipeline.guess(guesser, block, emissions, _silent)
        if last == "buzz" and config.buzzer is not None:
            guesses = read_guesses(self.store, stages["guess"], index, block)
            return pipeline.buzz(self.parts.component(BUZZERS, config.buzzer), block, guesses, _silent)
        before = {name: stage for name, stage in stages.items() if name != "score"}
        return pipeline.score(_of_traces(config), Traces(self.store, blocks, before).block(index), _silent)

    def _questions(self, config: RunConfig, given: str | None) -> tuple[list[Question], str]:
        """The questions of a run and their fingerprint."""
        if given is not None:
            return _given(self.store, given), given
        questions = self.parts.questions(config.dataset)
        if config.dataset not in self._datasets:
            self._datasets[config.dataset] = dataset_fingerprint(questions)
        return questions, self._datasets[config.dataset]


@lru_cache(maxsize=GIVEN)
def _given(store: Store, fingerprint: str) -> list[Question]:
    return store.kept(fingerprint)


@cache
def workshop_of(store: Store) -> Workshop:
    """The workshop of this process for a store."""
    return Workshop(store)


_PARTS = ("translator", "guesser", "buzzer")  # keys of a run's config, in the order of STAGES
_REGISTRIES = (TRANSLATORS, GUESSERS, BUZZERS)


def _of_traces(config: RunConfig) -> list[Any]:
    """The metrics that the stage of scores computes."""
    return [metric for metric in metric_names.build(config.scored) if not isinstance(metric, TextMetric)]


def _silent(_: int) -> None:
    """No progress bar."""
