"""The pipeline stages: a translator's pulls define its delay, blocks are computed once, invalid output is refused."""

import json

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
from own_layouts import played
from refusals import refused
from small_runs import small_config, small_run
from tables import tables_of

from sqa.core import Buzz, ConfigError, DataError, Emission, Guess, NotComputable, TraceError, Write
from sqa.core.trace import QuestionTrace, buzzes_rows, emissions_rows, guesses_rows, scores_rows
from sqa.files import Store
from sqa.pipeline import engine, run, stream

TABLES = tables_of(__file__)

Q = question()


def ignore(_):
    """Ignore progress reports."""


class Revising:
    """A translator that shows only the last source word."""

    def translate(self, source):
        yield next(source)
        for word in source:
            yield Write(word, erase=1)
        yield Write("", erase=1)


def test_streaming_records_pulled_and_retracted_words():
    assert [(e.sentence, e.token, e.g, e.ended) for e in stream(EchoTranslator(EchoConfig(k=2)), Q)] == [
        (0, "uno", 2, False),
        (0, "dos", 2, True),
        (1, "tres", 2, False),
        (1, "cuatro", 3, False),
        (1, "cinco", 3, True),
    ]
    assert stream(Revising(), question(sentences=["uno dos"])) == [
        Emission(0, "uno", 1, False),
        Emission(0, "dos", 2, False, erase=1),
        Emission(0, "", 2, True, erase=1),
    ]


class Batched:
    """A translator that translates only batches and returns the given emissions."""

    def __init__(self, answers):
        self.answers = answers

    def translate_batch(self, questions):
        return self.answers


def test_batched_translation_is_used_and_checked():
    assert emissions_rows(engine.translate(Batched([list(echo(Q))]), [Q], ignore)) == {Q.id: echo(Q)}
    for answers, says in (([], "answered 0 of 1 questions"), ([[Emission(0, "a", 9, False)]], "q step 0: g must be")):
        refused(TraceError, says, engine.translate, Batched(answers), [Q], ignore)


class Counting(KeywordGuesser):
    """A guesser that records which of its two methods were called."""

    calls = ()

    def guess(self, texts, n):
        self.calls += ("guess",)
        return super().guess(texts, n)

    def guess_prefixes(self, words, n):
        self.calls += ("guess_prefixes",)
        return super().guess([" ".join(words[: i + 1]) for i in range(len(words))], n)


def test_only_append_only_text_uses_incremental_guesses():
    guesser = Counting(GuesserConfig(pages=("Tres",)))
    revised = (Emission(1, "tres", 1, False), Emission(1, "dos", 2, False, erase=1))
    for emissions, counts in ((echo(Q), [0, 0, 1, 1, 1]), (revised, [1, 0]), ((), [])):
        rows = guesses_rows(engine.guess(guesser, [Q], {Q.id: emissions}, ignore))
        assert [len(guesses) for guesses in rows.get(Q.id, ())] == counts
    assert guesser.calls == ("guess_prefixes", "guess")


def test_only_an_oracle_receives_the_answer():
    history = {Q.id: ((), (Guess("Spain", 0.1),))}
    table = engine.buzz(OracleBuzzer(BuzzerConfig()), [Q], history, ignore)
    assert buzzes_rows(table) == {Q.id: (Buzz(1.0, False), Buzz(1.0, True))}


class Refusing:
    """A metric that refuses every question."""

    name = "refusing"

    def stats(self, trace):
        raise NotComputable("not here")


@pytest.mark.parametrize(
    ("emissions", "questions", "sentences"),
    [(echo(Q)[:2], 0, 1), ((Emission(0, "a", 1, False), Emission(0, "", 2, False, erase=1)), 1, 2)],
)
def test_refusals_are_kept_and_empty_output_counted(emissions, questions, sentences):
    scores = scores_rows(engine.score([Refusing()], [QuestionTrace(Q, emissions)], ignore))[Q.id]
    assert (scores["refusing"].stats, scores["refusing"].refusal) == (None, "not here")
    assert scores["empty-questions"].stats == (questions, 1) and scores["empty-sentences"].stats == (sentences, 2)


def test_runs_may_have_several_blocks(tmp_path, monkeypatch):
    whole = run(small_config(tmp_path), Store(tmp_path / "a"), progress=False)
    traces, stats = list(whole.traces), whole.stats
    monkeypatch.setattr(engine, "BLOCK_SIZE", 2)
    parts = run(small_config(tmp_path), Store(tmp_path / "b"), progress=False)
    assert parts.made["translate"] == 3 and list(parts.traces) == traces
    assert [parts.traces[-1], *parts.traces[1:3]] == [traces[-1], *traces[1:3]]
    for name, values in stats.items():
        np.testing.assert_array_equal(parts.stats[name], values)
    Store(tmp_path / "b").block(parts.stages["guess"], 1).unlink()
    again = run(small_config(tmp_path), Store(tmp_path / "b"), progress=False)
    assert again.made == dict.fromkeys(engine.STAGES, 0) | {"guess": 1}


CHECKS = TABLES["checks"]


def test_guesser_sees_all_missing_texts_first(tmp_path):
    (tmp_path / "mine.py").write_text(CHECKS, encoding="utf-8")
    says = r"it was shown \[10, 10\] texts"
    refused(DataError, says, played, tmp_path, guesser="mine.py:Mine")


@pytest.mark.parametrize(("part", "stage"), [("guesser", "guess"), ("buzzer", "buzz")])
def test_missing_part_of_a_stage_is_refused(tmp_path, part, stage):
    config = small_config(tmp_path, **{"buzzer": None, part: None})
    with pytest.raises(ConfigError, match=f"t: names no {part} to run"):
        run(config, Store(tmp_path / "runs"), until=stage, progress=False)


def test_alias_metrics_do_not_change_the_strict_ones(tmp_path):
    rows = (("Spain (country)", "la respuesta es spain"), ("France", "la respuesta es france"), ("Rome", "nada"))
    record = {"language": "es", "reference": ["x"]}
    lines = [json.dumps(record | {"id": page, "source": [text], "page": page}) + "\n" for page, text in rows]
    (tmp_path / "questions5.jsonl").write_text("".join(lines))
    names = ["ew", "accuracy", "bleu", "al", "ew@aliases", "accuracy@aliases"]
    strict, both = small_run(tmp_path), small_run(tmp_path, metrics=names)
    assert [m.name for m in both.metrics] == names
    for name in strict.stats:
        assert np.array_equal(strict.stats[name], both.stats[name])
    assert both.stats["accuracy"].tolist() == [[0, 1], [1, 1], [0, 1]]
    assert both.stats["accuracy@aliases"].tolist() == [[1, 1], [1, 1], [0, 1]]
    assert both.stats["ew@aliases"][0, 0] > 0 == both.stats["ew"][0, 0]
    assert both.stats["ew@aliases"][1, 0] == both.stats["ew"][1, 0] > 0


def test_other_metrics_are_computed_without_a_guesser(tmp_path):
    without = {"guesser": None, "buzzer": None, "metrics": ["accuracy", "accuracy@aliases", "al"]}
    result = small_run(tmp_path, **without)
    assert set(result.refusals) == {"accuracy", "accuracy@aliases"} and "al" in result.stats
    assert result.unknown_pages is None
