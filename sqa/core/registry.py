"""Components by name, imported on first use.

An entry is "module:attribute".  The attribute is a function `build(config: XConfig) -> component` whose one
parameter is annotated with a frozen dataclass, which defines the config keys.  A user-defined component needs no
entry: its name is "your.module:build" or "your_file.py:build".  The attribute may also be a class; the fields of a
dataclass are its config keys.

Plugins add entries.  A plugin is one entry point of the group `sqa`; importing the module that it names registers
the plugin's components:

    [project.entry-points.sqa]
    mine = "my_package.parts"          # calls GUESSERS.register("mine", "my_package.guesser:build") and the like

Plugins are imported once: when a registry lacks a requested name, or when all names are listed.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from sqa.core import paths
from sqa.core.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from sqa.core.own.code import Code


Size = Literal["large", "unknown"]  # of a model that needs all processors


@dataclass(frozen=True, slots=True)
class NoKeys:
    """Config of a part whose build function takes no parameter."""


@dataclass(frozen=True)
class Registry:
    """Names of one kind of component; no component is imported before `resolve`."""

    kind: str  # "translator", "guesser", "buzzer", ...
    entries: dict[str, str]  # name -> "module:attribute"
    sizes: dict[str, Size] = field(default_factory=dict)  # name -> size of its model; the others have small ones

    def register(self, name: str, target: str, size: Size | None = None) -> None:
        """Add an entry, as plugins do; raises ValueError if the name is registered with another target.

        Args:
            name: Name in configs.
            target: "module:attribute".
            size: "large" or "unknown" if the part's model may need more than one thread; None for a small model.
        """
        if size is not None:
            self.sizes[name] = size
        if self.entries.setdefault(name, target) != target:
            raise ValueError(f"the {self.kind} {name!r} is already registered: {self.entries[name]}")

    def names(self) -> tuple[str, ...]:
        """Return the registered names, sorted."""
        load_plugins()
        return tuple(sorted(self.entries))

    def target(self, name: str) -> str:
        """Return the "module:attribute" of a name.

        A name with a colon is its own target; the path of its file becomes absolute.  Raises ConfigError for an
        unknown name.
        """
        if name not in self.entries and not paths.in_file(name):
            load_plugins()
        if name in self.entries:
            return self.entries[name]
        if paths.in_file(name):
            return paths.located(name)
        if ":" in name:
            return name
        names = f"known: {', '.join(self.names())}, or your own 'module:build' or 'file.py:build'"
        raise ConfigError(f"unknown {self.kind} {name!r}{did_you_mean(name, self.entries)}; {names}{more_parts()}")

    def identity(self, name: str) -> str:
        """Return the text that stands for a name in store keys.

        For a registered name this is the name itself, so that its code can move.
        """
        self.target(name)  # raises ConfigError for an unknown name
        return paths.short(name)

    def resolve(self, name: str) -> Callable[..., Any]:
        """Import and return the build function of a name.

        Raises ConfigError if the function is missing or not callable.
        """
        target = self.target(name)
        home, attribute = paths.split(target)
        try:
            module = _code(target).root if paths.is_own(target) else import_module(home)
        except (ConfigError, ImportError, AttributeError, ValueError, TypeError) as error:
            from sqa.core.packages import not_imported

            raise not_imported(f"{self.kind} {name!r}", target, error) from error
        if not hasattr(module, attribute):
            near = did_you_mean(attribute, filter(str.isidentifier, vars(module)))
            raise ConfigError(f"{self.kind} {name!r}: module {home!r} has no {attribute!r}{near}")
        build: Callable[..., Any] = getattr(module, attribute)
        if not callable(build):
            raise ConfigError(f"{self.kind} {name!r}: {target} is not a build function but a {type(build).__name__}")
        return build

    def config_class(self, name: str) -> type:
        """Return the config dataclass of a name: its build function's annotation, or the class itself."""
        if name in paths.GIVEN:
            return NoKeys
        build = self.resolve(name)
        try:
            parameters = list(inspect.signature(build).parameters)
            hint = typing.get_type_hints(build).get(parameters[0]) if len(parameters) == 1 else None
        except (TypeError, ValueError, NameError, AttributeError):  # not written in Python, or an undefined annotation
            parameters, hint = ["?"], None
        if not parameters and (inspect.isfunction(build) or inspect.isclass(build)):
            return NoKeys
        cls: Any = hint if isinstance(hint, type) and is_dataclass(hint) else build
        if not (isinstance(cls, type) and is_dataclass(cls)):
            expected = "must be a dataclass, or take no parameter or one that is annotated with a dataclass"
            raise ConfigError(f"{self.kind} {name!r}: {self.target(name)} {expected}; its fields are the config's keys")
        return cls

    def build(self, name: str, config: object) -> Any:
        """Return the component of a name, built from an instance of its config class.

        A user-defined part is wrapped (sqa/core/own/parts.py), as is an object that was given to `sqa.run`.  Raises
        ConfigError if the user's own file was edited after the config was read.
        """
        if name in paths.GIVEN:
            return self._checked(name, name, paths.GIVEN[name], config)
        build = self.resolve(name)
        target = self.target(name)
        if not paths.is_own(target):
            return _made(build, config)
        code = _code(target)
        if type(config) is not self.config_class(name):
            raise ConfigError(f"{self.kind} {paths.short(name)!r}: edited since its config was read; read it again")
        from sqa.core.own.code import printing_to_stderr

        try:
            with printing_to_stderr():
                part = _made(build, config)
        except (OSError, SystemExit) as error:
            ends = "it calls sys.exit(); raise an error instead: " if isinstance(error, SystemExit) else ""
            raise DataError(f"{self.kind} {paths.short(name)!r}: {ends}{error}") from error
        paths.BUILT.append(code)
        return self._checked(paths.short(target), code.digest, part, config)

    def _checked(self, name: str, digest: str, part: Any, config: object) -> Any:
        from sqa.core.own.parts import component

        return component(self.kind, name, digest, part, config)


