"""Attacks on the answers of a closed set, by inference from everything that the board shows about submissions."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from board_task import add_data, model
from sqlalchemy import update
from stand_ins.board_server import Person, invitation, serving, signed_up

from sqa.core.differences import compare
from sqa.data.datasets import load_questions
from sqa_services.board import sqa_task, worker
from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.files import as_lines
from sqa_services.board.metrics import Additive
from sqa_services.board.server import ServeConfig
from sqa_services.board.standing.rounded import SHARE, rounded
from sqa_services.board.storage import ABOUT, LOOKS
from sqa_services.net.address import Address

EW = Additive("ew")
KINDS = ("casing", "punctuation", "diacritics")
SUBMISSIONS, BLOCK = 20, 3  # BLOCK: questions tested per submission
CHANCE_STEP, SCORE_STEP = 0.005, 0.025  # maximum rounding error of a shown number
Rows = list[dict[str, Any]]


def rows_of(id: str, words: int, guess: str, at: int) -> Rows:
    """Return rows with one word per three source words, and a guess and a buzz after `at` source words."""
    read = range(3, words + 1, 3)
    first = min((g for g in read if g >= at), default=read[-1])
    return [
        {"question": id, "step": step, "token": f"w{step}", "g": g}
        | {"guess": guess if g >= first else "", "buzz": g == first}
        for step, g in enumerate(read)
    ]


class Attacker:
    """An attacker that submits candidate answers to a few questions and dummy answers to all other questions."""

    def __init__(self, inputs: Mapping[str, Sequence[Mapping[str, Any]]], candidates: Sequence[str], random: Random):
        self.examples, self.candidates, self.random = inputs, candidates, random
        self.names = [example["id"] for example in inputs[""]]
        self.told: dict[int, bool] = {}

    def submit(self, block: Sequence[int]) -> bytes:
        """Return a submission file with candidate answers to the questions in `block`; keep its rows for `learn`."""
        self.lines: Rows = []
        for example in [*self.examples[""], *self.examples["robustness"]]:
            number = self.names.index(example.get("input_id", example["id"]))
            words = sum(len(sentence.split()) for sentence in example["source"])
            tried = number in block and self.random.random() < 0.6
            guess = self.candidates[number] if tried else "Nowhere"
            self.lines += rows_of(example["id"], words, guess, self.random.randrange(words // 3, words))
        return as_lines(self.lines)

    def stats(self, examples: Sequence[Mapping[str, Any]], right: Mapping[int, bool]) -> np.ndarray:
        """Return the EW statistics that the submission would have if exactly the candidates in `right` were correct."""
        targets = []
        for example in examples:
            number = self.names.index(example.get("input_id", example["id"]))
            page = self.candidates[number] if right.get(number) else "Elsewhere"
            targets.append(sqa_task.question_of({**example, "reference": ["x"], "page": page}))
        return EW.stats([self.answers[example["id"]] for example in examples], targets)

    def learn(self, block: Sequence[int], shown: Mapping[str, Mapping[str, Any]]) -> None:
        """Infer whether candidates are correct: keep what holds in all cases that are consistent with the numbers."""
        originals, possible = self.examples[""], []
        everything = [e | {"reference": ["x"], "page": ""} for e in (*originals, *self.examples["robustness"])]
        responses, _ = sqa_task.spanish().respond("submission", as_lines(self.lines), everything, Path())
        self.answers = {response["id"]: sqa_task.spanish().prediction(response) for response in responses}
        for bits in product((False, True), repeat=len(block)):
            right = dict(zip(block, bits, strict=True))
            before, fits = self.stats(originals, right), True
            if "perf" in shown.get("", {}):
                fits = abs(EW.metric.score(before.sum(axis=0)) - shown[""]["perf"]) <= 2 * SCORE_STEP
            for kind in KINDS:
                copies = [copy for copy in self.examples["robustness"] if copy["transform"] == kind]
                places = [self.names.index(copy["input_id"]) for copy in copies]
                told = shown.get(kind, {})
                if not fits or not {"p_bootstrap", "high"} & set(told):
                    continue
                exact = compare(self.stats(copies, right), before[places], EW.metric, 1000, 0)
                for name, step in (("p_bootstrap", CHANCE_STEP), ("high", SCORE_STEP), ("low", SCORE_STEP)):
                    if told.get(name) is not None:
                        fits = fits and abs(getattr(exact, name) - told[name]) <= step + 1e-9
            if fits:
                possible.append(bits)
        for place, number in enumerate(block):
            if len({bits[place] for bits in possible}) == 1:
                self.told[number] = possible[0][place]


def seen(person: Person, model: str) -> dict[str, dict[str, Any]]:
    """Return the scores that the board shows of a submission: its own ("") and the EW differences by perturbation."""
    shown: dict[str, dict[str, Any]] = {}
    for row in person.get("/api/tasks/sqa-es/evaluations", state="done").json():
        if row["model"] == model and row["prefix"]:
            for transform in json.loads(row["result"]["metadata_json"])["transforms"]:
                shown[transform["transform"]] = transform.get("differences", {}).get("ew", {})
        elif row["model"] == model:
            shown[""] = {key: row["result"][key] for key in ("perf",) if row["result"][key] is not None}
    return shown


@pytest.fixture
def quick(board: Board) -> Board:
    """Yield a board whose question task computes only the ranking score."""
    only = {"eval_metrics": ("ew",), "difference_metrics": ("ew",), "default_weights": {"ew": 1.0}}
    board.tasks["sqa-es"] = replace(board.tasks["sqa-es"], **only)
    return board


@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_submissions_reveal_no_answer(quick: Board, seed: int) -> None:
    """Regression test: differences and p-values of perturbations revealed all 45 answers within 12 submissions."""
    quick.register_dataset("sqa-es", "closed", "mini-es", list(KINDS))
    random, questions = Random(seed), load_questions("mini-es")
    secret = [random.random() < 0.5 for _ in questions]
    candidates = [q.page if right else f"page {i}" for i, (q, right) in enumerate(zip(questions, secret, strict=True))]
    hidden = quick.examples("sqa-es", "closed"), quick.examples("sqa-es", "robustness-closed")
    kept = ("reference", "page", "tags")  # hidden from the attacker, who knows the ids
    inputs = [[{k: v for k, v in e.items() if k not in kept} for e in examples] for examples in hidden]
    attacker = Attacker(dict(zip(("", "robustness"), inputs, strict=True)), candidates, random)
    scored = 0
    with serving(quick, ServeConfig(Address(max_body=1 << 24), SUBMISSIONS)) as url:
        ann = signed_up(quick, url, "ann")
        for number in range(SUBMISSIONS):
            block = [(number * BLOCK + i) % len(questions) for i in range(BLOCK)]
            ann.submit(f"m{number}", attacker.submit(block), "sqa-es")
            worker.work(quick, until_empty=True)
            if shown := seen(ann, f"m{number}"):
                scored += 1
                attacker.learn(block, shown)
            ann.ask("DELETE", f"/api/tasks/sqa-es/models/m{number}")
    decoded = [number for number, right in attacker.told.items() if right == secret[number]]
    assert len(decoded) == len(attacker.told)  # the attacker's inferences are correct
    assert (decoded, scored) == ([], LOOKS)


def everything_shown(url: str, board: Board) -> str:
    """Return the text of all responses about two submissions that a visitor can get, without times."""
    paths = ["evaluations", "leaderboard", "leaderboard?weights=ew=1,dal=1", "models", "datasets"]
    paths += [f"models/m{i}/log" for i in range(2)] + [f"models/m{i}/examples?dataset=closed" for i in range(2)]
    said = "\n".join(Person(url).get(f"/api/tasks/sqa-es/{path}").text for path in paths)
    said += json.dumps(board.export("sqa-es"), separators=(",", ":"))
    return re.sub(r'"(created|queued|started|finished|time)":[\d.]+|in [\d.]+ s', "", said)


def test_different_answers_look_the_same(board: Board, tmp_path: Path) -> None:
    """On both boards, a submission answers three questions correctly, but different ones. The boards look the same."""
    questions, told = load_questions("mini-es")[:24], []
    for number in range(2):
        right = [5 * number + i for i in range(3)]
        other = Board.open(BoardConfig(tmp_path / f"b{number}"))
        with other.engine.begin() as connection:
            connection.execute(update(ABOUT).where(ABOUT.c.key == "secret").values(value="the same"))
        pages = ["Peru" if i in right else f"Page {number}{i}" for i in range(24)]
        example = {"language": "es", "reference": ["x y z"]}
        lines = [
            example | {"id": q.id, "source": [" ".join(s) for s in q.sentences], "page": page}
            for q, page in zip(questions, pages, strict=True)
        ]
        file = tmp_path / f"q{number}.jsonl"
        file.write_bytes(as_lines(lines))
        other.register_dataset("sqa-es", "closed", str(file), ["casing", "names"])
        for name, guess in (("m0", "Peru"), ("m1", "Nowhere")):
            rows: Rows = []
            for prefix in ("", "robustness-", "fairness-"):
                for example in other.examples("sqa-es", f"{prefix}closed"):
                    words = sum(len(sentence.split()) for sentence in example["source"])
                    rows += rows_of(example["id"], words, guess, words - words % 3)
                    rows[-1]["g"] = words
            other.register_model("sqa-es", name, "submission", as_lines(rows))
        worker.work(other, until_empty=True)
        exact = {row["model"]: row["metrics"]["ew"] for row in other.leaderboard("sqa-es")["rows"]}
        with serving(other) as url:
            told.append((exact, everything_shown(url, other)))
    assert told[0][0]["m0"] == told[1][0]["m0"] > 0
    assert told[0][1] == told[1][1]


@pytest.mark.parametrize("examples", [20, 45, 147, 500])
def test_one_answer_rarely_changes_the_shown_score(examples: int) -> None:
    """Over the board's possible secrets, the score changes with a probability of at most about 1 in SHARE."""
    keys = [f"secret {i}" for i in range(3000)]
    for share in (0.0, 0.31, 0.5, 0.977):
        before, after = share, share + 1 / examples
        changed = [rounded("ew", before, examples, key) != rounded("ew", after, examples, key) for key in keys]
        assert sum(changed) / len(keys) < 1 / SHARE + 0.02
        shown = [rounded("ew", before, examples, key) for key in keys]
        assert np.mean(shown) == pytest.approx(before, abs=0.02) and len(set(shown)) <= 2


