"""BM25 compared with its formula, computed by hand and by a plain loop, and its files."""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import chain, pairwise
from random import Random

import numpy as np
import pytest
from refusals import refused

from guessers.retrieval.bm25 import Bm25Config, Bm25Guesser, Index
from guessers.retrieval.counting import count, fit
from guessers.retrieval.tfidf import TfidfConfig
from sqa.core import DataError
from sqa.files import model_files


@dataclass(frozen=True)
class Doc:
    page: str | None
    text: str


DOCS = [
    Doc("Lima", "capital peru pacific coast"),
    Doc("Cusco", "inca capital peru mountains inca"),
    Doc("Lima", "city peru founded pizarro"),
    Doc("Oslo", "capital norway fjord"),
    Doc(None, "peru peru peru"),
]


def by_hand(query: str, config: Bm25Config, min_count: int) -> dict[str, float]:
    """Return the scores by the formula of guessers/retrieval/bm25.py; the words of DOCS equal their stems."""
    pages = sorted({doc.page for doc in DOCS if doc.page})
    texts = {page: " ".join(doc.text for doc in DOCS if doc.page == page).split() for page in pages}
    pairs = {page: [pair for doc in DOCS if doc.page == page for pair in pairwise(doc.text.split())] for page in pages}
    seen = Counter(pair for page in pages for pair in pairs[page])
    pairs = {page: [pair for pair in pairs[page] if seen[pair] >= min_count] for page in pages}
    words = query.split()
    scores = dict.fromkeys(pages, 0.0)
    for field, terms, boost in ((texts, words, 1), (pairs, list(pairwise(words)), config.pair_boost)):
        mean = sum(map(len, field.values())) / len(pages)
        for term in terms:
            df = sum(term in field[page] for page in pages)
            idf = math.log(1 + (len(pages) - df + 0.5) / (df + 0.5))
            for page in pages:
                tf = field[page].count(term)
                norm = config.k1 * (1 - config.b + config.b * len(field[page]) / mean)
                scores[page] += boost * idf * tf / (tf + norm)
    return {page: score for page, score in scores.items() if score > 0}


CONFIGS = [Bm25Config(), Bm25Config(k1=2, b=0.3, pair_boost=1.5), Bm25Config(b=0, pair_boost=0)]
WEIGHTINGS = [*CONFIGS, *(Bm25Config(similarity=name) for name in ("lucene", "elasticsearch", "tfidf"))]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("query", ["capital peru", "inca inca capital peru", "pizarro founded peru", "atlantis norway"])
@pytest.mark.parametrize("min_count", [1, 2])
def test_scores_equal_the_formula(config, query, min_count):
    guesser = fit(DOCS, min_count, config)
    actual = {guess.page: guess.score for guess in guesser.guess([query], 10)[0]}
    assert actual == pytest.approx(by_hand(query, config, min_count))


WORDS = ["sun", "moon", "star", "dust", "ring", "comet", "the"]


def sorted_by_hand(guesser: Bm25Guesser, line: str, n: int) -> list[tuple[str, float]]:
    """Return the best pages by a plain sum over postings and a plain sort, with ties in the order of titles."""
    index, scores = guesser.index, dict.fromkeys(guesser.index.titles, 0.0)
    for term in chain(*guesser.terms(line.split())):
        for at in range(index.starts[term], index.starts[term + 1]):
            scores[index.titles[index.pages[at]]] += guesser.weights[at]
    return sorted(((page, score) for page, score in scores.items() if score), key=lambda row: (-row[1], row[0]))[:n]


