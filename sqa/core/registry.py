"""Components by name, imported only when asked for.

An entry is "module:attribute", the attribute a function `build(config: XConfig) -> component` whose one parameter is
annotated with a frozen dataclass: that class says which config keys exist.  Your own component needs no entry: give
"your.module:build" or "your_file.py:build" as its name.
"""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any

from sqa.core import own
from sqa.core.errors import ConfigError, lacking


@dataclass(frozen=True)
class Registry:
    """Names of one kind of component; nothing is imported before `resolve`."""

    kind: str  # "translator", "guesser", "buzzer"
    entries: Mapping[str, str]  # name -> "module:attribute"
    keyed: Mapping[str, str] = field(default_factory=dict)  # name -> its "module:attribute" in store keys, if another

    def names(self) -> tuple[str, ...]:
        """The registered names, sorted."""
        return tuple(sorted(self.entries))

    def target(self, name: str) -> str:
        """The "module:attribute" of a name; a name with a colon is its own target.  Unknown: ConfigError."""
        if name in self.entries:
            return self.entries[name]
        if own.in_file(name):
            return own.located(name)
        if ":" in name:
            moved = next((new for new, old in self.keyed.items() if old == name), None)
            return self.entries[moved] if moved else name
        raise ConfigError(f"unknown {self.kind} {name!r}{did_you_mean(name, self.entries)}; {self._known()}")

    def identity(self, name: str) -> str:
        """What store keys call a name: its "module:attribute", the first one it had, so that code can move."""
        target = own.short(self.target(name))
        known = next((new for new, place in self.entries.items() if place == target), name)
        return self.keyed.get(known, target)

    def resolve(self, name: str) -> Callable[..., Any]:
        """Import and return the build function of a name.  What is none is refused; it is never shown."""
        target = self.target(name)
        module, _, attribute = target.rpartition(":") if own.in_file(target) else target.partition(":")
        try:
            found = own.attribute(target)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing in own.PACKAGES and name in self.entries:
                raise
            raise lacking(error, f"{self.kind} {name!r}") from error
        except AttributeError as error:
            raise ConfigError(f"{self.kind} {name!r}: module {module!r} has no {attribute!r}") from error
        except ConfigError as error:  # of a file
            raise ConfigError([f"{self.kind} {name!r}: {problem}" for problem in error.problems]) from error
        except (ImportError, ValueError, TypeError) as error:  # a module without a name, or one that cannot be loaded
            raise ConfigError(f"{self.kind} {name!r}: {module!r} cannot be imported: {error}") from error
        if not callable(found):
            raise ConfigError(
                f"{self.kind} {name!r}: {self.target(name)} is no build function but a {type(found).__name__}"
            )
        build: Callable[..., Any] = found
        return build

    def config_class(self, name: str) -> type:
        """The dataclass of the config keys of a name, from the annotation of its build function."""
        build = self.resolve(name)
        try:
            parameters = list(inspect.signature(build).parameters)
            hint = typing.get_type_hints(build).get(parameters[0]) if len(parameters) == 1 else None
        except (TypeError, ValueError, NameError, AttributeError):  # not of Python, or an annotation nobody defined
            hint = None
        if not (isinstance(hint, type) and is_dataclass(hint)):
            raise ConfigError(
                f"{self.kind} {name!r}: {self.target(name)} must take one parameter annotated with a dataclass"
            )
        return hint

    def build(self, name: str, config: object) -> Any:
        """The component of a name, made from an instance of its config class."""
        return self.resolve(name)(config)

    def _known(self) -> str:
        return f"known: {', '.join(self.names())}, or your own 'module:build' or 'file.py:build'"


def did_you_mean(name: str, known: typing.Iterable[str]) -> str:
    """ ", did you mean 'x'" for the nearest of `known`, "" when nothing is near."""
    folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return f", did you mean {folded[near[0]]!r}" if near else ""


TRANSLATORS = Registry(
    "translator",
    {
        "waitk": "smt.models.waitk_translator:build",
        "prefix": "smt.models.prefix_translator:build",
        "causal-lm": "smt.lm.translator:build",
        "command": "smt.engines.command:build",
        "pretrained": "smt.engines.pretrained:build",
        "ctranslate2": "smt.engines.ctranslate:build",
        "pbmt": "smt.statistical.translator:build",
        "moses": "smt.engines.moses:build",
        "simuleval": "smt.simuleval.agent:build",
        "simuleval_service": "smt.simuleval.service:build",
        "recorded": "smt.engines.recorded:build",
        "fixed": "smt.engines.fixed:build",
    },
    keyed={
        "waitk": "smt.neural:build",
        "prefix": "smt.prefix:build",
        "command": "smt.command:build",
        "pretrained": "smt.pretrained:build",
        "ctranslate2": "smt.ctranslate:build",
        "pbmt": "smt.statistical:build",
        "moses": "smt.moses:build",
        "simuleval": "smt.simuleval_agent:build",
        "simuleval_service": "smt.simuleval_service:build",
        "recorded": "smt.recorded:build",
        "fixed": "smt.fixed:build",
    },
)
GUESSERS = Registry(
    "guesser",
    {
        "bert": "guessers.bert.guesser:build",
        "bm25": "guessers.retrieval.bm25:build",
        "tfidf": "guessers.retrieval.tfidf:build",
        "gru": "guessers.gru.guesser:build",
        "fusion": "guessers.fusion.guesser:build",
        "rerank": "guessers.rerank.guesser:build",
        "elasticsearch": "guessers.elastic.guesser:build",
        "llm": "guessers.llm.guesser:build",
        "e5": "guessers.e5.guesser:build",
        "person": "sqa.play.people:build_guesser",
        "qanta_service": "guessers.qanta_service:build",
    },
    keyed={
        "bert": "guessers.bert:build",
        "bm25": "guessers.bm25:build",
        "tfidf": "guessers.tfidf:build",
        "gru": "guessers.gru:build",
        "elasticsearch": "guessers.elastic:build",
        "llm": "guessers.llm:build",
    },
)
BUZZERS = Registry(
    "buzzer",
    {
        "threshold": "buzzers.threshold:build",
        "logistic": "buzzers.logistic:build",
        "mlp": "buzzers.mlp:build",
        "recurrent": "buzzers.recurrent:build",
        "oracle": "buzzers.oracle:build",
        "person": "sqa.play.people:build_buzzer",
        "qanta_service": "buzzers.qanta_service:build",
    },
)
POLICIES = Registry(  # around full-input systems; an entry is the class itself, smt/policies/chosen.py reads its keys
    "policy",
    {
        "wait-k": "smt.policies.prefix_waitk:WaitK",
        "local-agreement": "smt.policies.local_agreement:LocalAgreement",
        "hold": "smt.policies.hold:Hold",
        "retranslate": "smt.policies.retranslate:Retranslate",
    },
)
