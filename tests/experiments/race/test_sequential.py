"""Looks, critical values, intervals and verdicts: by hand, against scipy, by integration and by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from workbench.experiments.race.sequential import (
    ALPHA,
    MARGIN_NATS,
    MOST_MORE,
    Design,
    Estimate,
    Word,
    counts_p,
    critical_values,
    estimate,
    more_seeds,
    word_of,
    word_of_counts,
)

DIFFERENCES = [-0.06, -0.10, -0.08, -0.08]
RACES = 1000


@pytest.fixture(scope="module")
def ten() -> Design:
    return Design.of(10)


def judge(design: Design, differences: list[float], margin: float = MARGIN_NATS) -> tuple[Word, Estimate | None]:
    """As a race does: at the first look that decides, else at the last one that was reached; None before."""
    word: Word = "undecided"
    found = None
    for look in design.looks:
        if look > len(differences) or word != "undecided":
            break
        found = design.estimate(differences[:look])
        word = word_of(found, margin)
    return word, found


def claims(design: Design, differences_RS: np.ndarray) -> float:
    """Share of races in which a difference is claimed."""
    words = [judge(design, row.tolist(), margin=0.0)[0] for row in differences_RS]
    return sum(word in ("better", "worse") for word in words) / len(words)


def test_an_estimate_worked_out_by_hand() -> None:
    # Mean -.08; deviations .02, -.02, 0, 0, so the variance is .0008 / 3.
    found = estimate(DIFFERENCES, critical=3.0)
    half = 3.0 * math.sqrt(0.0008 / 3) / 2
    assert found[:4] == pytest.approx((-0.08, -0.08 - half, -0.08 + half, math.sqrt(0.0008 / 3)))
    assert found.seeds == 4
    assert found.p == pytest.approx(scipy.stats.ttest_1samp(DIFFERENCES, 0).pvalue)


def test_one_look_is_the_ordinary_paired_test() -> None:
    design = Design.of(4)
    assert design.critical == pytest.approx([scipy.stats.t.ppf(0.975, 3)])
    low, high = scipy.stats.ttest_1samp(DIFFERENCES, 0).confidence_interval(0.95)
    found = design.estimate(DIFFERENCES)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_the_second_critical_value_by_integration() -> None:
    """With u = t / sqrt(t^2 + n - 1): u' = sqrt(2/3 r) u + sqrt(1/3 (1 - r)) v, with r, u and v independent."""
    first, second = critical_values((4, 6), ALPHA)
    assert first == pytest.approx(scipy.stats.t.ppf(1 - ALPHA * 4 / 6 / 2, 3))

    def cosine(t: float, n: int) -> float:
        return t / math.sqrt(t**2 + n - 1)

    # The cosine of a direction in n dimensions with a fixed one, from -1 to 1, is a beta variable; in 2 as well.
    edge = scipy.stats.beta(1.5, 1.5).cdf((cosine(first, 4) + 1) / 2)
    u_N = 2 * scipy.stats.beta(1.5, 1.5).ppf(np.linspace(1 - edge, edge, 2001)) - 1
    r_M = scipy.stats.beta(2, 1).ppf((np.arange(2000) + 0.5) / 2000)[:, None]

    def inside(bound: float) -> np.ndarray:
        v = (bound - np.sqrt(2 / 3 * r_M) * u_N) / np.sqrt((1 - r_M) / 3)
        return scipy.stats.beta(0.5, 0.5).cdf(np.clip((v + 1) / 2, 0, 1)).mean(axis=0)

    passed = np.trapezoid(inside(cosine(second, 6)) - inside(-cosine(second, 6)), dx=(2 * edge - 1) / 2000)
    assert passed == pytest.approx(1 - ALPHA, abs=3e-4)


def test_arms_share_the_error_rate() -> None:
    assert Design.of(4, arms=5).critical == Design.of(4, alpha=0.01).critical
    assert Design.of(4, arms=5).critical > Design.of(4).critical


def test_at_most_five_percent_of_null_races_claim_a_difference(ten: Design) -> None:
    share = claims(ten, np.random.default_rng(1).normal(0.0, 0.03, (RACES, 10)))
    # Three standard deviations of a binomial of 1,000.
    assert 0.03 < share <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / RACES)


def test_the_error_rate_is_spent_and_no_more(ten: Design) -> None:
    """By looks, of 200,000 races: 2%, 1% and 2%."""
    differences_RS = np.random.default_rng(2).standard_normal((200_000, 10))
    spent, left = [], np.full(len(differences_RS), True)
    for look, critical in zip(ten.looks, ten.critical, strict=True):
        found = left & (np.abs(scipy.stats.ttest_1samp(differences_RS[:, :look], 0, axis=1).statistic) > critical)
        spent.append(found.mean())
        left &= ~found
    assert spent == pytest.approx([0.02, 0.01, 0.02], abs=0.001)


@pytest.mark.extended
def test_heavy_tails_do_not_claim_more(ten: Design) -> None:
    """Differences of Student's t with 3 degrees of freedom: the test becomes careful, never bold."""
    differences_RS = np.random.default_rng(3).standard_t(3, (RACES, 10))
    assert claims(ten, differences_RS) <= ALPHA + 0.01


