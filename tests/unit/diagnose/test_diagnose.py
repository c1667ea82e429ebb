"""Step-wise errors of handwritten traces, found with an aligner that uses a small dictionary."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from stand_ins.viewer_runs import make

from sqa.core import ConfigError, Emission, Guess, Question, QuestionTrace
from sqa.data.priors import is_content, strip_edges
from sqa.diagnose import findings as diagnose_command
from sqa.diagnose.alignment import Alignment
from sqa.diagnose.step_errors import DiagnoseConfig, Finding, SourceSpan, is_name, ranked, step_errors
from sqa.pipeline import open_run

SOURCE = (
    ("El", "poeta", "Neruda", "nació", "en", "Parral,", "un", "pueblo", "pequeño", "de", "Linares."),
    ("Murió", "tarde."),
)


class Links:
    """An aligner that links words by a dictionary; other target words are unaligned."""

    pair = "es-en"

    def __init__(self, **meanings: str) -> None:
        self.meanings = meanings
        self.asked: list[tuple[Sequence[str], Sequence[str]]] = []

    def align(self, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[Alignment]:
        self.asked += pairs
        return [self.align_pair(*pair) for pair in pairs]

    def align_pair(self, source: Sequence[str], target: Sequence[str]) -> Alignment:
        bare = [word.strip(".,").lower() for word in source]
        meant = [self.meanings.get(word.strip(".,").lower()) for word in target]
        links = sorted((bare.index(word), j) for j, word in enumerate(meant) if word in bare)
        return Alignment(
            tuple(links),
            tuple(float(any(i == s for s, _ in links)) for i in range(len(source))),
            tuple(float(any(j == t for _, t in links)) for j in range(len(target))),
        )


MEANINGS = "the=el poet=poeta neruda=neruda born=nació in=en parral=parral village=pueblo small=pequeño linares=linares"
ALIGNER = Links(**dict(pair.split("=") for pair in f"{MEANINGS} died=murió late=tarde".split()))
QUESTION = Question(
    "q1", "tests", "es", SOURCE, ("The poet Neruda was born in Parral.", "He died late."), "Pablo Neruda"
)


def trace(*sentences: str, ranks: Sequence[int] | None = None, question: Question = QUESTION) -> QuestionTrace:
    """Return a trace that reads one source word per target word; `ranks` has the answer's rank (0: absent) per step."""
    emissions = []
    for i, line in enumerate(sentences):
        size = len(question.sentences[i])
        emissions += [Emission(i, word, min(j + 1, size), False) for j, word in enumerate(line.split())]
    guesses = None if ranks is None else tuple(listed(rank) for rank in ranks)
    return QuestionTrace(question, tuple(emissions), guesses)


def listed(rank: int) -> tuple[Guess, ...]:
    wrong = [Guess(f"Wrong {i}", 50.0 - i) for i in range(49)]
    if rank:
        wrong.insert(rank - 1, Guess("Pablo Neruda", wrong[rank - 1].score))
    return tuple(wrong)


FULL = "The poet Neruda was born in Parral, small village Linares."


def diagnose(traces: list[QuestionTrace], *arguments: object) -> list[Finding]:
    """Return all findings, worst first."""
    return ranked(finding for errors in step_errors(traces, *arguments) for finding in errors.findings)


def test_good_translation_has_no_findings() -> None:
    [errors] = step_errors([trace(FULL, "He died late.", ranks=[5, 5, 1, *[1] * 10])], ALIGNER)
    assert errors.findings == () and diagnose([trace(FULL, "He died late.")], ALIGNER, DiagnoseConfig(trust=1)) == []
    assert errors.log_mrr == (-math.log(5), -math.log(5), *[0.0] * 11) and errors.links[-2:] == ((11,), (12,))
    words = f"{FULL} He died late.".split()
    assert [word for word, bad in zip(words, errors.unaligned, strict=True) if bad] == ["was", "He"]
    assert not any(errors.hallucinated)


def test_adjacent_invented_words_are_one_finding() -> None:
    text = "The poet Neruda was a rocket engineer born in Parral, small village Linares."
    [finding] = diagnose([trace(text, "He died late.", ranks=[2, 2, 1, 1, 1, 3, 0, *[1] * 9])], ALIGNER)
    assert (finding.kind, finding.words, finding.first, finding.last) == ("hallucination", ("rocket", "engineer"), 5, 6)
    assert (finding.rank_before, finding.rank_after, finding.loss) == (1, None, 4.0)
    assert (finding.read, finding.span, finding.size) == (6, None, 2)
    assert finding.severity == pytest.approx(4.2)


