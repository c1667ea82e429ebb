"""Figure 5, Tables 2 and 5: example questions, drawn word by word and printed as text.

    sqa reproduce fig5      # (a) a hallucination and (b) an under-translation, drawn by sqa/report/steps.py
    sqa reproduce table2    # the texts of the same questions, with the errors marked

The config names the questions.  `sqa.load(RUN).plot_steps(ID)` draws any question of any run.

Claim, after Section 7 of Han, Carpuat and Boyd-Graber (2022): words that the translation invents mislead the
player.  A single question proves nothing; experiments/ledger/stepwise-costs.tsv measures the claim over all questions.
"""

from collections.abc import Iterator
from pathlib import Path

from experiments.outputs import Outputs
from experiments.paper.examples import RULES, Example, chosen, load_systems, missing, sentences, stem
from sqa.diagnose.step_errors import Finding
from sqa.report.steps import marks_of
from sqa.results import show_lines

TABLE2 = ["panel", "dataset", "question", "system", "what", "text"]


def main(config_path: Path, runs: Path) -> None:
    """Write a figure, its numbers and its texts for each example.

    Table 2 has source, human translation, answer and the system's output.  Hallucinated stretches are bold and
    numbered as in the figure.  In (b) the untranslated source words are marked in the same way, and [silence] marks
    a long stretch without output.
    """
    selection = load_systems(config_path, runs)
    outputs, examples = Outputs(selection.folder), chosen(selection)
    rows = [TABLE2]
    for example in examples:
        rows += written(outputs, example, stem(example, selection.config.translators))
    rows += [["", label, "", "", "not computed", why] for label, why in missing(selection, examples)]
    outputs.csv("table2.csv", rows, show=True)
    outputs.end()


def table5(config_path: Path, runs: Path) -> None:
    """Write Table 5, and print the system, and so the k, shown for each question."""
    selection = load_systems(config_path, runs)
    examples = chosen(selection)
    rows = [["dataset", "question", "answer", "what", "text"]]
    shown = []
    for example in examples:
        subject, question = example.subject, example.question
        where = [subject.dataset, question.id, question.page]
        written = " ".join(filter(None, example.trace.hypotheses))
        rows += [[*where, "source", question.text], [*where, "human", question.reference_text]]
        rows.append([*where, subject.system, written])
        shown.append(f"{question.id} ({question.page.replace('_', ' ')}) by {subject.system}")
    rows += [[label, "", "", "not computed", why] for label, why in missing(selection, examples)]
    outputs = Outputs(selection.folder)
    outputs.csv("table5.csv", rows, show=True)
    show_lines(f"Table 5 shows {'; '.join(shown)}")
    outputs.end()


def written(outputs: Outputs, example: Example, name: str) -> list[list[str]]:
    """Write the figure of an example and its numbers; return its rows of Table 2."""
    outputs.csv(f"{name}.csv", example.numbers())
    outputs.picture(name, example.draw)
    where = [example.panel, example.subject.dataset, example.question.id, example.subject.system]
    return [[*where, label, text] for label, text in texts(example)]


def texts(example: Example) -> Iterator[tuple[str, str]]:
    """Yield (label, text in Markdown) for each row of an example."""
    question, span = example.question, example.finding.span if example.finding else None
    lost = range(span.start, span.stop) if span else range(0)
    yield "source", " ".join(f"**{word}**" if i in lost else word for i, word in enumerate(question.words))
    yield "human", question.reference_text
    yield "answer", question.page.replace("_", " ")
    yield example.subject.system, marked(example)
    for number, mark in enumerate(marks_of(example.errors), 1):
        yield "error", f"({number}) {' '.join(mark.words)}: rank {ranks(mark)}, {mark.loss:.2f} nats of log MRR lost"
    if example.silence:
        yield "error", f"nothing written over {100 * example.size:.0f}% of the source"


def ranks(finding: Finding) -> str:
    """Return the rank of the answer before and after a finding, as text."""
    return " to ".join(str(rank or f"> {RULES.top}") for rank in (finding.rank_before, finding.rank_after))


def marked(example: Example) -> str:
    """Return the system's output with hallucinated stretches numbered and bold, and the silence marked."""
    marks, trace = marks_of(example.errors), example.trace
    numbered = {mark.first: f"({number}) " for number, mark in enumerate(marks, 1)}
    inside = {step for mark in marks for step in range(mark.first, mark.last + 1)}
    words = [
        numbered.get(step, "") + (f"**{emission.token}**" if step in inside else emission.token)
        for step, emission in enumerate(trace.emissions)
    ]
    if example.panel == "b" and example.finding:
        words.insert(int((sentences(trace) <= example.finding.sentence).sum()), "[silence]")
    return " ".join(words)
