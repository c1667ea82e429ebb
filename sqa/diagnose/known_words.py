"""English vocabulary: words of the bundled BM25 guesser's questions, and the number of pages on which each occurs."""

import re
from functools import cache, lru_cache

from snowballstemmer import stemmer

from sqa.core.answers import unmarked
from sqa.core.errors import DataError
from sqa.core.languages import language_of
from sqa.core.paths import DATA
from sqa.data.priors import Priors, form, has_priors, load_priors, strip_edges
from sqa.files.model_files import read_tensors, unpack_integers, unpack_strings

FOLDER = DATA / "models" / "bm25"
KIND, VERSION = "bm25", 1
SHARED_PAGES = 100  # a word on at least this many pages also counts as English
EVERYWHERE = 5000  # number of pages assigned to a function word
_TOKEN = re.compile(r"[a-z0-9]+")
_stemmer = stemmer("english")


@cache
def _pages() -> dict[str, int]:
    """Return a dict that maps each stem to the number of pages whose questions contain it."""
    tensors, _ = read_tensors(FOLDER, KIND, VERSION)
    try:
        words, pages = unpack_strings(tensors["words"]), unpack_integers(tensors["pages_per_term"])
    except (KeyError, ValueError) as error:
        raise DataError(f"{FOLDER}: the guesser's words are damaged ({error}); restore the folder") from error
    return dict(zip(words, pages.tolist(), strict=False))  # word pairs follow the single words


@cache
def _priors(language: str) -> Priors | None:
    return load_priors(f"{language}-en") if has_priors(f"{language}-en") else None


@lru_cache(maxsize=1 << 17)
def foreign(word: str, language: str) -> bool:
    """Return whether a word belongs to the source language and not to English.

    A word that no question contains is foreign.  If there are priors and they lack its English form, a word that is
    rare in questions is also foreign if it is a function word of the source language or the priors have its source
    form.
    """
    bare, priors = strip_edges(word).lower(), _priors(language)
    if bare in language_of("en").function_words or pages(bare) >= SHARED_PAGES:
        return False
    if priors is None or form(bare, "en") in priors.target:
        return pages(bare) == 0
    in_language = form(bare, language) in priors.source or bare in language_of(language).function_words
    return in_language or pages(bare) == 0


@lru_cache(maxsize=1 << 17)
def pages(word: str) -> int:
    """Return the number of pages with a word's rarest part, or 0 for a word outside the English vocabulary.

    Hyphens, apostrophes and dots separate parts.  Numbers and single letters count as being on every page.
    """
    bare = unmarked(word.replace("’", "'").replace("ł", "l").replace("Ł", "L")).lower().removesuffix("'s")
    if bare in language_of("en").function_words:
        return EVERYWHERE
    parts = [part for part in _TOKEN.findall(bare) if len(part) > 1 and not part.isdigit()]
    return min((_pages().get(str(_stemmer.stemWord(part)), 0) for part in parts), default=EVERYWHERE)
