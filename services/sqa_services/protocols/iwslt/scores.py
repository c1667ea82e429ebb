"""Scores of a session as the servers of 2020 and SimulEval 1.0.2 compute them, and the three output files.

BLEU is sacreBLEU's.  Latencies are plain means of AL, AP and DAL over sentences, in float32 as on those servers, up to
the order of a sum, which can change a value by a factor of 1e-6 (`sqa.metrics.latency` has the same formulas in
float64, for any number of sentences at once).

TER and METEOR came from VizSeq, which this project does not include.  They are null in JSON and "n/a" in the file.
With --strict-2020 they are -1.0, as on the recorded server, which had no VizSeq either.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from sqa.files import write_text
from sqa.metrics.latency import IWSLT_2020_FINAL, Convention
from sqa_services.net.guard import Refused

SO_FAR = "SoFar"  # key of the scores of an unfinished corpus


class Translated(NamedTuple):
    """The translation received for one sentence."""

    text: str  # without the end-of-sentence mark
    delays: tuple[float, ...]  # as recorded
    source_length: float  # length by the convention's rule
    reference: str


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return sacreBLEU of the corpus, 0 to 100; there must be as many references as hypotheses."""
    return float(BLEU(force=True).corpus_score(list(hypotheses), [list(references)]).score)


def sentence_bleu(hypothesis: str, reference: str) -> float:
    """Return sacreBLEU of one sentence, 0 to 100, with n-grams up to the longest available."""
    return float(BLEU(effective_order=True).sentence_score(hypothesis, [reference]).score)


def flat_scores(
    sentences: Sequence[Translated], convention: Convention = IWSLT_2020_FINAL, strict: bool = False
) -> dict[str, float | None]:
    """Return {"BLEU", "TER", "METEOR", "DAL", "AL", "AP"}.

    Latencies cover the sentences with words; they are None if there is no such sentence.  Raises Refused without
    sentences, and with `strict` if a sentence has no words.
    """
    if not sentences or (strict and not all(s.delays for s in sentences)):
        raise Refused(500, "no translation was received" if not sentences else "a sentence has no words")
    values = [sentence_latency(s.delays, s.source_length, convention) for s in sentences if s.delays]
    latency = {key: sum(getattr(v, key) for v in values) / len(values) if values else None for key in Latency._fields}
    return {
        "BLEU": bleu([s.text for s in sentences], [s.reference for s in sentences]),
        **dict.fromkeys(("TER", "METEOR"), -1.0 if strict else None),
        **{key: latency[key] for key in ("DAL", "AL", "AP")},
    }


def mean_latency(values: Sequence[Latency], strict: bool) -> dict[str, float | None]:
    """Return {"AL", "AP", "DAL"} of SimulEval 1.0.2; sentences without words are NaN, and omitted unless strict."""
    if not strict:
        values = [value for value in values if not math.isnan(value.AL)]
    if not values:
        return dict.fromkeys(Latency._fields)
    return dict(zip(Latency._fields, map(mean, zip(*values, strict=True)), strict=True))


def of_the_finished(scores: dict[str, Any], finished: int, sentences: int) -> dict[str, Any]:
    """Return the scores if the corpus is finished, else nulls and counts, with the scores so far under SO_FAR."""
    if finished >= sentences:
        return scores
    return {**_emptied(scores), "Finished": finished, "Sentences": sentences, SO_FAR: scores}


def _emptied(scores: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _emptied(value) if isinstance(value, Mapping) else None for key, value in scores.items()}


def write_files(folder: Path, sentences: Sequence[Translated], scores: Mapping[str, Any]) -> None:
    """Write text and delays of each sentence, and the scores, for their owner only; a missing score is "n/a"."""
    rows = ({"src_len": s.source_length, "delays": list(s.delays)} for s in sentences)
    printed = {key: "n/a" if value is None else value for key, value in scores.items() if key != SO_FAR}
    files = {
        "text": [s.text for s in sentences],
        "delay": map(json.dumps, rows),
        "scores": [f"{key}, {value}" for key, value in printed.items()],
    }
    for name, lines in files.items():
        write_text(folder / name, "".join(f"{line}\n" for line in lines), 0o600)


# ------------------------------------------------------------------------------------------------ latencies


class Latency(NamedTuple):
    """Latencies of one sentence, in source units (AP: a ratio); NaN without words."""

    AL: float
    AP: float
    DAL: float


def sentence_latency(
    delays: Sequence[float], source_length: float, convention: Convention, reference_length: int | None = None
) -> Latency:
    """Return AL, AP and DAL.  `source_length` includes the end of a text if the convention counts it.

    `reference_length` is |y| in AL if the convention's `al_reference` is "capped"; otherwise |y| is the number of
    delays.
    """
    if not delays or not source_length > 0:
        return Latency(math.nan, math.nan, math.nan)
    read = [d + convention.late if d < source_length else d for d in delays]
    if convention.clip:
        read = [min(int(d), source_length) for d in read]
    steps = np.array(read, dtype=np.float32)  # (T,)
    source, number = np.float32(source_length), np.float32(len(read))
    index = np.arange(len(read), dtype=np.float32)  # (T,)
    per_word = index / (number / source)  # (T,) (i-1)/gamma
    ideal = per_word
    if convention.al_reference == "capped":
        target = len(read) if reference_length is None else reference_length
        ideal = np.minimum(index, np.float32(target - 1)) * source / np.float32(target)
    counted = np.concatenate(([True], steps[:-1] < source))  # (T,) up to the first word after the whole source
    lag = np.where(counted, steps - ideal, np.float32(0))
    behind = _pushed(steps, np.float32(1) / (number / source)) - per_word
    return Latency(
        AL=float(lag.sum(dtype=np.float32) / np.float32(counted.sum())),
        AP=float(steps.sum(dtype=np.float32) / (source * number)),
        DAL=float(behind.sum(dtype=np.float32) / number),
    )


def _pushed(steps: np.ndarray, spacing: np.float32) -> np.ndarray:
    """Return the delays d'_i = max(d_i, d'_{i-1} + 1/gamma) of DAL, shape (T,)."""
    out = steps.copy()
    for i in range(1, len(out)):
        out[i] = max(out[i - 1] + spacing, out[i])
    return out
