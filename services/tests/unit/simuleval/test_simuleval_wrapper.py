"""Translators of this project as SimulEval agents: `Pushed`, which runs `translate` in a thread, and the agent."""

import gc
import threading
from argparse import Namespace

import pytest
from needs import missing

pytest.importorskip("simuleval", reason=missing("simul"))


from benchmarks.compare_simuleval import evaluate
from sqa.core import ConfigError, Write
from sqa_services.simuleval.agent import quiet_imports

with quiet_imports():
    from sqa_services.simuleval.translator_agent import Pushed, TranslatorAgent

ECHO = "{name: 'doubles:build_translator', k: 2}"


def agent(text=ECHO):
    return TranslatorAgent(Namespace(translator=text))


@pytest.fixture
def push():
    """Yield a function that creates a Pushed object, whose thread is ended after the test."""
    opened = []

    def make(translate):
        opened.append(Pushed(translate))
        return opened[-1]

    yield make
    for pushed in opened:
        pushed.close()


# ------------------------------------------------------------------------------------------ the pushed translator


def test_error_is_raised_where_the_word_was_pushed(push):
    def translate(source):
        yield next(source)
        if next(source, "") == "bad":
            raise ConfigError("it broke")

    pushed = push(translate)
    pushed.push("a")
    with pytest.raises(ConfigError, match="it broke"):
        pushed.push("bad")
    assert pushed.push("a").words == ["a"]


def test_thread_ends_with_its_agent():
    before = set(threading.enumerate())
    made = agent()
    [thread] = set(threading.enumerate()) - before
    del made
    gc.collect()
    thread.join(timeout=10)
    assert not thread.is_alive()


# -------------------------------------------------------------------------------------------------------- the agent


def test_agent_of_a_copying_translator_waits_k_words():
    assert evaluate(agent(), ["a b c", "d", "", "e f"]) == [
        (["a", "b", "c"], [2, 3, 3]),
        (["d"], [1]),
        ([], []),
        (["e", "f"], [2, 2]),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name: 'doubles:build_translator', k: 0}", "translator.k: must be >= 1, got 0"),
        ("{name: waitk", "--translator: not valid YAML"),
        ("{name: fixed}", "--translator: 'fixed' only translates whole data sets"),
    ],
)
def test_invalid_translators_are_refused(text, expected):
    with pytest.raises(ConfigError, match=expected):
        agent(text)


def test_retractions_are_refused(monkeypatch):
    wrapped = agent()
    monkeypatch.setattr(wrapped, "_pushed", Pushed(lambda source: (Write(word, 0) for word in source)))
    assert evaluate(wrapped, ["a b"]) == [(["a", "b"], [1, 2])]
    monkeypatch.setattr(wrapped, "_pushed", Pushed(lambda source: (Write(word, 1) for word in source)))
    with pytest.raises(ConfigError, match="this translator retracts words; a SimulEval agent can only append"):
        evaluate(wrapped, ["a b"])
