"""What guessers learn from: tossups whose answer has a page, by fold, and bonus parts."""

from __future__ import annotations

from collections.abc import Sequence

from guessers.bonus import Bonus, clean_bonus
from sqa.data.datasets import Tossup, load_tossups
from sqa.data.folds import fold_of


def mapped_tossups(folds: Sequence[str]) -> list[Tossup]:
    """The tossups of some folds whose answer has a page, the others teach no page."""
    return [tossup for tossup in load_tossups() if tossup.page is not None and fold_of(tossup.id) in folds]


def lessons(folds: Sequence[str], with_bonus: bool) -> list[Tossup | Bonus]:
    """The tossups of some folds, and on demand the bonus parts that repeat no held-out question; all have a page."""
    return [*mapped_tossups(folds), *(clean_bonus() if with_bonus else ())]
