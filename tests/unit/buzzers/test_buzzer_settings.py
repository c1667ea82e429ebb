"""The study that chooses a buzzer's recipe on development tossups."""

import json
from dataclasses import replace

import pytest
from refusals import refused

from buzzers.learnt import MLP, LearntBuzzer, load
from buzzers.train import Learning
from experiments.validity import buzzer_settings
from sqa.core.errors import DataError
from sqa.core.paths import CONFIGS, DATA, ROOT
from sqa.data.texts import tossups_of
from sqa.files.store import Store
from sqa.pipeline.config import load as load_config
from sqa.pipeline.config import run_from_mapping
from sqa.pipeline.engine import run

SHIPPED = f"{CONFIGS / 'train_buzzers.yaml'}:mlp-rerank-translated"


def test_wins_by_the_papers_rule_equal_the_metric(tmp_path):
    """Only the threshold for the paper's rule counts."""
    config = {
        "name": "t",
        "dataset": {"name": "mini-es", "limit": 5},
        "translator": {"name": "recorded", "file": str(ROOT / "docs" / "example" / "instances.log")},
        "guesser": {"name": "bm25"},
        "metrics": ["ew"],
    }
    model = load(MLP, DATA / "models" / "buzzer-mlp-bm25-translated", end="answer")
    totals = set()
    for threshold in (0.3, 1.0):
        options = {"name": "mlp", "model": "bm25-translated", "threshold": threshold}
        done = run(run_from_mapping(config | {"buzzer": options}), Store(tmp_path), progress=False)
        card = replace(model.card, thresholds={"silent": threshold})
        buzzer = LearntBuzzer(model.network, model.tensors, card)
        won = [buzzer_settings.silent_wins(buzzer, trace) for trace in done.traces]
        assert won == pytest.approx(done.stats["ew"][:, 0])
        totals.add(sum(won))
    assert len(totals) == 2


def test_recipes_change_only_their_settings():
    config = load_config(SHIPPED, Learning)
    assert buzzer_settings.varied(config, {}) == config
    changed = buzzer_settings.varied(config, buzzer_settings.VARIANTS[buzzer_settings.LESS])
    assert changed.data.noise_least == 0 and changed.data.noise == config.data.noise
    assert (changed.training, changed.network, changed.end) == (config.training, config.network, config.end)
    silent = buzzer_settings.varied(config, buzzer_settings.VARIANTS["trained for silence"])
    assert (silent.end, silent.data) == ("silent", config.data)


@pytest.mark.mirror
def test_translations_of_different_tossups_are_refused(tmp_path, monkeypatch):
    files = tuple(tmp_path / f"{name}.jsonl" for name in "ab")
    for file, tossup in zip(files, tossups_of(["dev"]), strict=False):
        line = {"id": tossup.id, "k": "3", "by": "hand", "sentences": ["A text."]}
        file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    monkeypatch.setattr(buzzer_settings, "FILES", files)
    refused(DataError, "not of the same tossups", buzzer_settings.development, load_config(SHIPPED, Learning))
