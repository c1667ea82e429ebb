"""Causal language models in a local folder, compared with a plain greedy loop over the logits."""

import shutil
from pathlib import Path

import pytest
import torch
from refusals import refused
from stand_ins.lm_models import change, make

from guessers.llm.guesser import LlmConfig, LlmGuesser, build
from guessers.llm.local import LocalConfig
from sqa.core.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return the folder of a small Llama that has a chat template and samples by default."""
    from transformers import PreTrainedTokenizerFast

    folder = make(tmp_path_factory.mktemp("llama"), "llama", seed=4)
    marks = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **marks)
    tokenizer.chat_template = "{% for m in messages %}the {{ m.content }}{% endfor %} is"
    tokenizer.save_pretrained(folder)
    (folder / "generation_config.json").write_text('{"do_sample": true, "temperature": 5.0, "eos_token_id": 1}')
    return folder


def local(folder: Path, tmp_path: Path, max_tokens: int = 12) -> LlmGuesser:
    config = LocalConfig(folder=folder, max_tokens=max_tokens, device="cpu")
    return build(LlmConfig(local=config, every=1, prompt="{text}", cache=tmp_path / "kept"))


@torch.inference_mode()
def likeliest(folder: Path, prompt: str, most: int) -> tuple[str, int, int]:
    """Return the greedy reply and the numbers of pieces read and written."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    pieces = tokenizer(prompt)["input_ids"]
    read = len(pieces)
    while len(pieces) - read < most and pieces[-1] != tokenizer.eos_token_id:
        pieces.append(int(model(torch.tensor([pieces])).logits[0, -1].argmax()))
    return tokenizer.decode(pieces[read:], skip_special_tokens=True), read, len(pieces) - read


@pytest.mark.parametrize(("template", "prompt"), [(True, "the big house is"), (False, "big house\n")])
def test_reply_is_the_most_likely_text(folder, tmp_path, template, prompt):
    if not template:
        folder = shutil.copytree(folder, tmp_path / "plain")
        (folder / "chat_template.jinja").unlink()
    reply = local(folder, tmp_path).chat.chat.complete("big house")
    assert (reply.text, reply.prompt_tokens, reply.reply_tokens) == likeliest(folder, prompt, 12)


def test_stored_reply_needs_no_model(folder, tmp_path):
    guesser, again = local(folder, tmp_path), local(folder, tmp_path)
    assert guesser.guess(["big house"], 5) == again.guess(["big house"], 5) == [[]] and guesser.unusable == 1
    assert again.chat.chat.budget.spent == 0 and "_loaded" not in vars(again.chat.chat)
    other = shutil.copytree(folder, tmp_path / "other")
    change(other, rope_theta=5.0)
    assert local(other, tmp_path).fingerprint() != guesser.fingerprint() == again.fingerprint()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"cut", "cannot be loaded as a causal language model"),
        ("config.json", b"{", "config.json: cannot be read"),
        ("chat_template.jinja", b"{{ raise_exception('nobody') }}", "its chat template cannot be used: nobody"),
    ],
)
def test_damaged_model_folders_are_refused(folder, tmp_path, name, content, message):
    damaged = shutil.copytree(folder, tmp_path / "model")
    (damaged / name).write_bytes(content)
    refused(DataError, message, lambda: local(damaged, tmp_path / "kept").guess(["big"], 5))


def test_impossible_settings_are_refused(folder, tmp_path, monkeypatch):
    refused(ConfigError, "local.folder: no folder", local, tmp_path / "none", tmp_path)
    message = "room for 512, so at most 50. may be written, got 510"
    refused(ConfigError, message, local(folder, tmp_path, max_tokens=510).guess, ["big"], 5)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    guesser = build(LlmConfig(local=LocalConfig(folder=folder, device="cuda")))
    refused(ConfigError, "device: no GPU cuda is available", guesser.fingerprint)
