"""Run translate -> guess -> buzz -> score; each stage is a function of the previous one, cached in the store.

    from sqa.pipeline.config import load_run
    from sqa.pipeline.engine import run
    from sqa.files.store import Store

    result = run(load_run(Path("configs/mini_es_wait6_bm25.yaml")), Store(Path("runs")))
    result.stats["ew"]          # additive statistics, an array of shape (questions, d)
    for trace in result.traces: # read from the store block by block, never all at once
        ...

Work proceeds in blocks of questions.  Stored blocks are not recomputed, so a killed run continues, and runs with the
same translation share its stored blocks.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sqa import metrics as metric_names
from sqa.core import QuestionTrace, Score, Table, bar
from sqa.core import key as answer_key
from sqa.core import trace as tr
from sqa.core import types as contracts
from sqa.core.errors import ConfigError, DataError, NotComputable, SqaError, TraceError, in_a_line
from sqa.core.paths import BUILT, short
from sqa.core.registry import BUZZERS, GUESSERS, QUALITY, TRANSLATORS, Registry
from sqa.core.types import Buzz, Buzzer, Emission, Guess, Guesser, Metric, Question, Translator
from sqa.data.datasets import load_questions
from sqa.files import Stage, Store, Traces, blocks_of, dataset_fingerprint, digest, read_rows
from sqa.metrics.measure import KEPT as N_GUESSES
from sqa.pipeline.config import ComponentConfig, DatasetConfig, QualityConfig, RunConfig

if TYPE_CHECKING:
    from sqa.core.own.code import Code


BLOCK_SIZE = 64  # questions per block
FEW = 100  # questions of all runs together; workers are used only for more
STAGES = ("translate", "guess", "buzz", "score")
COMPONENTS: Mapping[str, tuple[str, Registry]] = {  # stage -> (key of a run's config, registry)
    "translate": ("translator", TRANSLATORS),
    "guess": ("guesser", GUESSERS),
    "buzz": ("buzzer", BUZZERS),
}
VERSION = 1  # version of the stages; raise it when the rows of a component change

EMPTY_QUESTIONS, EMPTY_SENTENCES, _, ANSWERED = metric_names.PRINTED  # counts printed in addition to the metrics
Tick = Callable[[int], object]  # called with the number of questions just completed
Ahead = Callable[["Work", bool], None]
Given = tuple[list[Question], str]  # questions and their fingerprint


# --------------------------------------------------------------------------------------------- questions and components


class Recent:
    """Cache of the most recently used values, each with the user-defined code that it was built from.

    `keep`: number of values to keep; None = all.  A value is rebuilt if its code was edited.
    """

    def __init__(self, keep: int | None = None) -> None:
        self._values: dict[str, tuple[Any, Sequence[Code]]] = {}
        self._keep = keep

    def get(self, identity: str, build: Callable[[], tuple[Any, Sequence[Code]]]) -> Any:
        """Return a value from the cache, marked as last used; build it if it is missing or its code has changed."""
        entry = self._values.pop(identity, None)
        if entry is None or not all(code.current() for code in entry[1]):
            entry = build()
        self._values[identity] = entry
        while self._keep is not None and len(self._values) > self._keep:
            del self._values[next(iter(self._values))]
        return entry[0]

    def codes(self, value: object) -> Sequence[Code]:
        """Return the user-defined code of a value; () if it has none."""
        return next((codes for built, codes in self._values.values() if built is value), ())


class Parts:
    """Questions and components, each loaded once and shared by all runs with the same Parts.

    `keep`: number of most recently used components to keep; None = all.
    """

    def __init__(self, keep: int | None = None) -> None:
        self.components = Recent(keep)
        self._datasets: dict[DatasetConfig, Given] = {}

    def questions(self, config: DatasetConfig) -> list[Question]:
        """Return the questions of a data set."""
        return self.dataset(config)[0]

    def dataset(self, config: DatasetConfig) -> Given:
        """Return the questions of a data set and their fingerprint."""
        if config not in self._datasets:
            questions = load_questions(config.name, config.limit)
            self._datasets[config] = questions, dataset_fingerprint(questions)
        return self._datasets[config]

    def component(self, registry: Registry, config: ComponentConfig) -> Any:
        """Return the component of a config.  Raises ConfigError if it lacks a method that its kind requires."""
        return self.components.get(f"{registry.kind} {config!r}", lambda: with_code(_component, registry, config))

    def quality(self, config: QualityConfig) -> Any:
        """Return the metric of a `quality:` entry; a `not_computed` metric with the reason if it is unavailable."""
        return self.components.get(f"quality {config!r}", lambda: with_code(_quality, config))


def with_code(build: Callable[..., Any], *arguments: object) -> tuple[Any, list[Code]]:
    """Return the result of `build`, and the user-defined code that was imported for it."""
    before = len(BUILT)
    return build(*arguments), BUILT[before:]


def _component(registry: Registry, config: ComponentConfig) -> Any:
    built = registry.build(config.name, config.options)
    if isinstance(built, contracts.CONTRACTS[registry.kind]):
        return built
    part, method = getattr(built, "own_part", built), contracts.METHODS[registry.kind]
    near = get_close_matches(method, (name for name in dir(part) if name[0] != "_"), 1)
    made = f"{short(registry.target(config.name))} made a {type(part).__name__}"
    instead = f", but {near[0]}" if near else ""
    raise ConfigError(f"{registry.kind} {config.name!r}: {made}, which has no {method}{instead}")


def _quality(config: QualityConfig) -> Any:
    try:
        return QUALITY.build(config.kind, config.options)
    except SqaError as error:
        from sqa.metrics.quality.text_metric import not_computed

        return not_computed(config.name, in_a_line(error), getattr(config.options, "LABEL", ""))


def check_questions(
    config: ComponentConfig, translator: Any, questions: Sequence[Question], whole: Callable[[], Sequence[Question]]
) -> None:
    """Raise ConfigError or DataError if the questions do not fit the translator's language or file.

    `whole` returns the full data set, which starts with `questions`.  The translator's file may cover more of that set.
    """
    if isinstance(translator, contracts.KnowsLanguages) and not config.other_languages:
        from sqa.pipeline.usage import check_languages

        check_languages(short(config.name), translator.languages, questions)
    if isinstance(translator, contracts.ChecksQuestions):
        try:
            translator.check(questions)
        except DataError as error:
            dataset = whole()
            for n in range(len(questions) + 1, len(dataset) + 1):
                with suppress(DataError):
                    translator.check(dataset[:n])
                    return
            raise error from None


def fingerprint_of(registry: Registry, config: ComponentConfig, component: Any) -> str:
    """Return a component's own fingerprint: everything that its output depends on except its inputs."""
    if not isinstance(component, contracts.Fingerprinted):
        raise ConfigError(f"{registry.kind} {config.name!r}: a {type(component).__name__} has no fingerprint()")
    return component.fingerprint()


