"""The pages' texts in an Elasticsearch server: connection, indexing, and checks of an index.

    python -m guessers.elastic.index CONFIG [--index NAME] [--url URL] [--k1 2.0] [--b 0.75]

CONFIG is the config of the embedded twin (configs/train_guessers.yaml:bm25-lucene).  The command counts the twin's
texts, writes its model, and then sends one document per page.  The field `text` is the page's whole training text,
analyzed and scored by the server; the field `page` orders pages of equal score.  The index records its origin
(`_meta` of its mapping).  The number of pages is written last, so an index without it is incomplete.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from guessers.retrieval.counting import Bm25Training, fit
from guessers.text import Profile
from sqa.core import ConfigError, DataError, lacking, returns_exit_code
from sqa.files import folder_digest
from sqa.pipeline import config as configs

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

VERSION = 1  # version of the index's layout; raise it when an index must be rebuilt
URL = "http://127.0.0.1:9200"  # the address in docker-compose.yml
BUSY = (429, 502, 503, 504)  # status codes that are retried
CHUNK, RETRIES = 200, 5  # documents per request; retries of a chunk


@dataclass(frozen=True, slots=True)
class Identity:
    """Origin and settings that an index must have."""

    model: str  # digest of the embedded twin's folder
    analyzer: str  # standard or english
    k1: float
    b: float

    def meta(self) -> dict[str, Any]:
        """Return the metadata of the index while it is being filled."""
        return {"sqa": VERSION, **asdict(self)}

    def properties(self) -> dict[str, Any]:
        """Return the mapping of the index's two fields."""
        text = {"type": "text", "analyzer": self.analyzer, "similarity": "bm25", "index_options": "freqs"}
        return {"page": {"type": "keyword"}, "text": text}

    def settings(self) -> dict[str, Any]:
        """Return the settings: one shard, so that document frequencies cover all pages."""
        similarity = {"bm25": {"type": "BM25", "k1": self.k1, "b": self.b}}
        return {"number_of_shards": 1, "number_of_replicas": 0, "similarity": similarity}


def connect(url: str, timeout: float, retries: int) -> Elasticsearch:
    """Return a client without sending a request; raises ConfigError if the client package is missing.

    An empty url means $ELASTICSEARCH_URL or, if that is not set, URL.
    """
    try:
        from elasticsearch import Elasticsearch
    except ModuleNotFoundError as error:
        raise lacking(error, "guesser 'elasticsearch'") from error
    try:
        return Elasticsearch(
            url or os.environ.get("ELASTICSEARCH_URL") or URL,
            request_timeout=timeout,
            max_retries=retries,
            retry_on_timeout=True,
            retry_on_status=(),  # retries happen here after a pause, because clients before 9.1 do not pause
            api_key=os.environ.get("ELASTICSEARCH_API_KEY"),
        )
    except ValueError as error:
        raise ConfigError(f"url: {error}") from error


@contextmanager
def explained(client: Elasticsearch, model: str, k1: float, b: float) -> Iterator[None]:
    """Convert the client's errors to one line that names the server, and the config of its embedded twin."""
    import elasticsearch
    from elastic_transport import TransportError

    try:
        yield
    except (DataError, elasticsearch.ApiError, TransportError) as error:
        said = str(error) if isinstance(error, DataError) else f"Elasticsearch at {where(client)}: {error}"
        twin = f"{{name: bm25, model: {model}, similarity: elasticsearch, k1: {k1}, b: {b}}}"
        raise DataError(f"{said}; without a server use its embedded twin: guesser: {twin}") from error


def where(client: Elasticsearch) -> str:
    """Return the server's address, without user and password."""
    nodes = (node.config for node in client.transport.node_pool.all())
    return ", ".join(f"{node.scheme}://{node.host}:{node.port}" for node in nodes)


def check_server(client: Elasticsearch) -> str:
    """Return the server's version; raises DataError if its major version differs from the client's."""
    import elasticsearch

    client_version = elasticsearch.__versionstr__  # type: ignore[attr-defined]
    number = str(client.info()["version"]["number"])
    if number.split(".")[0] != client_version.split(".")[0]:
        rule = f"the Python client is {client_version}, and the major versions must be equal"
        raise DataError(f"{where(client)} is Elasticsearch {number}; {rule}")
    return number


def check_index(client: Elasticsearch, index: str, expected: Identity) -> None:
    """Raise DataError if the index is incomplete, or if its origin or fields differ from the expected ones."""
    mappings = _mappings(client, index)
    meta, fields = mappings.get("_meta", {}), mappings.get("properties", {})
    if "sqa" not in meta:
        raise DataError(f"index {index!r} was not created by this program; name another index")
    wanted = expected.meta() | {"pages": _count(client, index)}
    other = [f"{key} {meta.get(key)!r}, not {value!r}" for key, value in wanted.items() if meta.get(key) != value]
    other += [f"another {name}" for name, field in expected.properties().items() if fields.get(name) != field]
    if other:
        command = f"python -m guessers.elastic.index CONFIG --index {index}"
        raise DataError(f"index {index!r} has {'; '.join(other)}; recreate it with `{command}`")


