"""What a part of one's own may return, and the one line that says what it returned instead."""

import os
import random
import re
from pathlib import Path

import pytest
from own_layouts import played

from sqa.core.errors import SqaError
from sqa.data import perturb
from sqa.data.datasets import load_questions
from sqa.pipeline.saving import save

CASES = int(os.environ.get("SQA_OWN_CASES", "6"))  # random answers of each method
SEED = int(os.environ.get("SQA_OWN_SEED", "20261123"))

HEAD = """
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sqa.core.types import Buzz, Emission, Guess, Question, Write
from sqa.data.perturb import Perturbation
from sqa.metrics.latency import SIMULEVAL_1_1, Formula
from sqa.metrics.quality.text_metric import MeanOfSegments


class Odd:
    def __repr__(self):
        raise ValueError("no repr\\nat all")
    def __len__(self):
        return 3
    def __eq__(self, other):
        raise TypeError("incomparable")
    __hash__ = None
"""
GUESS = "def guess(self, texts, n): return [[] for _ in texts]"
METRIC = [
    "name, label, unit, digits, kind, higher_is_better = 'm', 'M', 'u', 2, 'lag', True",
    "def signature(self): return 'm'",
    "def stats(self, t): return [1.0, 1.0]",
    "def score(self, s): return float(s[0])",
]
BUZZ = "def decide_with_answer(self, h, page): return [Buzz(0.5, False) for _ in h]"
HERE = "mine.py:build"
KEYS = {  # part -> keys of a run's config that ask for it
    "translator": {"translator": HERE},
    "guesser": {"guesser": HERE},
    "buzzer": {"guesser": "doubles:build_guesser", "buzzer": HERE},
    "policy": {"translator": {"name": "command", "command": ["cat"], "policy": {"name": HERE}}},
    "metric": {"metrics": [HERE]},
    "convention": {"metrics": [f"al@{HERE}"]},
    "quality": {"quality": [{HERE: {}}]},
}
PARTS: dict[str, dict[str, str | list[str]]] = {  # part -> method -> members of its class, or all of it
    "translator": {
        "translate": ["def translate(self, source): read = list(source); return EXPRESSION"],
        "word": ["def translate(self, source): yield from (EXPRESSION for word in source)"],
        "translate_batch": ["def translate_batch(self, q): return EXPRESSION"],
    },
    "guesser": {
        "guess": ["def guess(self, texts, n): return EXPRESSION"],
        "guess itself": ["guess = EXPRESSION"],
        "guess_prefixes": [GUESS, "def guess_prefixes(self, texts, n): return EXPRESSION"],
        "pages": [GUESS, "pages = property(lambda self: EXPRESSION)"],
        "fingerprint": [GUESS, "def fingerprint(self): return EXPRESSION"],
    },
    "buzzer": {
        "decide": ["def decide(self, h): return EXPRESSION"],
        "decide_with_answer": ["oracle = True", "def decide_with_answer(self, h, page): return EXPRESSION"],
        "oracle": [BUZZ, "oracle = property(lambda self: EXPRESSION)"],
    },
    "policy": {
        "show": ["start = 1", "def show(self, shown, t, ended): return EXPRESSION"],
        "start": ["def show(self, shown, t, ended): return t[-1]", "start = property(lambda self: EXPRESSION)"],
    },
    "metric": {
        "name": [*METRIC, "name = EXPRESSION"],
        "digits": [*METRIC, "digits = property(lambda self: EXPRESSION)"],
        "signature": [*METRIC, "def signature(self): return EXPRESSION"],
        "stats": [*METRIC, "def stats(self, t): return EXPRESSION"],
        "score": [*METRIC, "def score(self, s): return EXPRESSION"],
        "compute": "Formula('mine', 'Mine', lambda d, c: EXPRESSION)",
    },
    "convention": {"convention": "replace(SIMULEVAL_1_1, name='c', cut=EXPRESSION)"},
    "quality": {"scores": "MeanOfSegments('mine', 'mine', None, lambda segments: EXPRESSION)"},
    "perturbation": {"change": "Perturbation('mine', 'robustness', lambda q, rng: EXPRESSION)"},
}
PART_OF = {method: part for part, methods in PARTS.items() for method in methods}
ANY = """
None | True | -1 | math.nan | 10 ** 400 | '' | 'Laser' | 'a b' | '\\ud800' | b'x' | [] | {} | {'Laser': 1.0}
| ('Laser', 1.0) | [[('Laser', 1.0)]] | [None] | [['Laser']] | Odd() | [Odd()] | object | iter([]) | np.array(3.0)
| np.zeros((3, 3)) | np.array(['a']) | Decimal(1) | 1j | [Guess('Laser', 1.0)] | Buzz(1.0, True) | NotImplemented
| Write('', 0) | Write(None, 0) | Write('a', True) | 'a\\tb' | '\\x00'
"""
ALSO = {  # answers of the right shape with something wrong inside, X
    "guess": "[[('Laser', X)] for _ in texts] | [[(X, 1.0)] for _ in texts] | [[X] for _ in texts]",
    "decide": "[Buzz(X, True) for _ in h] | [Buzz(1.0, X) for _ in h] | [X for _ in h] | [(1.0, True) for _ in h]",
    "translate_batch": """
[[Emission(X, 'a', 1, False)] for _ in q] | [[Emission(0, X, 1, False)] for _ in q] | [[X] for _ in q]
| [[Emission(0, 'a', X, False)] for _ in q] | [[Emission(0, 'a', 1, X)] for _ in q]
| [[Emission(0, 'a', 1, False, X)] for _ in q] | [X for _ in q] | [[] for _ in q[1:]]
""",
    "translate": "[X for _ in read] | (X for _ in read) | [*read, X]",
    "show": "(X,) | t[-1] + (X,)",
    "stats": "[X, 1.0] | np.array([X, 1.0], dtype=object) | [1.0] * (1 + ord(t.question.id[-1]) % 3)",
    "compute": "[X] * len(d.source) | np.array(d.source)[1:]",
    "change": """
replace(q, sentences=X) | replace(q, sentences=(X,)) | replace(q, sentences=((X,),)) | replace(q, page=X)
| replace(q, reference=(X,)) | replace(q, language=X) | replace(q, id=X)
""",
    "scores": "[X for _ in segments]",
}
ALSO |= {"guess_prefixes": ALSO["guess"], "decide_with_answer": ALSO["decide"], "word": "X"}


