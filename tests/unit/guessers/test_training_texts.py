"""Training texts of guessers: bonus parts that repeat no evaluation question, and user texts."""

import json
from pathlib import Path

import pytest
from refusals import refused
from tables import tables_of

from guessers import bonus
from guessers.bonus import Bonus, Overlap
from guessers.retrieval.bm25 import Bm25Guesser
from guessers.retrieval.counting import Bm25Training
from guessers.text import PageText
from guessers.train import main
from guessers.training_texts import identity_of, learnt, own_texts
from sqa.core import DATA, ROOT, ConfigError, DataError
from sqa.data.datasets import load_questions
from sqa.data.texts import fold_of, load_tossups

TABLES = tables_of(__file__)

QUESTION = (
    "The Polish engineer Ernest Malinowski designed a railway in this country that climbed to more than 4,700 metres "
    "above the sea in order to reach its mines. In November 1532 Francisco Pizarro took the emperor Atahualpa prisoner "
    "in the northern town of Cajamarca. For 10 points, name this country whose capital is Lima."
)
HELD_OUT = [
    PageText(QUESTION, "Peru"),
    PageText("Name this river of Cracow and Warsaw.", "Vistula"),
    PageText("?", None),
]


def clue(text, page="Peru", opening=""):
    return Bonus("b", text, page, "", opening)


@pytest.mark.parametrize(("part", "verdict"), TABLES["clue_that_repeats_a_question_is_removed"])
def test_clue_that_repeats_a_question_is_removed(part, verdict):
    assert bonus.clean([clue(*part)], HELD_OUT) == ([clue(*part)] if verdict == "kept" else [])


def test_overlap_is_the_share_of_common_runs():
    overlap = Overlap([PageText("one two three four five six seven", None)])
    assert overlap.wording("one two three four five six seven") == 1
    assert overlap.wording("zero one two three four five six nought null nil nothing none") == pytest.approx(3 / 9)
    assert overlap.wording("one two three four five a b c d") == 0  # two runs of four words, but three are needed


def test_common_phrases_are_ignored():
    many = [PageText(f"this man who wrote the novel {i}", None) for i in range(bonus.PHRASE + 1)]
    assert Overlap(many).wording("this man who wrote the novel") == 0
    assert Overlap(many[:-1]).wording("this man who wrote the novel") == 1


@pytest.fixture(scope="module")
def kept_apart():
    return bonus.held_out()


@pytest.mark.mirror
@pytest.mark.slow
def test_clean_bonus_parts_repeat_no_test_question(kept_apart):
    """Find runs of ten words in common with evaluation questions, independently of guessers/bonus.py."""
    texts = {q.reference_text for name in ("xqb-es", "xqb-pl", "guessdev") for q in load_questions(name)}
    judged = [question for question in kept_apart if question.text in texts]
    clean = bonus.clean(bonus.load_bonus()[::96], judged)  # the full data take half a minute
    assert (len(clean), len({part.page for part in clean})) == (678, 635)
    runs = set()
    for text in texts:
        words = text.lower().split()
        runs |= {tuple(words[start : start + 10]) for start in range(len(words) - 9)}
    common = {
        run
        for words in (part.text.lower().split() for part in clean)
        for run in runs.intersection(tuple(words[start : start + 10]) for start in range(len(words) - 9))
    }
    assert {" ".join(run) for run in common} <= set(TABLES["common_runs"])


@pytest.mark.mirror
def test_all_evaluation_questions_are_held_out(kept_apart):
    texts = {question.text for question in kept_apart}
    judged = [q.reference_text for name in ("xqb-es", "xqb-pl", "guessdev", "mini-en") for q in load_questions(name)]
    judged += [tossup.text for tossup in load_tossups() if fold_of(tossup.id) != "guesser"]
    assert texts.issuperset(judged) and len(texts) > 10_000


def pages(folder: Path, *records: object) -> Path:
    path = folder / "pages.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def config(folder: Path, texts: Path, output: str | Path = "model") -> Path:
    path = folder / "guesser.yaml"
    path.write_text(f"kind: bm25\noutput: {folder / output}\ntexts: [{texts}]\n", encoding="utf-8")
    return path


def test_guesser_knows_the_pages_of_its_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQA_MIRROR", raising=False)
    monkeypatch.setattr("sqa.data.texts.load_tossups", lambda: pytest.fail("the project's texts were read"))
    folder = main(config(tmp_path, ROOT / "docs/example/pages.jsonl"))
    guesser = Bm25Guesser.load(folder)
    assert guesser.pages == {"Peru", "Spain", "Danube", "Frédéric Chopin"}
    assert guesser.guess(["a river through Vienna"], 1)[0][0].page == "Danube"


@pytest.mark.parametrize("output", ["bm25", "new", ""])
def test_bundled_model_is_never_overwritten(tmp_path: Path, output: str) -> None:
    with pytest.raises(ConfigError, match="is the folder of a bundled model; name another folder"):
        main(config(tmp_path, ROOT / "docs/example/pages.jsonl", DATA / "models" / output))


@pytest.mark.parametrize(("records", "problem"), TABLES["wrong_texts_are_refused_by_record"])
def test_wrong_texts_are_refused_by_record(tmp_path: Path, records: list[object], problem: str) -> None:
    refused(DataError, problem, own_texts, [pages(tmp_path, *records)])


@pytest.mark.parametrize("document", ['[{"text": "a"}]', '{"questions": [{"text": "a"}]}', '{\n"questions": []}'])
def test_lists_of_questions_name_a_converter(tmp_path: Path, document: str) -> None:
    path = tmp_path / "qanta.train.json"
    path.write_text(document)
    refused(DataError, r"qanta.train.json: expected JSON lines; of QANTA.s list: jq -c", own_texts, [path])


def test_missing_file_of_texts_is_an_error(tmp_path: Path) -> None:
    refused(DataError, "nowhere.jsonl", main, config(tmp_path, tmp_path / "nowhere.jsonl"))


def test_too_few_and_edited_texts_are_detected(tmp_path: Path) -> None:
    few = pages(tmp_path, {"id": "x", "text": "a", "page": "A"})
    refused(DataError, r"no text of .* is in the folds dev; give more texts", learnt, ("dev",), [few])
    before = identity_of(Bm25Training("bm25", tmp_path, texts=(few,)), ("bonus",))
    assert "bonus" not in before and "folds" in before and "output" not in before
    other = pages(tmp_path, {"id": "x", "text": "b", "page": "A"})
    assert identity_of(Bm25Training("bm25", tmp_path, texts=(other,)), ("bonus",)) != before
