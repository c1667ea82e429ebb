"""The contract of every registered translator."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from xmlrpc.server import SimpleXMLRPCServer

import pytest

from sqa.core.registry import TRANSLATORS
from sqa.core.trace import check_emissions
from sqa.data.datasets import load_questions
from sqa.run.pipeline import stream

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
    """A config of a registered translator, made in a folder where it needs files."""

    name: str
    options: Callable[[Path], dict]
    streams: bool = True  # False: knows whole questions only, or its `translate` learns of the end one step later
    needs: str = ""  # optional package

    def __str__(self) -> str:
        return self.name


def plain(name, streams=True, **options):
    return Case(name, lambda folder: options, streams)


def recorded(folder):
    rows = ["index\ttoken\tdelay"]
    sentences = [sentence for question in load_questions("mini-es", limit=3) for sentence in question.sentences]
    for i, sentence in enumerate(sentences):
        rows += [f"{i}\t{word.upper()}\t{min(j + 2, len(sentence))}" for j, word in enumerate(sentence)]
    (folder / "log.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return {"file": str(folder / "log.tsv"), "format": "tsv"}


def agent(folder):
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    return {"agent": f"{folder / 'agent.py'}:OneBehind"}


def hub(folder):
    from stand_ins.hub_models import save_models

    return {"model": str(save_models(folder)["marian"]), "max_new_tokens": 12, "policy": "local-agreement"}


def language_model(folder):
    from stand_ins.lm_models import make

    options = {"source_language": "es", "precision": "float32", "policy": "hold", "n": 1}
    return {"model": str(make(folder / "lm", "llama"))} | options


def adapter(folder):
    import torch
    from stand_ins.lm_models import make

    from smt.lm.adapter import save_adapter, tensors
    from smt.lm.base import load_base

    base = load_base(make(folder / "lm", "llama"), torch.float32)
    base.network.adapt(4, 1.0, 0)
    pieces = torch.arange(4, base.tokens.size)
    made = save_adapter(
        folder / "adapter", tensors(base.network), pieces, base, ("es", "en"), str(folder / "lm"), 1.0, {}
    )
    return {"model": str(made), "precision": "float32", "k": 3}


def exported(folder):
    from smt.engines.ctranslate_export import export
    from tests.smt_models import random_model, vocabulary

    return {"folder": str(export(random_model(lexicon_width=0), vocabulary(), folder / "ct")), "k": 3}


def statistical(folder):
    from tests.tiny_language import train_tiny

    return {"model": str(train_tiny(folder)), "k": 3}


def moses(folder):
    server = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False, allow_none=False)
    server.register_function(lambda request: {"text": request["text"].upper()}, "translate")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return {"url": f"http://127.0.0.1:{server.server_address[1]}/RPC2", "tokenize": "none", "k": 3}


SERVING = ExitStack()  # servers of the cases, until the module is done


def served(folder):
    from stand_ins.iwslt_loopback import serving_app

    from sqa_services.simuleval.http import ServiceConfig, make_app
    from sqa_services.simuleval.server import agent_of

    app = make_app(agent_of("", agent(folder)["agent"]), ServiceConfig())
    return {"url": SERVING.enter_context(serving_app(app))}


@pytest.fixture(scope="module", autouse=True)
def servers_end():
    with SERVING:
        yield


CASES = [
    plain("waitk", model="es-en", k=1),
    plain("waitk", model="es-en", k=6),
    plain("waitk", model="es-en", k="full"),
    plain("waitk", model="es-en", k=3, beam=4),
    plain("waitk", model="es-en", k=6, unit="piece"),
    plain("prefix", model="es-en", policy="local-agreement"),
    plain("prefix", model="es-en", policy="local-agreement", beam=2),
    plain("command", command=tuple(UPPER), k=3),
    plain("command", command=tuple(UPPER), policy="retranslate"),
    plain("fixed", streams=False, text="reference"),
    plain("fixed", streams=False, text="reference", reveal="diagonal"),
    Case("recorded", recorded, streams=False),
    Case("simuleval", agent, streams=False, needs="simuleval"),
    Case("causal-lm", language_model, needs="transformers"),
    Case("causal-lm", adapter, needs="transformers"),
    Case("pretrained", hub, needs="transformers"),
    Case("ctranslate2", exported, needs="ctranslate2"),
    Case("pbmt", statistical, needs="thot"),
    Case("moses", moses),
    Case("simuleval_service", served, streams=False, needs="simuleval"),
]


class Made(NamedTuple):
    """How to build a case's translator, again and again."""

    case: Case
    config: object

    def __call__(self):
        translator = TRANSLATORS.build(self.case.name, self.config)
        if hasattr(translator, "check"):
            translator.check(load_questions("mini-es", limit=3))
        return translator


@pytest.fixture(scope="module", params=CASES, ids=str)
def make(request, tmp_path_factory):
    case = request.param
    if case.needs and find_spec(case.needs) is None:
        pytest.skip(f"{case.name} needs the package {case.needs}")
    options = case.options(tmp_path_factory.mktemp(case.name))
    return Made(case, TRANSLATORS.config_class(case.name)(**options))


@pytest.fixture(scope="module")
def questions():
    return load_questions("mini-es", limit=3)


def test_every_registered_translator_is_here():
    assert {case.name for case in CASES} == set(TRANSLATORS.names())


def test_emissions_are_valid_in_order_and_repeatable(make, questions):
    first, second = make(), make()
    batch = first.translate_batch(questions)
    assert len(batch) == len(questions)
    for question, emissions in zip(questions, batch, strict=True):
        check_emissions(question, emissions)
        assert {e.sentence for e in emissions} <= set(range(len(question.sentences)))
    assert sum(map(len, batch)) > 10 * len(questions)
    assert second.translate_batch(questions) == batch
    assert first.fingerprint() == second.fingerprint()


def test_a_question_is_translated_alike_alone_and_among_others(make, questions):
    together = make().translate_batch(questions)
    alone = make()
    assert [alone.translate_batch([question])[0] for question in questions] == together


def test_streaming_equals_batched(make, questions):
    if not make.case.streams:
        pytest.skip("knows whole questions only")
    streaming, batched = make(), make()  # two, so that neither can serve the other's remembered answers
    for question, emissions in zip(questions[:1], batched.translate_batch(questions[:1]), strict=True):
        assert stream(streaming, question) == emissions


def test_fingerprints_tell_configs_apart():
    def fingerprint(name, **options):
        return TRANSLATORS.build(name, TRANSLATORS.config_class(name)(**options)).fingerprint()

    made = [
        *(fingerprint("waitk", model=model, k=k) for model in ("es-en", "pl-en") for k in (1, 6, "full")),
        *(fingerprint("command", command=tuple(UPPER), policy="hold", n=n) for n in (1, 2)),
        *(fingerprint("fixed", text="reference", reveal=reveal) for reveal in ("full", "diagonal")),
    ]
    assert len(set(made)) == len(made)
