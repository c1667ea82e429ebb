"""Configs: YAML in, frozen dataclasses out (sqa/files/yaml_reader.py), every problem named at once.

A config class is a frozen dataclass; its fields say which keys exist, of which type, and which have defaults.  A
wrong key, a missing key or a wrong type is a problem "FILE key: what was expected"; so is what the class's own
`__post_init__` raises (ConfigError or ValueError with a message "key: must be ...").

Several configs may lie in one file, each under a name: `FILE.yaml:NAME` wherever a config is named.

    entries:
      small: {output: a, network: {width: 10, depth: 2}}
      wide: {like: small, output: b, network: {width: 50}}     network is {width: 50, depth: 2}

An entry `like` another is that one with the keys that it gives itself; mappings are merged key by key, but one that
names its component (`name`) takes the place of the whole.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from sqa.core import places
from sqa.core.errors import ConfigError
from sqa.core.registry import BUZZERS, GUESSERS, POLICIES, TRANSLATORS, Registry, did_you_mean
from sqa.files.yaml_reader import Reader, join, kind_of, parse_yaml

C = TypeVar("C")

OTHER_LANGUAGES = "other_languages"  # a key that every translator has
_WRITTEN_IF_ANY = {"written": "if any"}  # of a field that configs without it do not show when written


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """Which questions."""

    name: str  # a question set (`sqa.data.datasets.question_sets()`) or a file of your own questions
    limit: int | None = None  # at most this many questions, from the start; null = all

    def __post_init__(self) -> None:
        from sqa.data.datasets import question_sets

        found = []
        if self.name not in question_sets() and not Path(self.name).suffix:
            near, known = did_you_mean(self.name, question_sets()), ", ".join(question_sets())
            found.append(f"name: unknown question set {self.name!r}{near}; known: {known}, or a file")
        if self.limit is not None and self.limit < 1:
            found.append(f"limit: must be >= 1 or null, got {self.limit}")
        if found:
            raise ConfigError(found)


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


@dataclass(frozen=True, slots=True)
class RunConfig:
    """One run: what `sqa run CONFIG` reads.  Without a guesser or a buzzer only what needs none is scored."""

    name: str  # the run's folder; the config file's name unless the file says otherwise
    dataset: DatasetConfig
    translator: ComponentConfig
    guesser: ComponentConfig | None = None
    buzzer: ComponentConfig | None = None
    metrics: tuple[str, ...] = field(default_factory=lambda: _default_metrics())
    seed: int = 0  # of the resampling behind the intervals
    quality: tuple[QualityConfig, ...] = field(default=(), metadata=_WRITTEN_IF_ANY)
    answers: AnswersConfig | None = field(default=None, metadata=_WRITTEN_IF_ANY)

    @property
    def scored(self) -> tuple[str, ...]:
        """The metrics; where `answers` asks for it, those of answers once more with aliases."""
        from sqa.metrics import aliased

        generous = self.answers is not None and self.answers.matching == "aliases"
        return (*self.metrics, *aliased(self.metrics)) if generous else self.metrics

    def __post_init__(self) -> None:
        from sqa.metrics import ALL, problems

        found = problems(self.metrics)
        names = [entry.name for entry in self.quality]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1 or name in ALL):
            found.append(f"quality: two metrics would be called {name!r}; give one a `name`")
        if not self.metrics:
            found.append("metrics: at least one is needed")
        if self.buzzer is not None and self.guesser is None:
            found.append("buzzer: needs a guesser")
        if self.seed < 0:
            found.append(f"seed: must be >= 0, got {self.seed}")
        found += folder_name(self.name)
        if found:
            raise ConfigError(found)


def folder_name(name: str, key: str = "name") -> list[str]:
    """What is wrong with a name that becomes a folder below --runs: it must not lead anywhere else."""
    plain = name and Path(name).name == name and not name.startswith(".") and name.isprintable()
    return [] if plain else [f"{key}: must be a plain folder name, got {name[:60]!r}"]


def _default_metrics() -> tuple[str, ...]:
    from sqa.metrics import DEFAULT

    return DEFAULT


# ------------------------------------------------------------------------------------------------------ loading


def load_run(path: Path) -> RunConfig:
    """Read a run's YAML.  Raises ConfigError listing all problems."""
    path = Path(path)
    return _named_run(read_yaml(path), name_of(path), str(path), path.parent)


