"""Override keys of a config: `k=9 guesser.name=gru` on a command line, `k=9` from Python.

A key is written with dots (`guesser.name`, `dataset.limit`), or as its last word if only one part of the run has
that key (`k`, `limit`).  A value is YAML.  `guesser=gru` selects another guesser with its own defaults;
`guesser.name=gru` keeps the other keys; `dataset=xqb-pl` means `dataset.name=xqb-pl`.  The resulting config is checked
like one read from a file.  The run's name includes the overrides, so two configs never share a folder.
"""

import copy
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqa.core import BUZZERS, GUESSERS, TRANSLATORS, Buzzer, ConfigError, Guesser, Translator, did_you_mean, paths
from sqa.files import digest, is_config, name_of, parse_yaml, read_yaml
from sqa.pipeline import config as loading
from sqa.pipeline.config import PARTS, C, ComponentConfig, RunConfig, load_run, read_parts

TOP = tuple(field.name for field in dataclasses.fields(RunConfig))
DIGITS = 8  # digits of the config's digest in a run's name
LONGEST = 80  # characters of a run's name before the digest


Overrides = Mapping[str, Any]  # key, such as "k" or "guesser.name" -> a plain YAML value


def parsed(words: Iterable[str]) -> dict[str, Any]:
    """Parse KEY=VALUE overrides of a command line.  Raises ConfigError that lists all invalid words."""
    return {key: _yaml(f"{key}={text}", text) for key, text in _split(words)}


def parsed_axes(words: Iterable[str]) -> dict[str, list[Any]]:
    """Parse the axes KEY=VALUE,VALUE,... of a sweep; commas within brackets or quotes do not separate values.

    Raises ConfigError for a key without a value or with a repeated value.
    """
    axes = {key: _yaml(f"{key}=[{text}]", f"[{text}]") for key, text in _split(words)}
    problems = [f"{key}: needs at least one value" for key, axis in axes.items() if not axis]
    problems += [f"{key}={text}: occurs twice" for key, axis in axes.items() for text in _repeated(map(in_yaml, axis))]
    if problems:
        raise ConfigError(problems)
    return axes


def load_with(path: Path, overrides: Overrides) -> RunConfig:
    """Load a run's YAML with overrides.  Raises ConfigError that lists all problems."""
    return overridden(read_yaml(path), name_of(path), overrides, str(path), Path(path).parent)


def load_study(path: Path, cls: type[C], words: Sequence[str]) -> C:
    """Load a study's YAML (`sqa.pipeline.config.load`) with KEY=VALUE words.

    The words become part of the study's name unless one of them is `name=...`.  A key is written with dots.  For a
    list, VALUE may omit the brackets: k=3,6,full.
    """
    mapping, overrides = copy.deepcopy(read_yaml(path)), dict[str, Any]()
    for key, text in _split(words):
        text = f"[{text}]" if isinstance(mapping.get(key), list) and not text.startswith("[") else text
        overrides[key] = _yaml(f"{key}={text}", text)
        _set(mapping, key, overrides[key], f"{key}={text}")
    config = loading.load(path, cls, mapping)
    return config if not overrides or "name" in overrides else named(config, _slugs(overrides))


def grid(path: Path, axes: Mapping[str, Sequence[Any]]) -> list[tuple[dict[str, Any], RunConfig]]:
    """Return every combination of the axes' values with its config; the last axis varies fastest.

    Raises ConfigError that lists all problems.
    """
    mapping, configs, problems = read_yaml(path), [], list[str]()
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        try:
            configs.append((chosen, overridden(mapping, name_of(path), chosen, str(path), Path(path).parent)))
        except ConfigError as error:
            problems += [problem for problem in error.problems if problem not in problems]
    problems += [f"name: two runs would have the name {name!r}" for name in _repeated(run.name for _, run in configs)]
    if problems:
        raise ConfigError(problems)
    return configs


def overridden(
    mapping: Mapping[str, Any], name: str, overrides: Overrides, source: str, folder: Path | None
) -> RunConfig:
    """Return a run's config from plain values and overrides; `name` is its default name, and errors name `source`."""
    whole = copy.deepcopy(dict(mapping))
    whole.setdefault("name", name)
    by_key = _apply(whole, overrides, folder)
    try:
        config = loading.run_from_mapping(whole, folder)
    except ConfigError as error:
        raise ConfigError([_attributed(problem, by_key, source) for problem in error.problems]) from None
    return config if not overrides or "name" in by_key else named(config, _slugs(overrides))


def named(config: Any, words: Iterable[str]) -> Any:
    """Return a run or study with a unique name: its name, words that describe it, digits of the config's digest."""
    plain = loading.to_mapping(config)
    del plain["name"]
    slugs = (re.sub(r"[^\w.+]+", "_", word).strip("_.") for word in words)
    name = "-".join([config.name, *filter(None, slugs)])[:LONGEST]
    return dataclasses.replace(config, name=f"{name}-{digest(plain)[:DIGITS]}")


def _slugs(overrides: Overrides) -> Iterator[str]:
    """Yield overrides as parts of a folder's name: k9, k3_full, gru; "" for values that contain a mapping or list."""
    for key, value in overrides.items():
        last = key.rpartition(".")[2]
        if isinstance(value, list) and not any(isinstance(each, Mapping | list) for each in value):
            yield last + "_".join(map(in_yaml, value))
        elif isinstance(value, Mapping | list):
            yield ""
        else:
            yield Path(value if isinstance(value, str) and value != "full" else f"{last}{in_yaml(value)}").name


