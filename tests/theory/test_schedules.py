"""Schedules and forecasts: the paper's numbers by hand, and exact sums."""

import math

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.theory.schedules import learning_gain, schedule, stability_constant
from support.problems import play, random_problem

SIZES = {"alpha": 0.5, "n_arms": 5, "dimension": 4, "coverage": 0.2, "constant": 0.125}


def test_the_two_rules_for_one_half_are_the_papers() -> None:
    b = schedule(**SIZES, rarity=30.0, use_linear=False)  # type: ignore[arg-type]
    assert [b.power_scale, b.power] == pytest.approx([128 * 30 / 0.2, 2.0])
    assert b.linear == math.inf
    assert b.cap == pytest.approx(math.sqrt(0.2 / 30) / 16)
    assert b.exploration_rounds == pytest.approx(256 * math.sqrt(5) * 30 / (4 * 0.2))
    a = schedule(**SIZES, rarity=None)  # type: ignore[arg-type]
    assert [a.linear, a.cap] == pytest.approx([8 / 0.2, 0.2 / 16])
    best = schedule(**SIZES, rarity=30.0)  # type: ignore[arg-type]
    assert best.cap == max(a.cap, b.cap)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("rarity", [2.0, 50.0, None])
def test_gamma_is_one_half_at_the_cap_and_never_more(alpha: float, rarity: float | None) -> None:
    options = {**SIZES, "alpha": alpha, "constant": stability_constant(alpha)}
    rates = schedule(**options, rarity=rarity)  # type: ignore[arg-type]
    assert rates.exploration_rate(1) == pytest.approx(0.5)
    gammas = [rates.exploration_rate(t) for t in (1, 10, 1e4, 1e8, 1e12)]
    assert gammas == sorted(gammas, reverse=True)


def test_both_branches_of_the_general_rule_meet_at_one_half() -> None:
    rules = [schedule(**{**SIZES, "alpha": a}, rarity=9.0, use_linear=False) for a in (0.5, 0.5 + 1e-9)]  # type: ignore[arg-type]
    assert rules[0].power_scale == pytest.approx(rules[1].power_scale, rel=1e-6)
    assert rules[0].cap == pytest.approx(rules[1].cap, rel=1e-6)


def test_the_general_gain_is_the_papers_at_one_half() -> None:
    assert learning_gain(alpha=0.5, n_arms=7, dimension=3) == pytest.approx(7**0.25 / math.sqrt(3))


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.7])
def test_the_general_gain_balances_penalty_and_stability(alpha: float) -> None:
    """With eta_t = gain/sqrt(t) they are K^(1-alpha)/(alpha gain) and gain d/(1 - alpha), times sqrt(T)."""
    gains = np.geomspace(0.01, 100.0, 100_001)
    cost = 7.0 ** (1.0 - alpha) / (alpha * gains) + 3.0 * gains / (1.0 - alpha)
    assert learning_gain(alpha=alpha, n_arms=7, dimension=3) == pytest.approx(gains[cost.argmin()], rel=2e-4)


@pytest.mark.parametrize("tuning", ["paper", "certified"])
def test_forecasts_add_up_and_bound_what_happens(tuning: str) -> None:
    problem = random_problem(1, S=3, K=3, d=2, reward_range=(0, 10))
    gammas: list[float] = []
    algorithm = bw.LCTsallisINF(tuning=tuning)  # type: ignore[arg-type]
    forecast = algorithm.forecast(problem, horizon=5000)
    rates = algorithm.schedule_for(problem, algorithm.design_for(problem))
    exact = np.cumsum([rates.exploration_rate(t) for t in range(1, 5001)])
    assert forecast.rounds.tolist() == [1, 10, 100, 1000, 5000]
    assert forecast.exploration_rounds == pytest.approx(exact[forecast.rounds - 1], rel=2e-3)
    assert forecast.cost == pytest.approx(10.0 * forecast.exploration_rounds)
    assert forecast.exact is (tuning == "paper")
    policy = algorithm.start(problem, rng=1)
    bounds = [rates.exploration_rate(t) for t in range(1, 302)]
    play(policy, 300, each=lambda p: gammas.append(float(p.state.rates[1])))
    assert all(gamma <= bound * (1 + 1e-12) for gamma, bound in zip(gammas, bounds, strict=False))
    assert ("upper bounds)" in str(forecast)) is (tuning != "paper")


def test_a_forecast_needs_a_horizon() -> None:
    with pytest.raises(ValueError, match="whole number"):
        bw.LCTsallisINF(tuning="certified").forecast(random_problem(), horizon=0)
    with pytest.raises(ValueError, match="whole number"):
        bw.LCTsallisINF(tuning="certified").forecast(random_problem(), horizon=True)


@pytest.mark.parametrize("horizon", [1, 9, 10, 999, 10**15 - 1, 10**17 - 1, 2**62 - 1, np.int8(100)])
def test_a_forecast_ends_with_its_horizon(horizon: int) -> None:
    """log10(10^15 - 1) rounds to 15."""
    forecast = bw.LCTsallisINF(tuning="paper").forecast(random_problem(), horizon=horizon)
    assert forecast.rounds.tolist() == sorted({*(10**i for i in range(20) if 10**i <= horizon), int(horizon)})
