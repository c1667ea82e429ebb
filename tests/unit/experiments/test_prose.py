"""Most numbers on the pages are in blocks generated from ledgers, not in the prose."""

import re

from sqa.core import ROOT

PAGES = ("README.md", "docs/*.md", "data/models/*/README.md")
MADE = re.compile(r"^<!-- \[\[\[cog.*?^<!-- \[\[\[end\]\]\] -->$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|^(?: {4,}\S[^\n]*\n)+|`[^`]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
DECIMAL = re.compile(r"(?<![\w.:/])[-+−]?\d*\.\d+(?![\w.]*[a-z/])(?!\.\d)")  # excludes versions, files and addresses
MOST = 200


def test_few_decimals_are_outside_generated_blocks() -> None:
    counts = {}
    for path in (path for pattern in PAGES for path in sorted(ROOT.glob(pattern))):
        prose = CODE.sub("", MADE.sub("", path.read_text(encoding="utf-8")))
        counts[str(path.relative_to(ROOT))] = len(DECIMAL.findall(prose))
    assert DECIMAL.findall(CODE.sub("", "    code .1\nin words .73, `x .5`\n")) == [".73"]
    assert sum(counts.values()) <= MOST, {name: count for name, count in counts.items() if count}
