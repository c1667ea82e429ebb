"""The results book names each number, picture or page that is edited or older than its inputs.

tests/e2e/documents runs `sqa results check`, which checks the project's own results book.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused
from tables import tables_of

from experiments.results_book import item as lab_items
from experiments.results_book import ledger as ledgers
from experiments.results_book import main, pages
from experiments.results_book.item import Item, inputs_of, items
from experiments.results_book.ledger import Ledger, Row
from experiments.results_book.tables import Column, across, pivot, table
from sqa.core import ROOT, ConfigError, DataError
from sqa.files.model_files import files_digest

TABLES = tables_of(__file__)

PAGE = TABLES["page"]
ARCHIVED = {f"docs/{name}.png" for name in ("known_groups", "sweep_xqb-es", "claims", "unadapted")}
ABOUT = {"item": "i", "command": "c", "version": "1", "date": "2026-01-01", "inputs": {"data x": "12"}}


def _figure(ledger: Ledger):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    axes.plot([row.value for row in ledger.rows])
    return figure


class Book:
    """A repository with one item, one page, one model and one picture."""

    def __init__(self, root: Path) -> None:
        self.root, self.model, self.values, self.signature = root, root / "model", [1.25, 2.5], "ew|v:1"
        (root / "docs").mkdir(parents=True)
        (root / "experiments/ledger").mkdir(parents=True)
        (root / "README.md").write_text(PAGE, encoding="utf-8")
        self.model.mkdir()
        (self.model / "weights").write_bytes(b"\x00\x01")
        shows = {"numbers": self._block}, {"docs/toy.png": _figure}
        self.item = Item("toy", "a toy", "ablation.yaml", ("k",), self._measure, self._inputs, *shows)

    def _measure(self, config: Path, runs: Path):
        assert config.name == "ablation.yaml"
        for k, value in enumerate(self.values):
            yield Row((str(k),), "ew", value, value - 1, value + 1, 10, "0-1", self.signature)

    def _inputs(self, config: Path):
        return {"model toy": files_digest(self.model)}

    @staticmethod
    def _block(ledger: Ledger):
        return table(ledger, ["k"], [([k], {"k": k}) for k in ledger.values("k")], [Column("ew", "EW", 2)])


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Book:
    book = Book(tmp_path)
    for module in (pages, main):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "LEDGERS", tmp_path / "experiments/ledger")
    monkeypatch.setattr(lab_items, "items", lambda: {"toy": book.item})
    main.update([], tmp_path / "runs")
    return book


def _problems(book: Book, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    code = main.check()
    text = capsys.readouterr().err
    assert code == (1 if text else 0)
    return text


def test_second_update_changes_nothing(book, capsys):
    assert "| 0 | 1.25 [0.25, 2.25] |" in (book.root / "README.md").read_text(encoding="utf-8")
    assert (book.root / "docs/toy.png").is_file()
    assert not _problems(book, capsys)
    main.update([], book.root / "runs")
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("README.md", b"1.25 [", b"1.35 [", r"README\.md:6: '\| 0 \| 1\.35 .*should be '\| 0 \| 1\.25"),
        ("experiments/ledger/toy.tsv", b"1.250000", b"1.260000", r"experiments/ledger/toy\.tsv: was edited by hand"),
        ("model/weights", b"\x01", b"\x02", r"experiments/ledger/toy\.tsv: model toy was"),
    ],
)
def test_changed_digit_or_byte_is_reported(book, capsys, name, old, new, problem):
    path = book.root / name
    path.write_bytes(path.read_bytes().replace(old, new))
    assert re.match(problem, _problems(book, capsys))


def test_archived_item_is_never_stale_or_measured(book, capsys, monkeypatch):
    path = book.root / "experiments/ledger/toy.tsv"
    ledger = replace(ledgers.read(path), made_by="12c84463")
    ledgers.write(ledger, path)
    assert ledgers.read(path) == ledger
    book.item = replace(book.item, figures={}, measure=lab_items.elsewhere("its code left"), kept="its code left")
    monkeypatch.setattr(main, "items", lambda: {"toy": book.item})
    (book.model / "weights").write_bytes(b"\x02")
    assert not _problems(book, capsys)
    main.update([], book.root / "runs", force=True)
    main.listing()
    assert "archived: made by 12c84463" in capsys.readouterr().out
    refused(ConfigError, "no command measures this item: its code left", main.update, ["toy"], book.root / "runs")


def test_every_archived_ledger_names_the_commit_of_its_code():
    archived = lab_items.archived(lab_items.ARCHIVED)
    assert len(archived) > 20 and {pages.ledger_of(item.name).made_by for item in archived} == {
        "12c84463",
        "96eb0e41",
        "71c4cddf",
    }
    assert all(block(pages.ledger_of(item.name))[2:] for item in archived for block in item.blocks.values())


def test_new_picture_of_a_measured_item_is_drawn(book, capsys):
    book.item = replace(book.item, figures={**book.item.figures, "docs/new.png": _figure})
    assert _problems(book, capsys).startswith("docs/new.png: does not match the current experiments/ledger/toy.tsv")
    main.update([], book.root / "runs")
    assert not _problems(book, capsys)


def test_missing_data_does_not_remove_ledger_rows(book):
    """Otherwise an update on a machine without XQB or without the language model would delete their rows."""
    path = book.root / "experiments/ledger/toy.tsv"
    before, book.values = path.read_bytes(), [7.0]
    for force in (False, True):
        (book.model / "weights").write_bytes(b"\x02")
        says = r"toy: the ledger has numbers of '1 ew', but none was measured.* delete toy.tsv first"
        refused(DataError, says, main.update, ["toy"], book.root / "runs", force=force)
    assert path.read_bytes() == before
    path.unlink()
    main.update(["toy"], book.root / "runs")
    assert [row.value for row in ledgers.read(path).rows] == [7.0]


def test_cell_measured_twice_is_refused(book):
    book.item = replace(book.item, measure=lambda *_: [Row((k,), "ew", 1.0) for k in "010"])
    refused(DataError, "measured twice", main.measure, book.item, book.root)


def test_ledger_round_trips(tmp_path):
    rows = (Row(("es", "a b", "3"), "ew", 0.25, 0.125, None, 7, "0-1", "s: 1"), Row(("x", "y", "full"), "p", 0.05))
    ledger = Ledger(("dataset", "translator", "k"), rows, **ABOUT)
    ledgers.write(ledger, tmp_path / "i.tsv")
    assert ledgers.read(tmp_path / "i.tsv") == ledger
    (tmp_path / "i.tsv").write_text("# item: i\nno\n", encoding="utf-8")
    refused(DataError, "cannot be read as a ledger", ledgers.read, tmp_path / "i.tsv")


def test_kept_items_are_measured_only_by_name(book, capsys):
    book.item = replace(book.item, kept="hours")
    book.values[0] = 7.0
    (book.model / "weights").write_bytes(b"\x00\x02")
    main.update([], book.root / "runs")
    text = capsys.readouterr()
    assert "toy: not measured (hours): model toy was" in text.err and not text.out
    main.update(["toy"], book.root / "runs")
    assert "| 0 | 7.00 [" in (book.root / "README.md").read_text(encoding="utf-8")
    assert not _problems(book, capsys)


def test_pivot_shows_sd_and_omits_empty_rows():
    rows = (
        Row(("a", "3"), "bleu", 8.5, unit="0-100"),
        Row(("a", "3"), "bleu sd", 0.25, unit="0-100"),
        Row(("b", "3"), "ew", 0.5, 0.25, 0.75, unit="0-1"),
        Row(("c", "6"), "bleu", 1.0, unit="0-100"),
    )
    ledger = Ledger(("system", "k"), rows, **ABOUT)
    bleu = Column("bleu", "BLEU")
    assert pivot(("system",), [bleu], k="3")(ledger)[2:] == ["| a | 8.5 ± 0.2 |"]
    assert pivot(("system", "k"), [bleu], system=("c", "b"))(ledger)[2:] == ["| c | 6 | 1.0 |"]
    assert pivot(("system",), across("ew", "k", "3", "k = {}"))(ledger)[0] == "| system | k = 3 |"


def test_every_item_names_its_dependencies():
    for item in items().values():
        assert item.shows and (not item.config or item.inputs(item.path()))
        assert item.config or item.kept or item.inputs(item.path())


def test_every_block_of_every_item_has_lines():
    for item in items().values():
        for name, block in item.blocks.items():
            lines = block(pages.ledger_of(item.name))
            assert len(lines) > 2 and all(lines), (item.name, name)


def test_every_documented_picture_has_a_ledger():
    drawn = {name for item in items().values() for name in item.figures}
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.png")}
    assert there - ARCHIVED == {name for name in drawn if name.startswith("docs/")}


def test_version_of_a_part_is_an_input(monkeypatch):
    before = inputs_of(("bm25", "waitk"))(Path())
    monkeypatch.setattr("guessers.retrieval.bm25.VERSION", 99)
    after = inputs_of(("bm25", "waitk"))(Path())
    assert {name for name in before if before[name] != after[name]} == {"version bm25"}
    assert {"model bm25", "version waitk"} <= before.keys()