# ------------------------------------------------------------------------------------------------------------------ run


@dataclass(frozen=True)
class RunResult:
    """The result of a run: traces, read on demand, and additive statistics of the metrics."""

    config: RunConfig
    questions: list[Question]
    stages: dict[str, Stage]  # stages that ran, by name
    store: Store
    metrics: list[contracts.BuiltMetric]
    unknown_pages: int | None  # questions whose page the guesser cannot name; None if it has no page list
    made: dict[str, int] = field(default_factory=dict)  # stage -> blocks that the store lacked before this run
    texts: dict[str, dict[str, Score]] = field(default_factory=dict)  # question id -> text metric -> score
    mismatch: str = ""  # warning about a buzzer that was trained with another guesser

    @property
    def keys(self) -> dict[str, str]:
        """The store key of each stage."""
        return {name: stage.key for name, stage in self.stages.items()}

    @cached_property
    def traces(self) -> Traces:
        """One trace per question, in order, read from the store block by block."""
        return Traces(self.store, blocks_of(self.questions, BLOCK_SIZE), self.stages)

    @cached_property
    def scores(self) -> dict[str, dict[str, Score]]:
        """Scores by question id and metric name, including the counts of empty output."""
        rows: dict[str, dict[str, Score]] = {}
        for index in range(len(blocks_of(self.questions, BLOCK_SIZE))):
            rows |= tr.scores_rows(self.store.read(self.stages["score"], index, tr.SCORES))
        return {id: scores | self.texts.get(id, {}) for id, scores in rows.items()}

    @cached_property
    def stats(self) -> dict[str, np.ndarray]:
        """Additive statistics by metric, arrays of shape (questions, d), without metrics undefined on this run."""
        names = (*(metric.name for metric in self.metrics), EMPTY_QUESTIONS, EMPTY_SENTENCES)
        return {
            name: np.array([self.scores[q.id][name].stats for q in self.questions], dtype=np.float64)
            for name in names
            if name not in self.refusals
        }

    @cached_property
    def settings(self) -> dict[str, str]:
        """Everything besides the translation that values depend on: guesser, buzzer, questions, each with a digest."""
        parts = {COMPONENTS[name][0]: stage for name, stage in self.stages.items() if name in ("guess", "buzz")}
        named = {part: f"{stage.implementation}-{stage.fingerprint[:8]}" for part, stage in parts.items()}
        return {**named, "questions": self.stages["score"].dataset[:8]}

    @cached_property
    def answered(self) -> tuple[int, str] | None:
        """The number of questions with a buzz, and the reason if it is 0; None without a buzzer."""
        if "buzz" not in self.stages:
            return None
        blocks = enumerate(blocks_of(self.questions, BLOCK_SIZE))
        rows = [read_rows(self.store, self.stages["buzz"], index, block) for index, block in blocks]
        buzzes = [steps for block in rows for steps in block.values()]
        n = sum(any(buzz.buzz for buzz in steps) for steps in buzzes)
        if n:
            return n, ""
        from sqa.pipeline.usage import unanswered

        return 0, unanswered(buzzes)

    @cached_property
    def refusals(self) -> dict[str, str]:
        """Reasons why metrics are undefined on this run, by metric name."""
        refusals: dict[str, str] = {}
        for q in self.questions:
            for name, score in self.scores[q.id].items():
                if score.refusal is not None:
                    refusals.setdefault(name, score.refusal)
        return refusals


