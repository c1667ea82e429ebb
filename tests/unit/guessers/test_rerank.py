"""The rerank guesser: answer types in questions, evidence computed by hand, and weights that learn to use it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from refusals import refused
from stand_ins.second_device import as_cuda
from tables import tables_of

import guessers.rerank.train as training
from guessers.rerank.answer_types import SMOOTHING, KindReader, Kinds
from guessers.rerank.evidence import EVIDENCE, Knowledge
from guessers.rerank.features import NUMBERS, numbers
from guessers.rerank.guesser import VERSION, RerankConfig, RerankGuesser, build
from guessers.retrieval.counting import count, fit
from sqa.core import ROOT, DataError
from sqa.data.texts import Tossup, fold_of, half_of
from sqa.files import read_tensors
from sqa.pipeline import config as configs

TABLES = tables_of(__file__)

CONFIG = ROOT / "configs" / "train_guessers.yaml:rerank"


class Doc(NamedTuple):
    page: str | None
    text: str


# An author and a novel have clues with the same names; only their answer type differs.
DOCS = [
    Doc("Anna Author", "this author made Ivan and Vera quarrel"),
    Doc("Anna Author", "this author made Ivan and Oleg meet"),
    Doc("The Quarrel (novel)", "in this novel Ivan and Vera quarrel"),
    Doc("The Quarrel (novel)", "in this novel Ivan and Vera travel"),
    Doc("Vera (river)", "this long river of Norway rises in its north"),
    Doc(None, "this author is nobody"),
]


def known(docs: Sequence[Doc] = DOCS, least: int = 1) -> Knowledge:
    index = count(docs, 1)
    return Knowledge(index, Kinds.of(docs, index.titles, least))


# --- kinds


@pytest.mark.parametrize(("text", "kinds"), TABLES["answer_type_is_read_from_the_question"])
def test_answer_type_is_read_from_the_question(text, kinds):
    reader = KindReader()
    assert [kind for word in text.split() for kind in reader.read(word)] == kinds


def test_answer_type_counts_once_per_lesson():
    titles = ("a", "b", "c")
    docs = [Doc("a", "this king and this king"), Doc("a", "this king"), Doc("b", "this river"), Doc(None, "this king")]
    kinds = Kinds.of(docs, titles, 1)
    assert kinds.names == ("king", "river") and kinds.lessons.tolist() == [2, 1, 0]
    rate = 2 / 3
    expected = [(2 + SMOOTHING * rate) / (2 + SMOOTHING), SMOOTHING * rate / (1 + SMOOTHING), rate]
    assert kinds.evidence("king")[0] == pytest.approx(np.log(np.array(expected) / rate))
    pages, share = kinds.called("king")
    assert pages.tolist() == [0] and share.tolist() == [2 / 3]
    assert kinds.evidence("duke") is None and len(kinds.called("duke")[0]) == 0
    assert Kinds.of(docs, titles, 2).names == ("king",)


# --- numbers


def test_numbers_compare_the_candidates_of_a_step():
    """The first step has scores 4 and 2 after four words, and the second has one candidate after six."""
    evidence = np.zeros((3, len(EVIDENCE)))
    given = {"words": [3, 1, 2], "pairs": [1, 1, 0], "most": [2, 1, 1], "last 12": [2, 1, 2], "word hits": [2, 1, 3]}
    for name, values in given.items():
        evidence[:, EVIDENCE.index(name)] = values
    made = dict(zip(NUMBERS, numbers(evidence, np.array([0, 0, 1]), [4, 6]).T, strict=True))
    expected = {
        "score: share": [1, 1 / 2, 1],
        "score: ln share": [0, np.log(1 / 2), 0],
        "score: place": [1, 6 / 7, 1],
        "score: spread": [1, -1, 0],
        "last 12": [2 / 4, 1 / 4, 2 / 2],
        "word hits": [2 / 4, 1 / 4, 3 / 6],
        "most": [2 / 4, 1 / 2, 1 / 2],
        "score: share: ahead": [1 / 2, -1 / 2, 0],
        "top score": [np.log(4), np.log(4), np.log(2), np.log(4), np.log(2)],
        "words read": [np.log(5), np.log(5), np.log(7), np.log(5), np.log(7)],
        "none of them": [0, 0, 0, 1, 1],
    }
    for name, values in expected.items():
        assert made[name] == pytest.approx([*values, *[0] * (5 - len(values))], abs=1e-8), name


# --- the guesser


@pytest.fixture(scope="module")
def config() -> training.RerankTraining:
    given = configs.load(CONFIG, training.RerankTraining)
    return replace(given, hidden=8, epochs=30, batch=8, learning_rate=0.02, points=2)


def test_rerank_fit_agrees_across_devices(config, monkeypatch):
    as_cuda(monkeypatch)
    rng = np.random.default_rng(0)
    lessons = [training.lesson_of(rng.random((5, 5)), np.array([0, 0, 1]), rng.random(3) > 0.7) for _ in range(9)]
    lessons = [lesson._replace(target=np.array([0, 2])) for lesson in lessons]
    fitted = [training.fitted(replace(config, epochs=2, device=device), lessons) for device in ("cpu", "cuda")]
    for name, tensor in fitted[0].tensors.items():
        np.testing.assert_allclose(tensor, fitted[1].tensors[name], rtol=1e-4, atol=1e-6)


def test_held_out_lessons_select_the_epoch(config):
    """The held-out lessons contradict the training lessons, so every further epoch is worse."""
    rows, step = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]), np.array([0, 0])
    lessons = [training.lesson_of(rows, step, np.array([i % 8 == 0, i % 8 != 0])) for i in range(32)]
    first, last = training.fitted(config, lessons).chances(rows, step)
    assert last - first < 0.5


def lesson_texts(n: int) -> list[Tossup]:
    """Return lessons that name Ivan and Vera and ask for the author, the novel or a duke, who has no page."""
    kinds = (("author", "Anna Author"), ("novel", "The Quarrel (novel)"), ("duke", None))
    return [
        Tossup(f"t{i}", f"this {kinds[i % 3][0]} with Ivan and Vera", kinds[i % 3][1], "", "", "made", None)
        for i in range(n)
    ]


@pytest.fixture(scope="module")
def learnt(config) -> RerankGuesser:
    knowledge = known()
    read = [training.lesson_of_text(knowledge, text, i, config) for i, text in enumerate(lesson_texts(90))]
    read = [lesson for lesson in read if len(lesson.target)]
    return RerankGuesser(knowledge, training.fitted(config, read), "bm25")


def test_weights_learn_the_answer_type(learnt):
    for kind, page in (("author", "Anna Author"), ("novel", "The Quarrel (novel)")):
        [actual] = learnt.guess([f"this {kind} has Vera and Ivan"], 3)
        assert actual[0].page == page and actual[0].score > 0.6
    [unsure] = learnt.guess(["this duke with Ivan and Vera"], 3)
    assert sum(guess.score for guess in unsure) < 0.5


def test_training_leaves_half_of_the_fold_to_buzzers(config, monkeypatch, tmp_path):
    docs = [Tossup(f"d{i}", doc.text, doc.page, "", "", "made", None) for i, doc in enumerate(DOCS) if doc.page]
    for name in ("learnt", "published"):
        fit(docs, 1).save(tmp_path / name)
    made = [text for text in lesson_texts(900) if fold_of(text.id) == "buzzer"]
    monkeypatch.setattr("sqa.data.texts.load_tossups", lambda: made)
    monkeypatch.setattr(training, "training_texts", lambda folds, bonus: docs)
    counts = {name: training.Counts(str(tmp_path / name), ("guesser",), False) for name in ("learnt", "published")}
    given = replace(config, **counts, least=1, limit=None, noise=0.0, translated=(), work=tmp_path / "work", epochs=2)

    def weights(folder: str) -> dict[str, np.ndarray]:
        return read_tensors(tmp_path / folder, "rerank", VERSION)[0]

    training.train(given).save(tmp_path / "out")
    about = [(tmp_path / name / "config.json").read_text("utf-8") for name in ("work", "out")]
    assert about[0].replace(counts["learnt"].model, counts["published"].model) == about[1]
    before = weights("work")
    assert not np.array_equal(before["hidden.weight"], weights("out")["hidden.weight"])
    made[:] = [text if half_of(text.id) == "first" else replace(text, page=None) for text in made]
    published = training.train(given)  # only the first half has answers now
    assert published.guess(["this author has Vera and Ivan"], 1)[0][0].score > 0.1
    assert all(np.array_equal(before[name], array) for name, array in weights("work").items())
    again, first = (build(RerankConfig(model=str(tmp_path / name))) for name in ("out", "work"))
    assert again.guess(["this novel"], 3) != [[]] and again.fingerprint() != first.fingerprint()
    fit(docs[:2], 1).save(tmp_path / "published")
    refused(DataError, "pages of .* changed after training", build, RerankConfig(model=str(tmp_path / "out")))
    refused(DataError, "lacks 2 pages of its folds", training.knowledge_of, counts["published"], 1)
