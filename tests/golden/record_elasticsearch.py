"""Record the exchanges of the guesser with a running Elasticsearch.

    python -m tests.golden.record_elasticsearch URL      # writes vectors/elasticsearch_VERSION.json

The files hold the server's `info`, requests and responses (long lists cut to two entries), the hits of the recorded
searches (tests/golden/record_lucene.py) at four settings, and the expected wins of docs/example/mine.yaml with this
guesser. tests/golden/test_elastic_api.py compares the hits with Lucene's scores, and the expected wins with those of
the embedded BM25 guesser on the same documents (the "twin").
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqa
from guessers.elastic import guesser as elastic
from guessers.elastic import index as elastic_index
from guessers.elastic.guesser import ElasticConfig
from sqa.core import ROOT
from tests.golden import record_lucene

FOLDER = ROOT / "tests" / "golden" / "vectors"
INDEX = "sqa-recorded"
TWIN = "kind: bm25\noutput: {0}/twin\nbonus: false\nanalyzer: {1}\npair_min_count: null\ntexts: [{0}/texts.jsonl]\n"
Exchange = dict[str, Any]  # method, path, sent (lines), status, answer


@contextmanager
def listened() -> Iterator[list[Exchange]]:
    """Yield a list to which every request of a client in this process is appended, with its response."""
    from elastic_transport import Urllib3HttpNode

    exchanges: list[Exchange] = []
    perform = Urllib3HttpNode.perform_request

    def listening(node: Any, method: str, target: str, body: bytes | None = None, **options: Any) -> Any:
        response = perform(node, method, target, body, **options)
        sent = [json.loads(line) for line in (body or b"").split(b"\n") if line]
        answer = {"status": response.meta.status, "answer": json.loads(response.body or b"null")}
        exchanges.append({"method": method, "path": target, "sent": sent, **answer})
        return response

    Urllib3HttpNode.perform_request = listening  # type: ignore[method-assign]
    try:
        yield exchanges
    finally:
        Urllib3HttpNode.perform_request = perform  # type: ignore[method-assign]


def twin(folder: Path, analyzer: str) -> Path:
    """Write the recorded documents and the training config of the embedded twin; return the path of the config."""
    documents, _ = record_lucene.documents_and_queries()
    lines = [json.dumps({"text": text, "page": page}) for page, text in documents.items()]
    (folder / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "twin.yaml").write_text(TWIN.format(folder, analyzer), encoding="utf-8")
    return folder / "twin.yaml"


def used(url: str, folder: Path, analyzer: str, k1: float, b: float) -> list[list[tuple[str, float]]]:
    """Train the twin, index its documents on the server, and return the server's hits for the recorded queries."""
    options = ["--url", url, "--index", INDEX, "--k1", str(k1), "--b", str(b)]
    if elastic_index.main([str(twin(folder, analyzer)), *options]):
        sys.exit(1)
    guesser = elastic.build(ElasticConfig(str(folder / "twin"), INDEX, url, k1, b))
    _, queries = record_lucene.documents_and_queries()
    return [[(guess.page, guess.score) for guess in row] for row in guesser.guess(queries, record_lucene.HITS)]


def expected_wins(folder: Path, guesser: dict[str, Any]) -> float:
    """Return the expected wins of the five-question example with the given guesser."""
    done = sqa.run(ROOT / "docs" / "example" / "mine.yaml", runs=folder / "runs", progress=False, guesser=guesser)
    return float(done.metrics["ew"])


def embedded(folder: Path) -> dict[str, Any]:
    """Return the keys of the embedded twin in a run's config."""
    return {"name": "bm25", "model": str(folder / "twin"), "similarity": "elasticsearch", "k1": 2.0, "b": 0.75}


def short(value: Any) -> Any:
    """Return a JSON value with lists cut to two entries and strings cut to forty characters."""
    if isinstance(value, list):
        return [short(entry) for entry in value[:2]]
    if isinstance(value, dict):
        return {key: short(entry) for key, entry in value.items()}
    return value[:40] if isinstance(value, str) else value


def record(url: str, folder: Path) -> dict[str, Any]:
    """Send the requests to a server and return its info, the exchanges and the hits."""
    with listened() as exchanges:
        hits = {"-".join(map(str, s)): used(url, folder, *s) for s in reversed(record_lucene.SETTINGS)}
    client = elastic_index.connect(url, timeout=60.0, retries=2)
    return {"info": client.info().body, "exchanges": short_exchanges(exchanges), "hits": hits}


def short_exchanges(exchanges: list[Exchange]) -> list[Exchange]:
    """Return one exchange for each method, path and status, with long lists and texts cut."""
    kinds = {(one["method"], one["path"].split("?")[0], one["status"]): one for one in reversed(exchanges)}
    cut = [
        {**one, "sent": [short(line) for line in one["sent"][:4]], "answer": short(one["answer"])}
        for one in kinds.values()
    ]
    return sorted(cut, key=lambda one: (one["path"], one["method"], one["status"]))


def write(url: str) -> None:
    """Record a running server and write its file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recorded = record(url, folder)
        used(url, folder, "standard", 2.0, 0.75)
        server = {"name": "elasticsearch", "model": str(folder / "twin"), "index": INDEX, "url": url}
        recorded["ew"] = expected_wins(folder, server)
    elastic_index.connect(url, 60.0, 2).indices.delete(index=INDEX)
    path = FOLDER / f"elasticsearch_{recorded['info']['version']['number']}.json"
    path.write_text(json.dumps(recorded, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    write(sys.argv[1])
