"""The embedded BM25 equals Apache Lucene: tokens, stems, ranking, and scores to 1e-5.

Scores from 100 on are compared to the last digit of Lucene's single precision, which is coarser than 1e-5. `python -m
tests.golden.record_lucene` recorded the vectors; the values of Lucene 8.8.1 and 9.9.1 are equal. The documents are the
bundled questions. If `LUCENE` is set to jars of Lucene, the tests also run Lucene on more texts.
"""

import json

import numpy as np
import pytest

from guessers.retrieval import lucene
from guessers.retrieval.bm25 import Bm25Config
from guessers.retrieval.counting import fit
from guessers.text import PageText
from tests.golden import record_lucene

VECTORS = json.loads(record_lucene.VECTORS.read_text(encoding="utf-8"))
ANALYZERS = {"standard": lucene.standard, "english": lucene.english}
DOCUMENTS, QUERIES = record_lucene.documents_and_queries()
TITLES = sorted(DOCUMENTS)
TOLERANCE, SINGLE = 1e-5, 1.2e-7

live = pytest.mark.needs("LUCENE")


def tokens(analyzer, text):
    return [token for word in text.split() for token in ANALYZERS[analyzer](word)]


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_words_are_tokenised_and_stemmed_as_in_lucene(analyzer):
    recorded = VECTORS["tokens"][analyzer]
    assert len(recorded) > 100
    assert {word: tokens(analyzer, word) for word in recorded} == recorded


@pytest.mark.parametrize("name", VECTORS["searches"])
@pytest.mark.parametrize("way", ["from scratch", "incremental"])
def test_ranking_and_scores_equal_lucene(name, way):
    analyzer, k1, b, similarity = name.split("-")
    config = Bm25Config(k1=float(k1), b=float(b), similarity=similarity)
    guesser = fit([PageText(text, title) for title, text in DOCUMENTS.items()], None, config, analyzer)
    if way == "from scratch":
        results = guesser.guess(QUERIES, record_lucene.HITS)
    else:
        results = [guesser.guess_prefixes(query.split(), record_lucene.HITS)[-1] for query in QUERIES]
    compare(results, [[(TITLES[page], score) for page, score in hits] for hits in VECTORS["searches"][name]])


def compare(found, recorded):
    """Compare scores to TOLERANCE, and titles except where their scores differ by less."""
    assert len(found) == len(recorded)
    for guesses, hits in zip(found, recorded, strict=True):
        assert [guess.score for guess in guesses] == pytest.approx(
            [score for _, score in hits], abs=TOLERANCE, rel=SINGLE
        )
        for index, (guess, (title, score)) in enumerate(zip(guesses, hits, strict=True)):
            near = [other for at, other in enumerate(hits) if at != index and abs(other[1] - score) < TOLERANCE]
            last = index == len(hits) - 1 or hits[-1][1] - score > -TOLERANCE
            assert guess.page == title or near or last, (index, guess, title)


def test_some_documents_are_too_long_for_exact_bytes():
    lengths = np.array([len(tokens("standard", text)) for text in DOCUMENTS.values()])
    assert (lucene.byte_lengths(lengths) != lengths).sum() > 20


def test_byte_encoded_lengths_equal_known_values():
    """Lucene's SmallFloat.byte4ToInt(intToByte4(n)) is exact to 40; above, n - 24 is rounded down to four bits."""
    lengths = np.array([0, 1, 23, 24, 39, 40, 41, 42, 55, 56, 57, 60, 100, 1000, 10**6])
    assert lucene.byte_lengths(lengths).tolist() == [0, 1, 23, 24, 39, 40, 40, 42, 54, 56, 56, 60, 96, 984, 983064]


@live
def test_vectors_equal_the_installed_lucene():
    assert (
        record_lucene.search("standard", 2.0, 0.75, "lucene", QUERIES)
        == VECTORS["searches"]["standard-2.0-0.75-lucene"]
    )


@live
def test_byte_encoded_lengths_equal_lucene():
    lengths = [*range(300), *range(300, 100_000, 997), 2**31 - 1]
    theirs = record_lucene.ask(*(("length", length) for length in lengths))
    assert lucene.byte_lengths(np.array(lengths)).tolist() == [int(length) for [length] in theirs]


@live
@pytest.mark.mirror
@pytest.mark.slow
@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_tossups_are_tokenised_as_in_lucene(analyzer):
    from sqa.data.texts import load_tossups

    words = sorted({word for tossup in load_tossups() for word in tossup.text.split()})
    lines = [" ".join(words[start : start + 50]) for start in range(0, len(words), 50)]
    theirs = record_lucene.tokens(analyzer, lines)
    wrong = [
        (set(cut) ^ set(tokens(analyzer, line)))
        for line, cut in zip(lines, theirs, strict=True)
        if cut != tokens(analyzer, line)
    ]
    assert len(words) > 100_000 and not wrong, wrong[:20]
