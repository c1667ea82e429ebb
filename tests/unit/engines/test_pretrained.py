"""Models of `transformers`: words as the package itself gives them, batches, languages, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import pickle
import shutil
from pathlib import Path

import pytest
from refusals import refused

pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file, save_file
from stand_ins.hub_models import LANGUAGES, save_models

from smt.engines.hub import WANTED, check_model, load_tokenizer
from smt.engines.pretrained import Pretrained, PretrainedConfig, build, load_weights
from smt.policies.full_input import batches
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import ROOT
from sqa.files.hub import find_model
from sqa.files.yaml_reader import read_yaml
from sqa.metrics.quality.comet import CometConfig
from sqa.run.config import run_from_mapping
from sqa.run.saving import hub_models

TEXTS = ["Este hombre fue el primero .", "¿ Quién ?", "For 10 points , name this city of the north .", "Una ciudad"]
NEW = 14  # pieces written at most


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


def test_batched_words_are_those_of_one_text_at_a_time(loaded):
    _, system = loaded
    together = system.words(["", *TEXTS, " "])
    assert together[0] == together[-1] == ()
    assert together[1:-1] == [system.words([text])[0] for text in TEXTS]
    assert len(set(together)) > 2  # they depend on the text


def test_words_are_those_of_a_plain_greedy_loop(loaded):
    """argmax over the model's own logits, with the start tokens that the model's documentation names."""
    name, system = loaded
    tokenizer, network = load_tokenizer(system.folder), load_weights(system.folder)
    source, target = LANGUAGES[name]
    end, forbidden, start = tokenizer.eos_token_id, None, [2]
    text = TEXTS[0]
    if name.startswith("marian"):
        forbidden = tokenizer.pad_token_id
        start, text = [forbidden], f">>{target}<< {text}" if target else text
    else:
        tokenizer.src_lang = source
        language = tokenizer.convert_tokens_to_ids({"es": "__es__", "en": "__en__"}.get(target, target))
        start = [language] if name == "mbart" else [2, language]
    pieces, written = torch.tensor([tokenizer(text)["input_ids"]]), list(start)
    forced = network.generation_config.forced_eos_token_id  # at the limit of the length
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


def test_pieces_without_a_name_are_left_out(loaded):
    """NLLB's matrix has two rows more than its tokenizer has pieces, and nothing keeps a model from choosing them."""
    _, system = loaded
    beyond = max(system.codec.tokenizer.get_vocab().values()) + 1
    assert system.codec.decode([20, beyond, 21]) == system.codec.decode([20, 21])


def test_beam_search_runs_and_is_another_translator(folders, loaded):
    name, greedy = loaded
    beam = Pretrained(config(folders, name, beams=3))
    assert len(beam.words(TEXTS)) == len(TEXTS)
    assert beam.fingerprint() != greedy.fingerprint()
    assert Pretrained(config(folders, name, batch_tokens=7)).fingerprint() == greedy.fingerprint()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("m2m", {"source_language": "sp"}, "source_language: unknown to the tokenizer: 'sp', did you mean"),
        ("nllb", {"target_language": "eng"}, "did you mean 'eng_Latn'"),
        ("mbart", {"target_language": None}, "target_language: missing; the tokenizer has ar_AR"),
        ("marian", {"source_language": "pl"}, "source_language: the model has 'es' only, got 'pl'"),
        ("marian-many", {"target_language": "po"}, "did you mean 'pol'"),
        ("marian", {"max_new_tokens": 400}, "max_new_tokens: the model writes fewer than 300"),
    ],
)
def test_wrong_settings_are_named(folders, name, changes, message):
    refused(ConfigError, message, Pretrained, config(folders, name, **changes))


def test_all_wrong_numbers_are_named_at_once():
    with pytest.raises(ConfigError, match="beams: must be >= 1, got 0\nbatch_tokens: must be >= 1, got -1"):
        PretrainedConfig("x", beams=0, batch_tokens=-1)


def test_the_config_explains_every_key():
    loaded = read_yaml(ROOT / "configs" / "xqb.yaml:es_nllb")
    assert loaded["translator"].pop("name") == "pretrained"
    assert PretrainedConfig(**loaded["translator"]).k == "full"
    assert set(loaded["translator"]) == {field.name for field in dataclasses.fields(PretrainedConfig)}


def broken(folders, tmp_path, remove):
    copied = shutil.copytree(folders["marian"], tmp_path / "model")
    for name in remove:
        (copied / name).unlink()
    return copied


def test_a_folder_without_tokenizer(folders, tmp_path):
    with pytest.raises(DataError, match="model: no tokenizer"):
        check_model(broken(folders, tmp_path, ["source.spm", "target.spm", "vocab.json"]))


def test_pickled_weights_are_not_read(folders, tmp_path):
    folder = broken(folders, tmp_path, ["model.safetensors"])
    (folder / "pytorch_model.bin").write_bytes(b"anything")
    refused(DataError, "no \\*.safetensors weights .pickled pytorch_model.bin is not read", check_model, folder)


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def sharded(folders, tmp_path, name):
    """The model with an index that puts every weight in the file of that name."""
    folder = broken(folders, tmp_path, ())
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder, weights


@pytest.mark.parametrize("name", ["weights.bin", "sub/model.safetensors", "../model.safetensors"])
def test_an_index_that_names_other_files_than_its_shards_is_refused_unread(folders, tmp_path, name):
    folder, _ = sharded(folders, tmp_path, name)
    ran = tmp_path / "ran"
    (folder / "sub").mkdir()
    (folder / name).write_bytes(pickle.dumps(Evil(ran)))
    (folder / "other.safetensors").write_bytes((folders["m2m"] / "model.safetensors").read_bytes())
    with pytest.raises(DataError, match=r"index.json: names .* must be \*.safetensors files beside it"):
        build(config({"marian": folder}, "marian"))
    assert not ran.exists()


