"""Configs: plain values in (sqa/files/yaml_reader.py), frozen dataclasses out, all problems at once.

A config class is a frozen dataclass: its fields say which keys exist, of which type, and which have defaults.  An
unknown key, a missing key or a wrong type is a problem "FILE key: what was expected"; so is what the class's own
`__post_init__` raises (ConfigError or ValueError with a message "key: must be ..."; bounds: sqa/core/errors.py).
"""

from __future__ import annotations

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from sqa.core import own
from sqa.core.errors import ConfigError
from sqa.core.own import OwnPart
from sqa.core.paths import SOUGHT, File, beside
from sqa.core.registry import BUZZERS, GUESSERS, POLICIES, QUALITY, TRANSLATORS, Registry, did_you_mean
from sqa.files.records import GREATEST_WHOLE
from sqa.files.yaml_reader import describe, kind_of, mapping_in, name_of, read_yaml

C = TypeVar("C")

OTHER_LANGUAGES = "other_languages"  # a key that every translator has
PARTS = {"translator": TRANSLATORS, "guesser": GUESSERS, "buzzer": BUZZERS}  # key of a run's config -> registry
_WRITTEN_IF_ANY = {"written": "if any"}  # of a field that is written only where it has a value


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """Which questions."""

    name: File  # a question set (`sqa.data.datasets.question_sets()`) or a file of your own questions
    limit: int | None = None  # at most this many questions, from the start; null = all

    def __post_init__(self) -> None:
        from sqa.data.datasets import question_sets

        problems = []
        if self.name not in question_sets() and not Path(self.name).suffix:
            near, names = did_you_mean(self.name, question_sets()), ", ".join(question_sets())
            problems.append(f"name: unknown question set {self.name!r}{near}; known: {names}, or a file")
        if self.limit is not None and self.limit < 1:
            problems.append(f"limit: must be >= 1 or null, got {self.limit}")
        if problems:
            raise ConfigError(problems)


@dataclass(frozen=True, slots=True)
class ComponentConfig:
    """A translator, guesser or buzzer: its registered name and an instance of its own config class."""

    name: str
    options: Any  # instance of the dataclass that the component's build function takes
    other_languages: bool = False  # of a translator: it may be given questions of other languages than its own


@dataclass(frozen=True, slots=True)
class QualityConfig:
    """An entry of `quality:`, a metric that needs a model, a program or a file: sqa/metrics/quality/text_metric.py."""

    kind: str  # "comet", "external", ...
    options: Any  # instance of the dataclass that the kind's build function takes

    @property
    def name(self) -> str:
        """What the report calls it."""
        return getattr(self.options, "name", self.kind)

    def for_run(self, run: str) -> QualityConfig:
        """The same with `{run}` in the name of a file replaced by the run's name."""
        file = getattr(self.options, "file", "")
        if "{run}" not in file:
            return self
        return QualityConfig(self.kind, dataclasses.replace(self.options, file=file.replace("{run}", run)))


@dataclass(frozen=True, slots=True)
class AnswersConfig:
    """Which answers are right."""

    matching: Literal["strict", "aliases"] = "strict"  # aliases: beside strict, as Quizbowl matches them (ew@aliases)


def _default_metrics() -> tuple[str, ...]:
    from sqa.metrics import DEFAULT

    return DEFAULT


