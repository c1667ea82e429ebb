"""Table 5 (`sqa reproduce table5`): the questions of Figure 5 with source, human translation, answer and output."""

from pathlib import Path

from experiments.outputs import Outputs
from experiments.stepwise.examples import chosen, load_systems, missing
from sqa.results import show_lines


def main(config_path: Path, runs: Path) -> None:
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