def answers(table: str) -> list[str]:
    return re.split(r"\s\| ", table.strip())


def written(folder: Path, method: str, expression: str) -> None:
    code = PARTS[PART_OF[method]][method]
    made = code if isinstance(code, str) else "P()"
    members = "" if isinstance(code, str) else "".join(f"    {member}\n" for member in ("", *code))
    text = f"{HEAD}\n\nclass P:\n    pass\n{members}\n\ndef build():\n    return {made}\n"
    (folder / "mine.py").write_text(text.replace("EXPRESSION", expression), encoding="utf-8")


def play(folder: Path, method: str) -> None:
    """Everything that a run does with the part, its report included."""
    if method == "change":
        [kind] = perturb.chosen([f"{folder / 'mine.py'}:build"])
        for question in load_questions("mini-es", 3):
            perturb.perturb(question, kind, 0)
        return
    save(played(folder, folder / "runs", **KEYS[PART_OF[method]]), folder / "runs")


@pytest.mark.parametrize(
    ("method", "expression", "line"),
    [
        ("guess", '("Laser", 1.0)', "mine.py:build: guess() must return a list of guesses (page, score) for each of"),
        ("guess", '[("Laser", 1.0) for _ in texts]', "guess 1 of text 1 is str 'Laser'"),
        ("guess", "[[('Laser', math.nan)] for _ in texts]", "the score of guess 1 of text 1 is float nan"),
        ("guess", "[[(7, 1.0)] for _ in texts]", "the page of guess 1 of text 1 is int 7"),
        ("guess", "[[('A', 1.0), ('A', 1.0)] for _ in texts]", "text 1: expected at most 50 guesses on distinct pages"),
        ("guess", "[[('A', 1.0)] for _ in texts[1:]]", "each of the 10 texts, got 9 of them"),
        ("guess itself", "lambda self, texts: []", "mine.py:build: guess() cannot be called: "),
        ("guess_prefixes", "[[('A', 1.0), ('B', 2.0)] for _ in texts]", "best first"),
        ("pages", "3", "mine.py:build: pages must be the titles of pages, or None, got int 3"),
        ("fingerprint", "7", "fingerprint() must return text of one line, got int 7"),
        ("decide", "[Buzz(1.0, 'yes') for _ in h]", "that of step 1 is str 'yes'"),
        ("oracle", "'no'", "oracle must be True or False, got str 'no'"),
        ("translate", "'un texto'", "translate() must return words one after the other"),
        ("word", "Write('a', 2)", "erase is int 2"),
        ("word", "'dos palabras'", "word 1 is str 'dos palabras'"),
        ("show", "'texto'", "show() must return a tuple of words, got str 'texto'"),
        ("start", "0", "start must be a whole number of words, 1 or more, got int 0"),
        ("name", "'  lag'", "name must be text of one line without blanks around it, got str ' lag'"),
        ("stats", "[math.nan, 1.0]", "stats() must return a list of finite numbers"),
        ("score", "None", "score() must return a finite number"),
        ("digits", "10 ** 5000", "digits must be a whole number of digits, 0 to 17, got int"),
        ("convention", "True", "cut must be of type str, got bool True"),
        ("change", "replace(q, page=np.array([]))", "got `numpy.ndarray` - at `$.page`"),
    ],
)
def test_nonsense_is_one_line(tmp_path: Path, method: str, expression: str, line: str) -> None:
    written(tmp_path, method, expression)
    with pytest.raises(SqaError) as raised:
        play(tmp_path, method)
    message = str(raised.value)
    assert line in message and "mine.py" in message and "\n" not in message and raised.value.exit_code in (2, 3)