class Judge:
    """A detector with the given error probabilities of words, and 0.1 for all other words."""

    def __init__(self, **probabilities: float) -> None:
        self.probabilities = probabilities

    def words(
        self, pairs: Sequence[tuple[Sequence[str], Sequence[str]]], alignments: Sequence[Alignment]
    ) -> list[np.ndarray]:
        return [np.array([self.probabilities.get(word, 0.1) for word in target]) for _, target in pairs]


def test_hallucination_needs_the_word_probability() -> None:
    """The detector decides whether a word is wrong, even if it is aligned. Ranks affect only the severity."""
    text = "The poet Neruda was a rocket engineer born in Parral, small village Linares."
    ranks = [2, 2, 1, 1, 1, 3, 0, *[1] * 9]
    given = trace(text, "He died late.", ranks=ranks)
    [errors] = step_errors([given], ALIGNER, None, Judge(engineer=0.9, Neruda=0.6, was=0.99))
    findings = [f for f in errors.findings if f.kind == "hallucination"]
    assert [(f.words, f.probability) for f in findings] == [(("Neruda",), 0.6), (("engineer",), 0.9)]
    assert [f.severity for f in findings] == [pytest.approx(0.6 * 0.2), pytest.approx(0.9 * (4 - math.log(3) + 0.1))]
    # "was" is not a content word, regardless of the detector
    assert errors.probability is not None and errors.probability[3:6:2] == (0.0, 0.1)
    config = DiagnoseConfig(probability=0.95)
    assert not any(f.kind == "hallucination" for f in diagnose([given], ALIGNER, config, Judge(engineer=0.9)))
    assert all(f.probability is not None for f in findings)
    line = dict(zip(diagnose_command.HEADER, diagnose_command.table(findings).text[2], strict=True))
    assert (line["kind"], line["probability"]) == ("hallucination", "0.90")


def test_drop_is_located_at_its_word_and_source() -> None:
    [finding] = diagnose([trace(FULL, "He died late.", ranks=[1, 1, 1, 1, 1, 1, 4, *[4] * 6])], ALIGNER)
    assert (finding.kind, finding.words, finding.first) == ("drop", ("Parral,",), 6)
    assert finding.span == SourceSpan(5, 6, ("Parral,",)) and finding.loss == pytest.approx(math.log(4))
    fallen = [trace(FULL, "He died late.", ranks=[1] * 6 + [4] * 7)]
    assert diagnose(fallen, ALIGNER, DiagnoseConfig(drop=1.5)) == []
    [finding] = diagnose(fallen, ALIGNER, DiagnoseConfig(top=3))
    assert (finding.rank_after, finding.loss) == (None, 4.0)


def test_missing_clause_is_an_omission() -> None:
    ranks = [9, 9, 5, 5, 5, 5, 5, 5, 5, 5]
    traces = [trace("The poet Neruda was born in Parral.", "He died late.", ranks=ranks)]
    [finding] = diagnose(traces, ALIGNER)
    assert finding.kind == "omission" and finding.span == SourceSpan(7, 11, ("pueblo", "pequeño", "de", "Linares."))
    assert finding.size == 4  # two common words, and a name that counts twice
    assert (finding.words, finding.rank_before, finding.rank_after) == ((), 5, 5)
    assert finding.severity == pytest.approx(0.4)
    assert diagnose(traces, ALIGNER, DiagnoseConfig(omission_words=5)) == []


def test_empty_translation_is_an_omission() -> None:
    [errors] = step_errors([QuestionTrace(QUESTION, (), ())], ALIGNER)
    assert (errors.log_mrr, errors.unaligned) == ((), ())
    [finding] = errors.findings
    assert (finding.kind, finding.first, finding.last, finding.loss, finding.read) == ("omission", -1, -1, 0.0, 0)
    [finding] = diagnose([trace("", "He died late.", ranks=[1, 1, 1])], ALIGNER)  # one whole sentence is missing
    assert finding.span is not None and (finding.span.start, finding.span.stop) == (1, 11)
    assert (finding.first, finding.last) == (0, 0)


@pytest.mark.parametrize("rank", range(1, 25))
def test_halved_reciprocal_rank_is_a_drop(rank: int) -> None:
    """log 2r - log r may differ from log 2 in the last digit, depending on the processor."""
    findings = diagnose([trace(FULL, "He died late.", ranks=[rank] * 6 + [2 * rank] * 7)], ALIGNER)
    drops = [(f.rank_before, f.rank_after) for f in findings if f.kind == "drop"]
    assert drops[-1:] == [(rank, 2 * rank)]


