"""Build tables of alternative answer names from the answer lines of packets; the bundled tables are in data/answers.

    python -m sqa.data.answer_aliases [FILE.tsv.zst]      rebuilds the bundled file (or FILE)

After each question a packet lists the accepted answers: "momentum [accept linear momentum; prompt on p]".  The rules
use all answer lines of a page, from tossups and bonus parts together:

    title   another page is accepted for this page if at least a third of this page's lines accept its title (accents
            count), and either five lines do, or two do and a tenth of the other page's lines accept this title.  The
            relation has a direction: Constantinople is accepted for Istanbul, but not the reverse
    form    a name that is no page's title becomes a name of this page if at least a third of the page's lines, and at
            least three, accept it
    shared  a bare form (`sqa.core.quizbowl.bare`) that two or more pages have; it is accepted for none of them

Names that a line only prompts on do not count.  The file has three columns: title, form or shared; page; other name.
"""

import functools
import hashlib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from sqa.core.answers import key
from sqa.core.errors import DataError
from sqa.core.paths import DATA
from sqa.core.quizbowl import Accepted, bare, spelling
from sqa.data import download
from sqa.files import records
from sqa.files.atomic import atomic

BUNDLED = DATA / "answers" / "aliases.tsv"
SHARE = 1 / 3  # minimum share of a page's lines
BACK = 1 / 10  # minimum share of the other page's lines, if they must agree
SURE, MUTUAL, NAMED = 5, 2, 3  # minimum number of lines: title alone, title if both pages agree, name without a page
SOURCES = ("tossups", "bonus-parts")  # names in data/manifest.yaml
# Notes to the moderator that can occur in place of a name.
_NOTE = re.compile(
    r"\b(word forms?|either|equivalents?|underlined|answers?|clear|descri\w+|mention\w*|anything)\b", re.IGNORECASE
)

Line = tuple[str, tuple[str, ...]]  # a page and its accepted answers
Row = tuple[str, str, str]


@functools.cache
def bundled() -> Accepted:
    """Return the rule for right answers that uses the bundled tables."""
    return load(BUNDLED)


def load(path: Path) -> Accepted:
    """Return the rule for right answers that uses the tables of a file.

    Raises DataError if the first column has an unknown value.
    """
    tables: dict[str, dict[str, set[str]]] = {kind: defaultdict(set) for kind in ("title", "form", "shared")}
    rows = list(records.table(path, 3))
    for number, (kind, page, name) in enumerate(rows, 1):
        if kind not in tables:
            raise DataError(f"{path}:{number}: expected title, form or shared in the first column, got {kind!r}")
        tables[kind][page].add(name)
    version = hashlib.sha256("\n".join(map("\t".join, rows)).encode()).hexdigest()[:8]
    return Accepted(tables["title"], tables["form"], frozenset(tables["shared"]), f"aliases-{version}")


def answer_lines() -> Iterator[Line]:
    """Yield the page, main answer and other accepted answers of every tossup and bonus part with a page."""
    for source in SOURCES:
        path = download.path_of(source)
        for number, record in enumerate(records.json_lines(path), 1):
            page, names = record.get("page"), [record.get("answer"), *record.get("aliases", [])]
            if not all(isinstance(name, str) for name in names):
                raise DataError(f"{path}:{number}: answer and aliases: expected texts, got {names!r:.80}")
            if page:
                yield page, tuple(name for name in names if not _NOTE.search(name))


def build(lines: Iterable[Line]) -> list[Row]:
    """Return the sorted rows (title, form or shared; page; other name) of the tables."""
    asked: Counter[str] = Counter()  # spelling of a page -> number of its lines
    taken: dict[str, Counter[str]] = defaultdict(Counter)  # spelling of a page -> spelling of a name -> lines
    exact: dict[str, Counter[str]] = defaultdict(Counter)  # like `taken`, but with accents (`answers.key`)
    titles: dict[str, str] = {}  # spelling -> key
    for page, names in lines:
        spelled_page = spelling(page)
        titles.setdefault(spelled_page, key(page))
        asked[spelled_page] += 1
        taken[spelled_page].update({spelling(name) for name in names} - {"", spelled_page})
        exact[spelled_page].update({key(name) for name in names})
    rows = [("shared", form, "") for form, count in Counter(map(bare, titles)).items() if count > 1]
    for page, names_of in taken.items():
        for name, count in names_of.items():
            if count < SHARE * asked[page]:
                continue
            if name in titles:
                count = exact[page][titles[name]]
                mutual = count >= MUTUAL and exact[name][titles[page]] >= BACK * asked[name]
                if count >= SHARE * asked[page] and (count >= SURE or mutual):
                    rows.append(("title", page, name))
            elif count >= NAMED and bare(name) != bare(page):
                rows.append(("form", page, name))
    return sorted(rows)


def main(output: Path = BUNDLED) -> None:
    """Write the tables to a file and print the number of rows of each kind."""
    rows = build(answer_lines())
    text = "".join("\t".join(row) + "\n" for row in rows)
    with atomic(output) as file:
        file.write_text(text, encoding="utf-8")
    counts = Counter(kind for kind, _, _ in rows)
    print(f"{output}: {counts['title']} titles, {counts['form']} names, {counts['shared']} shared forms")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
