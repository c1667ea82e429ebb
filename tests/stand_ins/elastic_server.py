"""A small HTTP server that answers as Elasticsearch 9 does, as far as guessers/elastic/guesser.py asks.

It searches with the embedded twin, in single precision, so what a client gets is what a real server would send.
`server.fail` is a list of (path part, status, times) to answer with errors first; `server.requests` is what came.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from guessers.bonus import HeldOut
from guessers.retrieval.bm25 import Bm25Config, Bm25Guesser

REASONS = {
    400: ("illegal_argument_exception", "mapper [page] cannot be changed from type [keyword] to [text]"),
    401: ("security_exception", "missing authentication credentials for REST request [/]"),
    404: ("index_not_found_exception", "no such index"),
    429: ("es_rejected_execution_exception", "rejected execution of coordinating operation"),
    503: ("cluster_block_exception", "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];"),
}


@dataclass
class Server:
    """Its state: indices, what it was asked, and how it misbehaves."""

    url: str = ""
    version: str = "9.5.1"
    product: str = "Elasticsearch"
    indices: dict[str, dict[str, Any]] = field(default_factory=dict)  # name -> settings, mappings, documents, twin
    requests: list[str] = field(default_factory=list)  # "METHOD /path"
    fail: list[list[Any]] = field(default_factory=list)  # [path part, status, times left]
    busy_searches: int = 0  # searches of a multi-search still to be rejected one by one
    refuse_page: str = ""  # a document with this id is refused
    gone: bool = False  # closes every connection without a word

    def failure(self, path: str) -> int | None:
        """The status of an error that is due for this path."""
        for rule in self.fail:
            if rule[0] in path and rule[2] > 0:
                rule[2] -= 1
                return rule[1]
        return None

    def search(self, index: str, body: dict[str, Any]) -> dict[str, Any]:
        """One search of a multi-search."""
        if self.busy_searches > 0:
            self.busy_searches -= 1
            return {"error": error(429), "status": 429}
        if index not in self.indices:
            return {"error": error(404), "status": 404}
        held = self.indices[index]
        if "twin" not in held:
            bm25 = held["settings"]["similarity"]["bm25"]
            config = Bm25Config(k1=bm25["k1"], b=bm25["b"], similarity="elasticsearch")
            profiles = [HeldOut(document["text"], document["page"]) for document in held["documents"].values()]
            analyzer = held["mappings"]["properties"]["text"]["analyzer"]
            held["twin"] = Bm25Guesser.fit(profiles, None, config, analyzer)
        guesses = held["twin"].guess([body["query"]["match"]["text"]["query"]], body["size"])[0]
        hits = [
            {"_index": index, "_id": guess.page, "_score": score, "sort": [score, guess.page]}
            for guess in guesses
            for score in [float(np.float32(guess.score))]
        ]
        return {"took": 1, "timed_out": False, "hits": {"max_score": None, "hits": hits}, "status": 200}


def error(status: int, reason: str = "") -> dict[str, Any]:
    """The body of an error."""
    kind, words = REASONS[status]
    return {"type": kind, "reason": reason or words, "root_cause": []}


@contextmanager
def running() -> Iterator[Server]:
    """A server on a free port of this machine."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None: ...

        def answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if state.gone:
                self.close_connection = True
                return None
            path = self.path.split("?")[0]
            state.requests.append(f"{self.command} {path}")
            failing = state.failure(path)
            if failing:
                return self.send({"error": error(failing), "status": failing}, failing)
            lines = [json.loads(line) for line in raw.split(b"\n") if line] if raw else []
            return self.send(*handle(state, self.command, path, lines))

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def send(self, body: dict[str, Any], status: int = 200) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            if state.product:
                self.send_header("X-Elastic-Product", state.product)
            self.send_header("Content-Type", "application/vnd.elasticsearch+json;compatible-with=9")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

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


def handle(state: Server, method: str, path: str, lines: list[Any]) -> tuple[dict[str, Any], int]:
    """The answer to one request and its status."""
    if path == "/":
        return {"name": "made", "version": {"number": state.version, "build_flavor": "default"}, "tagline": ""}, 200
    if path.endswith("/_bulk"):
        items = [put(state, action["index"], source) for action, source in zip(lines[::2], lines[1::2], strict=True)]
        return {"took": 1, "errors": any("error" in item["index"] for item in items), "items": items}, 200
    index = path.split("/")[1]
    if method == "PUT" and path == f"/{index}":
        state.indices[index] = {**lines[0], "documents": {}}
        return {"acknowledged": True, "shards_acknowledged": True, "index": index}, 200
    if path.endswith("/_msearch"):
        return {"took": 1, "responses": [state.search(index, body) for body in lines[1::2]]}, 200
    if index not in state.indices:
        return {"error": error(404, f"no such index [{index}]"), "status": 404}, 404
    held = state.indices[index]
    if path.endswith("/_mapping") and method == "GET":
        return {index: {"mappings": held["mappings"]}}, 200
    if path.endswith("/_mapping"):
        held["mappings"]["_meta"] = lines[0]["_meta"]
    elif path.endswith("/_count"):
        return {"count": len(held["documents"]), "_shards": {"total": 1, "successful": 1, "failed": 0}}, 200
    elif method == "DELETE":
        del state.indices[index]
    return {"acknowledged": True}, 200


def put(state: Server, action: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    """One line of a bulk request."""
    if action["_id"] == state.refuse_page:
        reason = "mapping set to strict, dynamic introduction of [text] within [_doc] is not allowed"
        refused = {"type": "strict_dynamic_mapping_exception", "reason": reason}
        return {"index": {"_index": action["_index"], "_id": action["_id"], "status": 400, "error": refused}}
    state.indices[action["_index"]]["documents"][action["_id"]] = source
    return {"index": {"_index": action["_index"], "_id": action["_id"], "result": "created", "status": 201}}
