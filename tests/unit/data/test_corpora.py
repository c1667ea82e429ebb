"""The real data sets: count, first and last record of each file, and known properties.

A test is skipped if its file is neither in the mirror (SQA_MIRROR) nor in the cache.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
from needs import reason

from sqa.core import Question
from sqa.data import datasets, download, texts
from sqa.files import records

ENTRIES = {item.name: item for item in download.entries()}


def need(*names: str) -> None:
    for name in names:
        if download.where(name) is None:
            pytest.skip(f"{reason('SQA_MIRROR')} ({name})")


def first_and_last(path: Path) -> tuple[int, str, str]:
    """Return the number of records and the sha256 of the first and the last record, as in data/manifest.yaml.

    A record of a text file is a line. A record of a JSON document is an item of its list, an item of the list under
    "questions", or a [key, value] pair, serialised with sorted keys. Without records, both hashes are those of "".
    """
    if path.suffix == ".json":
        document = records.json_document(path)
        if isinstance(document, dict):
            document = document.get("questions", [list(pair) for pair in document.items()])
        rows = iter([json.dumps(item, ensure_ascii=False, sort_keys=True) for item in document])
    else:
        rows = records.lines(path)
    count, first, last = 0, "", ""
    for row in rows:
        first = row if count == 0 else first
        count, last = count + 1, row
    return count, *(hashlib.sha256(row.encode()).hexdigest() for row in (first, last))


@pytest.mark.parametrize("name", ENTRIES)
def test_file_equals_its_manifest_entry(name: str) -> None:
    need(name)
    item = ENTRIES[name]
    assert first_and_last(download.path_of(name)) == (item.records, item.first, item.last)


@pytest.mark.parametrize(
    ("name", "count", "first", "last", "twice", "unequal", "most"),
    [
        ("xqb-es", 147, ("xqb-es-3000000", "Bolivia"), ("xqb-es-3001068", "Caspian Sea"), 2, 9, 7),
        ("xqb-pl", 511, ("xqb-pl-2000016", "Longitude"), ("xqb-pl-2005959", "The Icebergs"), 6, 10, 6),
    ],
)
def test_xqb_has_known_properties(name, count, first, last, twice, unequal, most):
    """A few sources and references differ in their numbers of sentences, because the translators joined sentences."""
    need(name)
    questions = datasets.load_questions(name)
    assert len(questions) == count
    assert (questions[0].id, questions[0].page) == first
    assert (questions[-1].id, questions[-1].page) == last
    assert sum(n - 1 for n in Counter(q.text for q in questions).values()) == twice
    assert all(q.dataset == name and q.language == name[-2:] and q.reference for q in questions)
    assert sum(len(q.sentences) != len(q.reference) for q in questions) == unequal
    assert {len(q.sentences) for q in questions} == set(range(2, most + 1))
    assert min(len(sentence) for q in questions for sentence in q.sentences) >= 3


def test_guessdev_has_known_properties() -> None:
    need("guessdev")
    tossups = texts.load_guessdev()
    assert len(tossups) == 1_129 and sum(t.page is None for t in tossups) == 21
    questions: list[Question] = datasets.load_questions("guessdev")
    assert len(questions) == 1_108
    assert (questions[0].id, questions[0].page) == ("qanta-93135", "Texas annexation")
    assert all(q.reference_text == q.text for q in questions)
