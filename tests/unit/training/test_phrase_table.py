"""Tokens, phrase pairs, n-gram counts and weights of the phrase-based system, without its decoder."""

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from tables import tables_of

from smt.models.vocab import normalise
from smt.statistical import tokens
from smt.statistical.phrase_table import PhraseCounts, spans
from smt.statistical.tune import Candidates, bleu, search, statistics

TABLES = tables_of(__file__)

# --------------------------------------------------------------------------------------------------------- tokens


@pytest.mark.parametrize(("text", "expected"), TABLES["texts_have_the_listed_tokens"])
def test_texts_have_the_listed_tokens(text, expected):
    assert " ".join(tokens.tokenise(text)) == expected


@given(st.text(st.characters(exclude_categories=["Cs", "Co"], exclude_characters=tokens.JOINER), max_size=40))
def test_detokenisation_restores_the_text(text):
    pieces = tokens.tokenise(text)
    assert all(token and not any(c.isspace() or c in "|<>{}" for c in token) for token in pieces)
    assert tokens.words(pieces) == tuple(normalise(text).split())


@given(st.text("ab.'-( ", max_size=20), st.text("ab.'-( ", max_size=20))
def test_tokens_of_a_prefix_are_a_prefix(a, b):
    whole = tokens.tokenise(f"{a} {b}")
    assert whole[: len(tokens.tokenise(a))] == tokens.tokenise(a)


def test_truecasing_uses_the_usual_form():
    sentences = [
        t.split() for t in ("The man of Rome .", "Rome , the city . The end", '"￭ Every man', "We saw every man")
    ]
    forms = tokens.usual_forms(tokens.count_forms(sentences))
    assert [forms.get(word) for word in ("the", "rome", "every", "we")] == ["the", "Rome", "every", None]
    assert tokens.truecase(['"￭', "The", "Man"], forms) == ['"￭', "the", "Man"]
    assert tokens.truecase(["Zeus", "The"], forms) == ["Zeus", "The"]


def test_first_letter_is_capitalised():
    assert tokens.capitalise(("(the", "b")) == ("(The", "b") and tokens.capitalise(("1930",)) == ("1930",)
    texts = ("¿Qué", "qué", "12 Monos", "12", "")
    assert list(filter(tokens.begins_with_capital, texts)) == ["¿Qué", "12 Monos"]


# -------------------------------------------------------------------------------------------------------- phrases


def consistent(links: np.ndarray, longest: int) -> set[tuple[int, int, int, int]]:
    """Return the consistent phrase pairs, found by applying the definition to every pair of spans."""
    size, width = links.shape
    pairs = set()
    for i in range(size):
        for k in range(i, min(size, i + longest)):
            for j in range(width):
                for m in range(j, min(width, j + longest)):
                    inside = links[i : k + 1, j : m + 1].sum()
                    if inside and inside == links[i : k + 1].sum() and inside == links[:, j : m + 1].sum():
                        pairs.add((i, k, j, m))
    return pairs


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.data())
def test_phrase_pairs_follow_the_definition(size, width, longest, data):
    links = np.array(data.draw(st.lists(st.booleans(), min_size=size * width, max_size=size * width)))
    links = links.reshape(size, width)
    pairs = list(spans(links, longest))
    assert len(pairs) == len(set(pairs)) and set(pairs) == consistent(links, longest)


def test_word_only_inside_longer_phrases_keeps_its_link():
    counts = PhraseCounts(longest=3)
    counts.add(["sin", "embargo"], ["however"], np.ones((2, 1), dtype=bool))
    rows = list(counts.rows(best=5, once=3))
    assert rows == [("however", "sin embargo", 1, 1), ("however", "embargo", 2, 1), ("however", "sin", 2, 1)]


# -------------------------------------------------------------------------------------------------------- weights


def test_bleu_of_summed_statistics_equals_sacrebleu():
    hypotheses = ["the big house is very red , he said .", "a small dog eats bread", "no"]
    references = ["the big house is red , he says .", "the small dog eats some bread", "no no"]
    stats = np.sum([statistics(h.split(), r) for h, r in zip(hypotheses, references, strict=True)], axis=0)
    assert 100 * bleu(stats) == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score, abs=1e-9)


def lists(seed: int) -> list:
    """Return n-best lists of candidates whose second feature is their quality and whose first feature misleads."""
    rng = np.random.default_rng(seed)
    n_best = []
    for _ in range(20):
        rows = []
        for _ in range(rng.integers(1, 8)):
            good = rng.integers(0, 10)
            rows.append(((-float(good) + rng.normal(), float(good)), (good, good, good, good, 10, 10, 10, 10, 10, 10)))
        n_best.append(rows)
    return n_best


@pytest.mark.parametrize("seed", range(3))
def test_search_finds_weights_that_rank_well(seed):
    candidates = Candidates.of(lists(seed))
    best = bleu(np.sum([max(stats for _, stats in rows) for rows in lists(seed)], axis=0))
    before = candidates.bleu(np.array([1.0, 0.1]))
    weights, value = search(candidates, [1.0, 0.1], [0, 1], seed)
    assert before < value <= best and value > 0.98 * best
    assert candidates.bleu(np.array(weights)) == value  # the scale does not change ranks
    assert np.abs(weights).mean() == pytest.approx(1.0)
    assert search(candidates, [1.0, 0.1], [0, 1], seed) == (weights, value)
    assert search(candidates, [1.0, 0.0], [0], seed)[0][1] == 0.0  # a fixed weight is left unchanged
