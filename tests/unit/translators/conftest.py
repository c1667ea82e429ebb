"""Fixtures for the tests of the Transformer."""

from pathlib import Path

import pytest
from smt_models import random_model, vocabulary

from smt.models.bundle import save_model


@pytest.fixture(scope="module", params=["causal", "bidirectional"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a saved, randomly initialized model."""
    return save_model(random_model(request.param), vocabulary(), tmp_path_factory.mktemp(request.param), {})
