"""Translators built on a `Writer` of the Transformer or of a language model.

A translator is either a wait-k translator, which continues its own words, or a system for whole texts, which the
policies of `smt.policies.prefixes` make simultaneous.
"""

from collections.abc import Callable, Iterator, Sequence

from smt.models.beam import Beam
from smt.models.decode import decode_batch, decode_stream
from smt.models.stepper import Writer
from smt.policies.waitk import FULL, Schedule
from sqa.core.types import Emission, Question
from sqa.data.languages import Pair


class WaitKTranslator:
    """Wait-k translator; streaming and batched decoding give the same words and the same g.

    `load` is not called before the first use, so a run whose results are stored needs no model.
    """

    def __init__(
        self,
        load: Callable[[], Writer],
        schedule: Schedule,
        beam: Beam | None,
        fingerprint: str,
        languages: Pair | None,
    ) -> None:
        self._load, self.schedule, self.beam, self._fingerprint = load, schedule, beam, fingerprint
        self.languages = languages

    @property
    def writer(self) -> Writer:
        """Return the loaded model."""
        return self._load()

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Yield the words of one sentence while reading `source`."""
        return decode_stream(self.writer, source, self.schedule, self.beam)

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions."""
        sentences = [sentence for question in questions for sentence in question.sentences]
        written = iter(decode_batch(self.writer, sentences, self.schedule, self.beam))
        return [
            [Emission(i, word.token, word.g, word.ended) for i in range(len(q.sentences)) for word in next(written)]
            for q in questions
        ]

    def fingerprint(self) -> str:
        """Return a hash of everything that the output depends on."""
        return self._fingerprint


class WholeTexts:
    """A model that translates whole texts."""

    def __init__(self, load: Callable[[], Writer], beam: Beam | None, fingerprint: str, languages: Pair | None) -> None:
        self._load, self.beam, self._fingerprint, self.languages = load, beam, fingerprint, languages

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the target words of each text, which are () for a blank text."""
        written = decode_batch(self._load(), [text.split() for text in texts], Schedule(FULL), self.beam)
        return [tuple(word.token for word in words) for words in written]

    def fingerprint(self) -> str:
        """Return a hash of everything that the words depend on."""
        return self._fingerprint
