"""Generate blocks of pages, and pictures, from ledgers: `<!-- [[[cog show("ITEM", "BLOCK") ]]] -->` in Markdown.

Beside the ledger of an item with `values`, ITEM.npz has the statistics of each question, from which intervals and
p-values can be recomputed without runs:

    from experiments.results_book.pages import read_values
    from sqa import metrics
    from sqa.core.differences import compare

    tables = read_values("over-k")
    best, full = (tables["xqb-es", "language model", k, "rerank", "ew"] for k in ("3", "full"))
    compare(best, full, *metrics.build(["ew"]))

In all tables of a data set, row i belongs to the same question.

cog runs the code in this comment and inserts its output below, up to `<!-- [[[end]]] -->`.  A picture contains the
digest of its ledger, by which `sqa results check` recognises an outdated picture.
"""

import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from experiments.results_book import ledger as ledgers
from experiments.results_book.item import Item, chosen
from experiments.results_book.ledger import DIGITS, Ledger
from sqa.core import ROOT, DataError, Floats, did_you_mean, lacking
from sqa.files import file_digest, write_bytes

LEDGERS = ROOT / "experiments" / "ledger"
PAGES = ("README.md", "docs/*.md", "data/models/*/README.md")
PICTURE = "Ledger"  # key in a PNG's metadata: digest of the ledger that the picture shows
_MARK = re.compile(r"^<!-- \[\[\[cog", re.MULTILINE)
_PROLOGUE = "from experiments.results_book.pages import show"


def ledger_path(name: str) -> Path:
    """Return the tracked file of an item."""
    return LEDGERS / f"{name}.tsv"


def ledger_of(name: str) -> Ledger:
    """Return an item's current ledger; raises DataError if the item has not been measured."""
    return ledgers.read(ledger_path(name))


def values_path(name: str) -> Path:
    """Return the tracked file of an item's statistics of questions."""
    return LEDGERS / "values" / f"{name}.npz"


def write_values(name: str, tables: Mapping[tuple[str, ...], Floats]) -> None:
    """Write the statistics (n, d) of an item by cell and metric; equal tables give equal bytes."""
    file = BytesIO()
    np.savez_compressed(file, **{"\t".join(key): table for key, table in tables.items()})
    values_path(name).parent.mkdir(exist_ok=True)
    write_bytes(values_path(name), file.getvalue())


def read_values(name: str) -> dict[tuple[str, ...], Floats]:
    """Return the statistics of an item by cell and metric; raises DataError if none has been written."""
    try:
        with np.load(values_path(name), allow_pickle=False) as arrays:
            return {tuple(key.split("\t")): arrays[key] for key in arrays.files}
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: no statistics of questions ({error}); run `sqa results update {name}`") from error


def show(item: str, block: str) -> None:
    """Print a block of an item; the cog comments in pages call this function."""
    [chosen_item] = chosen([item])
    if block not in chosen_item.blocks:
        raise DataError(f"{item}: no block is called {block!r}{did_you_mean(block, chosen_item.blocks)}")
    print("\n".join(chosen_item.blocks[block](ledger_of(chosen_item.name))))


def pages() -> list[Path]:
    """Return every page with a generated block."""
    paths = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    return [path for path in paths if _MARK.search(path.read_text(encoding="utf-8"))]


def rendered(path: Path) -> str:
    """Return a page's text with its blocks made from the ledgers."""
    from cogapp import Cog
    from cogapp.cogapp import CogError

    engine = Cog()
    engine.options.prologue, engine.options.print_output = _PROLOGUE, True
    try:
        text: str = engine.process_string(path.read_text(encoding="utf-8"), fname=str(path))
    except CogError as error:
        raise DataError(f"{path}: {error}") from error
    return text


def stale_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line, its text, the expected text) wherever a page differs from its ledgers."""
    old, new = path.read_text(encoding="utf-8").splitlines(), rendered(path).splitlines()
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield i1 + 1, "\n".join(old[i1:i2]), "\n".join(new[j1:j2])


def stale_picture(item: Item, name: str) -> str | None:
    """Return the reason to remake a picture, or None if it shows the current ledger."""
    from PIL import Image

    carried: Mapping[str, str] = {}
    if (ROOT / name).is_file():
        with Image.open(ROOT / name) as image:
            carried = getattr(image, "text", {})
    if carried.get(PICTURE) != file_digest(ledger_path(item.name))[:DIGITS]:
        return f"does not match the current {ledger_path(item.name).relative_to(ROOT)}"
    return None


def draw(item: Item) -> list[Path]:
    """Make the outdated pictures of an item; return the files written.

    A picture that this machine cannot make (no browser) is reported on stderr and stays outdated.
    """
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    written = []
    for name in item.figures:
        if stale_picture(item, name) is None:
            continue
        try:
            image = _drawn(item, name)
        except ImportError as error:
            print(f"{name}: not made: {lacking(error.name or 'a package', 'it')}", file=sys.stderr)
        else:
            text = PngInfo()
            text.add_text(PICTURE, file_digest(ledger_path(item.name))[:DIGITS])
            few_colours = image.convert("RGB").quantize(96, dither=Image.Dither.NONE)  # halves the size of the file
            few_colours.save(ROOT / name, optimize=True, pnginfo=text)
            written.append(ROOT / name)
    return written


def _drawn(item: Item, name: str) -> Any:
    """Return a picture of an item as an image."""
    from PIL import Image

    from sqa.report.plots import close, style

    with style():
        drawing = item.figures[name](ledger_of(item.name))
        if isinstance(drawing, Image.Image):
            return drawing
        file = BytesIO()
        drawing.savefig(file, format="png")
        close(drawing)
        return Image.open(file)