@dataclass(frozen=True, slots=True)
class RunConfig:
    """One run: what `sqa run CONFIG` reads.  Without a guesser or a buzzer only what needs none is scored."""

    name: str  # the run's folder; the config file's name unless the file says otherwise
    dataset: DatasetConfig
    translator: ComponentConfig
    guesser: ComponentConfig | None = None
    buzzer: ComponentConfig | None = None
    metrics: tuple[str, ...] = field(default_factory=_default_metrics)
    seed: int = 0  # of the resampling behind the intervals
    quality: tuple[QualityConfig, ...] = field(default=(), metadata=_WRITTEN_IF_ANY)
    answers: AnswersConfig | None = field(default=None, metadata=_WRITTEN_IF_ANY)

    @property
    def scored(self) -> tuple[str, ...]:
        """The metrics; with `answers: {matching: aliases}` those of answers a second time with aliases."""
        from sqa.metrics import aliased

        generous = self.answers is not None and self.answers.matching == "aliases"
        return (*self.metrics, *aliased(self.metrics)) if generous else self.metrics

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Let another process read a config with parts in files again: it has to import them itself."""
        mapping = to_mapping(self)
        return (run_from_mapping, (mapping,)) if _in_files(mapping) else object.__reduce_ex__(self, protocol)

    def __post_init__(self) -> None:
        from sqa.metrics import ALL, problems

        wrong = problems(self.metrics)
        names = [entry.name for entry in self.quality]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1 or name in ALL):
            wrong.append(f"quality: two metrics would be called {name!r}; give one a `name`")
        if not self.metrics:
            wrong.append("metrics: at least one is needed")
        if self.buzzer is not None and self.guesser is None:
            wrong.append("buzzer: needs a guesser")
        if self.seed < 0:
            wrong.append(f"seed: must be >= 0, got {self.seed}")
        wrong += folder_name(self.name)
        if wrong:
            raise ConfigError(wrong)


def _in_files(value: Any) -> bool:
    """Return whether a value of a config, or a key, names a part by its file."""
    if isinstance(value, Mapping):
        return any(map(_in_files, (*value, *value.values())))
    return any(map(_in_files, value)) if isinstance(value, list) else isinstance(value, str) and own.in_file(value)


def folder_name(name: str, key: str = "name") -> list[str]:
    """What is wrong with a name that becomes a folder below --runs: it must not lead anywhere else."""
    if name == "store":
        return [f"{key}: 'store' is the folder of stored results below --runs; give the run another name"]
    plain = name and Path(name).name == name and not name.startswith(".") and name.isprintable()
    return [] if plain else [f"{key}: must be a plain folder name, got {name[:60]!r}"]


# ------------------------------------------------------------------------------------------------------ loading


def load_run(path: Path) -> RunConfig:
    """Read a run's YAML.  Raises ConfigError listing all problems."""
    path = Path(path)
    return _named_run(read_yaml(path), name_of(path), str(path), path.parent)


def run_in(content: bytes, name: str, folder: Path | None = None) -> RunConfig:
    """The same of a YAML text, called `name` unless it says otherwise; `folder` is that of the file it comes from."""
    return _named_run(mapping_in(content, name), name, name, folder)


def _named_run(mapping: dict[str, Any], name: str, source: str, folder: Path | None) -> RunConfig:
    if not {"dataset", "translator"} & mapping.keys():
        keys = ", ".join(map(str, list(mapping)[:5]))
        expected = "expected the config of a run, with dataset and translator"
        raise ConfigError(
            f"{source}: {expected}, got {keys or 'nothing'} (a training: `sqa train`; a study: its command)"
        )
    try:
        return run_from_mapping({"name": name, **mapping}, folder)
    except ConfigError as error:
        raise ConfigError([f"{source} {problem}" for problem in error.problems]) from None


def load(path: Path, cls: type[C], values: Mapping[str, Any] | None = None) -> C:
    """Read a YAML file into the frozen dataclass `cls` (dataclasses may nest).  ConfigError lists all problems.

    A `name` is that of the folder of results, see `folder_name`.  `values` replace those of the file.
    """
    mapping = read_yaml(path) if values is None else values
    name = mapping.get("name")
    reader = Reader(Path(path).parent)
    if isinstance(name, str):
        reader.problems += folder_name(name)
    config = reader.record(cls, mapping, "")
    if config is None or reader.problems:
        raise ConfigError([f"{path} {problem}" for problem in reader.problems])
    return config


