"""Wait-k with a causal language model: streaming as batched, g as equation 1 has it, the prompt alone, odd input."""

from __future__ import annotations

import pytest
import torch
from refusals import refused
from stand_ins.lm_models import adapter, make

from smt.lm import translator
from smt.lm.base import load_base
from smt.lm.layout import OFFSET, Layout
from smt.lm.stepper import LmWriter
from smt.lm.translator import CausalLmConfig, build
from smt.models.beam import Beam, search_batch, search_stream
from smt.models.decode import decode_batch, decode_stream, start_reading
from smt.models.next_piece import piece_limit
from smt.policies.waitk import FULL, Schedule
from sqa.core.errors import ConfigError
from sqa.run.pipeline import CountedSource

SENTENCES = [
    "el perro".split(),
    "la casa grande is big".split(),
    "el perro grande la casa mañana Łódź 1234".split(),
    [],
    ["el"],
    "la la la la la la la la la la la la".split(),
]
KS = (1, 3, FULL)
NETWORKS = ("gemma3_text", "llama", "qwen2", "qwen3")


@pytest.fixture(scope="module", params=NETWORKS)
def writer(request, tmp_path_factory):
    folder = make(tmp_path_factory.mktemp("base"), request.param, seed=3)
    base = load_base(folder, torch.float32)
    layout = Layout.of(base.tokens, "es", "en")
    return LmWriter.of(base.network, base.tokens, layout, torch.arange(4, base.tokens.size))


def assert_streamed(sentences, batched, stream):
    """Each of the batched sentences is streamed to the same words, each at the same g."""
    for sentence, written in zip(sentences, batched, strict=True):
        source = CountedSource(sentence)
        assert [(word, source.read) for word in stream(source)] == [(word.token, word.g) for word in written]


@pytest.mark.parametrize(
    ("writer", "schedule"),
    [(name, Schedule(k)) for name in NETWORKS for k in KS]
    + [("gemma3_text", Schedule(2, rate)) for rate in (0.6, 0.8, 1.4)],
    indirect=["writer"],
)
def test_streaming_writes_what_batched_writes_with_the_same_g(writer, schedule):
    batched = decode_batch(writer, SENTENCES, schedule)
    assert_streamed(SENTENCES, batched, lambda source: decode_stream(writer, source, schedule))
    assert any(len(written) > 2 for written in batched)
    for sentence, written in zip(SENTENCES, batched, strict=True):
        for j, word in enumerate(written, 1):
            assert word.g >= min(schedule.k + int((j - 1) / schedule.rate), len(sentence))
            assert word.token and not any(c.isspace() for c in word.token)
            assert word.ended <= (word.g == len(sentence))


def test_words_not_read_yet_change_nothing(writer):
    k, base = 2, "el perro grande la casa is big el".split()
    changed = [*base[:5], "mañana", "Łódź", "1234"]
    [first], [second] = (decode_batch(writer, [s], Schedule(k)) for s in (base, changed))
    early = [[w for w in words if w.g <= 5] for words in (first, second)]
    assert early[0] == early[1]


def test_a_row_does_not_depend_on_its_neighbours(writer):
    together = decode_batch(writer, SENTENCES, Schedule(3))
    assert [decode_batch(writer, [s], Schedule(3))[0] for s in SENTENCES] == together


def test_a_source_longer_than_the_offset_is_translated(writer):
    [words] = decode_batch(writer, [["perro"] * (OFFSET + 20)], Schedule(FULL))
    assert all(word.g == OFFSET + 20 for word in words)


