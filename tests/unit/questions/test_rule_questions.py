"""Questions by rule: the clozes, their filters, their languages and their file."""

from itertools import pairwise

import pytest
from refusals import refused
from tables import tables_of

from sqa.core import ROOT, ConfigError, DataError
from sqa.files import json_lines
from sqa.metrics.quality.facts import judge
from sqa.questions.files import read_questions
from sqa.questions.make import make, rule_maker
from sqa.questions.rules import answers_in, clozes, fact_of, words_of

TABLES = tables_of(__file__)

REFERENCE = "In November 1830 Bolívar left London. London slept."
SOURCE = "En noviembre de 1830 Bolívar dejó Londres . Londres dormía ."


def made(*references: str, pair: str = "-en", before: int = 3, **options):
    return make(rule_maker(pair, references, **options), references, [], pair, before)


def answers(*references: str, **options) -> list[str]:
    return [question.answers[0] for question in made(*references, **options).questions]


def test_clozes_blank_every_occurrence_of_a_fact():
    questions = list(clozes(0, REFERENCE, SOURCE, ("es", "en")))
    assert [(q.answers[0], q.kind, q.span, q.source) for q in questions] == [
        ("November", "date", (1, 2), 1),
        ("1830", "number", (2, 3), 3),
        ("Bolívar", "name", (3, 4), 4),
        ("London", "name", (5, 6), 6),
    ]
    assert questions[3].question == "In November 1830 Bolívar left ____. ____ slept."
    [name] = clozes(0, "He met Carlos Bolívar.", "", ("", "en"))
    assert (name.question, name.source, name.share) == ("He met ____.", None, 1.0)
    assert questions[1].share == pytest.approx(len("En noviembre de 1830 ") / len(SOURCE + " "), abs=1e-6)


@pytest.mark.parametrize(("references", "reason"), TABLES["useless_questions_are_dropped_and_counted"])
def test_useless_questions_are_dropped_and_counted(references, reason):
    dropped = made(*references).header["dropped"]
    assert {name: n for name, n in dropped.items() if n} == {reason: dropped[reason]} and dropped[reason]


def test_questions_of_earlier_segments_can_stay():
    assert answers("He met Bolívar.", "There Bolívar slept.", before=0) == ["Bolívar", "Bolívar"]
    assert answers("He met Bolívar.", "No.", "No.", "No.", "There Bolívar slept.") == ["Bolívar", "Bolívar"]


def test_rule_reader_agrees_with_facts():
    rows = list(json_lines(ROOT / "docs/example/instances.log"))
    checked = 0
    for row, other in pairwise(rows):
        reference, source = row["reference"].strip(), row["source"]
        for text in (row["prediction"], other["prediction"], reference):
            judged = judge(tuple(source.split()), words_of(text), words_of(reference), "es")
            once = {q.answers[0]: q for q in reversed(list(clozes(0, reference, source, ("es", "en"))))}
            for each in judged.expected:
                question = once[each.fact.text]
                assert (each.target is not None) == answers_in(question, text, "en"), question
                assert each.source == question.source
                checked += 1
    assert checked > 100


@pytest.mark.parametrize(("answer", "kind", "words", "value"), TABLES["answer_is_read_as_a_fact"])
def test_answer_is_read_as_a_fact(answer, kind, words, value):
    fact = fact_of(answer, kind, "en")
    assert (list(fact.words), fact.value) == (words, value)


@pytest.mark.parametrize(("text", "right"), TABLES["role_is_answered_only_in_its_order"])
def test_role_is_answered_only_in_its_order(text, right):
    [question] = made("Then Bolívar defeated Napoleon in Peru.", kinds=["role"]).questions
    assert (question.question, question.answers) == ("Then ____ defeated Napoleon in Peru.", ("Bolívar",))
    assert answers_in(question, text, "en") == right


@pytest.mark.parametrize(
    "reference",
    ["Bolívar married Ana.", "Bolívar and Ana left.", "Bolívar, defeated Napoleon.", "Bolívar quickly left Peru."],
)
def test_uncertain_roles_are_not_asked(reference):
    assert not answers(f"There {reference}", kinds=["role"])


def test_negation_is_answered_by_any_negation():
    [question] = made("He did not leave Peru.", kinds=["negation"]).questions
    assert (question.question, question.answers, question.span) == ("He did ____ leave Peru.", ("not",), (2, 3))
    assert answers_in(question, "He never left.", "en") and not answers_in(question, "He left Peru.", "en")
    assert not answers("No.", "He did not go and never came.", "He did not go. Then he left.", kinds=["negation"])


# ------------------------------------------------------------------------------------------------------- languages


def test_names_are_refused_where_capitals_do_not_show_them(capsys):
    german = "Der Hund von Anna hat 3 Beine."
    assert answers(german, pair="en-de") == ["3"]
    assert "sqa: no questions about names: German writes all nouns with capitals" in capsys.readouterr().err
    refused(ConfigError, "--kind name: German writes all nouns", made, german, pair="en-de", kinds=["name"])
    chinese = "在2019年，有 3 个人在北京。"
    assert answers(chinese, pair="en-zh") == ["2019", "3"]
    refused(ConfigError, "the script of the references has no capitals", made, chinese, pair="en-zh", kinds=["name"])
    refused(ConfigError, "--kind role: the rules are for English", made, german, pair="en-de", kinds=["role"])
    refused(ConfigError, "--kind: expected one of name, number, date", made, german, kinds=["verb"])
    refused(ConfigError, "--pair: expected two languages", made, german, pair="german")


def test_names_of_other_languages_do_not_begin_sentences():
    spanish = "El presidente vio a María en Lima. Después llegó NASA con dos amigos. Pedro llegó."
    assert answers(spanish, pair="en-es") == ["María", "Lima", "NASA", "dos"]


# ------------------------------------------------------------------------------------------------------------ files


def test_question_file_reads_as_written(tmp_path):
    questions, path = made(REFERENCE, "He saw nobody."), tmp_path / "asked.jsonl"
    questions.write(path)
    read = read_questions(path)
    assert list(read.questions) == list(questions.questions) and read.header == questions.header
    assert read.digest == questions.digest and read.pair == ("", "en")
    assert read.header["kinds"] == {"date": 1, "name": 2, "negation": 1, "number": 1, "role": 1}
    path.write_text(questions.text().rpartition('{"segment"')[0], encoding="utf-8")
    refused(DataError, "5 questions, but the header says 6; truncated", read_questions, path)
    path.write_text('{"index": 0}\n', encoding="utf-8")
    refused(DataError, "asked.jsonl:1: not a header", read_questions, path)
    path.write_text(questions.text().replace('"segment": 0', '"segment": -1'), encoding="utf-8")
    refused(DataError, "asked.jsonl:2: ", read_questions, path)
