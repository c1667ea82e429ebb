"""The stages: what a translator pulls is its delay, blocks are made once, bad output is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from doubles import (
    BuzzerConfig,
    EchoConfig,
    EchoTranslator,
    GuesserConfig,
    KeywordGuesser,
    OracleBuzzer,
    echo,
    question,
)
from small_runs import small_config, small_run

from sqa.core.errors import ConfigError, NotComputable, TraceError
from sqa.core.trace import QuestionTrace, buzzes_rows, emissions_rows, guesses_rows, scores_rows
from sqa.core.types import Buzz, Emission, Guess, Question, Write
from sqa.files.store import Store
from sqa.run import pipeline
from sqa.run.pipeline import CountedSource, Parts, run, stream

Q = question()


def ignore(_: int) -> None:
    """No progress."""


def test_a_counted_source_counts_reads_and_tells_the_end_once_told() -> None:
    source = CountedSource(["a", "b"])
    assert (next(source), source.read, source.ended) == ("a", 1, False)
    assert (next(source), source.read, source.ended) == ("b", 2, False)
    assert list(source) == []
    assert (source.read, source.ended) == (2, True)


def test_streaming_records_the_words_pulled() -> None:
    emissions = stream(EchoTranslator(EchoConfig(k=2)), Q)
    assert [(e.sentence, e.token, e.g, e.ended) for e in emissions] == [
        (0, "uno", 2, False),
        (0, "dos", 2, True),
        (1, "tres", 2, False),
        (1, "cuatro", 3, False),
        (1, "cinco", 3, True),
    ]


class Revising:
    """Shows the last source word only."""

    def translate(self, source: Iterator[str]) -> Iterator[str | Write]:
        yield next(source)
        for word in source:
            yield Write(word, erase=1)
        yield Write("", erase=1)


def test_streaming_records_what_is_retracted() -> None:
    emissions = stream(Revising(), question(sentences=["uno dos"]))
    assert emissions == [
        Emission(0, "uno", 1, False),
        Emission(0, "dos", 2, False, erase=1),
        Emission(0, "", 2, True, erase=1),
    ]


class Batched:
    """A translator with the fast path only, giving what it is told."""

    def __init__(self, answers: list[list[Emission]]) -> None:
        self.answers = answers

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        return self.answers


def test_the_batched_path_is_taken_and_checked() -> None:
    table = pipeline.translate(Batched([list(echo(Q))]), [Q], ignore)
    assert emissions_rows(table) == {Q.id: echo(Q)}
    with pytest.raises(TraceError, match="the translator answered 0 of 1 questions"):
        pipeline.translate(Batched([]), [Q], ignore)
    with pytest.raises(TraceError, match="q step 0: g must be"):
        pipeline.translate(Batched([[Emission(0, "a", 9, False)]]), [Q], ignore)


class Counting(KeywordGuesser):
    """Has the incremental path; remembers which path was taken."""

    def __init__(self) -> None:
        super().__init__(GuesserConfig(pages=("Tres",)))
        self.calls: list[str] = []

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        self.calls.append("guess")
        return super().guess(texts, n)

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        self.calls.append("guess_prefixes")
        return super().guess([" ".join(words[: i + 1]) for i in range(len(words))], n)


def test_append_only_text_takes_the_incremental_path_and_revised_text_does_not() -> None:
    guesser = Counting()
    rows = guesses_rows(pipeline.guess(guesser, [Q], {Q.id: echo(Q)}, ignore))
    assert [len(guesses) for guesses in rows[Q.id]] == [0, 0, 1, 1, 1]
    revised = (Emission(1, "tres", 1, False), Emission(1, "dos", 2, False, erase=1))
    rows = guesses_rows(pipeline.guess(guesser, [Q], {Q.id: revised}, ignore))
    assert [len(guesses) for guesses in rows[Q.id]] == [1, 0]
    pipeline.guess(guesser, [Q], {Q.id: ()}, ignore)
    assert guesser.calls == ["guess_prefixes", "guess"]


def test_only_an_oracle_is_told_the_answer() -> None:
    history = {Q.id: ((), (Guess("Spain", 0.1),))}
    oracle = OracleBuzzer(BuzzerConfig())
    assert buzzes_rows(pipeline.buzz(oracle, [Q], history, ignore)) == {Q.id: (Buzz(1.0, False), Buzz(1.0, True))}


class Refusing:
    """A metric that refuses every question."""

    name = "refusing"

    def stats(self, trace: QuestionTrace) -> np.ndarray:
        raise NotComputable("not here")


def test_a_refusal_is_kept_as_such_and_empty_output_is_counted() -> None:
    rows = scores_rows(pipeline.score([Refusing()], [QuestionTrace(Q, echo(Q)[:2])], ignore))
    assert rows[Q.id]["refusing"].stats is None
    assert rows[Q.id]["refusing"].refusal == "not here"
    assert rows[Q.id]["empty-questions"].stats == (0.0, 1.0)
    assert rows[Q.id]["empty-sentences"].stats == (1.0, 2.0)
    gone = (Emission(0, "a", 1, False), Emission(0, "", 2, False, erase=1))
    rows = scores_rows(pipeline.score([], [QuestionTrace(Q, gone)], ignore))
    assert rows[Q.id]["empty-questions"].stats == (1.0, 1.0) and rows[Q.id]["empty-sentences"].stats == (2.0, 2.0)


def test_a_run_from_end_to_end(tmp_path: Path) -> None:
    result = small_run(tmp_path)
    assert [trace.question.id for trace in result.traces] == [f"q{i}" for i in range(5)]
    assert [trace.question.id for trace in (result.traces[-1], *result.traces[1:3])] == ["q4", "q1", "q2"]
    assert result.stats["accuracy"].tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    assert result.unknown_pages == 1
    assert result.made == {"translate": 1, "guess": 1, "buzz": 1, "score": 1}
    again = small_run(tmp_path)
    assert again.made == {"translate": 0, "guess": 0, "buzz": 0, "score": 0}
    assert again.keys == result.keys


def test_runs_share_the_stages_they_have_in_common(tmp_path: Path) -> None:
    parts = Parts()
    small_run(tmp_path, parts=parts)
    for change, made in (
        ({"buzzer": {"name": "doubles:build_buzzer", "threshold": 9.0}}, [0, 0, 1, 1]),
        ({"guesser": {"name": "doubles:build_guesser", "pages": ["Spain"]}}, [0, 1, 1, 1]),
    ):
        assert list(small_run(tmp_path, parts=parts, **change).made.values()) == made


def test_more_questions_than_a_block_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(small_config(tmp_path), Store(tmp_path / "a"), progress=False)
    traces, stats = list(whole.traces), whole.stats
    monkeypatch.setattr(pipeline, "BLOCK_SIZE", 2)
    parts = run(small_config(tmp_path), Store(tmp_path / "b"), progress=False)
    assert parts.made["translate"] == 3
    assert list(parts.traces) == traces
    assert parts.traces[4] == traces[4]
    for name, values in stats.items():
        np.testing.assert_array_equal(parts.stats[name], values)


@pytest.mark.parametrize(("part", "stage"), [("guesser", "guess"), ("buzzer", "buzz")])
def test_a_stage_that_the_config_lacks(tmp_path: Path, part: str, stage: str) -> None:
    config = small_config(tmp_path, **{"buzzer": None, part: None})
    with pytest.raises(ConfigError, match=f"t: names no {part} to run"):
        run(config, Store(tmp_path / "runs"), until=stage, progress=False)


def test_answers_by_aliases_stand_beside_the_strict_ones(tmp_path: Path) -> None:
    rows = (("Spain (country)", "la respuesta es spain"), ("France", "la respuesta es france"), ("Rome", "nada"))
    (tmp_path / "questions5.jsonl").write_text(
        "".join(
            f'{{"id": "q{i}", "language": "es", "source": ["{text}"], "reference": ["x"], "page": "{page}"}}\n'
            for i, (page, text) in enumerate(rows)
        )
    )
    strict, both = small_run(tmp_path), small_run(tmp_path, answers={"matching": "aliases"})
    names = [metric.name for metric in both.metrics]
    assert names == ["ew", "accuracy", "bleu", "al", "ew@aliases", "accuracy@aliases"]
    for name in strict.stats:
        assert np.array_equal(strict.stats[name], both.stats[name])
    assert both.stats["accuracy"].tolist() == [[0, 1], [1, 1], [0, 1]]
    assert both.stats["accuracy@aliases"].tolist() == [[1, 1], [1, 1], [0, 1]]
    assert both.stats["ew@aliases"][0, 0] > 0 == both.stats["ew"][0, 0]
    assert both.stats["ew@aliases"][1, 0] == both.stats["ew"][1, 0] > 0
    plain = small_run(tmp_path, answers={"matching": "strict"})
    assert plain.keys == strict.keys and both.keys["score"] != strict.keys["score"]
    assert [both.keys[stage] for stage in ("translate", "guess", "buzz")] == list(strict.keys.values())[:3]


def test_without_a_guesser_only_what_needs_none_is_scored(tmp_path: Path) -> None:
    asked = {"guesser": None, "buzzer": None, "answers": {"matching": "aliases"}, "metrics": ["accuracy", "al"]}
    result = small_run(tmp_path, **asked)
    assert set(result.refusals) == {"accuracy", "accuracy@aliases"} and "al" in result.stats
    assert result.unknown_pages is None