def test_no_drops_without_guesses() -> None:
    [errors] = step_errors([trace("The rocket poet Neruda", "He died late.")], ALIGNER)
    assert errors.log_mrr is None and {f.kind for f in errors.findings} == {"hallucination", "omission"}
    assert {(f.loss, f.rank_before, f.rank_after) for f in errors.findings} == {(0.0, None, None)}


def test_retracted_words_are_judged_once() -> None:
    writes = (("The", 2, False), ("rocket", 2, False), ("poet", 3, False, 1), ("Neruda", 4, False))
    emissions = tuple(Emission(0, *write) for write in writes)
    aligner = Links(the="el", poet="poeta", neruda="neruda")
    [errors] = step_errors([QuestionTrace(QUESTION, emissions)], aligner)
    assert errors.unaligned == (False, True, False, False)
    assert {target for _, target in aligner.asked} == {("The", "rocket"), ("The", "poet", "Neruda"), ()}
    assert errors.links == ((0,), (), (1,), (2,))


def test_findings_are_sorted_by_severity() -> None:
    question = Question("q0", "tests", "es", SOURCE, QUESTION.reference, "Pablo Neruda")
    traces = [
        trace("The rocket " + FULL[4:], "He died late.", ranks=[1] * 14),
        trace(FULL, "He died late.", ranks=[1] * 6 + [4] * 7, question=question),
    ]
    findings = diagnose(traces, ALIGNER)
    assert [(f.question, f.kind) for f in findings] == [("q0", "drop"), ("q1", "hallucination")]
    assert diagnose(traces[::-1], ALIGNER) == findings


def test_aligner_of_another_pair_is_refused() -> None:
    polish = Question("q0", "tests", "pl", SOURCE, QUESTION.reference, "Pablo Neruda")
    message = "the aligner is for es-en, but the questions need pl-en"
    refused(ConfigError, message, step_errors, [QuestionTrace(polish, ())], ALIGNER)


def test_content_words_exclude_function_words() -> None:
    content = [("(Paris),", "en"), ("król", "pl"), ("1914", "es")]
    function = [("The", "en"), ("--", "en"), ("Doesn’t", "en"), ("których", "pl"), ("también,", "es")]
    assert all(is_content(*word) for word in content) and not any(is_content(*word) for word in function)
    assert strip_edges("«की»,") == "की" and strip_edges("_(Paris)_") == "Paris" and strip_edges("بِيرُ.") == "بِيرُ"
    assert is_content("der", "xx") and not is_content("–", "xx")  # without a stop-word list all words count


@pytest.mark.parametrize(
    ("word", "begins", "name"),
    [("Lima,", False, True), ("Lima", True, False), ("lima", False, False), ("1914", True, True), ("(", False, False)],
)
def test_names_have_a_capital_or_a_digit(word: str, begins: bool, name: bool) -> None:
    assert is_name(word, begins) == name


def test_table_has_one_line_per_finding(capsys: pytest.CaptureFixture[str]) -> None:
    [finding] = diagnose([trace(FULL, "He died late.", ranks=[1] * 6 + [0] * 7)], ALIGNER)
    cells = dict(zip(diagnose_command.HEADER, diagnose_command.table([finding]).text[1], strict=True))
    shown = {"question": "q1", "kind": "drop", "severity": "4.000", "loss": "4.000", "rank_before": "1"}
    shown |= {"rank_after": "-", "step": "6", "read": "7", "target": "Parral,", "source_at": "5", "source": "Parral,"}
    assert cells == shown | {"probability": "-"}


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    refused(ConfigError, "--top: must be >= 1, got 0", diagnose_command.main, tmp_path, top=0)
    refused(ConfigError, "--kind: 'drops' is not one of .*'drop'", diagnose_command.main, tmp_path, kinds=["drops"])


def test_findings_can_be_limited_to_one_question(tmp_path: Path) -> None:
    run = open_run(make(tmp_path, "drops", translator={"name": "doubles:build_dropper"}))
    findings = diagnose_command.findings_of(run)
    assert {finding.question for finding in findings} > {"q0"}
    of_q0 = [finding for finding in findings if finding.question == "q0"]
    assert diagnose_command.findings_of(run, questions=["q0"]) == of_q0
