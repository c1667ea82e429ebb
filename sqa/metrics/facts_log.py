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
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.languages import every
from sqa.core.significance import bootstrap
from sqa.core.types import Floats
from sqa.data.languages import certain, code_of
from sqa.files.logs import names_audio
from sqa.metrics.fact_metrics import SIDES, Facts, Side, fact_stats
from sqa.metrics.log_lines import EOS, lines_beside, read_log
from sqa.metrics.quality.facts import Judged, judge
from sqa.results import Table, show

LEAST = 0.15  # minimum share of function words in a text of its language


@dataclass(frozen=True, slots=True)
class FactOptions:
    """Languages and texts of a log."""

    pair: str = "-en"  # ISO 639-1, for number words and alignment priors; "" before the dash: unknown
    references: Path | None = None  # one line per line of the log; replaces the log's references
    sources: Path | None = None
    resamples: int = 1000
    speech: bool | None = None  # delays are milliseconds of speech; None: determined by the log

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language.  Raises ConfigError for anything but two languages."""
        source, dash, into = self.pair.partition("-")
        if not dash or not certain(into) or (source and not certain(source)):
            raise ConfigError(f"--pair: expected two languages, such as es-en, got {self.pair!r}")
        return code_of(source) if source else "", code_of(into)


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """Facts of one line of a log, and the source read when each word was written."""

    judged: Judged
    reads: tuple[float, ...]  # source read before each target word, in words or seconds of speech
    positions: tuple[float, ...]  # source position of each source word; () without a source text
    speech: bool

    def stats(self, side: Side) -> Floats:
        """Return the statistics of `fact_stats`, (2,)."""
        return fact_stats(side, self.judged, self.reads, self.positions)

    def record(self, index: int) -> dict[str, Any]:
        """Return the object that `--json` prints; null means a lost fact or an unknown source word."""
        facts = []
        for fact, target, source in ((each.fact, each.target, each.source) for each in self.judged.expected):
            at = None if target is None else self.reads[target]
            lag = None if at is None or source is None else at - self.positions[source]
            facts.append({"fact": fact.text, "kind": fact.kind, "at": at, "lag": lag})
        return {"index": index, "facts": facts, "invented": [fact.text for fact in self.judged.invented]}


def judged_lines(path: str, options: FactOptions) -> list[JudgedLine]:
    """Return the facts of every line of a log ("-": standard input).

    Raises DataError "FILE:LINE: ..." for an invalid line.
    """
    log = read_log(path, options.speech)
    rows, speech = log.rows, log.speech
    references: Sequence[str | None] = [row.reference for row in rows]
    sources = [row.source if isinstance(row.source, str) and not names_audio(row.source) else "" for row in rows]
    if options.references is not None:
        references = lines_beside(path, options.references, len(rows))
    if options.sources is not None:
        sources = lines_beside(path, options.sources, len(rows))
    languages = options.languages
    for side, code, texts in (("sources", languages[0], sources), ("references", languages[1], references)):
        _check_language(path, options.pair, side, code, texts)
    lines = []
    for n, (row, reference, source) in enumerate(zip(rows, references, sources, strict=True)):
        where = log.where(n)
        if not reference or not reference.strip():
            raise DataError(f"{where}: no reference, which --facts needs; give --references FILE")
        if row.prediction is None:
            raise DataError(f"{where}: no prediction")
        words = tuple(row.prediction.removesuffix(EOS).split())
        if len(row.delays) not in (len(words), len(words) + 1):
            what = f"{len(words)} words in prediction and {len(row.delays)} delays"
            raise DataError(f"{where}: {what}; expected one delay per word")
        read = tuple(source.split())
        scale = 1000 if speech else 1
        positions = _heard(read, row.source_length / scale) if speech else tuple(range(1, len(read) + 1))
        judged = judge(read, words, tuple(reference.split()), *languages)
        lines.append(JudgedLine(judged, tuple(delay / scale for delay in row.delays), positions, speech))
    return lines


def _check_language(path: str, pair: str, side: str, code: str, texts: Sequence[str | None]) -> None:
    """Warn on stderr if function words suggest a language other than the pair's."""
    words = [word.lower() for text in texts for word in (text or "").split()]
    shares = {each.code: sum(word in each.function_words for word in words) / max(1, len(words)) for each in every()}
    likely = max(shares, key=shares.__getitem__)
    if code and shares[likely] > max(LEAST, 2 * shares.get(code, 0)):
        print(f"sqa: {path}: its {side} look like {likely!r}, not {code!r}; is --pair {pair} right?", file=sys.stderr)


def _heard(words: Sequence[str], seconds: float) -> tuple[float, ...]:
    """Return the time at which each word has been heard, assuming that all characters take equally long."""
    ends = list(accumulate(len(word) + 1 for word in words))
    return tuple(seconds * end / ends[-1] for end in ends)


def table(lines: Sequence[JudgedLine], resamples: int) -> Iterator[tuple[Any, ...]]:
    """Yield a row per metric: name, value, ends of its interval, number of facts, number of facts left out, unit.

    Lines are resampled.  Without source texts only `facts` has a value, because lags and invented facts are unknown.
    """
    arrived = sum(located.target is not None for line in lines for located in line.judged.expected)
    without_source = not any(line.positions for line in lines)
    for side in SIDES:
        metric = Facts(side)
        stats: Floats = np.array([line.stats(side) for line in lines])
        n = int(stats[:, 1].sum())
        left_out = arrived - n if side == "lag" else 0
        unit = "seconds" if side == "lag" and any(line.speech for line in lines) else metric.unit
        try:
            if without_source and side != "arrived":
                raise NotComputable("no source text")
            interval = bootstrap(stats, metric, resamples)
            numbers: tuple[float | None, ...] = (interval.value, interval.low, interval.high)
        except NotComputable:
            numbers = (None, None, None)
        yield metric.name, *numbers, n, left_out, unit


def main(path: str, options: FactOptions, as_json: bool) -> None:
    """Print a table, or one JSON object with the facts of each line."""
    lines = judged_lines(path, options)
    if as_json:
        for index, line in enumerate(lines):
            print(json.dumps(line.record(index), ensure_ascii=False))
        return
    header = ("metric", "value", "low", "high", "n", "undefined", "unit")
    show(Table(header, [*table(lines, options.resamples)], dict.fromkeys(header, 4)))
