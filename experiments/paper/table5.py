"""Table 5: example questions with source, human translation and what wait-3 and wait-6 write.

    sqa reproduce table5

The questions are those that the paper shows, found by their answers, where the data set has them; of another data set
the first two whose answer is known (experiments/paper/chosen.py).  Every translator that can be had has its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.made import Made
from experiments.paper.chosen import Systems, known, load_systems
from experiments.stepwise.rows import Subject
from sqa.core.answers import key
from sqa.core.errors import NotComputable
from sqa.report.markdown import table

QUESTIONS = 2  # of a data set that has none of the paper's
HEAD = ("dataset", "question", "answer", "what", "text")


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce table5`: the texts as CSV and Markdown.  No question at all: NotComputable."""
    found = load_systems(config_path, runs)
    lines, rows = ["# Table 5: example questions", ""], [list(HEAD)]
    for dataset in found.datasets:
        mine = [subject for subject in found.subjects if subject.dataset == dataset and subject.k in found.config.shown]
        for place in places(found, mine[0]):
            question = mine[0].run.questions[place]
            texts = list(rows_of(mine, place))
            lines += [f"## {question.id}, {dataset}; answer: {question.page.replace('_', ' ')}", ""]
            lines += [*table(("", "text"), texts), ""]
            rows += [[dataset, question.id, question.page, *cells] for cells in texts]
    if len(rows) == 1:
        raise NotComputable("table 5: no question whose answer is known; take another guesser in its config")
    lines += [f"{out.label}: not computed, {out.reason}" for out in found.left_out]
    made = Made(found.folder)
    made.csv("table5.csv", rows)
    made.page("table5.md", lines)
    made.end()


def places(found: Systems, subject: Subject) -> list[int]:
    """Which questions of a data set are shown, 0-based."""
    wanted = {key(page) for page in found.config.pages}
    questions = subject.run.questions
    named = [place for place, question in enumerate(questions) if key(question.page) in wanted]
    return named or [place for place in range(len(questions)) if known(subject, place)][:QUESTIONS]


def rows_of(subjects: list[Subject], place: int) -> Iterator[tuple[str, str]]:
    """(what it is, its text) of each row of a question."""
    question = subjects[0].run.questions[place]
    yield "source", question.text
    yield "human", question.reference_text
    for subject in sorted(subjects, key=lambda s: s.family != subjects[0].family):
        yield subject.system, " ".join(sentence for sentence in subject.run.traces[place].hypotheses if sentence)