def _apply(whole: dict[str, Any], overrides: Overrides, folder: Path | None) -> dict[str, str]:
    """Set the keys in `whole`, parts before keys that depend on them; return full key -> the override as text."""
    by_key: dict[str, str] = {}
    for given in sorted(overrides, key=lambda key: "." not in key and key not in TOP):
        value, text = overrides[given], f"{given}={in_yaml(overrides[given])}"
        key = given if "." in given or given in TOP else _full_key(whole, given, text, folder)
        if key == "dataset" and isinstance(value, str):
            key = "dataset.name"
        _set(whole, key, value, text)
        by_key[key] = text
    return by_key


def _full_key(whole: Mapping[str, Any], given: str, text: str, folder: Path | None) -> str:
    """Return the dotted form of a key without dots; `text` is the override.

    Raises ConfigError unless exactly one part has the key.
    """
    options = {f"dataset.{field.name}": field.name for field in dataclasses.fields(loading.DatasetConfig)}
    unknown, reason = list[str](), ""
    for part, registry in PARTS.items():
        value = whole.get(part)
        name = value.get("name") if isinstance(value, Mapping) else value
        if not isinstance(name, str):
            continue
        try:
            cls = registry.config_class(paths.located(name, folder))
            names = [field.name for field in dataclasses.fields(cls)]
            reason = reason or did_you_mean(given, (), cls)
        except ConfigError as error:  # an unknown part, reported below or with the config's other problems
            unknown += [f"{part}.name: {problem}" for problem in error.problems]
            continue
        names += [loading.OTHER_LANGUAGES] if part == "translator" else []
        options |= {f"{part}.{name}": name for name in names}
    matches = [key for key, name in options.items() if name == given]
    if len(matches) > 1:
        raise ConfigError(f"{text}: {' and '.join(matches)} are keys of the run; write the full key")
    if not matches and unknown:
        raise ConfigError(unknown)
    if not matches:
        near = reason or did_you_mean(given, [*options.values(), *TOP])
        raise ConfigError(f"{text}: neither the run nor a part of it has the key {given!r}{near}")
    return matches[0]


def _set(whole: dict[str, Any], key: str, value: Any, text: str) -> None:
    """Set a dotted key; a part given only by name becomes a mapping."""
    *parents, last = key.split(".")
    mapping = whole
    for parent in parents:
        inner = mapping.get(parent)
        if inner is None or isinstance(inner, str):
            inner = {} if inner is None else {"name": inner}
        if not isinstance(inner, dict):
            raise ConfigError(f"{text}: {parent} is not a mapping of keys to values; give {parent} as a whole")
        mapping[parent] = mapping = inner
    mapping[last] = value


def _attributed(problem: str, by_key: Mapping[str, str], source: str) -> str:
    """Prefix a problem with the override that caused it, or with the file."""
    for key, text in by_key.items():
        if re.match(rf"{re.escape(key)}(?![\w])", problem):
            return f"{text}: {problem}"
    return f"{source} {problem}"


def _split(words: Iterable[str]) -> list[tuple[str, str]]:
    pairs, problems = [], []
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key):
            problems.append(f"{word}: expected KEY=VALUE, such as k=9 or guesser.name=gru")
        pairs.append((key, text))
    if problems:
        raise ConfigError(problems)
    if twice := _repeated(key for key, _ in pairs):
        raise ConfigError([f"{key}: is given twice" for key in twice])
    return pairs


def _repeated(values: Iterable[str]) -> list[str]:
    """Return the values that occur more than once, each once."""
    listed = list(values)
    return [value for value in dict.fromkeys(listed) if listed.count(value) > 1]


def _yaml(where: str, text: str) -> Any:
    try:
        return parse_yaml(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def in_yaml(value: Any) -> str:
    """Return a value as one line of YAML."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


# ---------------------------------------------------------------------------------- parts named on a command line

GUESSER, BUZZER = "bm25", "{name: mlp, model: bm25}"  # default guesser and buzzer


def translator_config(text: str) -> ComponentConfig:
    """Return the config of the translator that `--translator` names, as described in `translator_from`."""
    if is_config(text):
        return load_run(Path(text)).translator
    [translator] = read_parts(translator=_part("--translator", text))
    return translator


def translator_from(text: str) -> Translator:
    """Return the translator that `--translator` names by YAML, as under `translator:` in a config, or by a config file.

    Raises ConfigError if the text is invalid or the translator needs a whole data set.
    """
    component = translator_config(text)
    translator = TRANSLATORS.build(component.name, component.options)
    if not isinstance(translator, Translator):
        raise ConfigError(
            f"--translator: {component.name!r} only translates whole data sets, so it cannot read word by word"
        )
    return translator


def contestant_from(guesser: str = "", buzzer: str = "") -> tuple[Guesser, Buzzer | None]:
    """Return the guesser and the buzzer that `--guesser` and `--buzzer` name by YAML, as in a config.

    The buzzer "none" means no buzzer.  `guesser` may also be a run's config file, which names the guesser and, if
    `buzzer` is "", the buzzer.  Raises ConfigError for invalid values.
    """
    if is_config(guesser):
        run = load_run(Path(guesser))
        named, buzzes = run.guesser, run.buzzer
        if buzzer:
            [buzzes] = read_parts(buzzer=_part("--buzzer", buzzer))
    else:
        buzzer = buzzer or ("" if guesser else BUZZER)
        parts = {"guesser": _part("--guesser", guesser or GUESSER), "buzzer": _part("--buzzer", buzzer)}
        named, buzzes = read_parts(**parts)
    if named is None:
        raise ConfigError(f"--guesser: {guesser} names no guesser")
    built = GUESSERS.build(named.name, named.options)
    return built, None if buzzes is None else BUZZERS.build(buzzes.name, buzzes.options)


def _part(option: str, text: str) -> Any:
    value = _yaml(option, text)
    return None if value == "none" else value
