"""Load configs: convert plain values to frozen dataclasses and report all problems at once.

A config class is a frozen dataclass whose fields define the keys, their types and defaults.  An unknown key, a
missing key or a wrong type is reported as "FILE key: what was expected".  Errors of the class's own `__post_init__`
(ConfigError or ValueError with a message "key: must be ...") are reported in the same way.  sqa/core/schema.py checks
bounds.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union

from msgspec import ValidationError, convert

from sqa.core import DATA, SOUGHT, ConfigError, Count, File, Whole, beside, checked, describe, kind_of, paths
from sqa.core.errors import did_you_mean
from sqa.core.paths import OwnPart
from sqa.core.registry import BUZZERS, GUESSERS, POLICIES, QUALITY, TRANSLATORS, Registry
from sqa.core.schema import keys
from sqa.files import name_of, read_yaml
from sqa.files.records import GREATEST_WHOLE
from sqa.files.yaml_reader import mapping_in

C = TypeVar("C")

OTHER_LANGUAGES = "other_languages"  # a key of every translator
PARTS = {"translator": TRANSLATORS, "guesser": GUESSERS, "buzzer": BUZZERS}  # key of a run's config -> registry
_WRITTEN_IF_ANY = {"written": "if any"}  # metadata of a field that is written only if it has a value


@dataclass(frozen=True, slots=True)
@checked
class DatasetConfig:
    """The questions of a run."""

    name: Annotated[File, "a question set (`sqa.data.datasets.question_sets()`) or your own file"]
    limit: Annotated[Count | None, "maximum number of questions, from the start; null = all"] = None

    def problems(self) -> list[str]:
        from sqa.data.datasets import question_sets, unknown

        return [] if self.name in question_sets() or Path(self.name).suffix else [unknown(self.name)]


@dataclass(frozen=True, slots=True)
class ComponentConfig:
    """A translator, guesser or buzzer: its registered name and an instance of its own config class."""

    name: str
    options: Annotated[Any, "instance of the dataclass that the component's build function takes"]
    other_languages: Annotated[bool, "whether a translator accepts questions in languages other than its own"] = False


@dataclass(frozen=True, slots=True)
class QualityConfig:
    """An entry of `quality:`, a metric with a model, program or file (sqa/metrics/quality/text_metric.py)."""

    kind: Annotated[str, '"comet", "external", ...']
    options: Annotated[Any, "instance of the dataclass that the kind's build function takes"]

    @property
    def name(self) -> str:
        """Name of the metric in reports."""
        return getattr(self.options, "name", self.kind)

    def for_run(self, run: str) -> QualityConfig:
        """Return this entry with `{run}` in its file name replaced by the run's name."""
        file = getattr(self.options, "file", "")
        if "{run}" not in file:
            return self
        return QualityConfig(self.kind, dataclasses.replace(self.options, file=file.replace("{run}", run)))


def _default_metrics() -> tuple[str, ...]:
    from sqa.metrics import DEFAULT

    return DEFAULT


