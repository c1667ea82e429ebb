"""Kendall's tau over systems: scipy's values, joint resamples, and refusals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from scipy.stats import kendalltau

from sqa import metrics as metric_names
from sqa.core import ConfigError, NotComputable, means, significance
from sqa.pipeline import RunFolder, run_from_mapping
from sqa.report.correlation import correlate, correlate_runs, table


class Mean(significance.Mean):
    """The mean of a value over questions."""

    higher_is_better = True


class Lag(significance.Mean):
    """A mean for which less is better."""

    higher_is_better = False


def systems(seed: int, count: int, n: int, names: str) -> dict[str, dict[str, np.ndarray]]:
    """Return the statistics of `count` systems on `n` questions; each value is 0 or 1, so that ties occur."""
    rng = np.random.default_rng(seed)
    return {f"s{i}": {name: means(rng.integers(0, 2, n).astype(float)) for name in names} for i in range(count)}


@pytest.mark.parametrize("seed", range(8))
def test_tau_equals_scipys_tau_b(seed):
    stats = systems(seed, 7, 3, "abc")
    metrics = [Mean("a"), Lag("b"), Mean("c")]
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    score = {name: [s[name].sum(axis=0)[0] * (-1 if name == "b" else 1) for s in stats.values()] for name in "abc"}
    for (a, b), row in zip(pairs, correlate(stats, metrics, pairs, 200), strict=True):
        assert (row.a, row.b, row.systems, row.n, row.resamples) == (a, b, 7, 3, 200)
        assert row.tau == pytest.approx(kendalltau(score[a], score[b]).statistic, abs=1e-12)
        assert -1 <= row.low <= row.high <= 1


def test_all_metrics_are_resampled_together():
    """Compare with a loop that draws questions and ranks all systems again for each draw."""
    stats = systems(1, 3, 6, "ab")
    metrics = [Mean("a"), Mean("b")]
    [row] = correlate(stats, metrics, [("a", "b")], 300, seed=3)
    drawn = np.random.default_rng([3, 1]).integers(0, 6, size=(300, 6))  # the stream of sqa.core.significance
    taus = []
    for questions in drawn:
        a, b = ([s[name][questions, 0].mean() for s in stats.values()] for name in "ab")
        taus.append(kendalltau(np.round(a, 9), np.round(b, 9)).statistic)
    assert row.undefined == np.isnan(taus).sum() > 0
    assert [row.low, row.high] == pytest.approx(np.nanpercentile(taus, [2.5, 97.5]))
    means_of = {name: np.stack([s[name][drawn, 0].mean(axis=1) for s in stats.values()]).round(9) for name in "ab"}
    gaps = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        p, q = ((np.sign(scores[i] - scores[j]) / 2 + 0.5).mean() for scores in means_of.values())
        gaps.append(abs(p - q))
    assert row.spa == pytest.approx(1 - np.mean(gaps)) and table([row]).rows[0][-1] == row.spa


def test_undefined_tau_has_a_reason():
    by_system = systems(2, 3, 6, "ab")
    for stats in by_system.values():
        stats["tied"] = means(np.ones(6))
        stats["gone"] = np.zeros((6, 2))
    del by_system["s1"]["b"]
    metrics = [Mean("a"), Mean("b"), Mean("tied"), Mean("gone")]
    rows = correlate(by_system, metrics, [("a", "b"), ("a", "tied"), ("gone", "a")], 50)
    assert [row.tau for row in rows] == [None] * 3 and [row.low for row in rows] == [None] * 3
    assert rows[0].note == "not computed: b has no value for s1"
    assert rows[1].note == "not computed: all systems have the same value" and rows[1].undefined == 0
    assert rows[2].note.startswith("not computed: gone: undefined") and rows[2].note.endswith("(s0)")
    assert table(rows).rows[0] == ("a", "b", None, None, None, 3, 6, 50, 0, rows[0].note, None)
    refused(ConfigError, "at least 3 systems, got 2", correlate, {"a": {}, "b": {}}, [], [])


# --------------------------------------------------------------------------------------------------------- runs


def saved(name: str, seed: int, names: tuple[str, ...] = ("ew", "accuracy", "mrr"), n: int = 20) -> RunFolder:
    rng = np.random.default_rng(seed)
    parts = {"dataset": {"name": "mini-es"}, "translator": {"name": "fixed"}}
    config = run_from_mapping({"name": name, **parts, "metrics": list(names)})
    signatures = {metric.name: metric.signature() for metric in metric_names.build(names)}
    stats = {metric: means(rng.random(n)) for metric in names}
    return RunFolder(Path(name), config, "d", signatures, stats, tuple(f"q{i}" for i in range(n)))


def test_incomparable_runs_are_refused():
    runs = [saved(f"r{i}", i) for i in range(3)]
    refused(ConfigError, "at least 3 systems, got 2", correlate_runs, runs[:2])
    refused(ConfigError, "r1: the same run is named twice", correlate_runs, [*runs, runs[1]])
    refused(ConfigError, "not on the same questions", correlate_runs, [*runs, replace(saved("r3", 3), dataset="other")])
    refused(ConfigError, "--metric: no run has 'bleo'", correlate_runs, runs, wanted=["bleo"])
    refused(ConfigError, "--against: no run has 'comet'", correlate_runs, runs, against=["comet"])
    refused(
        NotComputable, "fewer than two common metrics", correlate_runs, [saved(f"r{i}", i, ("ew",)) for i in range(3)]
    )


def test_metrics_of_different_widths_are_correlated():
    metrics = metric_names.build(["ew", "bleu", "chrf"])  # 2, 11 and 19 statistics
    rng = np.random.default_rng(0)
    widths = {"ew": 2, "bleu": 11, "chrf": 19}
    by_system = {
        f"s{i}": {name: np.hstack([rng.integers(1, 30, (51, d - 1)), np.ones((51, 1))]) for name, d in widths.items()}
        for i in range(7)
    }
    scores = {m.name: [m.score(stats[m.name].sum(axis=0)) for stats in by_system.values()] for m in metrics}
    rows = correlate(by_system, metrics, [("ew", "bleu"), ("ew", "chrf")], 100)
    for row in rows:
        assert row.tau == pytest.approx(kendalltau(scores[row.a], scores[row.b]).statistic)
