"""Figure 5 and Table 2: example questions, drawn word by word and printed as text.

    sqa reproduce fig5      # (a) a hallucination and (b) an under-translation, drawn by experiments/stepwise/figure.py
    sqa reproduce table2    # the texts of the same questions, with the errors marked

experiments/stepwise/examples.py selects the questions.

Claim, after Section 7 of Han, Carpuat and Boyd-Graber (2022): words that the translation invents mislead the
player.  A single question proves nothing; `sqa reproduce errors` measures the claim over all questions of a run.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.outputs import Outputs
from experiments.stepwise.examples import Example, chosen, load_systems, missing
from experiments.stepwise.figure import draw, numbers, ranks


def main(config_path: Path, runs: Path) -> None:
    """Write a figure, its numbers and its texts for each data set and panel.

    Table 2 has source, human translation, answer and the system's output.  Hallucinated stretches are bold and
    numbered as in the figure.  In (b) the untranslated source words are marked in the same way, and [silence] marks
    a long stretch without output.
    """
    selection = load_systems(config_path, runs)
    outputs, examples = Outputs(selection.folder), chosen(selection)
    rows = [["panel", "dataset", "question", "system", "what", "text"]]
    for example in examples:
        subject, finding = example.subject, example.finding
        outputs.csv(f"{example.stem}.csv", numbers(subject, finding))
        outputs.picture(example.stem, draw, subject, finding, f"({example.panel}) ")
        where = [example.panel, subject.dataset, finding.question, subject.system]
        rows += [[*where, label, text] for label, text in texts(example)]
    rows += [["", label, "", "", "not computed", why] for label, why in missing(selection, examples)]
    outputs.csv("table2.csv", rows, show=True)
    outputs.end()


def texts(example: Example) -> Iterator[tuple[str, str]]:
    """Yield (label, text in Markdown) for each row of an example."""
    subject, finding = example.subject, example.finding
    question = subject.trace(finding).question
    lost = range(finding.span.start, finding.span.stop) if finding.span else range(0)
    yield "source", " ".join(f"**{word}**" if i in lost else word for i, word in enumerate(question.words))
    yield "human", question.reference_text
    yield "answer", question.page.replace("_", " ")
    yield subject.system, marked(example)
    if example.panel == "a":
        number = subject.marks(finding).index(finding) + 1
        what = f"rank {ranks(finding)}, {example.size:.2f} nats of log MRR lost"
        yield "error", f"({number}) {' '.join(finding.words)}: {what}"
    else:
        yield "error", f"nothing written over {100 * example.size:.0f}% of the source"


def marked(example: Example) -> str:
    """Return the system's output with hallucinated stretches numbered and bold, and the silence marked."""
    subject, finding = example.subject, example.finding
    numbered = {mark.first: f"({number}) " for number, mark in enumerate(subject.marks(finding), 1)}
    inside = {step for mark in subject.marks(finding) for step in range(mark.first, mark.last + 1)}
    words = [
        numbered.get(step, "") + (f"**{emission.token}**" if step in inside else emission.token)
        for step, emission in enumerate(subject.trace(finding).emissions)
    ]
    if example.panel == "b":
        later = subject.lines[subject.index_of(finding)].sentence > finding.sentence
        words.insert(int(np.argmax(later)) if later.any() else len(words), "[silence]")
    return " ".join(words)