def test_the_registered_translator(tmp_path):
    folder = make(tmp_path / "base", "gemma3_text", seed=3)
    path = adapter(folder, tmp_path / "adapter", 7)
    waiting, full_input = (build(CausalLmConfig(model=str(path), k=k, precision="float32")) for k in (2, "full"))
    assert waiting.fingerprint() != full_input.fingerprint()
    again = build(CausalLmConfig(model=str(path), k=2, precision="float32", emission_rate=1.0))
    assert again.fingerprint() == waiting.fingerprint()
    caught_up = build(CausalLmConfig(model=str(path), k=2, precision="float32", emission_rate=1.2))
    assert caught_up.fingerprint() != waiting.fingerprint() and caught_up.schedule.rate == 1.2
    words = "el perro grande".split()
    assert list(waiting.translate(iter(words))) == list(again.translate(iter(words)))
    agreed = build(CausalLmConfig(model=str(path), policy="local-agreement", precision="float32"))
    full = list(full_input.translate(iter("la casa".split())))
    assert len(list(agreed.translate(iter("la casa".split())))) == len(full)


def test_a_model_is_loaded_when_there_is_something_to_translate(tmp_path, monkeypatch):
    base = make(tmp_path / "base", "gemma3_text")
    loaded = []
    monkeypatch.setattr(translator, "load_base", lambda *found: loaded.append(found) or load_base(*found))
    path = adapter(base, tmp_path / "adapter", 7)
    adapted, prompted = (
        build(CausalLmConfig(str(model), precision="float32", **options))
        for model, options in ((path, {"k": 2}), (base, {"policy": "hold", "n": 1, "source_language": "es"}))
    )
    assert adapted.fingerprint() != prompted.fingerprint() and not loaded
    for number, system in enumerate((adapted, prompted), 1):
        list(system.translate(iter(["el", "perro"])))
        assert len(loaded) == number


def test_a_source_read_in_both_directions(tmp_path):
    folder = make(tmp_path / "base", "gemma3_text", seed=3)
    path = adapter(folder, tmp_path / "adapter", 7, bidirectional=True)
    settings = {"model": str(path), "precision": "float32"}
    plain, bidirectional = (build(CausalLmConfig(bidirectional=value, **settings)) for value in (False, True))
    assert plain.fingerprint() != bidirectional.fingerprint()
    together = decode_batch(bidirectional.writer, SENTENCES, Schedule(FULL))
    assert together != decode_batch(plain.writer, SENTENCES, Schedule(FULL))
    for sentence, written in zip(SENTENCES, together, strict=True):
        source = CountedSource(sentence)
        assert list(bidirectional.translate(source)) == [word.token for word in written]
        assert source.read == len(sentence) and all(word.g == len(sentence) for word in written)
        assert decode_batch(bidirectional.writer, [sentence], Schedule(FULL)) == [written]


class Numbers:
    """The same writer, but a word is spelt as the numbers of its pieces."""

    def __init__(self, writer):
        self.writer = writer

    def __getattr__(self, name):
        return getattr(self.writer, name)

    def spell(self, pieces):
        return ".".join(map(str, pieces))


def searched(writer, sentences, n):
    """The pieces of each sentence's best hypothesis."""
    results = search_batch(Numbers(writer), sentences, Schedule(FULL), Beam(n))
    return [[int(piece) for word in written for piece in word.token.split(".")] for written in results]


def test_a_beam_of_one_is_greedy(writer):
    assert search_batch(writer, SENTENCES, Schedule(FULL), Beam(1)) == decode_batch(writer, SENTENCES, Schedule(FULL))
    assert search_batch(writer, SENTENCES, Schedule(2), Beam(1, 1)) == decode_batch(writer, SENTENCES, Schedule(2))


def begun(writer, sentence):
    stepper = writer.begin([sentence], Schedule(FULL))
    start_reading(stepper, Schedule(FULL))
    return stepper


def log_probability(writer, sentence, pieces):
    """Of a piece at a time, as decoding sees it: mean over the pieces and the end."""
    stepper, rules, total = begun(writer, sentence), writer.rules, 0.0
    for piece in [*pieces, rules.end]:
        scores = stepper.score()[0].log_softmax(-1)
        total += float(rules.forbid(scores, stepper.state.word_open, stepper.state.past)[0, piece])
        stepper.state.commit(torch.tensor([piece]), torch.tensor([piece != rules.end]))
    return total / (len(pieces) + 1)