@dataclass(frozen=True, slots=True)
@checked
class RunConfig:
    """The config of a run.  Without a guesser or buzzer, metrics that need one are not computed."""

    name: Annotated[str, "name of the run's folder; default: the config file's name"]
    dataset: DatasetConfig
    translator: Annotated[ComponentConfig, TRANSLATORS]
    guesser: Annotated[ComponentConfig | None, GUESSERS] = None
    buzzer: Annotated[ComponentConfig | None, BUZZERS] = None
    metrics: tuple[str, ...] = field(default_factory=_default_metrics)
    seed: Annotated[Whole, "seed of the resamples for intervals"] = 0
    quality: tuple[QualityConfig, ...] = field(default=(), metadata=_WRITTEN_IF_ANY)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle a config with user-defined parts as plain values, because the other process must import the parts."""
        mapping = to_mapping(self)
        return (run_from_mapping, (mapping,)) if _names_own(mapping) else object.__reduce_ex__(self, protocol)

    def problems(self) -> list[str]:
        from sqa.metrics import is_known, problems

        wrong = problems(self.metrics)
        names = [entry.name for entry in self.quality]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1 or is_known(name)):
            wrong.append(f"quality: two metrics would be called {name!r}; give one a `name`")
        if not self.metrics:
            wrong.append("metrics: at least one is needed")
        if self.buzzer is not None and self.guesser is None:
            wrong.append("buzzer: needs a guesser")
        return wrong + folder_name(self.name)


def _names_own(value: Any) -> bool:
    """Return True if a value or key may name a user-defined part, that is, contains a colon."""
    if isinstance(value, Mapping):
        return any(map(_names_own, (*value, *value.values())))
    return any(map(_names_own, value)) if isinstance(value, list) else isinstance(value, str) and ":" in value


def folder_name(name: str, key: str = "name") -> list[str]:
    """Return the problems of a name that becomes a folder under --runs."""
    if name == "store":
        return [f"{key}: 'store' is the folder of stored results below --runs; give the run another name"]
    plain = name and Path(name).name == name and not name.startswith(".") and name.isprintable()
    return [] if plain else [f"{key}: must be a plain folder name, got {name[:60]!r}"]


# ------------------------------------------------------------------------------------------------------ loading


def load_run(path: Path) -> RunConfig:
    """Read a run's YAML file.  Raises ConfigError that lists all problems."""
    path = Path(path)
    return _named_run(read_yaml(path), name_of(path), str(path), path.parent)


def run_in(content: bytes, name: str, folder: Path | None = None) -> RunConfig:
    """Read a run's YAML text; `name` is its default name, `folder` the folder of the text's file."""
    return _named_run(mapping_in(content, name), name, name, folder)


def _named_run(mapping: dict[str, Any], name: str, source: str, folder: Path | None) -> RunConfig:
    if not {"dataset", "translator"} & mapping.keys():
        keys = ", ".join(map(str, list(mapping)[:5]))
        expected = "expected the config of a run, with dataset and translator"
        raise ConfigError(
            f"{source}: {expected}, got {keys or 'nothing'} (for training: `sqa train`; for a study: its command)"
        )
    try:
        return run_from_mapping({"name": name, **mapping}, folder)
    except ConfigError as error:
        raise ConfigError([f"{source} {problem}" for problem in error.problems]) from None


def load(path: Path, cls: type[C], values: Mapping[str, Any] | None = None) -> C:
    """Read a YAML file into the (possibly nested) frozen dataclass `cls`.  Raises ConfigError that lists all problems.

    A `name` must be a valid folder name (`folder_name`).  `values`, if given, replace the content of the file.
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
    """Return a RunConfig from plain values, the inverse of `to_mapping`.  Raises ConfigError that lists all problems.

    Files are looked up in `folder`, then in the current folder (`sqa.core.paths.beside`).
    """
    from sqa.metrics import located

    names = mapping.get("metrics")
    if isinstance(names, (list, tuple)):
        whole = [located(name, folder) if isinstance(name, str) and name else name for name in names]
        mapping = {**mapping, "metrics": whole}
    reader = Reader(folder)
    config = reader.record(RunConfig, _with_trained_buzzer(mapping), "")
    if config is None:
        raise ConfigError(reader.problems)
    return config


def _with_trained_buzzer(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set the model of a buzzer without one to the bundled buzzer of the config's guesser, if there is one."""
    buzzer, guesser = (
        {"name": part} if isinstance(part, str) else part for part in map(mapping.get, ("buzzer", "guesser"))
    )
    if not isinstance(buzzer, Mapping) or not isinstance(guesser, Mapping) or "model" in buzzer:
        return mapping
    trained = guesser.get("name")
    if not isinstance(trained, str) or not (DATA / "models" / f"buzzer-{buzzer.get('name')}-{trained}").is_dir():
        return mapping
    known = keys(BUZZERS.config_class(buzzer["name"]))
    return mapping if known["model"].default is None else {**mapping, "buzzer": {**buzzer, "model": trained}}


