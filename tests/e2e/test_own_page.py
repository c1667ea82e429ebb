"""The commands of docs/own_parts.md run in order, in the folder that the first command creates."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from documented.pages import blocks

from sqa.core import ROOT

PAGE = (ROOT / "docs" / "own_parts.md").read_text("utf-8")
EXAMPLE = ROOT / "docs" / "example"
PARTS = ("Translator", "Policy", "Guesser", "Buzzer", "Metric")


def typed() -> Iterator[str]:
    """Yield the commands of the page in order."""
    yield from (line for line in blocks(re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))[1] if line.startswith("sqa "))


def shown(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_page_shows_the_files() -> None:
    code, shown_blocks = (EXAMPLE / "parts.py").read_text("utf-8"), shown("python")
    assert all(block in code for block in shown_blocks)
    missing = code
    for block in shown_blocks:
        missing = missing.replace(block, "")
    assert missing.split() == code[: code.index("import")].split()  # the page omits only the docstring
    [config] = shown("yaml")
    assert (EXAMPLE / "own.yaml").read_text("utf-8").replace("docs/example/", "").endswith(config)


@pytest.mark.slow
def test_every_command_of_the_page_runs_in_order(tmp_path, monkeypatch, command):
    """Every command that `sqa init` prints also runs.  Data come from no mirror; only training needs torch."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SQA_MIRROR", raising=False)
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))
    outputs = dict[str, str]()

    def run(line: str) -> str:
        """Run a command line with file names expanded, and return its stderr."""
        words = [path for word in shlex.split(line) for path in (sorted(map(str, Path().glob(word))) or [word])]
        outcome = command(*words[1:])
        assert not outcome.code, f"{line}\n{outcome.err}"
        outputs[line] = outcome.out
        return outcome.err

    first, *others = typed()
    suggested = [line.strip() for line in run(first).splitlines() if line.startswith("    sqa ")]
    monkeypatch.chdir("start")
    for line in dict.fromkeys([*others, *suggested]):
        run(line)
    assert first == "sqa init start" and len(suggested) >= 12
    for part in PARTS:
        assert [line for line in suggested if f"parts.py:{part}" in line], part
    assert "length\t1.0" in outputs["sqa run own.yaml 'metrics=[ew,parts.py:Metric]'"]
    outcomes = {outputs[line] for line in outputs if line.startswith("sqa run own.yaml")}
    assert len(outcomes) >= 9  # parts and keys change the output
    assert "source words read before" in outputs["sqa config keys translator parts.py:Translator"]