def run_in(content: bytes, name: str) -> RunConfig:
    """The same of a YAML text, called `name` unless it says otherwise."""
    return _named_run(mapping_in(content, name), name, name, None)


def _named_run(mapping: dict[str, Any], name: str, where: str, folder: Path | None) -> RunConfig:
    if not {"dataset", "translator"} & mapping.keys():
        keys = ", ".join(map(str, list(mapping)[:5]))
        expected = "expected the config of a run, with dataset and translator"
        raise ConfigError(
            f"{where}: {expected}, got {keys or 'nothing'} (a training: `sqa train`; a study: its command)"
        )
    mapping.setdefault("name", name)
    try:
        return run_from_mapping(mapping, folder)
    except ConfigError as error:
        raise ConfigError([f"{where} {problem}" for problem in error.problems]) from None


def load(path: Path, cls: type[C]) -> C:
    """Read a YAML file into the frozen dataclass `cls` (dataclasses may nest).  ConfigError lists all problems.

    A `name` is that of the folder of results, see `folder_name`.
    """
    mapping = read_yaml(Path(path))
    name = mapping.get("name")
    problems = folder_name(name) if isinstance(name, str) else []
    config = Reader(problems, SPECIAL).dataclass(cls, mapping, "")
    if config is None or problems:
        raise ConfigError([f"{path} {problem}" for problem in problems])
    return config


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, or in an entry of one (`FILE.yaml:NAME`, see sqa/run/config.py).

    ConfigError if it cannot be read, is not UTF-8 or YAML, or repeats a key.
    """
    file, entry = split_entry(path)
    try:
        mapping = mapping_in(file.read_bytes(), str(file))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    return chosen(mapping, entry, file)


def mapping_in(content: bytes, where: str) -> dict[str, Any]:
    """The mapping in a YAML text; `where` names it in errors, which are those of `read_yaml`."""
    try:
        mapping = parse_yaml(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except ValueError as error:
        if content.lstrip()[:1] == b"{" and content.count(b"\n{"):
            log = f"a config names a log: `translator: {{name: recorded, file: {where}}}`"
            raise ConfigError(f"{where}: expected a config in YAML, got JSON lines; {log}") from error
        raise ConfigError(f"{where}: {error}") from error
    if not isinstance(mapping, dict):
        raise ConfigError(f"{where}: expected a mapping of keys to values, got {kind_of(mapping)}")
    return mapping


def run_from_mapping(mapping: Mapping[str, Any], folder: Path | None = None) -> RunConfig:
    """A RunConfig from plain values (the inverse of `to_mapping`).  ConfigError lists all problems.

    Files of your own parts (`mine.py:build`) are looked for in `folder`, then in the current one.
    """
    problems: list[str] = []

    def part(registry: Registry) -> Callable[[Any, str], ComponentConfig | None]:
        return lambda value, where: _component(registry, value, where, problems, folder)

    def optional(registry: Registry) -> Callable[[Any, str], ComponentConfig | None]:
        return lambda value, where: None if value is None else part(registry)(value, where)

    def metrics(value: Any, where: str) -> Any:
        from sqa.metrics import located

        names = Reader(problems).value(tuple[str, ...], value, where)
        return None if names is None else tuple(located(name, folder) if name else name for name in names)

    hooks = {
        "translator": part(TRANSLATORS),
        "guesser": optional(GUESSERS),
        "buzzer": optional(BUZZERS),
        "metrics": metrics,
        "quality": lambda value, where: _quality(value, where, problems, folder),
    }
    config = Reader(problems).dataclass(RunConfig, mapping, "", hooks)
    if config is None:
        raise ConfigError(problems)
    return config


def of_parts(**parts: Any) -> RunConfig:
    """A run that has these parts, given as in a run's YAML and checked as there: for what names parts and no run."""
    stand_ins = {"name": "parts", "dataset": {"name": "mini-es"}, "translator": {"name": "fixed"}, "metrics": ("bleu",)}
    return run_from_mapping({**stand_ins, **parts})


