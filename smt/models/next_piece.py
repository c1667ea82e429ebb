"""The next piece of a translation: the model's scores under the rules that keep small models sane.

1.  No phrase of up to REPEAT pieces is written twice in a row, and no piece inside a word three times ("Sing Sing" is
    lost, so that small models cannot loop).  Digits are free.
2.  A sentence may have 2 target pieces per visible source piece and 10 more; at the limit the end is chosen.
3.  After a published word only a word start or the end of the sentence may follow.

Letters in the shape comments: B sentences, S source pieces, D width, V vocabulary, W lexicon entries per piece.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from smt.models.copying import Begun, Copier
from smt.models.transformer import LEXICON_FLOOR, Transformer
from smt.models.vocab import BOS, EOS, PAD, UNK, Vocabulary

REPEAT = 8  # longest phrase, in pieces, that may not be written twice in a row


def piece_limit(visible_pieces: Tensor | int) -> Tensor | int:
    """Target pieces allowed for this many visible source pieces (rule 2)."""
    return 2 * visible_pieces + 10


class Lexicon(NamedTuple):
    """What the lexicon says of some sources of S pieces, W translations each."""

    ids: Tensor  # (B, S * W) int64, target pieces
    probabilities: Tensor  # (B, S, W)


class Past(NamedTuple):
    """The last pieces of B sentences, as far as rule 1 looks back."""

    last: Tensor  # (B, REPEAT) pieces, newest first, -1 = none yet
    run: Tensor  # (B, REPEAT) column n - 1: how many of the last pieces equal the piece n before them

    @classmethod
    def none(cls, rows: int) -> Past:
        """Nothing written yet."""
        return cls(torch.full((rows, REPEAT), -1), torch.zeros((rows, REPEAT), dtype=torch.long))

    def then(self, pieces: Tensor) -> Past:
        """One more piece for each sentence (B,)."""
        new = pieces[:, None]
        return Past(torch.cat([new, self.last[:, :-1]], 1), (self.run + 1) * (self.last == new))


class Rules:
    """Rules 1 and 3, whatever model gives the scores; V pieces may be chosen."""

    def __init__(
        self, starts_word: Tensor, joins_next: Tensor, never: Tensor, free: Tensor, end: int, nothing: int
    ) -> None:
        """All (V,) bool: pieces that begin a word, that the next piece belongs to, that are never chosen, that may be
        repeated at will; `end` ends a sentence, `nothing` is a piece among `never`."""
        self.starts_word, self.joins_next, self.free, self.nothing = starts_word, joins_next, free, nothing
        opens = starts_word.clone()
        opens[end] = True
        # (2, V): what cannot follow a published word, what cannot continue an open one
        self.banned = torch.stack([~opens | never, never])

    def forbid(self, scores: Tensor, word_open: Tensor, past: Past) -> Tensor:
        """scores (B, V), in place, with -inf for what the rules 1 and 3 forbid; the end is never among it."""
        scores.masked_fill_(self.banned[word_open.long()], float("-inf"))
        return scores.scatter_(1, self.repeats(past), float("-inf"))

    def starts(self, choice: Tensor, last: Tensor) -> Tensor:
        """Whether each choice (B,) begins a word after the piece before it (B,)."""
        return self.starts_word[choice] & ~self.joins_next[last]

    def repeats(self, past: Past) -> Tensor:
        """Pieces (B, REPEAT) that rule 1 forbids, `nothing` in the place of none."""
        candidate, run = past.last.clamp_min(0), past.run  # writing candidate n - 1 would complete n pieces again
        again = run >= torch.arange(REPEAT)
        again[:, 0] = self.starts_word[candidate[:, 0]] | (run[:, 0] >= 1)  # a piece inside a word may come twice
        again &= (past.last >= 0) & ~self.free[candidate]
        return torch.where(again, candidate, self.nothing)


class Chooser:
    """Turns decoder states into the next piece under the rules above."""

    def __init__(self, model: Transformer, vocabulary: Vocabulary, copy_bonus: float = 0.0, language: str = "") -> None:
        """copy_bonus: nats for what spells a name of the source (whose ISO 639-1 code is `language`), see
        smt/models/copying.py."""
        self.model = model
        self.copier = Copier.of(vocabulary, copy_bonus, language) if copy_bonus else None
        never = torch.zeros(vocabulary.size, dtype=torch.bool)
        never[[PAD, UNK, BOS]] = True
        starts, joins, digits = (
            torch.from_numpy(table) for table in (vocabulary.starts_word, vocabulary.joins_next, vocabulary.has_digit)
        )
        self.rules = Rules(starts, joins, never, digits, EOS, PAD)

    def __call__(
        self, x: Tensor, alignment: Tensor | None, lexicon: Lexicon | None, word_open: Tensor, full: Tensor, past: Past,
        begun: Begun | None = None,
    ) -> Tensor:  # fmt: skip
        """x (B, D), log alignment (B, S), word_open and full (B,) -> pieces (B,); `begun` is what a bonus needs."""
        scores = self.rules.forbid(self.logits(x, alignment, lexicon), word_open, past)  # (B, V)
        if self.copier is not None and begun is not None:
            self.copier.favour(scores, begun)
        return torch.where(full, EOS, scores.argmax(-1))

    def log_probabilities(
        self, x: Tensor, alignment: Tensor | None, lexicon: Lexicon | None, word_open: Tensor, full: Tensor, past: Past
    ) -> Tensor:
        """The same -> (B, V): the model's log probability of each piece, -inf where the rules forbid it."""
        scores = self.rules.forbid(self.logits(x, alignment, lexicon).log_softmax(-1), word_open, past)
        if bool(full.any()):
            ends = scores[full, EOS]
            scores[full] = float("-inf")
            scores[full, EOS] = ends
        return scores

    def logits(self, x: Tensor, alignment: Tensor | None, lexicon: Lexicon | None) -> Tensor:
        """What the model says of each piece (B, V), the lexicon included."""
        lexical = None if alignment is None or lexicon is None else self.lexical(alignment.exp(), lexicon)
        return self.model.logits(x, lexical)

    def starts(self, choice: Tensor, last: Tensor) -> Tensor:
        """Whether each choice (B,) begins a word after the piece before it (B,)."""
        return self.rules.starts(choice, last)

    def lexicon(self, source: Tensor) -> Lexicon | None:
        """The entries of source pieces (B, S)."""
        if not self.model.config.lexicon_width:
            return None
        return Lexicon(self.model.lexicon_ids[source].long().flatten(1), self.model.lexicon_probabilities[source])

    def lexical(self, attention: Tensor, lexicon: Lexicon) -> Tensor:
        """Floored lexicon mixture (B, V) of attention to the first pieces: Transformer.lexicon_matrix, sparse."""
        seen, width = attention.shape[1], lexicon.probabilities.shape[2]
        weight = (lexicon.probabilities[:, :seen] * attention[:, :, None]).flatten(1)
        out = torch.full((len(attention), self.model.config.vocabulary), LEXICON_FLOOR)
        return out.scatter_add_(1, lexicon.ids[:, : seen * width], weight)
