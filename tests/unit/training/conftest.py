"""Fixtures for the tests of training."""

from pathlib import Path

import pytest

import sqa.data.texts
from tests.sweep_process import prepared, sentence_pairs


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a --runs folder with training data named "mini", and replace parallel text by the bundled questions."""
    monkeypatch.setattr(sqa.data.texts, "load_parallel", sentence_pairs)
    prepared(tmp_path)
    return tmp_path
