"""The contract of every registered translator."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from needs import require
from stand_ins.declarations import TABLE, filled
from stand_ins.keyed_parts import Places
from tables import tables_of

from sqa.core import TRANSLATORS, check_emissions
from sqa.data.datasets import load_questions
from sqa.pipeline import Reader, stream

TABLES = tables_of(__file__)

QUESTIONS = [  # short, because every case decodes them about five times
    replace(q, sentences=tuple(sentence[:9] for sentence in q.sentences[:2]), reference=q.reference[:2])
    for q in load_questions("mini-es", limit=2)
]
AGENT = TABLES["agent"]


def log(folder):
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


def adapter(folder):
    from stand_ins import lm_models

    made = lm_models.adapter(lm_models.make(folder / "lm", "llama"), folder / "adapter", 1)
    return {"model": str(made), "dtype": "float32", "k": 3}


def statistical(folder):
    from tests.tiny_language import train_tiny

    return {"model": str(train_tiny(folder)), "k": 3}


SERVING = ExitStack()  # servers of the cases, which stop after the last test of this module


def asked_at_wait_k(folder, **keys):
    from stand_ins.chat_server import ChatServer, translating

    SERVING.enter_context(pytest.MonkeyPatch.context()).setenv("NO_PROXY", "127.0.0.1")
    url = SERVING.enter_context(ChatServer(translating)).base_url
    endpoint = {"base_url": url, "model": "tiny", "requests_per_minute": 600_000.0, "concurrency": 16}
    return {"source_language": "es", "endpoint": endpoint, "cache": str(folder / "kept"), "k": 3} | keys


def asked_with_agreement(folder):
    return asked_at_wait_k(folder, policy="local-agreement", k="full")


@pytest.fixture(scope="module", autouse=True)
def servers_end():
    with SERVING:
        yield


MAKERS = (log, agent, hub, adapter, statistical, asked_at_wait_k, asked_with_agreement)
OPTIONS: dict[str, Callable[[Path], dict]] = {make.__name__: make for make in MAKERS}
DECLARED = {name: row for (kind, name), row in TABLE.items() if kind == "translator"}
CASES = [(name, case) for name, row in DECLARED.items() for case in row.cases]
STREAMED = [(name, case) for name, case in CASES if DECLARED[name].streams]


class Outputs(NamedTuple):
    """A function object that builds a new translator for a case."""

    name: str
    config: object

    def __call__(self):
        translator = TRANSLATORS.build(self.name, self.config)
        if hasattr(translator, "check"):
            translator.check(QUESTIONS)
        return translator


@pytest.fixture(scope="module", params=CASES, ids=str)
def make(request, tmp_path_factory):
    name, case = request.param
    if DECLARED[name].needs:
        require(DECLARED[name].needs)
    folder = tmp_path_factory.mktemp(name)
    options = OPTIONS[case](folder) if isinstance(case, str) else filled(case, Places(folder))
    reader = Reader()
    config = reader.record(TRANSLATORS.config_class(name), options, "")
    assert not reader.problems, reader.problems
    return Outputs(name, config)


@pytest.fixture(scope="module")
def batch(make):
    """Return the output of a newly built translator."""
    return make().translate_batch(QUESTIONS)


def test_emissions_are_valid_in_order_and_repeatable(make, batch):
    for question, emissions in zip(QUESTIONS, batch, strict=True):
        check_emissions(question, emissions)
        assert {e.sentence for e in emissions} == set(range(len(question.sentences)))
    assert make().translate_batch(QUESTIONS) == batch


def test_question_alone_equals_question_in_a_batch(make, batch):
    alone = make()
    assert [alone.translate_batch([question])[0] for question in QUESTIONS] == batch


@pytest.mark.parametrize("make", STREAMED, ids=str, indirect=True)
def test_streaming_equals_batched(make, batch):
    assert stream(make(), QUESTIONS[0]) == batch[0]  # a new translator without stored answers
