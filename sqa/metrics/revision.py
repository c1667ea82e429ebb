"""Normalized erasure: retracted words per word of the final translation.

    NE = sum over writes of the words retracted / words of the final translation

The metric is from Arivazhagan et al. 2020 ("Re-translation versus streaming for simultaneous translation").  0 means
that the system only appends; 1 means one retracted word per final word.
"""

from sqa.core import QuestionTrace
from sqa.metrics.measure import Family


@Family("ne", "NE", "unit:word|mean:pooled|resample:question", kind="lag", unit="per word", needs=())
def erasure(trace: QuestionTrace) -> tuple[float, float]:
    """Return (words retracted, words of the final translations) of one question."""
    return sum(each.erase for each in trace.emissions), sum(len(text.split()) for text in trace.hypotheses)
