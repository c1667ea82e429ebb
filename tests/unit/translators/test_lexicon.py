"""The bonus for word translations and glosses: the table, the affected pieces, streaming and batched decoding."""

import math
import shutil
from dataclasses import replace

import pytest
import torch
from refusals import refused
from smt_models import streamed
from stand_ins.lm_models import adapter, change, make
from tables import tables_of

from smt.lm.causal_lm import CausalLmConfig, build
from smt.models.decode import decode_batch, decode_stream
from smt.models.stepper import Begun, Rules
from smt.policies.waitk import FULL, Schedule
from smt.statistical.lexicon import COMMON, DOUBT, Glosses, Lexicon, table_of
from smt.statistical.packed import Phrase
from sqa.core import ConfigError

TABLES = tables_of(__file__)

TEXTS = ["pla", "gue", "city", "zoo", "s", "end"]
STARTS = torch.tensor([True, False, True, True, False, False])
RULES = Rules(STARTS, *(torch.zeros(6, dtype=torch.bool) for _ in range(3)), end=5, nothing=5)
SPELLINGS = {"plague": [0, 1], "city": [2], "Zoo": [3], "zoo": [3], "Zoo2": [3], "Miasta": [3]}
TABLE = {"miast": [("city", 0.81)], "zaraz": [("plague", 0.49), ("pest", 0.3)]}
ROWS = {"miasta city": (6, 8), "miasto City": (2, 8), "miasto the": (9, 5000), "miasta of": (9, 9000)}
ROWS |= {"miasta town": (1, 1), "miasto said": (3, 900), "miasto ￭.": (3, 4)}
PHRASES = [Phrase(*pair.split(), *counts) for pair, counts in ROWS.items()]
PHRASES.append(Phrase("stare miasto", "old town", 4, 4))


def test_table_joins_the_forms_of_a_word():
    """8 of the 33 links of "miasto" lead to "city". "town" is rarer than LEAST, and "said" occurs with any word."""
    table = table_of(PHRASES, "pl")
    assert list(table.values()) == [[("city", pytest.approx(8 / 33))]]


def favour(scores, begun, words, read, wrote=(), rules=RULES, spellings=SPELLINGS):
    """Return the scores with a bonus of 2 nats after the pieces `begun`, `read` source words and the words `wrote`."""
    lexicon = Lexicon(TABLE, "pl", 2.0, rules, spellings.get)
    uncovered = lexicon.tracker(words)
    for word in wrote:
        uncovered.wrote(word, read)
    return lexicon.favour(scores.clone(), Begun([list(begun)], [uncovered], [read]))


BONUSES = TABLES["bonuses"]


@pytest.mark.parametrize(("source", "options", "bonus"), BONUSES.values(), ids=BONUSES)
def test_translations_of_uncovered_words_get_the_bonus(source, options, bonus):
    """All six pieces are equally likely, so the bonus is scaled by ln 6 / DOUBT."""
    scores = favour(torch.zeros(1, 6), (), source.split(), **{"read": 9, **options})[0] / (2.0 * math.log(6) / DOUBT)
    favoured = {TEXTS[i]: value for i, value in enumerate(scores.tolist()) if abs(value) > 1e-6}
    assert favoured == pytest.approx(bonus, abs=1e-5)


def test_bonus_does_not_end_a_word_early():
    after = favour(torch.zeros(1, 6), [0], ["zaraza", "miasta"], 2)
    assert after[0, STARTS].logsumexp(0).item() == pytest.approx(math.log(3))
    assert after[0, 1] > 0 and after[0, 2] > after[0, 3]


def test_likely_function_word_halves_the_bonus():
    """Treat "zoo" as an article that has half of the probability of the three pieces that start a word."""
    before = torch.tensor([[0.0, 0.0, 0.0, math.log(2), 0.0, 0.0]])
    bonus = favour(before, [], ["miasta"], 1, spellings=SPELLINGS | {"the": [3]}) - before
    doubt = math.log(7) - 2 / 7 * math.log(2)
    assert bonus[0].tolist() == pytest.approx([0, 0, 0.9 * 2.0 * doubt / DOUBT / 2, 0, 0, 0], abs=1e-5)


