"""Language models in this process as chat models, compared with a plain greedy loop over the logits."""

import shutil
from pathlib import Path

import pytest
import torch
from refusals import refused
from stand_ins.lm_models import change, make

from guessers.llm.guesser import LlmConfig, LlmGuesser, build
from guessers.llm.reply import parse_title
from smt.lm.local import LocalConfig
from sqa.core import ConfigError, DataError


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
    config = LocalConfig(base=str(folder), max_tokens=max_tokens)
    return build(LlmConfig(local=config, every=1, prompt="{text}", cache=tmp_path / "kept"))


@torch.inference_mode()
def likeliest(folder: Path, prompt: str, most: int) -> tuple[str, int, int]:
    """Return the greedy reply and the numbers of pieces read and written."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    pieces = tokenizer(prompt)["input_ids"]
    read = len(pieces)
    while len(pieces) - read < most:
        piece = int(model(torch.tensor([pieces])).logits[0, -1].argmax())
        if piece == tokenizer.eos_token_id:
            break
        pieces.append(piece)
    return tokenizer.decode(pieces[read:], skip_special_tokens=True), read, len(pieces) - read


@pytest.mark.parametrize(("template", "prompt"), [(True, "the big house is"), (False, "<bos>big house\n")])
def test_reply_is_the_most_likely_text(folder, tmp_path, template, prompt):
    if not template:
        folder = shutil.copytree(folder, tmp_path / "plain")
        (folder / "chat_template.jinja").unlink()
    reply = local(folder, tmp_path).model.ask(["big house"])["big house"]
    assert (reply.text, reply.prompt_tokens, reply.reply_tokens) == likeliest(folder, prompt, 12)


def test_fingerprint_covers_the_files_of_the_model(folder, tmp_path):
    guesser = local(folder, tmp_path)
    assert guesser.guess(["big house", "big house"], 5) == [[], []] and guesser.unusable == 1
    other = shutil.copytree(folder, tmp_path / "other")
    change(other, rope_theta=5.0)
    assert local(other, tmp_path).fingerprint() != guesser.fingerprint() == local(folder, tmp_path).fingerprint()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"cut", "cannot be loaded as a language model"),
        ("config.json", b"{", "config.json: not JSON"),
        ("chat_template.jinja", b"{{ raise_exception('nobody') }}", "its chat template cannot be used: nobody"),
    ],
)
def test_damaged_model_folders_are_refused(folder, tmp_path, name, content, message):
    damaged = shutil.copytree(folder, tmp_path / "model")
    (damaged / name).write_bytes(content)
    refused(DataError, message, lambda: local(damaged, tmp_path / "kept").guess(["big"], 5))


def test_impossible_settings_are_refused(folder, tmp_path, monkeypatch):
    refused(ConfigError, "none not found: this folder does not exist", local, tmp_path / "none", tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    config = LlmConfig(local=LocalConfig(base=str(folder), device="cuda"))
    refused(ConfigError, "device: no GPU cuda is available", build, config)


def test_base_model_continues_solved_questions(folder, tmp_path):
    options = {"api": "completions", "reply": "title", "every": 1, "prompt": "{text}", "cache": tmp_path / "kept"}
    guesser = build(LlmConfig(local=LocalConfig(base=str(folder), max_tokens=6), **options))
    reply = guesser.model.ask(["big house"])["big house"]
    assert "\n" not in reply.text and reply.reply_tokens <= 6
    assert guesser.guess(["big house"], 5) == [list(parse_title(reply.text, None).guesses)]
