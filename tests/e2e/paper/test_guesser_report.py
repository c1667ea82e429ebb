"""The guessers' report on bundled questions: compared with the recorded output, with stored ranks and wrong configs."""

import csv
import io
from types import SimpleNamespace

import doubles
import pytest
from refusals import refused
from small_ablation import changed

from experiments.studies import guesser_report, question_sets
from experiments.studies.guesser_report import guesses_at, main, words_at
from experiments.studies.question_sets import ReportConfig, knows
from sqa.core import GUESSERS, ROOT, ConfigError, NotComputable
from sqa.data.datasets import load_questions
from sqa.files import read_yaml
from sqa.pipeline import load

FRACTIONS = (0.05, 0.5, 1.0)
N = 20


@pytest.fixture
def config(tmp_path):
    """Write configs/guessers.yaml with 20 bundled questions, BM25, a guesser of two pages and a missing guesser."""
    guessers = [
        {"label": "BM25", "guesser": {"name": "bm25"}},
        {"label": "Two", "guesser": {"name": "doubles:build_guesser", "pages": ["Peru", "Iceland"]}},
        {"label": "Gone", "guesser": {"name": "bm25", "model": "nowhere"}, "optional": True},
    ]
    less = {"datasets": ["mini-es"], "fractions": list(FRACTIONS), "resamples": 50, "limit": N, "guessers": guessers}
    return changed(ROOT / "configs" / "guessers.yaml", tmp_path, **less)


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.split("\n/")[0])))


def bm25():
    return GUESSERS.build("bm25", GUESSERS.config_class("bm25")())


def test_guesser_report_reuses_stored_ranks(config, tmp_path, capsys, monkeypatch):
    main(config, tmp_path / "runs")
    printed = capsys.readouterr()
    folder = tmp_path / "runs" / "guessers"
    text = (folder / "guessers.csv").read_text(encoding="utf-8")
    assert printed.out.startswith("dataset\tgroup\tguesser\tread\t")
    assert "'nowhere' is neither" in (folder / "differences.tsv").read_text(encoding="utf-8")

    signatures = {row["signature"] for row in lines(text) if row["guesser"] == "BM25"}
    assert len(signatures) == 1 and signatures.pop().startswith(f"guesser:{bm25().fingerprint()}|input:human-english|")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(guesser_report, "guesses_at", lambda *_: pytest.fail("the store holds the ranks"))
    main(config, tmp_path / "runs")
    assert {path: path.read_bytes() for path in before} == before
    refused(pytest.fail.Exception, "holds the ranks", main, changed(config, fractions=[0.5, 1.0]), tmp_path / "runs")


def test_table3_counts_question_sets(config, tmp_path, capsys, monkeypatch):
    pages = ["Peru", "Peru", "peru", "Iceland", None, "Sun"]
    monkeypatch.setattr(question_sets, "load_tossups", lambda: [SimpleNamespace(page=page) for page in pages])
    question_sets.main(changed(config, name="table3", guessers=read_yaml(config)["guessers"][:1]), tmp_path)
    assert capsys.readouterr().out.startswith("dataset\tquestions\t")
    with pytest.raises(NotComputable, match="table3: none of"):
        question_sets.main(changed(config, datasets=[], fallback=[]), tmp_path)


def test_table3_counts_answers_and_questions():
    """An answer that is asked twice is one answer and two questions; the English number orders the shared ones."""
    asked = [SimpleNamespace(page=page) for page in ("Sun", "Peru", "Peru", "Oder", "Oder", "Amber")]
    overlaps, answers = question_sets.shared_answers({"xqb-pl": asked}, ["sun", "Sun", "Peru", None, "Rome"])
    assert overlaps[1] == ["xqb-pl", "4", "0.50", "0.50", "Sun, Peru", "Oder, Amber"]
    assert answers[1:] == [
        ["xqb-pl", "Sun", "1", "2"],
        ["xqb-pl", "Peru", "2", "1"],
        ["xqb-pl", "Oder", "2", "0"],
        ["xqb-pl", "Amber", "1", "0"],
    ]
    assert question_sets.shared_answers({"xqb-pl": asked[:3]}, ["Peru"])[0][1][2:4] == ["0.50", "0.67"]


def test_character_share_selects_the_words_read():
    words = "ab cde f".split()  # words end after 2, 6 and 8 of 8 characters
    assert words_at(words, (0.1, 0.25, 0.74, 0.75, 0.99, 1.0)).tolist() == [0, 1, 1, 2, 2, 3]
    for n in range(1, 60):  # the comparison must tolerate rounding errors
        even = ["x" * 4] * n
        assert words_at(even, (1.0,)).tolist() == [n]


def test_guesses_at_a_share_are_those_of_its_text():
    question, guesser = load_questions("mini-es", 1)[0], bm25()
    words = question.reference_text.split()
    nothing, part, whole = guesses_at(guesser, words, (0.01, 0.3, 1.0))
    [third] = guesser.guess([" ".join(words[: words_at(words, (0.3,))[0]])], 50)
    assert (nothing, part) == ([], third) and third != whole
    assert whole == guesser.guess([question.reference_text], 50)[0]


def test_missing_page_list_gives_no_guessable_rows(config, tmp_path, monkeypatch):
    for module in (guesser_report, question_sets):
        monkeypatch.setattr(module, "knows", lambda guesser, questions: None)
    main(config, tmp_path)
    assert "guessable" not in {
        row["group"] for row in lines((tmp_path / "guessers" / "guessers.csv").read_text("utf-8"))
    }
    [table1] = lines((tmp_path / "guessers" / "table1.csv").read_text(encoding="utf-8"))
    assert table1["guessable.BM25"] == table1["guessable.nobody"] == "n/a"


def test_known_pages_are_counted():
    questions = load_questions("mini-es", 2)
    assert [q.page for q in questions] == ["Peru", "Iceland"]
    assert knows(doubles.build_guesser(doubles.GuesserConfig(("peru",))), questions).tolist() == [True, False]
    assert knows(object(), questions) is None


def test_missing_guesser_stops_the_report_unless_optional(config, tmp_path):
    mapping = read_yaml(config)["guessers"]
    mapping[2]["optional"] = False
    refused(ConfigError, "'nowhere' is neither a bundled model", main, changed(config, guessers=mapping), tmp_path)
    with pytest.raises(ConfigError, match="none of them is available"):
        main(changed(config, guessers=[{**mapping[2], "optional": True}]), tmp_path)


def test_wrong_config_error_names_the_place(config):
    mapping = read_yaml(config)["guessers"]
    mapping[0]["guesser"]["k2"] = 1
    refused(ConfigError, r"guessers\[0\].guesser.k2: unknown", load, changed(config, guessers=mapping), ReportConfig)
    mapping[0] = mapping[1]
    changed(config, guessers=mapping, fractions=[0.5, 0.2])
    with pytest.raises(ConfigError) as caught:
        load(config, ReportConfig)
    for part in ("must grow", "the last must be 1", "occurs twice"):
        assert part in str(caught.value)