def run_from_mapping(mapping: Mapping[str, Any], folder: Path | None = None) -> RunConfig:
    """A RunConfig from plain values (the inverse of `to_mapping`).  ConfigError lists all problems.

    Files are searched in `folder`, then in the current one (`sqa.core.paths.File`).
    """
    from sqa.metrics import located

    names = mapping.get("metrics")
    if isinstance(names, (list, tuple)):
        whole = [located(name, folder) if isinstance(name, str) and name else name for name in names]
        mapping = {**mapping, "metrics": whole}
    reader = Reader(folder)
    config = reader.record(RunConfig, mapping, "")
    if config is None:
        raise ConfigError(reader.problems)
    return config


def of_parts(**parts: Any) -> RunConfig:
    """A run with these parts, given and checked as in a run's YAML: for what names parts and no run."""
    stand_ins = {"name": "parts", "dataset": {"name": "mini-es"}, "translator": {"name": "fixed"}, "metrics": ("bleu",)}
    return run_from_mapping({**stand_ins, **parts})


def with_limit(config: RunConfig, limit: int) -> RunConfig:
    """The same run on at most `limit` questions, under a name that says so."""
    dataset = dataclasses.replace(config.dataset, limit=limit)
    return dataclasses.replace(config, name=f"{config.name}-limit{limit}", dataset=dataset)


def to_mapping(config: Any) -> Any:
    """Plain YAML values of a config: what `run_from_mapping` reads back to an equal config."""
    if isinstance(config, (ComponentConfig, OwnPart)):
        flag = {OTHER_LANGUAGES: True} if getattr(config, OTHER_LANGUAGES, False) else {}
        return {"name": config.name, **to_mapping(config.options), **flag}
    if isinstance(config, QualityConfig):
        return {config.kind: to_mapping(config.options)}
    if is_dataclass(config):
        shown = (f.name for f in fields(config) if getattr(config, f.name) or f.metadata != _WRITTEN_IF_ANY)
        return {name: to_mapping(getattr(config, name)) for name in shown}
    if isinstance(config, Mapping):
        return {key: to_mapping(value) for key, value in config.items()}
    if isinstance(config, (tuple, list)):
        return [to_mapping(value) for value in config]
    return str(config) if isinstance(config, Path) else config


# --------------------------------------------------------------------------------------------- values and types


