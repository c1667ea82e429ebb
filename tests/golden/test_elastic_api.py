"""Requests of the Elasticsearch guesser and responses of the stand-in server, compared with recordings of live servers.

vectors/elasticsearch_exchanges.json has each kind of request once with its response, as checked at commit 96eb0e41
against the OpenAPI files that it names.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from stand_ins.elastic_server import SEARCHES, TITLES, client_version, running

from guessers.train import main as train
from sqa.core import DataError
from tests.golden import record_elasticsearch as live

EXCHANGES = live.FOLDER / "elasticsearch_exchanges.json"
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
