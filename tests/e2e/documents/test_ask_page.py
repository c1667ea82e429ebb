"""The commands of docs/ask_models.md that need the server of a language model."""

import json

import pytest
from stand_ins.chat_server import Answer, ChatServer, completion

REFERENCES = ("They saw three ships.", "There Bolívar slept.")


def replies(prompt: str, number: int) -> Answer:
    """Ask for the second word from the end, which the text must have."""
    if "Passage: " in prompt:
        word = prompt.split("Passage: ")[1].split()[-2 if "ships" in prompt else 1]
        return completion(
            json.dumps({"questions": [{"question": f"Which w{word[1]}rd?", "answer": word, "kind": "what"}]})
        )
    text = prompt.rpartition("Text: ")[2].partition("\nQuestion: ")[0].split()
    found = [word for word in ("three", "bolívar") if word in [w.lower() for w in text] and f"w{word[1]}rd" in prompt]
    return completion(json.dumps({"answer": " ".join(found)}))


def test_commands_use_the_server_of_a_file(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "references.txt").write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    chat = ("--endpoint", "server.yaml", "--cache")
    first = ("questions", "make", "--references", "references.txt", "--maker", "endpoint", *chat)
    with ChatServer(replies) as server:
        text = f"base_url: {server.base_url}\nmodel: tiny\nrequests_per_minute: 600000.0\n"
        (tmp_path / "server.yaml").write_text(text, encoding="utf-8")
        made = command(*first, "replies", "--output", "asked.jsonl")
        assert "sqa: about 18 requests" in made.err and "2 questions about 2 segments; dropped: none" in made.err
        done = command("ask", "references.txt", "--questions", "asked.jsonl", "--reader", "endpoint", *chat, "replies")
    assert done.out.splitlines()[1].split("\t")[1:4] == ["all", "answered", "1.000000"]
    assert command(*first, "replies").out == (tmp_path / "asked.jsonl").read_text("utf-8")  # the server is closed
    assert "--limit-requests: 2 more are needed" in command(*first, "others", "--limit-requests", "1").err
    assert "--endpoint: give a YAML file" in command(*first[:-3]).err


@pytest.mark.needs("transformers")
def test_model_in_this_process_answers_questions(command, tmp_path, monkeypatch):
    from stand_ins.lm_models import make

    monkeypatch.chdir(tmp_path)
    make(tmp_path / "model", "llama")
    (tmp_path / "local.yaml").write_text("base: model\nmax_tokens: 4\n", encoding="utf-8")
    (tmp_path / "references.txt").write_text(f"{REFERENCES[0]}\n", encoding="utf-8")
    command("questions", "make", "--references", "references.txt", "--output", "asked.jsonl")
    done = command(
        "ask", "references.txt", "--questions", "asked.jsonl", "--reader", "endpoint", "--endpoint", "local.yaml"
    )
    assert "no JSON: 3 replies" in done.err  # the model is random, and each question is asked three times
    assert done.out.splitlines()[1].split("\t")[1:4] == ["all", "answered", "0.000000"]