class Reader:
    """Plain values as values of a type; collects `problems`, lines "key: what was expected, what was got".

    `key` is dotted, as the author finds it in the file: "translator.k", "metrics[2]".  What cannot be read is None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: that of the config, where files are searched first."""
        self.folder = folder
        self.problems: list[str] = []

    def record(self, cls: type, value: Any, key: str) -> Any:
        """An instance of a dataclass from a mapping."""
        if not isinstance(value, Mapping):
            return self._add(key, f"expected a mapping of keys to values, got {kind_of(value)}")
        before = len(self.problems)
        declared = {f.name: f for f in fields(cls) if f.init}
        hints = typing.get_type_hints(cls, include_extras=True)
        for name in value:
            if name not in declared:
                self._add(join(key, name), f"unknown{did_you_mean(str(name), declared, cls)}")
        arguments: dict[str, Any] = {}
        for name, f in declared.items():
            inner = join(key, name)
            if name not in value:
                if f.default is MISSING and f.default_factory is MISSING:
                    self._add(inner, f"missing; expected {describe(hints[name])}")
            elif hints[name] == ComponentConfig or hints[name] == ComponentConfig | None:
                if value[name] is not None or hints[name] == ComponentConfig:
                    arguments[name] = self.component(PARTS[name], value[name], inner)
            else:
                arguments[name] = self.value(hints[name], value[name], inner)
        if len(self.problems) > before:
            return None
        try:
            return cls(**arguments)
        except ConfigError as error:
            self.problems.extend(_placed(key, problem) for problem in error.problems)
        except ValueError as error:
            self.problems.append(_placed(key, str(error)))
        return None

    def component(self, registry: Registry, value: Any, key: str) -> ComponentConfig | None:
        """{name: waitk, k: 6} -> ComponentConfig("waitk", WaitKConfig(k=6)); a bare name is {name: NAME}."""
        value = {"name": value} if isinstance(value, str) else value
        if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
            given = f", got {', '.join(map(str, value)) or 'none'}" if isinstance(value, Mapping) else ""
            given = f", got {kind_of(value['name'])}" if given and "name" in value else given
            self._add(f"{key}.name", f"expected one of {', '.join(registry.names())}{given}")
            return None
        name = own.located(value["name"], self.folder)
        try:
            cls = registry.config_class(name)
        except ConfigError as error:
            self.problems += [f"{key}.name: {problem}" for problem in error.problems]
            return None
        options = {name: option for name, option in value.items() if name != "name"}
        other = registry is TRANSLATORS and options.pop(OTHER_LANGUAGES, False)
        if not isinstance(other, bool):
            self._add(join(key, OTHER_LANGUAGES), f"expected true or false, got {kind_of(other)}")
        if "policy" in options and "policy" in typing.get_type_hints(cls):
            options = self._with_policy(options, join(key, "policy"))
        config = self.record(cls, options, key)
        return None if config is None else ComponentConfig(name, config, bool(other))

    def _with_policy(self, options: Mapping[str, Any], key: str) -> dict[str, Any]:
        """`policy: {name: wait-k, k: 6}` as the short `policy: wait-k, k: 6`; a policy of your own as an `OwnPart`."""
        policy = options["policy"]
        nested = {"name": policy} if isinstance(policy, str) else policy
        if not isinstance(nested, Mapping) or not isinstance(nested.get("name"), str):
            return dict(options)  # the key's type says what is wrong
        others = {name: option for name, option in options.items() if name != "policy"}
        if ":" in nested["name"]:
            part = self.component(POLICIES, nested, key)
            return others if part is None else {**others, "policy": OwnPart(part.name, part.options)}
        inner = {name: option for name, option in nested.items() if name != "name"}
        for name in inner:
            if name not in ("k", "n"):
                self._add(join(key, name), f"unknown{did_you_mean(str(name), ('k', 'n'))}")
            elif name in others:
                self._add(join(key, name), "given beside the policy too")
        return {**others, "policy": nested["name"], **{name: inner[name] for name in inner if name in ("k", "n")}}

    def guessers(self, value: Any, key: str) -> tuple[ComponentConfig, ...]:
        """[{name: bm25}, gru] -> the guessers of a fusion."""
        if not isinstance(value, (list, tuple)):
            self._add(key, f"expected a list of guessers, got {kind_of(value)}")
            return ()
        parts = (
            entry if isinstance(entry, ComponentConfig) else self.component(GUESSERS, entry, f"{key}[{i}]")
            for i, entry in enumerate(value)
        )
        return tuple(part for part in parts if part is not None)

    def _quality(self, value: Any, key: str) -> tuple[QualityConfig, ...]:
        """[{comet: {model: m}}, {external: [program, argument]}] -> QualityConfigs; a mapping stands for its items."""
        items: list[tuple[str, Any]] = []  # (kind, options)
        given = [{kind: options} for kind, options in value.items()] if isinstance(value, Mapping) else value
        for i, entry in enumerate(given if isinstance(given, (list, tuple)) else [given]):
            if isinstance(entry, Mapping) and len(entry) == 1:
                items += entry.items()
            else:
                self._add(f"{key}[{i}]", f"expected {{comet: {{model: folder}}}} or the like, got {kind_of(entry)}")
        entries = []
        for i, (written, options) in enumerate(items):
            kind = own.located(str(written), self.folder)
            try:
                cls = QUALITY.config_class(kind)
            except ConfigError as error:
                self.problems += [f"{key}[{i}]: {problem}" for problem in error.problems]
                continue
            short = {"model": options} if isinstance(options, str) else {"command": options}
            mapping = short if isinstance(options, (str, list)) else options
            config = self.record(cls, mapping, f"{key}[{i}].{written}")
            entries.append(QualityConfig(kind, config))
        return tuple(entries)

    def value(self, hint: Any, value: Any, key: str) -> Any:
        """`value` as the type `hint`."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if hint is Any:  # checked by the part that takes it
            return value
        if origin is typing.Annotated:
            is_file = SOUGHT in arguments and isinstance(value, str)
            return self.value(arguments[0], beside(value, self.folder) if is_file else value, key)
        if hint == tuple[QualityConfig, ...]:
            return self._quality(value, key)
        if hint == tuple[ComponentConfig, ...]:
            return self.guessers(value, key)
        if origin in (Union, types.UnionType):
            return self._union(hint, arguments, value, key)
        if is_dataclass(hint):
            value = {"name": value} if hint is DatasetConfig and isinstance(value, str) else value
            return self.record(typing.cast(type, hint), value, key)
        if origin is tuple and isinstance(value, (list, tuple)):
            hints = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else arguments
            if len(hints) == len(value):
                pairs = enumerate(zip(hints, value, strict=True))
                return tuple(self.value(item_hint, item, f"{key}[{i}]") for i, (item_hint, item) in pairs)
        if origin in (dict, Mapping) and isinstance(value, Mapping):
            return {
                self.value(arguments[0], name, f"{key} key"): self.value(arguments[1], item, join(key, name))
                for name, item in value.items()
            }
        if origin is Literal:
            if any(value == choice and type(value) is type(choice) for choice in arguments):
                return value
            near = did_you_mean(value, [a for a in arguments if isinstance(a, str)]) if isinstance(value, str) else ""
            return self._add(key, f"expected {describe(hint)}, got {value!r}{near}")
        if hint in (int, float) and _fits(hint, value) and not _finite(hint, value):
            kind = "finite number" if hint is float else "whole number of 64 bits"
            return self._add(key, f"expected a {kind}, got {kind_of(value)}")
        if isinstance(hint, type) and _fits(hint, value):
            return float(value) if hint is float else Path(value) if hint is Path else value
        return self._add(key, f"expected {describe(hint)}, got {kind_of(value)}{_unquoted(hint, value)}")

    def _union(self, hint: Any, arguments: tuple[Any, ...], value: Any, key: str) -> Any:
        """The first member of a union that takes the value; the exact type before a wider one."""
        if value is None and type(None) in arguments:
            return None
        if OwnPart in arguments:
            if isinstance(value, OwnPart):
                return value
            [plain] = (argument for argument in arguments if argument is not OwnPart)
            return self.value(plain, value, key)
        for argument in sorted(arguments, key=lambda a: type(value) is not a):
            trial = Reader(self.folder)
            result = trial.value(argument, value, key)
            if not trial.problems:
                return result
        nested = [a for a in arguments if is_dataclass(a)]
        if len(nested) == 1 and isinstance(value, Mapping):
            return self.record(typing.cast(type, nested[0]), value, key)
        return self._add(key, f"expected {describe(hint)}, got {kind_of(value)}")

    def _add(self, key: str, problem: str) -> None:
        self.problems.append(f"{key}: {problem}")


def _unquoted(hint: Any, value: Any) -> str:
    """The advice on a number between quotation marks where a number is expected."""
    try:
        quoted = hint in (int, float) and isinstance(value, str) and math.isfinite(hint(value))
    except ValueError:
        return ""
    return "; write it without quotes" if quoted else ""


def _fits(hint: type, value: Any) -> bool:
    """Exact types, except that an int is a float and a str is a Path; a bool is no number."""
    if hint is Path:
        return isinstance(value, (str, Path))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is hint


def _finite(hint: type, value: float) -> bool:
    """No NaN, no infinity, no integer beyond the greatest float, or for an int beyond 64 bits."""
    most = GREATEST_WHOLE if hint is int else sys.float_info.max
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= most


def join(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


def _placed(key: str, problem: str) -> str:
    """A component's own "key: ..." below its key in the file; a key that the problem repeats is written once."""
    last = key.rpartition(".")[2]
    return join(key, problem.removeprefix(f"{last}.") if last else problem)
