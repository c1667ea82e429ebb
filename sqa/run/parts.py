"""Questions and components, loaded once; what a store's key calls a component."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from sqa.core import own
from sqa.core.errors import ConfigError
from sqa.core.interfaces import CONTRACTS, ChecksQuestions, Fingerprinted, KnowsLanguages
from sqa.core.registry import Registry
from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa.data.languages import code_of
from sqa.files.store import digest
from sqa.run.config import OTHER_LANGUAGES, ComponentConfig, DatasetConfig, QualityConfig, to_mapping


class Parts:
    """Questions and components, each loaded once and shared by all runs that are given the same Parts.

    `keep`: of components, that many used last are kept; None = all.
    """

    def __init__(self, keep: int | None = None) -> None:
        self._components: dict[str, Any] = {}
        self._keep = keep
        self._questions: dict[DatasetConfig, list[Question]] = {}

    def questions(self, config: DatasetConfig) -> list[Question]:
        """The questions of a data set."""
        if config not in self._questions:
            self._questions[config] = load_questions(config.name, config.limit)
        return self._questions[config]

    def component(self, registry: Registry, config: ComponentConfig) -> Any:
        """The component of a config.  One that cannot do what its kind does: ConfigError."""
        identity = digest([registry.kind, config.name, to_mapping(config.options)])
        if identity not in self._components:
            built = registry.build(config.name, config.options)
            if not isinstance(built, CONTRACTS[registry.kind]):
                made = f"{own.short(registry.target(config.name))} made a {type(built).__name__}"
                methods = " or ".join(contract.__name__ for contract in CONTRACTS[registry.kind])
                raise ConfigError(
                    f"{registry.kind} {config.name!r}: {made}, which is no {methods} (sqa/core/interfaces.py)"
                )
            if not isinstance(built, Fingerprinted):
                print(
                    f"sqa: {registry.kind} {own.short(config.name)!r} has no fingerprint(); its results are stored "
                    "under its source and config, so give it one if it reads files or models",
                    file=sys.stderr,
                )
            self._components[identity] = built
        return self._used(identity)

    def quality(self, config: QualityConfig) -> Any:
        """The metric of an entry of `quality:`."""
        from sqa.run.quality_stage import metric_of

        identity = digest(["quality", to_mapping(config)])
        if identity not in self._components:
            self._components[identity] = metric_of(config)
        return self._used(identity)

    def _used(self, identity: str) -> Any:
        """A component that is here, from now on the last one used."""
        found = self._components[identity] = self._components.pop(identity)
        while self._keep is not None and len(self._components) > self._keep:
            del self._components[next(iter(self._components))]
        return found


def check_questions(config: ComponentConfig, translator: Any, questions: Sequence[Question]) -> None:
    """Refuse questions that a translator cannot take: of another language, or not those of its file."""
    if isinstance(translator, KnowsLanguages) and not config.other_languages:
        _check_languages(own.short(config.name), translator.languages, questions)
    if isinstance(translator, ChecksQuestions):
        translator.check(questions)


def _check_languages(name: str, pair: Any, questions: Sequence[Question]) -> None:
    if pair is None:
        return
    two = isinstance(pair, (tuple, list)) and len(pair) == 2
    if not two or not all(code is None or isinstance(code, str) for code in pair):
        expected = "None or a pair of codes such as ('es', 'en')"
        raise ConfigError(f"translator {name!r}: `languages` must be {expected}, got {repr(pair)[:60]}")
    source, target = (None if code is None else code_of(code) for code in pair)
    meant = f"take another one, or say `{OTHER_LANGUAGES}: true` under `translator:` if this is meant"
    if target not in (None, "en"):
        raise ConfigError(f"translator {name!r} writes {target!r}, and answers are looked for in English; {meant}")
    for question in questions:
        if source not in (None, code_of(question.language)):
            where = f"question {question.id} of {question.dataset} is in {question.language!r}"
            raise ConfigError(f"translator {name!r} reads {source!r}, but {where}; {meant}")


def fingerprint_of(registry: Registry, config: ComponentConfig, component: Any) -> str:
    """Everything but its inputs that a component's output depends on.

    What it says itself; of one in a file also the source; of one that says nothing its source and its config.
    """
    said = component.fingerprint() if isinstance(component, Fingerprinted) else None
    target = registry.target(config.name)
    if said is not None and not own.in_file(target):
        return said
    source = own.part_digest(target, component)
    if source is None:
        raise ConfigError(
            f"{registry.kind} {config.name!r}: a {type(component).__name__} has neither fingerprint() nor a source file"
        )
    return digest([source, to_mapping(config.options) if said is None else said])
