"""Command `sqa view RUN [RUN...]`: one HTML page that shows finished runs word by word without network access.

    from sqa.report.viewer import main
    main([Path("runs/xqb_es_wait3_bm25"), Path("runs/xqb_es_wait6_bm25")], output=Path("page.html"))

The page is self-contained: its data (sqa/report/viewer_data.py), its style and script (sqa/report/viewer_page/) and
uPlot, which draws its charts (github.com/leeoniya/uPlot, version UPLOT, MIT licence, unchanged).  Its content
security policy lists the hashes of the allowed scripts and styles and forbids every request; texts of the data are
only displayed as text.
"""

import json
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sqa.files import write_text
from sqa.pipeline import RunFolder, open_run
from sqa.pipeline.paired import check_same_questions
from sqa.report.data import check_distinct
from sqa.report.html import page_file, source_hash, templates
from sqa.report.viewer_data import page_data
from sqa.results import show_lines

UPLOT = "1.6.32"
DEFAULT_OUTPUT = "view.html"  # default file, in the first run's folder
SCRIPTS = ("uPlot.iife.min.js", "moments.js", "charts.js", "address.js", "page.js")  # in order of execution
STYLES = ("uPlot.min.css", "page.css")
# "<" could end the script element that contains the data; U+2028 and U+2029 end a line in old JavaScript
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def main(runs: Sequence[Path], output: Path | None = None, questions: Collection[str] = ()) -> None:
    """Write the page of one or more runs on the same questions and print its path; notes go to stderr.

    questions: ids of the questions to show; empty = all.
    """
    opened = open_runs(runs)
    data = page_data(opened, opened[0].indices(questions, "--questions: "))
    output = output or opened[0].folder / DEFAULT_OUTPUT
    page = render(data)
    write_text(output, page)
    for run in data["runs"]:
        for note in run["notes"]:
            print(f"sqa: {run['name']}: {note}", file=sys.stderr)
    size = f"{len(page.encode()) / 1e6:.1f} MB (fewer with --questions)"
    print(f"sqa: {len(data['questions'])} questions, {len(opened)} runs, {size}", file=sys.stderr)
    show_lines(output)


def open_runs(folders: Sequence[Path]) -> list[RunFolder]:
    """Return the runs.  Raises ConfigError if a folder is named twice or if the runs have different questions."""
    check_distinct(folders)
    runs = [open_run(folder) for folder in folders]
    check_same_questions(runs)
    return runs


def render(data: dict[str, Any]) -> str:
    """Return the HTML page for the result of `page_data`."""
    return (
        templates()
        .get_template("viewer_page/page.html")
        .render(
            policy=Markup(policy_of()),
            licence=f"Charts: uPlot {UPLOT}, https://github.com/leeoniya/uPlot\n\n{_joined(['uPlot.LICENSE'])}",
            style=Markup(_joined(STYLES)),
            script=Markup(_joined(SCRIPTS)),
            data=Markup(as_script(data)),
        )
    )


def policy_of() -> str:
    """Return the content security policy of every page of `render`: it allows the page's own scripts and no request."""
    script, style = source_hash(_joined(SCRIPTS)), source_hash(_joined(STYLES))
    return f"default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'"


def _joined(names: Sequence[str]) -> str:
    return "\n".join(page_file("viewer_page", name) for name in names)


def as_script(data: dict[str, Any]) -> str:
    """Return compact JSON for use inside a script element: without "<", ">" or "&"."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)