@torch.inference_mode()
def test_a_wider_beam_finds_what_is_more_probable(writer):
    sentences = [s for s in SENTENCES if s]
    greedy, wide = (searched(writer, sentences, n) for n in (1, 5))
    means = [
        [log_probability(writer, s, pieces) for s, pieces in zip(sentences, translations, strict=True)]
        for translations in (greedy, wide)
    ]
    limits = [int(piece_limit(begun(writer, s).state.visible().sum(1))) for s in sentences]
    ended = [i for i, limit in enumerate(limits) if len(greedy[i]) < limit and len(wide[i]) < limit]
    assert sum(means[1][i] >= means[0][i] - 1e-4 for i in ended) >= len(ended) - 1
    assert [searched(writer, [s], 5)[0] for s in sentences] == wide  # whatever its neighbours


@pytest.mark.parametrize("k", [1, 3, FULL])
def test_a_beam_that_waits_writes_the_same_streaming_and_batched(writer, k):
    batched = search_batch(writer, SENTENCES, Schedule(k), Beam(3))
    assert_streamed(SENTENCES, batched, lambda source: search_stream(writer, source, Schedule(k), Beam(3)))


def test_a_beam_reads_to_the_end_first(tmp_path):
    folder = make(tmp_path / "base", "gemma3_text", seed=3)
    path = adapter(folder, tmp_path / "adapter", 7)
    greedy, wide = (build(CausalLmConfig(model=str(path), precision="float32", beam=n)) for n in (1, 4))
    assert greedy.fingerprint() != wide.fingerprint()
    source = CountedSource("el perro grande".split())
    words = list(wide.translate(source))
    assert source.read == 3 and words == [
        w.token for w in search_batch(wide.writer, ["el perro grande".split()], Schedule(FULL), Beam(4))[0]
    ]
    refused(ConfigError, "beam: reads the whole sentence first", CausalLmConfig, model=str(path), beam=4, k=3)
    refused(ConfigError, "beam: must be 1 to 64, got 0", CausalLmConfig, model=str(path), beam=0)


def test_an_untrained_model_translates_by_prompt_under_any_policy(tmp_path):
    folder = make(tmp_path, "gemma3_text", seed=3)
    whole = build(CausalLmConfig(model=str(folder), source_language="es", precision="float32"))
    words = list(whole.translate(iter("la casa grande".split())))
    held = build(CausalLmConfig(model=str(folder), source_language="es", policy="hold", n=1, precision="float32"))
    assert len(words) == len(list(held.translate(iter("la casa grande".split()))))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model": "gemma3-270n", "source_language": "es"}, "did you mean 'gemma3-270m'"),
        ({"model": "no/such/folder.gguf", "source_language": "es"}, "there is no such file"),
        ({"model": "{folder}"}, "source_language: missing"),
        ({"model": "{folder}", "base": "x", "source_language": "es"}, "base: .* is no adapter"),
        ({"model": "{adapter}", "source_language": "es"}, "knows its languages"),
        ({"model": "{adapter}", "bidirectional": True}, "was not trained for it"),
        ({"model": "{folder}", "source_language": "es", "bidirectional": True}, "no adapter that was trained for it"),
        ({"model": "{adapter}", "bidirectional": True, "k": 3}, "so k must be full"),
        ({"model": "{adapter}", "base": "nowhere"}, "model nowhere not found"),
        ({"model": "{adapter}", "emission_rate": 0.4}, r"emission_rate: must be in \[0.5, 2\], got 0.4"),
        ({"model": "{adapter}", "emission_rate": 1.2, "policy": "hold", "n": 1}, "emission_rate: for wait-k"),
        ({"model": "{folder}", "emission_rate": 1.2, "source_language": "es"}, "emission_rate: .* is no adapter"),
    ],
)
def test_what_is_not_available_is_an_error_of_one_line(tmp_path, config, message):
    folder = make(tmp_path / "base", "llama")
    path = adapter(folder, tmp_path / "adapter", 1)
    filled = {key: v.format(folder=folder, adapter=path) if isinstance(v, str) else v for key, v in config.items()}
    refused(ConfigError, message, lambda: build(CausalLmConfig(**filled)))
