"""The contract of every registered translator."""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from needs import require

from sqa.core.registry import TRANSLATORS
from sqa.core.trace import check_emissions
from sqa.data.datasets import load_questions
from sqa.net.endpoint import EndpointConfig
from sqa.pipeline.engine import stream

QUESTIONS = [  # short, because every case decodes them about five times
    replace(q, sentences=q.sentences[:2], reference=q.reference[:2]) for q in load_questions("mini-es", limit=2)
]
UPPER = [sys.executable, "-c", "import sys\nfor line in sys.stdin: print(line.rstrip().upper())"]
AGENT = """
from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import ReadAction, WriteAction
from simuleval.utils import entrypoint


@entrypoint
class OneBehind(TextToTextAgent):
    def policy(self):
        source, done = self.states.source, len(self.states.target)
        if self.states.source_finished:
            return WriteAction(" ".join(word.lower() for word in source[done:]), finished=True)
        return WriteAction(source[done].lower(), finished=False) if len(source) > done + 1 else ReadAction()
"""


class Case(NamedTuple):
    """A registered translator and a function that writes its files to a folder and returns its config keys."""

    name: str
    options: Callable[[Path], dict]
    streams: bool = True  # False: needs whole questions, or `translate` notices the end of the source one step later
    needs: str = ""  # extra

    def __str__(self) -> str:
        return self.name


def plain(name, streams=True, **options):
    return Case(name, lambda folder: options, streams)


def recorded(folder):
    sentences = [sentence for question in QUESTIONS for sentence in question.sentences]
    lines = [
        {
            "index": i,
            "prediction": " ".join(sentence).upper(),
            "delays": [min(j + 2, len(sentence)) for j in range(len(sentence))],
            "source_length": len(sentence),
        }
        for i, sentence in enumerate(sentences)
    ]
    (folder / "instances.log").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return {"file": str(folder / "instances.log")}


def agent(folder):
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    return {"agent": f"{folder / 'agent.py'}:OneBehind"}


def hub(folder):
    from stand_ins.hub_models import save_models

    return {"model": str(save_models(folder)["marian"]), "max_new_tokens": 12, "policy": "local-agreement"}


def language_model(folder):
    from stand_ins.lm_models import make

    options = {"source_language": "es", "dtype": "float32", "policy": "hold", "n": 1}
    return {"model": str(make(folder / "lm", "llama"))} | options


def adapter(folder):
    from stand_ins import lm_models

    made = lm_models.adapter(lm_models.make(folder / "lm", "llama"), folder / "adapter", 1)
    return {"model": str(made), "dtype": "float32", "k": 3}


def statistical(folder):
    from tests.tiny_language import train_tiny

    return {"model": str(train_tiny(folder)), "k": 3}


SERVING = ExitStack()  # servers of the cases, which stop after the last test of this module


def asked(folder, **keys):
    from stand_ins.chat_server import ChatServer, translating

    SERVING.enter_context(pytest.MonkeyPatch.context()).setenv("NO_PROXY", "127.0.0.1")
    url = SERVING.enter_context(ChatServer(translating)).base_url
    endpoint = EndpointConfig(base_url=url, model="tiny", requests_per_minute=600_000.0, concurrency=16)
    return {"source_language": "es", "endpoint": endpoint, "cache": folder / "kept", **keys}


@pytest.fixture(scope="module", autouse=True)
def servers_end():
    with SERVING:
        yield


CASES = [
    plain("waitk", model="es-en", k="full"),
    plain("waitk", model="es-en", k=3, beam=4),
    plain("waitk", model="es-en", k=6, unit="piece"),
    plain("prefix", model="es-en", policy="local-agreement", beam=2),
    plain("command", command=tuple(UPPER), k=3),
    plain("command", command=tuple(UPPER), policy="retranslate"),
    Case("llm", partial(asked, k=3), needs="llm"),
    Case("llm", partial(asked, policy="local-agreement"), needs="llm"),
    plain("fixed", streams=False, text="reference"),
    plain("fixed", streams=False, text="reference", reveal="diagonal"),
    Case("recorded", recorded, streams=False),
    Case("simuleval", agent, streams=False, needs="simul"),
    Case("causal-lm", language_model),
    Case("causal-lm", adapter),
    Case("pretrained", hub),
    Case("pbmt", statistical, needs="statistical"),
]


class Outputs(NamedTuple):
    """A function object that builds a new translator for a case."""

    case: Case
    config: object

    def __call__(self):
        translator = TRANSLATORS.build(self.case.name, self.config)
        if hasattr(translator, "check"):
            translator.check(QUESTIONS)
        return translator


@pytest.fixture(scope="module", params=CASES, ids=str)
def make(request, tmp_path_factory):
    case = request.param
    if case.needs:
        require(case.needs)
    options = case.options(tmp_path_factory.mktemp(case.name))
    return Outputs(case, TRANSLATORS.config_class(case.name)(**options))


@pytest.fixture(scope="module")
def batch(make):
    """Return the output of a newly built translator."""
    return make().translate_batch(QUESTIONS)


def test_every_registered_translator_is_tested():
    assert {case.name for case in CASES} == set(TRANSLATORS.names())


def test_emissions_are_valid_in_order_and_repeatable(make, batch):
    for question, emissions in zip(QUESTIONS, batch, strict=True):
        check_emissions(question, emissions)
        assert {e.sentence for e in emissions} == set(range(len(question.sentences)))
    assert make().translate_batch(QUESTIONS) == batch


def test_question_alone_equals_question_in_a_batch(make, batch):
    alone = make()
    assert [alone.translate_batch([question])[0] for question in QUESTIONS] == batch


@pytest.mark.parametrize("make", [case for case in CASES if case.streams], ids=str, indirect=True)
def test_streaming_equals_batched(make, batch):
    assert stream(make(), QUESTIONS[0]) == batch[0]  # a new translator without stored answers