def test_all_scores_of_a_person_count(board: Board) -> None:
    """Deleted and withdrawn submissions and all accounts of an invitation count, but failed evaluations do not."""
    add_data(board, looks=2)
    add_data(board, "open", phase="open")
    with serving(board) as url:
        code = invitation(board, uses=2)
        ann, again = (signed_up(board, url, name, code) for name in ("ann", "ann-2"))
        bob = signed_up(board, url, "bob")

        def scored(person: Person, name: str, **config: object) -> list[str]:
            assert person.submit(name, model(name, **config)).status_code == 201
            worker.work(board, until_empty=True)
            return [e["dataset"] for e in board.evaluations("toy", "done") if e["model"] == name]

        assert scored(ann, "bad", refusal="no such thing") == []
        assert scored(ann, "first") == ["data", "open"]
        assert ann.ask("DELETE", "/api/tasks/toy/models/first").status_code == 204
        assert scored(again, "second") == ["data", "open"]
        assert again.ask("POST", "/api/tasks/toy/models/second/withdraw").status_code == 204
        assert scored(ann, "third") == ["open"]
        [failed] = [e for e in board.evaluations("toy", "failed") if e["model"] == "third"]
        assert "used up" in failed["error"] and failed["result"] is None
        assert ann.ask("POST", "/api/tasks/toy/models/third/requeue").json() == {"queued": 1}
        worker.work(board, until_empty=True)
        assert "third" not in {e["model"] for e in board.evaluations("toy", "done") if e["dataset"] == "data"}
        told = ann.submit("fourth", model("fourth")).json()
        assert list(told["cannot"]) == ["data"] and "used up" in told["cannot"]["data"][0]
        assert scored(bob, "bobs") == ["data", "open"]
    board.register_model("toy", "ours", "submission", model("ours"))  # the organiser's submissions do not count
    assert worker.work(board, until_empty=True) >= 2


