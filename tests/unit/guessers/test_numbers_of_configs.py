"""Bounds of the numbers in configs of guessers, buzzers and their training."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from buzzers.histories import DataChoice
from buzzers.threshold import ThresholdConfig
from guessers.llm.guesser import LlmConfig
from sqa.core import ConfigError
from sqa.net.endpoint import EndpointConfig

DATA: dict[str, Any] = {"guesser": "bm25", "model": "bm25", "cache": Path(), "limit": 0, "noise": 1.5}
DATA |= {"noise_least": 1.6}
ENDPOINT: dict[str, Any] = {"base_url": "x", "model": "", "api_key_env": "sk-1", "requests_per_minute": math.inf}
ENDPOINT |= {"max_tokens": 0, "concurrency": 0, "retries": -1, "timeout": 0.0, "temperature": 3.0}
LLM: dict[str, Any] = {"every": 0, "guesses": 51, "prompt": "?", "max_requests": 0}
WRONG: list[tuple[type, dict[str, Any], list[str]]] = [  # config, keys, message for each key
    (EndpointConfig, ENDPOINT, ["" for _ in ENDPOINT]),
    (LlmConfig, LLM, ["" for _ in [*LLM, "endpoint"]]),
    (DataChoice, DATA, ["limit: must be >= 1 or null", r"noise: must be in \[0, 1\]", r"noise_least: .*\[0, noise\]"]),
    *((ThresholdConfig, {"threshold": value}, ["threshold: must be"]) for value in (-0.1, 1.1, math.nan)),
    *(
        (ThresholdConfig, {"threshold": 0.0, "signal": signal}, ["threshold: must be above 0, got 0"])
        for signal in ("share", "score", "margin", None)
    ),
    (ThresholdConfig, {"model": "x", "signal": "share"}, ["signal: the model defines it already"]),
]


@pytest.mark.parametrize(("config", "keys", "said"), WRONG)
def test_all_problems_of_a_config_are_named_at_once(config: type, keys: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**keys)
    problems = list(caught.value.problems)
    assert len(problems) == len(said) and "sk-1" not in str(caught.value)
    assert all(re.search(f"^{says}", problem) for says, problem in zip(said, problems, strict=True)), problems
