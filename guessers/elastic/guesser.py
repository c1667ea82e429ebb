"""The Elasticsearch guesser: pages found by a real server, all beginnings of a text asked in one multi-search.

It needs a server with an index (guessers/elastic/index.py makes one) and the Python client (extra "elasticsearch").
It never falls back: with no server, no index, an index of other texts or settings, or a
server of another major version there is one error, which names the embedded twin: the same documents, analyzer and
formula without a server (guessers/retrieval/bm25.py with `similarity: elasticsearch`).

Scores are the server's: BM25 times (k1 + 1).  QANTA's guesser has k1 2.0 and b .75, Lucene itself 1.2 and .75.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guessers.elastic import index as elastic_index
from guessers.retrieval.bm25 import Index
from sqa.core.errors import DataError, Positive, Share, checked
from sqa.core.types import Guess
from sqa.files.model_files import folder_digest, resolve_model

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

BATCH = 100  # texts in one multi-search
MOST = 10_000  # guesses a server gives at most (index.max_result_window)


@dataclass(frozen=True, slots=True)
@checked
class ElasticConfig:
    """What `guesser: {name: elasticsearch, ...}` takes."""

    model: str = "runs/train/bm25-lucene"  # folder of the embedded twin: says which texts the index must hold
    index: str = "sqa-pages"  # name of the index in the server
    url: str = ""  # http://user:password@host:port; "" = $ELASTICSEARCH_URL, else http://127.0.0.1:9200
    k1: Positive = 2.0  # must be the index' own
    b: Share = 0.75  # must be the index' own


class ElasticGuesser:
    """Asks a server."""

    def __init__(self, client: Elasticsearch, titles: Sequence[str], config: ElasticConfig, identity: str) -> None:
        """`identity` names server version, texts and settings in the fingerprint."""
        self._client, self._titles, self._config, self._identity = client, titles, config, identity
        self._instead = elastic_index.embedded(config.model, config.k1, config.b)

    @property
    def pages(self) -> frozenset[str]:
        """All pages it can name."""
        return frozenset(self._titles)

    def fingerprint(self) -> str:
        """sha256 of the server's version, the index' identity and the layout's version."""
        return hashlib.sha256(f"elasticsearch {elastic_index.VERSION} {self._identity}".encode()).hexdigest()

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """The best `n` pages (MOST at most) for each text, equal scores by title. DataError if the server fails."""
        guesses: list[list[Guess]] = [[] for _ in texts]
        indices = [index for index, text in enumerate(texts) if n > 0 and text.strip()]
        for start in range(0, len(indices), BATCH):
            chunk = indices[start : start + BATCH]
            with elastic_index.explained(self._client, self._config.index, self._instead):
                answers = self._answers([texts[index] for index in chunk], min(n, MOST))
                for index, answer in zip(chunk, answers, strict=True):
                    guesses[index] = [Guess(hit["_id"], float(hit["_score"])) for hit in answer["hits"]["hits"]]
        return guesses

    def _answers(self, texts: Sequence[str], n: int) -> Iterator[Any]:
        """The answer to each text, of one multi-search."""
        lines = [line for text in texts for line in ({}, _query(text, n))]
        answers = self._client.msearch(index=self._config.index, searches=lines)["responses"]
        if len(answers) != len(texts):
            raise DataError(f"the server answered {len(answers)} of {len(texts)} searches")
        for answer in answers:
            if "error" in answer:
                reason = elastic_index.reason(answer)
                raise DataError(f"index {self._config.index!r}: a search failed ({reason}); run again to go on")
            yield answer


def _query(text: str, n: int) -> dict[str, Any]:
    return {
        "query": {"match": {"text": {"query": text}}},
        "size": n,
        "sort": [{"_score": {"order": "desc"}}, {"page": {"order": "asc"}}],
        "track_scores": True,
        "track_total_hits": False,
        "_source": False,
    }


def build(config: ElasticConfig) -> ElasticGuesser:
    """The guesser of a config, after server and index have been checked. ConfigError, DataError: see the module."""
    client = elastic_index.connect(config.url)
    instead = elastic_index.embedded(config.model, config.k1, config.b)
    with elastic_index.explained(client, config.index, instead):
        number = elastic_index.check_server(client)
        folder = resolve_model(config.model)
        index = Index.load(folder)
        identity = elastic_index.Identity(folder_digest(folder), index.analyzer, config.k1, config.b)
        elastic_index.check_index(client, config.index, identity)
    return ElasticGuesser(client, index.titles, config, f"{number} {identity!r}")
