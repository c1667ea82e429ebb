"""A run of ours as a SimulEval log, for SimulEval's own scorer: the other direction of `smt.engines.recorded`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from smt.engines.recorded import Unit, units_of
from sqa.core.errors import NotComputable
from sqa.core.trace import QuestionTrace
from sqa.files.atomic import write_text
from sqa.run.export import question_texts


def write_instances(traces: Iterable[QuestionTrace], folder: Path, unit: Unit = "sentence") -> Path:
    """Write a run as SimulEval 1.1 does, for `simuleval --score-only --output FOLDER`; returns the log's path.

    One line a sentence, or with `unit` "question" a question, whose delays are then those of equation 1.  A sentence's
    reference is its own where the human translation has as many sentences as the source, else its share of the
    question's words.  Elapsed times are 0.  NotComputable for a trace with retractions.
    """
    rows: list[str] = []
    for trace in traces:
        if any(emission.erase for emission in trace.emissions):
            raise NotComputable(f"{trace.question.id} retracts words; an instances.log cannot say so")
        references = list(question_texts([trace.question], "references", unit))
        for member, reference in zip(units_of(trace.question, unit), references, strict=True):
            emissions = enumerate(trace.emissions)
            steps = [step for step, e in emissions if member.sentence in (None, e.sentence)]
            tokens = [trace.emissions[step].token for step in steps]
            questionwide = member.sentence is None
            delays = [int(trace.source_words[s]) if questionwide else trace.emissions[s].g for s in steps]
            row = {
                "index": len(rows),
                "prediction": " ".join(tokens),
                "delays": delays,
                "elapsed": [0] * len(delays),
                "prediction_length": len(tokens),
                "reference": reference,
                "source": " ".join(member.words),
                "source_length": len(member.words),
            }
            rows.append(json.dumps(row) + "\n")
    write_text(folder / "config.yaml", "source_type: text\ntarget_type: text\n")
    write_text(folder / "instances.log", "".join(rows))
    return folder / "instances.log"
