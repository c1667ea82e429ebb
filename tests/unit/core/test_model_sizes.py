"""Small files that state large sizes are refused before memory is allocated."""

import json
import tracemalloc

import pytest
import zstandard
from fuzz import model_readers as small
from refusals import refused
from safetensors.numpy import load_file, save_file

from guessers.gru.guesser import GruGuesser
from guessers.retrieval.bm25 import Index
from smt.lm.network import load_network
from smt.models.bundle import load_model
from sqa.core import DataError
from sqa.files import load_weights, pack_bytes

WEIGHTS = "model.safetensors"
MOST = 256 << 20  # bytes


def with_tensors(folder, **changed):
    save_file(load_file(folder / WEIGHTS) | changed, folder / WEIGHTS)


def with_config(folder, part, **changed):
    config = json.loads((folder / "config.json").read_text())
    (config[part] if part else config).update(changed)
    (folder / "config.json").write_text(json.dumps(config))


def bomb(folder):
    zeros = pack_bytes(bytes(1 << 29))  # 512 MiB, packed to about 512 KiB
    with_tensors(folder, **dict.fromkeys(("page_steps", "counts", "pages_per_term", "pair_seconds"), zeros))


def zeros():
    """Return 512 MiB of zeros, compressed piece by piece."""
    stream = zstandard.ZstdCompressor().compressobj(size=1 << 29)
    return b"".join(stream.compress(bytes(1 << 20)) for _ in range(512)) + stream.flush()


def packed(folder, data):
    (folder / WEIGHTS).unlink()
    (folder / f"{WEIGHTS}.zst").write_bytes(data)


CASES = {  # a small model, its modification, its reader, the message
    "packed zeros": (small.counts, bomb, Index.load, "unpacks to more than"),
    "packed weights": (small.gru, lambda f: packed(f, zeros()), GruGuesser.load, "to over 16 times"),
    "packed weights, no size": (
        small.transformer,
        lambda f: packed(f, zstandard.ZstdCompressor(write_content_size=False).compress(b"cut")),
        load_model,
        "states no size",
    ),
    "width": (small.transformer, lambda f: with_config(f, "model", width=1 << 20), load_model, "size mismatch"),
    "layers": (small.transformer, lambda f: with_config(f, "model", encoder_layers=1 << 30), load_model, "layers"),
    "positions": (small.transformer, lambda f: with_config(f, "model", max_pieces=1 << 40), load_model, "max_pieces"),
    "GRU": (small.gru, lambda f: with_config(f, "shape", hidden=1 << 20), GruGuesser.load, "size mismatch"),
    "language model": (
        small.language,
        lambda f: with_config(f, "", vocab_size=1 << 22, hidden_size=1 << 20),
        load_network,
        "an embedding of 4194304 x 1048576, but",
    ),
    "language model's layers": (
        small.language,
        lambda f: with_config(f, "", num_hidden_layers=1 << 20, layer_types=None),
        load_network,
        "num_hidden_layers 1048576, at most",
    ),
    "encoder": (
        small.encoder,
        lambda f: with_config(f, "", num_hidden_layers=1 << 20),
        lambda f: load_weights(f, "AutoModel", "an encoder"),
        r"num_hidden_layers 1048576, at most \d+",
    ),
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
