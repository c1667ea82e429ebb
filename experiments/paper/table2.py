"""Table 2: the text of the examples of Figure 5, their errors marked.

    sqa reproduce table2

As in the paper, of each question the source, the human translation, the answer and the system's output.  (1), (2), ...
are its hallucinated stretches, as in Figure 5, in bold; (a) names the one that cost most, (b) has the words of the
source that were lost in bold, and [silence] where nothing was written for so long.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.made import Made
from experiments.paper.chosen import Example, chosen, load_systems, marks, missing
from sqa.core.errors import NotComputable
from sqa.report.markdown import table

HEAD = ("panel", "dataset", "question", "system", "what", "text")


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce table2`: the texts as CSV and Markdown.  No example at all: NotComputable."""
    found = load_systems(config_path, runs)
    examples = list(chosen(found))
    gone = missing(found, examples)
    if not examples:
        raise NotComputable("table 2: " + "; ".join(why for _, why in gone))
    lines = ["# Table 2: the examples of Figure 5", ""]
    rows = [list(HEAD)]
    for example in examples:
        subject, question = example.subject, example.subject.trace(example.finding).question
        lines += [f"## ({example.panel}) {subject.kind(example.finding)}: {question.id}, {subject.dataset}", ""]
        lines += [*table(("", "text"), texts(example)), ""]
        where = [example.panel, subject.dataset, question.id, subject.system]
        rows += [[*where, what, text] for what, text in texts(example)]
    lines += [f"{dataset}: not computed, {why}" for dataset, why in gone]
    lines += [f"{out.label}: not computed, {out.reason}" for out in found.left_out]
    made = Made(found.folder)
    made.csv("table2.csv", rows)
    made.page("table2.md", lines)
    made.end()


def texts(example: Example) -> Iterator[tuple[str, str]]:
    """(what it is, its text in Markdown) of each row of an example."""
    subject, finding = example.subject, example.finding
    question = subject.trace(finding).question
    lost = range(finding.span.start, finding.span.stop) if finding.span else range(0)
    yield "source", " ".join(f"**{word}**" if i in lost else word for i, word in enumerate(question.words))
    yield "human", question.reference_text
    yield "answer", question.page.replace("_", " ")
    yield subject.system, marked(example)
    if example.panel == "a":
        number = marks(example).index(finding) + 1
        yield "error", f"({number}) {' '.join(finding.words)}: {example.size:.2f} nats of log MRR lost"
    else:
        yield "error", f"nothing written over {100 * example.size:.0f}% of the source"


def marked(example: Example) -> str:
    """The system's output: hallucinated stretches numbered and bold, the silence named."""
    subject = example.subject
    trace = subject.trace(example.finding)
    numbers = {mark.first: number for number, mark in enumerate(marks(example), 1)}
    inside = {step for mark in marks(example) for step in range(mark.first, mark.last + 1)}
    words = []
    silent = example.panel == "b"
    for step, emission in enumerate(trace.emissions):
        if silent and emission.sentence > example.finding.sentence:
            words.append("[silence]")
            silent = False
        number = f"({numbers[step]}) " if step in numbers else ""
        words.append(number + (f"**{emission.token}**" if step in inside else emission.token))
    return " ".join([*words, *(["[silence]"] if silent else [])])
