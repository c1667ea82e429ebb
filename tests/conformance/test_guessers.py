"""The contract of every registered guesser."""

import functools

import pytest
from needs import require
from stand_ins.declarations import TABLE, filled
from stand_ins.keyed_parts import LESSONS, Places

from guessers.retrieval.bm25 import Index
from sqa.core import GUESSERS, ConfigError, Guesser
from sqa.core.types import IncrementalGuesser
from sqa.data.datasets import load_questions

N = 50
DECLARED = {name: row for (kind, name), row in TABLE.items() if kind == "guesser" and row.cases}


@pytest.fixture(scope="module", params=DECLARED)
def name(request) -> str:
    if DECLARED[request.param].needs:
        require(DECLARED[request.param].needs)
    return request.param


@pytest.fixture(scope="module", autouse=True)
def one_index():
    """Cache the bundled retrieval model, which four of these guessers share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Index, "load", staticmethod(functools.cache(Index.load)))
        yield


@pytest.fixture(scope="module")
def options(name, tmp_path_factory):
    return filled(DECLARED[name].cases[0], Places(tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="module")
def guesser(name, options):
    return GUESSERS.build(name, GUESSERS.config_class(name)(**options))


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Return the first 40 words of some questions; whole questions would take too long, as every prefix is guessed."""
    return [" ".join(q.reference_text.split()[:40]) for q in load_questions("mini-en", limit=4)]


def assert_same(name, got, expected):
    """Check that guesses are equal; pages may swap if their scores differ by less than the tolerance."""
    tolerance = DECLARED[name].tolerance
    assert len(got) == len(expected)
    for left, right in zip(got, expected, strict=True):
        assert len(left) == len(right)
        if not tolerance:
            assert list(left) == list(right)
            continue
        assert [g.score for g in left] == pytest.approx([g.score for g in right], abs=tolerance)
        scores = {g.page: g.score for g in right}
        for guess in left:
            if guess.page in scores:
                assert guess.score == pytest.approx(scores[guess.page], abs=tolerance)
            else:
                assert guess.score == pytest.approx(right[-1].score, abs=tolerance)


def test_guesses_are_sorted_distinct_finite_and_known(guesser, texts):
    assert isinstance(guesser, Guesser) and isinstance(guesser, IncrementalGuesser)
    for guesses in guesser.guess(texts, N):
        assert 0 < len(guesses) <= N
        assert len({guess.page for guess in guesses}) == len(guesses)
        assert {guess.page for guess in guesses} <= guesser.pages
        assert guesses == sorted(guesses, key=lambda guess: (-guess.score, guess.page))
        assert all(0 <= guess.score < float("inf") for guess in guesses)


def test_each_text_gets_one_list_in_order(name, guesser, texts):
    together = guesser.guess(texts, N)
    assert len(together) == len(texts)
    assert_same(name, [guesser.guess([text], N)[0] for text in texts], together)
    assert guesser.guess([], N) == []


def test_smaller_n_returns_the_first_guesses(name, guesser, texts):
    assert_same(name, guesser.guess(texts, 3), [guesses[:3] for guesses in guesser.guess(texts, N)])


@pytest.mark.parametrize(("text", "n"), [(0, N), (1, N), (0, 2)])
def test_incremental_equals_from_scratch(name, guesser, texts, text, n):
    words = texts[text].split()
    from_scratch = guesser.guess([" ".join(words[: end + 1]) for end in range(len(words))], n)
    assert_same(name, guesser.guess_prefixes(words, n), from_scratch)


def test_guess_depends_only_on_earlier_words(name, guesser, texts):
    words, others = texts[0].split(), texts[1].split()
    middle = len(words) // 2
    steps = guesser.guess_prefixes(words, N)
    assert_same(name, guesser.guess_prefixes([*words[:middle], *others], N)[:middle], steps[:middle])
    expected = [list(guesses) for guesses in steps]
    steps[-2].clear()
    assert steps[-1] == expected[-1] and steps[:-2] == expected[:-2]


@pytest.mark.parametrize("text", ["", "   ", "qzxqzxv", "… — ¿?", "the of and", "東京"])
def test_text_without_a_known_word_has_no_guesses(guesser, text):
    assert guesser.guess([text], N) == [[]]
    assert guesser.guess_prefixes(text.split(), N) == [[] for _ in text.split()]
    assert [bool(step) for step in guesser.guess_prefixes(["qzxqzxv", "the", "Bolivia"], N)] == [False, False, True]
    assert len(guesser.guess_prefixes(["Gabriel", "García", "Márquez's", "“Macondo”,", "x" * 5000], 5)) == 5


def test_unknown_model_error_suggests_the_nearest(name, options):
    model = options.get("model") or pytest.skip("has no model")
    with pytest.raises(ConfigError, match=f"did you mean '{model}'"):
        GUESSERS.build(name, GUESSERS.config_class(name)(model=f"{model}x"))


def test_save_and_load_give_the_same_guesses(name, options, guesser, texts, tmp_path):
    config_class = GUESSERS.config_class(name)
    model = options.get("model") or pytest.skip("has no model")
    if model == "bm25":  # writing takes seconds, and tests/unit/guessers/test_bm25.py compares its tables
        guesser = GUESSERS.build(name, config_class(model=Places(tmp_path).path("bm25")))
        texts = [lesson.text for lesson in LESSONS]
    guesser.save(tmp_path / "again")
    loaded = GUESSERS.build(name, config_class(model=str(tmp_path / "again")))
    assert loaded.pages == guesser.pages and all(guesser.guess(texts, N))
    assert_same(name, loaded.guess(texts, N), guesser.guess(texts, N))