def read_parts(**values: Any) -> list[Any]:
    """Return the configs of parts from plain values, such as `translator="waitk"`; None stays None.

    Raises ConfigError that lists all problems.
    """
    reader, values = Reader(), dict(_with_trained_buzzer(values))
    parts = [None if value is None else reader.part(PARTS[kind], value, kind) for kind, value in values.items()]
    if reader.problems:
        raise ConfigError(reader.problems)
    return parts


def with_limit(config: RunConfig, limit: int) -> RunConfig:
    """Return the config with at most `limit` questions, and with the limit in its name."""
    dataset = dataclasses.replace(config.dataset, limit=limit)
    return dataclasses.replace(config, name=f"{config.name}-limit{limit}", dataset=dataset)


def to_mapping(config: Any) -> Any:
    """Return a config as plain YAML values, which `run_from_mapping` reads back."""
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
    """Converter from plain values to declared types, which collects `problems` such as "key: expected ..., got ...".

    `key` is the dotted key in the file, such as "translator.k" or "metrics[2]".  Methods return None for most invalid
    values.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Create a reader; files are searched first in `folder`, the folder of the config."""
        self.folder = folder
        self.problems: list[str] = []

    def record(self, cls: type, value: Any, key: str) -> Any:
        """Return a dataclass instance from a mapping; None if there are problems."""
        if not isinstance(value, Mapping):
            return self._add(key, f"expected a mapping of keys to values, got {kind_of(value)}")
        before, known = len(self.problems), keys(cls)
        for name in value:
            if name not in known:
                self._add(join(key, name), f"unknown{did_you_mean(str(name), known, cls)}")
        arguments: dict[str, Any] = {}
        for name, declared in known.items():
            inner = join(key, name)
            if name in value:
                arguments[name] = self.value(declared.hint, value[name], inner)
            elif declared.required:
                about = f": {declared.help}" if declared.help else ""
                self._add(inner, f"missing; expected {describe(declared.hint)}{about}")
        if len(self.problems) > before:
            return None
        try:
            return cls(**arguments)
        except ConfigError as error:
            self.problems.extend(_placed(key, problem) for problem in error.problems)
        except ValueError as error:
            self.problems.append(_placed(key, str(error)))
        return None

    def part(self, registry: Registry, value: Any, key: str) -> ComponentConfig | None:
        """Read a part, such as {name: waitk, k: 6}; the plain name waitk means {name: waitk}."""
        value = {"name": value} if isinstance(value, str) else value
        if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
            given = f", got {', '.join(map(str, value)) or 'none'}" if isinstance(value, Mapping) else ""
            given = f", got {kind_of(value['name'])}" if given and "name" in value else given
            self._add(f"{key}.name", f"expected one of {', '.join(registry.names())}{given}")
            return None
        options = {name: option for name, option in value.items() if name != "name"}
        other = registry is TRANSLATORS and options.pop(OTHER_LANGUAGES, False)
        if not isinstance(other, bool):
            self._add(join(key, OTHER_LANGUAGES), f"expected true or false, got {kind_of(other)}")
        return self._options(registry, value["name"], options, key, f"{key}.name", bool(other))

    def _options(
        self, registry: Registry, written: str, options: Any, key: str, at: str, other: bool = False
    ) -> ComponentConfig | None:
        """Read the options of a part named at the key `at`."""
        name = paths.located(written, self.folder)
        try:
            cls = registry.config_class(name)
        except ConfigError as error:
            self.problems += [f"{at}: {problem}" for problem in error.problems]
            return None
        if isinstance(options, Mapping) and "policy" in options and "policy" in keys(cls):
            options = self._with_policy(options, join(key, "policy"))
        config = self.record(cls, options, key)
        return None if config is None else ComponentConfig(name, config, other)

    def _with_policy(self, options: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """Read a policy of the user, `policy: {name: "mine.py:build", ...}` or its name alone, as an `OwnPart`."""
        policy = options["policy"]
        name = policy.get("name") if isinstance(policy, Mapping) else policy
        if not isinstance(name, str) or ":" not in name:
            return options  # the key's type check reports an invalid value
        part = self.part(POLICIES, policy, key)
        others = {name: option for name, option in options.items() if name != "policy"}
        return others if part is None else {**others, "policy": OwnPart(part.name, part.options)}

    def _quality(self, value: Any, key: str) -> tuple[QualityConfig, ...]:
        """Read `quality:`, a list such as [{comet: {model: m}}, {external: [program]}] or a mapping of kinds."""
        given = [{kind: options} for kind, options in value.items()] if isinstance(value, Mapping) else value
        entries = []
        for i, entry in enumerate(given if isinstance(given, (list, tuple)) else [given]):
            at = f"{key}[{i}]"
            if not isinstance(entry, Mapping) or len(entry) != 1:
                self._add(at, f"expected {{comet: {{model: folder}}}} or the like, got {kind_of(entry)}")
                continue
            [(kind, options)] = entry.items()
            short = {"model": options} if isinstance(options, str) else {"command": options}
            options = short if isinstance(options, (str, list)) else options
            if part := self._options(QUALITY, str(kind), options, f"{at}.{kind}", at):
                entries.append(QualityConfig(part.name, part.options))
        return tuple(entries)

    def value(self, hint: Any, value: Any, key: str) -> Any:
        """Read a value of the type `hint`."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if hint is Any:  # checked later by the part
            return value
        if origin is typing.Annotated:
            if isinstance(registry := arguments[1], Registry):
                absent = value is None and isinstance(None, arguments[0])
                return None if absent else self.part(registry, value, key)
            is_file = SOUGHT in arguments and isinstance(value, str)
            return self.value(arguments[0], beside(value, self.folder) if is_file else value, key)
        if hint == tuple[QualityConfig, ...]:
            return self._quality(value, key)
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
        return self._plain(hint, value, key)

    def _plain(self, hint: Any, value: Any, key: str) -> Any:
        """Read a number, string, truth value, path or choice; an int is accepted as a float."""
        given = float(value) if isinstance(value, float) else value  # convert numpy's subclasses
        try:
            read = convert(given, hint, dec_hook=_path)
        except (ValidationError, TypeError):  # TypeError: a type unknown to msgspec
            return self._add(key, f"expected {describe(hint)}, got {kind_of(value)}{_advice(hint, value)}")
        if isinstance(read, float) and not math.isfinite(read):
            return self._add(key, f"expected a finite number, got {kind_of(value)}")
        if isinstance(read, int) and abs(read) > GREATEST_WHOLE:
            return self._add(key, f"expected a whole number of 64 bits, got {kind_of(value)}")
        return read

    def _union(self, hint: Any, arguments: tuple[Any, ...], value: Any, key: str) -> Any:
        """Read the value as the first member of a union that accepts it, trying the exact type first."""
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


def _path(cls: type, value: Any) -> Path:
    """Convert a string to a path, which msgspec does not support."""
    if cls is not Path:
        raise TypeError(f"no text gives a {cls.__name__}")
    return Path(value)


def _advice(hint: Any, value: Any) -> str:
    """Return a suggestion for a misspelt choice or a quoted number, or "" if there is none."""
    if not isinstance(value, str):
        return ""
    if typing.get_origin(hint) is Literal:
        return did_you_mean(value, [choice for choice in typing.get_args(hint) if isinstance(choice, str)])
    if typing.get_origin(hint) is tuple:
        return f"; write [{value}]"
    try:
        return "; write it without quotes" if hint in (int, float) and math.isfinite(hint(value)) else ""
    except ValueError:
        return ""


def join(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


def _placed(key: str, problem: str) -> str:
    """Prefix a part's problem "key: ..." with the part's key in the file; omit a repeated key."""
    last = key.rpartition(".")[2]
    return join(key, problem.removeprefix(f"{last}.") if last else problem)
