"""Word alignment of sentences with their translations, by a maintained statistical aligner.

    aligner = load_aligner("es-en")
    [alignment] = aligner.align([(("Nació", "en", "Lima."), ("Born", "in", "Lima."))])
    alignment.links           # ((0, 0), (1, 1), (2, 2)): source word, target word

The aligner is eflomal (Östling and Tiedemann 2016: IBM 1, HMM, fertility; Gibbs sampling).  A test set alone is too
small to learn words from, so it is given *priors*: how often stemmed words were linked in a large parallel corpus.  The
priors of es-en and pl-en are shipped; `python -m smt.training.alignment_priors CONFIG DATA FOLDER` makes others.

eflomal draws at random and takes no seed: a word may be linked in one call and not in the next.  Trust is therefore a
mean of several draws, and `load_aligner(..., cache=FILE)` keeps the links, so that the same texts have the same ones.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import snowballstemmer

from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import DATA
from sqa.diagnose.function_words import strip_edges
from sqa.files.model_files import (
    CONFIG,
    folder_digest,
    pack_integers,
    pack_strings,
    read_tensors,
    resolve_model,
    unpack_integers,
    unpack_strings,
    write_tensors,
)
from sqa.files.store import digest, write_text

KIND, VERSION = "alignment-priors", 1
PREFIX = "align-"  # of the bundled folders' names
# ISO 639-1 -> name of the Snowball stemmer
STEMMERS: Mapping[str, str] = {
    "de": "german", "en": "english", "es": "spanish", "fi": "finnish", "fr": "french", "it": "italian",
    "pl": "polish", "pt": "portuguese", "ru": "russian",
}  # fmt: skip
SHORT = 4  # letters: shorter words must be equal to be alike
SHARED = 0.6  # share of the longer word that two alike words begin with
ALIKE = 5  # prior links of two words that are alike, for each sentence pair they meet in
ITERATIONS = (2, 4, 8)  # of IBM 1, HMM and fertility model; four times as many find no more planted errors
PICKED, PICKS = 0.75, 0.25  # trust of a word that one of the other side picks; that only picks one itself

Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class Alignment:
    """The links of one sentence pair."""

    links: tuple[tuple[int, int], ...]  # (source word, target word), 0-based, sorted
    source: tuple[float, ...]  # per source word, 0..1: the trust that some target word translates it
    target: tuple[float, ...]  # per target word, 0..1: the trust that it translates some source word


class Aligner(Protocol):
    """What sqa/diagnose/step_errors.py asks of a word aligner; any object with these will do."""

    pair: str  # "es-en": source and target language, ISO 639-1

    def align(self, pairs: Sequence[tuple[Words, Words]]) -> list[Alignment]:
        """One alignment per (source words, target words); an empty side has no links."""
        ...


# ------------------------------------------------------------------------------------------------------- word forms


@cache
def _stemmer(language: str) -> Any:
    if language not in STEMMERS:
        raise ConfigError(f"no stemmer for the language {language!r}; known: {', '.join(sorted(STEMMERS))}")
    return snowballstemmer.stemmer(STEMMERS[language])


@lru_cache(maxsize=1 << 18)
def form(word: str, language: str) -> str:
    """What the aligner sees of a word: lower case, no punctuation at the edges, no "'s", stemmed.

    Punctuation alone stays as it is.
    """
    plain = unicodedata.normalize("NFC", word).replace("’", "'").lower()
    bare = strip_edges(plain)
    if language == "en":
        bare = bare.removesuffix("'s")
    return str(_stemmer(language).stemWord(bare)) if bare else plain


@lru_cache(maxsize=1 << 18)
def _folded(word: str) -> str:
    """Lower case without diacritics or punctuation at the edges."""
    decomposed = unicodedata.normalize("NFKD", strip_edges(word).lower().replace("ł", "l"))
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def alike(source: str, target: str) -> bool:
    """Whether two words are spelt nearly alike, as names and loan words are: "Napoleona" and "Napoleon's".

    They are equal but for case, diacritics and punctuation at their edges, or begin with the same SHORT letters or
    more, which are at least the share SHARED of the longer word.
    """
    a, b = _folded(source), _folded(target)
    if a == b:
        return bool(a)
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return same >= SHORT and same >= SHARED * max(len(a), len(b))


# ----------------------------------------------------------------------------------------------------------- priors


@dataclass(frozen=True)
class Priors:
    """How often word forms (see `form`) of two languages were linked in parallel text, and how often they occurred."""

    pair: str  # "es-en"
    links: Mapping[tuple[str, str], int]  # (source form, target form) -> links
    source: Mapping[str, int]  # source form -> occurrences; forms seen too seldom to say anything are absent
    target: Mapping[str, int]
    digest: str = ""  # of the files they were read from

    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""
        sources, targets = sorted(self.source), sorted(self.target)
        place = ({w: i for i, w in enumerate(sources)}, {w: i for i, w in enumerate(targets)})
        rows = sorted((place[0][s], place[1][t], count) for (s, t), count in self.links.items())
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        tensors = {
            "source_words": pack_strings(sources),
            "target_words": pack_strings(targets),
            "source_counts": pack_integers(np.array([self.source[w] for w in sources], dtype=np.int64)),
            "target_counts": pack_integers(np.array([self.target[w] for w in targets], dtype=np.int64)),
            "link_source": pack_integers(np.diff(table[:, 0], prepend=0)),
            "link_target": pack_integers(table[:, 1]),
            "link_counts": pack_integers(table[:, 2]),
        }
        write_tensors(folder, tensors, {"kind": KIND, "version": VERSION, "pair": self.pair})

    @classmethod
    def load(cls, folder: Path) -> Priors:
        """Read what `save` wrote; DataError if it is damaged."""
        tensors, config = read_tensors(folder, KIND, VERSION)
        try:
            sources, targets = (unpack_strings(tensors[f"{side}_words"]) for side in ("source", "target"))
            counts = {side: unpack_integers(tensors[f"{side}_counts"]).tolist() for side in ("source", "target")}
            s, t = np.cumsum(unpack_integers(tensors["link_source"])), unpack_integers(tensors["link_target"])
            linked = unpack_integers(tensors["link_counts"]).tolist()
            links = {
                (sources[a], targets[b]): count for a, b, count in zip(s.tolist(), t.tolist(), linked, strict=True)
            }
            return cls(
                str(config["pair"]),
                links,
                dict(zip(sources, counts["source"], strict=True)),
                dict(zip(targets, counts["target"], strict=True)),
                folder_digest(folder),
            )
        except (KeyError, IndexError, ValueError) as error:
            raise DataError(f"{folder}: the priors are damaged ({error}); restore or make them again") from error


def load_priors(pair: str, folder: str | Path | None = None) -> Priors:
    """The bundled priors of a pair ("es-en"), or those of a folder.  None, or another pair's: ConfigError."""
    if folder is not None:
        priors = Priors.load(resolve_model(str(folder)))
        if priors.pair != pair:
            raise ConfigError(f"{folder}: holds priors for {priors.pair}, expected {pair}")
        return priors
    bundled = DATA / "models" / f"{PREFIX}{pair}"
    if not (bundled / CONFIG).is_file():
        known = sorted(path.parent.name.removeprefix(PREFIX) for path in bundled.parent.glob(f"{PREFIX}*/{CONFIG}"))
        raise ConfigError(
            f"no priors for aligning {pair} (bundled: {', '.join(known) or 'none'}); "
            "give a folder made by `python -m smt.training.alignment_priors`"
        )
    return Priors.load(bundled)