@pytest.mark.parametrize("method", PART_OF)
def test_whatever_it_returns(tmp_path: Path, method: str) -> None:
    """A run that is whole, or one line with an exit code."""
    rng = random.Random(f"{SEED} {method}")
    for case in range(CASES):
        shape = rng.choice(answers(ALSO[method])) if method in ALSO and rng.random() < 0.6 else "X"
        expression = shape.replace("X", rng.choice(answers(ANY)))
        folder = tmp_path / str(case)
        folder.mkdir()
        written(folder, method, expression)
        try:
            play(folder, method)
        except SqaError as error:
            assert error.exit_code in (2, 3) and "\n" not in str(error) and "mine.py" in str(error), expression
        except Exception as error:
            raise AssertionError(f"{method}: {expression}") from error


def test_a_metric_of_texts_that_cannot_be_had_says_where(tmp_path: Path) -> None:
    written(tmp_path, "scores", "[1.0]")
    play(tmp_path, "scores")
    expected = "mine.py:build: measure(): mine: 1 scores for 2 segments"
    assert expected in (tmp_path / "runs" / "mine" / "report.tsv").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text("def build():\n    return range(3)\n", encoding="utf-8")
    play(tmp_path, "scores")
    report = (tmp_path / "runs" / "mine" / "report.tsv").read_text(encoding="utf-8")
    assert "mine.py:build made a range, which has no name, unit" in report


def test_pairs_are_guesses_and_build_may_take_nothing(tmp_path: Path) -> None:
    written(tmp_path, "guess", "[[('Laser', 2), ('Maser', 1.5)] for _ in texts]")
    result = played(tmp_path, tmp_path / "runs", guesser="mine.py:build")
    assert [tuple(guess) for guess in result.traces[0].guesses[0]] == [("Laser", 2.0), ("Maser", 1.5)]  # type: ignore[index]
    with pytest.raises(SqaError, match="guesser.k: unknown"):
        played(tmp_path, tmp_path / "runs", guesser={"name": "mine.py:build", "k": 3})
