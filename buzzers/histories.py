"""Arrays of a guesser's results after each word of each tossup, as input for training, tuning and reports.

Guessing takes longer than training, so the results on a fold are cached.  The file name is a hash of everything
that can change them: the guesser's fingerprint, the tossups, the code version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from tqdm import tqdm

from buzzers.learnt import N_GUESSES, all_features
from buzzers.threshold import signals
from sqa.core import GUESSERS, Count, Share, checked, guesses_per_word, is_right
from sqa.data.texts import Half, Tossup
from sqa.files import digest
from sqa.files.atomic import atomic

VERSION = 1  # version of the files and their content; raise it when features change


@dataclass(frozen=True, slots=True)
@checked
class DataChoice:
    """The guesser whose guesses train the buzzer, and the tossups."""

    guesser: Annotated[str, "a registered guesser"]
    model: Annotated[str, "model of the guesser, which must not have seen the folds `buzzer` and `dev`"]
    limit: Annotated[Count | None, "maximum number of tossups per fold; null = all"]
    noise: Annotated[Share, "maximum share of words corrupted in a second reading of every tossup; 0 = none"]
    cache: Annotated[Path, "folder with stored results"]
    translated: Annotated[tuple[Path, ...], "files of `python -m guessers.noise --fold buzzer`"] = ()
    noise_least: Annotated[float, "minimum share of words corrupted, <= noise"] = 0.0
    half: Annotated[Half | None, "only this half of the fold `buzzer`; null = all"] = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        wrong = not 0 <= self.noise_least <= self.noise
        return [f"noise_least: must be in [0, noise], got {self.noise_least}"] if wrong else []


@dataclass(frozen=True, slots=True)
class GuessHistory:
    """A guesser's results on a tossup with n steps, one per word."""

    rows: np.ndarray  # (n, 45) float32, `all_features`
    signals: np.ndarray  # (n, 3) float64: SIGNALS; -inf at steps where a fixed threshold never buzzes
    right: np.ndarray  # (n,) bool, the top guess is right
    guessed: np.ndarray  # (n,) bool, there is a guess
    fraction: np.ndarray  # (n,) float64, characters read / all characters


Histories = Sequence[GuessHistory]


def guesser_of(choice: DataChoice) -> Any:
    """Return the guesser of a choice.  Raises ConfigError if the guesser or its model is unknown."""
    return GUESSERS.build(choice.guesser, GUESSERS.config_class(choice.guesser)(model=choice.model))


def histories_of(guesser: Any, tossups: Sequence[Tossup], name: str, cache: Path) -> list[GuessHistory]:
    """Return the guesser's results on each tossup, from `cache` if possible; `name` labels the progress bar."""
    if not tossups:
        return []
    key = digest(["played", VERSION, guesser.fingerprint(), [[each.id, each.text, each.page] for each in tossups]])
    path = cache / f"{key[:32]}.npz"
    histories = _read(path)
    if histories is None:
        histories = [history_of(guesser, tossup) for tossup in tqdm(tossups, f"guessing {name}", mininterval=2)]
        _write(path, histories)
    return histories


def history_of(guesser: Any, tossup: Tossup) -> GuessHistory:
    """Return the guesser's results on one tossup; no answer is right for a tossup without a page."""
    words = tossup.text.split()
    history = guesses_per_word(guesser, words, N_GUESSES)
    read = np.cumsum([len(word) + 1 for word in words]) - 1  # characters up to the end of each word
    return GuessHistory(
        rows=all_features(history),
        signals=np.array([signals(guesses) for guesses in history]),
        right=np.array([bool(g) and tossup.page is not None and is_right(g[0].page, tossup.page) for g in history]),
        guessed=np.array([bool(guesses) for guesses in history]),
        fraction=read / read[-1],
    )


def _write(path: Path, histories: Histories) -> None:
    """Write an .npz file with every field over all tossups, and each tossup's number of steps."""
    names = [field.name for field in fields(GuessHistory)]
    arrays = {name: np.concatenate([getattr(history, name) for history in histories]) for name in names}
    with atomic(path) as partial, partial.open("wb") as file:
        np.savez(file, steps=np.array([len(history.right) for history in histories], np.int64), **arrays)


def _read(path: Path) -> list[GuessHistory] | None:
    """Read a file written by `_write`; return None if it is missing."""
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    ends = np.cumsum(arrays.pop("steps"))[:-1]
    pieces = {name: np.split(array, ends) for name, array in arrays.items()}
    return [GuessHistory(*row) for row in zip(*(pieces[field.name] for field in fields(GuessHistory)), strict=True)]
