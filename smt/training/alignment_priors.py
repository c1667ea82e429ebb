"""Priors of the word aligner (sqa/data/priors.py), counted in the alignment of a translator's training data.

    python -m smt.training.alignment_priors configs/smt_es_en.yaml:first runs/smt/es-en/data align-es-en

`prepare` aligned the pieces of the first sentences with eflomal.  This module converts the links to links of words and
stems the words.  It drops links that occur only once, or less often than once per RARE occurrences of the rarer word.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from smt.models.vocab import Vocabulary
from smt.training.config import SmtConfig
from smt.training.corpus import Packed, load_arrays
from smt.training.prepare import is_prepared
from sqa.core.errors import ConfigError
from sqa.data.priors import Priors, form
from sqa.pipeline.config import load

RARE = 50  # a link must occur at least once per this number of occurrences of its rarer word
KNOWN = 3  # minimum number of occurrences of a known word


def count(packed: Packed, vocabulary: Vocabulary, pair: str) -> Priors:
    """Return the priors from all aligned sentences."""
    forms = [_forms(vocabulary, language) for language in pair.split("-")]
    links: Counter[tuple[str, str]] = Counter()
    occurs: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for source, target, linked in _sentences(packed):
        (x, at_x), (y, at_y) = forms[0](source), forms[1](target)
        occurs[0].update(x)
        occurs[1].update(y)
        links.update((x[i], y[j]) for i, j in {(at_x[a], at_y[b]) for a, b in linked})
    return pruned(Priors(pair, links, *occurs))


def pruned(priors: Priors) -> Priors:
    """Drop words with fewer than KNOWN occurrences, links that occur once, and links that are rare for their words."""
    source, target = ({w: n for w, n in side.items() if n >= KNOWN} for side in (priors.source, priors.target))
    links = {
        (s, t): n
        for (s, t), n in priors.links.items()
        if n > 1 and s in source and t in target and n * RARE >= min(source[s], target[t])
    }
    return Priors(priors.pair, links, source, target)


def _sentences(packed: Packed) -> Iterator[tuple[list[int], list[int], list[list[int]]]]:
    """Yield source pieces, target pieces (without the end) and piece links of every aligned sentence."""
    starts = [array.tolist() for array in (packed.source_start, packed.target_start, packed.link_start)]
    for n in np.flatnonzero(np.diff(packed.link_start)).tolist():
        (a, b), (c, d), (e, f) = (start[n : n + 2] for start in starts)
        yield packed.source[a : b - 1].tolist(), packed.target[c : d - 1].tolist(), packed.links[e:f].tolist()


def _forms(vocabulary: Vocabulary, language: str) -> Callable[[list[int]], tuple[list[str], list[int]]]:
    """Return a function that maps a sentence's pieces to its words' forms and the 0-based word index of each piece."""
    starts: list[bool] = vocabulary.starts_word.tolist()

    @cache
    def form_of(pieces: tuple[int, ...]) -> str:
        return form(vocabulary.decode_word(pieces), language)

    def forms(pieces: list[int]) -> tuple[list[str], list[int]]:
        words: list[tuple[int, ...]] = []
        at: list[int] = []
        for piece in pieces:
            if starts[piece] or not words:
                words.append(())
            words[-1] += (piece,)
            at.append(len(words) - 1)
        return [form_of(word) for word in words], at

    return forms


def main(arguments: list[str] | None = None) -> None:
    """Run the command of the module's docstring."""
    program = "python -m smt.training.alignment_priors"
    parser = argparse.ArgumentParser(prog=program, description="Count priors of the aligner.")
    parser.add_argument("config", type=Path, help="configs/smt_*.yaml, as given to `sqa train smt`")
    parser.add_argument("data", type=Path, help="the prepared training data: runs/smt/NAME/data")
    parser.add_argument("folder", type=Path, help="the folder to create")
    options = parser.parse_args(arguments)
    config = load(options.config, SmtConfig).corpus
    if not (options.data / Vocabulary.FILE).is_file():
        raise ConfigError(
            f"{options.data}: contains no prepared training data; `sqa train smt {options.config}` prepares it"
        )
    if not is_prepared(config, options.data):
        print(f"{options.data}: was prepared with a config other than {options.config}", file=sys.stderr)
    vocabulary = Vocabulary.load(options.data / Vocabulary.FILE)
    priors = count(load_arrays(Packed, options.data / "packed"), vocabulary, config.pair)
    priors.save(options.folder)
    print(f"{options.folder}\t{len(priors.links)} links\t{len(priors.source)} + {len(priors.target)} words")


if __name__ == "__main__":
    main()
