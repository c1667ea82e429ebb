"""A small HTTP server that implements the part of Elasticsearch's API that guessers/elastic uses.

The hits and scores were recorded from Lucene for the same texts (tests/golden/record_lucene.py). The server does not
search, and refuses searches, settings or documents that were not recorded. Documents are counted and found only after
an index refresh. The format of the responses follows the published API (tests/golden/test_elastic_api.py).

`server.fail` is a list of rules [part of a path, status, times]: so many requests to such paths get an error.
`server.requests` lists the requests. `server.searched` replaces the response to each search.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tables import tables_of

from tests.golden import record_lucene

TABLES = tables_of(__file__)

REASONS = TABLES["reasons"]
SORT = [{"_score": {"order": "desc"}}, {"page": {"order": "asc"}}]  # order of the recorded hits
SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}  # in responses to searches and counts
WRITTEN = {"total": 1, "successful": 1, "failed": 0}  # in responses to bulk requests and refreshes
VERSION = {"build_flavor": "default", "build_type": "docker", "build_hash": "0" * 40, "build_snapshot": False}
VERSION |= {"build_date": "2026-01-01T00:00:00.000Z", "lucene_version": "10.0.0"}
VERSION |= {"minimum_wire_compatibility_version": "8.19.0", "minimum_index_compatibility_version": "8.0.0"}
DOCUMENTS, QUERIES = record_lucene.documents_and_queries()
TITLES = sorted(DOCUMENTS)
SEARCHES = json.loads(record_lucene.VECTORS.read_text(encoding="utf-8"))["searches"]
Answer = tuple[dict[str, Any], int]  # body and status


def client_version() -> str:
    """Return the version of the installed client; the server must have the same major version."""
    import elasticsearch

    return str(elasticsearch.__versionstr__)  # type: ignore[attr-defined]


@dataclass
class Server:
    """The server's state: indices, received requests and faults."""

    url: str = ""
    version: str = field(default_factory=client_version)
    product: str = "Elasticsearch"
    indices: dict[str, dict[str, Any]] = field(default_factory=dict)  # name -> settings, mappings, documents, visible
    requests: list[str] = field(default_factory=list)  # "METHOD /path"
    fail: list[list[Any]] = field(default_factory=list)  # [path part, status, times left]
    busy_searches: int = 0  # number of searches that will still be rejected
    refuse_page: str = ""  # id of a document to refuse
    searched: dict[str, Any] = field(default_factory=dict)  # response to each search; empty: the recorded response
    shards: dict[str, Any] = field(default_factory=dict)  # `_shards` of searches, counts and refreshes; empty: complete
    together: threading.Barrier | None = None  # multi-searches wait here for each other
    at_work: set[int] = field(default_factory=set)  # threads with a multi-search in progress
    most_at_work: int = 0
    gone: bool = False  # close every connection without a response

    def answer(self, method: str, path: str, lines: list[Any]) -> Answer:
        """Return the response to a request."""
        self.requests.append(f"{method} {path}")
        for rule in self.fail:
            if rule[0] in path and rule[2] > 0:
                rule[2] -= 1
                return error(rule[1])
        index, _, action = path.strip("/").rpartition("/")
        if not action.startswith("_"):
            index, action = action, ""
        match method, action:
            case "GET", "" if not index:
                version = {"number": self.version, **VERSION}
                cluster = {"name": "made", "cluster_name": "made", "cluster_uuid": "made"}
                return {**cluster, "version": version, "tagline": "You Know, for Search"}, 200
            case "PUT", "_bulk":
                items = [self.put(line["index"], text) for line, text in zip(lines[::2], lines[1::2], strict=True)]
                return {"took": 1, "errors": any("error" in item["index"] for item in items), "items": items}, 200
            case "PUT", "":
                self.indices[index] = {**lines[0], "documents": {}, "visible": {}}
                return {"acknowledged": True, "shards_acknowledged": True, "index": index}, 200
            case _ if index not in self.indices:
                return error(404, f"no such index [{index}]")
        return self.of_index(self.indices[index], index, method, action, lines)

    def of_index(self, state: dict[str, Any], index: str, method: str, action: str, lines: list[Any]) -> Answer:
        """Return the response to a request for an existing index."""
        match method, action:
            case "POST", "_msearch":
                self.meet()
                answers = [self.search(state, index, body) for _, body in zip(lines[::2], lines[1::2], strict=True)]
                return {"took": 1, "responses": answers}, 200
            case "GET", "_mapping":
                return {index: {"mappings": state["mappings"]}}, 200
            case "PUT", "_mapping":
                state["mappings"]["_meta"] = lines[0]["_meta"]
            case "POST", "_count":
                return {"count": len(state["visible"]), "_shards": self.shards or SHARDS}, 200
            case "POST", "_refresh":
                state["visible"] = dict(state["documents"])
                return {"_shards": self.shards or WRITTEN}, 200
            case "DELETE", "":
                del self.indices[index]
            case _:
                return error(400, f"no handler found for {method} {index}/{action}")
        return {"acknowledged": True}, 200

    def meet(self) -> None:
        """If `together` is set, wait until as many multi-searches are in progress as it has parties."""
        if self.together:
            self.at_work.add(threading.get_ident())
            self.together.wait()
            self.most_at_work = max(self.most_at_work, len(self.at_work))
            self.together.wait()
            self.at_work.discard(threading.get_ident())

    def put(self, action: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
        """Add the document of a bulk request, and return the response's entry for it."""
        about = {"_index": action["_index"], "_id": action["_id"]}
        if action["_id"] == self.refuse_page:
            reason = "mapping set to strict, dynamic introduction of [text] within [_doc] is not allowed"
            refused = {"type": "strict_dynamic_mapping_exception", "reason": reason}
            return {"index": {**about, "status": 400, "error": refused}}
        self.indices[action["_index"]]["documents"][action["_id"]] = source
        numbers = {"_version": 1, "_seq_no": 0, "_primary_term": 1}
        return {"index": {**about, **numbers, "_shards": WRITTEN, "result": "created", "status": 201}}

    def search(self, state: dict[str, Any], index: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the response to a search: the hits recorded from Lucene for the index's analyzer and similarity."""
        if self.busy_searches > 0:
            self.busy_searches -= 1
            return error(429)[0]
        if self.searched:
            return self.searched
        [(name, match)] = body["query"]["match"].items()
        text = state["mappings"]["properties"].get(name, {})
        bm25 = state["settings"]["similarity"].get(text.get("similarity"), {})
        recording = f"{text.get('analyzer')}-{bm25.get('k1')}-{bm25.get('b')}-elasticsearch"
        if {page: source[name] for page, source in state["visible"].items()} != DOCUMENTS or recording not in SEARCHES:
            return error(400, f"nothing was recorded of these documents with {recording}")[0]
        if match["query"] not in QUERIES or body["sort"] != SORT:
            return error(400, f"nothing was recorded of this search: {body}")[0]
        found = SEARCHES[recording][QUERIES.index(match["query"])][: body["size"]]
        hits = [{"_index": index, "_id": TITLES[i], "_score": score, "sort": [score, TITLES[i]]} for i, score in found]
        answer = {"max_score": None, "hits": hits}
        return {"took": 1, "timed_out": False, "_shards": self.shards or SHARDS, "hits": answer, "status": 200}


def error(status: int, reason: str = "") -> Answer:
    """Return the body and the status of an error response."""
    kind, words = REASONS[status]
    cause = {"type": kind, "reason": reason or words}
    return {"error": {**cause, "root_cause": [cause]}, "status": status}, status


def filtered(body: Any, paths: list[list[str]]) -> Any:
    """Return the parts of a response at the given paths, without empty objects and lists, as `filter_path` does."""
    if [] in paths:
        return body
    if isinstance(body, list):
        return [kept for entry in body if (kept := filtered(entry, paths)) not in ({}, [], None)]
    if not isinstance(body, dict):
        return None
    parts = {name: filtered(part, [path[1:] for path in paths if path[0] == name]) for name, part in body.items()}
    return {name: part for name, part in parts.items() if part not in ({}, [], None)}


@contextmanager
def running() -> Iterator[Server]:
    """Yield a server on a free loopback port."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # send head and body in one packet; otherwise the second packet is delayed by 40 ms

        def log_message(self, *arguments: object) -> None: ...

        def do_GET(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if state.gone:
                self.close_connection = True
                return
            lines = [json.loads(line) for line in raw.split(b"\n") if line]
            path, _, query = self.path.partition("?")
            body, status = state.answer(self.command, path, lines)
            if status == 200 and (wanted := parse_qs(query).get("filter_path")):
                body = filtered(body, [name.split(".") for name in wanted[0].split(",")])
            data = json.dumps(body).encode()
            self.send_response(status)
            if state.product:
                self.send_header("X-Elastic-Product", state.product)

            self.send_header("Content-Type", self.headers["Accept"].split(",")[0])
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_PUT = do_POST = do_DELETE = do_GET

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    state.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        state.gone = True
        httpd.shutdown()
        thread.join()
        httpd.server_close()
