"""Facts: extraction, arrival in another text, invention, and lag."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from tables import tables_of

from sqa.core import ConfigError, DataError, Emission, NotComputable, Question, QuestionTrace, roman, values
from sqa.core.numbers import reading as digits
from sqa.data.priors import Priors, form
from sqa.metrics import build
from sqa.metrics.fact_metrics import written
from sqa.metrics.latency_log import LogOptions
from sqa.metrics.quality import facts
from sqa.metrics.quality.facts import Text, extract, judge, same_name
from sqa.questions.facts_log import TEXTS, judged_log, main

TABLES = tables_of(__file__)

SOURCE = "En noviembre de 1830 el general Bolívar visitó Londres con dos hermanos de los Estados Unidos ."
REFERENCE = "In November 1830 General Bolívar visited London with two brothers from the United States."


@pytest.mark.parametrize(
    ("links", "seen", "index"),
    [(1, 1, None), (2, 2, 1), (2, 19, 1), (2, 20, None), (3, 30, None)],  # two links, and more than a tenth of `seen`
)
def test_linking_needs_two_links_above_a_tenth(links, seen, index, monkeypatch):
    link = (form("Moscú", "es"), form("Moscow", "en"))
    priors = Priors("es-en", {link: links}, {link[0]: seen}, {link[1]: 9})
    monkeypatch.setattr(facts, "bundled_priors", lambda _: priors)
    assert facts.linked("Moscow", facts.Text.of("En Moscú".split(), "es")) == index


def texts_of(text: str) -> list[str]:
    return [fact.text for fact in extract(Text.of(text.split(), "en"))]


@pytest.mark.parametrize(("text", "facts"), TABLES["facts_of_a_text_are_found"])
def test_facts_of_a_text_are_found(text, facts):
    assert texts_of(text) == facts


def test_numbers_compare_by_value():
    assert (digits("4.700", "es"), digits("4.700", "en"), digits("4,700", "en")) == (4700, 4.7, 4700)
    assert (digits("1,234,567", "en"), digits("90's", "en"), digits("C4", "en")) == (1234567, 90, None)
    assert roman("xviii") == 18 and roman("mil") is None
    assert values("dwudziestego listopada".split(), "pl") == [("20", 0, 0), ("month-11", 1, 1)]
    assert values("20 five".split(), "en") == [("20", 0, 0), ("5", 1, 1)]  # a number in digits is complete


@pytest.mark.parametrize(("text", "language", "value"), TABLES["number_has_one_value"])
def test_number_has_one_value(text, language, value):
    words = text.split()
    assert values(words, language) == [(value, 0, len(words) - 1)]


@pytest.mark.parametrize(("reference", "translation"), TABLES["spelling_variants_are_one_fact"])
def test_spelling_variants_are_one_fact(reference, translation):
    for output, human in ((translation, reference), (reference, translation)):
        result = judged(output, human)
        assert [located.fact.text for located in result.expected if located.target is None] == []
        assert result.expected and not result.invented


@pytest.mark.parametrize(
    ("reference", "translation"), [("He took 3,000 men", "He took 3 men"), ("It was -5 there", "It was 5 there")]
)
def test_other_value_is_lost_and_invented(reference, translation):
    result = judged(translation, reference)
    assert result.expected[0].target is None and len(result.invented) == 1


def test_first_has_the_value_of_1st():
    assert judged("On the first day", "On the 1st day").expected[0].target == 2
    assert judged("On the third day", "On the 1st day").expected[0].target is None


def test_inflected_forms_are_one_name():
    pairs = [("napoleona", "napoleon"), ("inca", "incas"), ("ecuador", "ecuadorian"), ("moskwa", "moskwy")]
    assert all(same_name(*pair) and same_name(*pair[::-1]) for pair in pairs)
    others = [("iran", "iraq"), ("son", "sony"), ("austria", "australia"), ("georgia", "george")]
    assert not any(same_name(*pair) for pair in others)


def judged(hypothesis: str, reference: str = REFERENCE):
    return judge(tuple(SOURCE.split()), tuple(hypothesis.split()), tuple(reference.split()), "es")


def arrived(hypothesis: str) -> list[str]:
    return [located.fact.text for located in judged(hypothesis).expected if located.target is not None]


def test_arrived_and_invented_facts_are_found():
    assert arrived(REFERENCE) == ["November", "1830", "Bolívar", "London", "two", "United States"]
    assert arrived("In november of 1830 Bolivar saw the USA and 2 Londons.") == arrived(REFERENCE)
    assert judged("He gave it to us", "He gave it to the US").expected[0].target is None  # a pronoun is not a country
    assert arrived("In 1831 he visited Londres") == []
    result = judged("In December 1831 the Bolívar of Londres visited Paris and then the whole United Kingdom")
    assert [fact.text for fact in result.invented] == ["December", "1831", "Paris", "United Kingdom"]
    assert not judged("He saw London.", "He saw the capital.").invented  # Londres is in the source
    assert not judged(REFERENCE).invented and not judged(SOURCE).invented  # untranslated words are not invented
    assert judged("HRW saw it", "Human Rights Watch saw it").expected[0].target == 0  # initials
    assert judged("Human Rights Watch saw it", "HRW saw it").expected[0].target == 2
    assert judged("The ZQ saw it", "Zora Quist saw it").expected[0].target == 1
    [located] = judged("He saw nobody", "He saw Karenina Bolívar Smith there.").expected
    assert (located.fact.words[1], located.source) == ("bolivar", None)  # one word of three is below half


def test_repeated_fact_counts_once():
    result = judged("London, and London again", "He left London. In London he saw London's bridges.")
    assert [(located.target, located.source) for located in result.expected] == [(0, 8)] and len(result.written) == 1


def test_source_words_of_facts_are_found():
    words = {located.fact.text: located.source for located in judged(REFERENCE).expected}
    assert words == {"November": 1, "1830": 3, "Bolívar": 6, "London": 8, "two": 10, "United States": 15}
    unknown = judge(tuple(SOURCE.split()), tuple(REFERENCE.split()), tuple(REFERENCE.split()), "xx")
    without = {located.fact.text for located in unknown.expected if located.source is None}
    assert without == {"November", "London", "two", "United States"}


def trace_of(emissions: list[Emission], reference: str = REFERENCE) -> QuestionTrace:
    question = Question("1", "set", "es", (tuple(SOURCE.split()),), (reference,) if reference else (), "")
    return QuestionTrace(question, tuple(emissions))


def test_fact_metrics_equal_hand_computed_values():
    # 1830 is source word 4 and is written after 6 words. London is source word 9 and is written after 8 words.
    emissions = [Emission(0, "1830", 6, False), Emission(0, "Paris", 7, False), Emission(0, "London", 8, False)]
    metrics = {metric.name: metric for metric in build(["facts", "facts@invented", "facts-lag", "facts@timed"])}
    stats = {name: metric.stats(trace_of(emissions)).tolist() for name, metric in metrics.items()}
    # The translation has two facts, 1830 and the invented name "Paris London".
    assert stats == {"facts": [2, 6], "facts@invented": [1, 2], "facts-lag": [1, 2], "facts@timed": [2, 2]}
    assert metrics["facts-lag"].score(np.array([1.0, 2.0])) == 0.5
    refused(NotComputable, "", metrics["facts"].stats, trace_of(emissions, ""))


def test_lags_are_in_seconds_with_word_times():
    [metric] = build(["facts-lag@seconds"])
    trace = trace_of([Emission(0, "1830", 6, False), Emission(0, "London", 10, False)])
    assert metric.stats(trace).tolist() == [0, 0]  # undefined
    times = tuple(0.5 * number for number in range(1, len(trace.question.words) + 1))
    heard = QuestionTrace(replace(trace.question, word_times=times), trace.emissions)
    assert metric.stats(heard).tolist() == [0.5 * 2 + 0.5 * 1, 2]
    guessed = replace(heard, emissions=(Emission(0, "1830", 0, False),))  # two seconds before it is spoken
    assert metric.stats(guessed).tolist() == [-0.5 * 4, 1]


def test_rewritten_word_counts_when_written_last():
    emissions = [Emission(0, "London", 2, False), Emission(0, "London", 9, False, erase=1)]
    assert written(trace_of(emissions)) == (("London",), (9,))


def log(folder: Path, **changed: object) -> str:
    row = {
        "index": 0,
        "prediction": "In 1830 he saw London </s>",
        "delays": [2, 4, 6, 8, 9, 17],
        "source_length": len(SOURCE.split()),
        "reference": REFERENCE,
        "source": SOURCE,
    } | changed
    path = folder / "instances.log"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return str(path)


def test_facts_of_a_log_are_printed(tmp_path, capsys):
    main(log(tmp_path), "es-en", TEXTS, as_json=False)
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(row[0], row[1], *row[4:]) for row in rows[1:]] == [
        ("facts", "0.3333", "6", "0", "0-1"),
        ("facts@invented", "0.0000", "2", "0", "0-1"),
        ("facts-lag", "0.0000", "2", "0", "words"),
        ("facts@timed", "1.0000", "2", "0", "0-1"),
    ]
    main(log(tmp_path), "es-en", TEXTS, as_json=True)
    facts = {fact["fact"]: (fact["at"], fact["lag"]) for fact in json.loads(capsys.readouterr().out)["facts"]}
    assert facts["1830"] == (4, 0) and facts["London"] == (9, 0) and facts["two"] == (None, None)


def test_speech_lag_is_in_seconds_of_the_transcript(tmp_path, capsys):
    delays = [100.0, 300.0, 400.0, 700.0, 1900.0]
    speech = {"prediction": "In 1830 he saw London", "delays": delays, "source_length": 2000.0}
    judged = judged_log(log(tmp_path, **speech), "es-en", LogOptions(source="speech"))
    heard = 2 * len("En noviembre de 1830 ") / len(SOURCE + " ")
    assert next(judged.records())["facts"][1]["lag"] == pytest.approx(0.3 - heard)
    assert judged.log.segments[0].positions[-1] == 2.0
    main(log(tmp_path, **speech, source=["/a.wav"]), "es-en", TEXTS, as_json=False)
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[1] for row in rows[2:]] == ["n/a"] * 3 and rows[3][-1] == "seconds"


def test_invalid_logs_and_pairs_are_refused(tmp_path):
    refused(DataError, ":1: no prediction", judged_log, log(tmp_path, prediction=None), "-en")
    message = ":1: 5 words in prediction and 2 delays; expected one delay per word"
    refused(DataError, message, judged_log, log(tmp_path, delays=[1, 2]), "-en")
    for pair in ("es", "es-", "klingonisch-en"):
        refused(ConfigError, "--pair: expected two languages", judged_log, log(tmp_path), pair)


def test_german_facts_are_numbers_only():
    result = judge(("He",), ("Der", "Hund", "hat", "3"), ("Der", "Hund", "hat", "3", "Beine"), "en", "de")
    assert [located.fact.text for located in result.expected] == ["3"]