def run(
    config: RunConfig,
    store: Store,
    *,
    parts: Parts | None = None,
    questions: Sequence[Question] | None = None,
    until: str = "score",
    progress: bool = True,
    ahead: Ahead | None = None,
) -> RunResult:
    """Run the stages of `config` up to `until` (one of STAGES), computing only blocks missing from the store.

    Runs with the same `parts` share models and questions.  `questions` replace those of `config.dataset`.  Progress is
    printed on stderr.  For more than FEW questions, `ahead` first computes missing blocks in other processes.
    """
    given = None if questions is None else (list(questions), dataset_fingerprint(questions))
    for stage, kind, component in (("guess", "guesser", config.guesser), ("buzz", "buzzer", config.buzzer)):
        if until == stage and component is None:
            raise ConfigError(f"{config.name}: names no {kind} to run")
    work = Work(config, store, parts or Parts(), given, until)
    store.keep(work.questions)
    mismatch = ""
    if "buzz" in work.stages:
        trained = getattr(work.built["buzz"], "trained_for", None)
        if config.guesser is not None and isinstance(trained, str) and short(trained) != short(config.guesser.name):
            from sqa.pipeline.usage import other_guesser

            mismatch = other_guesser(config, trained)
            print(f"sqa: {mismatch}", file=sys.stderr)
    made = {name: len(store.missing(stage, len(work.blocks))) for name, stage in work.stages.items()}
    if ahead and len(work.questions) > FEW:
        ahead(work, progress)
    for name in work.stages:
        _whole_stage(work, name, progress)
    unknown = _unknown_pages(work.built["guess"], work.questions) if "guess" in work.stages else None
    metrics, texts = _score_texts(work, progress) if "score" in work.stages else (work.metrics, {})
    return RunResult(config, work.questions, work.stages, store, metrics, unknown, made, texts, mismatch)


