"""Decoding state of the Transformer: the cached keys and values of a batch or of one streamed sentence.

A complete source is encoded at once, and READ only makes more of it visible.  For a source that arrives word by word,
each READ encodes the new words.  A bidirectional encoder re-encodes all words read after every READ, and the target
continues from the words written.  This is test-time wait-k (Ma et al. 2019, Section 3), for which the model was not
trained, and it costs an encoding per READ.

Letters in the shape comments: B rows, A of them with their own source (B, or 1 for a streamed sentence), L decoder
layers, H heads, D width, S source and T target pieces, V vocabulary, W lexicon entries per piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from smt.models.stepper import GROWTH, Bonus, Rules, State, at_most, lengthen
from smt.models.transformer import LEXICON_FLOOR, KeyValue, Memory, Transformer
from smt.models.vocab import BOS, EOS, PAD, UNK, Vocabulary
from smt.policies.waitk import HIDDEN_WORD, Schedule, pad
from sqa.core import DataError

ENCODED_ROWS = 32  # sentences encoded together: little padding, and the activations stay in the processor's cache


class Lexicon(NamedTuple):
    """Lexicon entries of A sources: W translations for each of the S source pieces."""

    ids: Tensor  # (A, S * W) int64, target pieces
    probabilities: Tensor  # (A, S, W)


class TransformerWriter:
    """A Transformer ready to translate."""

    batch = 128  # larger batches need more memory, and are hardly faster
    bonus: Bonus | None = None

    def __init__(self, model: Transformer, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary, self.device = model, vocabulary, model.device
        never = np.isin(np.arange(vocabulary.size), (PAD, UNK, BOS))
        self.rules = Rules(
            vocabulary.starts_word, vocabulary.joins_next, never, vocabulary.has_digit, EOS, PAD, self.device
        )

    def begin(self, sentences: Sequence[Sequence[str]], schedule: Schedule) -> TransformerStepper:
        """Return a stepper of complete, non-empty sentences before the first READ."""
        segmented = [self.vocabulary.words(words) for words in sentences]
        for (ids, _), words in zip(segmented, sentences, strict=True):
            self.check(len(ids) + 1, words)
        needs = [np.array([*index, len(words)]) + 1 for (_, index), words in zip(segmented, sentences, strict=True)]
        length = torch.tensor([len(words) for words in sentences], device=self.device)
        state = State.begin(pad(needs, HIDDEN_WORD).to(self.device), length, BOS)
        stepper = TransformerStepper(self, schedule, state)
        stepper.encode_whole(pad([np.array([*ids, EOS]) for ids, _ in segmented], PAD))
        return stepper

    def stream(self, source: Iterator[str], schedule: Schedule) -> TransformerStepper:
        """Return a stepper of a sentence whose words arrive one by one."""
        length = torch.full((1,), HIDDEN_WORD, device=self.device)
        state = State.begin(length.new_zeros(1, 0), length, BOS)
        return TransformerStepper(self, schedule, state, source)

    def check(self, pieces: int, words: Sequence[str] = ()) -> None:
        """Raise DataError for a text with more pieces, including its end, than the model has positions."""
        if pieces > (most := self.model.config.max_pieces):
            begins = f" ({' '.join(words[:6])[:80]} ...)" if words else ""
            raise DataError(f"a sentence{begins} has {pieces} pieces, but the model has {most} positions: split it")

    def pieces(self, word: str | None) -> Sequence[int]:
        """Return the pieces of a source word, or of the end of the source for None."""
        return [EOS] if word is None else self.vocabulary.word(word)

    def spell(self, pieces: Sequence[int]) -> str:
        """Return the word that pieces spell."""
        return self.vocabulary.decode_word(pieces)

    def logits(self, x: Tensor, alignment: Tensor | None, lexicon: Lexicon | None) -> Tensor:
        """Return the scores of all pieces, (B, V), for states x (B, D) and log alignment (B, S) to the first S pieces.

        Adds the mixture of the lexicon entries of those S pieces (a sparse Transformer.lexicon_matrix).
        """
        if alignment is None or lexicon is None:
            return self.model.logits(x, None)
        seen, width, b = alignment.shape[1], lexicon.probabilities.shape[2], len(alignment)
        weight = (lexicon.probabilities[:, :seen] * alignment.exp()[:, :, None]).flatten(1)
        floor = torch.full((b, self.model.config.vocabulary), LEXICON_FLOOR, device=x.device)
        return self.model.logits(x, floor.scatter_add_(1, lexicon.ids[:, : seen * width].expand(b, -1), weight))

    def lexicon(self, source: Tensor) -> Lexicon | None:
        """Return the lexicon entries of source pieces (A, S)."""
        if not self.model.config.lexicon_width:
            return None
        return Lexicon(self.model.lexicon_ids[source].long().flatten(1), self.model.lexicon_probabilities[source])


class TransformerStepper:
    """Sentences being decoded."""

    def __init__(
        self, writer: TransformerWriter, schedule: Schedule, state: State, source: Iterator[str] | None = None
    ) -> None:
        """Start from a state; `source` yields the words of one streamed sentence, or is None for complete sources."""
        self.writer, self.model, self.schedule, self.state, self.source = writer, writer.model, schedule, state, source
        c = self.model.config
        size, b = c.width // c.heads, len(state.read)
        self.past: list[KeyValue] | None = None  # keys and values of the encoder, while a source is being read
        self.scored = 0  # number of choices so far, an upper bound on the pieces written
        zeros = partial(torch.zeros, device=writer.device)
        self.pieces = zeros(1, 0, dtype=torch.long)  # (A, S) of the source
        self.cross = zeros(1, 2 * c.decoder_layers, c.heads, 0, size)  # (A, 2 L, H, S, D/H), layer by layer
        self.align_key = zeros(1, 0, c.width if c.lexicon_width else 0)  # (A, S, D), or (A, S, 0)
        self.cache = zeros(b, 2 * c.decoder_layers, c.heads, GROWTH, size)  # (B, 2 L, H, T, D/H) of the target
        self.lexicon: Lexicon | None = None

    @torch.inference_mode()
    def encode_whole(self, pieces: Tensor) -> None:
        """Encode complete sources (A, S) given in CPU memory; on a CPU, ENCODED_ROWS at a time."""
        rows = ENCODED_ROWS if self.writer.device.type == "cpu" else len(pieces)
        chunks = [chunk[:, : int((chunk != PAD).sum(1).max())] for chunk in pieces.split(rows)]
        chunks, pieces = [chunk.to(self.writer.device) for chunk in chunks], pieces.to(self.writer.device)
        memories = [self._memory(chunk) for chunk in chunks]
        longest = pieces.shape[1]
        self.pieces = pieces
        self.cross = torch.cat([lengthen(cross, 3, longest) for cross, _ in memories])
        self.align_key = torch.cat([lengthen(key, 1, longest) for _, key in memories])
        self.lexicon = self.writer.lexicon(pieces)

    @torch.inference_mode()
    def read(self, due: Tensor, written: Tensor) -> None:
        """READ `due` (B,) more words, and as many as `written` (B,) target pieces require, up to the end."""
        whole = self.model.config.encoder == "bidirectional"
        if self.source is None:
            previous = self.state.read
            self.state.read_on(due, written, self.schedule)
            if whole:
                self._encode_again((self.state.read > previous) & ((previous > 0) | ~self.state.ended))
            return
        words = self.state.pull(self.source, self.writer.pieces, due, self.schedule.pieces_before(written))
        if not (pieces := [piece for word in words for piece in word]):
            return
        new = torch.tensor([pieces], device=self.writer.device)
        self.pieces = torch.cat([self.pieces, new], 1)
        self.writer.check(self.pieces.shape[1])
        cross, align_key = self._memory(self.pieces if whole else new, growing=not whole)
        self.cross = cross if whole else torch.cat([self.cross, cross], 3)
        self.align_key = align_key if whole else torch.cat([self.align_key, align_key], 1)
        self.lexicon = self.writer.lexicon(self.pieces)

    def _encode_again(self, rows: Tensor) -> None:
        """Re-encode the words read by these rows (B,) bool as a complete source."""
        if bool(rows.any()):
            pieces = torch.where(self.state.visible()[rows], self.pieces[rows], PAD)
            self.cross[rows], self.align_key[rows] = self._memory(pieces)

    def _memory(self, pieces: Tensor, growing: bool = False) -> tuple[Tensor, Tensor]:
        """Return cross and align_key of source pieces (A, S), which continue the previous pieces if `growing`."""
        states, past = self.model.encode(pieces, self.past)
        self.past = past if growing else None
        memory = self.model.remember(states, pieces)
        cross = torch.stack([part for layer in memory.cross for part in layer], 1)
        return cross, cross.new_zeros(*pieces.shape, 0) if memory.align_key is None else memory.align_key

    @torch.inference_mode()
    def score(self) -> tuple[Tensor, Tensor]:
        """Return the scores of each next piece (B, V), and whether only the end may follow (B,).

        Only the end may follow at the model's last position.
        """
        s = self.state
        b, longest = len(s.written), at_most(s.written, self.scored) + 1
        self.scored += 1
        if longest > self.cache.shape[3]:
            self.cache = lengthen(self.cache, 3, longest + GROWTH)
        visible = s.visible()  # (B, S)
        pieces = visible.sum(1)
        most = at_most(pieces, visible.shape[1])  # pieces that no sentence has read are omitted
        cached = torch.arange(longest, device=pieces.device) <= s.written[:, None]  # (B, T)
        align_key = self.align_key[:, :most] if self.align_key.shape[2] else None
        memory = Memory(_layers(self.cross[:, :, :, :most].expand(b, -1, -1, -1, -1)), align_key, self.pieces[:, :most])
        cache = _layers(self.cache[:, :, :, :longest])
        x, alignment = self.model.step(s.last, s.written, memory, visible[:, :most], cache, cached)
        align = None if alignment is None else alignment[:, 0]
        full = s.full(pieces) | (s.written >= self.model.config.max_pieces - 1)
        return self.writer.logits(x[:, 0], align, self.lexicon), full

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows (B,) bool, and only the positions that they use."""
        pieces, written = int((self.pieces[rows] != PAD).sum(1).max()), int(self.state.written[rows].max())
        self.scored = written
        self.state.needs, self.pieces = self.state.needs[:, :pieces], self.pieces[:, :pieces]
        self.cross, self.align_key = self.cross[:, :, :, :pieces], self.align_key[:, :pieces]
        self.cache = self.cache[:, :, :, :written]
        self.state.keep(rows)
        for name in ("pieces", "cross", "align_key", "cache"):
            setattr(self, name, getattr(self, name)[rows])
        self.lexicon = self.writer.lexicon(self.pieces)


def _layers(stacked: Tensor) -> list[KeyValue]:
    """Return each layer's keys and values as views of `stacked`, (B, 2 L, H, S, D/H)."""
    return [KeyValue(stacked[:, i], stacked[:, i + 1]) for i in range(0, stacked.shape[1], 2)]
