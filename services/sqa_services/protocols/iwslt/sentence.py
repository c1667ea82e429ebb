"""One sentence of an evaluation: how far it was read, and what was written when."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

from sqa_services.protocols.iwslt.corpus import EOS

SKIPPED = "<skipped>"  # dropped by the 13a tokenizer of BLEU
INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800")  # fillers and a blank that Unicode calls letters and a symbol


def words(text: str) -> list[str]:
    """The words of a hypothesis: what stands between blanks and shows a letter, a digit, a mark or a symbol.

    A token without any would have a delay and no part in the text that is scored.
    """
    return [token for token in text.split() if any(map(_visible, token.replace(SKIPPED, "")))]


def _visible(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNPS" and character not in INVISIBLE


@dataclass(slots=True)
class Sentence:
    """The state of one sentence."""

    step: float = 0  # where the next read begins: words, the end counted as one, or ms
    samples: int = 0  # the same of a recording by SimulEval's requests
    reads: int = 0  # requests that read it
    before: tuple[float, int] = (0, 0)  # step and samples before the last of them
    tokens: list[str] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    elapsed: list[float] = field(default_factory=list)  # ms since the first read; of speech, on top of the delay
    started: float | None = None  # time.monotonic() of the first read
    reach: float = 0  # the most that was ever handed out, in the unit of `step`: what a delay is

    @property
    def finished(self) -> bool:
        return EOS in self.tokens
