"""Words a phrase-based model knows, favoured in the search of another: `lexicon: pbmt-pl-en` of the language model.

A small language model writes fluent English and forgets what the source said.  The rows of one token a side of a
phrase table say how each source word is translated; those words get a bonus while their source word was read and is
not covered yet.  Lexically constrained search in its soft form (Arthur et al., EMNLP 2016: discrete lexicons in neural
translation), without training.  A name that the table does not have is its own translation, without its ending too
(smt/models/copying.py).  A source word counts once it is read, so streaming and batched decoding favour the same
pieces.

The bonus, `lexicon_bonus` nats, is weighted by sqrt p(e|f) and by the model's doubt: the entropy of its next piece over
DOUBT nats, at most 1.  It is given to the first piece of a translation where a word may begin, and to its next pieces
inside it.  Within an open word the probability that another word begins stays as it was: a word is not cut short for
the next.  At the first piece it is also weighted by the probability that the next word is no function word: otherwise
the bonus takes the place of articles and prepositions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from smt.models.copying import MOST, Begun, is_name, spellings
from smt.models.next_piece import Rules
from smt.statistical.packed import CONFIG, PHRASES, Phrase, is_packed, read_phrases
from sqa.core.errors import ConfigError
from sqa.core.languages.en import LANGUAGE as ENGLISH
from sqa.core.paths import DATA
from sqa.data.languages import pair_of
from sqa.data.priors import form, strip_edges
from sqa.files.atomic import joined_digest
from sqa.files.records import parse_json

VERSION = 3  # raise when the bonus falls on other pieces
BONUS = 4.0  # nats, unless the config says otherwise
DOUBT = 2.0  # nats of entropy from which on the whole bonus is given
SHORTEST = 3  # letters of a translation
LEAST = 0.1  # p(e|f) of a translation
LEAST_BACK = 0.02  # p(f|e): below it the word goes with anything
CHOICES = 6  # translations of a source word

Table = Mapping[str, Sequence[tuple[str, float]]]


class Translation(NamedTuple):
    """One way to translate a source word."""

    pieces: tuple[int, ...]  # places among those that may be chosen
    weight: float  # 0 to 1
    form: str  # by which it is known to be written


def model_folder(name: str, languages: tuple[str, str]) -> Path:
    """Where the packed model of a `lexicon` is.  ConfigError for none, or for one of another direction."""
    bundled = DATA / "models" / name
    folder = bundled if is_packed(bundled) else Path(name).expanduser()
    if not is_packed(folder):
        raise ConfigError(f"lexicon: {name} is no packed phrase-based model, as pbmt-es-en and pbmt-pl-en are")
    pair = pair_of(parse_json((folder / CONFIG).read_bytes()).get("about"))
    if pair not in (None, languages):
        raise ConfigError(f"lexicon: {name} translates {'-'.join(pair)}, the model {'-'.join(languages)}")
    return folder


def check(lexicon: str | None, bonus: float, beam: int) -> None:
    """ConfigError for what does not go together."""
    if not 0 < bonus <= MOST:
        raise ConfigError(f"lexicon_bonus: must be above 0 and at most {MOST:g} nats, got {bonus:g}")
    if lexicon and beam > 1:
        raise ConfigError(f"lexicon: for greedy decoding, so beam must be 1, got {beam}")


def fingerprint(folder: Path, bonus: float) -> str:
    """Name the version, the phrases and the size of the bonus."""
    return f"lexicon {VERSION} {joined_digest([folder / PHRASES])} {bonus}"


@lru_cache(maxsize=2)
def load_table(folder: Path, language: str) -> Table:
    """Translations of each source form with their p(e|f), the likeliest first, from a packed model's phrases."""
    return table_of(read_phrases(folder / PHRASES), language)


def table_of(phrases: Iterable[Phrase], language: str) -> Table:
    """See `load_table`; `language` is the ISO 639-1 code of the source."""
    counts: dict[str, dict[str, list[Phrase]]] = defaultdict(lambda: defaultdict(list))
    totals: dict[str, int] = defaultdict(int)
    for row in phrases:
        if " " not in row.source and " " not in row.target:
            source = form(row.source, language)
            counts[source][row.target.lower()].append(row)
            totals[source] += row.both
    table = {}
    for source, targets in counts.items():
        rows = [
            (max(some, key=lambda row: row.both).target, sum(row.both for row in some) / totals[source])
            for word, some in targets.items()
            if word[0].isalpha() and len(word) >= SHORTEST and word not in ENGLISH.function_words and _bound(some)
        ]
        likely = sorted((row for row in rows if row[1] >= LEAST), key=lambda row: -row[1])
        if likely:
            table[source] = likely[:CHOICES]
    return table


def _bound(rows: Sequence[Phrase]) -> bool:
    """Return whether the target word of these rows often comes from their source word."""
    both, total = sum(row.both for row in rows), max(row.total for row in rows)
    return both / max(total, both) >= LEAST_BACK


