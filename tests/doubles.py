"""Test doubles: components with simple, predictable behaviour, and questions for them."""

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqa.core import Buzz, Emission, Guess, Question


def question(
    id: str = "q", sentences: Sequence[str] = ("uno dos", "tres cuatro cinco"), page: str = "Spain"
) -> Question:
    """Return a question whose reference is its upper-cased source."""
    return Question(
        id=id,
        dataset="d",
        language="es",
        sentences=tuple(tuple(s.split()) for s in sentences),
        reference=tuple(s.upper() for s in sentences),
        page=page,
    )


def echo(q: Question) -> tuple[Emission, ...]:
    """Return the emissions of a translator that writes every source word as soon as it has read it."""
    return tuple(
        Emission(i, word, g, False)
        for i, sentence in enumerate(q.sentences)
        for g, word in enumerate(sentence, start=1)
    )


def write_questions(path: Path, n: int) -> Path:
    """Write a file of `n` questions; KeywordGuesser cannot name the answer of every third question."""
    pages = ("Spain", "France", "Atlantis")
    with path.open("w", encoding="utf-8") as file:
        for i in range(n):
            page = pages[i % 3]
            source = [f"pista número {i} sobre algo", f"la respuesta es {page.lower()} claro"]
            record = {"id": f"q{i}", "language": "es", "source": source, "reference": source, "page": page}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path


@dataclass(frozen=True, slots=True)
class EchoConfig:
    """The options of the copying translator."""

    k: int = 1  # source words read before the first word is copied
    delay: float = 0.0  # seconds per sentence

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k: must be >= 1, got {self.k}")


class EchoTranslator:
    """A translator that copies the source with a lag of k - 1 words."""

    def __init__(self, config: EchoConfig) -> None:
        self.config = config

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        time.sleep(self.config.delay)
        held: list[str] = []
        for word in source:
            held.append(word)
            if len(held) >= self.config.k:
                yield held.pop(0)
        yield from held

    def fingerprint(self) -> str:
        return f"echo {self.config.k}"


def build_translator(config: EchoConfig) -> EchoTranslator:
    return EchoTranslator(config)


class DyingTranslator(EchoTranslator):
    """A translator that kills its process at the word $FATAL_WORD, unless the file `dead` exists."""

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        for word in super().translate(source):
            if word == os.environ.get("FATAL_WORD") and not Path("dead").exists():
                Path("dead").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield word


def build_dying(config: EchoConfig) -> DyingTranslator:
    return DyingTranslator(config)


@dataclass(frozen=True, slots=True)
class PlacedConfig(EchoConfig):
    """The options of a translator that requests a GPU but does not use it."""

    device: str = "cuda"


def build_placed(config: PlacedConfig) -> EchoTranslator:
    return EchoTranslator(config)


@dataclass(frozen=True, slots=True)
class DropperConfig:
    """The words to omit."""

    dropped: tuple[str, ...] = ("llamado", "Spain", "era", "grande")


class DroppingTranslator:
    """A translator that copies the source at once except for some words."""

    def __init__(self, config: DropperConfig) -> None:
        self.config = config

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        return (word for word in source if word not in self.config.dropped)

    def fingerprint(self) -> str:
        return f"dropper {' '.join(self.config.dropped)}"


def build_dropper(config: DropperConfig) -> DroppingTranslator:
    return DroppingTranslator(config)


@dataclass(frozen=True, slots=True)
class GuesserConfig:
    """The pages that the guesser knows."""

    pages: tuple[str, ...] = ("France", "Spain")


class KeywordGuesser:
    """A guesser that names the pages whose lower-cased name is a word of the text, the last in the text first."""

    def __init__(self, config: GuesserConfig) -> None:
        self.pages = frozenset(config.pages)

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        return [self._guess(text.lower().split())[:n] for text in texts]

    def _guess(self, words: list[str]) -> list[Guess]:
        guesses = [Guess(page, 1.0 + words.index(page.lower())) for page in self.pages if page.lower() in words]
        return sorted(guesses, key=lambda guess: (-guess.score, guess.page))

    def fingerprint(self) -> str:
        return " ".join(sorted(self.pages))


def build_guesser(config: GuesserConfig) -> KeywordGuesser:
    return KeywordGuesser(config)


@dataclass(frozen=True, slots=True)
class BuzzerConfig:
    """The buzz threshold."""

    threshold: float = 0.5


class FirstGuessBuzzer:
    """A buzzer that buzzes at each step whose best guess has a score above the threshold."""

    def __init__(self, config: BuzzerConfig) -> None:
        self.config = config

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        scores = [guesses[0].score if guesses else 0.0 for guesses in history]
        return [Buzz(score, score > self.config.threshold) for score in scores]

    def fingerprint(self) -> str:
        return str(self.config.threshold)


def build_buzzer(config: BuzzerConfig) -> FirstGuessBuzzer:
    return FirstGuessBuzzer(config)


class OracleBuzzer(FirstGuessBuzzer):
    """A buzzer that knows the answer and buzzes at each step whose best guess is right."""

    oracle = True

    def decide_with_answer(self, history: Sequence[Sequence[Guess]], page: str) -> list[Buzz]:
        return [Buzz(1.0, bool(guesses) and guesses[0].page == page) for guesses in history]


def build_oracle(config: BuzzerConfig) -> OracleBuzzer:
    return OracleBuzzer(config)