def _whole_stage(work: Work, name: str, progress: bool) -> None:
    """Compute the missing blocks of a stage."""
    store, stage, blocks = work.store, work.stages[name], work.blocks
    store.describe(stage)
    if not store.missing(stage, len(blocks)):
        return
    with store.working_on(stage):
        missing = store.missing(stage, len(blocks))
        work.check(name, missing)
        total, todo = len(work.questions), sum(len(blocks[index]) for index in missing)
        with bar(f"{name:9}", total, total - todo, disable=not progress) as shown:
            for index in missing:
                work.make(name, index, shown.update)


def _score_texts(work: Work, progress: bool) -> tuple[list[contracts.BuiltMetric], dict[str, dict[str, Score]]]:
    """Compute the text metrics; return all metrics of the run, and the text scores by question id and metric."""
    wanted = [*work.of_texts, *(work.parts.quality(entry.for_run(work.config.name)) for entry in work.config.quality)]
    if not wanted:
        return work.metrics, {}
    from sqa.pipeline.quality_stage import score_texts

    scored, texts = score_texts(wanted, work.traces(), work.store, progress)
    return [scored.pop(metric.name, metric) for metric in work.metrics] + list(scored.values()), texts


class Work:
    """The stages of a run on its questions, and the computation of their blocks.

    The constructor builds the components and checks the questions; `given` questions replace those of the data set.
    """

    def __init__(
        self, config: RunConfig, store: Store, parts: Parts, given: Given | None = None, until: str = "score"
    ) -> None:
        self.config, self.store, self.parts, self.until = config, store, parts, until
        self.questions, dataset = given or parts.dataset(config.dataset)
        self.given = given and dataset  # fingerprint of given questions
        self.blocks = blocks_of(self.questions, BLOCK_SIZE)
        self.stages: dict[str, Stage] = {}  # in the order of STAGES
        self.built: dict[str, Any] = {}  # stage -> component, shared by all blocks
        self.metrics, codes = with_code(metric_names.build, config.metrics)
        self.codes = list(codes)  # user-defined code of all stages
        self.of_texts = [metric for metric in self.metrics if isinstance(metric, contracts.TextMetric)]
        self.of_traces = [metric for metric in self.metrics if not isinstance(metric, contracts.TextMetric)]
        wanted = STAGES[: STAGES.index(until) + 1]
        translator = parts.component(TRANSLATORS, config.translator)

        def whole() -> Sequence[Question]:
            return self.questions if given else parts.questions(replace(config.dataset, limit=None))

        check_questions(config.translator, translator, self.questions, whole)
        upstream: tuple[str, ...] = ()
        for name, (part, registry) in COMPONENTS.items():
            if name in wanted and (component := getattr(config, part)) is not None:
                built = self.built[name] = parts.component(registry, component)
                self.stages[name] = stage_of(name, registry, component, built, upstream, dataset)
                self.codes += parts.components.codes(built)
                upstream = (self.stages[name].key,)
        if "score" in wanted:
            self.stages["score"] = stage_of_scores(self.of_traces, self.stages, dataset)

    def traces(self, *names: str) -> Traces:
        """Return the traces with the results of the named stages (default: translate, guess and buzz)."""
        shown = {name: stage for name, stage in self.stages.items() if name in (names or COMPONENTS)}
        return Traces(self.store, self.blocks, shown)

    def lacking(self) -> list[int]:
        """Return the blocks of which the store lacks a stage."""
        missing = (self.store.missing(stage, len(self.blocks)) for stage in self.stages.values())
        return sorted(set().union(*missing))

    def check(self, name: str, missing: Sequence[int]) -> None:
        """Pass the texts of the missing blocks to a `ChecksTexts` guesser."""
        if name == "guess" and isinstance(guesser := self.built[name], contracts.ChecksTexts):
            translated = self.traces("translate")
            guesser.check_texts(trace.prefixes.texts for index in missing for trace in translated.block(index))

    def make(self, name: str, index: int, tick: Tick) -> None:
        """Compute one block of a stage; the store must have the same block of every earlier stage."""
        with self._counting(name, index):
            table = self._table(name, index, tick)
        self.store.write(self.stages[name], index, table)

    def _counting(self, name: str, index: int) -> AbstractContextManager[None]:
        """Return a context that stores the counts of a language model's replies for a block."""
        usage = getattr(self.built.get(name), "usage", None)
        if not isinstance(usage, Counter):
            return nullcontext()
        from sqa.pipeline.usage import counting

        return counting(self.store, self.stages[name], index, usage)

    def _table(self, name: str, index: int, tick: Tick) -> Table:
        """Return a stage's rows for a block."""
        block = self.blocks[index]
        if name == "translate":
            return translate(self.built[name], block, tick)
        if name == "score":
            return score(self.of_traces, self.traces().block(index), tick)
        make, earlier = (guess, "translate") if name == "guess" else (buzz, "guess")
        return make(self.built[name], block, read_rows(self.store, self.stages[earlier], index, block), tick)


