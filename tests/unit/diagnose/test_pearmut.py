"""Findings as error spans for annotators: their places in the text, severities and overlaps."""

import json
from dataclasses import replace

from stand_ins.viewer_runs import make

from sqa.core import Emission, Question, QuestionTrace
from sqa.diagnose import pearmut
from sqa.diagnose.step_errors import Finding
from sqa.pipeline import open_run

QUESTION = Question("q", "t", "es", (("La", "casa", "roja."), ("Fin.",)), ("The red house.", "End."), "House")
WORDS = [Emission(0, word, 1, False) for word in ("The", "𝔯ed", "hose", "house.")] + [Emission(1, "End.", 1, True)]
TRACE = QuestionTrace(QUESTION, (*WORDS[:3], replace(WORDS[3], erase=1), WORDS[4]))


def finding(kind: str, first: int, last: int, loss: float = 0.0, sentence: int = 0) -> Finding:
    ranks = {"rank_before": None, "rank_after": None}
    return Finding(question="q", kind=kind, sentence=sentence, first=first, last=last, read=1, loss=loss, **ranks)


def spans(*findings: Finding) -> list[tuple[int, int, str]]:
    [item, _] = pearmut.items(TRACE, "m", {("q", 0): findings})
    return [(span["start_i"], span["end_i"], span["severity"]) for span in item["error_spans"]["m"]]


def test_span_positions_are_in_utf_16_units():
    [item, other] = pearmut.items(TRACE, "m", {("q", 0): [finding("hallucination", 1, 3, loss=2.0)]})
    text = item["tgt"]["m"].encode("utf-16-le")
    [span] = item["error_spans"]["m"]
    assert text[2 * span["start_i"] : 2 * span["end_i"] + 2].decode("utf-16-le") == "𝔯ed house."
    assert (item["src"], item["ref"], item["item_id"]) == ("La casa roja.", "The red house.", "q-0")
    assert span["severity"] == "major" and other["error_spans"] == {"m": []}


def test_retracted_word_has_no_span():
    assert spans(finding("hallucination", 2, 2)) == []


def test_omission_is_marked_after_the_text():
    assert spans(finding("omission", 0, 3, loss=9.0)) == [(15, 15, "minor")]


def test_worst_of_two_overlapping_spans_is_kept():
    assert spans(finding("hallucination", 3, 3, loss=1.0), finding("hallucination", 1, 3)) == [(9, 14, "major")]
    assert spans(finding("hallucination", 3, 3, loss=0.5), finding("hallucination", 0, 0)) == [
        (0, 2, "minor"),
        (9, 14, "minor"),
    ]


def test_campaign_of_a_run_is_complete(tmp_path):
    run = open_run(make(tmp_path, "flagged"))
    campaign = json.loads(pearmut.campaign(run, "words"))
    [documents] = campaign["data"]
    assert [len(document) for document in documents] == [len(question.sentences) for question in run.questions]
    assert campaign["info"]["protocol"] == "ESA"
