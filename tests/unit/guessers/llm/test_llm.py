"""Language models as guessers: the guesser contract, stored replies, budget and estimate."""

import itertools
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from refusals import refused
from stand_ins.chat_server import WORDS, Answer, ChatServer, error, normal, pages

from guessers.llm import guesser as llm
from guessers.llm.reply import Titles
from sqa.core import ConfigError, DataError, guesses_per_word
from sqa.net.chat import Cache, Reply
from sqa.net.endpoint import EndpointConfig

PREFIXES = list(itertools.accumulate(WORDS, "{} {}".format))

# --------------------------------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize("every", [1, 5])
def test_prefixes_are_guessed_like_separate_texts(guesser_of, every):
    with ChatServer() as server:
        guesser = guesser_of(server, every=every)
        steps = guesses_per_word(guesser, WORDS, 5)
        assert steps == guesser.guess(PREFIXES, 5) == [guesser.guess([text], 5)[0] for text in PREFIXES]
        assert guesser.guess(PREFIXES, 1) == [step[:1] for step in steps]
        assert guesser.guess([], 5) == [] and guesser.guess(PREFIXES, 0) == [[] for _ in PREFIXES]
        assert guesses_per_word(guesser, WORDS[:9] + ["other"] * 8, 5)[:9] == steps[:9]  # later words have no effect


def test_guesses_are_requested_at_every_fifth_word(guesser_of):
    with ChatServer() as server:
        steps = guesses_per_word(guesser_of(server, every=5), WORDS, 5)
    shown = sorted(len(prompt.rpartition("far: ")[2].split()) for prompt in server.prompts)
    assert shown == [5, 10, 15]
    assert steps[:4] == [[], [], [], []] and pages(steps[4]) == ["Potosí"]
    assert steps[4:9] == [steps[4]] * 5 and pages(steps[9]) == ["Bolivia", "Potosí"]
    steps[4].clear()
    assert steps[5]  # the caller owns the lists


def test_unusual_words_are_accepted(guesser_of, monkeypatch):
    monkeypatch.setattr(llm, "MAX_TEXT", 100)
    with ChatServer() as server:
        assert pages(guesser_of(server).guess(["\ud800 {guesses} {text} Łódź " + "x" * 500], 5)[0]) == ["Łódź"]
    assert "? {guesses} {text} Łódź xxx" in server.prompts[0]
    assert len(server.prompts[0].rpartition("far: ")[2]) == 100


def test_page_lists_are_read_or_refused(guesser_of, tmp_path):
    (tmp_path / "pages.txt").write_text("Peru\nBolivia\n\n", encoding="utf-8")
    with ChatServer() as server:
        guesser = guesser_of(server, pages=str(tmp_path / "pages.txt"))
        assert guesser.pages == {"Peru", "Bolivia"} and guesser_of(server).pages is None
        assert pages(guesser.guess(["of Spain and peru Bolivia"], 5)[0]) == ["Bolivia"]
    refused(ConfigError, "pages: .*none.txt cannot be read", Titles.of, str(tmp_path / "none.txt"))
    for content, message in ((b"\n", "names no page"), ("Łódź".encode("utf-16"), "not UTF-8")):
        (tmp_path / "wrong.txt").write_bytes(content)
        refused(DataError, message, Titles.of, str(tmp_path / "wrong.txt"))


# ------------------------------------------------------------------------------------------------------- stored replies


def test_equal_texts_are_requested_once(guesser_of, tmp_path):
    texts = ["Spain", "Peru", "Spain", " Spain ", "", "\t\n"]
    with ChatServer() as server:
        guesses = guesser_of(server).guess(texts, 5)
        assert [pages(row) for row in guesses] == [["Spain"], ["Peru"], ["Spain"], ["Spain"], [], []]
        assert guesser_of(server).guess(texts, 5) == guesses and len(server.prompts) == 2
        assert guesser_of(server, endpoint={"seed": 7}).guess(["Spain"], 5) != [[]]
        assert len(server.prompts) == 3  # another seed is another request
    assert [path.name for path in tmp_path.iterdir()] == ["replies.sqlite"]


def test_threads_share_the_file_and_keep_the_first_reply(tmp_path):
    cache, keys = Cache(tmp_path / "kept"), [str(i) for i in range(16)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda key: cache.put(key, "s", "p", Reply(key, 1, 2)), keys))
    assert {key: reply.text for key, reply in cache.get(keys).items()} == dict(zip(keys, keys, strict=True))
    assert cache.put("7", "s", "p", Reply("second", 1, 2)) == Reply("7", 1, 2)


def test_damaged_and_foreign_files_are_refused(tmp_path):
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no database " * 100)
    refused(DataError, "the cached replies are damaged .*; delete the file", Cache(damaged).get, ["k"])
    with sqlite3.connect(tmp_path / "foreign") as file:
        file.execute("CREATE TABLE replies (x)")
    file.close()
    with pytest.raises(DataError, match="foreign: the cached replies cannot be used: .*no column"):
        Cache(tmp_path / "foreign").put("k", "s", "p", Reply("", None, None))
    refused(DataError, "cannot be used", Cache(damaged / "below").put, "k", "s", "p", Reply("", None, None))


# ----------------------------------------------------------------------------------------------- pace, budget, estimate


def test_concurrent_requests_are_bounded(guesser_of):
    pair = threading.Barrier(2, timeout=60)

    def behaviour(prompt: str, number: int) -> Answer:
        pair.wait()  # for another request at the same time
        return normal(prompt, number)

    with ChatServer(behaviour) as server:
        guesser = guesser_of(server, endpoint={"concurrency": 3, "timeout": 60.0})
        guesses_per_word(guesser, WORDS[:6], 5)
        assert 2 <= server.most_at_a_time <= 3


def test_requests_are_evenly_spaced(guesser_of):
    with ChatServer() as server:
        started = time.monotonic()
        guesser_of(server, endpoint={"requests_per_minute": 300.0}).guess(["Spain", "Peru", "Chile"], 5)
        assert time.monotonic() - started >= 0.4


def test_budget_refuses_before_sending(guesser_of):
    with ChatServer() as server:
        guesser = guesser_of(server, max_requests=10)
        refused(ConfigError, "17 more are needed here, 0 of 10 are spent", guesses_per_word, guesser, WORDS, 5)
        refused(ConfigError, "the run needs 17 requests", guesser.check_texts, [PREFIXES])
        assert server.prompts == []
        guesses_per_word(guesser, WORDS[:10], 5)
        refused(ConfigError, "7 more are needed here, 10 of 10 are spent", guesses_per_word, guesser, WORDS, 5)
        again = guesser_of(server, max_requests=10)
        again.check_texts([PREFIXES])
        assert len(guesses_per_word(again, WORDS, 5)) == 17  # the first ten are stored


def test_retries_count_towards_the_budget(guesser_of):
    with ChatServer(lambda prompt, number: error(500)) as server:
        with pytest.raises(ConfigError, match="all 3 are spent, including retries"):
            guesser_of(server, max_requests=3).guess(["Spain"], 1)
    assert len(server.prompts) == 3


@pytest.mark.parametrize(
    "url",
    ["localhost:8000", "ftp://x/v1", "http:///v1", "http://x:99999/v1", "http://u:p@h/v1", "http://h/v1?key=s", ""],
)
def test_invalid_urls_are_refused(url):
    with pytest.raises(ConfigError, match="base_url: expected something like https://api.example.org/v1") as caught:
        EndpointConfig(base_url=url, model="m")
    assert "u:p" not in str(caught.value) and "key=s" not in str(caught.value)
