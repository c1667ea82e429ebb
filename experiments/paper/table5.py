"""Table 5 (`sqa reproduce table5`): the paper's questions, and the translations by wait-3 and wait-6."""

from pathlib import Path

from experiments.outputs import Outputs
from experiments.stepwise.examples import is_answerable, load_systems
from experiments.stepwise.systems import Selection, Subject
from sqa.core.answers import key
from sqa.core.errors import NotComputable

QUESTIONS = 2  # number of questions shown from a data set without the paper's questions


def main(config_path: Path, runs: Path) -> None:
    """Write Table 5: the paper's questions if the data set has them, else the first questions with a known answer."""
    selection = load_systems(config_path, runs)
    rows = [["dataset", "question", "answer", "what", "text"]]
    for dataset in selection.datasets:
        subjects = [subject for subject in selection.subjects if subject.dataset == dataset]
        for index in shown_questions(selection, subjects[0]):
            question = subjects[0].run.questions[index]
            where = [dataset, question.id, question.page]
            rows += [[*where, "source", question.text], [*where, "human", question.reference_text]]
            for subject in (subject for subject in subjects if subject.k in selection.config.shown):
                written = " ".join(sentence for sentence in subject.run.traces[index].hypotheses if sentence)
                rows.append([*where, subject.system, written])
    if len(rows) == 1:
        raise NotComputable("table 5: no question whose answer is known; choose another guesser in the config")
    rows += [[label, "", "", "not computed", why] for label, why in selection.left_out]
    outputs = Outputs(selection.folder)
    outputs.csv("table5.csv", rows, show=True)
    outputs.end()


def shown_questions(selection: Selection, subject: Subject) -> list[int]:
    """Return the indices of the questions of a data set that the table shows."""
    wanted = {key(page) for page in selection.config.pages}
    questions = subject.run.questions
    named = [index for index, question in enumerate(questions) if key(question.page) in wanted]
    return named or [index for index in range(len(questions)) if is_answerable(subject, index)][:QUESTIONS]