@pytest.mark.extended
def test_several_arms_against_one_baseline() -> None:
    """Four arms that are the baseline: the chance that any of them is called different."""
    dice, design = np.random.default_rng(4), Design.of(6, arms=4)
    any_claim = 0
    for _ in range(RACES):
        baseline_S = dice.standard_normal(6)
        arms = [dice.standard_normal(6) - baseline_S for _ in range(4)]
        any_claim += any(judge(design, arm.tolist(), margin=0.0)[0] != "undecided" for arm in arms)
    assert any_claim / RACES <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / RACES)


def test_power_is_as_forecast(ten: Design) -> None:
    effect = 1.1
    found = claims(ten, np.random.default_rng(5).normal(-0.03 * effect, 0.03, (RACES, 10)))
    assert found == pytest.approx(ten.power(effect), abs=0.045)
    assert ten.power(ten.detectable) == pytest.approx(0.8, abs=0.005)


def test_power_of_one_look_is_that_of_the_noncentral_t() -> None:
    design = Design.of(8)
    design = Design((8,), ALPHA, critical_values((8,), ALPHA))
    tails = scipy.stats.nct(7, 1.0 * math.sqrt(8))
    assert design.power(1.0) == pytest.approx(tails.sf(design.critical[0]) + tails.cdf(-design.critical[0]), abs=0.004)


def test_an_error_rate_below_what_is_simulated_claims_no_more() -> None:
    assert min(critical_values((4, 6, 10), 1e-6)) > critical_values((4, 6, 10), 1e-3)[-1]


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.10, -0.03, "better"),
        (0.03, 0.10, "worse"),
        (-0.10, 0.01, "undecided"),
        (-0.019, 0.019, "equivalent"),
        (-0.019, -0.001, "equivalent"),  # it takes precedence: a difference that nobody needs
        (-0.03, -0.001, "better"),
    ],
)
def test_verdicts(low: float, high: float, word: str) -> None:
    assert word_of(Estimate((low + high) / 2, low, high, 0.01, 6, 0.5), 0.02) == word


def test_a_verdict_stands_from_the_look_that_gave_it(ten: Design) -> None:
    clear = [-0.5, -0.51, -0.49, -0.5]
    assert judge(ten, clear[:3]) == ("undecided", None)
    word, found = judge(ten, [*clear, 3.0, -3.0])
    assert (word, found.seeds if found else 0) == ("better", 4)


def test_recipes_that_are_the_same_one() -> None:
    word, found = judge(Design.of(4), [0.0] * 4)
    assert (word, found) == ("equivalent", Estimate(0.0, 0.0, 0.0, 0.0, 4, 1.0))


def test_seeds_that_it_would_take() -> None:
    # The spread falls with the root of the seeds: .1 * 2.2 / sqrt(n) < .08 at about n = 9.
    found = Estimate(-0.08, -0.2, 0.04, 0.1, 4, 0.2)
    more = more_seeds(found, float(scipy.stats.t.ppf(0.975, 3)), 0.02)
    assert more is not None
    seeds = 4 + more
    half = [scipy.stats.t.ppf(0.975, n - 1) * 0.1 / math.sqrt(n) for n in (seeds - 1, seeds)]
    assert half[1] < 0.08 <= half[0]
    # At the edge of the margin neither verdict comes near.
    assert more_seeds(Estimate(-0.02, -0.2, 0.2, 0.1, 4, 0.9), 3.18, 0.02) is None
    assert MOST_MORE == 30


def test_counts_are_judged_by_a_test_that_keeps_its_level() -> None:
    q_Q = np.linspace(0, 1, 201)
    for seeds in (2, 4, 6, 10):
        wrong_Q = np.zeros_like(q_Q)
        for left, base in itertools.product(range(seeds + 1), repeat=2):
            p = counts_p(left, base, seeds)
            assert p == pytest.approx(counts_p(seeds - left, seeds - base, seeds))
            assert p <= scipy.stats.fisher_exact([[left, seeds - left], [base, seeds - base]]).pvalue + 1e-9
            # Of two arms that are alike, whatever share of their seeds learns.
            wrong_Q += (p <= 0.05) * scipy.stats.binom.pmf(left, seeds, q_Q) * scipy.stats.binom.pmf(base, seeds, q_Q)
        assert wrong_Q.max() <= 0.05, seeds
    assert counts_p(0, 4, 4) == pytest.approx(2 * 0.25**4), "by hand: all of one and none of the other, at worst"
    assert [word_of_counts(*each, counts_p(*each, 4), 0.05) for each in ((0, 4), (4, 0), (3, 4), (1, 4))] == [
        "worse", "better", "undecided", "undecided",
    ]  # fmt: skip
    assert word_of_counts(0, 2, counts_p(0, 2, 2), 0.05) == "undecided", "too few seeds"
    assert word_of_counts(0, 4, counts_p(0, 4, 4), 0.05 / 7) == "undecided", "seven arms share the chance"
