"""A translator named on a command line, for programs that feed it word by word."""

from __future__ import annotations

from pathlib import Path

from sqa.core.errors import ConfigError
from sqa.core.interfaces import Translator
from sqa.core.registry import TRANSLATORS
from sqa.files.yaml_reader import parse_yaml
from sqa.run.config import load_run, run_from_mapping
from sqa.run.entries import is_config


def translator_from(text: str) -> Translator:
    """The translator of `--translator`: YAML as under `translator:` in a config, or a config file.

    ConfigError names what is wrong with it, or that it cannot be given a word at a time.
    """
    if is_config(text):
        component = load_run(Path(text)).translator
    else:
        try:
            mapping = parse_yaml(text)
        except ValueError as error:
            raise ConfigError(f"--translator: {error}") from error
        run = {"name": "agent", "dataset": {"name": "mini-es"}, "translator": mapping}
        component = run_from_mapping(run).translator
    translator = TRANSLATORS.build(component.name, component.options)
    if not isinstance(translator, Translator):
        raise ConfigError(
            f"--translator: {component.name!r} knows whole data sets only, it cannot be given a word at a time"
        )
    return translator
