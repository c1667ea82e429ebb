"""Translations of a phrase-based model for a language model: a bonus in its search, and glosses in its input.

Lexicon (`lexicon: pbmt-pl-en` of the language model)

A small language model writes fluent English but forgets content of the source.  The one-to-one rows of a phrase table
give translations of each source word.  These translations get a bonus if their source word is read and not yet covered.
The method is a soft form of lexically constrained search without training (Arthur et al., EMNLP 2016: discrete lexicons
in neural translation).  A name that is not in the table is its own translation, with or without its ending.
A source word counts once it has been read, so streaming and batched decoding favour the same
pieces.

The bonus, `lexicon_bonus` nats, is weighted by sqrt p(e|f) and by the model's uncertainty: the entropy of its next
piece over DOUBT nats, at most 1.  It applies to the first piece of a translation where a word may begin, and to the
next pieces inside the word.  Within an open word, the probability that another word begins stays unchanged, so that the
bonus does not cut words short.  At the first piece, the bonus is also weighted by the probability that the next word is
not a function word.  Otherwise the bonus would replace articles and prepositions.

Glosses: translations after rare source words, as in "zarazą[plague]", for a language model trained with them

The phrase table contains rare words that a small language model has hardly seen.  A gloss is attached to its word and
read together with it, so wait-k sees no word too early.  In training, some glosses are omitted or wrong, so that the
model does not trust them blindly.  Dinu et al. (ACL 2019) annotate terms in the same way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from smt.statistical.packed import CONFIG, PHRASES, Phrase, is_packed, read_phrases
from sqa.core import DATA, STROKES, ConfigError, language_of, pair_of, unmarked
from sqa.data.priors import form, strip_edges
from sqa.files import joined_digest, parse_json

if TYPE_CHECKING:
    from torch import Tensor

    from smt.models.stepper import Begun, Rules

VERSION = 3  # increase when the favoured pieces change
BONUS = 4.0  # nats, default of the config
DOUBT = 2.0  # nats of entropy from which the whole bonus applies
MOST = 20.0  # maximum bonus, in nats
SHORTEST = 3  # minimum number of letters of a translation or a name
LEAST = 0.1  # minimum p(e|f) of a translation
LEAST_BACK = 0.02  # minimum p(f|e); below it, the word occurs with any source word
CHOICES = 6  # maximum translations of a source word

Table = Mapping[str, Sequence[tuple[str, float]]]


class Translation(NamedTuple):
    """A translation of a source word."""

    pieces: tuple[int, ...]  # indices among the allowed pieces
    weight: float  # weight of the bonus, 0 to 1
    form: str  # form by which the translation is recognised in the output


def packed_folder(name: str, languages: tuple[str, str]) -> Path:
    """Return the folder of the packed model that a config's `lexicon` names.

    Raises ConfigError if there is none, or if it translates between other languages.
    """
    bundled = DATA / "models" / name
    folder = bundled if is_packed(bundled) else Path(name).expanduser()
    if not is_packed(folder):
        raise ConfigError(f"lexicon: {name} is not a packed phrase-based model such as pbmt-es-en or pbmt-pl-en")
    pair = pair_of(parse_json((folder / CONFIG).read_bytes()).get("about"))
    if pair not in (None, languages):
        raise ConfigError(
            f"lexicon: {name} translates {'-'.join(pair)}, but the model translates {'-'.join(languages)}"
        )
    return folder


def check(bonus: float) -> None:
    """Raise ConfigError if the bonus is invalid."""
    if not 0 < bonus <= MOST:
        raise ConfigError(f"lexicon_bonus: must be above 0 and at most {MOST:g} nats, got {bonus:g}")


def fingerprint(folder: Path, bonus: float) -> str:
    """Return a string that identifies the version, the phrases and the size of the bonus."""
    return f"lexicon {VERSION} {joined_digest([folder / PHRASES])} {bonus}"


@lru_cache(maxsize=2)
def load_table(folder: Path, language: str) -> Table:
    """Return the translations of each source form with p(e|f), most likely first, from a packed model's phrases."""
    return table_of(read_phrases(folder / PHRASES), language)


def table_of(phrases: Iterable[Phrase], language: str) -> Table:
    """Build the table that `load_table` returns from phrases; `language` is the ISO 639-1 code of the source."""
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
            if word[0].isalpha()
            and len(word) >= SHORTEST
            and word not in language_of("en").function_words
            and _bound(some)
        ]
        likely = sorted((row for row in rows if row[1] >= LEAST), key=lambda row: -row[1])
        if likely:
            table[source] = likely[:CHOICES]
    return table


def spellings(name: str, language: str) -> frozenset[str]:
    """Return the spellings of a name in a translation: as written, in the nominative, and without accents."""
    found = {name}
    for ending, nominative in language_of(language).nominatives:
        if name.endswith(ending) and len(name) - len(ending) >= SHORTEST:
            found.add(name.removesuffix(ending) + nominative)
    return frozenset(found | {unmarked(spelling.translate(STROKES), "NFD") for spelling in found})


def is_name(word: str) -> bool:
    """Return whether a word without edge punctuation may be a name: capital, at least SHORTEST letters, no digit."""
    return len(word) >= SHORTEST and word[0].isupper() and not any(map(str.isdigit, word))


def _bound(rows: Sequence[Phrase]) -> bool:
    """Return whether p(f|e) of these rows, which share a source and a target word, is at least LEAST_BACK."""
    both, total = sum(row.both for row in rows), max(row.total for row in rows)
    return both / max(total, both) >= LEAST_BACK


