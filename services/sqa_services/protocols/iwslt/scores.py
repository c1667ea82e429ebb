"""Scores of a session as the servers of 2020 and SimulEval 1.0.2 gave them, and the three output files.

Latencies are `float32`'s, a plain mean over sentences; BLEU is sacreBLEU's.  TER and METEOR came from VizSeq,
which is not part of this project: they are null, "n/a" in the file, and -1.0 with --strict-2020, where the recorded
server had no VizSeq either.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU

from sqa.files.atomic import write_text
from sqa.metrics.latency import IWSLT_2020_FINAL, Convention
from sqa_services.net.guard import Refused
from sqa_services.protocols.iwslt.float32 import Latency, sentence_latency

SO_FAR = "SoFar"  # key of the scores of an unfinished corpus


@dataclass(frozen=True, slots=True)
class Translated:
    """What came back of one sentence."""

    text: str  # without the mark of the end
    delays: tuple[float, ...]  # as recorded
    source_length: float  # as the convention counts it
    reference: str


class Files(NamedTuple):
    """Where an evaluation is written."""

    text: Path
    delay: Path
    scores: Path


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """sacreBLEU of the corpus, 0 to 100; as many references as hypotheses."""
    return float(BLEU(force=True).corpus_score(list(hypotheses), [list(references)]).score)


def sentence_bleu(hypothesis: str, reference: str) -> float:
    """sacreBLEU of one sentence, 0 to 100, n-grams up to the longest there is."""
    return float(BLEU(effective_order=True).sentence_score(hypothesis, [reference]).score)


def flat_scores(
    sentences: Sequence[Translated], convention: Convention = IWSLT_2020_FINAL, strict: bool = False
) -> dict[str, float | None]:
    """{"BLEU", "TER", "METEOR", "DAL", "AL", "AP"}, latencies over the sentences that have words (None: none has)."""
    if not sentences or (strict and not all(s.delays for s in sentences)):
        raise Refused(500, "no translation was received" if not sentences else "a sentence has no words")
    values = [sentence_latency(s.delays, s.source_length, convention) for s in sentences if s.delays]
    unknown = -1.0 if strict else None
    return {
        "BLEU": bleu([s.text for s in sentences], [s.reference for s in sentences]),
        "TER": unknown,
        "METEOR": unknown,
        "DAL": sum(v.dal for v in values) / len(values) if values else None,
        "AL": sum(v.al for v in values) / len(values) if values else None,
        "AP": sum(v.ap for v in values) / len(values) if values else None,
    }


def mean_latency(values: Sequence[Latency], strict: bool) -> dict[str, float | None]:
    """{"AL", "AP", "DAL"} of SimulEval 1.0.2: nan where a sentence has no words, which without `strict` is left out."""
    if not strict:
        values = [value for value in values if not math.isnan(value.al)]
    if not values:
        return {"AL": None, "AP": None, "DAL": None}
    if any(math.isnan(value.al) for value in values):
        return {"AL": math.nan, "AP": math.nan, "DAL": math.nan}
    return {
        "AL": mean(value.al for value in values),
        "AP": mean(value.ap for value in values),
        "DAL": mean(value.dal for value in values),
    }


def of_the_finished(scores: dict[str, Any], finished: int, sentences: int) -> dict[str, Any]:
    """Scores of a whole corpus unchanged; of a part null, with the counts, and the part's scores under SO_FAR."""
    if finished >= sentences:
        return scores
    return {**_emptied(scores), "Finished": finished, "Sentences": sentences, SO_FAR: scores}


def _emptied(scores: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _emptied(value) if isinstance(value, Mapping) else None for key, value in scores.items()}


def write_files(files: Files, sentences: Sequence[Translated], scores: Mapping[str, Any]) -> None:
    """Text and delays of each sentence, and the scores; a score that is not computed is "n/a"."""
    write_text(files.text, "".join(f"{s.text}\n" for s in sentences))
    rows = ({"src_len": s.source_length, "delays": list(s.delays)} for s in sentences)
    write_text(files.delay, "".join(f"{json.dumps(row)}\n" for row in rows))
    printed = {key: "n/a" if value is None else value for key, value in scores.items() if key != SO_FAR}
    write_text(files.scores, "".join(f"{key}, {value}\n" for key, value in printed.items()))
