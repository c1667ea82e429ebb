"""The embedded BM25 beside Apache Lucene 8.8.1: same tokens, same stems, same ranking, scores to 1e-5 (from 100 on, to
the last digit of Lucene's single precision, which is coarser there).

The vectors were recorded by `python -m tests.golden.record_lucene` from Debian's liblucene8-java; they hold no
text of their own, the documents are the bundled questions.  Where Lucene and jpype are installed, the same is asked
live, of more texts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from guessers.bonus import HeldOut
from guessers.retrieval import lucene
from guessers.retrieval.bm25 import Bm25Config, Bm25Guesser
from sqa.core.paths import ROOT
from tests.golden import record_lucene

VECTORS = json.loads((Path(__file__).parent / "vectors" / "lucene_8.8.1.json").read_text(encoding="utf-8"))
ANALYZERS = {"standard": lucene.standard, "english": lucene.english}
SEARCHES = {f"{s['analyzer']}-{s['k1']}-{s['similarity']}": s for s in VECTORS["searches"]}
TOLERANCE, SINGLE = 1e-5, 1.2e-7

live = pytest.mark.skipif(not record_lucene.jars(), reason="needs Lucene's jars (LUCENE_JARS) and jpype1")


def tokens(analyzer, text):
    return [token for word in text.split() for token in ANALYZERS[analyzer](word)]


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_words_are_cut_and_stemmed_as_lucene_does(analyzer):
    recorded = VECTORS["tokens"][analyzer]
    assert len(recorded) > 100
    assert {word: tokens(analyzer, word) for word in recorded} == recorded


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("way", ["from scratch", "incremental"])
def test_ranking_and_scores_are_lucenes(name, way):
    recorded = SEARCHES[name]
    documents, queries = record_lucene.documents_and_queries()
    config = Bm25Config(k1=recorded["k1"], b=recorded["b"], similarity=recorded["similarity"])
    profiles = [HeldOut(text, title) for title, text in documents.items()]
    guesser = Bm25Guesser.fit(profiles, None, config, recorded["analyzer"])
    if way == "from scratch":
        found = guesser.guess(queries, record_lucene.HITS)
    else:
        found = [guesser.guess_prefixes(query.split(), record_lucene.HITS)[-1] for query in queries]
    compare(found, recorded["hits"])


def compare(found, recorded):
    """Scores to TOLERANCE, and the same titles in the same order but where scores are nearer than that."""
    assert len(found) == len(recorded)
    for guesses, hits in zip(found, recorded, strict=True):
        assert [guess.score for guess in guesses] == pytest.approx(
            [score for _, score in hits], abs=TOLERANCE, rel=SINGLE
        )
        for place, (guess, (title, score)) in enumerate(zip(guesses, hits, strict=True)):
            near = [other for at, other in enumerate(hits) if at != place and abs(other[1] - score) < TOLERANCE]
            last = place == len(hits) - 1 or hits[-1][1] - score > -TOLERANCE
            assert guess.page == title or near or last, (place, guess, title)


def test_the_documents_are_longer_than_a_byte_holds_exactly():
    documents, _ = record_lucene.documents_and_queries()
    lengths = np.array([len(tokens("standard", text)) for text in documents.values()])
    assert (lucene.byte_lengths(lengths) != lengths).sum() > 20


def test_lengths_through_a_byte():
    """SmallFloat.byte4ToInt(intToByte4(n)): exact to 40, then rounded down to four significant bits above 24."""
    lengths = np.array([0, 1, 23, 24, 39, 40, 41, 42, 55, 56, 57, 60, 100, 1000, 10**6])
    assert lucene.byte_lengths(lengths).tolist() == [0, 1, 23, 24, 39, 40, 40, 42, 54, 56, 56, 60, 96, 984, 983064]


def ask(lines: str):
    """The JSON that Lucene answers with, in a process of its own (a JVM does not go away again)."""
    program = f"import json, sys\nfrom tests.golden import record_lucene as r\nl = r.Lucene()\n{lines}\n"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@live
def test_the_vectors_are_what_lucene_says_now():
    first = SEARCHES["standard-2.0-lucene"]
    again = ask("print(json.dumps(l.search(*r.documents_and_queries(), 'standard', 2.0, 0.75, False)))")
    assert [[tuple(hit) for hit in hits] for hits in again] == [[tuple(hit) for hit in hits] for hits in first["hits"]]


@live
def test_lengths_through_a_byte_are_lucenes():
    lengths = [*range(300), *range(300, 100_000, 997), 2**31 - 1]
    code = f"f = l._package.util.SmallFloat\nprint(json.dumps([f.byte4ToInt(f.intToByte4(n)) for n in {lengths}]))"
    assert lucene.byte_lengths(np.array(lengths)).tolist() == ask(code)


@live
@pytest.mark.mirror
@pytest.mark.slow
@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_all_words_of_the_tossups_are_cut_as_lucene_does(analyzer, tmp_path):
    from sqa.data.texts import load_tossups

    words = sorted({word for tossup in load_tossups() for word in tossup.text.split()})
    lines = [" ".join(words[start : start + 50]) for start in range(0, len(words), 50)]
    path = tmp_path / "lines.json"
    path.write_text(json.dumps(lines), encoding="utf-8")
    theirs = ask(f"print(json.dumps(l.tokens({analyzer!r}, json.load(open({str(path)!r})))))")
    wrong = [
        (set(cut) ^ set(tokens(analyzer, line)))
        for line, cut in zip(lines, theirs, strict=True)
        if cut != tokens(analyzer, line)
    ]
    assert len(words) > 100_000 and not wrong, wrong[:20]
