"""Models of `transformers`: written words, batches, languages, and refused input."""

import dataclasses
import json
import pickle
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from stand_ins.hub_models import LANGUAGES, save_models
from tables import tables_of

from smt.engines.pretrained import WANTED, Pretrained, PretrainedConfig, build, check_model
from sqa.core import ConfigError, DataError
from sqa.files import find_model, load_pretrained
from sqa.metrics.quality.comet import CometConfig
from sqa.pipeline.saving import hub_models

TABLES = tables_of(__file__)

TEXTS = ["Este hombre fue el primero .", "¿ Quién ?", "For 10 points , name this city of the north .", "Una ciudad"]
NEW = 14  # max_new_tokens


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("hub"))


def config(folders, name, **changes):
    source, target = LANGUAGES[name]
    plain = PretrainedConfig(str(folders[name]), source, target, max_new_tokens=NEW, device="cpu")
    return dataclasses.replace(plain, **changes)


@pytest.fixture(scope="module", params=LANGUAGES)
def loaded(request, folders):
    return request.param, Pretrained(config(folders, request.param))


def test_batched_words_equal_single_translations(loaded):
    _, system = loaded
    together = system.words(["", *TEXTS, " "])
    assert together[0] == together[-1] == ()
    assert together[1:-1] == [system.words([text])[0] for text in TEXTS]
    assert len(set(together)) > 2  # the words depend on the text
    refused(DataError, "pieces, but the model reads at most 300", system.codec.encode, [" ".join(["uno"] * 400)], 300)
    # NLLB's output matrix has two more rows than its tokenizer has pieces, and the model may predict these rows.
    beyond = max(system.codec.tokenizer.get_vocab().values()) + 1
    assert system.codec.decode([20, beyond, 21]) == system.codec.decode([20, 21])


def test_words_equal_a_plain_greedy_loop(loaded):
    """Compare with the argmax of the model's logits, decoded from the start tokens in the model's documentation."""
    name, system = loaded
    tokenizer, network = load_pretrained(system.folder, "AutoModelForSeq2SeqLM", "a translation model")
    source, target = LANGUAGES[name]
    end, forbidden, text = tokenizer.eos_token_id, None, TEXTS[0]
    if name.startswith("marian"):
        forbidden = tokenizer.pad_token_id
        start, text = [forbidden], f">>{target}<< {text}" if target else text
    else:
        tokenizer.src_lang = source
        language = tokenizer.convert_tokens_to_ids(f"__{target}__" if name == "m2m" else target)
        start = [language] if name == "mbart" else [2, language]
    pieces, written = torch.tensor([tokenizer(text)["input_ids"]]), list(start)
    forced = network.generation_config.forced_eos_token_id  # at the length limit
    while len(written) <= NEW and (written[-1] != end or len(written) <= len(start)):
        with torch.inference_mode():
            scores = network(input_ids=pieces, decoder_input_ids=torch.tensor([written])).logits[0, -1].clone()
            if forbidden is not None:
                scores[forbidden] = float("-inf")
        written.append(forced if forced is not None and len(written) == NEW else int(scores.argmax()))
    languages = set(tokenizer.lang_token_to_id.values()) if name == "m2m" else set()
    unnamed = set(range(max(tokenizer.get_vocab().values()) + 1, network.config.vocab_size))
    spoken = [piece for piece in written[len(start) :] if piece not in languages | unnamed]
    text = tokenizer.decode(spoken, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert system.words([TEXTS[0]])[0] == tuple(text.split())


@pytest.mark.parametrize(("name", "changes", "message"), TABLES["wrong_settings_are_refused"])
def test_wrong_settings_are_refused(folders, name, changes, message):
    refused(ConfigError, message, lambda: Pretrained(config(folders, name, **changes)))


def copied(folders, tmp_path, *remove):
    folder = shutil.copytree(folders["marian"], tmp_path / "model")
    for name in remove:
        (folder / name).unlink()
    return folder


def test_folders_of_other_models_are_refused(folders, tmp_path):
    folder = copied(folders, tmp_path, "source.spm", "target.spm", "vocab.json")
    refused(DataError, "model: cannot be loaded as a translation model", build, PretrainedConfig(str(folder)))
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    refused(ConfigError, "is a 'gpt2' model, but must be one of marian, m2m_100, mbart", check_model, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(DataError, "no \\*.safetensors weights", check_model, folder)
    (folder / "config.json").write_text("{}")
    refused(DataError, "missing required field `model_type`", check_model, folder)


class Evil(NamedTuple):
    """An object that creates a file when it is unpickled."""

    path: Path

    def __reduce__(self):
        return Path.touch, (self.path,)


def sharded(folders, tmp_path, name):
    """Return a copy of the model whose weights are replaced by an index that points to `name`, and the weights."""
    folder = copied(folders, tmp_path)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder, weights


@pytest.mark.parametrize(("name", "message"), TABLES["pickles_are_never_loaded_whatever_their_name"])
def test_pickles_are_never_loaded_whatever_their_name(folders, tmp_path, name, message):
    folder, _ = sharded(folders, tmp_path, name)
    (folder / name).write_bytes(pickle.dumps(Evil(tmp_path / "ran")))
    (folder / "other.safetensors").write_bytes((folders["m2m"] / "model.safetensors").read_bytes())
    refused(DataError, message, build, config({"marian": folder}, "marian"))
    assert not (tmp_path / "ran").exists()


def test_fingerprint_covers_shards_and_nan_is_refused(folders, tmp_path):
    folder, weights = sharded(folders, tmp_path, "part.safetensors")

    def fingerprint(change=lambda tensor: tensor):
        name = next(key for key in weights if key.endswith("fc1.weight"))
        save_file({**weights, name: change(weights[name])}, folder / "part.safetensors", {"format": "pt"})
        return Pretrained(config({"marian": folder}, "marian")).fingerprint()

    assert fingerprint() != fingerprint(lambda tensor: tensor + 1)
    refused(DataError, "has numbers that are not finite", fingerprint, lambda tensor: tensor * float("nan"))


def test_download_needs_permission(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    refused(ConfigError, "set download: true", find_model, "some/model", None, False, WANTED)
    refused(ConfigError, "this folder does not exist", find_model, "./model", None, True, WANTED)
    refused(ConfigError, "revision: missing; .*`revision: COMMIT`", find_model, "some/model", None, True, WANTED)
    refused(ConfigError, "revision: missing", build, PretrainedConfig("some/model", download=True))
    refused(ConfigError, "nor a name on the Hugging Face hub", find_model, "not a name", None, False, WANTED)
    commit, home = "0123456789abcdef" * 2 + "01234567", tmp_path / "models--some--model"
    (home / "snapshots" / commit).mkdir(parents=True)
    (home / "snapshots" / commit / "config.json").write_text("{}")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    comet = CometConfig("no/such", encoder="some/model", encoder_revision="main")
    configs = (PretrainedConfig("some/model"), PretrainedConfig("some/model", revision=commit), comet)
    assert [hub_models((config,)) for config in configs] == [{"some/model": commit}] * 3
    assert hub_models((PretrainedConfig("no/such"), PretrainedConfig(str(tmp_path)))) == {}
