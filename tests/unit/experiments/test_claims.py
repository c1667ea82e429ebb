"""Claims about k on made-up questions: planted effects are held, their opposites refuted, chance is neither."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import claims
from experiments.ablation import false_alarms
from experiments.claims import CLAIMS, Ladder, above_any, discordance, judged
from experiments.contestant import Contestant
from experiments.grid import AblationConfig
from experiments.verdicts import ALPHA, POOLED, Verdict, corrected, judge, of_difference, of_interval, power
from sqa.core.errors import ConfigError
from sqa.core.permutation import PERMUTATIONS, holm, null_of, p_value, p_values, permuted_sums, shuffled
from sqa.core.significance import Comparison, compare
from sqa.metrics import build

KS = (3, 6, 9, 12, 15, "full")
ONE_CONTESTANT = {"name": "x", "datasets": (), "fallback": (), "k": KS, "models": {}, "commands": {}, "metrics": (),
                  "contestants": (Contestant({"name": "bm25"}, {"name": "mlp"}),)}  # fmt: skip
[EW, BLEU] = build(["ew", "bleu"])


def means(values: np.ndarray) -> np.ndarray:
    """(n, K) values -> the statistics of their means (n, K, 2)."""
    return np.stack([values, np.ones_like(values)], axis=2)


def bleu(quality: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, K, d) of texts of 100 words, a share `quality` (K,) of whose n-grams match."""
    totals = np.arange(100.0, 96, -1)
    matched = rng.binomial(100, quality[None, :, None], (n, len(quality), 4)) / 100 * totals
    lengths, questions = np.full((n, len(quality), 2), 100.0), np.ones((n, len(quality), 1))
    return np.concatenate([lengths, matched, np.broadcast_to(totals, matched.shape), questions], axis=2)


