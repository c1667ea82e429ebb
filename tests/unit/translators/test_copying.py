"""The bonus for names: the affected pieces, streaming and batched decoding, and the effect on a real model."""

import numpy as np
import pytest
import torch
from refusals import refused
from smt_models import streamed

from smt.models.bundle import load_model, model_folder
from smt.models.copying import MOST, Begun, Copier, Names, reading, spellings
from smt.models.decode import decode_batch, decode_stream
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab_bpe import SPECIAL, BpeVocabulary, Cutting
from smt.models.waitk_translator import WaitKConfig, build
from smt.policies.waitk import FULL, Schedule
from sqa.core.errors import ConfigError
from sqa.data.datasets import load_questions

TEXTS = ["", "Mus", "s", "só", "Lima", "ed", ",", "sóf", "7", ""]
STARTS = np.array([False, True, False, False, True, False, False, False, False, True])
SENTENCE = "El general Mussó, y «Mussa» con Kalaallisut 1234 Ud".split()


def favoured(begun, read, names=SENTENCE, bonus=2.0, language=""):
    """Return a dict that maps each piece whose score changes to the change."""
    copier = Copier(TEXTS, STARTS, bonus, language)
    scores = copier.favour(torch.zeros(1, len(TEXTS)), Begun([begun], [copier.names(names)], [read]))
    return {TEXTS[i]: value for i, value in enumerate(scores[0].tolist()) if value}


def test_pieces_of_a_name_that_was_read_get_the_bonus():
    assert favoured([1], 3) == {"s": 2.0, "só": 2.0}
    assert favoured([1], 2) == {}  # not read yet
    assert favoured([1], 5) == {"s": 2.0, "só": 2.0}  # "sa" is not a piece, but "s" begins both endings


def test_name_may_lose_its_accents():
    assert spellings("Mussó") == {"Mussó", "Musso"} and spellings("Wałęsa") == {"Wałęsa", "Walesa"}
    assert Names(SENTENCE).rests("Muss", 3) == {"ó", "o"}


def test_polish_name_may_have_another_case_ending():
    assert spellings("Napoleona", "pl") == {"Napoleona", "Napoleon"}
    assert spellings("Warszawy", "pl") == {"Warszawy", "Warszawa"}
    assert spellings("Łódź", "pl") == {"Łódź", "Lodz"} and spellings("Ela", "pl") == {"Ela"}  # too short to cut
    assert spellings("Napoleona", "es") == {"Napoleona"}
    names = Names("Nazwij Kalaala i Limą".split(), "pl")
    assert names.rests("Kalaal", 9) == {"a", ""} and names.rests("Lim", 9) == {"ą", "a"}


def test_model_chooses_where_two_spellings_differ():
    letters = dict.fromkeys(("s", "só", "ed", "sóf"), -2.0)
    assert favoured([1], 9, "o Mus".split()) == letters  # the name ends here, so letters lose
    assert favoured([1], 9, "o Musó".split(), language="es") == {}  # "ó" and "o" are not pieces
    assert favoured([1], 9, "o Musem".split(), language="pl") == letters  # may end here, and "em" is not a piece


def test_letters_are_penalised_after_a_complete_name():
    assert favoured([1, 3], 9) == {"s": -2.0, "só": -2.0, "ed": -2.0, "sóf": -2.0}
    assert favoured([], 9) == favoured([4], 9) == favoured([1, 5], 9) == {}  # no name has begun


def test_names_are_recognised():
    names = Names()
    source = reading(names, iter(SENTENCE))
    for n, word in enumerate(SENTENCE, 1):
        assert next(source) == word and names.words == n
    assert names.rests("Mus", 99) == names.rests('"Mus', 99) == {"só", "so", "sa"} and names.rests("Mussó", 99) == {""}
    assert not any(names.rests(word, 99) for word in ("M", "mus", "12", "El", "Ud"))
    first = Names("Lima Cusco".split())  # the first word of a sentence is not a name
    assert first.rests("Lim", 9) == set() and first.rests("Cu", 9) == {"sco"} and first.rests("Cus", 1) == set()


@pytest.mark.parametrize("k", [1, FULL])
def test_streaming_equals_batched(k):
    model, vocabulary, _ = load_model(model_folder("es-en"))
    plain, copying = (TransformerWriter(model, vocabulary, bonus) for bonus in (0.0, 5.0))
    sentences = [list(s) for s in load_questions("mini-es", limit=1)[0].sentences[2:]]
    batched = decode_batch(copying, sentences, Schedule(k))
    assert batched != decode_batch(plain, sentences, Schedule(k))
    assert streamed(lambda source: decode_stream(copying, source, Schedule(k)), sentences) == batched


def test_name_lost_without_the_bonus_is_copied():
    source = "Ronald Reagan se reunió aquí con Mijaíl Gorbachov en 1986".split()
    for bonus, arrives in ((0.0, False), (4.0, True)):
        assert ("Gorbachov" in list(build(WaitKConfig("es-en", copy_bonus=bonus)).translate(iter(source)))) == arrives


def test_invalid_settings_are_refused():
    foreign = BpeVocabulary([*SPECIAL, "a"], [*SPECIAL, "a"], Cutting())
    refused(ConfigError, "copy_bonus: only for models trained with this program", Copier.of, foreign, 2.0)
    for bonus in (-1.0, MOST + 1, float("nan")):
        refused(ConfigError, "copy_bonus: must be 0 to", WaitKConfig, "es-en", 3, copy_bonus=bonus)
    refused(ConfigError, "beam must be 1", WaitKConfig, "es-en", 3, beam=4, copy_bonus=2.0)
