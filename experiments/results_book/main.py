"""`sqa results`: measure stale items, make pages and pictures from ledgers, find outdated files."""

import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import sqa
from experiments.results_book import ledger as ledgers
from experiments.results_book import pages
from experiments.results_book.item import Item, chosen, items
from experiments.results_book.ledger import Ledger
from experiments.results_book.pages import ledger_of, ledger_path
from sqa.core import ROOT, DataError
from sqa.files import write_text
from sqa.results import Table, show


def update(names: Sequence[str], runs: Path, force: bool = False) -> None:
    """Measure the named items that are stale (all if none is named), then remake pages and pictures.

    Items with `kept` set are measured only if they are named or forced.
    """
    for item in chosen(names):
        old = current(item)
        if old and old.made_by and not names:  # archived
            continue
        why = list(stale(item))
        if why and item.kept and not (names or force):
            print(f"{item.name}: not measured ({item.kept}): {'; '.join(why)}; run `{item.command}`", file=sys.stderr)
        elif force or why or (item.kept and names):
            print(f"{item.name}: {'forced' if force else '; '.join(why)}", file=sys.stderr)
            measure(item, runs)
        for path in pages.draw(item) if current(item) else ():
            print(path.relative_to(ROOT))
    for path in pages.pages():
        text = pages.rendered(path)
        if text != path.read_text(encoding="utf-8"):
            write_text(path, text)
            print(path.relative_to(ROOT))


def measure(item: Item, runs: Path) -> None:
    """Measure an item and write its ledger, which keeps its date if all numbers are unchanged.

    A number whose signature has changed is named on stderr, because it cannot be compared with the old number.
    Raises DataError, and keeps the ledger, if all numbers of a data set or a system are lost because its data or
    package is missing.
    """
    path, config, old = ledger_path(item.name), item.path(), current(item)
    rows = tuple(item.measure(config, runs))
    same = old is not None and old.columns == item.columns and ledgers.same_numbers(old, rows)
    day = old.date if old is not None and same else date.today().isoformat()
    about = {"item": item.name, "command": item.command, "version": sqa.__version__, "date": day}
    new = Ledger(item.columns, rows, **about, inputs=dict(item.inputs(config)))
    before, after = old.by_key() if old is not None and old.columns == new.columns else {}, new.by_key()
    if gone := {key[:2] for key in before} - {key[:2] for key in after}:
        first = next(" ".join(key[:2]) for key in before if key[:2] in gone)
        why = f"the ledger has numbers of {first!r}, but none was measured: is a data set or a package missing?"
        raise DataError(f"{item.name}: {why} To remove such numbers, delete {path.name} first")
    for key, row in after.items():
        if key in before and before[key].signature != row.signature:
            print(f"{item.name}: {' '.join(key)} has a new signature", file=sys.stderr)
    ledgers.write(new, path)
    if item.values is not None:
        pages.write_values(item.name, item.values(config, runs))
    print(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def current(item: Item) -> Ledger | None:
    """Return the ledger of an item; None if it has not been measured."""
    return ledger_of(item.name) if ledger_path(item.name).is_file() else None


def stale(item: Item) -> Iterator[str]:
    """Yield the reasons to measure an item again; a ledger that names the commit of its code is never stale."""
    old = current(item)
    if old is None:
        yield "never measured"
    if old is None or old.made_by:
        return
    inputs = item.inputs(item.path())
    if old.columns != item.columns:
        yield "other columns"
    for name in sorted({*old.inputs, *inputs}):
        if old.inputs.get(name) != inputs.get(name):
            yield f"{name} was {old.inputs.get(name, 'no input')}, is {inputs.get(name, 'no input')}"


def check(names: Sequence[str] = ()) -> int:
    """Name every outdated or edited ledger, picture and line of a page; return 1 if there is one, else 0."""
    problems = list(_problems(chosen(names)))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _problems(chosen_items: Sequence[Item]) -> Iterator[str]:
    for item in chosen_items:
        path = ledger_path(item.name)
        for why in stale(item):
            yield f"{path.relative_to(ROOT)}: {why}; run `{item.command}`"
        if not path.is_file():
            continue
        if ledgers.edited(path):
            yield f"{path.relative_to(ROOT)}: was edited by hand; run `{item.command}`"
        for name in item.figures:
            if problem := pages.stale_picture(item, name):
                yield f"{name}: {problem}; run `sqa results update`"
    for page in pages.pages():
        for line, is_there, expected in pages.stale_lines(page):
            was, now = is_there.splitlines() or [""], expected.splitlines() or [""]
            where = f"{page.relative_to(ROOT)}:{line}"
            yield f"{where}: {was[0][:90]!r} should be {now[0][:90]!r}; run `sqa results update`"


def listing() -> None:
    """Print what every item shows, its date, its number of rows, and the reasons why it is stale."""
    lines = []
    for item in items().values():
        old = current(item)
        why = "; ".join(stale(item)) or (f"archived: made by {old.made_by}" if old and old.made_by else "fresh")
        lines.append((item.name, item.shows, old.date if old else "never", len(old.rows) if old else 0, why))
    show(Table(("item", "shows", "measured", "rows", "state"), lines))
