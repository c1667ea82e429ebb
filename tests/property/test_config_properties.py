"""Configs round-trip through YAML, and any mapping gives a config or a ConfigError."""

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from sqa.core import BUZZERS, GUESSERS, TRANSLATORS, ConfigError
from sqa.files import dump_yaml
from sqa.metrics import all_names
from sqa.pipeline import ComponentConfig, DatasetConfig, RunConfig, load_run, run_from_mapping, to_mapping

NAME = st.text(st.characters(categories=["L", "N"], include_characters=" _-"), min_size=1).filter(str.strip)
# The reader refuses NUL and lone surrogates (tests/unit/pipeline/test_odd_values.py).
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
CONFIGS = st.builds(
    RunConfig,
    name=NAME,
    dataset=st.builds(DatasetConfig, st.sampled_from(["mini-es", "mini-pl"]), st.none() | st.integers(1, 9999)),
    translator=st.builds(
        ComponentConfig,
        st.just("doubles:build_translator"),
        st.builds(TRANSLATORS.config_class("doubles:build_translator"), k=st.integers(1, 9)),
    ),
    guesser=st.builds(
        ComponentConfig,
        st.just("doubles:build_guesser"),
        st.builds(GUESSERS.config_class("doubles:build_guesser"), pages=st.lists(TEXT, max_size=3).map(tuple)),
    ),
    buzzer=st.none()
    | st.builds(
        ComponentConfig,
        st.just("doubles:build_buzzer"),
        st.builds(
            BUZZERS.config_class("doubles:build_buzzer"), threshold=st.floats(allow_nan=False, allow_infinity=False)
        ),
    ),
    metrics=st.lists(st.sampled_from(all_names()), min_size=1, unique=True).map(tuple),
    seed=st.integers(0, 2**31),
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(CONFIGS)
@example(run_from_mapping({"name": "0E0", "dataset": "mini-es", "translator": "fixed"}))
def test_config_round_trips_through_yaml(config: RunConfig) -> None:
    text = dump_yaml(to_mapping(config))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.yaml")
        path.write_text(text, encoding="utf-8")
        assert load_run(path) == config


@given(st.dictionaries(st.sampled_from(["dataset", "translator", "guesser", "metrics", "seed", "name", "x"]), PLAIN))
def test_any_mapping_is_a_config_or_a_config_error(mapping: dict) -> None:
    try:
        run_from_mapping({"name": "n", **mapping})
    except ConfigError as error:
        assert error.problems and all(error.problems)
