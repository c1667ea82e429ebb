"""Return values of user code are checked at the call, and a wrong value gives a one-line error, not a traceback."""

from pathlib import Path
from typing import Any

import pytest
from own_layouts import played, write

from sqa.core.errors import SqaError
from sqa.pipeline.saving import save

HEAD = """
import math
import numpy as np
from sqa.core.types import Buzz, Emission, Guess, Question, Write
from sqa.metrics.latency import Formula
from sqa.metrics.quality.text_metric import MeanOfSegments

class Odd:
    def __repr__(self):
        raise ValueError("no repr\\nat all")
    def __eq__(self, other):
        raise TypeError("incomparable")
    __hash__ = None

METRIC = dict(name="m", label="M", unit="u", digits=2, kind="lag", higher_is_better=True)
METRIC |= dict(signature=lambda self: "m", stats=lambda self, t: [1.0, 1.0], score=lambda self, s: s[0])

"""
MINE = "mine.py:mine"
GUESSER, BUZZER = {"guesser": MINE}, {"guesser": "doubles:build_guesser", "buzzer": MINE}
POLICY = {"translator": {"name": "command", "command": ["cat"], "policy": {"name": MINE}}}
TRANSLATOR, METRIC = {"translator": MINE}, {"metrics": [MINE]}
QUALITY: dict[str, Any] = {"quality": [{MINE: {}}]}
GUESS = "guess=lambda self, texts, n: [[] for _ in texts]"
PARTS: dict[str, tuple[dict[str, Any], str]] = {  # checked value -> keys of the run config, members of the class
    "guess": (GUESSER, "guess=lambda self, texts, n: X"),
    "guess_prefixes": (GUESSER, f"{GUESS}, guess_prefixes=lambda self, texts, n: X"),
    "pages": (GUESSER, f"{GUESS}, pages=property(lambda self: X)"),
    "fingerprint": (GUESSER, f"{GUESS}, fingerprint=lambda self: X"),
    "decide": (BUZZER, "decide=lambda self, h: X"),
    "arguments": (BUZZER, "decide=lambda self: X"),
    "decide_with_answer": (BUZZER, "oracle=True, decide_with_answer=lambda self, h, page: X"),
    "oracle": (BUZZER, "oracle=X, decide_with_answer=lambda self, h, page: [Buzz(0.5, False) for _ in h]"),
    "translate": (TRANSLATOR, "translate=lambda self, source: X if list(source) else None"),
    "word": (TRANSLATOR, "translate=lambda self, source: (X for word in source)"),
    "translate_batch": (TRANSLATOR, "translate_batch=lambda self, q: X"),
    "show": (POLICY, "start=1, show=lambda self, shown, t, ended: X"),
    "start": (POLICY, "start=X, show=lambda self, shown, t, ended: t[-1]"),
    "name": (METRIC, "**METRIC | dict(name=X)"),
    "digits": (METRIC, "**METRIC | dict(digits=X)"),
    "signature": (METRIC, "**METRIC | dict(signature=lambda self: X)"),
    "stats": (METRIC, "**METRIC | dict(stats=lambda self, t: X)"),
    "score": (METRIC, "**METRIC | dict(score=lambda self, s: X)"),
    "score_many": (METRIC, "**METRIC | dict(score_many=lambda self, s: X)"),
}
OTHERS: dict[str, tuple[dict[str, Any], str]] = {  # the same for parts that are not classes
    "compute": (METRIC, "Formula('mine', 'Mine', lambda d, c: X)"),
    "digits of a formula": (METRIC, "Formula('mine', 'Mine', lambda d, c: d, digits=X)"),
    "texts": (QUALITY, "MeanOfSegments('mine', 'mine', None, lambda segments: X)"),
}
ODD = "None | b'x' | 'a b' | [Odd()] | np.zeros((3, 3))"


def run_with(folder: Path, checked: str, value: str) -> None:
    """Run and report with `checked` replaced by user code that returns `value`."""
    keys, members = (PARTS | OTHERS)[checked]
    made = members if checked in OTHERS else f"type('Mine', (), dict({members}))()"
    write(folder, mine=f"{HEAD}def mine():\n    return {made.replace('X', value)}\n")
    save(played(folder, **keys), folder / "runs")


def said(error: SqaError) -> str:
    """Return an error's text, which must be one line."""
    assert error.exit_code in (2, 3) and "\n" not in str(error)
    return str(error)


