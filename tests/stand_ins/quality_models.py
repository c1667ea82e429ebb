"""Tiny models of the real architectures of COMET, BERTScore and BLEURT, saved in the formats of published models."""

import io
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import yaml

from sqa.data.datasets import load_questions

SIZE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
SIZE |= {"max_position_embeddings": 200, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def words() -> list[str]:
    """Return the 300 most frequent words of the bundled questions, most frequent first."""
    questions = [*load_questions("mini-es"), *load_questions("mini-en")]
    counts = Counter(word.strip(".,").lower() for q in questions for word in q.words)
    return [word for word, _ in counts.most_common(300)]


def save_bert(
    folder: Path,
    known: Iterable[str] | None = None,
    kind: str = "BertModel",
    longest: int = 200,
    seed: int = 1,
    deviation: float = 0.3,
    **size: int,
) -> Path:
    """Save a BERT encoder with a WordPiece tokenizer of letters and `known` words, and return its folder."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    letters = [chr(c) for c in range(97, 123)] + list("áéíóúñ0123456789.,")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{x}" for x in letters)]
    vocabulary = list(dict.fromkeys([*pieces, *(words() if known is None else known)]))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=longest).save_pretrained(folder)
    torch.manual_seed(seed)
    config = transformers.BertConfig(vocab_size=len(vocabulary), **SIZE | size)
    _spread(getattr(transformers, kind)(config), deviation).save_pretrained(folder)
    return folder


def save_xlmr(folder: Path) -> Path:
    """Save an XLM-R encoder with a unigram tokenizer in tokenizer.json, as on the Hub, and return its folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import XLMRobertaConfig, XLMRobertaModel, XLMRobertaTokenizerFast

    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [*(f"\u2581{word}" for word in words()), "\u2581", *(chr(c) for c in range(97, 123)), *"áéíóúñ"]
    known = [(piece, 0.0) for piece in marks] + [(piece, -float(i)) for i, piece in enumerate(dict.fromkeys(pieces))]
    tokenizer = Tokenizer(models.Unigram([*known, ("<mask>", 0.0)], unk_id=3))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    ends = [("<s>", 0), ("</s>", 2)]
    pair = "<s> $A </s> </s> $B </s>"
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair=pair, special_tokens=ends)
    XLMRobertaTokenizerFast(tokenizer_object=tokenizer, model_max_length=198).save_pretrained(folder)
    torch.manual_seed(2)
    config = XLMRobertaConfig(vocab_size=len(known) + 1, pad_token_id=1, bos_token_id=0, eos_token_id=2, **SIZE)
    _spread(XLMRobertaModel(config)).save_pretrained(folder)
    return folder


def save_comet(
    folder: Path, encoder: Path, kind: str = "RegressionMetric", named: str | None = None, kiwi: bool = False
) -> Path:
    """Save a COMET model in the package's format; hparams.yaml names the encoder as `named` (default: its path)."""
    from sqa.metrics.quality.comet import _classes

    _classes()  # hides comet's import warnings
    import comet.models
    import pytorch_lightning

    torch.manual_seed(3)
    cls = getattr(comet.models, kind)
    segments = ["mt", "src"] if kiwi else ["mt", "src", "ref"]
    unified = {"input_segments": segments, "layer_transformation": "sparsemax"}
    more: dict[str, Any] = unified if kind == "UnifiedMetric" else {}
    more |= {"encoder_model": "BERT" if (encoder / "vocab.txt").is_file() else "XLM-RoBERTa"}
    more |= {"pretrained_model": str(encoder), "train_data": [], "validation_data": [], "local_files_only": True}
    model = cls(hidden_sizes=[16, 8], **more)
    for weight in model.layerwise_attention.scalar_parameters:
        torch.nn.init.normal_(weight)  # with equal weights, all weight transformations would give the same result
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = pytorch_lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
        trainer.strategy.connect(model)
        trainer.save_checkpoint(folder / "checkpoints" / "model.ckpt")
    hparams = {**model.hparams, "pretrained_model": named or str(encoder)}
    (folder / "hparams.yaml").write_text(yaml.safe_dump(hparams), encoding="utf-8")
    return folder


def save_bleurt(folder: Path, bert: Path) -> Path:
    """Save a BLEURT model with the WordPiece tokenizer of `bert`."""
    from bleurt_pytorch import BleurtConfig, BleurtForSequenceClassification, BleurtTokenizer

    tokenizer = BleurtTokenizer.from_pretrained(str(bert))
    torch.manual_seed(4)
    _spread(BleurtForSequenceClassification(BleurtConfig(vocab_size=len(tokenizer), **SIZE))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_bleurt_20(folder: Path) -> Path:
    """Save a BLEURT model like BLEURT-20: SentencePiece, and embeddings narrower than the layers."""
    import sentencepiece
    from bleurt_pytorch import BleurtConfig, BleurtForSequenceClassification
    from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer

    folder.mkdir(parents=True)
    model = io.BytesIO()
    lines = (" ".join(s) for q in load_questions("mini-en") for s in q.sentences)
    options = {"vocab_size": 300, "minloglevel": 2, "user_defined_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
    options |= {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=lines, model_writer=model, **options)
    (folder / "spm.model").write_bytes(model.getvalue())
    tokenizer = BleurtSPTokenizer(str(folder / "spm.model"))
    tokenizer.save_pretrained(folder)
    torch.manual_seed(5)
    config = BleurtConfig(vocab_size=len(tokenizer) + 8, embedding_size=16, **SIZE)
    _spread(BleurtForSequenceClassification(config)).save_pretrained(folder)
    return folder


def _spread(model: Any, deviation: float = 0.3) -> Any:
    """Set random weights that are so large that the scores differ between texts."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=deviation)
    return model
