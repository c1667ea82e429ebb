"""Requests of the Elasticsearch guesser and responses of the stand-in server, compared with the API and live servers.

vectors/elasticsearch_exchanges.json has each kind of request once with its response, as checked against the
specifications that it names. The tests compare the current exchanges with it. `ELASTICSEARCH_API` lists OpenAPI files
of elastic/elasticsearch-specification (output/openapi/*.json, separated by `:`). If it is set, the current requests
and responses are checked against these files, and unknown keys are errors. `python -m tests.golden.test_elastic_api`
rewrites the file of exchanges.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from needs import reason
from stand_ins.elastic_server import SEARCHES, TITLES, client_version, running

from guessers.train import main as train
from sqa.core.errors import DataError
from tests.golden import record_elasticsearch as live

EXCHANGES = live.FOLDER / "elasticsearch_exchanges.json"
SPECIFICATIONS = [Path(name) for name in os.environ.get("ELASTICSEARCH_API", "").split(":") if name]
NOT_IN_SERVERLESS = ("number_of_shards", "number_of_replicas")  # settings that the hosted service chooses
RECORDED = sorted(live.FOLDER.glob("elasticsearch_[0-9]*.json"))


def stand_in(folder: Path) -> dict[str, Any]:
    """Return the info, exchanges and hits recorded from the stand-in server, with exchanges for each kind of error."""
    with running() as server:
        recorded = live.record(server.url, folder)
        with live.listened() as exchanges:
            for status in (400, 401, 429, 503):
                server.fail = [["/_msearch", status, 9]]
                with pytest.raises(DataError):
                    live.elastic.build(
                        live.ElasticConfig(str(folder / "twin"), live.INDEX, server.url, 2.0, retries=0)
                    ).guess(["Peru"], 1)
            server.fail, server.busy_searches, server.refuse_page = [], 1, TITLES[0]
            with pytest.raises(DataError, match="too busy"):
                live.elastic.build(live.ElasticConfig(str(folder / "twin"), live.INDEX, server.url, retries=0)).guess(
                    ["Peru"], 1
                )
            with pytest.raises(SystemExit):
                live.used(server.url, folder, "standard", 2.0, 0.75)
    recorded["exchanges"] += live.short_exchanges(exchanges)
    return json.loads(json.dumps(recorded).replace(client_version(), "VERSION"))


@pytest.fixture(scope="module")
def today(tmp_path_factory):
    return stand_in(tmp_path_factory.mktemp("twin"))


def test_exchanges_equal_the_recorded_exchanges(today):
    assert today["exchanges"] == json.loads(EXCHANGES.read_text(encoding="utf-8"))["exchanges"]


@pytest.mark.needs("ELASTICSEARCH_API")
def test_exchanges_follow_the_published_api(today):
    for path in SPECIFICATIONS:
        api = Api(path)
        assert len(today["exchanges"]) > 15
        assert {line for exchange in today["exchanges"] for line in api.problems(exchange)} == set()


@pytest.mark.skipif(not RECORDED, reason=reason("elasticsearch-recorded"))
def test_live_servers_gave_lucene_scores_and_wins(today, tmp_path):
    train(live.twin(tmp_path, "standard"))
    ours = live.expected_wins(tmp_path, live.embedded(tmp_path))
    for recorded in (json.loads(path.read_text(encoding="utf-8")) for path in RECORDED):
        compare(recorded["hits"])
        exchanges = [one for one in recorded["exchanges"] if one["status"] < 300]
        sent = {(one["method"], plain(one)): keys(one["answer"]) for one in exchanges}
        for one in today["exchanges"]:
            if one["status"] < 300 and '"error"' not in json.dumps(one["answer"]):
                assert keys(one["answer"]) <= sent[one["method"], plain(one)], one
        assert recorded["ew"] == pytest.approx(ours, abs=1e-6)


def test_stand_in_gives_lucene_scores(today):
    compare(today["hits"])


def compare(hits):
    """Compare pages and scores at every setting; the tolerance is 1e-5, or single precision for scores above 100."""
    assert len(hits) == 4
    for name, rows in hits.items():
        for results, wanted in zip(rows, SEARCHES[f"{name}-elasticsearch"], strict=True):
            assert [page for page, _ in results] == [TITLES[page] for page, _ in wanted]
            assert [score for _, score in results] == pytest.approx([s for _, s in wanted], abs=1e-5, rel=1.2e-7)


def plain(exchange: live.Exchange) -> str:
    """Return the path of a request without its parameters."""
    return str(exchange["path"]).partition("?")[0]


def keys(value: Any, place: str = "") -> set[str]:
    """Return the dotted paths of all keys in a JSON value, without positions in lists."""
    if isinstance(value, list):
        return {key for entry in value for key in keys(entry, place)}
    if not isinstance(value, dict):
        return {place}
    return {key for name, entry in value.items() for key in keys(entry, f"{place}.{name}")}


class Api:
    """An OpenAPI file of Elasticsearch."""

    def __init__(self, path: Path) -> None:
        document = json.loads(path.read_text(encoding="utf-8"))
        self._paths, self._components = document["paths"], document["components"]
        self._left_out = NOT_IN_SERVERLESS if "serverless" in path.name else ()
        self._separator = ":" if "_types:ErrorResponseBase" in self._components["schemas"] else "."
        schemas = self._components["schemas"]
        # the keys of SortOptions may be names of fields
        closed = {name: close(schema, name.endswith("SortOptions")) for name, schema in schemas.items()}
        opened = {name + "+": close(schema, opened=True) for name, schema in schemas.items()}
        self._definitions = {"components": {"schemas": closed | opened}}

    def problems(self, exchange: live.Exchange) -> list[str]:
        """Return how a request and its response violate the API."""
        path, _, query = exchange["path"].partition("?")
        parts = path.strip("/").split("/")
        template = path if parts[0].startswith("_") or path == "/" else "/".join(["", "{index}", *parts[1:]])
        operation = self._paths[template][exchange["method"].lower()]
        names = {self._resolved(parameter)["name"] for parameter in operation.get("parameters", ())}
        results = [
            f"{path}: no parameter {name}"
            for part in query.split("&")
            if (name := part.split("=")[0]) not in {*names, "filter_path", ""}
        ]
        match template.split("/")[-1]:
            case "_bulk":
                sent = [(self._type("_global.bulk", "OperationContainer"), line) for line in exchange["sent"][::2]]
            case "_msearch":
                header, body = self._type("_global.msearch", "MultisearchHeader"), self._search_body()
                sent = [((header, body)[n % 2], line) for n, line in enumerate(exchange["sent"])]
            case _:
                sent = [(self._body(operation["requestBody"]), line) for line in exchange["sent"]]
        good = exchange["status"] < 300
        answer = self._body(operation["responses"]["200"]) if good else self._type("_types", "ErrorResponseBase")
        if not (good and "filter_path" in query):  # filter_path removes keys that the API requires
            sent.append((answer, exchange["answer"]))
        for schema, value in sent:
            if isinstance(value, dict) and "settings" in value:
                value = {**value, "settings": {k: v for k, v in value["settings"].items() if k not in self._left_out}}
            results += [f"{exchange['method']} {path}: {problem}" for problem in self._wrong(schema, value)]
        return results

    def _wrong(self, schema: Any, value: Any) -> list[str]:
        from jsonschema_rs import Draft202012Validator

        validator = Draft202012Validator({**self._definitions, **close(schema)})
        return [f"{error.instance_path}: {error.message[:300]}" for error in validator.iter_errors(value)]

    def _type(self, room: str, name: str) -> dict[str, str]:
        return {"$ref": f"#/components/schemas/{room}{self._separator}{name}"}

    def _search_body(self) -> dict[str, str]:
        newer = f"_global.search._types{self._separator}SearchRequestBody"
        if newer in self._components["schemas"]:
            return self._type("_global.search._types", "SearchRequestBody")
        return self._type("_global.msearch", "MultisearchBody")

    def _resolved(self, part: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in part:
            return part
        _, kind, name = part["$ref"].removeprefix("#/").split("/", 2)
        return self._components[kind][name]

    def _body(self, part: dict[str, Any]) -> Any:
        [content] = self._resolved(part)["content"].values()
        return content["schema"]


def close(schema: Any, opened: bool = False) -> Any:
    """Return the schema with unknown keys forbidden, and `anyOf` in place of `oneOf`, which the API uses for unions.

    With `opened`, the outermost object may have other keys, because it is part of an allOf.
    """
    if isinstance(schema, list):
        return [close(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    if set(schema) <= {"type", "description"} and schema.get("type") == "object":  # stands for any value
        return {}
    if "$ref" in schema:
        return {"$ref": schema["$ref"] + ("+" if opened else "")}
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            made[key] = {name: close(entry) for name, entry in value.items()}
        elif key == "allOf":
            made[key] = [close(entry, opened=True) for entry in value]
        elif key in ("oneOf", "anyOf"):
            made["anyOf"] = [close(entry, opened) for entry in value]
        elif key not in ("discriminator", "example", "examples", "description", "format"):
            made[key] = close(value)
    if schema.get("nullable"):
        made = {"anyOf": [made, {"type": "null"}]}
    if not opened and ("properties" in schema or "allOf" in schema) and "additionalProperties" not in schema:
        made["unevaluatedProperties"] = False
    return made


def main() -> None:
    """Check the exchanges against the specifications, and write them with the specifications' digests."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = stand_in(Path(folder))
    problems = [line for path in SPECIFICATIONS for one in recorded["exchanges"] for line in Api(path).problems(one)]
    assert SPECIFICATIONS and not problems, problems
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in SPECIFICATIONS}
    written = {"checked_against": digests, "exchanges": recorded["exchanges"]}
    EXCHANGES.write_text(json.dumps(written, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
