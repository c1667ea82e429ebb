"""Synthetic pairs: the translated side, the cache from which a killed run resumes, refusals, and rough Polish."""

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from recorded import recorded
from refusals import refused
from tables import tables_of

from smt.training import lexical_lines as lexical
from smt.training import synthetic
from smt.training.config import SmtConfig
from smt.training.prepare import texts_for
from smt.training.synthetic import MadeConfig, made_pairs, translated
from sqa.core import ROOT, ConfigError, cache_dir, table_of
from sqa.data.datasets import load_questions
from sqa.files import Store
from sqa.pipeline import load

TABLES = tables_of(__file__)

ECHO = {"name": "doubles:build_translator", "k": 1}
TEXTS = [f"text number {n} of several" for n in range(7)]
BACK = MadeConfig("round-trip", "tossups", "source", ECHO)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))


def test_requested_side_is_translated() -> None:
    spoken = translated(ECHO, TEXTS)
    assert list(made_pairs(BACK, TEXTS)) == [(s, t, "round-trip") for s, t in zip(spoken, TEXTS, strict=True)]
    distilled = MadeConfig("distilled", "parallel", "target", ECHO, every=3)
    assert list(made_pairs(distilled, TEXTS)) == [(TEXTS[i], spoken[i], "distilled") for i in (0, 3, 6)]


def test_texts_of_extreme_length_are_skipped() -> None:
    config, texts = replace(BACK, shortest=3, longest=4), ["one two", "one two three", "a b c d", "a b c d e"]
    assert [pair[1] for pair in made_pairs(config, texts)] == texts[1:3]


def test_killed_translation_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "BLOCK", 2)
    whole = translated(ECHO, TEXTS)
    folder = cache_dir() / "store" / "made"
    [stage] = (Store(cache_dir()).stage("made", path.name) for path in folder.iterdir())
    blocks = [Store(cache_dir()).block(stage, index) for index in range(4)]
    before = [block.read_bytes() for block in blocks]
    Store(cache_dir()).write(stage, 0, table_of(synthetic.LINES, [["kept"], ["kept"]]))
    blocks[2].unlink()
    assert translated(ECHO, TEXTS) == ["kept", "kept", *whole[2:]]
    assert [block.read_bytes() for block in blocks[1:]] == before[1:]
    translated({**ECHO, "k": 2}, TEXTS)  # the store has no translation by another translator
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(("change", "message"), TABLES["invalid_entries_are_refused"])
def test_invalid_entries_are_refused(change: dict, message: str) -> None:
    refused(ConfigError, message, replace, BACK, **change)


def test_entries_can_use_output_of_earlier_entries() -> None:
    entry = MadeConfig("distilled", "made", "target", ECHO, of=("round-trip",))
    assert texts_for(entry, "es-en", {"round-trip": [("s", "t", "round-trip")], "x": [("u", "v", "x")]}) == ["s"]
    refused(ConfigError, "round-trip is not among the entries before distilled", texts_for, entry, "es-en", {})


def test_documented_entries_load(tmp_path: Path) -> None:
    shown = (ROOT / "docs" / "training.md").read_text("utf-8").split("## Synthetic pairs")[1]
    block = shown.strip("\n").split("\n\n")[0]
    file = tmp_path / "mine.yaml"
    file.write_text(f"name: mine\n{textwrap.dedent(block)}\n  pair: pl-en\n")
    [entry] = load(file, SmtConfig).corpus.made
    assert (entry.corpus, entry.makes, entry.every) == ("round-trip", "source", 36)
    assert entry.translator == {"name": "causal-lm", "model": "runs/smt/lm-en-pl/model", "k": "full"}
    file.write_text(file.read_text().replace("k: full", "kk: full"))
    refused(ConfigError, "translator.kk: unknown", load, file, SmtConfig)


LEMMAS = "zamek stary czytać kobieta miasto wojna król pisać duży rzeka dziecko widzieć".split()


@pytest.mark.needs("morfeusz2")
def test_rough_polish_of_questions_matches_reference() -> None:
    """The lexicon translates eight of nine English words with one of twelve lemmas, and some word pairs."""
    english = [sentence for question in load_questions("mini-es", 12) for sentence in question.reference]
    words = sorted({word.strip(".,").lower() for sentence in english for word in sentence.split()})
    lexicon = [(LEMMAS[i % 12], word, "made") for i, word in enumerate(words) if i % 9]
    lexicon += [("stara wojna", " ".join(sentence.lower().split()[2:4]), "made") for sentence in english[::5]]
    with recorded(Path(__file__)) as keep:
        keep("polish", "\n".join(lexical.back_translate_lexically(english, lexicon, 3)))
