"""Findings of a run as error spans that an annotator checks: a campaign of Pearmut, protocol ESA.

    {"info": {"assignment": "task-based", "protocol": "ESA"}, "campaign_id": ...,
     "data": [[[{"src", "ref", "tgt": {NAME: text}, "item_id", "error_spans": {NAME: [span, ...]}}, ...]]]}

An item is a sentence, a document is a question, and one user has all of them.  A span has `start_i` and `end_i`, its
first and last character, counted in UTF-16 units as browsers do.  A span of lost source words is the position after the
text, where Pearmut shows "[missing]".  Words at which only the rank of the answer fell have no span.  Spans do not
overlap: of several findings at a place, only the worst gets a span.  `severity` is "major" if the log reciprocal rank
of the answer fell by at least `DiagnoseConfig.drop` at a hallucination, else "minor".  `category` is null, because
kinds of findings are not MQM categories.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from sqa.core import QuestionTrace, final_steps
from sqa.diagnose.findings import AUTO, findings_of
from sqa.diagnose.step_errors import DiagnoseConfig, Finding
from sqa.metrics.measure import sentence_references
from sqa.pipeline import RunFolder
from sqa.results import grouped

KINDS = ("hallucination", "omission")  # a drop has no span, because its word may be right
INFO = {"assignment": "task-based", "protocol": "ESA"}


def campaign(run: RunFolder, detector: str = AUTO) -> str:
    """Return the campaign of a run as JSON; raises ConfigError if no guesser ran."""
    worst_first = findings_of(run, kinds=KINDS, detector=detector)
    findings = grouped(((finding.question, finding.sentence), finding) for finding in worst_first)
    documents = [items(trace, run.folder.name, findings) for trace in run.traces]
    return json.dumps({"info": INFO, "campaign_id": run.folder.name, "data": [documents]}, ensure_ascii=False)


def items(
    trace: QuestionTrace, name: str, findings: Mapping[tuple[str, int], Sequence[Finding]]
) -> list[dict[str, Any]]:
    """Return an item for each sentence; `findings` maps (question id, sentence) to findings, worst first."""
    question, drop = trace.question, DiagnoseConfig().drop
    lines = zip(question.sentences, sentence_references(question), trace.hypotheses, strict=True)
    return [
        {
            "src": " ".join(source),
            "ref": reference,
            "tgt": {name: text},
            "item_id": f"{question.id}-{sentence}",
            "error_spans": {
                name: spans(text, places(trace, sentence), findings.get((question.id, sentence), ()), drop)
            },
        }
        for sentence, (source, reference, text) in enumerate(lines)
    ]


def places(trace: QuestionTrace, sentence: int) -> dict[int, tuple[int, int]]:
    """Return a dict that maps steps to the first and last UTF-16 unit of their words in a sentence's final translation.

    Steps whose words were retracted, and steps of other sentences, are left out.
    """
    steps = final_steps(trace.question, trace.emissions)[sentence]
    lengths = [units(trace.emissions[step].token) for step in steps]
    ends = accumulate(length + 1 for length in lengths)
    return {step: (end - 1 - length, end - 2) for step, length, end in zip(steps, lengths, ends, strict=True)}


def spans(
    text: str, at: Mapping[int, tuple[int, int]], findings: Iterable[Finding], drop: float
) -> list[dict[str, Any]]:
    """Return the spans of omissions and of findings whose words are in the final text, sorted, without overlaps."""
    kept: dict[tuple[int, int], bool] = {}
    for finding in findings:
        shown = [at[step] for step in range(finding.first, finding.last + 1) if step in at]
        start, end = (
            (units(text),) * 2 if finding.kind == "omission" else (shown[0][0], shown[-1][1]) if shown else (0, -1)
        )
        if start <= end and all(end < other_start or start > other_end for other_start, other_end in kept):
            kept[start, end] = finding.kind != "omission" and finding.loss >= drop
    return [
        {"start_i": start, "end_i": end, "severity": "major" if major else "minor", "category": None}
        for (start, end), major in sorted(kept.items())
    ]


def units(text: str) -> int:
    """Return the length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2
