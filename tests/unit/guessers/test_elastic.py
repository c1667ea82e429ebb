"""The Elasticsearch guesser with a local server that returns scores recorded from Lucene."""

import json
import socket
import threading
import time

import pytest
from refusals import refused
from stand_ins.elastic_server import DOCUMENTS, QUERIES, SEARCHES, TITLES, client_version, running
from tables import tables_of

from guessers.elastic import guesser as elastic
from guessers.elastic import index as elastic_index
from guessers.elastic.guesser import ElasticConfig
from guessers.retrieval.bm25 import Bm25Config, Bm25Guesser
from sqa.core import ROOT, ConfigError, DataError, guesses_per_word

TABLES = tables_of(__file__)

CONFIG = "kind: bm25\noutput: {0}/twin\nbonus: false\nanalyzer: {1}\npair_min_count: null\ntexts: [{0}/texts.jsonl]\n"
EMBEDDED = "similarity: elasticsearch"  # every error recommends the embedded guesser
PREFIXES = QUERIES[3:27]  # prefixes of a question with 1 to 24 words


@pytest.fixture
def server():
    with running() as made:
        yield made


@pytest.fixture
def twin(tmp_path):
    """Write the texts that Lucene scored, and return the path of the config of the embedded model and the index."""
    lines = [json.dumps({"text": text, "page": page}) for page, text in DOCUMENTS.items()]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    config = tmp_path / "twin.yaml"
    config.write_text(CONFIG.format(tmp_path, "standard"), encoding="utf-8")
    return config


def index(config, server, *more):
    return elastic_index.main([str(config), "--url", server.url, *more])


def options(config, server, **changed):
    given = {"model": str(config.parent / "twin"), "url": server.url, "retries": 2, "timeout": 60.0}
    return ElasticConfig(**(given | changed))


def failing(config, server, **changed):
    return refused(DataError, EMBEDDED, elastic.build, options(config, server, **changed))


@pytest.mark.parametrize("analyzer", ["standard", "english"])
@pytest.mark.parametrize("k1", [2.0, 1.2])
def test_guesses_equal_lucene_and_the_embedded_twin(server, twin, capsys, analyzer, k1):
    twin.write_text(CONFIG.format(twin.parent, analyzer), encoding="utf-8")
    assert index(twin, server, "--k1", str(k1)) == 0
    assert f"{len(DOCUMENTS)} pages in index sqa-pages of Elasticsearch {client_version()}" in capsys.readouterr().out
    guesser = elastic.build(options(twin, server, k1=k1, batch=7))
    embedded = Bm25Guesser.load(twin.parent / "twin", Bm25Config(k1=k1, b=0.75, similarity="elasticsearch"))
    assert guesser.pages == embedded.pages == set(TITLES)
    guesses = guesser.guess(QUERIES, 10)
    recorded = SEARCHES[f"{analyzer}-{k1}-0.75-elasticsearch"]
    assert [[[TITLES.index(g.page), g.score] for g in row] for row in guesses] == recorded
    for actual, wanted in zip(guesses, embedded.guess(QUERIES, 10), strict=True):
        assert [guess.page for guess in actual] == [guess.page for guess in wanted]
        scores = [guess.score for guess in wanted]
        assert [guess.score for guess in actual] == pytest.approx(scores, abs=1e-5, rel=1.2e-7)


def test_prefixes_share_requests(server, twin):
    index(twin, server)
    guesser = elastic.build(options(twin, server, batch=7))
    assert guesses_per_word(guesser, PREFIXES[-1].split(), 5) == guesser.guess(PREFIXES, 5)
    assert server.requests.count("POST /sqa-pages/_msearch") == 8  # 24 prefixes, 7 per request, twice
    assert guesser.guess(["", "  ", "qzxqzxv"], 5) == [[], [], []]
    assert guesser.guess(["Peru"], 0) == [[]] and guesser.guess([], 5) == []
    assert server.requests.count("POST /sqa-pages/_msearch") == 9


def test_four_multi_searches_are_in_flight(server, twin):
    index(twin, server)
    server.together = threading.Barrier(4, timeout=30)
    assert all(elastic.build(options(twin, server, batch=3)).guess(PREFIXES, 1))
    assert server.most_at_work == 4


def test_reindexing_keeps_foreign_indices(server, twin, capsys):
    assert index(twin, server) == 0 and index(twin, server) == 0
    del server.indices["sqa-pages"]["mappings"]["_meta"]
    assert index(twin, server) == 3
    assert "was not created by this program" in capsys.readouterr().err
    assert "sqa-pages" in server.indices