# ------------------------------------------------------------------------------------------------------- stages


def stage_of(
    name: str, registry: Registry, config: ComponentConfig, component: Any, upstream: tuple[str, ...], dataset: str
) -> Stage:
    """Return the stage of a component; `upstream`: keys of its input stages, `dataset`: the questions' fingerprint."""
    part = fingerprint_of(registry, config, component)
    identity = digest({"version": VERSION, "guesses": N_GUESSES, "component": part})
    return Stage(name, registry.identity(config.name), identity, upstream, dataset, BLOCK_SIZE)


def stage_of_scores(of_traces: Sequence[Metric], stages: Mapping[str, Stage], dataset: str) -> Stage:
    """Return the score stage; its key includes the signatures of the metrics and the keys of the earlier `stages`."""
    implementation = json.dumps([[metric.name, metric.signature()] for metric in of_traces])
    upstream = tuple(stages[name].key for name in STAGES if name in stages)
    return Stage("score", implementation, str(VERSION), upstream, dataset, BLOCK_SIZE)


def translate(translator: Translator, questions: Sequence[Question], tick: Tick) -> Table:
    """Return the emissions of a block, batched if the translator supports it, else sentence by sentence."""
    rows: dict[str, Sequence[Emission]] = {}
    if questions and isinstance(translator, contracts.BatchTranslator):
        batch = translator.translate_batch(questions)
        if len(batch) != len(questions):
            raise TraceError(f"the translator answered {len(batch)} of {len(questions)} questions", questions[0].id)
        rows = {q.id: emissions for q, emissions in zip(questions, batch, strict=True)}
    for q in questions:
        if q.id not in rows:
            rows[q.id] = stream(translator, q)
        tr.check_emissions(q, rows[q.id])
        tick(1)
    return tr.emissions_table(rows)


def stream(translator: Translator, question: Question) -> list[Emission]:
    """Translate a question sentence by sentence; a word's delay is the number of source words pulled before it."""
    emissions: list[Emission] = []
    for i, sentence in enumerate(question.sentences):
        source = CountedSource(sentence, question.id)
        for written in translator.translate(source):
            token, erase = written if isinstance(written, contracts.Write) else (written, 0)
            emissions.append(Emission(i, token, source.read, source.ended, erase))
    return emissions


