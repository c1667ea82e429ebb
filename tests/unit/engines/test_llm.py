"""Language models as translators, behind a local server."""

import json
import os
import re
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from recorded import RECORD
from refusals import refused
from stand_ins import chat_server as chat
from stand_ins.chat_server import Answer, ChatServer, continuation, error, last_pair, translating
from tables import tables_of

from smt.engines.llm import LlmConfig, build
from smt.lm.local import LocalConfig
from sqa.core import ConfigError, DataError, hypotheses
from sqa.data.datasets import load_questions
from sqa.files import Store
from sqa.net.chat import Budget, Cache, CachedChat, EndpointError, Task
from sqa.net.endpoint import PLAIN, Endpoint, EndpointConfig
from sqa.pipeline import CountedSource, Workshop, run, run_from_mapping, save
from sqa.pipeline.usage import spent

TABLES = tables_of(__file__)

QUESTIONS = [replace(q, sentences=q.sentences[:3]) for q in load_questions("mini-es", limit=2)]
WORDS = QUESTIONS[0].sentences[0]
POLICIES = [{"k": 3}, {"policy": "wait-k", "k": 3}, {"policy": "local-agreement"}, {"policy": "hold", "n": 2}]
TRANSCRIPT = Path(__file__).parents[2] / "golden" / "recorded" / "llm_transcript.json"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def endpoint(server: ChatServer, **options) -> dict:
    quick = {"requests_per_minute": 600_000.0, "concurrency": 16, "backoff": 0.01, "timeout": 5.0}
    return {"base_url": server.base_url, "model": "tiny", **quick, **options}


def translator(server: ChatServer, folder: Path, **keys):
    keys = {"source_language": "es", "cache": folder / "kept", **keys}
    return build(LlmConfig(endpoint=EndpointConfig(**endpoint(server)), **keys))


# ------------------------------------------------------------------------------------------------------------- prompts


def test_requests_continue_the_committed_target(tmp_path):
    def chats(prompt: str, number: int) -> Answer:
        committed = "" if "Spanish: " in prompt else prompt
        return chat.completion(f" w{len(committed.split())} next")

    with ChatServer(chats) as server:
        written = list(translator(server, tmp_path, api="chat", k=3, step_tokens=9).translate(iter(WORDS[:4])))
    first, second, last = server.requests
    assert written == ["w0", "w1", "w2", "next"] and len(first["messages"]) == 1
    assert second["messages"][1] == {"role": "assistant", "content": "w0"}
    assert second["continue_final_message"] and not second["add_generation_prompt"] and "stop" not in second
    assert (second["max_tokens"], last["max_tokens"]) == (9, 64)
    with ChatServer(translating) as server:
        list(translator(server, tmp_path, k=3).translate(iter(WORDS[:4])))
    assert server.requests[1]["stop"] == ["\n"]
    source = " ".join(WORDS[:4])
    assert server.requests[1]["prompt"].endswith(f"490 BC.\n\nSpanish: {source}\nEnglish: {WORDS[0][::-1]}")


def test_custom_prompt_contains_source_and_target(tmp_path):
    prompt = "{examples}{source_language} {source} > {target_language} {target} |"
    with ChatServer(lambda prompt, number: continuation(" x y")) as server:
        made = translator(server, tmp_path, k=1, prompt=prompt, examples=(("a {source}", "b"),))
        list(made.translate(iter(["uno", "{target}"])))
    assert server.prompts[1] == "Spanish: a {source}\nEnglish: b\nSpanish uno {target} > English x |"


def test_earlier_sentences_are_shown_with_their_target(tmp_path):
    with ChatServer(translating) as server:
        [emissions] = translator(server, tmp_path, previous=1).translate_batch(QUESTIONS[:1])
    first, second, third = QUESTIONS[0].sentences
    backwards = " ".join(word[::-1] for word in second)
    assert f"\nSpanish: {' '.join(second)}\nEnglish: {backwards}\nSpanish: {third[0]} " in server.prompts[2]
    assert " ".join(first) not in server.prompts[2]
    assert [e.sentence for e in emissions] == [i for i, words in enumerate((first, second, third)) for _ in words]


