"""The guesser of docs/own_data.md turns recorded answers of people into runs."""

import json
import re
from pathlib import Path

from own_layouts import played, write

from sqa.core import ROOT


def test_recorded_answers_of_people_make_a_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "own_data.md").read_text("utf-8")
    [code] = re.findall(r"```python\n(.*?class People.*?)```", page, re.DOTALL)
    write(tmp_path, people=code)
    keys = {
        "guesser": {"name": "people.py:People"},
        "buzzer": {"name": "threshold", "signal": "score", "threshold": 0.5},
    }
    shown = played(tmp_path)  # the questions' answers are Spain and France
    rows = zip((trace.prefixes.texts[-1] for trace in shown.traces), ((3, "Spain"), (5, "Italy")), strict=True)
    lines = [json.dumps({"text": text, "step": step, "answer": answer}) for text, (step, answer) in rows]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines), encoding="utf-8")
    right, wrong = played(tmp_path, **keys).traces
    assert [buzz.buzz for buzz in right.buzzes or ()].index(True) == 3
    assert [buzz.buzz for buzz in wrong.buzzes or ()].index(True) == 5
    assert right.correct[3] and not wrong.correct.any()
