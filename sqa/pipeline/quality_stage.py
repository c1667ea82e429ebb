"""Compute the scores of text metrics, cached in the store by metric and texts.

    <root>/store/quality/<key>/block-0000.npz   segment str  stats list<f64>

The key is the metric's fingerprint (package, model, settings).  A row's `segment` is the sha256 of source,
translation and human translation, sentence by sentence if the sentences are paired.  A model thus scores each text
only once across all runs.  A refusal or a failure is a `Score` with the reason, never a number.
"""

from collections.abc import Iterable, Mapping, Sequence

from sqa.core import BuiltMetric, NotComputable, QuestionTrace, Score, SqaError, TextMetric, bar, in_a_line, table_of
from sqa.files import Stage, Store
from sqa.metrics.quality.text_metric import Segment, not_computed, segment_of

CHUNK = 16  # segments between two saves of scores
KEPT = {"segment": "text", "stats": "[f8]"}


def score_texts(
    metrics: Sequence[BuiltMetric], traces: Iterable[QuestionTrace], store: Store, progress: bool
) -> tuple[dict[str, BuiltMetric], dict[str, dict[str, Score]]]:
    """Return metrics by name, failed ones as `not_computed`, and scores by question id and metric name."""
    segments, refused = _segments(traces)
    ids = [*segments, *refused]
    by_name: dict[str, BuiltMetric] = {}
    scores: dict[str, dict[str, Score]] = {id: {} for id in ids}
    for metric in metrics:
        rows: dict[str, Score] = {}
        reason = ""
        if isinstance(metric, TextMetric):
            try:
                measured = _measured(metric, list(segments.values()), store, progress)
                rows = {id: Score(stats) for id, stats in zip(segments, measured, strict=True)}
            except SqaError as error:
                reason = in_a_line(error)
                metric = not_computed(metric.name, reason, metric.label)
        by_name[metric.name] = metric
        for id in ids:
            scores[id][metric.name] = rows.get(id) or Score(None, reason or refused[id])
    return by_name, scores


def _segments(traces: Iterable[QuestionTrace]) -> tuple[dict[str, Segment], dict[str, str]]:
    """Return the segments, and the reasons for missing segments, both by question id."""
    segments, refused = {}, {}
    for trace in traces:
        try:
            segments[trace.question.id] = segment_of(trace)
        except NotComputable as refusal:
            refused[trace.question.id] = str(refusal)
    return segments, refused


def _measured(metric: TextMetric, segments: Sequence[Segment], store: Store, progress: bool) -> list[tuple[float, ...]]:
    """Return the statistics of each segment, from the store if possible."""
    identity = metric.fingerprint()
    if identity is None:
        return metric.measure(segments)
    stage = Stage("quality", type(metric).__name__, identity, (), "any", 1)
    keys = [segment.key for segment in segments]
    kept = _kept(store, stage)
    todo = {key: segment for key, segment in zip(keys, segments, strict=True) if key not in kept}
    missing = list(todo.items())
    with bar(f"{metric.name:9}", len(keys), len(keys) - len(missing), disable=not (progress and missing)) as shown:
        for start in range(0, len(missing), CHUNK):
            chunk = missing[start : start + CHUNK]
            stats = metric.measure([segment for _, segment in chunk])
            kept = _keep(store, stage, dict(zip((key for key, _ in chunk), stats, strict=True)))
            shown.update(len(chunk))
    return [kept[key] for key in keys]


def _kept(store: Store, stage: Stage) -> dict[str, tuple[float, ...]]:
    if store.missing(stage, 1):
        return {}
    table = store.read(stage, 0, KEPT)
    return dict(zip(table["segment"].to_list(), map(tuple, table["stats"].to_list()), strict=True))


def _keep(store: Store, stage: Stage, measured: Mapping[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
    """Add statistics to the store, which another run may have extended in the meantime, and return all of them."""
    with store.working_on(stage):
        rows = {**_kept(store, stage), **measured}
        store.write(stage, 0, table_of(KEPT, sorted(rows.items())))
    return rows