COPIES = {  # variants of the text "Lima, Perú"
    "zero-width space": "Li\u200bma, Perú",
    "soft hyphen": "Li\u00adma, Perú",
    "word joiner": "\u2060Lima, Perú",
    "case": "LIMA, perú",
    "composition": "Lima, Peru\u0301",
    "zero-width space before a mark": "Lima, Peru\u200b\u0301",
    "compatible letters": "\uff2cima, Perú",
    "variation selector": "Lima\ufe0f, Perú",
    "grapheme joiner": "Lima\u034f, Perú",
    "Hangul filler": "Lima\u3164, Perú",
    "punctuation": "Lima; Perú.",
}


@pytest.mark.parametrize("change", COPIES)
def test_invisible_changes_do_not_hide_a_copy(change: str) -> None:
    task = sqa_task.spanish()

    def digest(text: str, guess: str, more: Sequence[str] = (), at: int = 2) -> str:
        words = [*text.split(" "), *more]
        steps = [{"token": w, "g": i + 1, "guess": guess, "buzz": i + 1 == at} for i, w in enumerate(words)]
        return worker.digest_of(task, [{"id": "q", "answered": True, "steps": steps}])

    original = digest("Lima, Perú", "Lima, Perú")
    assert digest(COPIES[change], "Lima, Perú") == original == digest("Lima, Perú", COPIES[change])
    assert digest("Lima, Perú", "Lima, Perú", ["\u200b"]) == original  # a separate step
    assert digest("Lima, Chile", "Lima, Perú") != original != digest("Lima, Perú", "Lima, Chile")
    assert digest("Lima, Perú", "Lima, Perú", at=1) != original


def test_only_the_owner_may_read_a_board(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        board = Board.open(BoardConfig(tmp_path / "new" / "board", tasks=("board_task:make",)))
        add_data(board)
        board.register_model("toy", "m", "submission", model())
        worker.work(board, until_empty=True)
        board.engine.dispose()
    finally:
        os.umask(umask)
    modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "new").rglob("*")}
    assert {path.name for path in modes} >= {"board.sqlite", "data.jsonl", "m.submission"}
    assert not {path: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)}