def to_mapping(config: Any) -> Any:
    """Plain YAML values of a config: what `run_from_mapping` reads back to an equal config."""
    if isinstance(config, (ComponentConfig, places.OwnPart)):
        meant = {OTHER_LANGUAGES: True} if getattr(config, OTHER_LANGUAGES, False) else {}
        return {"name": config.name, **to_mapping(config.options), **meant}
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


def _component(
    registry: Registry, value: Any, where: str, problems: list[str], folder: Path | None = None
) -> ComponentConfig | None:
    """{name: waitk, k: 6} -> ComponentConfig("waitk", WaitKConfig(k=6)); a bare name is {name: NAME}."""
    value = {"name": value} if isinstance(value, str) else value
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        given = f", got {', '.join(map(str, value)) or 'none'}" if isinstance(value, Mapping) else ""
        given = f", got {kind_of(value['name'])}" if given and "name" in value else given
        problems.append(f"{where}.name: expected one of {', '.join(registry.names())}{given}")
        return None
    name = places.located(value["name"], folder)
    try:
        cls = registry.config_class(name)
    except ConfigError as error:
        problems += [f"{where}.name: {problem}" for problem in error.problems]
        return None
    options = {key: option for key, option in value.items() if key != "name"}
    other = registry is TRANSLATORS and options.pop(OTHER_LANGUAGES, False)
    if not isinstance(other, bool):
        problems.append(f"{join(where, OTHER_LANGUAGES)}: expected true or false, got {kind_of(other)}")
    with places.around(cls):
        if "policy" in options and "policy" in typing.get_type_hints(cls):
            options = _with_policy(options, join(where, "policy"), problems, folder)
        config = Reader(problems, SPECIAL).dataclass(cls, options, where)
    return None if config is None else ComponentConfig(name, config, bool(other))


def _with_policy(options: Mapping[str, Any], where: str, problems: list[str], folder: Path | None) -> dict[str, Any]:
    """`policy: {name: wait-k, k: 6}` as the short `policy: wait-k, k: 6`; a policy of your own as an `OwnPart`."""
    policy = options["policy"]
    nested = {"name": policy} if isinstance(policy, str) else policy
    if not isinstance(nested, Mapping) or not isinstance(nested.get("name"), str):
        return dict(options)  # told by the type of the key
    others = {key: option for key, option in options.items() if key != "policy"}
    if ":" in nested["name"]:
        part = _component(POLICIES, nested, where, problems, folder)
        return others if part is None else {**others, "policy": places.OwnPart(part.name, part.options)}
    inner = {key: option for key, option in nested.items() if key != "name"}
    for key in inner:
        if key not in ("k", "n"):
            problems.append(f"{join(where, key)}: unknown{did_you_mean(str(key), ('k', 'n'))}")
        elif key in others:
            problems.append(f"{join(where, key)}: given beside the policy too")
    return {**others, "policy": nested["name"], **{key: inner[key] for key in inner if key in ("k", "n")}}


def _quality(value: Any, where: str, problems: list[str], folder: Path | None = None) -> tuple[QualityConfig, ...]:
    """[{comet: {model: m}}, {external: [program, argument]}] -> QualityConfigs; one mapping stands for its items."""
    from sqa.core.registry import QUALITY

    items: list[tuple[str, Any]] = []  # (kind, options)
    given = [{kind: options} for kind, options in value.items()] if isinstance(value, Mapping) else value
    for i, entry in enumerate(given if isinstance(given, (list, tuple)) else [given]):
        if isinstance(entry, Mapping) and len(entry) == 1:
            items += entry.items()
        else:
            problems.append(f"{where}[{i}]: expected {{comet: {{model: folder}}}} or the like, got {kind_of(entry)}")
    found = []
    for i, (place, options) in enumerate(items):
        kind = places.located(str(place), folder)
        try:
            cls = QUALITY.config_class(kind)
        except ConfigError as error:
            problems += [f"{where}[{i}]: {problem}" for problem in error.problems]
            continue
        short = {"model": options} if isinstance(options, str) else {"command": options}
        mapping = short if isinstance(options, (str, list)) else options
        with places.around(cls):
            config = Reader(problems).dataclass(cls, mapping, f"{where}[{i}].{place}")
        found.append(QualityConfig(kind, config))
    return tuple(found)


