"""Perturbations depend only on the seed and the question, and change the question as described."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from doubles import question
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tables import tables_of

from sqa.core import ConfigError, Question
from sqa.data import perturb as perturbing
from sqa.data.datasets import load_questions
from sqa.data.perturb import PERTURBATIONS, chosen

TABLES = tables_of(__file__)

MINI = [*load_questions("mini-es"), *load_questions("mini-pl")]
LANGUAGE = st.sampled_from(["es", "pl"])
WORD = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8)
QUESTIONS = st.builds(
    lambda sentences, language: replace(question(sentences=[" ".join(s) for s in sentences]), language=language),
    st.lists(st.lists(WORD, min_size=1, max_size=6), min_size=1, max_size=4),
    LANGUAGE,
)


def perturb(q: Question, name: str, seed: int) -> Question | None:
    return perturbing.perturb(q, PERTURBATIONS[name], seed)


def text(q: Question | None) -> str:
    assert q is not None
    return " / ".join(" ".join(words) for words in q.sentences)


def spanish(*sentences: str, page: str = "Spain") -> Question:
    return question(sentences=sentences, page=page)


@pytest.mark.parametrize("name", PERTURBATIONS)
@given(q=QUESTIONS, seed=st.integers(0, 5))
def test_copy_is_a_valid_question_or_none(name: str, q: Question, seed: int) -> None:
    copy = perturb(q, name, seed)
    assert copy == perturb(q, name, seed)
    if copy is not None:
        assert copy.id == f"{q.id}_{name}" and copy.page == q.page and copy.sentences != q.sentences
        assert sorted(copy.reference) == sorted(q.reference) and len(copy.sentences) == len(q.sentences)
        assert all(words and all(w.split() == [w] for w in words) for words in copy.sentences)


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_copy_depends_only_on_seed_and_id(name: str) -> None:
    alone = {q.id: perturb(q, name, 3) for q in MINI}
    random.seed(1)
    assert {q.id: perturb(q, name, 3) for q in reversed(MINI)} == alone
    if name in ("typos", "asr", "disfluencies", "reordering"):
        assert sum(perturb(q, name, 4) != alone[q.id] for q in MINI) > 0.9 * len(MINI)


def test_names_are_replaced_except_in_the_answer() -> None:
    copy = text(perturb(spanish("(Carlos, dijo Teresa.", "Carlos II", page="Teresa of Ávila"), "names", 0))
    first, second = copy.split(" / ")
    name = second.removesuffix(" II")
    assert name != "Carlos" and first == f"({name}, dijo Teresa."
    assert perturb(spanish("nadie aquí"), "names", 0) is None


@pytest.mark.parametrize(("before", "after"), TABLES["gender_words_change_with_their_articles"])
def test_gender_words_change_with_their_articles(before: str, after: str) -> None:
    assert text(perturb(spanish(before), "gender", 0)) == after


def test_gender_words_of_the_answer_are_kept() -> None:
    assert perturb(spanish("el rey", page="El Rey (film)"), "gender", 0) is None


@pytest.mark.parametrize(("name", "before", "after"), TABLES["texts_lose_the_named_property"])
def test_texts_lose_the_named_property(name: str, before: str, after: str) -> None:
    assert text(perturb(spanish(before), name, 0)) == after


def test_one_long_word_in_ten_has_a_typo() -> None:
    changed = total = 0
    for q in MINI:
        copy = perturb(q, "typos", 0) or q
        long = [(a, b) for a, b in zip(q.words, copy.words, strict=True) if sum(map(str.isalpha, a)) >= 4]
        total += len(long)
        changed += sum(a != b for a, b in long)
    assert 0.07 < changed / total < 0.13


def test_asr_confuses_similar_sounds_of_the_language() -> None:
    """One word in fifty is omitted, and one in ten changes: half of these from v to b and half from c to s."""
    counts = Counter(text(perturb(spanish("Vaca " * 4000), "asr", 0)).split())
    assert set(counts) == {"vaca", "baca", "vasa"}
    missed, misheard = 4000 - counts.total(), counts["baca"] + counts["vasa"]
    assert 60 < missed < 100 and 340 < misheard < 440 and counts["baca"] > 150 < counts["vasa"]


def test_reordering_includes_the_reference() -> None:
    q = spanish("uno", "dos", "tres")
    copy = perturb(q, "reordering", 0)
    assert [r.lower() for r in copy.reference] == [" ".join(s) for s in copy.sentences]
    assert perturb(spanish("uno"), "reordering", 0) is None and perturb(spanish("a", "a"), "reordering", 0) is None


def test_unknown_perturbations_are_refused() -> None:
    refused(ConfigError, "did you mean 'typos'", chosen, ["typo"])
    refused(ConfigError, "twice", chosen, ["asr", "asr"])


def test_own_perturbation_makes_copies(tmp_path: Path) -> None:
    head = "from dataclasses import replace\nfrom sqa.data.perturb import Perturbation\n"
    body = "Perturbation('{}', '{}', lambda question, rng: replace(question, sentences=question.sentences[:1]))"
    for name, family in (("first", "robustness"), ("first", "odd"), ("typos", "robustness")):
        path = tmp_path / f"{name}_{family}.py"
        path.write_text(f"{head}def build():\n    return {body.format(name, family)}\n")
    [question] = load_questions("mini-es", 1)
    copy = perturbing.perturb(question, chosen([f"{tmp_path}/first_robustness.py:build"])[0], 0)
    assert copy == replace(question, id=f"{question.id}_first", sentences=question.sentences[:1])
    for wrong in ("first_odd", "typos_robustness"):
        with pytest.raises(
            ConfigError, match="expected a Perturbation with a new name and one of the families fairness"
        ):
            chosen([f"{tmp_path}/{wrong}.py:build"])
