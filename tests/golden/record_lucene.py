"""Record tokens and scores of a real Lucene for tests/golden/test_lucene.py and the Elasticsearch stand-in server.

    pip download --no-deps pyserini==1.6.0      # its anserini-1.7.1-fatjar.jar holds Lucene 9.9.1
    apt-get download liblucene8-java            # lucene-core and lucene-analyzers-common 8.8.1
    LUCENE=anserini-1.7.1-fatjar.jar python -m tests.golden.record_lucene

`java` compiles RecordLucene.java at startup. The output is vectors/lucene.json. The documents are the bundled
questions, with up to three languages of a question in one document, so that some documents are too long for an exact
byte-encoded length.

The similarity of Elasticsearch is that of Lucene times k1 + 1: LegacyBM25Similarity multiplies each term's boost by
k1 + 1. A query with this boost computes the same value in the same single precision.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from sqa.core import ROOT
from sqa.data.datasets import MINI

VECTORS = ROOT / "tests" / "golden" / "vectors" / "lucene.json"
JARS = os.environ.get("LUCENE", "")  # class path of Lucene
SETTINGS = [(analyzer, k1, 0.75) for analyzer in ("standard", "english") for k1 in (2.0, 1.2)]
SIMILARITIES = ("lucene", "elasticsearch")
HITS = 10
WORDS = list(json.loads(VECTORS.read_text(encoding="utf-8"))["tokens"]["standard"])  # as recorded before


def ask(*lines: tuple[Any, ...]) -> list[list[str]]:
    """Send lines of fields to RecordLucene.java and return the fields of each line of its output."""
    program = str(ROOT / "tests" / "golden" / "RecordLucene.java")
    sent = "".join("\t".join(map(str, line)) + "\n" for line in lines)
    done = subprocess.run(["java", "-cp", JARS, program], input=sent, capture_output=True, encoding="utf-8", check=True)
    return [line.split("\t") if line else [] for line in done.stdout.split("\n")[:-1]]


def tokens(analyzer: str, texts: Iterable[str]) -> list[list[str]]:
    """Return the tokens of each text."""
    return ask(("analyzer", analyzer), *(("tokens", text) for text in texts))


def search(analyzer: str, k1: float, b: float, similarity: str, queries: Sequence[str]) -> list[list[list[float]]]:
    """Return, for each query, the indices (into the documents sorted by title) and scores of the top HITS documents."""
    documents, _ = documents_and_queries()
    texts = [("document", documents[title]) for title in sorted(documents)]
    boost = k1 + 1 if similarity == "elasticsearch" else 1.0
    results = ask(
        ("analyzer", analyzer), *texts, ("index", k1, b), *(("search", boost, HITS, text) for text in queries)
    )
    return [[[int(hit[0]), float(hit[1])] for hit in zip(row[::2], row[1::2], strict=True)] for row in results]


def documents_and_queries() -> tuple[dict[str, str], list[str]]:
    """Return a document for each page of the bundled questions, and queries made from parts of the questions."""
    questions = json.loads(MINI.read_text(encoding="utf-8"))["questions"]
    documents: dict[str, str] = {}
    queries: list[str] = ["qzxqzxv", "Peru", "the Machu Picchu of Pizarro"]
    first = _line(questions[0]["en"]).split()
    queries += [" ".join(first[: n + 1]) for n in range(24)]
    for number, question in enumerate(questions):
        texts = [_line(question[language]) for language in ("en", "es", "pl")][: 1 + number % 3]
        documents[question["page"]] = " ".join([documents.get(question["page"], ""), *texts]).strip()
        words = _line(question["en"]).split()
        queries += [[" ".join(words[: len(words) // 3]), " ".join(words), " ".join(words[-5:] * 3)][number % 3]]
    return documents, queries


def _line(text: str | list[str]) -> str:
    return " ".join((text if isinstance(text, str) else " ".join(text)).split())


def main() -> None:
    """Write the recorded values, with a list of all Lucene versions that gave these values."""
    [[version]] = ask(("version",))
    _, queries = documents_and_queries()
    recorded = {
        "made_by": "python -m tests.golden.record_lucene",
        "tokens": {name: dict(zip(WORDS, tokens(name, WORDS), strict=True)) for name in ("standard", "english")},
        "searches": {
            "-".join(map(str, (*settings, similarity))): search(*settings, similarity, queries)
            for settings in SETTINGS
            for similarity in SIMILARITIES
        },
    }
    before = json.loads(VECTORS.read_text(encoding="utf-8")) if VECTORS.exists() else {}
    same = {name: before.get(name) for name in recorded} == recorded
    recorded["lucene"] = sorted({version, *(before["lucene"] if same else ())})
    VECTORS.write_text(json.dumps(recorded, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{VECTORS}: Lucene {', '.join(recorded['lucene'])}", file=sys.stderr)


if __name__ == "__main__":
    main()
