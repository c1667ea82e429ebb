"""A pretrained extractive reader, which selects the span of the retrieved passages that answers a question.

It accepts any `transformers` model with a fast tokenizer and a question-answering head (BERT, RoBERTa, ELECTRA or XLM-R
fine-tuned on SQuAD or similar data).  Question and passage, "title. text", are read together in windows of `max_length`
pieces that overlap by `stride`.  A span from piece i to piece j scores

    start(i) + end(j) - start(0) - end(0)        i <= j < i + max_answer

where piece 0 is the model's mark for "not here" (Devlin et al. 2019); the subtraction makes spans of different windows
comparable.  The best span of all passages is the answer, so every question with a passage has one.  Ties are resolved
in favour of the earlier passage, then the earlier span.

Weights are read only from safetensors, nothing is downloaded unless the config allows it, and no code in a model's
folder is run.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from guessers.open_qa.passages import Passage
from sqa.core import ConfigError, Count, DataError, checked, need
from sqa.files import WANTED, Device, device_of, file_digest, find_model, load_pretrained

VERSION = 1  # increase when answers change


@dataclass(frozen=True, slots=True)
@checked
class ReaderConfig:
    """The model and its reading options."""

    model: Annotated[str, "a folder with config, *.safetensors and a fast tokenizer, or a name on the Hugging Face hub"]
    max_length: Annotated[int, Meta(ge=32), "maximum number of pieces of a window, including question and marks"] = 384
    stride: Annotated[Count, "pieces shared by neighbouring windows of a passage"] = 128
    max_answer: Annotated[Count, "maximum number of pieces of an answer"] = 30
    batch: Annotated[Count, "number of windows per batch"] = 16
    device: Annotated[Device, "auto = a GPU if there is one"] = "auto"
    revision: Annotated[str | None, "branch, tag or commit of a hub model; required for a download"] = None
    download: Annotated[bool, "download a hub model that is not in the local cache"] = False


class Reader:
    """An extractive reader with its loaded model."""

    def __init__(self, config: ReaderConfig) -> None:
        import torch

        need("transformers", f"the reader {config.model}")
        self.config = config
        self.folder = find_model(config.model, config.revision, config.download, WANTED)
        self.device = torch.device(device_of(config.device))
        self.tokenizer, self.model = _load(self.folder)
        limit = min(int(self.model.config.max_position_embeddings), int(self.tokenizer.model_max_length))
        if config.max_length > limit:
            raise ConfigError(f"max_length: {self.folder} reads at most {limit} pieces, got {config.max_length}")
        self.model.to(self.device)

    def fingerprint(self) -> str:
        """Return the sha256 of the model's files and the config's numbers."""
        paths = sorted(path for kind in ("*.json", "*.safetensors", "*.txt") for path in self.folder.glob(kind))
        files = [(path.name, file_digest(path)) for path in paths]
        numbers = {**asdict(self.config), "model": "", "device": self.device.type}
        return hashlib.sha256(json.dumps([VERSION, files, numbers], sort_keys=True).encode()).hexdigest()

    def answer(self, question: str, passages: Sequence[Passage]) -> str:
        """Return the best span of the passages; "" without a passage, or for a blank question."""
        if not question.strip():
            return ""
        spans = self._spans(question, [f"{passage.title}. {passage.text}" for passage in passages])
        return max(spans, key=lambda span: span[0], default=(0.0, ""))[1]  # the first of equal scores

    def _spans(self, question: str, texts: Sequence[str]) -> Iterator[tuple[float, str]]:
        """Yield score (logits, > 0 if above "not here") and text of each window's best span, in the order of texts."""
        import torch

        if not texts:
            return
        room = self.config.max_length // 2  # at least half of a window is left for the passage
        pieces = self.tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        if len(pieces) > room:
            question = question[: pieces[room - 1][1]]
        size, stride = self.config.max_length, min(self.config.stride, self.config.max_length // 4)
        windows = {"truncation": "only_second", "max_length": size, "stride": stride, "return_overflowing_tokens": True}
        tensors = {"return_offsets_mapping": True, "padding": True, "return_tensors": "pt"}
        encoded = self.tokenizer([question] * len(texts), list(texts), **windows, **tensors)
        offsets = encoded.pop("offset_mapping").tolist()  # (windows, L, 2)
        text_of_window = encoded.pop("overflow_to_sample_mapping").tolist()
        for first in range(0, len(text_of_window), self.config.batch):
            part = {name: rows[first : first + self.config.batch].to(self.device) for name, rows in encoded.items()}
            with torch.inference_mode():
                output = self.model(**part)
            starts, ends = (logits.float().cpu().numpy() for logits in (output.start_logits, output.end_logits))
            for row, (start, end) in enumerate(zip(starts, ends, strict=True), start=first):
                inside = np.array([side == 1 for side in encoded.encodings[row].sequence_ids])  # (L,)
                if best := best_span(start, end, inside, self.config.max_answer):
                    score, i, j = best
                    yield score, texts[text_of_window[row]][offsets[row][i][0] : offsets[row][j][1]].strip()


def best_span(start: np.ndarray, end: np.ndarray, inside: np.ndarray, longest: int) -> tuple[float, int, int] | None:
    """Return (score, i, j) of the best span of pieces for which `inside` is True; None if there are none.

    `start` and `end` are the logits of all pieces.
    """
    positions = np.flatnonzero(inside)
    if not len(positions):
        return None
    scores = start[positions, None].astype(np.float64) + end[None, positions]  # (P, P)
    length = positions[None, :] - positions[:, None]
    scores[(length < 0) | (length >= longest)] = -np.inf
    i, j = np.unravel_index(int(scores.argmax()), scores.shape)
    return float(scores[i, j] - start[0] - end[0]), int(positions[i]), int(positions[j])


def _load(folder: Path) -> tuple[Any, Any]:
    """Return tokenizer and model (float32, eval mode); raises a one-line error for a folder without them."""
    tokenizer, model = load_pretrained(folder, "AutoModelForQuestionAnswering", "a trained reader")
    if not tokenizer.is_fast:
        raise DataError(f"{folder}: its slow tokenizer gives no piece positions")
    tokenizer.padding_side = "right"  # piece 0 of every window is a mark, never padding
    if tokenizer("a")["input_ids"][0] != tokenizer.cls_token_id:
        problem = "its texts do not begin with a special mark, which 'not here' needs (XLNet's texts end with it)"
        raise DataError(f"{folder}: {problem}")
    return tokenizer, model
