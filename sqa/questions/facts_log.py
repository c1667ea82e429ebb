"""Implement `sqa latency LOG --facts`: find arrived and invented facts of a log, and their lags.

These keys of a line are read: `prediction`, `delays` (one per word, and one for the end if the log counts it),
`reference`, and `source` if it is a text.  `--references` and `--sources` give one line per line of the log
instead.  Lags are in source words, or in seconds if delays are milliseconds of speech.  Logs contain no word times,
so the time of a transcript word is estimated: the word counts as read when its share of the characters has been
heard.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sqa.core import DataError, Floats, NotComputable, bootstrap, every
from sqa.metrics.fact_metrics import OF_LOGS, Side, fact_stats
from sqa.metrics.latency_log import LogOptions
from sqa.metrics.quality.facts import Judged, judge
from sqa.questions.files import languages as codes_of
from sqa.questions.texts import Translated, of_log
from sqa.results import Table, show

LEAST = 0.15  # minimum share of function words in a text of its language


TEXTS = LogOptions()  # no texts beside the log


class JudgedLog(NamedTuple):
    """A log and the facts of each line."""

    log: Translated
    judged: Sequence[Judged]

    def stats(self, side: Side) -> Floats:
        """Return the statistics of `fact_stats` of each line, (n, 2)."""
        lines = zip(self.judged, self.log.segments, strict=True)
        return np.array([fact_stats(side, judged, segment.reads, segment.positions) for judged, segment in lines])

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the object that `--json` prints for each line; null means a lost fact or an unknown source word."""
        for index, (judged, line) in enumerate(zip(self.judged, self.log.segments, strict=True)):
            facts = []
            for fact, target, source in ((each.fact, each.target, each.source) for each in judged.expected):
                at = None if target is None else line.reads[target]
                lag = None if at is None or source is None else at - line.positions[source]
                facts.append({"fact": fact.text, "kind": fact.kind, "at": at, "lag": lag})
            yield {"index": index, "facts": facts, "invented": [fact.text for fact in judged.invented]}


def judged_log(path: str, languages: str, texts: LogOptions = TEXTS) -> JudgedLog:
    """Return a log ("-": standard input) with the facts of every line.

    Args:
        path: The log.
        languages: Source and target, such as es-en, for number words and alignment priors; -en: unknown source.
        texts: Texts beside the log.

    Raises:
        DataError: "FILE:LINE: ..." for an invalid line.
        ConfigError: For anything but two languages.
    """
    log, pair = of_log(path, texts), codes_of(languages)
    sources = [" ".join(segment.source) for segment in log.segments]
    _check_language(path, languages, "sources", pair[0], sources)
    _check_language(path, languages, "references", pair[1], [segment.reference for segment in log.segments])
    judged = []
    for segment in log.segments:
        if not segment.reference or not segment.reference.strip():
            raise DataError(f"{segment.where}: no reference, which --facts needs; give --references FILE")
        judged.append(judge(segment.source, segment.words, tuple(segment.reference.split()), *pair))
    return JudgedLog(log, judged)


def _check_language(path: str, pair: str, side: str, code: str, texts: Sequence[str | None]) -> None:
    """Warn on stderr if function words suggest a language other than the pair's."""
    words = [word.lower() for text in texts for word in (text or "").split()]
    shares = {each.code: sum(word in each.function_words for word in words) / max(1, len(words)) for each in every()}
    likely = max(shares, key=shares.__getitem__)
    if code and shares[likely] > max(LEAST, 2 * shares.get(code, 0)):
        print(f"sqa: {path}: its {side} look like {likely!r}, not {code!r}; is --pair {pair} right?", file=sys.stderr)


def table(lines: JudgedLog, resamples: int = 1000) -> Iterator[tuple[Any, ...]]:
    """Yield a row per metric: name, value, ends of its interval, number of facts, number of facts left out, unit.

    Lines are resampled.  Without source texts only `facts` has a value, because lags and invented facts are unknown.
    """
    arrived = sum(located.target is not None for judged in lines.judged for located in judged.expected)
    without_source = not any(segment.positions for segment in lines.log.segments)
    for side, metric in OF_LOGS.items():
        stats = lines.stats(side)
        n = int(stats[:, 1].sum())
        left_out = arrived - n if side == "lag" else 0
        unit = lines.log.unit if side == "lag" else metric.unit
        try:
            if without_source and side != "arrived":
                raise NotComputable("no source text")
            interval = bootstrap(stats, metric, resamples)
            numbers: tuple[float | None, ...] = (interval.value, interval.low, interval.high)
        except NotComputable:
            numbers = (None, None, None)
        yield metric.name, *numbers, n, left_out, unit


def main(path: str, languages: str, texts: LogOptions, as_json: bool) -> None:
    """Print a table, or one JSON object with the facts of each line; the arguments are those of `judged_log`."""
    lines = judged_log(path, languages, texts)
    if as_json:
        for record in lines.records():
            print(json.dumps(record, ensure_ascii=False))
        return
    header = ("metric", "value", "low", "high", "n", "undefined", "unit")
    show(Table(header, [*table(lines)], dict.fromkeys(header, 4)))