@pytest.mark.parametrize(
    ("checked", "value", "line"),
    [
        ("guess", "('Laser', 1.0)", "guess() must return a list of (page, score) for each text"),
        ("guess", "[('Laser', 1.0) for _ in texts]", "Expected `array`, got `str` - at `$[0][0]`"),
        ("guess", "[[('Laser', math.nan)] for _ in texts]", "guesses must be sorted by finite scores"),
        ("guess", "[[(7, 1.0)] for _ in texts]", "Expected `str`, got `int` - at `$[0][0][0]`"),
        ("guess", "[[('A', 1.0), ('A', 1.0)] for _ in texts]", "expected at most 50 guesses on distinct pages"),
        ("guess", "[[('A', 1.0)] for _ in texts[1:]]", "the guesser answered 9 of 10 prefixes"),
        ("guess_prefixes", "[[('A', 1.0), ('B', 2.0)] for _ in texts]", "best first"),
        ("pages", "3", "pages must be the titles of pages, or None; Expected `array | null`, got `int`"),
        ("fingerprint", "7", "fingerprint() must return text, or None; Expected `str | null`, got `int`"),
        ("decide", "[Buzz(1.0, 'yes') for _ in h]", "Expected `bool`, got `str` - at `$[0].buzz`"),
        ("decide", "[Buzz(math.inf, True) for _ in h]", "a buzz score must be finite"),
        ("oracle", "'no'", "oracle must be true or false; Expected `bool`, got `str`"),
        ("translate", "'un texto'", "translate() must return words one after the other"),
        ("word", "Write('a', 2)", "erase must be in 0..0"),
        ("word", "'dos palabras'", "a token must be one word without spaces, got 'dos palabras'"),
        ("word", "7", "translate() must return words one after the other, str or Write(token, erase); Expected"),
        ("translate_batch", "[[Emission(0, 'a', 9, False)] for _ in q]", "g must be in 0.."),
        ("show", "'texto'", "show() must return a tuple of words"),
        ("start", "0", "start must be a number of words, 1 or more"),
        ("name", "'  lag'", "name must be one line of text without surrounding spaces"),
        ("digits", "10 ** 5000", "digits must be a number of digits, 0 to 17"),
        ("stats", "[math.nan, 1.0]", "stats() must return a list of finite numbers"),
        ("score", "None", "score() must return a finite number"),
        ("word", "'\\ud800'", "surrogates not allowed"),
        ("word", "next(source)", "mine.py:19: mine.py:mine: question q0: "),
        ("word", "next(source)", "the source has ended; use `for word in source` or next(source, None)"),
        ("word", "exit(3)", "calls sys.exit(); raise an error instead"),
        ("translate", "iter(lambda: 'w', 1)", "over 1000 words per source word; does translate() ever end?"),
        ("guess_prefixes", "exit(3)", "calls sys.exit(); raise an error instead"),
        ("arguments", "[]", "decide() is called with 1 arguments; "),
        ("stats", "[1.0] * (1 + (t.question.id != 'q0'))", "stats() must return 1 numbers as before, got 2"),
        ("score_many", "s[:, 0] + 1", "score_many() must return the values of score(); got"),
        ("digits of a formula", "True", "digits must be of type int, got bool"),
    ],
)
def test_wrong_return_value_gives_a_one_line_error(tmp_path: Path, checked: str, value: str, line: str) -> None:
    with pytest.raises(SqaError) as raised:
        run_with(tmp_path, checked, value)
    assert line in said(raised.value)


@pytest.mark.parametrize("checked", [*PARTS, *OTHERS])
def test_invalid_return_value_gives_no_traceback(tmp_path: Path, checked: str) -> None:
    """Each run succeeds or ends with a one-line error and an exit code."""
    for value in ODD.split(" | "):
        try:
            run_with(tmp_path, checked, value)
        except SqaError as error:
            said(error)


def test_prints_of_a_part_go_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_with(tmp_path, "guess", "print('seen') or [[('A', 1.0)] for _ in texts]")
    captured = capsys.readouterr()
    assert captured.out == "" and "seen" in captured.err


def test_numpy_numbers_are_accepted(tmp_path: Path) -> None:
    run_with(tmp_path, "guess", "[[('Laser', np.float32(2)), ('Maser', np.int64(1))] for _ in texts]")


def test_failed_text_metric_is_reported_with_its_reason(tmp_path: Path) -> None:
    run_with(tmp_path, "texts", "[1.0]")
    report = (tmp_path / "runs" / "mine" / "report.tsv").read_text(encoding="utf-8")
    assert "mine\tn/a\tn/a\tn/a\t2\tmean score\tnot computed: 1 scores for 2 segments" in report
