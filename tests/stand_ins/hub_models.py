"""Tiny translation models of real architectures with real tokenizers, saved in the format of the Hugging Face Hub."""

import io
import json
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from tables import tables_of

from sqa.data.datasets import load_questions

TABLES = tables_of(__file__)

PIECES = 300
SIDES = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}
SIZE = {"d_model": 32, "max_position_embeddings": 300, "scale_embedding": True}
SIZE |= {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in SIDES.items()}
SIZE |= dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
LANGUAGES = TABLES["languages"]


def save_models(folder: Path, names: Iterable[str] = LANGUAGES) -> dict[str, Path]:
    """Save each model in a subfolder of `folder`, and return the subfolders by name."""
    pieces = _sentencepiece(folder / "sp.model")
    found = {}
    for name in names:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses", category=UserWarning)
            tokenizer, model = _MAKERS[name](folder, pieces)
        scale(model)
        found[name] = folder / name
        model.save_pretrained(found[name])
        tokenizer.save_pretrained(found[name])
    return found


def scale(model: Any) -> None:
    """Set random weights that are so large that the output differs between texts and steps."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "positions" not in name:
                parameter.normal_(std=0.2 if "embed" in name or "shared" in name else 0.6)
        model.get_input_embeddings().weight[model.config.pad_token_id] = 0.0  # as in all trained models
    model.generation_config.update(num_beams=3, do_sample=True)  # typical settings of published models


def _sentencepiece(path: Path) -> list[str]:
    """Train a SentencePiece model on the bundled questions, save it, and return its pieces without unk, bos and eos."""
    questions = [*load_questions("mini-es"), *load_questions("mini-en")]
    model = io.BytesIO()
    lines = (" ".join(s) for q in questions for s in q.sentences)
    options = {"vocab_size": PIECES, "character_coverage": 0.999, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=lines, model_writer=model, **options)
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [processor.id_to_piece(i) for i in range(3, PIECES)]


def _vocabulary(path: Path, pieces: list[str]) -> str:
    path.write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), encoding="utf-8")
    return str(path)


def _marian(folder: Path, pieces: list[str], marks: tuple[str, ...] = ()) -> tuple[Any, Any]:
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    known = ["</s>", "<unk>", *pieces, *marks, "<pad>"]
    vocabulary = _vocabulary(folder / "vocab.json", known)
    tokenizer = MarianTokenizer(
        str(folder / "sp.model"), str(folder / "sp.model"), vocabulary, source_lang="es", target_lang="en"
    )
    pad = len(known) - 1
    ends = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": 0}
    model = MarianMTModel(MarianConfig(vocab_size=len(known), activation_function="swish", **ends, **SIZE))
    model.generation_config.bad_words_ids = [[pad]]  # as in opus-mt models
    return tokenizer, model


def _m2m(folder: Path, pieces: list[str]) -> tuple[Any, Any]:
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    vocabulary = _vocabulary(folder / "m2m.json", ["<s>", "<pad>", "</s>", "<unk>", *pieces])
    marks = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]]  # as in the published models
    tokenizer = M2M100Tokenizer(vocabulary, str(folder / "sp.model"), additional_special_tokens=marks)
    size = 4 + len(pieces) + len(tokenizer.lang_code_to_id) + tokenizer.num_madeup_words
    return tokenizer, M2M100ForConditionalGeneration(M2M100Config(vocab_size=size, decoder_start_token_id=2, **SIZE))


def _pieces_of(kind: str, folder: Path, pieces: list[str]) -> Any:
    """Return the first argument of a tokenizer: a SentencePiece model for transformers 4, its pieces for version 5."""
    import transformers

    if transformers.__version__.startswith("4."):
        return str(folder / "sp.model")
    scored = [(piece, float(-i)) for i, piece in enumerate(("<s>", "<pad>", "</s>", "<unk>", *pieces))]
    if kind == "Nllb":
        return {piece: i for i, (piece, _) in enumerate(scored)}
    return scored[1:] if kind == "MBart50" else scored  # MBart50's tokenizer adds its own first symbols


def _of(kind: str, family: str, rows: int = 0, **keys: int) -> Callable[[Path, list[str]], tuple[Any, Any]]:
    """Return a function that makes a tokenizer and a model with `rows` more embeddings than the tokenizer's pieces."""

    def make(folder: Path, pieces: list[str]) -> tuple[Any, Any]:
        import transformers

        tokenizer = getattr(transformers, f"{kind}Tokenizer")(_pieces_of(kind, folder, pieces))
        config = transformers.AutoConfig.for_model(family, vocab_size=len(tokenizer) + rows, **keys, **SIZE)
        return tokenizer, transformers.AutoModelForSeq2SeqLM.from_config(config)

    return make


_MAKERS = {
    "marian": _marian,
    "marian-many": partial(_marian, marks=(">>pol<<", ">>deu<<")),
    "m2m": _m2m,
    "nllb": _of("Nllb", "m2m_100", 2, decoder_start_token_id=2),
    "mbart": _of("MBart", "mbart"),
    "mbart50": _of("MBart50", "mbart", decoder_start_token_id=2),
}