def test_bonus_grows_with_uncertainty_up_to_a_bound():
    """All 20 pieces are equally likely, and ln 20 exceeds DOUBT. A certain model gets no bonus."""
    starts = torch.tensor([True, False] * 10)
    rules = Rules(starts, *(torch.zeros(20, dtype=torch.bool) for _ in range(3)), end=5, nothing=5)
    bonus = favour(torch.zeros(1, 20), [], ["miasta"], 1, rules=rules)
    assert bonus[0, 2].item() == pytest.approx(0.9 * 2.0) and bonus.count_nonzero() == 1
    sure = torch.tensor([[0.0, 0.0, 0.0, 60.0, 0.0, 0.0]])
    assert torch.allclose(favour(sure, [], ["miasta"], 1), sure)


SENTENCES = [text.split() for text in ("el perro grande la casa", "casa perro perro casa grande el", "la casa")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the folder of a randomly initialized adapter."""
    folder = tmp_path_factory.mktemp("lm")
    return adapter(make(folder / "base", "gemma3_text", seed=3), folder / "adapter", 7)


def streamed_as_batched(writer, schedule):
    """Return a writer's output for SENTENCES, and check that streamed and batched output are equal."""
    together = decode_batch(writer, SENTENCES, schedule)
    assert streamed(lambda source: decode_stream(writer, source, schedule), SENTENCES) == together
    return together


@pytest.mark.parametrize("k", [1, FULL])
def test_bonus_and_glosses_stream_as_in_batches(model, k):
    writer, schedule = build(CausalLmConfig(str(model), k=2, dtype="float32")).writer, Schedule(k)
    plain = decode_batch(writer, SENTENCES, schedule)
    table = {"perr": [("dog", 1.0)], "cas": [("house", 0.8), ("big", 0.4)], "grand": [("big", 0.9)]}
    helped = replace(writer, bonus=Lexicon(table, "es", 12.0, writer.rules, writer.places))
    assert streamed_as_batched(helped, schedule) != plain
    glossed = replace(writer, glosses=Glosses({"perr": [("dog", 1.0)]}, {"perr": 3}, "es"))
    beside = [[word.replace("perro", "perro[dog]") for word in sentence] for sentence in SENTENCES]
    assert streamed_as_batched(glossed, schedule) == decode_batch(writer, beside, schedule) != plain


@pytest.mark.parametrize(("options", "message"), TABLES["mismatched_lexicon_is_refused"])
def test_mismatched_lexicon_is_refused(model, options, message):
    refused(ConfigError, message, lambda: build(CausalLmConfig(str(model), dtype="float32", **options)))


RARE = {"zaraz": [("plague", 0.5), ("pest", 0.3), ("soon", 0.2)]}
OTHERS = {"miast": [("city", 0.9)], "zus": [("ZUS", 0.9)], "przez": [("by", 0.19)]}
GLOSSES = Glosses(RARE | OTHERS, {"zaraz": COMMON, "miast": COMMON + 1, "zus": 1, "przez": 1}, "pl")


def test_rare_word_has_its_likeliest_gloss():
    glossed = {"zarazą": "zarazą[plague]", "„Zarazy”,": "„Zarazy[plague]”,"}
    bare = ("miasta", "Zus", "przez", "nieznane", "–")  # common, equal in English, improbable, unknown, without letters
    assert {word: GLOSSES.word(word) for word in (*glossed, *bare)} == glossed | {word: word for word in bare}


@pytest.mark.parametrize(("trained", "lexicon"), [(True, "pbmt-es-en"), (False, "pbmt-es-en"), (True, None)])
def test_glosses_need_training_and_a_lexicon(model, tmp_path, monkeypatch, trained, lexicon):
    monkeypatch.setattr("smt.lm.causal_lm.load_glosses", lambda *_: GLOSSES)
    monkeypatch.setattr("smt.statistical.lexicon.load_table", lambda *_: TABLE)
    folder = shutil.copytree(model, tmp_path / "adapter")
    change(folder, glosses=trained)
    translator = build(CausalLmConfig(str(folder), dtype="float32", lexicon=lexicon))
    assert (translator.writer.glosses is not None) == (trained and lexicon is not None)
