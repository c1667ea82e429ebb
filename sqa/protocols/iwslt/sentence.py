"""One sentence of an evaluation: how far it was read, and what was written when."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqa.protocols.iwslt.corpus import EOS


@dataclass(slots=True)
class Sentence:
    """The state of one sentence."""

    step: float = 0  # read: words, the end counted as one, or ms
    samples: int = 0  # read of a recording by SimulEval's requests
    reads: int = 0  # requests that read it
    before: tuple[float, int] = (0, 0)  # step and samples before the last of them
    tokens: list[str] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    elapsed: list[float] = field(default_factory=list)  # ms since the first read; of speech, on top of the delay
    started: float | None = None  # time.monotonic() of the first read

    @property
    def finished(self) -> bool:
        return EOS in self.tokens
