"""The theorem of the matched tuning: size and growth of its bounds, and paths and regrets below them."""

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.theory.bounds import matched
from bothworlds.theory.bounds.facts import facts_of
from bothworlds.theory.bounds.paper import matched_rates
from bothworlds.theory.schedules import Matching
from support.problems import random_problem

MATCHED = bw.LCTsallisINF(tuning="matched")


@pytest.mark.parametrize(
    ("sizes", "rarity"), [((2, 3, 3), None), ((5, 4, 4), None), ((10, 5, 5), None), ((20, 10, 5), 100.0)]
)
def test_the_adversarial_bound_is_at_most_three_times_that_of_certified(
    sizes: tuple[int, int, int], rarity: float | None
) -> None:
    """Ratios 2.62, 2.29, 2.05, 1.12, and 2.11, 1.85, 1.67, 0.93 without drift; lower with gaps for large T."""
    S, K, d = sizes
    instance = en.random_instance(contexts=S, arms=K, dimension=d, gap=0.3, rarity=rarity, seed=1)
    problem = instance.problem
    values = {bound.name: bound.value for bound in bw.bounds(problem, horizon=10**6)}
    default = matched_rates(facts_of(problem, horizon=1, gap=None, margin=None, corruption=None, design="joint-g"))
    plain = matched.MatchedRates(**{**vars(default), "matching": Matching(drift_cap=0.0)})
    assert matched.adversarial(plain, np.array([1e6]))[0] <= 2.2 * values["LC-Tsallis-INF, certified"]
    assert values["LC-Tsallis-INF, matched"] <= 2.7 * values["LC-Tsallis-INF, certified"]
    late = np.array([1e12, 1e17])
    ratios = [
        matched.self_bounding(rates, late, gap=0.3) / matched.adversarial(rates, late) for rates in (plain, default)
    ]
    assert ratios[0][0] <= 0.75 or S == 20
    assert max(ratio[1] for ratio in ratios) <= 0.5


@pytest.mark.parametrize("options", [{}, {"drift_cap": 1.0}, {"drift_cap": 0.0}])
def test_the_inequality_of_optimistic_ftrl_holds_on_every_path(options: dict[str, float]) -> None:
    """`diagnose` checks every context and arm; the terms of the path are not below the estimated regret."""
    instance = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=4)
    world = en.alternating(instance.problem, en.opposite(instance.theta), every=20)
    algorithm = bw.LCTsallisINF(tuning=bw.Matched(**options))
    diagnosis = bw.diagnose(world, algorithm, horizon=300, checkpoints=20)
    assert (diagnosis.slack >= -1e-9 * (1.0 + diagnosis.bound)).all()
    assert (diagnosis.stability + diagnosis.penalty + diagnosis.drift_cost >= diagnosis.estimated_regret - 1e-9).all()
    share = options.get("drift_cap", 0.1)
    assert (diagnosis.drift_cost[-1] != 0.0) == (share > 0.0)
    assert diagnosis.estimated_regret[-1] <= float(diagnosis.outcome.final["account"][0])


def test_the_regret_is_below_the_theorem() -> None:
    """On average, with 3 standard errors."""
    instance = en.random_instance(contexts=3, arms=3, dimension=2, gap=0.3, seed=4)
    world = en.stochastic(instance)
    run = bw.simulate(world, {"matched": MATCHED}, horizon=400, replications=200, rng=0, checkpoints=[400])["matched"]
    rates = matched_rates(
        facts_of(instance.problem, horizon=400, gap=None, margin=None, corruption=None, design="joint-g")
    )
    assert run.regret[-1] + 3.0 * run.standard_error[-1] <= matched.adversarial(rates, np.array([400.0]))[0]


def test_growth_of_the_theorem() -> None:
    """Without gaps sqrt(T); with a gap asymptotically logarithmic, and sqrt(L) where the paper has L."""
    rates = {}
    for rarity in (6.0, 600.0):
        problem = random_problem(1, S=5, K=4, d=3, rarity=rarity)
        stated = matched_rates(facts_of(problem, horizon=1, gap=None, margin=None, corruption=None, design="joint-g"))
        rates[rarity] = matched.MatchedRates(**{**vars(stated), "matching": Matching(), "entropy_floor": 0.0})
    T = np.array([1e30, 1e60, 1e120])
    late = matched.adversarial(rates[6.0], T)
    assert late[1:] / late[:-1] == pytest.approx(np.sqrt(T[1:] / T[:-1]), rel=0.05)
    known = matched.self_bounding(rates[6.0], T, gap=0.5)
    assert (known < late).all()
    assert known[1:] / known[:-1] == pytest.approx(2.0, rel=0.2)  # 2.3: T^-nu falls towards 1/T
    rare = matched.self_bounding(rates[600.0], T, gap=0.5)
    assert rare[-1] / known[-1] < 12.0  # about sqrt(100)
    corrupted = matched.self_bounding(rates[6.0], T, gap=0.5, corruption=1e15)
    assert (known < corrupted).all()
    assert (corrupted < late).all()
    assert matched.self_bounding(rates[6.0], T, gap=0.5, margin=1e6) == pytest.approx(known, rel=1e-3)
    rounded = matched.MatchedRates(**{**vars(rates[6.0]), "entropy_floor": 1e-13})
    assert matched.self_bounding(rounded, np.array([1e12]), gap=0.5) == pytest.approx(
        matched.self_bounding(rates[6.0], np.array([1e12]), gap=0.5)
    )