@pytest.mark.parametrize("config", WEIGHTINGS)
def test_best_pages_are_exact_after_every_word(config):
    rng = Random(5)
    for n in [0, 1, 2, 5, 9, 10**9] * 5:
        texts = (" ".join(rng.choices(WORDS, k=rng.randint(1, 8))) for _ in range(rng.randint(1, 40)))
        guesser = fit([Doc(rng.choice("abcdefghijklmnop"), text) for text in texts], 1, config)
        words = rng.choices([*WORDS, "unknown", "sun-moon", "ring-dust-ring"], k=15)
        prefixes = [" ".join(words[: end + 1]) for end in range(len(words))]
        expected = [sorted_by_hand(guesser, prefix, n) for prefix in prefixes]
        assert guesser.guess(prefixes, n) == guesser.guess_prefixes(words, n) == expected
    assert guesser.guess_prefixes([], 5) == []


def test_pairs_do_not_cross_texts():
    index = count([Doc("Lima", "sun moon"), Doc("Lima", ""), Doc("Lima", "of the"), Doc("Lima", "star dust")], 1)
    pairs = {tuple(index.words[id] for id in divmod(key, len(index.words))) for key in index.pair_keys.tolist()}
    assert pairs == {("sun", "moon"), ("star", "dust")}


@pytest.mark.parametrize(("analyzer", "known"), [("stems", "found"), ("standard", "founded"), ("english", "found")])
def test_saved_tables_and_analyzers_round_trip(tmp_path, analyzer, known):
    index = count(DOCS, 1, analyzer)
    index.save(tmp_path)
    loaded = Index.load(tmp_path)
    assert (loaded.titles, loaded.words, loaded.analyzer) == (index.titles, index.words, analyzer)
    for name in ("pair_keys", "starts", "pages", "counts"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(index, name))
    assert known in loaded.words
    assert [guess.page for guess in Bm25Guesser(loaded, Bm25Config()).guess(["Founded,"], 5)[0]] == ["Lima"]


def test_missing_or_too_large_weights_are_refused(tmp_path, monkeypatch):
    count(DOCS, 1).save(tmp_path)
    monkeypatch.setattr(model_files, "MAX_BYTES", 10)
    refused(DataError, "is larger than", Bm25Guesser.load, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    refused(DataError, "cannot read the model", Bm25Guesser.load, tmp_path)


def test_guessers_of_a_folder_share_index_and_weights(tmp_path):
    count(DOCS, 1).save(tmp_path)
    first, second, other = (Bm25Guesser.load(tmp_path, config) for config in (None, Bm25Config(), Bm25Config(b=0.1)))
    assert first.index is second.index is other.index
    assert first.weights is second.weights is not other.weights
    count(DOCS[1:], 1).save(tmp_path)  # another index in the same folder
    assert Bm25Guesser.load(tmp_path).index is not first.index


def test_tfidf_equals_its_formula():
    """Compute the formula of guessers/retrieval/tfidf.py term by term, on texts whose words equal their stems."""
    config = TfidfConfig(b=0.7, pair_boost=0.5)
    texts = {page: [doc.text.split() for doc in DOCS if doc.page == page] for page in ("Lima", "Cusco", "Oslo")}
    counts = {page: Counter(t for words in of for t in [*words, *pairwise(words)]) for page, of in texts.items()}

    def idf(term):
        boost = 0.5 if isinstance(term, tuple) else 1
        return boost * (1 + math.log(3 / sum(term in counts[page] for page in counts)))

    query = "inca inca capital peru".split()
    terms = [term for term in [*query, *pairwise(query)] if any(term in counts[page] for page in counts)]
    expected = {}
    for page, tf in counts.items():
        length = math.sqrt(sum((idf(term) * (1 + math.log(tf[term]))) ** 2 for term in tf))
        score = sum(idf(term) ** 2 * (1 + math.log(tf[term])) for term in terms if term in tf) / length**0.7
        expected |= {page: score} if score else {}
    weights = Bm25Config(b=config.b, pair_boost=config.pair_boost, similarity="tfidf")
    guesser = fit(DOCS, 1, weights)
    assert {g.page: g.score for g in guesser.guess([" ".join(query)], 5)[0]} == pytest.approx(expected)
    assert guesser.guess_prefixes(query, 5)[-1] == guesser.guess([" ".join(query)], 5)[0]