def guessers_from(value: Any, where: str, problems: list[str]) -> tuple[ComponentConfig, ...]:
    """[{name: bm25}, gru] -> the guessers of a fusion; what is wrong is added to `problems`."""
    if not isinstance(value, (list, tuple)):
        problems.append(f"{where}: expected a list of guessers, got {kind_of(value)}")
        return ()
    found = (
        entry if isinstance(entry, ComponentConfig) else _component(GUESSERS, entry, f"{where}[{i}]", problems)
        for i, entry in enumerate(value)
    )
    return tuple(part for part in found if part is not None)


# entries of `quality:` and lists of guessers may stand in other configs than a run's
SPECIAL: dict[Any, Any] = {tuple[QualityConfig, ...]: _quality, tuple[ComponentConfig, ...]: guessers_from}


def with_limit(config: RunConfig, limit: int) -> RunConfig:
    """The same run on at most `limit` questions, under a name that says so."""
    dataset = dataclasses.replace(config.dataset, limit=limit)
    return dataclasses.replace(config, name=f"{config.name}-limit{limit}", dataset=dataset)


ENTRIES, LIKE = "entries", "like"
_SUFFIXES = (".yaml", ".yml")


def split_entry(path: Path) -> tuple[Path, str | None]:
    """The file, and the name of the entry in it if one is named."""
    file, colon, name = str(path).rpartition(":")
    return (Path(file), name) if colon and Path(file).suffix in _SUFFIXES else (path, None)


def is_config(text: str) -> bool:
    """Whether this names a YAML file, or an entry of one."""
    return split_entry(Path(text))[0].suffix in _SUFFIXES


def name_of(path: Path) -> str:
    """What a config without a `name` is called: its entry, else its file."""
    file, entry = split_entry(path)
    return entry or file.stem


def chosen(mapping: dict[str, Any], entry: str | None, file: Path) -> dict[str, Any]:
    """The config that is meant: the mapping of a file itself, or one of its entries.

    ConfigError: an entry that is none, none named where there are some, `like` in a circle.
    """
    entries = mapping.get(ENTRIES)
    if not isinstance(entries, Mapping):
        if entry is None:
            return mapping
        raise ConfigError(f"{file}: has no `{ENTRIES}`, so none called {entry!r}; leave `:{entry}` out")
    if others := [str(key) for key in mapping if key != ENTRIES]:
        raise ConfigError(f"{file} {others[0]}: unknown; a file of {ENTRIES} has no other key")
    if entry is None:
        raise ConfigError(f"{file}: holds several configs; say which, {file}:NAME with one of {', '.join(entries)}")
    return _resolved(entries, entry, file, ())


def _resolved(entries: Mapping[Any, Any], name: object, file: Path, within: tuple[object, ...]) -> dict[str, Any]:
    if name not in entries:
        near = did_you_mean(str(name), list(map(str, entries)))
        place = f"{file}:{within[-1]} {LIKE}" if within else f"{file}"
        raise ConfigError(f"{place}: no entry {name!r}{near}; there are {', '.join(map(str, entries))}")
    if name in within:
        raise ConfigError(f"{file}:{within[0]} {LIKE}: a circle, {' -> '.join(map(str, (*within, name)))}")
    own = entries[name]
    if not isinstance(own, Mapping):
        raise ConfigError(f"{file}:{name}: expected a mapping of keys to values")
    if LIKE not in own:
        return dict(own)
    rest = {key: value for key, value in own.items() if key != LIKE}
    return _over(_resolved(entries, own[LIKE], file, (*within, name)), rest)


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        there = below.get(key)
        both = isinstance(there, Mapping) and isinstance(value, Mapping) and "name" not in value
        merged[key] = _over(there, value) if both else value  # type: ignore[arg-type]  # both are mappings
    return merged
