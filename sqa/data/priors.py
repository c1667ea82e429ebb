"""Word forms and priors of the word aligner: how often stemmed words of two languages were linked in parallel text.

`FUNCTION_WORDS` have no content of their own: articles, pronouns, prepositions, conjunctions, auxiliaries.  Closed
classes, written by hand from the grammars of the languages that questions come in here.  Word aligners link such words
by chance, so neither an unaligned "the" nor an untranslated "que" is an error worth a reader's time.

`python -m smt.training.alignment_priors CONFIG DATA FOLDER` makes the priors of another pair.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import snowballstemmer

from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import DATA
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

KIND, VERSION = "alignment-priors", 1
PREFIX = "align-"  # of the bundled folders' names
# ISO 639-1 -> name of the Snowball stemmer
STEMMERS: Mapping[str, str] = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "it": "italian",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
}
SHORT = 4  # letters: shorter words must be equal to be alike
SHARED = 0.6  # share of the longer word that two alike words begin with


# -------------------------------------------------------------------------------------------------- function words

_EDGES = re.compile(r"^[\W_]+|[\W_]+$")

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": frozenset(
        """a about above across after again against all almost along already also although am among an and another
        any are around as at be became because become been before being below beneath beside between
        beyond both but by can could did do does doing done down during each either else even ever every
        few for from further had has have having he her here hers herself him himself his how however if
        in into is it its itself just least less may me might more most much must my myself neither no
        nor not now of off often on once one only onto or other others our ours out over own per rather
        same shall she should since so some such than that the their theirs them themselves then there
        these they this those though through throughout thus to too toward towards under until unto up
        upon us very via was we were what when where whereas which while who whom whose why will with
        within without would yet you your yours don't doesn't didn't isn't wasn't can't""".split()
    ),
    "es": frozenset(
        """a al algo algún alguna algunas alguno algunos ante antes aquel aquella aquellas aquello aquellos aquí
        así aun aún aunque bajo bien cada como cómo con contra cual cuál cuales cualquier cuando cuándo
        cuya cuyas cuyo cuyos de del desde donde dónde dos durante e el él ella ellas ello ellos en
        entre era eran eres es esa esas ese eso esos esta está están estaba estaban estar estas este
        esto estos fue fueron ha había habían haber hacia han has hasta hay he incluso la las le les lo
        los más me menos mi mientras mis misma mismas mismo mismos mucha muchas mucho muchos muy nada ni
        no nos nosotros o os otra otras otro otros para pero poco por porque pues que qué quien quién
        quienes se sea según ser será si sí sido siendo sin sino sobre solo sólo somos son soy su sus
        tal también tampoco tan tanto te ti tiene tienen toda todas todavía todo todos tras tu tus u un
        una unas uno unos ya yo""".split()
    ),
    "pl": frozenset(
        """a aby ale albo ani aż bardzo bez bo bowiem by być była było były był będzie będą ci co coś czy czyli dla
        dlatego do dwa gdy gdyby gdzie go i ich im inna inne innego innej innych inny ja jak jaka jaki
        jakie jako jakby je jeden jedna jednak jedno jednym jednej jednego jego jej jemu jest jestem
        jeszcze jeśli jeżeli już każda każdy każdego kiedy kiedyś kto który która które którego której
        któremu którą którym których którymi którzy ku lecz lub ma mają mi miał miała mnie mu musi może
        można my na nad nam nas nasz nawet nią nich nie niej niego nim nimi niż no o ob obok od on ona
        one oni ono oraz oto po pod podczas ponad ponieważ poza przed przede przez przy są się siebie
        sobie sobą swego swej swoich swoim swoja swoje swojego swojej swoją swój swą ta tak taka taki
        takie takich także tam te tego tej temu ten tą tę to toteż tych tylko tym tymi u w we wam was
        wiele wszystko wszystkie wszystkich wśród z za zaś ze zawsze że żeby""".split()
    ),
}


@lru_cache(maxsize=1 << 17)
def is_content(word: str, language: str) -> bool:
    """Whether a word (punctuation at its edges ignored) has a letter or digit and is no function word.

    In a language without a list every word is content, so stretches of lost source words are counted longer.
    """
    bare = strip_edges(word).replace("’", "'").lower()
    return bool(bare) and bare not in FUNCTION_WORDS.get(language, ())


def strip_edges(word: str) -> str:
    """The word without punctuation at its beginning and end: "(Paris)," -> "Paris"."""
    return _EDGES.sub("", word)


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
def folded(word: str) -> str:
    """Lower case without diacritics or punctuation at the edges."""
    decomposed = unicodedata.normalize("NFKD", strip_edges(word).lower().replace("ł", "l"))
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def alike(source: str, target: str) -> bool:
    """Whether two words are spelt nearly alike, as names and loan words are: "Napoleona" and "Napoleon's".

    They are equal but for case, diacritics and punctuation at their edges, or begin with the same SHORT letters or
    more, which are at least the share SHARED of the longer word.
    """
    a, b = folded(source), folded(target)
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


def has_priors(pair: str) -> bool:
    """Whether priors of a pair are bundled."""
    return (DATA / "models" / f"{PREFIX}{pair}" / CONFIG).is_file()


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
