"""Published results on data sets with secret answers: only one rounded score depends on the answers.

Exact scores reveal which guesses were right, since the position of a buzz gives each question its own weight.
Intervals, tags, differences and their p-values reveal it as well.  A published result therefore contains one score,
that of the sorting metric.  All other values follow from the submission and the public inputs.

A score is shown in steps that correspond to at least `SHARE` examples.  It is rounded up or down at random, with
probabilities that keep its mean.  One answer changes the shown score with a probability of at most 1 / SHARE.  After s
scores, an observer who knows all other answers can tell whether a guess is right with a probability of at most 1/2 + s
/ (2 SHARE).  The random draw is keyed by the board's secret, the data set and the answers, so the same submission
always has the same score.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from sqa.files.records import parse_json
from sqa_services.board.metrics import Additive, pretty
from sqa_services.board.metrics import metric as built
from sqa_services.board.permissions import PUBLIC_ANSWERS

FEW = 20  # minimum number of examples of a data set with a published score
SHARE = 6  # minimum number of examples per step
RANGES = {"0-1": 1.0, "0-100": 100.0}  # ranges of the metrics of `sqa.metrics`; metrics of labels are percentages
OF_INPUTS = ("al", "ap", "dal")  # metrics that depend on neither answers nor references


def rounded(metric: str, value: float, examples: int, key: str) -> float:
    """Round a value at random to one of its two neighbouring steps; a step is 1, 2 or 5 times a power of ten.

    `key` determines the direction; the mean over keys equals the value.
    """
    get = built(metric)
    range_ = RANGES.get(get.metric.unit, 1.0) if isinstance(get, Additive) else 100.0
    step = _step(SHARE * range_ / examples)
    share = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) / 2**64  # uniform from 0 to 1
    return round(math.floor(value / step + share) * step, 9)


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def published(row: Mapping[str, Any], dataset: Mapping[str, Any], perf_metric: str, secret: str) -> dict[str, Any]:
    """Return the public form of an evaluation: unchanged if the data set is open or there is no result."""
    result, n = row["result"], dataset["examples"]
    if dataset["phase"] in PUBLIC_ANSWERS or result is None:
        return dict(row)
    metadata = parse_json(result["metadata_json"])
    if row["prefix"]:
        names = ("transform", "n", "unperturbed_percent")  # the share of equal answers depends only on the submission
        shown = [{name: transform[name] for name in names} for transform in metadata["transforms"]]
        return {**row, "result": {**result, "metadata_json": json.dumps({"transforms": shown})}}
    kept: dict[str, Any] = {name: metadata[name] for name in OF_INPUTS if name in metadata} | {"perf_by_tag": []}
    score: dict[str, Any] = {"perf": None, "pretty_perf": None}
    if n >= FEW:
        perf = rounded(perf_metric, result["perf"], n, f"{secret} {dataset['id']} {result['digest']}")
        kept, score = {perf_metric: perf, **kept}, {"perf": perf, "pretty_perf": pretty(perf_metric, perf)}
    return {**row, "result": {**result, **score, "metadata_json": json.dumps(kept)}}
