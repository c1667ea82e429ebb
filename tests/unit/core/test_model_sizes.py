"""Small files that state large sizes are refused before memory is allocated."""

import json
import tracemalloc

import pytest
from fuzz import model_readers as small
from refusals import refused

from guessers.gru.guesser import GruGuesser
from smt.models.bundle import load_model
from sqa.core.errors import DataError

WEIGHTS = "model.safetensors"
MOST = 256 << 20  # bytes


def with_config(folder, part, **changed):
    config = json.loads((folder / "config.json").read_text())
    (config[part] if part else config).update(changed)
    (folder / "config.json").write_text(json.dumps(config))


CASES = {  # a small model, its modification, its reader, the message
    "width": (small.transformer, lambda f: with_config(f, "model", width=1 << 20), load_model, "size mismatch"),
    "layers": (small.transformer, lambda f: with_config(f, "model", encoder_layers=1 << 30), load_model, "layers"),
    "positions": (small.transformer, lambda f: with_config(f, "model", max_pieces=1 << 40), load_model, "max_pieces"),
    "GRU": (small.gru, lambda f: with_config(f, "shape", hidden=1 << 20), GruGuesser.load, "size mismatch"),
}


@pytest.mark.parametrize("case", CASES)
def test_oversized_model_is_refused_in_little_memory(case, tmp_path):
    make, change, read, says = CASES[case]
    make(tmp_path)
    change(tmp_path)
    tracemalloc.start()
    try:
        assert str(tmp_path) in refused(DataError, says, read, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
