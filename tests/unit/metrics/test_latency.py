"""Latency conventions on a trace, undefined latencies, and normalized erasure. tests/golden tests the formulas."""

import numpy as np
import pytest
from doubles import echo, question
from refusals import refused
from tables import tables_of

import sqa
from sqa.core import ROOT, ConfigError, DataError, Emission, NotComputable, Question, QuestionTrace
from sqa.metrics import DEFAULT, build
from sqa.metrics.delays import pack
from sqa.metrics.latency import CONVENTIONS, FORMULAS, Latency, trace_delays

TABLES = tables_of(__file__)


def trace_of(*sentences, reference=("a b c d",)):
    """Return a trace of sentences, each given as its source length and the (g, ended) of every target word."""
    question = Question("q", "made", "es", tuple(("w",) * size for size, _ in sentences), reference, "P")
    emissions = tuple(Emission(s, "t", g, ended) for s, (_, rows) in enumerate(sentences) for g, ended in rows)
    return QuestionTrace(question, emissions)


def test_some_conventions_count_the_end_of_a_sentence():
    """AL of wait-3 on six words is 3, whether the end of the sentence counts or not."""
    trace = trace_of((6, [(3, False), (4, False), (5, False), (6, False), (6, True), (6, True)]))
    plain = trace_delays(trace, CONVENTIONS["simuleval-1.1"], "none")
    assert plain.flat.tolist() == [3, 4, 5, 6, 6, 6] and plain.source.tolist() == [6]
    counted = trace_delays(trace, CONVENTIONS["iwslt-2020-final"], "none")
    assert counted.flat.tolist() == [3, 4, 5, 6, 7, 7, 7] and counted.source.tolist() == [7]
    # the code of the IWSLT 2020 guide counts one word too many
    values = {"al": 3, "dal": 3, "al@iwslt-2020-final": 3, "al@iwslt-2020-first": 4}
    for name, expected in values.items():
        [metric] = build([name])
        assert metric.name == name and metric.score(metric.stats(trace)) == pytest.approx(expected)


def test_question_reference_is_shared_among_sentences():
    trace = trace_of((3, [(1, False)]), (1, [(1, True)]), reference=("a b c d e f", "g h"))
    assert trace_delays(trace, CONVENTIONS["simuleval-1.1"], "question").reference.tolist() == [6, 2]


def test_each_sentence_has_its_own_reference_length():
    trace = trace_of((3, [(1, False)]), (1, [(1, True)]), reference=("a b c d e f", "g h"))
    assert trace_delays(trace, CONVENTIONS["simuleval-1.1"], "sentence").reference.tolist() == [6, 2]
    uneven = trace_of((3, [(1, False)]), (1, [(1, True)]), reference=("a b c d e", "g h"))
    assert trace_delays(uneven, CONVENTIONS["simuleval-1.1"], "sentence").reference.tolist() == [5, 2]
    assert trace_delays(uneven, CONVENTIONS["omnisteval-0.1.10"], "sentence", unit="char").reference.tolist() == [9, 3]
    unpaired = trace_of((3, [(1, False)]), (1, [(1, True)]), reference=("a b c d e f g",))
    assert trace_delays(unpaired, CONVENTIONS["simuleval-1.1"], "sentence").reference.tolist() == [5, 2]
    bare = trace_of((3, [(1, False)]), reference=("",))
    refused(NotComputable, "al@reference: q has no human translation", build(["al@reference"])[0].stats, bare)
    refused(ConfigError, "its convention iwslt-2020-final uses no reference", build, ["al@iwslt-2020-final@reference"])
    refused(ConfigError, "no metric 'dal@reference'", build, ["dal@reference"])


def test_recorded_log_has_the_latency_of_simuleval(tmp_path):
    """Compare with SimulEval 1.1.4's ALScorer, LAALScorer and APScorer on docs/example/instances.log."""
    translator = {"name": "recorded", "file": str(ROOT / "docs" / "example" / "instances.log")}
    names = ["al@reference", "laal@reference", "ap@reference", "al"]
    config = {"name": "log", "dataset": {"name": "mini-es", "limit": 5}, "translator": translator, "metrics": names}
    run = sqa.run(config, runs=tmp_path, progress=False)
    assert run.metrics == pytest.approx(
        {
            "al@reference": 5.294098048193014,
            "laal@reference": 5.992014636783922,
            "ap@reference": 0.7327967926452658,
            "al": 5.861887939206137,  # ALScorer(use_ref_len=False)
        },
        abs=1e-12,
    )
    assert "|ref:sentence|" in run.rows["al@reference"].signature and "|ref:none|" in run.rows["al"].signature
    assert {"al", "al@reference", "laal@reference"} <= set(DEFAULT)


def test_empty_share_of_a_reference_is_one_word():
    """The value of SimulEval and `sqa latency` on the log of the same run, whose second reference is empty."""
    first = [(delay, False) for delay in (3, 3, 4, 5, 6, 7, 8, 9, 10, 11)]
    trace = trace_of((11, first), (1, [(1, False)] * 4), reference=("Name this country: Lima.",))
    assert Latency("al", lengths="sentence").stats(trace) == pytest.approx([-4.775, 2, 0])


