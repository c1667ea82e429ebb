"""Figure 5, Tables 2 and 5: example questions, drawn word by word and printed as text.

    sqa reproduce fig5      # (a) a hallucination and (b) an under-translation, drawn by sqa/report/steps.py
    sqa reproduce table2    # the texts of the same questions, with the errors marked
    sqa reproduce fig5 runs/mine --question ID      # any question of any run

The config names the questions, or experiments/stepwise/examples.py chooses them.

Claim, after Section 7 of Han, Carpuat and Boyd-Graber (2022): words that the translation invents mislead the
player.  A single question proves nothing; experiments/ledger/stepwise-costs.tsv measures the claim over all questions.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.outputs import Outputs
from experiments.stepwise.examples import Example, chosen, load_systems, missing, of_question, stem
from experiments.stepwise.systems import RULES, Subject, line_of
from sqa.core.errors import ConfigError
from sqa.core.registry import did_you_mean
from sqa.diagnose.findings import errors_of
from sqa.diagnose.step_errors import Finding
from sqa.pipeline.folder import open_run
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
        subject = example.subject
        question = subject.run.questions[example.at]
        where = [subject.dataset, question.id, question.page]
        written = " ".join(filter(None, subject.run.traces[example.at].hypotheses))
        rows += [[*where, "source", question.text], [*where, "human", question.reference_text]]
        rows.append([*where, subject.system, written])
        shown.append(f"{question.id} ({question.page.replace('_', ' ')}) by {subject.system}")
    rows += [[label, "", "", "not computed", why] for label, why in missing(selection, examples)]
    outputs = Outputs(selection.folder)
    outputs.csv("table5.csv", rows, show=True)
    show_lines(f"Table 5 shows {'; '.join(shown)}")
    outputs.end()


def of_run(folder: Path, question: str, runs: Path) -> None:
    """Write the figure, its numbers and its texts for a question of a finished run."""
    run = open_run(folder)
    ids = [each.id for each in run.questions]
    if question not in ids:
        raise ConfigError(f"--question: {question!r} is not a question of {folder}{did_you_mean(question, ids)}")
    config, errors = run.config, tuple(errors_of(run))
    k = getattr(config.translator.options, "k", "full")
    guesser = "" if config.guesser is None else config.guesser.name
    lines, indices = tuple(map(line_of, run.traces)), {id: index for index, id in enumerate(ids)}
    subject = Subject(
        Path(config.dataset.name).name, k, guesser, run, errors, lines, (), indices, config.translator.name
    )
    outputs, name = Outputs(runs / "figure5"), f"{folder.name}_{question}"
    examples = [of_question(panel, subject, indices[question]) for panel in ("b", "a")]
    example = next((example for example in examples if example.finding), examples[-1])
    outputs.csv(f"{name}_texts.csv", [TABLE2, *written(outputs, example, name)], show=True)
    outputs.end()


def written(outputs: Outputs, example: Example, name: str) -> list[list[str]]:
    """Write the figure of an example and its numbers; return its rows of Table 2."""
    subject, panel = example.subject, example.panel
    outputs.csv(f"{name}.csv", subject.numbers(example.at))
    outputs.picture(name, subject.draw, example.at, example.finding, f"({panel}) ")
    where = [panel, subject.dataset, subject.run.questions[example.at].id, subject.system]
    return [[*where, label, text] for label, text in texts(example)]


def texts(example: Example) -> Iterator[tuple[str, str]]:
    """Yield (label, text in Markdown) for each row of an example."""
    subject, finding = example.subject, example.finding
    question = subject.run.questions[example.at]
    span = finding.span if finding else None
    lost = range(span.start, span.stop) if span else range(0)
    yield "source", " ".join(f"**{word}**" if i in lost else word for i, word in enumerate(question.words))
    yield "human", question.reference_text
    yield "answer", question.page.replace("_", " ")
    yield subject.system, marked(example)
    for number, mark in enumerate(marks_of(subject.errors[example.at]), 1):
        yield "error", f"({number}) {' '.join(mark.words)}: rank {ranks(mark)}, {mark.loss:.2f} nats of log MRR lost"
    if example.panel == "b" and finding:
        yield "error", f"nothing written over {100 * example.size:.0f}% of the source"


def ranks(finding: Finding) -> str:
    """Return the rank of the answer before and after a finding, as text."""
    return " to ".join(str(rank or f"> {RULES.top}") for rank in (finding.rank_before, finding.rank_after))


def marked(example: Example) -> str:
    """Return the system's output with hallucinated stretches numbered and bold, and the silence marked."""
    subject, finding = example.subject, example.finding
    marks = marks_of(subject.errors[example.at])
    numbered = {mark.first: f"({number}) " for number, mark in enumerate(marks, 1)}
    inside = {step for mark in marks for step in range(mark.first, mark.last + 1)}
    words = [
        numbered.get(step, "") + (f"**{emission.token}**" if step in inside else emission.token)
        for step, emission in enumerate(subject.run.traces[example.at].emissions)
    ]
    if example.panel == "b" and finding:
        later = subject.lines[example.at].sentence > finding.sentence
        words.insert(int(np.argmax(later)) if later.any() else len(words), "[silence]")
    return " ".join(words)