def test_sentence_endings_are_requested_last(tmp_path):
    with ChatServer(translating) as server:
        translator(server, tmp_path, k=1, step_tokens=9).translate_batch(QUESTIONS)
    asked = [request["max_tokens"] for request in server.requests]
    first = min(i for i, most in enumerate(asked) if most > 9)
    assert first > len(WORDS) and 9 not in asked[first:]


# ---------------------------------------------------------------------------------------------------------- look-ahead


@pytest.mark.parametrize("keys", POLICIES, ids=str)
def test_prompt_has_no_unread_word(tmp_path, keys):
    source = CountedSource(WORDS)
    ahead = []

    def watching(prompt: str, number: int) -> Answer:
        shown = last_pair(prompt)[0]
        ahead.append(len(shown) - source.read if tuple(shown) == WORDS[: len(shown)] else None)
        return translating(prompt, number)

    with ChatServer(watching) as server:
        assert list(translator(server, tmp_path, **keys).translate(source))
    assert len(ahead) >= len(WORDS) - 3 and set(ahead) == {0}


@pytest.mark.parametrize("previous", [0, 1])
def test_batched_prompts_have_no_word_beyond_g(tmp_path, previous):
    with ChatServer(translating) as server:
        batch = translator(server, tmp_path, k=3, previous=previous).translate_batch(QUESTIONS)
    pairs = [last_pair(prompt) for prompt in server.prompts]
    for question, emissions in zip(QUESTIONS, batch, strict=True):
        for i, sentence in enumerate(question.sentences):
            g = [e.g for e in emissions if e.sentence == i]
            own = [(len(s), len(t)) for s, t in pairs if tuple(s) == sentence[: len(s)]]
            assert len(own) >= len(sentence) - 2
            assert not [(read, done) for read, done in own if done < len(g) and read > g[done]]


# ------------------------------------------------------------------------------------------------- a run and its files


def config(server: ChatServer, folder: Path, **keys) -> dict:
    part = {"name": "llm", "source_language": "es", "endpoint": endpoint(server, retries=0), "k": 3}
    part |= {"cache": str(folder / "kept"), "prices": [1.0, 2.0], **keys}
    return {"name": "t", "dataset": {"name": "mini-es", "limit": 2}, "translator": part, "metrics": ["al", "bleu"]}


def saved(mapping: dict, runs: Path) -> dict[str, bytes]:
    folder = save(run(run_from_mapping(mapping), Store(runs), progress=False), runs)
    return {name: (folder / name).read_bytes() for name in ("run.json", "report.tsv", "stats.npz")}


