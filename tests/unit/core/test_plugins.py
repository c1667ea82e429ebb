"""Plugins: loaded on demand, skipped if broken, named if missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

from sqa.core import ROOT


def plugin(folder: Path, name: str, source: str) -> None:
    """Write a package with one entry point to `folder`, in the layout of an installed package."""
    (folder / f"{name}_parts.py").write_text(f"from sqa.core.registry import *\n{source}", encoding="utf-8")
    metadata = folder / f"{name}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: 1\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[sqa]\n{name} = {name}_parts\n", encoding="utf-8")


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter that finds the packages of a folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "services", folder)))}
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)


def command(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return python(f"import sys; sys.argv = {['sqa', *words.split()]}; from sqa.cli import main; main()", folder)


def test_broken_plugin_is_skipped_with_a_message(tmp_path: Path) -> None:
    plugin(tmp_path, "broken", "raise RuntimeError('two\\nlines')")
    plugin(tmp_path, "greedy", "GUESSERS.register('bm25', 'mine:build')")
    plugin(tmp_path, "good", "COMMANDS.register('greet', 'no_such_module:app')\nGUESSERS.register('bm25', KNOWN)")
    parts = tmp_path / "good_parts.py"
    parts.write_text(parts.read_text().replace("KNOWN", "GUESSERS.entries['bm25']"), encoding="utf-8")  # equal entry
    shown = command("--help", tmp_path)
    assert shown.returncode == 0 and "\n  board " in shown.stdout and "greet" not in shown.stdout
    broken, greedy, good = shown.stderr.splitlines()
    assert broken == "sqa: the plugin broken (broken_parts) is skipped: RuntimeError: two lines"
    assert "greedy" in greedy and "is already registered: guessers.retrieval.bm25:build" in greedy
    assert good == "sqa: command 'greet' needs the Python package no_such_module, which is not installed"
    assert command("data list", tmp_path).stderr == ""  # the command needs no plugin


def test_unknown_name_loads_the_plugin(tmp_path: Path) -> None:
    plugin(tmp_path, "mine", "GUESSERS.register('new', 'a:b')")
    code = (
        "import sys; from sqa.core.registry import GUESSERS; "
        "print(GUESSERS.target('bm25'), 'mine_parts' in sys.modules, 'importlib.metadata' in sys.modules); "
        "print(GUESSERS.target('new'), GUESSERS.identity('new'))"
    )
    first, second = python(code, tmp_path).stdout.splitlines()
    assert (first, second) == ("guessers.retrieval.bm25:build False False", "a:b new")


def test_missing_services_error_names_the_package(tmp_path: Path):
    (tmp_path / "own.yaml").write_text("dataset: mini-es\ntranslator: fixed\nmetrics: [bleu]\n", encoding="utf-8")
    parts = {
        "scorer": "the command 'scorer' is not installed",
        "run own.yaml translator=simuleval": "unknown translator 'simuleval'",
        "run own.yaml quality=[{external:[cat]}]": "unknown quality metric 'external'",
    }
    code = (
        f"import importlib.metadata as m; m.entry_points = lambda **_: []\n"  # as if no plugin were installed
        f"import sys; from sqa.cli import main\nfor words in {['--help', *parts]}:\n"
        "    sys.argv = ['sqa', *words.split()]\n"
        "    try: main()\n    except SystemExit as end: print(f'exit {end.code}', file=sys.stderr)"
    )
    shown = python(code, tmp_path)
    assert "\n  run " in shown.stdout and "board" not in shown.stdout
    helped, *refused = re.findall(r"(.*?)exit (\d)\n", shown.stderr, re.DOTALL)
    assert helped == ("", "0")
    for (said, exit_code), part in zip(refused, parts.values(), strict=True):
        how = f"pip install -e {ROOT / 'services'}"
        last = said.splitlines()[-1]
        assert part in last and last.endswith(f"; sqa-services has more: {how}") and exit_code == "2"
