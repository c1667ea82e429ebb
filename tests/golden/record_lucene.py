"""Asks a real Lucene for tokens, stems and scores, and records what tests/golden/test_lucene.py compares with.

    apt-get install liblucene8-java && pip install jpype1==1.7.1
    python -m tests.golden.record_lucene

The jars are taken from the folder $LUCENE_JARS, else from /usr/share/java, and Java from $JAVA_HOME or the path.  The
file written is tests/golden/vectors/lucene_<version>.json; its texts are the bundled questions, all three languages of
a question together being one document, so that lengths pass what a byte holds exactly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError
from sqa.core.paths import ROOT
from sqa.data.datasets import MINI

SETTINGS = (("standard", 2.0, 0.75), ("standard", 1.2, 0.75), ("english", 2.0, 0.75), ("english", 1.2, 0.75))
HITS = 10
_JARS = ("lucene-core", "lucene-analyzers-common", "lucene-misc")
WORDS = (
    "Saint-Exupéry's nations’ O'Neill Łódź, ŁÓDŹ İstanbul ΟΔΥΣΣΕΥΣ wi-fi AT&T 3.14 1,492.5 1,2,3 a.b.c. U.S.A. "
    "foo:bar foo_bar _x _ __ x__y 'tis rock'n'roll can't 5'6\" (*) $5.00 C++ 東京 ひらがな カタカナ 한국어 ภาษาไทย "
    "שלום צה״ל don't’s FunÃ©railles ✴ght 5™ ☃☃ boss' boss's BOSS'S 's s' ’s it＇s e=mc² ½ № x² naïve cafe\u0301 "
    "“quoted”, — … … ¿qué? 10th v8.1 1st.2nd a1b2 1a.2b http://example.org/a?b=c user@example.org ⅷ ⓐ ª é ß STRASSE ﬁn "
    "and The NOT such sky skies dying happy apply archaeology possibly conditional generalizations oscillators hopping "
    "hoping falling feed agreed bled motoring sing conflated troubled sized hissing fizzed failing filing relational "
    "digitizer radically vileness sensibility triplicate formative electrical hopeful goodness revival allowance "
    "inference airliner gyroscopic adjustable defensible irritant replacement adjustment dependent adoption communism "
    "activate angularity homologous effective bowdlerize probate rate cease controll roll controlling ion ions aed "
    "ying eed ies as is y by yes say "
).split()


def jars() -> list[Path]:
    """The jar files of an installed Lucene; empty if there is none, or no jpype to run it."""
    folder = Path(os.environ.get("LUCENE_JARS", "/usr/share/java"))
    found = [path for name in _JARS for path in sorted(folder.glob(f"{name}-[0-9]*.jar"))]
    return found if find_spec("jpype") and len(found) == len(_JARS) else []


class Lucene:
    """A Lucene in this process."""

    def __init__(self) -> None:
        import jpype

        if not jars():
            raise ConfigError("no jars of Lucene in $LUCENE_JARS or /usr/share/java: install liblucene8-java")
        if not jpype.isJVMStarted():
            jpype.startJVM("-Xmx1g", classpath=[str(path) for path in jars()], convertStrings=True)
        self._package = jpype.JPackage("org").apache.lucene
        self._float = jpype.JFloat

    @property
    def version(self) -> str:
        """Lucene's version, "8.8.1"."""
        return str(self._package.util.Version.LATEST.toString())

    def _analyzer(self, name: str) -> Any:
        analysis = self._package.analysis
        return analysis.standard.StandardAnalyzer() if name == "standard" else analysis.en.EnglishAnalyzer()

    def tokens(self, analyzer: str, texts: Sequence[str]) -> list[list[str]]:
        """The tokens of each text."""
        made, attribute = self._analyzer(analyzer), self._package.analysis.tokenattributes.CharTermAttribute
        found = []
        for text in texts:
            stream = made.tokenStream("text", text)
            term = stream.addAttribute(attribute.class_)
            stream.reset()
            tokens: list[str] = []
            while stream.incrementToken():
                tokens.append(str(term.toString()))
            stream.end()
            stream.close()
            found.append(tokens)
        return found

    def search(
        self, documents: Mapping[str, str], queries: Sequence[str], analyzer: str, k1: float, b: float, legacy: bool
    ) -> list[list[tuple[str, float]]]:
        """The best HITS titles and scores for each query; documents are indexed in the order of their titles."""
        lucene, made = self._package, self._analyzer(analyzer)
        package = lucene.search.similarity.LegacyBM25Similarity if legacy else lucene.search.similarities.BM25Similarity
        similarity = package(self._float(k1), self._float(b))
        directory = lucene.store.ByteBuffersDirectory()
        writer = lucene.index.IndexWriter(directory, lucene.index.IndexWriterConfig(made).setSimilarity(similarity))
        stored = lucene.document.Field.Store
        titles = sorted(documents)
        for title in titles:
            document = lucene.document.Document()
            document.add(lucene.document.TextField("text", documents[title], stored.NO))
            writer.addDocument(document)
        writer.forceMerge(1)
        writer.close()
        searcher = lucene.search.IndexSearcher(lucene.index.DirectoryReader.open(directory))
        searcher.setSimilarity(similarity)
        builder = lucene.util.QueryBuilder(made)
        found = []
        for text in queries:
            query = builder.createBooleanQuery("text", text)
            hits = searcher.search(query, HITS).scoreDocs if query else []
            found.append([(titles[hit.doc], float(hit.score)) for hit in hits])
        return found


def documents_and_queries() -> tuple[dict[str, str], list[str]]:
    """One document a page of the bundled questions; queries are beginnings, endings and repetitions of them."""
    questions = json.loads(MINI.read_text(encoding="utf-8"))["questions"]
    documents: dict[str, str] = {}
    queries: list[str] = []
    for number, question in enumerate(questions):
        texts = [_line(question[language]) for language in ("en", "es", "pl")][: 1 + number % 3]
        documents[question["page"]] = " ".join([documents.get(question["page"], ""), *texts]).strip()
        words = _line(question["en"]).split()
        queries += [" ".join(words[: len(words) // 3]), " ".join(words), " ".join(words[-5:] * 3)]
    return documents, queries


def _line(text: str | list[str]) -> str:
    return text if isinstance(text, str) else " ".join(text)


def main() -> None:
    """Record."""
    lucene = Lucene()
    documents, queries = documents_and_queries()
    recorded = {
        "made_by": f"python -m tests.golden.record_lucene, Lucene {lucene.version}",
        "tokens": {name: dict(zip(WORDS, lucene.tokens(name, WORDS), strict=True)) for name in ("standard", "english")},
        "searches": [
            {
                "analyzer": analyzer,
                "k1": k1,
                "b": b,
                "similarity": "elasticsearch" if legacy else "lucene",
                "hits": lucene.search(documents, queries, analyzer, k1, b, legacy),
            }
            for legacy in (False, True)
            for analyzer, k1, b in (SETTINGS if not legacy else SETTINGS[:1])
        ],
    }
    path = ROOT / "tests" / "golden" / "vectors" / f"lucene_{lucene.version}.json"
    path.write_text(json.dumps(recorded, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
