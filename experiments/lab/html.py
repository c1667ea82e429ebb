"""All ledgers as one HTML page that needs no network: sorting, filters, search (itables, DataTables)."""

from __future__ import annotations

import html
from pathlib import Path

from experiments.lab.item import items
from experiments.lab.ledger import MEASURED
from experiments.lab.pages import ledger_of, ledger_path
from sqa import __version__
from sqa.files.atomic import write_text


def main(output: Path) -> None:
    """Write the page, and print its path."""
    import pandas
    from itables import to_html_datatable

    parts = []
    for item in items().values():
        if not ledger_path(item.name).is_file():
            continue
        ledger = ledger_of(item.name)
        columns = [*ledger.columns, *MEASURED[:-1]]
        rows = [[*r.cell, r.metric, r.value, r.low, r.high, r.n, r.unit, r.signature] for r in ledger.rows]
        options = {"table_id": item.name, "classes": "display compact", "column_filters": "header", "maxBytes": 0}
        shown = to_html_datatable(pandas.DataFrame(rows, columns=columns), connected=False, showIndex=False, **options)
        caption = html.escape(f"{item.shows}. Measured {ledger.date} with version {ledger.version}: {ledger.command}")
        parts.append(f'<h2 id="of-{item.name}">{item.name}</h2><p>{caption}</p>{shown}')
    style = "body{font:14px/1.4 sans-serif;max-width:90em;margin:2em auto;padding:0 1em}"
    head = f"<!doctype html><meta charset=utf-8><title>SQA {__version__}: results</title><style>{style}</style>"
    write_text(output, f"{head}<h1>Results</h1>{''.join(parts)}\n")
    print(output)
