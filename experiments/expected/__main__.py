"""The tables of README.md and docs/: rendered from the YAML files here, compared with them, filled from finished runs.

python -m experiments.expected render               put every table into its page
python -m experiments.expected check                exit 1 where a page shows another table than its YAML file has
python -m experiments.expected collect FOLDER...    take the numbers of finished ablations (runs/ablation), then render
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.expected.collect import collect
from experiments.expected.tables import HOW, differing, filled, pages, render
from sqa.core.errors import SqaError
from sqa.core.paths import ROOT
from sqa.files.store import write_text


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments.expected", description=__doc__.splitlines()[0])
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("render", help="put every table into its page")
    actions.add_parser("check", help="exit 1 where a page differs")
    more = actions.add_parser("collect", help="take the numbers of finished ablations, then render")
    more.add_argument("folder", type=Path, nargs="+", help="a finished ablation, as runs/ablation")
    given = parser.parse_args(arguments)
    try:
        if given.action == "collect":
            print(f"{collect(given.folder)} rows taken", file=sys.stderr)
        return check() if given.action == "check" else write()
    except SqaError as error:
        print(f"experiments.expected: {error}", file=sys.stderr)
        return error.exit_code


def write() -> int:
    """Render every page; prints those that changed."""
    tables = render()
    for path in pages():
        text = filled(path, tables)
        if text != path.read_text(encoding="utf-8"):
            write_text(path, text)
            print(path.relative_to(ROOT))
    return 0


def check() -> int:
    """Name every table that differs from its file."""
    tables = render()
    wrong = [(path, name) for path in pages() for name in differing(path, tables)]
    for path, name in wrong:
        print(f"{path.relative_to(ROOT)}: the table {name} differs from its file; {HOW}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
