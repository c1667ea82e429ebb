"""A causal language model in a folder: a real one, made here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from refusals import refused
from stand_ins.chat_server import pages

from guessers.llm.guesser import LlmConfig, LlmGuesser, build
from guessers.llm.local import LocalConfig
from sqa.core.errors import ConfigError, DataError

# -------------------------------------------------------------------------------------------------- a model in a folder


LOCAL_PROMPT = "Name {guesses} pages: {text}"
TAUGHT = {
    "the town of Potosí": [("Bolivia", 0.75), ("Peru", 0.25)],
    "the river Ebro": [("Spain", 0.5)],
    "no idea": None,
}


def taught_reply(text: str) -> str:
    answer = TAUGHT[text]
    if answer is None:
        return "Sorry!"
    return json.dumps({"guesses": [{"page": page, "confidence": confidence} for page, confidence in answer]})


@pytest.fixture(scope="module")
def taught(tmp_path_factory) -> Path:
    """A small Llama with a tokenizer and a chat template of its own that has learnt TAUGHT by heart."""
    pytest.importorskip("transformers")
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    prompts = [LOCAL_PROMPT.replace("{guesses}", "10").replace("{text}", text) for text in TAUGHT]
    texts = [f"<user>{prompt}<model>{taught_reply(text)}</s>" for prompt, text in zip(prompts, TAUGHT, strict=True)]
    base = Tokenizer(models.BPE())
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = decoders.ByteLevel()
    marks = ["<pad>", "</s>", "<user>", "<model>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    base.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=400, special_tokens=marks, initial_alphabet=alphabet)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=base, eos_token="</s>", pad_token="<pad>")
    tokenizer.chat_template = "{% for m in messages %}<user>{{ m.content }}{% endfor %}<model>"
    torch.manual_seed(0)
    shape = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    marks = {"max_position_embeddings": 256, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **shape, **marks))
    rows = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    labels = rows["input_ids"].masked_fill(rows["attention_mask"] == 0, -100)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(120):
        loss = model(**rows, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("llama")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def local(folder: Path, tmp_path: Path, max_tokens: int = 80, **keys) -> LlmGuesser:
    config = LocalConfig(folder=folder, max_tokens=max_tokens, device="cpu")
    return build(LlmConfig(local=config, every=1, prompt=LOCAL_PROMPT, cache=tmp_path / "kept", **keys))


def test_a_real_causal_model_guesses(taught, tmp_path):
    guesser = local(taught, tmp_path)
    got = guesser.guess(list(TAUGHT), 5)
    assert [pages(row) for row in got] == [["Bolivia", "Peru"], ["Spain"], []]
    assert got[0][0].score == 0.75 and guesser.unusable == 1
    again = local(taught, tmp_path)
    assert again.guess(list(TAUGHT), 5) == got and again.chat.chat.budget.spent == 0  # kept, the model is not loaded
    assert "_loaded" not in vars(again.chat.chat)


def test_a_model_without_a_chat_template_goes_on_from_the_prompt(taught, tmp_path):
    folder = shutil.copytree(taught, tmp_path / "plain")
    (folder / "chat_template.jinja").unlink()
    guesser = local(folder, tmp_path)
    assert len(guesser.guess(["the river Ebro"], 5)) == 1
    assert guesser.fingerprint() != local(taught, tmp_path).fingerprint()


def test_a_prompt_too_long_for_the_model(taught, tmp_path):
    guesser = local(taught, tmp_path, max_tokens=250)
    refused(ConfigError, "room for 256, so at most 2.. may be written, got 250", guesser.guess, ["the river Ebro"], 5)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"cut", "cannot be loaded as a causal language model"),
        ("config.json", b"{", "config.json: cannot be read"),
        (
            "chat_template.jinja",
            b"{{ raise_exception('no users here') }}",
            "template cannot be used: no users here",
        ),
    ],
)
def test_folders_that_hold_no_model(taught, tmp_path, name, content, message):
    folder = shutil.copytree(taught, tmp_path / "model")
    (folder / name).write_bytes(content)
    refused(DataError, message, lambda: local(folder, tmp_path / "kept").guess(["the river Ebro"], 5))
    refused(ConfigError, "local.folder: no folder", lambda: local(tmp_path / "none", tmp_path).guess(["x"], 5))


def test_no_gpu(taught, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    guesser = build(LlmConfig(local=LocalConfig(folder=taught, device="cuda")))
    refused(ConfigError, "local.device: no GPU is available", guesser.fingerprint)
