"""Export of a run as a SimulEval log, for SimulEval's own scorer: the inverse of `smt.engines.recorded`."""

import json
from collections.abc import Iterable
from pathlib import Path

from smt.engines.recorded import Unit, units_of
from sqa.core import NotComputable, QuestionTrace
from sqa.files import write_text
from sqa.pipeline import question_texts


def write_instances(traces: Iterable[QuestionTrace], folder: Path, unit: Unit = "sentence") -> Path:
    """Write a run in SimulEval 1.1's format, for `simuleval --score-only --output FOLDER`; return the log's path.

    Writes one line per sentence, or with `unit` "question" one per question with the delays of equation 1 (see
    `sqa.core.trace`).  A sentence's reference is its own human translation if source and translation have equally many
    sentences, else its share of the question's words.  Elapsed times are 0.  Raises NotComputable for a trace with
    retractions.
    """
    rows: list[str] = []
    for trace in traces:
        if any(emission.erase for emission in trace.emissions):
            raise NotComputable(f"{trace.question.id} retracts words, which an instances.log cannot represent")
        references = list(question_texts([trace.question], "references", unit))
        for member, reference in zip(units_of(trace.question, unit), references, strict=True):
            written = [e for e in trace.emissions if member.sentence in (None, e.sentence)]
            delays = trace.source_words.tolist() if member.sentence is None else [e.g for e in written]
            row = {"index": len(rows), "prediction": " ".join(e.token for e in written), "delays": delays}
            row |= {"elapsed": [0] * len(written), "prediction_length": len(written), "reference": reference}
            row |= {"source": " ".join(member.words), "source_length": len(member.words)}
            rows.append(json.dumps(row) + "\n")
    write_text(folder / "config.yaml", "source_type: text\ntarget_type: text\n")
    write_text(folder / "instances.log", "".join(rows))
    return folder / "instances.log"