def load_aligner(pair: str, folder: str | Path | None = None, cache: Path | None = None) -> Aligner:
    """The default aligner of a pair, with the bundled priors or those of a folder; `cache` is a file it may write.

    A pair without bundled priors is aligned from the texts alone, and a line says so.
    """
    if folder is None and not (DATA / "models" / f"{PREFIX}{pair}" / CONFIG).is_file():
        said = "aligned from these texts alone; priors make fewer mistakes: python -m smt.training.alignment_priors"
        print(f"sqa: no priors for {pair}; {said}", file=sys.stderr)
        return EflomalAligner(Priors(pair, {}, {}, {}, "none"), cache=cache)
    return EflomalAligner(load_priors(pair, folder), cache=cache)


# ------------------------------------------------------------------------------------------------------- the aligner

Links = set[tuple[int, int]]  # (source word, target word)


class EflomalAligner:
    """eflomal with priors, in both directions: in the forward one every target word picks a source word or none.

    A word's trust in one draw: 1 with a link that both directions have; PICKED if a word of the other side picks it;
    PICKS if it only picks one itself, as words that have no counterpart often must; 0 without a link.
    """

    def __init__(self, priors: Priors, draws: int = 3, cache: Path | None = None) -> None:
        if draws < 1:
            raise ConfigError(f"alignment: draws must be >= 1, got {draws}")
        if find_spec("eflomal") is None:
            raise ConfigError("word alignment needs the Python package eflomal: pip install -e '.[train]'")
        self.pair, self.draws, self._priors, self._cache = priors.pair, draws, priors, cache

    def align(self, pairs: Sequence[tuple[Words, Words]]) -> list[Alignment]:
        """One alignment per (source words, target words).  The texts' statistics count too: give all at once."""
        full = [pair for pair in pairs if pair[0] and pair[1]]
        drawn = iter(self._kept(full))
        return [_judged(len(x), len(y), next(drawn) if x and y else [(set(), set())] * self.draws) for x, y in pairs]

    def _kept(self, pairs: Sequence[tuple[Words, Words]]) -> list[list[tuple[Links, Links]]]:
        """Per pair its (forward, reverse) links in each draw, from the cache if that has just these texts."""
        key = digest([VERSION, self._priors.digest, self.draws, ITERATIONS, [list(map(list, pair)) for pair in pairs]])
        if self._cache is not None and self._cache.is_file():
            found = _read_cache(self._cache, key)
            if found is not None:
                return found
        lines = self._draw(pairs) if pairs else []
        if self._cache is not None:
            write_text(self._cache, json.dumps({"key": key, "links": lines}) + "\n")
        return [[(_links(f), _links(r)) for f, r in draws] for draws in lines]

    def _draw(self, pairs: Sequence[tuple[Words, Words]]) -> list[list[tuple[str, str]]]:
        """Per pair and draw, eflomal's lines "0-0 1-2 ..." of the forward and the reverse direction."""
        from eflomal import Aligner as Eflomal

        source, target = self.pair.split("-")
        forms = [([form(w, source) for w in x], [form(w, target) for w in y]) for x, y in pairs]
        priors = [f"LEX\t{s}\t{t}\t{count}\n" for (s, t), count in sorted(self._relevant(pairs, forms).items())]
        lines: list[list[tuple[str, str]]] = [[] for _ in pairs]
        with TemporaryDirectory() as folder:
            out = [Path(folder) / name for name in ("forward", "reverse")]
            for _ in range(self.draws):
                Eflomal(model=3, n_iterations=ITERATIONS).align(
                    [" ".join(x) + "\n" for x, _ in forms],
                    [" ".join(y) + "\n" for _, y in forms],
                    links_filename_fwd=str(out[0]),
                    links_filename_rev=str(out[1]),
                    priors_input=priors,
                )
                texts = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in out]
                for drawn, forward, reverse in zip(lines, *texts, strict=True):
                    drawn.append((forward, reverse))
        return lines

    def _relevant(
        self, pairs: Sequence[tuple[Words, Words]], forms: Sequence[tuple[list[str], list[str]]]
    ) -> Counter[tuple[str, str]]:
        """Prior links of words that meet in a pair: those counted, and ALIKE more where the words are alike."""
        known, found = self._priors.links, Counter[tuple[str, str]]()
        for (x, y), (source, target) in zip(pairs, forms, strict=True):
            for word, s in zip(x, source, strict=True):
                for other, t in zip(y, target, strict=True):
                    if (s, t) in known and (s, t) not in found:
                        found[s, t] += known[s, t]
                    if alike(word, other):
                        found[s, t] += ALIKE
        return found


