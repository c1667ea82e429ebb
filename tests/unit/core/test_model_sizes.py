"""Small files that state large sizes are refused before memory is allocated."""

import json
import tracemalloc

import numpy as np
import pytest
import zstandard
from fuzz import model_readers as small
from refusals import refused
from safetensors.numpy import load_file, save_file

from guessers.gru.guesser import GruGuesser
from guessers.retrieval.bm25 import Index
from smt.lm.network import load_network
from smt.models.bundle import load_model
from sqa.core.errors import DataError
from sqa.files.hub import load_weights
from sqa.files.model_files import pack_bytes

WEIGHTS = "model.safetensors"
MOST = 256 << 20  # bytes
PACKED_WEIGHTS = zstandard.compress(bytes(range(256)))
PACKED_ZEROS = zstandard.compress(bytes(1 << 29))


def with_tensors(folder, **changed):
    save_file(load_file(folder / WEIGHTS) | changed, folder / WEIGHTS)


def with_config(folder, part, **changed):
    config = json.loads((folder / "config.json").read_text())
    (config[part] if part else config).update(changed)
    (folder / "config.json").write_text(json.dumps(config))


def bomb(folder):
    zeros = pack_bytes(bytes(1 << 29))  # 512 MiB, packed to about 512 KiB
    with_tensors(folder, **dict.fromkeys(("page_steps", "counts", "pages_per_term", "pair_seconds"), zeros))


def packed(folder, data):
    (folder / WEIGHTS).unlink()
    (folder / f"{WEIGHTS}.zst").write_bytes(data)


def not_utf8(folder):
    with_tensors(folder, titles=pack_bytes(b"Per\xfa"))


def strange_lexicon(folder):
    with_tensors(folder, lexicon_ids=np.full_like(load_file(folder / WEIGHTS)["lexicon_ids"], 60_000))


def broadcast(folder):
    tensors = load_file(folder / WEIGHTS)
    wide = np.zeros((1, 100_000), np.int8)
    with_tensors(folder, **{"embedding.weight": wide, "embedding.weight.scale": np.zeros(100_000, np.float32)})
    assert "embedding.weight.scale" in tensors


CASES = {  # a small model, its modification, its reader, the message
    "packed zeros": (small.counts, bomb, Index.load, "unpacks to more than"),
    "packed weights": (small.gru, lambda f: packed(f, PACKED_ZEROS), GruGuesser.load, "to over 16 times"),
    "packed weights, no size": (
        small.transformer,
        lambda f: packed(f, zstandard.ZstdCompressor(write_content_size=False).compress(b"cut")),
        load_model,
        "states no size",
    ),
    "packed weights, cut": (small.gru, lambda f: packed(f, PACKED_WEIGHTS[:-9]), GruGuesser.load, "is damaged"),
    "packed weights, more": (
        small.gru,
        lambda f: packed(f, zstandard.compress((f / WEIGHTS).read_bytes()) + b"!"),
        GruGuesser.load,
        "is damaged",
    ),
    "titles": (small.counts, not_utf8, Index.load, "the model is damaged .'utf-8' codec"),
    "lexicon": (small.transformer, strange_lexicon, load_model, "the lexicon must hold pieces below 290"),
    "scale": (small.transformer, broadcast, load_model, "embedding.weight.scale has shape .100000,."),
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
