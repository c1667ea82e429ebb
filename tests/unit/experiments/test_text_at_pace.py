"""Texts at equal pace, and the script that recomputes the headline table."""

import subprocess
import sys

import numpy as np
import pytest

from experiments.paper.figure3 import STORY
from experiments.studies import text_at_pace
from sqa.core import ROOT


@pytest.mark.parametrize(("effect", "found"), [(0, False), (0.1, True)])
def test_pace_alone_is_not_an_effect_of_the_text(effect, found):
    """Every text wins less at a later pace, and the last of four texts wins `effect` more at each pace."""
    drawn, table = np.random.default_rng(3).random(300), np.ones((300, 4, 4, 2))
    for text, pace in np.ndindex(4, 4):
        table[:, text, pace, 0] = (drawn < 0.5 + effect * (text == 3)) * (0.6 - 0.05 * pace)
    assert (text_at_pace.p_of(table, 999) <= text_at_pace.ALPHA) == found


def test_script_recomputes_the_headline_table():
    script = ROOT / "experiments" / "ledger" / "recompute.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in printed.splitlines() if " p = " not in line and "off by" not in line]
    shown = sum(len(ks) for *_, ks in STORY)
    assert len(rows) == shown + 6 + 12 and all(float(row[-1]) < 1e-6 for row in rows)