def ladder(ew: list[float], oracle: list[float] | None = None, n: int = 300, seed: int = 1) -> Ladder:
    """Questions of different difficulty with these means over k."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0.3, 0.2, (n, 1))
    tables = {"ew": hard + rng.normal(ew, 0.1, (n, len(ew)))}
    tables["oracle-ew"] = tables["ew"] + rng.normal(oracle or [0.0] * len(ew), 0.1, (n, len(ew)))
    return Ladder(KS, {name: means(values)[..., None] for name, values in tables.items()}, 0, 999)


def verdict(claim: str, of: Ladder) -> str:
    test, against = judged(claim, of)
    return Verdict("d", "f", "g", claim, "", float(test.p[0]), float(against[0])).verdict


FLAT = [0.0] * 6
HUMP = [0.0, 0.03, 0.06, 0.06, 0.03, 0.0]
FALLING = [0.2, 0.16, 0.12, 0.08, 0.04, 0.0]
RISING = FALLING[::-1]


@pytest.mark.parametrize(
    ("claim", "ew", "expected"),
    [
        ("peak", HUMP, "held"),
        ("peak", FALLING, "refuted"),
        ("peak", RISING, "refuted"),
        ("peak", FLAT, "undecided"),
        ("worse EW", HUMP, "held"),
        ("worse EW", FALLING, "held"),
        ("worse EW", RISING, "refuted"),
        ("worse EW", FLAT, "undecided"),
    ],
)
def test_planted_effects_on_expected_wins(claim: str, ew: list[float], expected: str) -> None:
    assert verdict(claim, ladder(ew)) == expected


def test_a_rise_alone_is_no_peak() -> None:
    """EW rises and then stays: significant against the first k, and nothing is known against full input."""
    assert verdict("peak", ladder([0.0, 0.05, 0.05, 0.05, 0.05, 0.05])) == "undecided"


def test_oracle_peaks_are_compared_by_what_each_loses_at_the_others() -> None:
    late, early = [0.0, 0.0, 0.0, 0.0, 0.08, 0.0], [0.0, 0.12, 0.0, 0.0, -0.08, 0.0]
    assert verdict("earlier", ladder(late, early)) == "held"
    turned = ladder(late, early)
    turned = replace(turned, tables={"ew": turned.tables["oracle-ew"], "oracle-ew": turned.tables["ew"]})
    assert verdict("earlier", turned) == "refuted"
    assert verdict("earlier", ladder(HUMP, FLAT)) == "undecided"
    assert verdict("earlier", ladder(FLAT, FALLING)) == "undecided"  # EW has no peak that could be later


@pytest.mark.parametrize(
    ("quality", "steep", "better"),
    [
        ([0.4, 0.5, 0.6, 0.6, 0.6, 0.7], "held", "held"),
        ([0.6, 0.6, 0.6, 0.6, 0.6, 0.5], "refuted", "refuted"),
        ([0.4, 0.5, 0.6, 0.7, 0.8, 0.8], "undecided", "undecided"),
    ],
)
def test_planted_effects_on_bleu(quality: list[float], steep: str, better: str) -> None:
    table = bleu(np.array(quality), 200, np.random.default_rng(0))
    of = Ladder(KS, {"bleu": table[..., None]}, 0, 999)
    assert (verdict("steep", of), verdict("better BLEU", of)) == (steep, better)


def _rows(dataset: str, ew: list[float], n: int, seed: int, family: str = "wait-k") -> list[SimpleNamespace]:
    tables = ladder(ew, n=n, seed=seed).tables
    rng = np.random.default_rng(seed + 100)
    tables = {**tables, "bleu": bleu(np.full(6, 0.5), n, rng)[..., None]}
    return [
        SimpleNamespace(
            cell=SimpleNamespace(dataset=dataset, family=family, guesser="bm25", k=k),
            stats={name: table[:, place, :, 0] for name, table in tables.items()},
        )
        for place, k in enumerate(KS)
    ]


def _only_ew(rows: list[SimpleNamespace]) -> list[SimpleNamespace]:
    return [SimpleNamespace(cell=row.cell, stats={"ew": row.stats["ew"]}) for row in rows]


@pytest.mark.parametrize("ew", [FLAT, FALLING])
def test_false_alarms_are_rare_for_every_claim(ew: list[float]) -> None:
    """Where k changes places at random nothing is to be found, whatever the table was."""
    *found, together = false_alarms.alarms(_rows("es", ew, 50, 0), sets=200)
    assert len(found) == len(CLAIMS) and together.claim == "any of these"
    most = ALPHA + 3 * (ALPHA * (1 - ALPHA) / 200) ** 0.5
    assert max(one.alone for one in found) <= most and together.held <= most
    assert max(one.alone for one in found) > 0  # the tests can hold at all
    assert max(one.held for one in found) <= together.held <= together.alone
    # that BLEU does not rise by a point where k does not matter is no false alarm
    assert max(one.refuted for one in found if not one.claim.startswith("BLEU")) <= together.refuted <= most


def test_a_planted_effect_is_held_among_as_many_claims_as_the_ablation_has() -> None:
    """61 translators are 122 claims; one of them wins more at every k than at the first and at full input."""
    flat = [row for i in range(60) for row in _only_ew(_rows("es", FLAT, 20, 10 * i, f"flat {i}"))]
    found = judge([*flat, *_only_ew(_rows("es", HUMP, 250, 999, "planted"))], 50, 0)
    assert len(found) == 122
    held = [(v.family, v.claim) for v in found if v.verdict == "held"]
    assert held == [("planted", "EW rises, peaks and falls with k"), ("planted", "full input has the worse EW")]


def test_a_family_without_effect_is_falsely_held_at_its_nominal_rate() -> None:
    """80 independent claims, in 400 sets: some claim is held in about 5% of the sets, neither more nor never."""
    sets, p = 400, []
    for seed in range(80):
        [mixed] = shuffled([ladder(FLAT, n=30, seed=seed).tables["ew"][..., 0]], sets, seed)
        p.append(above_any(Ladder(KS, {"ew": mixed}, seed, alike=True), "ew", range(5), 5).p)
    rate = false_alarms.family(np.stack(p)).any(axis=0).mean()
    assert abs(rate - ALPHA) <= 3 * (ALPHA * (1 - ALPHA) / sets) ** 0.5


def test_false_alarms_end_with_1_where_the_correction_is_forgotten(monkeypatch, capsys, tmp_path) -> None:
    rows = [row for i in range(15) for row in _only_ew(_rows("es", FLAT, 20, 10 * i, f"flat {i}"))]
    monkeypatch.setattr(false_alarms, "load", lambda *_: AblationConfig(**ONE_CONTESTANT))
    monkeypatch.setattr(false_alarms, "finished", lambda *_: rows)
    assert false_alarms.main(["--sets", "40"]) == 0
    monkeypatch.setattr(false_alarms, "holm", lambda p: p)
    assert false_alarms.main(["--sets", "40"]) == 1
    assert "any of these" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="1001 claims: 20,000 permutations"):
        false_alarms.family(np.ones((1001, 1)))


def test_p_values_stop_only_where_more_permutations_decide_nothing() -> None:
    rng = np.random.default_rng(0)
    tables = means(rng.normal([0.0, *np.linspace(-0.03, 0.05, 20)], 0.1, (60, 21)))  # (60, 21, 2)
    pairs = np.stack([tables[:, [0, place]] for place in range(1, 21)], axis=3)  # (60, 2, 2, 20)

    def gap(sums: np.ndarray) -> np.ndarray:
        values = sums.reshape(len(sums), 2, 2, -1)[:, :, 0] / 60
        return values[:, 1] - values[:, 0]

    flat = pairs.reshape(60, 2, -1)
    observed = gap(flat.sum(axis=0)[None])[0]
    all_of_them = p_value(observed, null_of(flat, gap, PERMUTATIONS, 0, 20))
    p, critical = p_values(pairs, gap, observed, PERMUTATIONS, 0)
    sure = all_of_them <= ALPHA
    assert 0 < sure.sum() < 20 and np.array_equal(p[sure], all_of_them[sure]) and (p[~sure] > ALPHA).all()
    assert np.allclose(p, all_of_them, rtol=0.15) and ((observed > critical) == sure).mean() > 0.9


def test_languages_are_judged_alone_and_pooled_and_corrected_together() -> None:
    """The pool of both has the smaller p, and what it could show is said."""
    rows = _rows("es", [0.0, 0.02, 0.045, 0.02, 0.0, 0.0], 100, 3) + _rows(
        "pl", [0.0, 0.02, 0.03, 0.02, 0.0, 0.0], 300, 4
    )
    found = {(v.dataset, v.claim): v for v in judge(rows, 200, 0)}
    assert {dataset for dataset, _ in found} == {"es", "pl", POOLED} and len(found) == 15
    worse = {dataset: found[dataset, "full input has the worse EW"] for dataset in ("es", "pl", POOLED)}
    assert worse[POOLED].p <= min(worse["es"].p, worse["pl"].p) and worse[POOLED].verdict == "held"
    assert "400 questions could show" in worse[POOLED].found and "this difference would need" in worse[POOLED].found
    assert worse[POOLED].cells()[-1].endswith("after Holm")
    alone = judge(rows, 200, 0, together=False)
    assert all(v.p <= w.p for v, w in zip(alone, judge(rows, 200, 0), strict=True))


def test_the_numbers_of_a_verdict_are_those_of_its_questions() -> None:
    """What is shown at each k, and the difference between the two that decide with its interval."""
    rows = _rows("es", FALLING, 40, 5)
    found = next(v for v in judge(rows, 200, 0, together=False) if v.claim == "full input has the worse EW").found
    means_of_k = [row.stats["ew"][:, 0].mean() for row in rows]
    gap = compare(rows[0].stats["ew"], rows[-1].stats["ew"], EW, 200)
    assert found.split("; ")[:2] == [
        "EW " + " ".join(f"{k}:{value:.3f}" for k, value in zip(KS, means_of_k, strict=True)),
        f"EW at k=3 minus k=full {gap.diff:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]",
    ]


@pytest.mark.parametrize(
    ("effect", "least", "expected"),
    [
        (0.2, 0.0, "40 questions could show +0.142; this difference would need 21"),  # 40 (.14208 / .2)^2 = 20.2
        (0.2, 0.05, "40 questions could show +0.142; this difference would need 16"),  # 40 (.09208 / .15)^2 = 15.1
        (0.01, 0.0, "40 questions could show +0.142; this difference would need 8,075"),
        (0.05, 0.05, "40 questions could show +0.142; no number of questions would show this difference"),
        (-0.1, 0.0, "40 questions could show +0.142; no number of questions would show this difference"),
    ],
)
def test_what_questions_could_show_by_hand(effect: float, least: float, expected: str) -> None:
    """The critical .1, and .8416 of a deviation of .05: its interval is 3.92 as long."""
    gap = Comparison(0.5, 0.3, 0.2, 0.102, 0.298, 0.01, 0.01, 40)
    test = claims.Test(np.zeros(1), np.array([effect]), np.array([0.1]), (("ew", 0, 1),), least)
    assert power(gap, test, 3) == expected


def test_tables_that_are_alike_share_a_null_distribution() -> None:
    of = ladder(FALLING, n=80)
    mixed = shuffled([table[..., 0] for table in of.tables.values()], 6, 0)
    several = replace(of, tables=dict(zip(of.tables, mixed, strict=True)), permutations=999)
    each = judged("worse EW", several)[0].p
    assert np.allclose(judged("worse EW", replace(several, alike=True))[0].p, each, atol=0.05)


def test_systems_that_two_metrics_order_otherwise() -> None:
    rng = np.random.default_rng(0)
    worse = means(rng.normal([0.3, 0.3, 0.2], 0.1, (200, 3)))
    better = bleu(np.array([0.5, 0.5, 0.6]), 200, rng)
    p, a, b = discordance((EW, worse), (BLEU, better), 499)
    assert p <= 0.01 and a in (0, 1) and b == 2
    same = means(rng.normal([0.2, 0.2, 0.3], 0.1, (200, 3)))
    assert discordance((EW, same), (BLEU, better), 499)[0] > 0.05  # tau is below 1 by chance alone
    flat = means(rng.normal([0.2, 0.2, 0.2], 0.1, (200, 3)))
    assert discordance((EW, flat), (BLEU, better), 499)[0] > 0.05
    alike = means(rng.normal([0.2, 0.2, 0.6], 0.1, (200, 3)))
    assert discordance((BLEU, better), (BLEU, better), 499) == (1.0, 0, 0)
    assert discordance((EW, alike), (EW, alike), 499) == (1.0, 0, 0)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == []


def test_permutations_keep_each_question_and_its_sums() -> None:
    table = np.random.default_rng(0).random((7, 4, 3))
    [sums] = permuted_sums(table, 50, 1)
    assert sums.shape == (50, 4, 3)
    assert np.allclose(sums.sum(axis=1), table.sum(axis=(0, 1)))
    assert not np.allclose(sums[0], sums[1]) and np.array_equal(sums, next(permuted_sums(table, 50, 1)))
    [mixed] = shuffled([table], 5, 0)
    assert np.allclose(np.sort(mixed, axis=1), np.sort(table, axis=1)[..., None])


def test_p_values_of_two_conditions_are_those_of_approximate_randomisation() -> None:
    rng = np.random.default_rng(0)
    values = means(rng.normal([0.0, 0.02], 0.1, (150, 2)))
    null = null_of(values, lambda sums: EW.score_many(sums[:, 0]) - EW.score_many(sums[:, 1]), 4999, 0)
    gap = compare(values[:, 0], values[:, 1], EW, 4999)
    assert 2 * p_value(-np.abs([gap.diff]) * -1, null)[0] == pytest.approx(gap.p_randomization, abs=0.02)


def test_one_sided_verdicts_of_differences_and_intervals() -> None:
    gap = compare(means(np.full((9, 1), 0.5))[:, 0], means(np.full((9, 1), 0.2))[:, 0], EW, 999)
    assert of_difference("d", "f", "g", "c", "", gap).verdict == "held"
    assert of_difference("d", "f", "g", "c", "", replace(gap, diff=-gap.diff)).verdict == "refuted"
    assert of_interval("d", "f", "g", "c", "", 1.0, 0.2, 1.8).verdict == "held"
    assert of_interval("d", "f", "g", "c", "", 0.5, -0.2, 1.2).verdict == "undecided"
    assert of_interval("d", "f", "g", "c", "", float("nan"), float("nan"), float("nan")).verdict == "undecided"
    many = corrected([Verdict("d", "f", "g", "c", "", 0.03)] * 3)
    assert [v.verdict for v in many] == ["undecided"] * 3