def test_sentences_without_words_are_counted_not_scored():
    metric = Latency("dal")
    stats = metric.stats(trace_of((4, [(2, False)]), (3, [])))
    assert stats.tolist() == [2, 1, 1]
    empty = metric.stats(trace_of((4, []), (3, [])))
    assert empty.tolist() == [0, 0, 2]
    assert metric.score(stats + empty) == 2
    refused(NotComputable, "dal", metric.score, empty)
    assert np.isnan(metric.score_many(empty[None])[0])


def test_latency_of_retracted_words_is_refused():
    question = Question("q7", "made", "es", (("w",) * 4,), ("a",), "P")
    trace = QuestionTrace(question, (Emission(0, "a", 1, False), Emission(0, "b", 2, False, erase=1)))
    for convention in CONVENTIONS.values():
        for formula in convention.formulas:
            refused(NotComputable, "q7 step 1 retracts", Latency(formula, convention.name).stats, trace)


@pytest.mark.parametrize("arguments,message", TABLES["bad_input_is_refused"])
def test_bad_input_is_refused(arguments, message):
    refused(DataError, message, pack, *arguments)


def test_formula_of_other_conventions_is_refused():
    refused(ConfigError, "laal is not defined by iwslt-2020-final", Latency, "laal", "iwslt-2020-final")


def test_latency_may_be_per_character_or_question():
    """Over a whole question, g of the second sentence continues from the end of the first (equation 1)."""
    trace = trace_of((3, [(1, False), (3, True)]), (2, [(2, True)]), reference=("one two", "three"))
    modern = CONVENTIONS["simuleval-1.1"]
    by_char = trace_delays(trace, modern, "question", unit="char")  # every token is "t"
    assert by_char.flat.tolist() == [1, 3, 2] and by_char.reference == pytest.approx([12 * 3 / 5, 12 * 2 / 5])
    whole = trace_delays(trace, modern, "question", stream="question")
    assert whole.flat.tolist() == [1, 3, 5] and whole.source.tolist() == [5] and whole.reference.tolist() == [3]
    assert Latency("dal", stream="question").name == "dal@question"
    assert "unit:char" in Latency("laal", per="char").signature()
    counted = trace_delays(trace, CONVENTIONS["iwslt-2020-final"], "none", stream="question")
    assert counted.flat.tolist() == [1, 3, 6, 6] and counted.source.tolist() == [6]


def test_consecutive_wait_is_words_per_group_of_reads():
    """Wait-3 reads groups of 3, 1, 1 and 1 words before its words; a consecutive translation reads one group."""
    formula = FORMULAS["cw"]
    rows = [[3, 4, 5, 6, 6, 6], [6, 6, 6], [2, 2, 5], [0, 0], []]
    assert formula(pack(rows, [6, 6, 6, 6, 6])).tolist()[:3] == [1.5, 6, 2.5]
    assert np.isnan(formula(pack(rows, [6, 6, 6, 6, 6]))[3:]).all()


# --------------------------------------------------------------------------------------------------- latency BLEU


def shown_at(*delays, words="a b c d"):
    question = Question("q", "made", "es", (("w", "x", "y", "z"),), ("a b c d",), "P")
    rows = zip(words.split(), delays, strict=True)
    return QuestionTrace(question, tuple(Emission(0, word, g, False) for word, g in rows))


def test_latency_bleu_averages_over_source_words():
    """A perfect prefix of i of 4 words has BLEU 100 exp(1 - 4/i), its brevity penalty."""
    [metric, reward] = build(["lbleu", "lbleu@reward"])
    perfect = [100 * np.exp(1 - 4 / i) for i in (1, 2, 3, 4)]
    assert metric.stats(shown_at(1, 2, 3, 4)).tolist() == pytest.approx([sum(perfect) / 4, 1])
    assert metric.stats(shown_at(4, 4, 4, 4)).tolist() == pytest.approx([25, 1])
    assert metric.stats(shown_at(2, 2, 4, 4)).tolist() == pytest.approx([(2 * perfect[1] + 100) / 4, 1])
    assert metric.stats(shown_at(0, 2, 2, 4)).tolist() == pytest.approx([(perfect[0] + 2 * perfect[2] + 100) / 4, 1])
    assert reward.stats(shown_at(4, 4, 4, 4)).tolist() == pytest.approx([25 + 400, 1])
    assert metric.stats(shown_at(words="")).tolist() == [0, 1]


# --------------------------------------------------------------------------------------------- normalized erasure

Q = question()
[NE] = build(["ne"])


def test_erasure_is_retracted_words_per_final_word():
    writes = (
        Emission(0, "a", 1, False),
        Emission(0, "b", 1, False),
        Emission(0, "c", 2, False, erase=2),  # "c"
        Emission(1, "d", 1, False),
        Emission(1, "e", 2, False),
        Emission(1, "", 3, False, erase=1),  # "c d"
    )
    stats = NE.stats(QuestionTrace(Q, writes))
    assert stats.tolist() == [3, 2] and NE.score(stats) == 1.5
    assert NE.score_many(np.stack([stats, 2 * stats])).tolist() == [1.5, 1.5]
    assert NE.score(NE.stats(QuestionTrace(Q, echo(Q)))) == 0


def test_erasure_is_undefined_without_final_words():
    gone = (Emission(0, "a", 1, False), Emission(0, "", 2, False, erase=1))
    for emissions in ((), gone):
        refused(NotComputable, "ne: undefined", NE.score, NE.stats(QuestionTrace(Q, emissions)))
