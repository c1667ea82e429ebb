"""The bounds of the numbers in configs of guessers, buzzers and their trainings."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from buzzers.fit import FitConfig
from buzzers.histories import DataChoice
from buzzers.learnt import LearntConfig
from buzzers.threshold import ThresholdConfig
from buzzers.train import NetworkShape
from guessers.bert.guesser import BertConfig
from guessers.e5.guesser import E5Config
from guessers.elastic.guesser import ElasticConfig
from guessers.fusion import FusionConfig
from guessers.gru.guesser import GruConfig
from guessers.llm.endpoint import EndpointConfig
from guessers.llm.guesser import LlmConfig
from guessers.llm.local import LocalConfig
from guessers.open_qa.lm_reader import LmReaderConfig
from guessers.retrieval.bm25 import Bm25Config
from guessers.retrieval.tfidf import TfidfConfig
from sqa.core.errors import ConfigError

FIT: dict[str, Any] = {"features": "all", "objective": "wins", "seed": 0}
FIT |= {"label_weight": -1, "batch": 0, "epochs": 0, "learning_rate": 0.0, "weight_decay": 0.0}
DATA: dict[str, Any] = {"guesser": "bm25", "model": "bm25", "cache": Path(), "limit": 0, "noise": 1.5}
DATA |= {"noise_least": 1.6}
ENDPOINT: dict[str, Any] = {"base_url": "x", "model": "", "api_key_env": "sk-1", "requests_per_minute": math.inf}
ENDPOINT |= {"max_tokens": 0, "concurrency": 0, "retries": -1, "timeout": 0.0, "temperature": 3.0}
LLM: dict[str, Any] = {"every": 0, "guesses": 51, "prompt": "?", "max_requests": 0, "prices": (-1.0, 1.0)}
WRONG: list[tuple[type, dict[str, Any], list[str]]] = [  # config, keys, what is said of each
    (Bm25Config, {"k1": 0, "b": 2, "pair_boost": -1}, ["k1", "b", "pair_boost"]),
    (TfidfConfig, {"b": 1.5, "pair_boost": -1}, ["b", "pair_boost"]),
    (GruConfig, {"temperature": 0}, ["temperature: must be > 0"]),
    (BertConfig, {"temperature": 0, "batch_tokens": 0}, ["temperature: must be", "batch_tokens: must be"]),
    (E5Config, {"every": 0, "temperature": 0}, ["every: must be >= 1, got 0", "temperature: must be > 0, got 0"]),
    (
        FusionConfig,
        {"guessers": (), "constant": -1.0},
        ["constant: must be >= 0", "guessers: a fusion needs two or more, got 0"],
    ),
    (ElasticConfig, {"k1": 0, "b": 2}, ["k1", "b"]),
    (LmReaderConfig, {"passages": 51, "max_tokens": 0}, [r"passages: must be in \[0, 50\], got 51", "max_tokens"]),
    (LocalConfig, {"folder": Path("x"), "max_tokens": 0}, ["max_tokens"]),
    (EndpointConfig, ENDPOINT, ["" for _ in ENDPOINT]),
    (LlmConfig, LLM, ["" for _ in [*LLM, "endpoint"]]),
    (FitConfig, FIT, ["label_weight", "batch", "epochs", "learning_rate"]),
    (DataChoice, DATA, ["limit: must be >= 1 or null", r"noise: must be in \[0, 1\]", r"noise_least: .*\[0, noise\]"]),
    (NetworkShape, {"hidden": 0}, ["hidden: must be >= 1 or null, got 0"]),
    (NetworkShape, {"cell": "gru", "hidden": 0, "dropout": 1.0, "skip": False}, ["hidden", "dropout"]),
    (LearntConfig, {"threshold": 1.5}, [r"threshold: must be in \[0, 1\] or null"]),
    *((ThresholdConfig, {"threshold": value}, ["threshold: must be"]) for value in (-0.1, 1.1, math.nan)),
    *(
        (ThresholdConfig, {"threshold": 0.0, "signal": signal}, ["threshold: must be above 0, got 0"])
        for signal in ("share", "score", "margin", None)
    ),
    (ThresholdConfig, {"model": "x", "signal": "share"}, ["signal: a model has its own"]),
]


@pytest.mark.parametrize(("config", "keys", "said"), WRONG)
def test_all_problems_of_a_config_are_named_at_once(config: type, keys: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**keys)
    problems = list(caught.value.problems)
    assert len(problems) == len(said) and "sk-1" not in str(caught.value)
    assert all(re.search(f"^{says}", problem) for says, problem in zip(said, problems, strict=True)), problems
