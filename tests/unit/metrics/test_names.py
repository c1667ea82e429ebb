"""Names and numbers in translations: detection, loss and invention."""

import numpy as np
import pytest
from refusals import refused
from tables import tables_of

from sqa.core import NotComputable, Question, QuestionTrace
from sqa.metrics import build
from sqa.metrics.quality.names import lost_and_invented, names_in, spelled

TABLES = tables_of(__file__)

SOURCE = "Este presidente del Ecuador recibió el Premio Eugenio Espejo en 2003 y vivió en Londres."
REFERENCE = "This president of Ecuador received the Eugenio Espejo Prize in 2003 and lived in London."
WRONG = "This president of Peru received the Nobel Prize in 2003 and lived in London."


@pytest.mark.parametrize(("text", "names"), TABLES["names_and_numbers_are_found"])
def test_names_and_numbers_are_found(text, names):
    assert names_in(text) == names


def test_words_ignore_case_accents_and_genitive():
    assert spelled("Bolívar’s,") == spelled("BOLIVAR") == "bolivar"


def test_lost_and_invented_names_are_found():
    lost, invented = lost_and_invented(SOURCE, WRONG, REFERENCE)
    assert lost == {"ecuador": 1, "eugenio": 1, "espejo": 1} and invented == {"peru": 1, "nobel": 1}
    assert [part.total() for part in lost_and_invented(SOURCE, REFERENCE, REFERENCE)] == [0, 0]


def trace_of(hypothesis: str, reference: str = REFERENCE) -> QuestionTrace:
    class Trace:
        question = Question("1", "xqb-es", "es", (tuple(SOURCE.split()),), (reference,) if reference else (), "Page")
        hypotheses = (hypothesis,)

    return Trace()  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "expected"), [("names", [3, 6]), ("names@copied", [1, 4]), ("names@invented", [2, 5])]
)
def test_name_scores_equal_hand_computed_values(name, expected):
    # the reference names Ecuador, Eugenio, Espejo, Prize, 2003 and London; London and Prize are not copies
    [metric] = build([name])
    stats = metric.stats(trace_of(WRONG))
    assert stats.tolist() == expected
    assert metric.score(stats) == metric.score_many(stats[None])[0] == expected[0] / expected[1]


def test_score_is_undefined_without_names():
    [metric] = build(["names@invented"])
    refused(NotComputable, "names@invented: undefined", metric.score, metric.stats(trace_of("nothing of the kind")))
    refused(NotComputable, "", metric.stats, trace_of(WRONG, ""))
    assert np.isnan(metric.score_many(np.zeros((1, 2)))[0])