@dataclass(slots=True)
class Uncovered:
    """The source words of one sentence that have no translation yet."""

    lexicon: Lexicon
    words: int = 0  # number of source words read
    open: list[tuple[int, Sequence[Translation]]] = field(default_factory=list)  # (words to read first, translations)

    def hear(self, word: str) -> None:
        """Record that a word of the source was read."""
        self.words += 1
        if translations := self.lexicon.translations(word, self.words > 1):
            self.open.append((self.words, translations))

    def wrote(self, word: str, read: int) -> None:
        """Record a written word: it covers the first of the `read` source words that it can translate."""
        written = form(word, "en")
        for i, (at, translations) in enumerate(self.open):
            if at <= read and any(translation.form == written for translation in translations):
                del self.open[i]
                return


class Lexicon:
    """The bonus over the V allowed pieces."""

    def __init__(
        self, table: Table, language: str, bonus: float, rules: Rules, places: Callable[[str], Sequence[int] | None]
    ) -> None:
        """Prepare the bonus of a table.

        `places` maps a word to the indices of its pieces among the allowed ones, or to None if one is not allowed.
        """
        import torch

        self.table, self.language, self.bonus = table, language, bonus
        self.starts, self.places = rules.starts_word.float().cpu(), places  # (V,) 1 where a piece begins a word
        spelt = (
            places(form) for word in sorted(language_of("en").function_words) for form in (word, word.capitalize())
        )
        self.function = torch.tensor([pieces[0] for pieces in spelt if pieces and len(pieces) == 1], dtype=torch.long)
        self.translations = lru_cache(maxsize=1 << 16)(self._translations)

    def tracker(self, words: Iterable[str] = ()) -> Uncovered:
        """Return the state of a sentence whose first `words` have been read."""
        uncovered = Uncovered(self)
        for word in words:
            uncovered.hear(word)
        return uncovered

    def _translations(self, word: str, inside: bool) -> tuple[Translation, ...]:
        """Return the spellable translations of a source word.

        `inside`: whether the word is not the first of its sentence, so that a capital indicates a name.
        """
        rows = self.table.get(form(word, self.language), ())
        if not rows and inside and is_name(name := strip_edges(word)):
            rows = [(spelling, 1.0) for spelling in sorted(spellings(name, self.language))]
        spelt = ((self.places(target), p**0.5, form(target, "en")) for target, p in rows)
        return tuple(Translation(tuple(places), weight, name) for places, weight, name in spelt if places)

    def favour(self, scores: Tensor, begun: Begun) -> Tensor:
        """Add the bonus (nats) to scores (B, V), in place."""
        import torch

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
            scores.addr_(gained.log1p() * inside, self.starts, alpha=-1.0)  # other words do not become more likely
        if later:
            rows, places, weights = _columns(later)
            scores.index_put_((rows, places), doubt[rows] * weights, accumulate=True)
        return scores


def _columns(bonuses: Sequence[tuple[int, int, float]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows, pieces and weights as tensors."""
    import torch

    rows, places, weights = zip(*bonuses, strict=True)
    return torch.tensor(rows), torch.tensor(places), torch.tensor(weights)


def _next_pieces(uncovered: Uncovered, pieces: tuple[int, ...], read: int) -> tuple[dict[int, float], dict[int, float]]:
    """Return the maximum weight of each piece that begins a translation, and of each that continues the word."""
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


GLOSSES_VERSION = 1  # increase when the glosses change
COMMON = 300  # a word with more occurrences in the table needs no gloss
LEAST_GLOSS = 0.2  # minimum p(e|f) of a gloss
# shares in training: texts without glosses, words without gloss, less likely glosses
PLAIN_TEXTS, PLAIN_WORDS, OTHER = 0.15, 0.3, 0.12


@dataclass(frozen=True, slots=True)
class Glosses:
    """The translations of one language's rare words."""

    table: Table  # translations by source form, most likely first
    counts: Mapping[str, int]  # occurrences of each source form
    language: str  # ISO 639-1

    def word(self, word: str, other: int = 0) -> str:
        """Return a source word with its gloss, or unchanged.

        `other` is the rank of the gloss among the translations, 0 for the most likely.
        """
        core = strip_edges(word)
        stem = form(core, self.language)
        rows = self.table.get(stem, ())
        if not rows or rows[0][1] < LEAST_GLOSS or self.counts[stem] > COMMON or rows[0][0].lower() == core.lower():
            return word
        return word.replace(core, f"{core}[{rows[min(other, len(rows) - 1)][0]}]", 1)

    def training_text(self, text: str, rng: np.random.Generator) -> str:
        """Return a source text for training, with most of its glosses or, sometimes, with none."""
        if rng.random() < PLAIN_TEXTS:
            return text
        words = text.split()
        ranks = rng.integers(1, 4, len(words)) * (rng.random(len(words)) < OTHER)
        plain = rng.random(len(words)) < PLAIN_WORDS
        return " ".join(
            word if bare else self.word(word, rank) for word, bare, rank in zip(words, plain, ranks, strict=True)
        )


@lru_cache(maxsize=2)
def load_glosses(folder: Path, language: str) -> Glosses:
    """Load the glosses of a packed phrase-based model; `language` is the ISO 639-1 code of the source."""
    counts: Counter[str] = Counter()
    for row in read_phrases(folder / PHRASES):
        if " " not in row.source and " " not in row.target:
            counts[form(row.source, language)] += row.both
    return Glosses(load_table(folder, language), counts, language)
