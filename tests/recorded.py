"""Compare output files and figures with recorded output; a changed digit, word or line fails the test.

    SQA_RECORD=1 python -m pytest tests/e2e/paper      updates the recorded output; `git diff` then shows the changes

Numbers may differ by one unit of their last digit, because sums differ between processors. Each test file has a JSON
file, recorded/TEST.json, that maps `folder/name` of an output to a list of contents, because several tests may write
an output of the same name.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from figure_contents import contents

from experiments import outputs
from sqa import __version__
from sqa.report import plots

RECORD = "SQA_RECORD"
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?")
Keep = Callable[[str, str], None]  # (name, content); fails if the content was not recorded


@contextmanager
def recorded(tests: Path, whole: bool = False, rendered: bool = True) -> Iterator[Keep]:
    """Compare the output files and figures written within the `with` block with the recorded output of a test file.

    With `whole`, all recorded output must be written within the block.  If SQA_RECORD is set, the output is recorded.
    Unless `rendered`, figures are laid out, but their files are empty, which saves a third of the time of most items.
    """
    path = tests.parent / "recorded" / f"{tests.stem}.json"
    records: dict[str, list[str]] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    made: dict[str, list[str]] = {}
    kept: set[str] = set()

    def keep(key: str, text: str) -> None:
        content = plain(text)
        kept.add(key)
        if os.environ.get(RECORD):
            if content not in made.setdefault(key, []):
                made[key].append(content)
        else:
            assert key in records, f"{key}: not recorded; {RECORD}=1 records it"
            assert any(same(old, content) for old in records[key]), f"{key}: {difference(records[key], content)}"

    write, save = outputs.Outputs.write, plots.save

    def writing(self: outputs.Outputs, name: str, text: str) -> None:
        keep(f"{self.folder.name}/{name}", text)
        write(self, name, text)

    def saving(figure: Any, folder: Path, stem: str) -> list[Path]:
        keep(f"{folder.name.rstrip('0123456789')}/{stem}", "\n".join(contents(figure)))
        if not rendered:
            figure.draw_without_rendering()
            figure.savefig = lambda path, **options: Path(path).touch()
        return save(figure, folder, stem)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs.Outputs, "write", writing)
        for module in (outputs, plots):
            patch.setattr(module, "save", saving)
        yield keep
    assert not whole or os.environ.get(RECORD) or kept == records.keys(), sorted(records.keys() - kept)
    if made:
        path.parent.mkdir(exist_ok=True)
        made = made if whole else {**records, **made}  # perhaps only some of the tests ran
        path.write_text(json.dumps(made, indent=0, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def plain(text: str) -> str:
    """Return a text with placeholders for values that differ between machines and days.

    These are temporary folders, digests, dates, versions and reasons for missing values.
    """
    text = re.sub(r"^(all\t-\t.*\t)[^\t\n]+$", r"\1WHY", text, flags=re.MULTILINE)  # a missing package or its model
    text = re.sub(r"[^\s|,(`\"]*pytest-[^\s|,)`\"]*/", "", text).replace(__version__, "VERSION")
    text = re.sub(r"version:[\d.]+", "version:OTHER", re.sub(r"\b[0-9a-f]{8,64}\b", "DIGEST", text))
    return re.sub(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?)?", "DATE", text)


def same(old: str, new: str) -> bool:
    """Return whether two texts are equal, except that decimal numbers may differ by one unit of their last digit."""
    if old == new:
        return True
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(abs(float(a) - float(b)) <= 1.01 * max(unit(a), unit(b)) for a, b in pairs)


def unit(number: str) -> float:
    """Return the value of one unit of a number's last digit, such as 0.01 for "1.25"."""
    mantissa, _, exponent = number.partition("e")
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))


def difference(versions: list[str], new: str) -> str:
    """Return a message with the first line of `new` that is in no recorded version."""
    old = {line for version in versions for line in version.splitlines()}
    fresh = [line for line in new.splitlines() if not any(same(each, line) for each in old)]
    return f"{fresh[0][:300]!r} was not recorded" if fresh else "lines are missing or in another order"