@pytest.mark.parametrize("status", [429, 503])
def test_busy_server_is_retried(server, twin, status, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    server.fail = [["/_bulk", status, 1], ["/_msearch", status, 2]]
    assert index(twin, server) == 0
    server.busy_searches = 2
    guesser = elastic.build(options(twin, server, retries=3))
    assert guesser.guess(PREFIXES, 1)[-1][0].page == TITLES[SEARCHES["standard-2.0-0.75-elasticsearch"][26][0][0]]


def test_permanently_busy_server_is_reported(server, twin):
    index(twin, server)
    guesser = elastic.build(options(twin, server, retries=1))
    server.busy_searches = 10**6
    refused(DataError, f"too busy for 1 searches after 2 tries .*es_rejected.*{EMBEDDED}", guesser.guess, ["Peru"], 1)
    server.fail = [["/_msearch", 429, 10**6]]
    busy = f"429, 'es_rejected_execution_exception.*{EMBEDDED}"
    refused(DataError, busy, guesser.guess, ["Peru"], 1)


def test_absent_server_error_names_embedded_guesser(twin, server, capsys, monkeypatch):
    index(twin, server)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://elastic:secret@127.0.0.1:{free.getsockname()[1]}"
    refused(
        ConfigError,
        "url: would be kept in run folders; put user and password in ELASTICSEARCH_URL",
        ElasticConfig,
        url=url,
    )
    monkeypatch.setenv("ELASTICSEARCH_URL", url)
    message = failing(twin, server, url="", retries=0)
    assert "Elasticsearch at http://127.0.0.1:" in message and "Connection error" in message and "secret" not in message
    assert elastic_index.main([str(twin), "--url", "http://127.0.0.1:1"]) == 3
    assert EMBEDDED in capsys.readouterr().err


def meta(server):
    return server.indices["sqa-pages"]["mappings"]["_meta"]


def analysed_by_whitespace(server):
    server.indices["sqa-pages"]["mappings"]["properties"]["text"]["analyzer"] = "whitespace"


def one_page_fewer(server):
    server.indices["sqa-pages"]["visible"].popitem()


def nothing(server): ...


BLOCKED = "403, 'cluster_block_exception', 'index [sqa-pages] blocked by: [FORBIDDEN/7/index read (api)];"
RED = {"type": "no_shard_available_action_exception", "reason": "shard 0 is red"}
LOST = {"total": 1, "successful": 0, "failed": 1, "failures": [{"shard": 0, "reason": RED}]}
SHARD = f"{{'_shards': {LOST}}}"
SPOILT = {  # change to the server after indexing, options of the guesser, message
    "version": (lambda server: meta(server).update(sqa=0), {}, "has sqa 0, not 1; recreate it"),
    "texts": (lambda server: meta(server).update(model="0" * 64), {}, "has model '000"),
    "unfinished": (lambda server: meta(server).pop("pages"), {}, f"has pages None, not {len(DOCUMENTS)}; recreate it"),
    "conflict": (analysed_by_whitespace, {}, "has another text; recreate it"),
    "fewer": (one_page_fewer, {}, f"has pages {len(DOCUMENTS)}, not {len(DOCUMENTS) - 1}"),
    "stranger": (lambda server: meta(server).clear(), {}, "was not created by this program"),
    "k1": (nothing, {"k1": 1.2}, "has k1 2.0, not 1.2; recreate it"),
    "b": (nothing, {"b": 0.5}, "has b 0.75, not 0.5; recreate it"),
    "missing": (nothing, {"index": "other"}, "404, 'index_not_found_exception', 'no such index [other]'"),
    "blocked": (lambda server: server.fail.append(["/_count", 403, 10]), {}, BLOCKED),
    "lost shard": (lambda server: server.shards.update(LOST), {}, f"the count is incomplete: {SHARD}"),
    "credentials": (lambda server: server.fail.append(["/", 401, 10]), {}, "401, 'security_exception'"),
    "older": (lambda server: vars(server).update(version="7.17.29"), {}, "is Elasticsearch 7.17.29; the Python client"),
    "newer": (lambda server: vars(server).update(version="10.0.0"), {}, "is Elasticsearch 10.0.0; the Python client"),
    "OpenSearch": (lambda server: vars(server).update(product="OpenSearch"), {}, "is not Elasticsearch"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_invalid_index_or_server_is_refused(server, twin, what):
    index(twin, server)
    spoil, options, message = SPOILT[what]
    spoil(server)
    assert message in failing(twin, server, **options)


SEARCHED = TABLES["searched"]


@pytest.mark.parametrize("case", SEARCHED)
def test_incomplete_search_is_refused_with_the_reason(server, twin, case):
    index(twin, server)
    guesser = elastic.build(options(twin, server, retries=0))
    server.searched, message = SEARCHED[case]
    assert message in refused(DataError, EMBEDDED, guesser.guess, ["Peru"], 1)


def test_index_with_a_failed_shard_is_not_finished(server, twin, capsys):
    server.shards.update(LOST)
    assert index(twin, server) == 3
    assert f"the count is incomplete: {SHARD}" in capsys.readouterr().err


def test_invalid_documents_are_refused(server, twin, capsys):
    server.refuse_page = TITLES[5]
    assert index(twin, server) == 3
    assert f"refuses page {TITLES[5]!r}: {{'type': 'strict_dynamic_mapping_exception'" in capsys.readouterr().err
    assert "has pages None" in failing(twin, server)
    server.fail = [["/sqa-pages", 400, 10]]
    assert index(twin, server) == 3
    assert "400, 'illegal_argument_exception', 'mapper [page]" in capsys.readouterr().err
    assert index(ROOT / "configs" / "train_guessers.yaml:bm25", server) == 2
    assert "pair_min_count: null" in capsys.readouterr().err