def _count(client: Elasticsearch, index: str) -> int:
    answer = client.count(index=index).body
    check_complete(answer, "count")
    return int(answer["count"])


def _mappings(client: Elasticsearch, index: str) -> dict[str, Any]:
    return next(iter(client.indices.get_mapping(index=index).values()))["mappings"]


def documents_of(profiles: Iterable[Profile]) -> dict[str, str]:
    """Return the joined texts of each page, by page, in the order of the pages."""
    texts: dict[str, list[str]] = {}
    for profile in profiles:
        if profile.page is not None:
            texts.setdefault(profile.page, []).append(profile.text)
    return {page: " ".join(texts[page]) for page in sorted(texts)}


def fill(client: Elasticsearch, index: str, identity: Identity, documents: Mapping[str, str]) -> None:
    """Recreate the index, send all documents, and check that all arrived; raises DataError if one is refused."""
    from elasticsearch import NotFoundError
    from elasticsearch.helpers import streaming_bulk

    with suppress(NotFoundError):
        if "sqa" not in _mappings(client, index).get("_meta", {}):
            raise DataError(f"index {index!r} exists and was not created by this program; name another with --index")
        client.indices.delete(index=index)
    fields = {"dynamic": "strict", "properties": identity.properties()}
    client.indices.create(index=index, settings=identity.settings(), mappings={"_meta": identity.meta(), **fields})
    actions = ({"_index": index, "_id": page, "page": page, "text": text} for page, text in documents.items())
    sent = streaming_bulk(
        client,
        actions,
        chunk_size=CHUNK,
        max_retries=RETRIES,
        retry_on_status=BUSY,
        initial_backoff=0.2,
        max_backoff=10.0,
        raise_on_error=False,
    )
    for good, answer in tqdm(sent, f"pages into index {index}", total=len(documents), mininterval=1):
        if not good:
            result = next(iter(answer.values()))
            raise DataError(f"index {index!r} refuses page {result.get('_id')!r}: {reason(result)}")
    client.indices.refresh(index=index)
    count = _count(client, index)
    if count != len(documents):
        raise DataError(f"index {index!r} has {count} of {len(documents)} pages after all were sent; try again")
    client.indices.put_mapping(index=index, meta={**identity.meta(), "pages": count})


def check_complete(answer: Mapping[str, Any], asked: str) -> None:
    """Raise DataError if a search or a count with status 200 lacks shards or was truncated by the server."""
    shards = answer["_shards"]
    whole = not shards["failed"] and shards["successful"] == shards["total"]
    if not whole or answer.get("timed_out") or answer.get("terminated_early"):
        said = {key: answer[key] for key in ("timed_out", "terminated_early", "_shards") if key in answer}
        raise DataError(f"the {asked} is incomplete: {said}; try again when the server is healthy")


def reason(body: Any) -> str:
    """Return the start of the server's error, without surrounding fields."""
    error = body.get("error", body) if isinstance(body, dict) else body
    return str(error)[:500]


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    from guessers.training_texts import training_texts

    parser = argparse.ArgumentParser("python -m guessers.elastic.index", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("config", type=Path, help="training config of the embedded twin")
    parser.add_argument("--index", default="sqa-pages", help="name of the index (default: %(default)s)")
    parser.add_argument("--url", default="", help=f"URL of the server (default: $ELASTICSEARCH_URL, else {URL})")
    parser.add_argument(
        "--k1", type=float, default=2.0, help="BM25's k1: 2.0 as in QANTA (default); Lucene's own is 1.2"
    )
    parser.add_argument("--b", type=float, default=0.75, help="BM25's b (default: %(default)s)")
    options = parser.parse_args(arguments)
    config = configs.load(options.config, Bm25Training)
    if config.analyzer == "stems" or config.pair_min_count is not None:
        raise ConfigError(
            f"{options.config}: the twin of a server needs analyzer: standard or english, and pair_min_count: null"
        )
    client = connect(options.url, 60.0, RETRIES)
    twin = (str(config.output), options.k1, options.b)
    with explained(client, *twin):
        number = check_server(client)
    texts = training_texts(config.folds, config.bonus, config.texts)
    fit(texts, None, analyzer=config.analyzer).save(config.output)
    identity = Identity(folder_digest(config.output), config.analyzer, options.k1, options.b)
    documents = documents_of(texts)
    with explained(client, *twin):
        fill(client, options.index, identity, documents)
    print(f"{len(documents)} pages in index {options.index} of Elasticsearch {number} at {where(client)}")


if __name__ == "__main__":
    sys.exit(main())