def test_run_resumes_and_sends_each_request_once(tmp_path):
    with ChatServer(lambda prompt, n: translating(prompt, n) if n <= 50 else error(500)) as server:
        mapping = config(server, tmp_path)
        with pytest.raises(EndpointError, match="finished replies are stored: run again to continue"):
            saved(mapping, tmp_path / "runs")
        answered, server.behaviour = server.prompts[:50], translating
        del server.prompts[50:]
        first = saved(mapping, tmp_path / "runs")
        assert len(server.prompts) > 100 and not set(server.prompts[50:]) & set(answered)
        before = len(server.prompts)
        assert saved(mapping, tmp_path / "runs") == saved(mapping, tmp_path / "others") == first
        assert len(server.prompts) == before
    counts = json.loads(first["run.json"])["translator"]
    assert counts["replies"] == before == len(set(server.prompts))
    assert counts["prompt-tokens"] == sum(len(prompt) // 4 for prompt in server.prompts)
    assert counts["cost"] == (counts["prompt-tokens"] + 2 * counts["reply-tokens"]) / 1e6
    assert f"\nreplies\t{before}\t".encode() in first["report.tsv"]


def test_worker_counts_the_replies_of_its_block(tmp_path):
    with ChatServer(translating) as server:
        mapping = config(server, tmp_path)
        expected = json.loads(saved(mapping, tmp_path / "runs")["run.json"])["translator"]
        store, loaded = Store(tmp_path / "others"), run_from_mapping(mapping)
        workshop = Workshop(store)
        workshop.make(loaded, 0, until="translate")
        stage = workshop.work(loaded, "translate").stages["translate"]
    assert spent(store, stage, (1.0, 2.0)) == expected


def test_run_stops_if_no_reply_is_a_translation(tmp_path):
    with ChatServer(lambda prompt, number: chat.completion(prompt)) as server:
        made = translator(server, tmp_path, api="chat", policy="wait-k", k=1)
        refused(
            DataError,
            "20 of 20 replies are no translations .20 echo.*api: completions",
            made.translate_batch,
            QUESTIONS,
        )
        assert len(server.prompts) == 20  # no further request is paid for


TRANSLATION = "This is the translation"
FAULTS = TABLES["faults"]


@pytest.mark.parametrize(("message", "finish", "kind", "stops"), FAULTS, ids=str)
def test_faulty_reply_is_counted_by_kind(tmp_path, message, finish, kind, stops):
    body = {"choices": [{"message": message, "finish_reason": finish}], "usage": {"completion_tokens": 5}}
    with ChatServer(lambda prompt, number: Answer(json.dumps(body).encode())) as server:
        made = translator(server, tmp_path, api="chat", policy="wait-k", k=3)
        if stops:
            advices = {"filter": "switch it off", "error": "see its log", "pieces": "have it decode them"}
            advice = advices.get(kind, "raise max_tokens or switch thinking off")
            refused(DataError, f"20 of 20 .*20 {kind}.*finish_reason .*{advice}", made.translate_batch, QUESTIONS)
            assert len(server.prompts) == 20
        else:
            words = {e.token.rstrip('"') for emissions in made.translate_batch(QUESTIONS[:1]) for e in emissions}
            assert words <= {*TRANSLATION.split(), "of"} and words >= {*TRANSLATION.split()}
    counted = {name.removeprefix("replies-") for name in made.usage if name.startswith("replies-")}
    assert counted == ({kind} if kind else set())


def test_void_replies_are_counted_over_batches(tmp_path):
    """Each batch has 18 void replies, fewer than the 20 at which a run stops."""
    sentence = tuple(f"palabra{n}" for n in range(36))
    halves = [replace(QUESTIONS[0], sentences=(tuple(f"{half}{word}" for word in sentence),)) for half in "ab"]

    def every_second(prompt: str, number: int) -> Answer:
        return chat.completion(TRANSLATION if number % 2 else "", prompt)

    with ChatServer(every_second) as server:
        made = translator(server, tmp_path, api="chat", policy="wait-k", k=1)
        made.translate_batch(halves[:1])
        refused(DataError, "20 of .. replies are no translations .20 empty", made.translate_batch, halves[1:])


def test_extra_fields_replace_those_of_the_request(tmp_path):
    extra = {"max_tokens": 4000, "chat_template_kwargs": {"enable_thinking": False}}
    with ChatServer(translating) as server:
        config = EndpointConfig(**endpoint(server, extra=extra))
        Endpoint(config, Budget(9), PLAIN).complete(Task("Spanish: la\nEnglish:", "", 8))
        [request] = server.requests
    assert {key: request[key] for key in extra} == extra
    assert Endpoint(config, Budget(9), PLAIN).identity != Endpoint(replace(config, extra={}), Budget(9), PLAIN).identity


@pytest.mark.parametrize(("most", "warned"), [(10_000, 0), (40, 1)])
def test_prompts_that_stop_costing_more_give_a_warning(tmp_path, capsys, most, warned):
    def answer(prompt: str, number: int) -> Answer:
        body = json.loads(chat.completion(TRANSLATION, prompt).body)
        body["usage"]["prompt_tokens"] = min(body["usage"]["prompt_tokens"], most)
        return Answer(json.dumps(body).encode())

    with ChatServer(answer) as server:
        translator(server, tmp_path, api="chat", policy="wait-k", k=1).translate_batch(QUESTIONS)
    assert capsys.readouterr().err.count("longer prompts still cost 40 tokens") == warned


WRONG = TABLES["wrong"]


@pytest.mark.parametrize("problem", WRONG)
def test_wrong_config_error_names_the_problem(problem, tmp_path):
    with ChatServer(translating) as server:
        mapping = config(server, tmp_path)
    mapping["translator"] |= WRONG[problem]
    mapping["translator"] = {key: value for key, value in mapping["translator"].items() if value is not None}
    refused(ConfigError, re.escape(problem).replace(r"\.\*", ".*").replace(r"\ ", " "), run_from_mapping, mapping)


# -------------------------------------------------------------------------------------------------------------- faults


def test_faults_in_500_requests_lose_no_reply(tmp_path, capsys):
    """A prompt is sent again only after a fault, and a run that stopped because of an unknown model can resume."""
    faults: dict[str, Answer] = {
        "HTTP 429": error(429, headers={"Retry-After": "0.01"}),
        "HTTP 500": error(500),
        "a broken connection": Answer(b"", hang_up=True),
        "an incomplete response": Answer(continuation(" half").body[:-30]),
        "no complete response in time": Answer(b"", wait=1.5),
        "wrong model": error(404, "no such model"),
    }
    kinds = list(faults)
    tasks = [Task(f"text {i}", "", 8) for i in range(500)]
    planned = {f"text {i}": kinds[i // 5 % 4] for i in range(0, 500, 5)}  # 100 prompts fail once
    planned |= {f"text {i}": kinds[4] for i in range(1, 500, 100)} | {"text 250": kinds[5]}
    arrived, lock = Counter[str](), threading.Lock()

    def behaviour(prompt: str, number: int) -> Answer:
        with lock:
            arrived[prompt] += 1
            first = arrived[prompt] == 1
        return faults[planned[prompt]] if first and prompt in planned else continuation(f" reply to {prompt}")

    with ChatServer(behaviour) as server:
        model = Endpoint(EndpointConfig(**endpoint(server, timeout=1.0)), Budget(1000), PLAIN)
        client = CachedChat(model, Cache(tmp_path / "kept"))
        refused(ConfigError, "HTTP 404 .no such model.; does it have the model 'tiny'", client.ask, tasks)
        replies = client.ask(tasks)
    assert {task.text: reply.text for task, reply in replies.items()} == {t.text: f" reply to {t.text}" for t in tasks}
    assert all(arrived[task.text] >= 1 + (task.text in planned) for task in tasks)
    assert arrived.total() <= model.budget.spent == 500 + model.budget.faults.total() + 1  # 1 for the wrong model
    told = [line for line in capsys.readouterr().err.splitlines() if "from the cache" not in line]
    assert sorted(told) == sorted(
        f"sqa: llm: {kind}; failed requests are sent again (printed once)" for kind in kinds[:5]
    )


# --------------------------------------------------------------------------------------------------------- a real model


def record(question) -> None:
    """Run the bundled base model in this process and write its replies and its translation to TRANSCRIPT."""
    made = build(LlmConfig(source_language="es", local=LocalConfig(dtype="float32"), k=3))
    lines, replies = made.system._model._writer, {}
    write = lines.write

    def writing(prompts, most):
        written = write(prompts, most)
        shown = (prompt.rpartition("\n\n")[2] for prompt in prompts)
        replies.update(zip(shown, (line.text for line in written), strict=True))
        return written

    lines.write = writing
    [emissions] = made.translate_batch([question])
    kept = {"replies": replies, "translation": hypotheses(question, emissions), "g": [e.g for e in emissions]}
    TRANSCRIPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def test_recorded_replies_yield_the_recorded_words(tmp_path):
    """A server that sends Gemma's recorded replies yields Gemma's words. SQA_RECORD=1 records the replies again."""
    question = replace(QUESTIONS[0], sentences=QUESTIONS[0].sentences[:2])
    if os.environ.get(RECORD):
        record(question)
    transcript = json.loads(TRANSCRIPT.read_text("utf-8"))
    with ChatServer(lambda prompt, n: continuation(transcript["replies"][prompt.rpartition("\n\n")[2]])) as server:
        made = translator(server, tmp_path, k=3)
        [emissions] = made.translate_batch([question])
    assert hypotheses(question, emissions) == transcript["translation"]
    assert [e.g for e in emissions] == transcript["g"]