@dataclass(slots=True)
class Uncovered:
    """The words of one sentence and which of them are translated."""

    lexicon: Lexicon
    words: int = 0  # heard so far
    open: list[tuple[int, Sequence[Translation]]] = field(default_factory=list)  # words to be read before it is known

    def hear(self, word: str) -> None:
        """Note that a word of the source was read."""
        self.words += 1
        if translations := self.lexicon.translations(word, self.words > 1):
            self.open.append((self.words, translations))

    def wrote(self, word: str, read: int) -> None:
        """One more word of the translation: it covers the first of the `read` words that it can translate."""
        written = form(word, "en")
        for i, (at, translations) in enumerate(self.open):
            if at <= read and any(translation.form == written for translation in translations):
                del self.open[i]
                return


class Lexicon:
    """The bonus over V pieces that may be chosen."""

    def __init__(
        self, table: Table, language: str, bonus: float, rules: Rules, places: Callable[[str], Sequence[int] | None]
    ) -> None:
        """`places`: of the pieces of a word among those that may be chosen, None where one may not."""
        self.table, self.language, self.bonus = table, language, bonus
        self.starts, self.places = rules.starts_word.float().cpu(), places  # (V,) 1 where a piece begins a word
        spelt = (places(form) for word in sorted(ENGLISH.function_words) for form in (word, word.capitalize()))
        self.function = torch.tensor([pieces[0] for pieces in spelt if pieces and len(pieces) == 1], dtype=torch.long)
        self.translations = lru_cache(maxsize=1 << 16)(self._translations)

    def names(self, words: Iterable[str] = ()) -> Uncovered:
        """The words of a sentence, these of which are heard."""
        uncovered = Uncovered(self)
        for word in words:
            uncovered.hear(word)
        return uncovered

    def _translations(self, word: str, inside: bool) -> tuple[Translation, ...]:
        """Of a source word: those that can be written.  `inside`: it is not the first of its sentence, where a capital
        would say nothing."""
        rows = self.table.get(form(word, self.language), ())
        if not rows and inside and is_name(name := strip_edges(word)):
            rows = [(spelling, 1.0) for spelling in sorted(spellings(name, self.language))]
        spelt = ((self.places(target), p**0.5, form(target, "en")) for target, p in rows)
        return tuple(Translation(tuple(places), weight, name) for places, weight, name in spelt if places)

    def favour(self, scores: Tensor, begun: Begun) -> Tensor:
        """Add the bonus (nats) to scores (B, V), in place."""
        shares = scores.softmax(-1)
        doubt = (torch.special.entr(shares).sum(-1) / DOUBT).clamp_max(1.0) * self.bonus  # (B,)
        beginning = (shares * self.starts).sum(-1).clamp_min(1e-30)  # (B,) probability that a word begins
        content = doubt * (1.0 - shares[:, self.function].sum(-1) / beginning)  # (B,)
        first: list[tuple[int, int, float]] = []  # row, piece, weight
        later: list[tuple[int, int, float]] = []
        for row, (pieces, uncovered, read) in enumerate(zip(*begun, strict=True)):
            beginnings, rests = _next_pieces(uncovered, tuple(pieces), read)
            first += [(row, piece, weight) for piece, weight in beginnings.items()]
            later += [(row, piece, weight) for piece, weight in rests.items()]
        if first:
            rows, places, weights = _columns(first)
            bonus = content[rows] * weights
            gained = shares[rows, places] * self.starts[places] * bonus.expm1()
            gained = torch.zeros_like(beginning).index_add_(0, rows, gained) / beginning
            scores.index_put_((rows, places), bonus, accumulate=True)
            inside = torch.tensor([bool(pieces) for pieces in begun.pieces])
            scores.addr_(gained.log1p() * inside, self.starts, alpha=-1.0)  # another word is no likelier than before
        if later:
            rows, places, weights = _columns(later)
            scores.index_put_((rows, places), doubt[rows] * weights, accumulate=True)
        return scores


def _columns(bonuses: Sequence[tuple[int, int, float]]) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, pieces, weights."""
    rows, places, weights = zip(*bonuses, strict=True)
    return torch.tensor(rows), torch.tensor(places), torch.tensor(weights)


def _next_pieces(uncovered: Uncovered, pieces: tuple[int, ...], read: int) -> tuple[dict[int, float], dict[int, float]]:
    """The greatest weight of each piece that begins a translation, and of each that goes on with the open word."""
    beginnings: dict[int, float] = {}
    rests: dict[int, float] = {}
    n = len(pieces)
    for at, translations in uncovered.open:
        if at > read:
            break
        for places, weight, _ in translations:
            beginnings[places[0]] = max(weight, beginnings.get(places[0], 0.0))
            if 0 < n < len(places) and places[:n] == pieces:
                rests[places[n]] = max(weight, rests.get(places[n], 0.0))
    return beginnings, rests
