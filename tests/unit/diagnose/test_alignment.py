"""Word forms, priors on disk, and the links of the aligner."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from refusals import refused
from tables import tables_of

from sqa.core import DataError
from sqa.data.priors import Priors, form, similar
from sqa.diagnose import hmm
from sqa.diagnose.alignment import SEEDS, HmmAligner

TABLES = tables_of(__file__)

COLOURS = {"rojo": "red", "verde": "green", "azul": "blue", "negro": "black"}
THINGS = {"perro": "dog", "gato": "cat", "pájaro": "bird", "tren": "train", "libro": "book"}
WORDS = {**COLOURS, **THINGS}
PRIORS = Priors(
    "es-en",
    {(form(s, "es"), form(t, "en")): 30 for s, t in WORDS.items()},
    {form(s, "es"): 30 for s in WORDS},
    {form(t, "en"): 30 for t in WORDS.values()},
)

PINNED = [0.9938, 0.8723, 0.984]  # trust of the target words of `test_number_of_passes_changes_the_trust`


def test_forms_are_stems_without_punctuation() -> None:
    assert [form(word, "en") for word in ("(Nations,", "King’s", "--")] == ["nation", "king", "--"]
    assert form("ciudades.", "es") == "ciudad"
    assert form("(Words", "xx") == "words"  # a language without a stemmer


@pytest.mark.parametrize(("source", "target", "expected"), TABLES["similar_words_are_recognised"])
def test_similar_words_are_recognised(source: str, target: str, expected: bool) -> None:
    assert similar(source, target) == expected


@pytest.fixture(scope="module")
def pairs() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return pairs such as "el tren rojo" and "the red train", whose adjective and noun swap places."""
    return [
        (("el", thing, colour, "corre."), ("the", COLOURS[colour], THINGS[thing], "runs."))
        for thing, colour in product(THINGS, COLOURS)
    ]


class TestHmm:
    def test_swapped_words_are_linked(self, pairs: list) -> None:
        *alignment, names = HmmAligner(PRIORS).align([*pairs, (("Lima", "y", "Napoleón"), ("Napoleon", "and", "Lima"))])
        assert all({(1, 2), (2, 1)} <= set(single.links) for single in alignment)
        assert {(0, 2), (2, 0)} <= set(names.links)  # similar words need no priors

    def test_alignments_depend_only_on_the_seeds(self, pairs: list) -> None:
        first = HmmAligner(PRIORS).align(pairs)
        assert HmmAligner(PRIORS).align(pairs) == first
        assert HmmAligner(PRIORS, seeds=[seed + 100 for seed in SEEDS]).align(pairs) != first

    def test_number_of_passes_changes_the_trust(self, pairs: list, monkeypatch: pytest.MonkeyPatch) -> None:
        """The published numbers use three passes with equal jump probabilities, then four with trained ones."""
        texts = [*pairs, (("el", "tren", "viejo"), ("the", "old", "train"))]
        single = HmmAligner(PRIORS, seeds=(0,)).align(texts)[-1]
        assert [round(trust, 4) for trust in single.target] == PINNED
        monkeypatch.setattr(hmm, "PASSES", (3, 5))
        assert [round(trust, 4) for trust in HmmAligner(PRIORS, seeds=(0,)).align(texts)[-1].target] != PINNED

    def test_spread_is_zero_only_for_a_single_seed(self, pairs: list) -> None:
        [single] = HmmAligner(PRIORS, seeds=(0,)).align(pairs[:1])
        assert single.evidence is not None and set(single.evidence.spread) == {0.0}
        several = HmmAligner(PRIORS).align([*pairs, (("el", "tren", "viejo"), ("the", "old", "train"))])[-1]
        assert several.evidence is not None and max(several.evidence.spread) > 0

    def test_alignments_are_reused_only_for_equal_inputs(self, pairs: list, tmp_path: Path) -> None:
        kept = tmp_path / "links.json"
        first = HmmAligner(PRIORS, cache=kept).align(pairs)
        before = kept.read_bytes()
        assert HmmAligner(PRIORS, cache=kept).align(pairs) == first
        assert kept.read_bytes() == before
        others = HmmAligner(replace(PRIORS, digest="other")), HmmAligner(PRIORS, seeds=(7,)), HmmAligner(PRIORS)
        for aligner, texts in zip(others, (pairs, pairs, pairs[:5]), strict=True):
            kept.write_bytes(before)
            HmmAligner(aligner._priors, aligner.seeds, kept).align(texts)
            assert kept.read_bytes() != before
        kept.write_text("{")
        damaged = "links.json: the stored alignments are damaged .*; delete the file"
        refused(DataError, damaged, HmmAligner(PRIORS, cache=kept).align, pairs)

    def test_invented_word_is_not_trusted(self, pairs: list) -> None:
        source, _ = pairs[0]
        alignment = HmmAligner(PRIORS).align([*pairs[1:], (source, ("the", "red", "bird", "dog", "runs."))])[-1]
        assert alignment.target[2] < 0.5 < min(alignment.target[1], alignment.target[3])

    def test_word_does_not_support_itself(self) -> None:
        """The words "zeppelin" and "zarza" occur only in this sentence, so only their positions relate them."""
        [alignment] = HmmAligner(PRIORS).align([(("el", "perro", "zarza", "rojo"), ("the", "red", "dog", "zeppelin"))])
        assert alignment.evidence is not None
        assert alignment.evidence.lift[3] < 1 < alignment.evidence.lift[1]

    def test_every_word_has_one_trust_value(self, pairs: list) -> None:
        for (source, target), alignment in zip(pairs, HmmAligner(PRIORS).align(pairs), strict=True):
            assert (len(alignment.source), len(alignment.target)) == (len(source), len(target))
            assert all(0 <= trust <= 1 for trust in (*alignment.source, *alignment.target))
            assert all(alignment.source[i] > 0 and alignment.target[j] > 0 for i, j in alignment.links)

    def test_empty_sides_have_no_links(self, pairs: list) -> None:
        first, second, third = HmmAligner(PRIORS).align([(("el", "perro"), ()), ((), ("the",)), pairs[0]])
        assert (first.links, first.source, first.target) == ((), (0.0, 0.0), ())
        assert (second.links, second.source, second.target) == ((), (), (0.0,))
        assert third.links
        assert HmmAligner(PRIORS).align([]) == []
