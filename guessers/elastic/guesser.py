"""The Elasticsearch guesser: retrieval by a server, with several texts in one multi-search request.

The guesser needs a server with an index (made by guessers/elastic/index.py) and the Python client (extra
"elasticsearch").  There is no fallback: a missing server or index, an index with other texts or settings, and a server
of another major version are errors.  The message names the embedded twin, which has the same documents, analyzer and
formula without a server (guessers/retrieval/bm25.py with `similarity: elasticsearch`).

Scores are the server's, BM25 times (k1 + 1).  QANTA's guesser has k1 = 2.0 and b = .75; Lucene's default is 1.2 and
.75.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from guessers.elastic import index as elastic_index
from guessers.retrieval.bm25 import Index
from sqa.core import Count, DataError, File, Guess, Positive, Share, Whole, checked
from sqa.files import folder_digest, resolve_model
from sqa.net.chat import attempts

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

VERSION = 2  # version of the parsing of responses; raise it when stored guesses must be recomputed
MOST = 10_000  # the server's limit on guesses (index.max_result_window)
IN_FLIGHT = 4  # concurrent multi-searches; the client has ten connections
# Parts of a response that are read; the server omits the other parts, and empty lists.
READ = "status error timed_out terminated_early _shards hits.hits._id hits.hits._score".split()


@dataclass(frozen=True, slots=True)
@checked
class ElasticConfig:
    """Config of `guesser: {name: elasticsearch, ...}`."""

    model: Annotated[File, "folder of the embedded twin, which defines the texts to index"] = "runs/train/bm25-lucene"
    index: Annotated[str, "name of the index in the server"] = "sqa-pages"
    url: Annotated[str, 'http://host:port; "" = $ELASTICSEARCH_URL, else http://127.0.0.1:9200'] = ""
    k1: Annotated[Positive, "must equal the value of the index"] = 2.0
    b: Annotated[Share, "must equal the value of the index"] = 0.75
    batch: Annotated[Count, "texts in one multi-search"] = 100
    timeout: Annotated[Positive, "seconds for one answer"] = 60.0
    retries: Annotated[Whole, "retries after a timeout or a busy server, with increasing pauses"] = 5

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        secret = "@" in self.url
        return ["url: would be kept in run folders; put user and password in ELASTICSEARCH_URL"] if secret else []


class ElasticGuesser:
    """Guesser that queries an Elasticsearch server."""

    def __init__(self, client: Elasticsearch, titles: Sequence[str], config: ElasticConfig, identity: str) -> None:
        """Create the guesser; `identity` represents server version, texts and settings in the fingerprint."""
        self._client, self._titles, self._config, self._identity = client, titles, config, identity

    @property
    def pages(self) -> frozenset[str]:
        """All pages that the guesser can name."""
        return frozenset(self._titles)

    def fingerprint(self) -> str:
        """Return the sha256 of the server's version, the index's identity, and the versions of layout and parsing."""
        versions = f"{elastic_index.VERSION} {VERSION}"
        return hashlib.sha256(f"elasticsearch {versions} {self._identity}".encode()).hexdigest()

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the best `n` pages (at most MOST) for each text, with equal scores ordered by title.

        Raises DataError if the server fails.
        """
        guesses: list[list[Guess]] = [[] for _ in texts]
        indices = [index for index, text in enumerate(texts) if n > 0 and text.strip()]
        starts = range(0, len(indices), self._config.batch)
        chunks = [{index: texts[index] for index in indices[start : start + self._config.batch]} for start in starts]
        twin = (self._config.model, self._config.k1, self._config.b)
        with elastic_index.explained(self._client, *twin), ThreadPoolExecutor(IN_FLIGHT) as pool:
            for answers in pool.map(lambda chunk: self._search(chunk, min(n, MOST)), chunks):
                for index, answer in answers.items():
                    guesses[index] = _hits(answer)
        return guesses

    def _search(self, texts: Mapping[int, str], n: int) -> dict[int, Any]:
        """Return the response to each text, by index; repeat searches that a busy server refuses."""
        from elasticsearch import ApiError

        found: dict[int, Any] = {}
        paths = [f"responses.{part}" for part in READ]
        for last in attempts(0.4, 10.0, self._config.retries + 1):
            left = [index for index in texts if index not in found]
            lines = [line for index in left for line in ({}, _query(texts[index], n))]
            try:
                answers = self._client.msearch(index=self._config.index, searches=lines, filter_path=paths)["responses"]
            except ApiError as error:
                if error.status_code in elastic_index.BUSY and not last:
                    continue
                raise
            if len(answers) != len(left):
                raise DataError(f"the server answered {len(answers)} of {len(left)} searches")
            for index, answer in zip(left, answers, strict=True):
                if answer.get("status", 200) in elastic_index.BUSY:
                    busy = elastic_index.reason(answer)
                elif "error" in answer:
                    raise DataError(f"index {self._config.index!r}: a search failed ({elastic_index.reason(answer)})")
                else:
                    found[index] = answer
            if len(found) == len(texts):
                return found
        where, missing = elastic_index.where(self._client), len(texts) - len(found)
        tries = self._config.retries + 1
        raise DataError(f"{where} is too busy for {missing} searches after {tries} tries ({busy})")


def _hits(answer: Mapping[str, Any]) -> list[Guess]:
    """Return the guesses in the response to one search.  Raises DataError if the response is incomplete."""
    try:
        elastic_index.check_complete(answer, "search")
        hits = answer.get("hits", {}).get("hits", ())
        return [Guess(hit["_id"], float(hit["_score"])) for hit in hits]
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"a search has no usable answer ({type(error).__name__}: {error})") from error


def _query(text: str, n: int) -> dict[str, Any]:
    order = [{"_score": {"order": "desc"}}, {"page": {"order": "asc"}}]
    answer = {"sort": order, "track_scores": True, "track_total_hits": False, "_source": False}
    return {"query": {"match": {"text": {"query": text}}}, "size": n, **answer}


def build(config: ElasticConfig) -> ElasticGuesser:
    """Return the guesser of a config after checking server and index.

    Raises ConfigError or DataError as described at the top of this module.
    """
    client = elastic_index.connect(config.url, config.timeout, config.retries)
    with elastic_index.explained(client, config.model, config.k1, config.b):
        number = elastic_index.check_server(client)
        folder = resolve_model(config.model)
        index = Index.load(folder)
        identity = elastic_index.Identity(folder_digest(folder), index.analyzer, config.k1, config.b)
        elastic_index.check_index(client, config.index, identity)
    return ElasticGuesser(client, index.titles, config, f"{number} {identity!r}")
