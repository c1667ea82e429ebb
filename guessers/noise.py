"""Noise for training texts: hidden words, and tossups translated into a foreign language and back.

    python -m guessers.noise --output runs/train/translated.es.jsonl --tossups 1000

translates English tossups into the foreign language (Apertium) and back with the project's own simultaneous model, each
at one of several k.  `--fold buzzer` selects tossups that no guesser was trained on, with and without a page, for
buzzers and `rerank` (`translated` in their configs); `--fold dev` selects tossups that no training run reads.  For
Polish, use --there "python -m smt.training.lexical_lines pl-en" --model pl-en.  All noise is keyed by seed and tossup
id, so no tossup's noise depends on other tossups.  The file has one JSON object per line, {"id", "k", "by",
"sentences": [English, ...]}, where `by` names the translators.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from sqa.core import TRANSLATORS, ConfigError, Question, hypotheses, returns_exit_code
from sqa.data.sentences import split
from sqa.data.texts import Tossup, tossups_of
from sqa.files import write_text

BLOCK = 100  # tossups translated together
KS = ("3", "6", "9", "12", "15", "full")


def rng_for(seed: int, tossup_id: str, time: int = 0) -> np.random.Generator:
    """Return the random generator of a tossup at one `time` (epoch), independent of earlier draws."""
    name = int.from_bytes(hashlib.sha256(tossup_id.encode()).digest()[:8], "big")
    return np.random.default_rng([seed, time, name])


def hide_words(ids: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Replace about `share` of the token ids by 0, the unknown word."""
    return np.where(rng.random(len(ids)) < share, 0, ids) if share else ids


# --- translation


class RoundTrip:
    """Translation from English into another language and back; the second translator has a k chosen per tossup."""

    def __init__(self, there: Any, back: Mapping[str, Any]) -> None:
        """Store the translators; `there` and each of `back` (by k) have `translate_batch` and `fingerprint`."""
        self._there, self._back = there, back
        prints = [there.fingerprint(), *(back[k].fingerprint() for k in sorted(back))]
        self.by = hashlib.sha256(" ".join(prints).encode()).hexdigest()[:12]

    @classmethod
    def of(cls, command: Sequence[str], model: str, ks: Sequence[str]) -> RoundTrip:
        """Return a round trip of a command-line translator and the trained wait-k model."""
        there = TRANSLATORS.config_class("command")(command=tuple(command))
        settings = TRANSLATORS.config_class("waitk")
        back = {k: TRANSLATORS.build("waitk", settings(model=model, k=int(k) if k.isdecimal() else k)) for k in ks}
        return cls(TRANSLATORS.build("command", there), back)

    def k_of(self, tossup_id: str, seed: int) -> str:
        """Return the k at which a tossup is translated back."""
        ks = list(self._back)
        return ks[int(rng_for(seed, tossup_id).integers(len(ks)))]

    def records(self, tossups: Sequence[Tossup], seed: int) -> list[dict[str, Any]]:
        """Return the translations of the tossups as records of the output file, in the same order."""
        english = [_question(t.id, split(t.text, "en")) for t in tossups]
        foreign = [
            _question(question.id, [line.split() for line in hypotheses(question, emissions)])
            for question, emissions in zip(english, self._there.translate_batch(english), strict=True)
        ]
        by_id: dict[str, dict[str, Any]] = {}
        for k, translator in self._back.items():
            chosen = [question for question in foreign if self.k_of(question.id, seed) == k]
            for question, emissions in zip(chosen, translator.translate_batch(chosen), strict=True):
                lines = hypotheses(question, emissions)
                by_id[question.id] = {"id": question.id, "k": k, "by": self.by, "sentences": lines}
        return [by_id[tossup.id] for tossup in tossups]


def _question(name: str, sentences: Iterable[Sequence[str]]) -> Question:
    """Return a text in the form that translators take, without empty sentences."""
    kept = tuple(tuple(words) for words in sentences if words)
    return Question(id=name, dataset="tossups", language="", sentences=kept, reference=(), page="")


def choose(tossups: Iterable[Tossup], n: int, seed: int) -> list[Tossup]:
    """Return `n` tossups, selected and ordered by a hash of seed and id, so new tossups do not change the order."""
    return sorted(tossups, key=lambda t: hashlib.sha256(f"{seed} {t.id}".encode()).digest())[:n]


def write(path: Path, tossups: Sequence[Tossup], trip: RoundTrip, seed: int) -> None:
    """Translate the tossups in blocks, and write them to `path` when all are translated."""
    starts = tqdm(range(0, len(tossups), BLOCK), "translating", unit=f" x {BLOCK} tossups")
    records = [record for start in starts for record in trip.records(tossups[start : start + BLOCK], seed)]
    write_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m guessers.noise", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="file of the texts, JSON lines")
    parser.add_argument("--tossups", type=int, default=3000, help="number of tossups of the fold")
    parser.add_argument("--fold", choices=("buzzer", "dev"), default="buzzer", help="(default: %(default)s)")
    parser.add_argument("--there", default="apertium -u eng-spa", help="command from English (default: %(default)s)")
    parser.add_argument("--model", default="es-en", help="wait-k model into English (default: %(default)s)")
    parser.add_argument(
        "--k", nargs="+", default=KS, help="values of k, one of which is chosen per tossup (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the choice of tossups and k (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if options.tossups < 1:
        raise ConfigError(f"--tossups: must be >= 1, got {options.tossups}")
    trip = RoundTrip.of(shlex.split(options.there), options.model, options.k)
    write(options.output, choose(tossups_of([options.fold]), options.tossups, options.seed), trip, options.seed)


if __name__ == "__main__":
    sys.exit(main())
