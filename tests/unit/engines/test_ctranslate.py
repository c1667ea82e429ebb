"""CTranslate2: scores and words of exported networks, converted `transformers` models, and refused input."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch
from refusals import refused
from smt_models import random_model, vocabulary

from smt.engines.ctranslate import CTranslate, CTranslateConfig
from smt.engines.ctranslate_export import convert, export
from smt.engines.pretrained import Pretrained, PretrainedConfig
from smt.models.bundle import save_model
from smt.models.decode import decode_batch
from smt.models.transformer import ModelConfig, Transformer
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab import BOS, EOS, PAD, UNK
from smt.policies.waitk import FULL, Schedule, pad
from sqa.core.errors import ConfigError, DataError
from sqa.data.datasets import load_questions

SENTENCES = [s for q in load_questions("mini-es", limit=3) for s in q.sentences]
ENCODERS = ["bidirectional", "causal"]


def engine(folder, **settings):
    return CTranslate(CTranslateConfig(str(folder), threads=1, **settings))


@pytest.fixture(scope="module", params=ENCODERS)
def exported(request, tmp_path_factory):
    """Return a randomly initialized model without a lexicon, and the folder with its export."""
    model = random_model(request.param, 0)
    return model, export(model, vocabulary(), tmp_path_factory.mktemp("ct") / request.param)


def test_exported_scores_match_the_network(exported):
    """Compare the log probability of each piece of a given target, including the end."""
    model, folder = exported
    target = list(range(10, 70, 3))
    for sentence in SENTENCES[:4]:
        source, names = vocabulary().words(sentence)[0], vocabulary().pieces
        [scored] = engine(folder).engine.score_batch([[names[i] for i in source]], [[names[i] for i in target]])
        s, t = torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]])
        with torch.inference_mode():
            x, _, _ = model(s, t, torch.ones(1, t.shape[1], s.shape[1], dtype=torch.bool))  # (1, T, D)
            ours = model.logits(x[0], None).log_softmax(-1)  # (T, V)
        ours = ours[torch.arange(len(target) + 1), torch.tensor([*target, EOS])]
        assert np.abs(np.array(scored.log_probs) - ours.numpy()).max() < 2e-5


@pytest.mark.parametrize("encoder", ENCODERS)
def test_exported_model_writes_the_same_words(encoder, tmp_path):
    """The model memorised eight translations, so both decoders must write the same words."""
    pairs = [
        (tuple(source[:10]), tuple(reference[:8]))
        for q, r in zip(load_questions("mini-es", limit=4), load_questions("mini-en", limit=4), strict=True)
        for source, reference in zip(q.sentences, r.sentences, strict=False)
    ][:8]
    model = learn(pairs, encoder)
    ours = decode_batch(TransformerWriter(model, vocabulary()), [source for source, _ in pairs], Schedule(FULL))
    ours = [tuple(word.token for word in words) for words in ours]
    folder = export(model, vocabulary(), tmp_path / "ct")
    assert engine(folder).words([" ".join(source) for source, _ in pairs]) == ours
    assert sum(words == reference for words, (_, reference) in zip(ours, pairs, strict=True)) >= 6


def learn(pairs, encoder):
    """Return a small model trained on `pairs` for 120 steps."""
    torch.manual_seed(0)
    model, words = Transformer(ModelConfig(600, 32, 4, 64, 2, 2, 0.0, encoder=encoder, lexicon_width=0)), vocabulary()
    source = pad([np.array([*words.words(s)[0], EOS]) for s, _ in pairs], PAD)
    target = [words.words(t)[0] for _, t in pairs]
    given, wanted = pad([np.array([BOS, *t]) for t in target], PAD), pad([np.array([*t, EOS]) for t in target], PAD)
    visible = (source != PAD)[:, None, :].expand(-1, given.shape[1], -1)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(120):
        scores = model.logits(model(source, given, visible)[0].flatten(0, 1), None)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(scores, wanted.flatten(), ignore_index=PAD).backward()
        optimiser.step()
    return model.eval()


def test_padding_unknown_and_start_are_never_written(exported, monkeypatch):
    """The random model would otherwise write these pieces occasionally."""
    translator, names = engine(exported[1]), vocabulary().pieces
    inner = Mock(wraps=translator.engine)
    monkeypatch.setattr(translator, "engine", inner)
    translator.words([" ".join(SENTENCES[0])])
    assert inner.translate_batch.call_args.kwargs["suppress_sequences"] == [[names[i]] for i in (PAD, UNK, BOS)]


def test_model_folder_converts_to_int8(tmp_path):
    save_model(random_model("bidirectional", 0), vocabulary(), tmp_path / "ours", {})
    ours, folder, other = str(tmp_path / "ours"), tmp_path / "ct", tmp_path / "other"
    assert convert(ours, folder, "int8") == folder
    assert len(engine(folder).words(["una ciudad"])) == 1
    refused(ConfigError, "already exists", convert, ours, folder)
    refused(ConfigError, "unknown 'int9', did you mean 'int8'", convert, ours, other, "int9")
    refused(DataError, "cannot express the model's lexicon", convert, "es-en", other)
    assert not other.exists()


def test_invalid_folders_and_options_are_refused(tmp_path, exported):
    refused(DataError, "no model.bin", engine, tmp_path)
    (tmp_path / "model.bin").write_bytes(b"\x00" * 16)
    refused(DataError, "no tokenizer", engine, tmp_path)
    (tmp_path / "vocabulary.model").write_bytes(vocabulary().model)
    refused(DataError, "CTranslate2 cannot load it", engine, tmp_path)
    refused(ConfigError, "beams: must be >= 1, got 0\nthreads: must", CTranslateConfig, "x", beams=0, threads=-1)
    refused(DataError, "pieces, but the model reads at most 1024: uno uno", engine(exported[1]).words, ["uno " * 2000])


TEXTS = ["Este hombre fue el primero .", "¿ Quién ?", "For 10 points , name this city .", "Una ciudad"]
COMPARED = 12  # pieces; later ones differ where `transformers` forces the end of the sentence


@pytest.fixture(scope="module")
def hub_folders(tmp_path_factory):
    from stand_ins.hub_models import save_models

    return save_models(tmp_path_factory.mktemp("hub"))


@pytest.mark.parametrize("name", ["marian", "marian-many", "m2m", "nllb", "mbart", "mbart50"])
def test_converted_models_write_the_original_words(name, hub_folders, tmp_path):
    from stand_ins.hub_models import LANGUAGES

    source, target = LANGUAGES[name]
    plain = Pretrained(PretrainedConfig(str(hub_folders[name]), source, target, max_new_tokens=20, device="cpu"))
    folder = convert(str(hub_folders[name]), tmp_path / "ct")
    fast = engine(folder, source_language=source, target_language=target, max_new_tokens=20)
    tokenizer, rows = plain.codec.tokenizer, plain.codec.encode(TEXTS, 300)
    theirs = fast.translate([tokenizer.convert_ids_to_tokens(row) for row in rows])
    named = [plain.codec.target_token] if plain.codec.target_token else []
    marks = {tokenizer.eos_token_id, tokenizer.pad_token_id, *tokenizer.convert_tokens_to_ids(named)}
    for written, expected in zip(theirs, plain.generate(rows), strict=True):
        ids = [i for i in tokenizer.convert_tokens_to_ids(written) if i not in marks]
        assert ids[:COMPARED] == [i for i in expected if i not in marks][:COMPARED]
    together = fast.words(TEXTS)
    assert together == [fast.words([text])[0] for text in TEXTS] and len(set(together)) > 1
    limit = min(tokenizer.model_max_length, 1024)
    refused(DataError, f"reads at most {limit}: 'Una Una", fast.words, ["Una " * 1100])