def _code(target: str) -> Code:
    from sqa.core.own.code import load

    return load(target)


def _made(build: Callable[..., Any], config: object) -> Any:
    """Return the part; if the build function is a class, `config` may already be its instance."""
    if isinstance(config, NoKeys):
        return build()
    return config if isinstance(build, type) and isinstance(config, build) else build(config)


@cache
def load_plugins() -> tuple[str, ...]:
    """Import all installed plugins and return their names; one whose import fails is skipped with a line on stderr."""
    from importlib.metadata import entry_points  # its import is slower than the rest of this package

    points = sorted(entry_points(group="sqa"))
    for point in points:
        try:
            point.load()
        except Exception as error:  # foreign code may raise any exception
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            print(f"sqa: the plugin {point.name} ({point.value}) is skipped: {reason}", file=sys.stderr)
    return tuple(point.name for point in points)


def more_parts() -> str:
    """Return "" if sqa-services is installed, else the end of a message that names the command which installs it."""
    from sqa.core.packages import install_command

    installed = "sqa-services" in load_plugins()
    return "" if installed else f"; sqa-services has more: {install_command('sqa[services]')}"


TRANSLATORS = Registry(
    "translator",
    {
        "waitk": "smt.models.waitk_translator:build",
        "prefix": "smt.models.waitk_translator:build_prefix",
        "causal-lm": "smt.lm.causal_lm:build",
        "llm": "smt.engines.llm:build",
        "command": "smt.engines.command:build",
        "pretrained": "smt.engines.pretrained:build",
        "pbmt": "smt.statistical.pbmt:build",
        "recorded": "smt.engines.recorded:build",
        "fixed": "smt.engines.fixed:build",
    },
    {"causal-lm": "large", "llm": "large", "pretrained": "large", "command": "unknown"},
)
GUESSERS = Registry(
    "guesser",
    {
        "bert": "guessers.bert.guesser:build",
        "bm25": "guessers.retrieval.bm25:build",
        "tfidf": "guessers.retrieval.tfidf:build",
        "gru": "guessers.gru.guesser:build",
        "rerank": "guessers.rerank.guesser:build",
        "elasticsearch": "guessers.elastic.guesser:build",
        "llm": "guessers.llm.guesser:build",
    },
    {"bert": "large", "llm": "large"},
)
BUZZERS = Registry(
    "buzzer",
    {
        "threshold": "buzzers.threshold:build",
        "logistic": "buzzers.learnt:logistic",
        "mlp": "buzzers.learnt:mlp",
        "recurrent": "buzzers.recurrent:build",
        "oracle": "buzzers.oracle:build",
    },
)
POLICIES = Registry(  # policies of full-input systems; an entry is a class, whose keys smt/policies/prefixes.py reads
    "policy",
    {
        "wait-k": "smt.policies.waitk:WaitK",
        "local-agreement": "smt.policies.policy:LocalAgreement",
        "hold": "smt.policies.policy:Hold",
        "retranslate": "smt.policies.policy:Retranslate",
    },
)
QUALITY = Registry(  # metrics of texts: sqa/metrics/quality/text_metric.py
    "quality metric",
    {
        "comet": "sqa.metrics.quality.comet:build",
        "bertscore": "sqa.metrics.quality.bertscore:build",
        "bleurt": "sqa.metrics.quality.bleurt:build",
        "scores": "sqa.metrics.quality.score_file:build",
    },
    dict.fromkeys(("comet", "bertscore", "bleurt"), "large"),
)
SCORERS = Registry(  # models that score words of a translation: sqa/diagnose/detector.py
    "scorer", {"language-model": "smt.lm.word_scores:build"}
)


def model_size(name: str) -> Size | None:
    """Return the size of the model of a part, of any kind; None: it is fastest on one thread."""
    kinds = (TRANSLATORS, GUESSERS, BUZZERS, POLICIES, QUALITY)
    if not any(name in registry.entries for registry in kinds):
        load_plugins()
    return next((registry.sizes[name] for registry in kinds if name in registry.sizes), None)


COMMANDS = Registry(  # an entry names a typer.Typer: the group of this name, or one that contains the command
    "command",
    {
        **dict.fromkeys(("init", "doctor"), "sqa.cli.start:start_app"),
        "config": "sqa.cli.start:config_app",
        "run": "sqa.cli.runs:runs_app",
        **dict.fromkeys(("sweep", "compare", "export"), "sqa.cli.finished:finished_app"),
        "questions": "sqa.cli.questions:questions_app",
        "ask": "sqa.cli.questions:ask_app",
        **dict.fromkeys(("ablation", "reproduce", "correlate", "report", "latency"), "sqa.cli.evidence:evidence_app"),
        **dict.fromkeys(("diagnose", "view"), "sqa.cli.evidence:evidence_app"),
        "results": "sqa.cli.evidence:results_app",
        "data": "sqa.cli.start:data_app",
        "train": "sqa.cli.train:train_app",
    },
)
ITEMS = Registry("items", {})  # an entry is a function that returns a sequence of experiments.results_book.item.Item
