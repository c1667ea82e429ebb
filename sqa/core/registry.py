"""Components by name, imported on first use.

An entry is "module:attribute", the attribute a function `build(config: XConfig) -> component` whose one parameter is
annotated with a frozen dataclass: that class says which config keys exist.  Your own component needs no entry: give
"your.module:build" or "your_file.py:build" as its name, or a class; a dataclass has its own fields as config keys.

Plugins add entries.  A plugin is one entry point of the group `sqa`; importing the module that it names registers what
it brings:

    [project.entry-points.sqa]
    mine = "my_package.parts"          # calls GUESSERS.register("mine", "my_package.guesser:build") and the like

Plugins are imported once: when a name is requested that no registry has, or when all names are listed.
"""

from __future__ import annotations

import difflib
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqa.core import own
from sqa.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from sqa.core.own.code import Code


@dataclass(frozen=True, slots=True)
class NoKeys:
    """The config of a part whose build function takes no parameter."""


@dataclass(frozen=True)
class Registry:
    """Names of one kind of component; no component is imported before `resolve`."""

    kind: str  # "translator", "guesser", "buzzer"
    entries: dict[str, str]  # name -> "module:attribute"
    keyed: dict[str, str] = field(default_factory=dict)  # name -> its "module:attribute" in store keys, if another

    def register(self, name: str, target: str, keyed: str | None = None) -> None:
        """Add an entry, as plugins do.  A name registered with another target: ValueError.

        `keyed`: the "module:attribute" in store keys, if another.
        """
        if self.entries.setdefault(name, target) != target:
            raise ValueError(f"the {self.kind} {name!r} is registered already: {self.entries[name]}")
        if keyed is not None:
            self.keyed[name] = keyed

    def names(self) -> tuple[str, ...]:
        """The registered names, sorted."""
        load_plugins()
        return tuple(sorted(self.entries))

    def target(self, name: str) -> str:
        """The "module:attribute" of a name; a name with a colon is its own target.  Unknown: ConfigError."""
        if name not in self.entries and not own.in_file(name):
            load_plugins()
        if name in self.entries:
            return self.entries[name]
        if own.in_file(name):
            return own.located(name)
        if ":" in name:
            current = next((new for new, first in self.keyed.items() if first == name), None)
            return self.entries[current] if current else name
        from sqa.core.packages import OF_SERVICES, absent

        if name in OF_SERVICES.get(self.kind, ()):
            raise absent(self.kind, name)
        names = f"known: {', '.join(self.names())}, or your own 'module:build' or 'file.py:build'"
        raise ConfigError(f"unknown {self.kind} {name!r}{did_you_mean(name, self.entries)}; {names}")

    def identity(self, name: str) -> str:
        """What store keys call a name: its "module:attribute", the first one it had, so that code can move."""
        target = own.short(self.target(name))
        registered = next((each for each, entry in self.entries.items() if entry == target), name)
        return self.keyed.get(registered, target)

    def resolve(self, name: str) -> Callable[..., Any]:
        """Import and return the build function of a name.  Missing or not callable: ConfigError without its value."""
        code, build = self._loaded(name)
        return build if code is None else code.running()(build)

    def config_class(self, name: str) -> type:
        """The dataclass of the config keys of a name: the annotation of its build function, or itself."""
        code, build = self._loaded(name)
        try:
            parameters = list(inspect.signature(build).parameters)
            hint = typing.get_type_hints(build).get(parameters[0]) if len(parameters) == 1 else None
        except (TypeError, ValueError, NameError, AttributeError):  # not of Python, or an undefined annotation
            parameters, hint = ["?"], None
        if not parameters and (inspect.isfunction(build) or inspect.isclass(build)):
            return NoKeys
        cls: Any = hint if isinstance(hint, type) and is_dataclass(hint) else build
        if not (isinstance(cls, type) and is_dataclass(cls)):
            from sqa.core.own.parts import keys_expected

            raise ConfigError(f"{self.kind} {name!r}: {self.target(name)} {keys_expected(build)}")
        if code is not None:
            own.HOMES[cls] = code
        return cls

    def build(self, name: str, config: object) -> Any:
        """The component of a name, made from an instance of its config class."""
        arguments = () if isinstance(config, NoKeys) else (config,)
        code, build = self._loaded(name, anew=True)
        if code is None:
            return build(*arguments)
        from sqa.core.own.parts import component

        with own.watching() as inner, code.running():
            moved = [code.moved(argument) for argument in arguments]
            is_config = isinstance(build, type) and bool(moved) and isinstance(moved[0], build)  # a part may be its own
            try:
                part = moved[0] if is_config else build(*moved)
            except OSError as error:
                raise DataError(f"{self.kind} {own.short(name)!r}: {error}") from error
        code.built(inner)
        return component(self.kind, code, part, config)

    def _loaded(self, name: str, anew: bool = False) -> tuple[Code | None, Callable[..., Any]]:
        """The function that a name's target names and, of a part of your own, its code, executed `anew` if asked."""
        target = self.target(name)
        with self._refusing(name, target):
            if not own.is_own(target):
                return None, self._function(name, target, import_module(own.split(target)[0]))
            from sqa.core.own.code import Code, shared

            code = Code.at(target) if anew else shared(target)
            with code.running():
                return code, self._function(name, target, code.root)

    @contextmanager
    def _refusing(self, name: str, target: str) -> Iterator[None]:
        """Turns errors of an import into a ConfigError that names the part."""
        module, _ = own.split(target)
        try:
            yield
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing in own.PACKAGES and name in self.entries:
                raise
            from sqa.core.packages import INSTALLED_BY, lacking

            if own.in_file(target) and missing not in INSTALLED_BY:
                near = did_you_mean(missing, [file.stem for file in Path(module).parent.glob("*.py")])
                beside = f"neither installed nor a file beside {Path(module).name}{near}"
                raise ConfigError(f"{self.kind} {name!r}: imports {missing!r}, {beside}") from error
            raise lacking(error, f"{self.kind} {name!r}") from error
        except ConfigError as error:  # of a file
            start = f"{self.kind} {name!r}: "
            raise ConfigError([start + problem.removeprefix(start) for problem in error.problems]) from error
        except (ImportError, AttributeError, ValueError, TypeError) as error:
            raise ConfigError(f"{self.kind} {name!r}: {module!r} cannot be imported: {error}") from error

    def _function(self, name: str, target: str, home: object) -> Callable[..., Any]:
        """The attribute of a target in its module."""
        module, attribute = own.split(target)
        if not hasattr(home, attribute):
            module_name = getattr(home, "__name__", "")
            defined = [each for each, value in vars(home).items() if getattr(value, "__module__", None) == module_name]
            near = did_you_mean(attribute, defined)
            raise ConfigError(f"{self.kind} {name!r}: module {module!r} has no {attribute!r}{near}")
        build: Callable[..., Any] = getattr(home, attribute)
        if not callable(build):
            raise ConfigError(f"{self.kind} {name!r}: {target} is no build function but a {type(build).__name__}")
        return build


