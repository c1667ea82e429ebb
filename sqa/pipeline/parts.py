"""Load and share questions and components; compute fingerprints of components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sqa.core.errors import ConfigError, DataError, SqaError
from sqa.core.own import BUILT, short
from sqa.core.registry import QUALITY, Registry
from sqa.core.types import CONTRACTS, METHODS, ChecksQuestions, Fingerprinted, KnowsLanguages, Question
from sqa.data.datasets import load_questions
from sqa.files.store import dataset_fingerprint
from sqa.pipeline.config import ComponentConfig, DatasetConfig, QualityConfig

if TYPE_CHECKING:
    from sqa.core.own.code import Code


class Parts:
    """Questions and components, each loaded once and shared by all runs with the same Parts.

    `keep`: number of most recently used components to keep; None = all.  A component is rebuilt if its code was
    edited.
    """

    def __init__(self, keep: int | None = None) -> None:
        self._components: dict[str, tuple[Any, tuple[Code, ...]]] = {}
        self._keep = keep
        self._datasets: dict[DatasetConfig, tuple[list[Question], str]] = {}

    def questions(self, config: DatasetConfig) -> list[Question]:
        """Return the questions of a data set."""
        return self.dataset(config)[0]

    def dataset(self, config: DatasetConfig) -> tuple[list[Question], str]:
        """Return the questions of a data set and their fingerprint."""
        if config not in self._datasets:
            questions = load_questions(config.name, config.limit)
            self._datasets[config] = questions, dataset_fingerprint(questions)
        return self._datasets[config]

    def whole(self, config: DatasetConfig) -> Callable[[], Sequence[Question]] | None:
        """Return a loader of the data set without its limit; None if it has no limit."""
        return None if config.limit is None else lambda: self.questions(replace(config, limit=None))

    def component(self, registry: Registry, config: ComponentConfig) -> Any:
        """Return the component of a config.  Raises ConfigError if it lacks a method that its kind requires."""
        identity = f"{registry.kind} {config!r}"
        return self._built(identity, lambda: _component(registry, config))

    def quality(self, config: QualityConfig) -> Any:
        """Return the metric of a `quality:` entry; a `not_computed` metric with the reason if it is unavailable."""
        return self._built(f"quality {config!r}", lambda: _quality(config))

    def codes(self, component: object) -> tuple[Code, ...]:
        """Return the user-defined code of a component; () if it has none."""
        return next((codes for built, codes in self._components.values() if built is component), ())

    def _built(self, identity: str, build: Callable[[], Any]) -> Any:
        """Return a component from the cache, marked as last used; build it if it is missing or its code has changed."""
        entry = self._components.pop(identity, None)
        if entry is None or not all(code.current() for code in entry[1]):
            before = len(BUILT)
            entry = build(), tuple(BUILT[before:])
        self._components[identity] = entry
        while self._keep is not None and len(self._components) > self._keep:
            del self._components[next(iter(self._components))]
        return entry[0]


def _component(registry: Registry, config: ComponentConfig) -> Any:
    built = registry.build(config.name, config.options)
    if isinstance(built, CONTRACTS[registry.kind]):
        return built
    part, method = getattr(built, "own_part", built), METHODS[registry.kind]
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
    config: ComponentConfig,
    translator: Any,
    questions: Sequence[Question],
    whole: Callable[[], Sequence[Question]] | None = None,
) -> None:
    """Raise ConfigError or DataError if the questions do not fit the translator's language or file.

    `whole` loads the full data set, which starts with `questions`.  The translator's file may cover more of that set.
    """
    if isinstance(translator, KnowsLanguages) and not config.other_languages:
        from sqa.pipeline.usage import check_languages

        check_languages(short(config.name), translator.languages, questions)
    if isinstance(translator, ChecksQuestions):
        try:
            translator.check(questions)
        except DataError as error:
            if whole is None:
                raise
            dataset = whole()
            for n in range(len(questions) + 1, len(dataset) + 1):
                with suppress(DataError):
                    translator.check(dataset[:n])
                    return
            raise error from None


def fingerprint_of(registry: Registry, config: ComponentConfig, component: Any) -> str:
    """Return a component's own fingerprint: everything that its output depends on except its inputs."""
    if not isinstance(component, Fingerprinted):
        raise ConfigError(f"{registry.kind} {config.name!r}: a {type(component).__name__} has no fingerprint()")
    return component.fingerprint()


def in_a_line(error: SqaError) -> str:
    """Return an error's text without line breaks."""
    return " ".join(str(error).split())
