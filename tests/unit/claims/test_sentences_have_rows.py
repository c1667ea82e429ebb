"""Ledger rows support every sentence of docs/results.md, unadapted.md and README's Results with a number or comparison.

tests/documented/results.yaml, unadapted.yaml and readme.yaml map each of these sentences to checks.  A check compares a
row with a number or with another row:

    over-k / xqb-es / phrase-based / full / rerank / bleu = 31      equal if rounded to the digits written
    over-k / xqb-es / phrase-based / full / rerank / ew.low > 0     or <; .low, .high and .n name parts of a row

A row is named by its ledger, cell and metric.  A sentence about a method may have `source: {file: quotation}` instead
of checks.  Every number of a sentence must occur in one of its checks or in its source.
"""

import re
from typing import Any

import pytest
import yaml

from experiments.results_book.pages import ledger_of
from sqa.core import ROOT

PAGES = {"results": "docs/results.md", "unadapted": "docs/unadapted.md", "readme": "README.md"}
MADE = re.compile(r"^<!-- \[\[\[cog.*?^<!-- \[\[\[end\]\]\] -->$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^(?: {4,}\S[^\n]*\n)+", re.MULTILINE)
ENDS = re.compile(r"(?<=[.:?!])\*{0,2}\s+(?=[A-Z*`\[])")
COMPARES = re.compile(
    r"\b(more|less|fewer|than|worse|better|higher|lower|above|below|similar|unseen|hardly|most|half|third|no difference"
    r"|(grow|rise|fall|peak|raise|miss|win|lose)(s|es)?|as much as|(small|large)(er|est)?)\b"
)
# Code, links and names, which may contain a digit or a comparative without stating a result.
NAMES = re.compile(r"`[^`]*`|\]\([^)]*\)|\bF\w+\d\b|\bsmall Transformer\b")
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:%|\b)")
PART = re.compile(r"^(.+?)(?:\.(low|high|n))?$")
CHECK = re.compile(r"^(.+) ([<>=]) (.+)$")


def sentences(text: str) -> list[str]:
    """Return the sentences of a page that have a number or a comparison, without headings, captions and code."""
    prose = CODE.sub("", MADE.sub("", text))
    found = []
    for block in re.split(r"\n\s*\n|\n(?=- )", prose):
        line = " ".join(block.split()).removeprefix("- ")
        if line and not line.startswith(("#", "![", "*Contestant", "*The guesser", "sqa ", "make ")):
            found += [s for s in ENDS.split(line) if asserts(s)]
    return found


def asserts(sentence: str) -> bool:
    """Return whether a sentence has a number or a comparison."""
    plain = NAMES.sub("", sentence)
    return bool(NUMBER.search(plain) or COMPARES.search(plain))


def text_of(page: str) -> str:
    """Return the text of a page; of README only the section Results."""
    text = (ROOT / PAGES[page]).read_text("utf-8")
    return text.partition("\n## Results\n")[2].partition("\n## ")[0] if page == "readme" else text


def value_of(path: str) -> float:
    """Return the value named by `ledger / cell / metric`, or the .low, .high or .n of its row."""
    ledger, *cell, metric = path.split(" / ")
    name, part = PART.match(metric).groups()
    rows = [row for row in ledger_of(ledger).rows if row.cell == tuple(cell) and row.metric == name]
    assert len(rows) == 1, f"{path}: {len(rows)} rows"
    return float(getattr(rows[0], part or "value"))


def holds(check: str) -> bool:
    """Return whether a check holds."""
    left, relation, right = CHECK.match(check).groups()
    value = value_of(left)
    if relation == "=":
        return f"{value:.{len(right.partition('.')[2])}f}" == f"{float(right):.{len(right.partition('.')[2])}f}"
    other = float(right) if NUMBER.fullmatch(right) else value_of(right)
    return value < other if relation == "<" else value > other


def numbers(text: str) -> set[float]:
    """Return the numbers in a text, with percentages as fractions."""
    found = NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3}\b)", "", NAMES.sub("", text)))  # 2,016 is 2016
    return {float(n.rstrip("%")) / (100 if n.endswith("%") else 1) for n in found}


def problems(sentence: str, support: dict[str, Any]) -> list[str]:
    """Return the reasons why a sentence is not supported."""
    checks, source = support.get("checks", []), support.get("source", {})
    wrong = [check for check in checks if not holds(check)]
    wrong += [
        f"{file} has no {text!r}" for file, text in source.items() if text not in (ROOT / file).read_text("utf-8")
    ]
    backing = {n for text in (*checks, *source.values()) for n in numbers(text.replace("/", " "))}
    wrong += [f"{n:g} is in none of its checks" for n in sorted(numbers(sentence) - backing)]
    return wrong or ([] if checks or source else ["no check and no source"])


def supports(page: str) -> dict[str, dict[str, Any]]:
    """Return a dict that maps each listed sentence of a page to its checks or source."""
    path = ROOT / "tests" / "documented" / f"{page}.yaml"
    return {entry.pop("sentence"): entry for entry in yaml.safe_load(path.read_text("utf-8"))}


@pytest.mark.parametrize("page", PAGES)
def test_every_sentence_is_listed_and_holds(page: str) -> None:
    listed, found = supports(page), sentences(text_of(page))
    assert [s for s in found if s not in listed] == [], "sentences without support"
    assert [s for s in listed if s not in found] == [], "support without a sentence"
    assert {s: wrong for s in found if (wrong := problems(s, listed[s]))} == {}


@pytest.mark.parametrize("sentence", ["EW is .25.", "EW grows with k.", "It is worse.", "With 147 questions it is so."])
def test_numbers_and_comparisons_need_support(sentence: str) -> None:
    assert sentences(f"# Title 1\n\n{sentence}\n\n    code .1\n") == [sentence]


def test_failed_checks_and_unsupported_numbers_are_named() -> None:
    row = "text-at-pace / xqb-es / wait-k / 2 / text / ew"
    assert problems("It is 147.", {"checks": [f"{row}.n = 147"]}) == []
    assert problems("It is 148.", {"checks": [f"{row}.n = 148"]}) == [f"{row}.n = 148"]
    assert problems("It is 148.", {"checks": [f"{row}.n = 147"]}) == ["148 is in none of its checks"]
    assert problems("It wins.", {}) == ["no check and no source"]