class CountedSource:
    """Iterator over a sentence's words that counts the words pulled, g(j)."""

    def __init__(self, words: Sequence[str], question: str = "") -> None:
        self._words = iter(words)
        self.question = question  # id, for messages
        self.read = 0  # words pulled so far
        self.ended = False  # StopIteration was raised

    def __iter__(self) -> CountedSource:
        return self

    def __next__(self) -> str:
        try:
            word = next(self._words)
        except StopIteration:
            self.ended = True
            raise
        self.read += 1
        return word


def guess(guesser: Guesser, questions: Sequence[Question], emissions: Mapping[str, tr.Emissions], tick: Tick) -> Table:
    """Return a block's guesses at every step, using `guess_prefixes` if available and words are only appended."""
    rows: dict[str, Sequence[Sequence[Guess]]] = {}
    for q in questions:
        steps = tr.QuestionTrace(q, emissions[q.id]).prefixes
        if not steps.words:
            rows[q.id] = []
        elif q.asked and q.asked.question:
            if not isinstance(guesser, contracts.AnswersQuestions):
                raise ConfigError(f"question {q.id} asks {q.asked.question!r:.60}; the guesser has no `answer`")
            rows[q.id] = guesser.answer(q.asked.question, steps.texts, N_GUESSES)
        elif steps.append_only and isinstance(guesser, contracts.IncrementalGuesser):
            rows[q.id] = guesser.guess_prefixes(steps.words, N_GUESSES)
        else:
            rows[q.id] = guesser.guess(steps.texts, N_GUESSES)
        tr.check_guesses(q, len(steps.words), rows[q.id], N_GUESSES)
        tick(1)
    return tr.guesses_table(rows)


def buzz(
    buzzer: Buzzer | contracts.OracleBuzzer,
    questions: Sequence[Question],
    guesses: Mapping[str, tr.Guesses],
    tick: Tick,
) -> Table:
    """Return the buzzes of a block.  Only a buzzer with the attribute `oracle = True` sees the answer."""
    rows: dict[str, Sequence[Buzz]] = {}
    for q in questions:
        history = guesses[q.id]
        if isinstance(buzzer, contracts.OracleBuzzer) and buzzer.oracle:
            rows[q.id] = buzzer.decide_with_answer(history, q.page)
        else:
            rows[q.id] = cast(Buzzer, buzzer).decide(history)
        tr.check_buzzes(q, len(history), rows[q.id])
        tick(1)
    return tr.buzzes_table(rows)


def score(metrics: Sequence[Metric], traces: Sequence[QuestionTrace], tick: Tick) -> Table:
    """Return the additive statistics of a block, and the numbers of questions and sentences with empty final output."""
    rows: dict[str, dict[str, Score]] = {}
    for trace in traces:
        scores = {metric.name: _score(metric, trace) for metric in metrics}
        empty = sum(not hypothesis for hypothesis in trace.hypotheses)
        scores[EMPTY_QUESTIONS] = Score((float(not any(trace.hypotheses)), 1.0))
        scores[EMPTY_SENTENCES] = Score((float(empty), float(len(trace.hypotheses))))
        rows[trace.question.id] = scores
        tick(1)
    return tr.scores_table(rows)


def _score(metric: Metric, trace: QuestionTrace) -> Score:
    try:
        return Score(tuple(map(float, metric.stats(trace))))
    except NotComputable as refusal:
        return Score(None, str(refusal))


def _unknown_pages(guesser: Guesser, questions: Sequence[Question]) -> int | None:
    """Return how many questions have a page that the guesser cannot name; None if it has no page list.

    Prints the nearest page of the first such questions, which may be misspelt.
    """
    if not isinstance(guesser, contracts.KnowsPages) or guesser.pages is None:
        return None
    pages = {answer_key(page): page for page in guesser.pages}
    unknown = [q for q in questions if answer_key(q.page) not in pages]
    if unknown:
        from sqa.pipeline.usage import misspelt

        print(*misspelt(unknown, pages), sep="", end="", file=sys.stderr)
    return len(unknown)