def _judged(sources: int, targets: int, draws: Sequence[tuple[Links, Links]]) -> Alignment:
    """An alignment from (forward, reverse) links of each draw: links that most draws have in either direction."""
    votes: Counter[tuple[int, int]] = Counter()
    source, target = np.zeros(sources), np.zeros(targets)
    for forward, reverse in draws:
        votes.update(forward | reverse)
        for side, words, picks, picked in ((0, source, reverse, forward), (1, target, forward, reverse)):
            best: dict[int, float] = {}
            for links, trust in ((picks, PICKS), (picked, PICKED), (forward & reverse, 1.0)):  # the last one counts
                best.update({link[side]: trust for link in links})
            for word, trust in best.items():
                words[word] += trust
    kept = sorted(link for link, count in votes.items() if 2 * count > len(draws))
    return Alignment(tuple(kept), tuple((source / len(draws)).tolist()), tuple((target / len(draws)).tolist()))


def _links(line: str) -> Links:
    return {(int(i), int(j)) for i, _, j in (link.partition("-") for link in line.split())}


def _read_cache(path: Path, key: str) -> list[list[tuple[Links, Links]]] | None:
    """The links kept in a file, None if they are of other texts; DataError if it is damaged."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["key"] != key:
            return None
        return [[(_links(forward), _links(reverse)) for forward, reverse in draws] for draws in kept["links"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: the kept links are damaged ({error}); delete the file") from error
