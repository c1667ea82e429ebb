"""Counts and messages that most runs do not need, which the engine imports on demand.

The counts are the replies and tokens that a language model used to translate a run, including cached replies.

<runs>/store/translate/<key>/usage-0003.json   counts of the fourth block of questions
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sqa.core import DATA, Buzz, ConfigError, DataError, Question, code_of, key
from sqa.core.paths import short
from sqa.files import Stage, Store, parse_json, write_bytes
from sqa.pipeline.config import OTHER_LANGUAGES
from sqa.results import Row

if TYPE_CHECKING:
    from sqa.pipeline.config import RunConfig

MISSPELT = 5  # questions with unknown pages for which the nearest page is sought


@contextmanager
def counting(store: Store, stage: Stage, index: int, usage: Counter[str]) -> Iterator[None]:
    """Write the counts collected in `usage` inside the `with` block to a file next to block `index`."""
    usage.clear()
    yield
    write_bytes(store.folder(stage) / f"usage-{index:04d}.json", json.dumps(usage, sort_keys=True).encode())


def spent(store: Store, stage: Stage, prices: tuple[float, float] | None = None) -> dict[str, float]:
    """Return the counts of a stage's blocks, and their cost if there are prices and the model reports tokens.

    Args:
        store: The store of the run.
        stage: The stage of the translator.
        prices: Price per million tokens, for input and output.

    Raises:
        DataError: If a file is damaged.
    """
    total, folder = Counter[str](), store.folder(stage)
    for path in folder.glob("usage-*.json"):
        try:
            total.update(parse_json(path.read_bytes()))
        except (ValueError, TypeError) as error:
            raise DataError(f"{path}: damaged; delete its folder and run the config again") from error
    counts: dict[str, float] = dict(sorted(total.items()))
    if prices and "prompt-tokens" in total:
        counts["cost"] = (prices[0] * total["prompt-tokens"] + prices[1] * total["reply-tokens"]) / 1e6
    return counts


def rows(store: Store, stage: Stage) -> list[Row]:
    """Return the counts as rows of a report."""
    counts = spent(store, stage)
    n = int(counts.get("replies", 0))
    units = {name: "tokens" if name.endswith("tokens") else "replies" for name in counts}
    return [
        Row((), name, count, n=n, unit=units[name], signature="of the translator") for name, count in counts.items()
    ]


def other_guesser(config: RunConfig, trained: str) -> str:
    """Return the warning about a buzzer that was trained with another guesser than that of the config."""
    assert config.guesser is not None and config.buzzer is not None
    name, current = short(config.buzzer.name), short(config.guesser.name)
    model = getattr(config.buzzer.options, "model", None)
    bundled = (DATA / "models" / f"buzzer-{name}-{current}").is_dir()
    remedy = f"use buzzer.model={current}" if bundled else "train a buzzer for it with `sqa train buzzer`"
    problem = f"its model {model!r} was trained on guesses of {short(trained)}, not of {current}"
    return f"buzzer {name!r}: {problem}; its confidence is not calibrated for this guesser ({remedy})"


def misspelt(unknown: Sequence[Question], pages: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each of the first questions whose page resembles a page of the guesser.

    pages: key of each page -> page.
    """
    for question in unknown[:MISSPELT]:
        if near := get_close_matches(key(question.page), pages, 1, 0.8):
            problem = f"the guesser does not know the page {question.page!r}; did you mean {pages[near[0]]!r}?"
            yield f"sqa: question {question.id}: {problem}\n"


def unanswered(buzzes: Iterable[Sequence[Buzz]]) -> str:
    """Return why no question is answered."""
    scores = [buzz.score for steps in buzzes for buzz in steps]
    if not scores:
        return "no target word was written"
    return f"the buzzer's highest score, {max(scores):.6g}, is below its threshold"


def check_languages(name: str, pair: Any, questions: Sequence[Question]) -> None:
    """Raise ConfigError unless `pair` is None or fits the languages of the questions and of the answers."""
    if pair is None:
        return
    is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2
    if not is_pair or not all(code is None or isinstance(code, str) for code in pair):
        expected = "None or a pair of codes such as ('es', 'en')"
        raise ConfigError(f"translator {name!r}: `languages` must be {expected}, got {repr(pair)[:60]}")
    source, target = (None if code is None else code_of(code) for code in pair)
    advice = f"choose another one, or set `{OTHER_LANGUAGES}: true` under `translator:` if this is intended"
    if target not in (None, "en"):
        raise ConfigError(f"translator {name!r} writes {target!r}, and answers must be in English; {advice}")
    for question in questions:
        if source not in (None, code_of(question.language)):
            where = f"question {question.id} of {question.dataset} is in {question.language!r}"
            raise ConfigError(f"translator {name!r} reads {source!r}, but {where}; {advice}")