@cache
def load_plugins() -> None:
    """Import every plugin that is installed; one that cannot be imported is left out, with a line on stderr."""
    from importlib.metadata import entry_points  # takes longer to import than all the rest of this room

    for point in sorted(entry_points(group="sqa")):
        try:
            point.load()
        except Exception as error:  # other people's code may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            print(f"sqa: the plugin {point.name} ({point.value}) is left out: {reason}", file=sys.stderr)


def did_you_mean(name: str, names: typing.Iterable[str], cls: type | None = None) -> str:
    """ ", did you mean 'x'" for the nearest of `names`, "" when none is near; or why `cls` has no such key."""
    if reason := getattr(cls, "ABSENT", {}).get(name):
        return f"; {reason}"
    folded = {candidate.lower(): candidate for candidate in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return f", did you mean {folded[near[0]]!r}" if near else ""


def misspelt(keys: typing.Iterable[str], names: typing.Iterable[str]) -> str:
    """ "'idnex', did you mean 'index'" for the first of `keys` that is near a missing one of `names`; "" for none.

    For files of other programs, which may have further keys.
    """
    present, expected = list(keys), list(names)
    absent_names = {name.lower(): name for name in expected if name not in present}
    for key in present:
        near = [] if key in expected else difflib.get_close_matches(key.lower(), absent_names, n=1, cutoff=0.8)
        if near:
            return f"{key[:60]!r}, did you mean {absent_names[near[0]]!r}"
    return ""


def _registry(kind: str, parts: dict[str, str | tuple[str, str]]) -> Registry:
    """A part's "module:attribute", and after it the one in store keys, if another."""
    places = {name: part if isinstance(part, tuple) else (part, part) for name, part in parts.items()}
    return Registry(kind, {name: now for name, (now, _) in places.items()}, {n: old for n, (_, old) in places.items()})


TRANSLATORS = _registry(
    "translator",
    {
        "waitk": ("smt.models.waitk_translator:build", "smt.neural:build"),
        "prefix": ("smt.models.waitk_translator:build_prefix", "smt.prefix:build"),
        "causal-lm": "smt.lm.translator:build",
        "command": ("smt.engines.command:build", "smt.command:build"),
        "pretrained": ("smt.engines.pretrained:build", "smt.pretrained:build"),
        "ctranslate2": ("smt.engines.ctranslate:build", "smt.ctranslate:build"),
        "pbmt": ("smt.statistical.translator:build", "smt.statistical:build"),
        "recorded": ("smt.engines.recorded:build", "smt.recorded:build"),
        "fixed": ("smt.engines.fixed:build", "smt.fixed:build"),
    },
)
GUESSERS = _registry(
    "guesser",
    {
        "bert": ("guessers.bert.guesser:build", "guessers.bert:build"),
        "bm25": ("guessers.retrieval.bm25:build", "guessers.bm25:build"),
        "tfidf": ("guessers.retrieval.tfidf:build", "guessers.tfidf:build"),
        "gru": ("guessers.gru.guesser:build", "guessers.gru:build"),
        "fusion": "guessers.fusion:build",
        "rerank": "guessers.rerank.guesser:build",
        "elasticsearch": ("guessers.elastic.guesser:build", "guessers.elastic:build"),
        "listener": "guessers.open_qa.listener:build",
        "llm": ("guessers.llm.guesser:build", "guessers.llm:build"),
        "e5": "guessers.e5.guesser:build",
    },
)
BUZZERS = _registry(
    "buzzer",
    {
        "threshold": "buzzers.threshold:build",
        "logistic": ("buzzers.learnt:logistic", "buzzers.logistic:build"),
        "mlp": ("buzzers.learnt:mlp", "buzzers.mlp:build"),
        "recurrent": "buzzers.recurrent:build",
        "oracle": "buzzers.oracle:build",
    },
)
POLICIES = _registry(  # around full-input systems; an entry is the class itself, smt/policies/chosen.py reads its keys
    "policy",
    {
        "wait-k": ("smt.policies.waitk:WaitK", "smt.policies.prefix_waitk:WaitK"),
        "local-agreement": "smt.policies.local_agreement:LocalAgreement",
        "hold": "smt.policies.hold:Hold",
        "retranslate": "smt.policies.retranslate:Retranslate",
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
)
SCORERS = Registry(  # models that score words of a translation: sqa/diagnose/scores.py
    "scorer", {"transformer": "smt.models.scoring:build", "language-model": "smt.lm.word_scores:build"}
)
COMMANDS = Registry(  # an entry is a typer.Typer that holds the command of this name, or is a group of that name
    "command",
    {
        **dict.fromkeys(("init", "doctor"), "sqa.cli.start:start_app"),
        "config": "sqa.cli.start:config_app",
        **dict.fromkeys(("run", "translate", "guess", "buzz", "score"), "sqa.cli.runs:runs_app"),
        **dict.fromkeys(("sweep", "compare", "export", "questions"), "sqa.cli.finished:finished_app"),
        **dict.fromkeys(("ablation", "translations", "guessers", "head-to-head"), "sqa.cli.evidence:evidence_app"),
        **dict.fromkeys(("reproduce", "correlate", "report", "latency"), "sqa.cli.evidence:evidence_app"),
        **dict.fromkeys(("diagnose", "view"), "sqa.cli.evidence:evidence_app"),
        "results": "sqa.cli.evidence:results_app",
        "data": "sqa.cli.data:data_app",
        "store": "sqa.cli.data:store_app",
        "clean": "sqa.cli.train:clean_app",
        "train": "sqa.cli.train:train_app",
        "convert": "sqa.cli.train:convert_app",
        "curve": "sqa.cli.evidence:curve_app",
    },
)
ITEMS = Registry("items", {})  # of plugins: an entry is a function that returns a sequence of experiments.lab.item.Item
