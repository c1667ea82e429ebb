"""Who is right at the end, and which names the other lost."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from experiments.studies.fluent_or_right import counts, failures, main
from sqa.core.types import Guess, Question

SOURCE = "Nació en Riobamba y gobernó el Perú"
QUESTION = Question("q", "xqb-es", "es", (tuple(SOURCE.split()),), ("Born in Riobamba he governed Peru",), "Someone")


def trace(hypothesis: str, rank: list[int], first: str):
    guesses = [[Guess(first, 1.0)] for _ in rank]
    return SimpleNamespace(question=QUESTION, hypotheses=(hypothesis,), rank=np.array(rank), guesses=guesses)


RIGHT = trace("Born in Riobamba he ruled Peru", [0, 1], "Someone")
WRONG = trace("Born in Rome he ruled Peru", [1, 2], "Nero")
SILENT = trace("", [], "")


def test_counts_go_by_the_last_guess():
    pairs = [(RIGHT, RIGHT), (RIGHT, WRONG), (WRONG, RIGHT), (WRONG, RIGHT), (SILENT, WRONG)]
    assert counts(pairs) == {"both": 1, "A only": 1, "B only": 2, "neither": 1}


def test_failures_name_what_was_lost_and_invented():
    assert list(failures([(WRONG, RIGHT), (RIGHT, RIGHT), (WRONG, WRONG), (RIGHT, WRONG)])) == [
        ["q", "Someone", "riobamba", "rome", "Nero"]
    ]
    assert list(failures([(SILENT, RIGHT)])) == [["q", "Someone", "riobamba, peru", "", "-"]]


def test_runs_that_are_none_are_refused(tmp_path, capsys):
    assert main([str(tmp_path), str(tmp_path)]) == 2
    assert "is not the folder of a finished run" in capsys.readouterr().err