def test_a_pickle_by_the_name_of_a_shard_is_refused_unread(folders, tmp_path):
    folder, _ = sharded(folders, tmp_path, "part.safetensors")
    (folder / "part.safetensors").write_bytes(pickle.dumps(Evil(tmp_path / "ran")))
    refused(DataError, "part.safetensors: not a safetensors file", build, config({"marian": folder}, "marian"))
    assert not (tmp_path / "ran").exists()


def test_index_and_shards_are_in_the_fingerprint(folders, tmp_path):
    folder, weights = sharded(folders, tmp_path, "part.safetensors")
    save_file(weights, folder / "part.safetensors", {"format": "pt"})
    first = Pretrained(config({"marian": folder}, "marian")).fingerprint()
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text() + "\n")
    second = Pretrained(config({"marian": folder}, "marian")).fingerprint()
    name = next(key for key, value in weights.items() if value.is_floating_point() and value.ndim == 2)
    save_file({**weights, name: weights[name] + 1}, folder / "part.safetensors", {"format": "pt"})
    assert len({first, second, Pretrained(config({"marian": folder}, "marian")).fingerprint()}) == 3


def test_weights_that_are_no_numbers_are_refused(folders, tmp_path):
    folder, weights = sharded(folders, tmp_path, "part.safetensors")
    save_file(
        {key: value * float("nan") for key, value in weights.items()}, folder / "part.safetensors", {"format": "pt"}
    )
    refused(DataError, "holds numbers that are not finite", load_weights, folder)


def test_another_kind_of_model(folders, tmp_path):
    folder = broken(folders, tmp_path, [])
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    refused(ConfigError, "is a 'gpt2' model; translators are marian, m2m_100, mbart", check_model, folder)
    (folder / "config.json").write_text("{}")
    refused(DataError, "no model_type", check_model, folder)
    (folder / "config.json").unlink()
    refused(DataError, "no config.json", check_model, folder)


def test_weights_of_another_size_or_damaged(folders, tmp_path):
    folder = broken(folders, tmp_path, [])
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "decoder_layers": 3}))
    refused(DataError, "its weights lack model.decoder.layers.2", load_weights, folder)
    (folder / "config.json").write_text(json.dumps({**settings, "d_model": 64}))
    refused(DataError, "its weights cannot be loaded", load_weights, folder)
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "model.safetensors").write_bytes(b"\x00" * 40)
    refused(DataError, "its weights cannot be loaded", load_weights, folder)


def test_a_tokenizer_of_another_model(folders, tmp_path):
    folder = broken(folders, tmp_path, [])
    vocabulary = json.loads((folder / "vocab.json").read_text())
    (folder / "vocab.json").write_text(json.dumps({**vocabulary, "extra": len(vocabulary)}))
    refused(DataError, "the two are not of one model", Pretrained, PretrainedConfig(str(folder), max_new_tokens=NEW))


def test_nothing_is_fetched_unless_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConfigError, match="neither a folder nor in the local Hugging Face cache; download: true would"):
        find_model("some/model", None, False, WANTED)
    refused(ConfigError, "model ./model not found: there is no such folder", find_model, "./model", None, True, WANTED)
    with pytest.raises(
        ConfigError, match="revision: missing; .* which some/model is meant: `revision: COMMIT`, one of"
    ):
        find_model("some/model", None, True, WANTED)
    with pytest.raises(ConfigError, match="translator.*revision: missing|^revision: missing"):
        build(PretrainedConfig("some/model", download=True))
    with pytest.raises(ConfigError, match=r"quality\[0\].comet.*revision: missing; "):
        run_from_mapping(
            {
                "name": "x",
                "dataset": {"name": "mini-es"},
                "translator": "fixed",
                "quality": [{"comet": {"model": "some/model", "download": True}}],
            }
        )
    refused(ConfigError, "nor a name on the Hugging Face hub", find_model, "not a name", None, False, WANTED)


def test_a_run_names_the_commit_of_its_hub_models(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    commit, home = "0123456789abcdef" * 2 + "01234567", tmp_path / "models--some--model"
    (home / "snapshots" / commit).mkdir(parents=True)
    (home / "snapshots" / commit / "config.json").write_text("{}")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    configs = (
        PretrainedConfig("some/model"),
        PretrainedConfig("some/model", revision=commit),
        CometConfig("no/such", encoder="some/model", encoder_revision="main"),
    )
    assert [hub_models((config,)) for config in configs] == [{"some/model": commit}] * 3
    assert hub_models((PretrainedConfig("no/such"), PretrainedConfig(str(tmp_path)))) == {}


def test_a_text_too_long_is_named(folders):
    with pytest.raises(DataError, match="a text has [0-9]+ pieces, the model reads at most 300: 'uno uno"):
        Pretrained(config(folders, "marian")).codec.encode([" ".join(["uno"] * 400)], 300)


def test_batches_hold_every_row_once_within_the_budget():
    lengths = [3, 50, 1, 7, 7, 2, 9]
    groups = list(batches(lengths, 20))
    assert sorted(i for group in groups for i in group) == list(range(7))
    assert groups[0] == [1]  # longer than the budget, so alone
    assert all(len(group) * max(lengths[i] for i in group) <= 20 for group in groups[1:])
    assert list(batches([], 20)) == []
