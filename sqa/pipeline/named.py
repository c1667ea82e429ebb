"""Build the parts named on a command line: a translator that reads word by word, or a guesser and a buzzer."""

from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError
from sqa.core.registry import BUZZERS, GUESSERS, TRANSLATORS
from sqa.core.types import Buzzer, Guesser, Translator
from sqa.files.yaml_reader import is_config, parse_yaml
from sqa.pipeline.config import ComponentConfig, load_run, read_parts

GUESSER, BUZZER = "bm25", "{name: mlp, model: bm25}"  # default guesser and buzzer


def translator_config(text: str) -> ComponentConfig:
    """Return the config of the translator that `--translator` names, as described in `translator_from`."""
    if is_config(text):
        return load_run(Path(text)).translator
    [translator] = read_parts(translator=_parsed("--translator", text))
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
            [buzzes] = read_parts(buzzer=_parsed("--buzzer", buzzer))
    else:
        buzzer = buzzer or ("" if guesser else BUZZER)
        parts = {"guesser": _parsed("--guesser", guesser or GUESSER), "buzzer": _parsed("--buzzer", buzzer)}
        named, buzzes = read_parts(**parts)
    if named is None:
        raise ConfigError(f"--guesser: {guesser} names no guesser")
    built = GUESSERS.build(named.name, named.options)
    return built, None if buzzes is None else BUZZERS.build(buzzes.name, buzzes.options)


def _parsed(option: str, text: str) -> Any:
    try:
        value = parse_yaml(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from error
    return None if value == "none" else value
