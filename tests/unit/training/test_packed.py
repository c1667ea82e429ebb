"""Packed phrase-based models: what is kept, what follows from what is kept, damaged ones, the bundled ones."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from refusals import refused

from smt.models.bundle import model_folder
from smt.statistical import packed
from smt.statistical.packed import PackingConfig, Phrase, phrases_of, unpack, unpacked, usual_forms
from smt.statistical.phrase_table import LEXICON, history_counts
from smt.statistical.translator import Statistical, StatisticalConfig, build
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import DATA
from sqa.core.types import Question
from sqa.files.records import lines
from tests.tiny_language import pairs, train_tiny

BUNDLED = {
    "pbmt-es-en": (
        "¿Quién escribió la novela sobre el último rey de Francia?",
        "Who wrote the novel about the last king of France?",
    ),
    "pbmt-pl-en": ("Ten autor napisał powieść o wojnie.", "This author wrote a novel about the war."),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder `packed` of a training on the tiny language."""
    pytest.importorskip("thot")
    return train_tiny(tmp_path_factory.mktemp("runs")).parent / "packed"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def kept(tmp_path, rows, **changes):
    table = tmp_path / "table.ttable"
    table.write_text("".join(f"{target} ||| {source} ||| {total}.0 {both}.0\n" for source, target, both, total in rows))
    config = PackingConfig(**{"longest": 3, "best": 2, "least": 0.1, "composed": 3, **changes})
    return [(row.source, row.target) for row in phrases_of(table, config)]


ROWS = [
    ("a", "x", 90, 95),
    ("a", "y", 9, 9),
    ("a", "z", 30, 30),
    ("a b", "x w", 2, 2),  # x and w: put together
    ("b", "w", 1, 1),
    ("b a", "v", 2, 2),  # not w x
    ("b a", "w", 1, 1),  # seen once, of two tokens
    ("b a b a", "v", 9, 9),  # too long
    ("c a", "z x", 3, 3),  # c alone is not there
]


def test_which_phrases_are_kept(tmp_path):
    assert kept(tmp_path, ROWS) == [("a", "x"), ("a", "z"), ("b", "w"), ("b a", "v"), ("c a", "z x")]
    assert ("a b", "x w") in kept(tmp_path, ROWS, composed=2)  # frequent enough to be kept all the same
    assert ("a", "y") in kept(tmp_path, ROWS, best=3, least=0.05)
    assert ("a", "y") not in kept(tmp_path, ROWS, best=3)  # 9 of 129: less than a tenth
    assert ("b a b a", "v") in kept(tmp_path, ROWS, longest=4)


def test_counts_that_follow_from_others():
    counts = {"a": 3, "b": 2, "a b": 2, "a b a": 1}
    assert list(history_counts(counts)) == [("a", 5), ("b", 5), ("a b", 3), ("a b a", 2)]
    rows = [
        Phrase("Kot", "cat", 2, 2),
        Phrase("kot", "cat", 3, 3),
        Phrase("Ala", "Ala", 1, 1),
        Phrase("ala ma", "x", 9, 9),
    ]
    assert usual_forms(rows) == {"kot": "kot", "ala": "Ala"}


def test_the_decoder_writes_the_same_words(model, cache):
    """Of the tiny language everything is kept but what is put together, so nothing is lost; it is unpacked once."""
    whole, small = Statistical(model.parent / "model"), Statistical(unpacked(model))
    texts = [source for source, _, _ in list(pairs())[::7]]
    assert small.words(texts) == whole.words(texts) and len(texts) > 40
    for system in (whole, small):
        system.engine.close()
    assert [unpacked(model)] == list((cache / "pbmt").iterdir())


def test_counts_come_back_as_they_were(model, tmp_path):
    whole, small, again = (tmp_path / name for name in ("whole", "small", "again"))
    shutil.copytree(model.parent / "model", whole)
    rows = "king ||| rey ||| 7.0 3.0\nqueen ||| rey ||| 2.0 2.0\n"
    (whole / "table.ttable").write_text(rows, "utf-8")
    (whole / "language").write_text("a 5 3\nb 5 2\na b 3 2\na c 3 3\n", "utf-8")
    packed.pack(whole, small, PackingConfig(ngrams=3))
    assert list(lines(small / packed.NGRAMS)) == ["a\t3", "b\t2", "a c\t3"]
    assert list(lines(small / packed.PHRASES)) == ["rey\tking\t3\t7", "\tqueen\t2\t2"]
    again.mkdir()
    unpack(small, again)
    assert (again / "table.ttable").read_text("utf-8") == rows
    words = np.fromfile(again / "table_invswm.fa_lexnd", LEXICON)
    assert sorted(np.exp(words["log_count"] - words["log_total"])) == pytest.approx([0.4, 0.6])  # 2 and 3 of 5


PHRASES, NGRAMS, CONFIG = packed.PHRASES, packed.NGRAMS, packed.CONFIG
COUNTS = "phrases.tsv.zst:1: expected source, target and two counts"
DAMAGED = {  # file, its content (lines of a table, or a text), what is said
    "a count too few": (PHRASES, ["a\tx\t1"], COUNTS),
    "no count": (PHRASES, ["a\tx\t1\tmany"], COUNTS),
    "an n-gram without count": (NGRAMS, ["a\t1", "b c"], "language.tsv.zst:2: expected an n-gram and its"),
    "a beginning too few": (NGRAMS, ["a b\t1"], "has no count of 'a', the beginning of another n-gram"),
    "newer": (CONFIG, '{"format": 99}', "format 99, not 1"),
    "nothing in it": (CONFIG, '{"format": 1}', "not a packed model's configuration .*language"),
}


@pytest.mark.parametrize(("name", "content", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_folders(model, tmp_path, name, content, message):
    folder = shutil.copytree(model, tmp_path / "damaged")
    if isinstance(content, str):
        (folder / name).write_text(content)
    else:
        packed.write_zst(folder / name, iter(content))
    (tmp_path / "whole").mkdir()
    refused(DataError, message, unpack, folder, tmp_path / "whole")


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled(name):
    pytest.importorskip("thot")
    sentence, words = BUNDLED[name]  # unpacked once on a machine: ten seconds
    question = Question("q", "d", name[5:7], (tuple(sentence.split()),), ("-",), "Page")
    trace = build(StatisticalConfig(name)).translate_batch([question])[0]
    assert " ".join(word.token for word in trace) == words
    assert sum(path.stat().st_size for path in (DATA / "models" / name).iterdir()) < 5_000_000


def test_a_phrase_based_model_is_none_of_the_transformer():
    refused(ConfigError, "no model 'pbmt-es-en'; bundled are es-en, pl-en", model_folder, "pbmt-es-en")
