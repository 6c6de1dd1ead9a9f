"""Environments: losses in range and unbiased, gaps by hand, every rule round by round."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.arrays import Floats
from bothworlds.environments import dynamics as rules
from bothworlds.environments.environment import KERNEL
from bothworlds.environments.instances import context_probabilities
from bothworlds.kernels.jit.compile import compiled
from bothworlds.kernels.random import CONTEXT, two_uniforms
from support.problems import parameters, random_problem
from support.python_learner import INSTANCE, PAIR


def instance(seed: int = 0, **options: object) -> en.Instance:
    sizes: dict[str, object] = {"contexts": 6, "arms": 4, "dimension": 3, "gap": 0.2, "seed": seed}
    return en.random_instance(**{**sizes, **options})  # type: ignore[arg-type]


def coefficients(environment: en.Environment, rounds: int, expected_loss: Floats | None = None) -> Floats:
    """The coefficients of the first rounds, against a learner with fixed expected losses."""
    nature = environment.begin()
    out = np.empty((rounds, len(nature.c)))
    for t in range(1, rounds + 1):
        nature.expected_loss[...] = 0.0 if expected_loss is None else expected_loss
        KERNEL.decide(nature, t, 5)
        out[t - 1] = nature.c
    return out


def reported(environment: en.Environment, rounds: int) -> float:
    """Return the corruption in the state after a number of rounds against a learner near the optimum."""
    nature = environment.begin()
    nature.expected_loss[...] = -1.0
    for t in range(1, rounds + 1):
        KERNEL.decide(nature, t, 5)
    return float(nature.state[0])


@given(st.integers(0, 300), st.integers(1, 8), st.integers(2, 6), st.integers(1, 5), st.floats(0.01, 1.0))
def test_random_instances_have_exactly_the_gap_asked_for(seed: int, S: int, K: int, d: int, gap: float) -> None:
    made = en.stochastic(en.random_instance(contexts=S, arms=K, dimension=d, gap=gap, seed=seed))
    assert made.gap == pytest.approx(gap, rel=1e-9)
    assert np.abs(made.tables).max() <= 0.9 + 1e-9
    assert made.problem.dimension == min(d, S * K)


@pytest.mark.parametrize("margin", [0.5, 1.0, 2.0, math.inf])
@pytest.mark.parametrize("rarity", [None, 200.0])
def test_margin_instances_meet_the_definition_and_are_tight(margin: float, rarity: float | None) -> None:
    gap = 0.3
    made = en.stochastic(
        en.margin_instance(contexts=20, arms=3, dimension=4, gap=gap, margin=margin, rarity=rarity, seed=1)
    )
    heights = np.concatenate([np.linspace(0.0, gap, 500), made.context_gaps * (1 - 1e-12), made.context_gaps])
    heights = heights[heights <= gap]
    allowed = 0.5 * (heights / gap) ** margin if margin < math.inf else np.where(heights < gap, 0.0, 0.5)
    assert (made.margin_curve(heights) <= allowed * (1 + 1e-6) + 1e-12).all()
    if margin < math.inf:
        inside = made.context_gaps[made.context_gaps <= gap]
        assert len(inside) >= 1
        assert made.margin_curve(inside) == pytest.approx(0.5 * (inside / gap) ** margin, rel=1e-6)


@given(st.integers(0, 300), st.integers(1, 30), st.integers(2, 6), st.integers(1, 40), st.floats(0.3, 5.0))
def test_margins_hold_in_spite_of_rounding(seed: int, S: int, K: int, d: int, margin: float) -> None:
    """Exactly at its own gaps, as computed from the features, no tolerance upwards."""
    gap = 1e-3
    if gap * (2.0 / S) ** (1.0 / margin) < 1e-6:
        with pytest.raises(ValueError, match="too small for the rounding"):
            en.margin_instance(contexts=S, arms=K, dimension=d, gap=gap, margin=margin, seed=seed)
        return
    made = en.stochastic(en.margin_instance(contexts=S, arms=K, dimension=d, gap=gap, margin=margin, seed=seed))
    heights = made.context_gaps[made.context_gaps <= gap]
    assert (made.margin_curve(heights) <= 0.5 * (heights / gap) ** margin * (1 + 1e-15)).all()


@pytest.mark.parametrize("margin", [0.5, 1.0, 4.0, math.inf])
@pytest.mark.parametrize("gap", [1.2, 1.4, 1.5])
def test_margins_hold_up_to_the_largest_gap(gap: float, margin: float) -> None:
    """P(Delta(X) <= h) <= (1/2)(h/gap)^margin at h = gap itself, and at every gap below it."""
    for S, seed in ((1, 0), (2, 1), (5, 2), (20, 3)):
        made = en.stochastic(en.margin_instance(contexts=S, arms=3, dimension=3, gap=gap, margin=margin, seed=seed))
        heights = np.append(made.context_gaps[made.context_gaps <= gap], gap)
        allowed = 0.5 * np.where(heights < gap, (heights / gap) ** margin, 1.0)
        assert (made.margin_curve(heights) <= allowed * (1 + 1e-15)).all()
        assert np.abs(made.tables).max() <= 0.9 + 1e-9


@given(st.integers(0, 100), st.integers(2, 20), st.floats(1.0, 50.0))
def test_rarity_is_what_was_asked_for(seed: int, S: int, factor: float) -> None:
    g = context_probabilities(np.random.default_rng(seed), S, S * factor)
    assert g.sum() == pytest.approx(1.0, abs=1e-12)
    assert 1.0 / g.min() == pytest.approx(S * factor, rel=1e-9)


@pytest.mark.parametrize("noise", ["none", "bernoulli", "uniform", "normal"])
def test_noise_keeps_losses_in_range_and_their_mean(noise: str) -> None:
    environment = en.stochastic(instance(), noise=noise, sigma=0.4)  # type: ignore[arg-type]
    nature = environment.begin()
    draw_loss, uniforms = compiled(rules.noisy), compiled(two_uniforms)
    for mean in (-1.0, -0.7, 0.0, 0.3, 0.95):
        losses = np.array([draw_loss(nature, mean, uniforms(3, t, CONTEXT, 0)[1], 3, t) for t in range(20_000)])
        assert np.abs(losses).max() <= 1.0
        error = abs(losses.mean() - mean)
        assert error <= 4.0 * losses.std() / math.sqrt(20_000) + 1e-12


def test_truncated_normal_has_the_right_spread() -> None:
    """Against the closed form of the variance of a truncated normal, both proposals."""
    run = compiled(rules.truncated_normal)
    for sigma, bound in ((0.25, 1.0), (0.5, 0.4)):
        values = np.array([run(sigma, bound, 9, t) for t in range(40_000)])
        b = bound / sigma
        density = math.exp(-b * b / 2) / math.sqrt(2 * math.pi)
        variance = sigma**2 * (1 - 2 * b * density / math.erf(b / math.sqrt(2)))
        assert values.var() == pytest.approx(variance, rel=0.03)  # 4 standard errors are 0.03
        assert np.abs(values).max() <= bound


def test_gaps_comparator_and_corruption_by_hand() -> None:
    problem = bw.Problem(features=np.eye(4).reshape(2, 2, 4), probabilities=[0.25, 0.75])
    made = en.stochastic(en.Instance(problem, np.array([0.1, 0.5, 0.3, -0.2])))
    assert made.gaps.tolist() == pytest.approx(np.array([[0.0, 0.4], [0.5, 0.0]]))
    assert made.comparator.tolist() == [0, 1]
    assert made.gap == pytest.approx(0.4)
    assert made.best_losses(np.array([2.0])) == pytest.approx(2 * (0.25 * 0.1 + 0.75 * -0.2))
    other = np.array([0.1, 0.0, 0.3, -0.2])  # the second arm of context 0 is now better by 0.1: gap 0.4 becomes -0.1
    assert made.corruption_of(other) == pytest.approx(0.25 * 0.5)
    assert made.margin_curve([0.3, 0.45, 0.5]).tolist() == pytest.approx([0.0, 0.25, 1.0])
    with pytest.raises(ValueError, match="no fixed parameter"):
        _ = en.alternating(problem, [made.thetas[0], -made.thetas[0]]).gaps


def test_adversaries_by_plan() -> None:
    problem = random_problem(1)
    pair = en.opposite(parameters(problem))
    assert coefficients(en.alternating(problem, pair, every=2), 6)[:, 0].tolist() == [1, 1, 0, 0, 1, 1]
    assert coefficients(en.flip(problem, pair, at=3), 5)[:, 1].tolist() == [0, 0, 0, 1, 1]
    growing = coefficients(en.growing_phases(problem, pair, first=2, growth=2.0), 14)[:, 0]
    assert growing.tolist() == [1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    wave = coefficients(en.sine(problem, pair * 0.7, period=8), 8)
    assert wave[1] == pytest.approx([1.0, 0.0], abs=1e-12)
    path = np.linspace(-1, 1, 5)[:, None] * pair[0]
    given_env = en.given(problem, path)
    assert coefficients(given_env, 5) @ given_env.thetas == pytest.approx(path)


def test_a_random_walk_stays_in_range_and_moves() -> None:
    environment = en.random_walk(random_problem(2), step=0.05, seed=3)
    path = coefficients(environment, 2000)
    assert np.abs(np.diff(path, axis=0)).max() <= 0.05 + 1e-12
    assert np.abs(path).max() <= 1.0
    assert np.abs(np.einsum("tj,jxa->txa", path, environment.tables)).max() <= 1.0 + 1e-12
    assert path.std(axis=0).min() > 0.05


def test_the_adaptive_adversary_takes_what_hurts_most() -> None:
    problem = random_problem(3)
    theta = parameters(problem)
    environment = en.adaptive_adversary(problem, [theta, -theta, np.zeros(3)])
    uniform = environment.constants
    assert coefficients(environment, 1, uniform + np.array([0.1, 0.3, 0.2]))[0].tolist() == [0, 1, 0]
    assert coefficients(environment, 1, uniform + np.array([0.1, -0.3, 0.2]))[0].tolist() == [0, 0, 1]


@pytest.mark.parametrize("placement", ["first", "random", "adaptive"])
def test_corruption_is_spent_exactly(placement: str) -> None:
    made = instance(gap=0.2)
    environment = en.corrupted(made, budget=7.3, placement=placement, probability=0.2)  # type: ignore[arg-type]
    path = coefficients(environment, 3000, np.full(2, -1.0))
    spent = sum(environment.corruption_of(c @ environment.thetas) for c in path)
    assert spent == pytest.approx(7.3, rel=1e-9)
    assert 0.0 < path[:, 1].sum() % 1.0 < 1.0  # the last corrupted round is corrupted in part,
    assert reported(environment, 3000) == pytest.approx(7.3, rel=1e-12)  # and only that part counts
    touched = np.flatnonzero(path[:, 1])
    if placement == "first":
        assert touched.tolist() == list(range(len(touched)))
    if placement == "random":
        assert 0.1 < len(touched) / (touched[-1] + 1) < 0.35
    sure = coefficients(environment, 50, np.full(2, 1.0))  # a learner far from the optimum
    assert bool(sure[:, 1].any()) is (placement != "adaptive")


def test_adaptive_corruption_measures_gaps_of_offered_arms() -> None:
    """Average gap 0.25 (0 + 0.4)/2 + 0.75 (0 + 0.3 + 0.9)/3 = 0.35: sure is within 0.0875 of the best loss, 0.1."""
    features = np.eye(6).reshape(2, 3, 6)
    problem = bw.Problem(features=features, probabilities=[0.25, 0.75], available=[[1, 1, 0], [1, 1, 1]])
    made = en.Instance(problem, np.array([0.1, 0.5, 0.0, 0.1, 0.4, 1.0]))
    environment = en.corrupted(made, budget=1.0, placement="adaptive")
    for loss, touched in ((0.187, True), (0.188, False)):
        assert bool(coefficients(environment, 3, np.full(2, loss))[:, 1].any()) is touched


def test_a_moving_level_leaves_the_gaps_alone() -> None:
    base = instance()
    phi = np.concatenate([base.problem.features, np.ones((6, 4, 1))], axis=2)
    problem = bw.Problem(features=phi, probabilities=base.problem.probabilities)
    environment = en.moving_level(en.Instance(problem, np.append(base.theta, 0.0)), level=0.1, every=5)
    for c in coefficients(environment, 12):
        table = np.einsum("j,jxa->xa", c, environment.tables)
        assert table - table.min(axis=1, keepdims=True) == pytest.approx(environment.gaps, abs=1e-9)
        assert environment.corruption_of(c @ environment.thetas) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ValueError, match="column of ones"):
        en.moving_level(base, level=0.1)


def test_ads_tire_and_recover() -> None:
    environment = en.ad_fatigue(click_rates=[[0.3, 0.2], [0.1, 0.4]], probabilities=[0.5, 0.5], wear=0.1, memory=10)
    assert environment.reacts
    nature = environment.begin()
    for t in range(1, 101):
        KERNEL.decide(nature, t, 0)
        KERNEL.react(nature, 0 if t <= 60 else 1)
        if t == 60:
            worn = KERNEL.mean_loss(nature, 0, 0)
    assert worn == pytest.approx(1 - 2 * (0.3 - 0.1), abs=0.01)  # shown all the time: the whole wear
    assert KERNEL.mean_loss(nature, 0, 0) == pytest.approx(1 - 2 * 0.3, abs=0.01)  # recovered
    assert KERNEL.mean_loss(nature, 1, 1) == pytest.approx(1 - 2 * (0.4 - 0.1), abs=0.01)


def test_the_lower_bound_instance() -> None:
    environment = en.lower_bound(arms=4, horizon=10_000, seed=1)
    assert environment.gap == pytest.approx(0.5 * math.sqrt(4 / 10_000))


def test_worlds_that_leave_the_range_are_refused() -> None:
    problem = random_problem(4)
    theta = parameters(problem) / 0.8  # losses fill [-1, 1] exactly
    en.alternating(problem, [theta, -theta])
    bad = 1.25 * theta
    worlds: list[Callable[[], en.Environment]] = [
        lambda: en.stochastic(en.Instance(problem, bad)),
        lambda: en.alternating(problem, [bad, theta]),
        lambda: en.given(problem, [theta, bad]),
        lambda: en.sine(problem, [theta, theta], period=9),
        lambda: en.corrupted(en.Instance(problem, theta), budget=1.0, theta=bad),
    ]
    for make in worlds:
        with pytest.raises(ValueError, match=r"leave \[-1, 1\].*Scale it by at most"):
            make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p, th: en.alternating(p, [th], every=0), "every must be a whole number"),
        (lambda p, th: en.growing_phases(p, [th], growth=0.5), "growth"),
        (lambda p, th: en.flip(p, [th], at=3), "two parameters"),
        (lambda p, th: en.random_walk(p, step=0.0), "step"),
        (lambda p, th: en.given(p, [[1.0, 2.0]]), "shape"),
        (lambda p, th: en.given(p, np.full((3, 3), np.nan)), "finite"),
        (lambda p, th: en.growing_phases(p, [th], growth=math.inf), "growth"),
        (lambda p, th: en.ad_fatigue(click_rates=[[0.1, 0.5]], probabilities=[1.0], wear=0.2), "wear"),
        (lambda p, th: en.stochastic(en.Instance(p, th), noise="pink"), "unknown noise"),  # type: ignore[arg-type]
        (lambda p, th: en.corrupted(en.Instance(p, th), budget=-1.0), "budget"),
        (lambda p, th: en.corrupted(en.Instance(p, th), budget=1.0, placement="last"), "placement"),  # type: ignore[arg-type]
        (lambda p, th: en.corrupted(en.Instance(p, th), budget=1.0, theta=th), "corrupts nothing"),
        (lambda p, th: en.random_instance(contexts=3, arms=2, dimension=2, gap=0.0), "gap"),
        (lambda p, th: en.random_instance(contexts=3, arms=2, dimension=2, gap=0.1, rarity=2), "rarity"),
        (lambda p, th: en.margin_instance(contexts=3, arms=2, dimension=2, gap=0.1, margin=0), "margin"),
        (lambda p, th: en.alternating(p, [np.ones(7)]), "one entry per feature"),
        (lambda p, th: en.alternating(p, [th], every=1.5), "every must be"),  # type: ignore[arg-type]
        (lambda p, th: en.corrupted(en.Instance(p, th), budget=1.0, probability=0.0), "probability must lie in"),
        (lambda p, th: en.corrupted(en.Instance(p, th), budget=1.0, probability=1.5), "probability must lie in"),
        (lambda p, th: en.corrupted(en.Instance(p, th), budget=math.inf), "budget"),
        (lambda p, th: en.random_walk(p, seed=-1), "seed must be a whole number"),
        (lambda p, th: en.lower_bound(arms=2, horizon=10, seed=0.5), "seed must be"),  # type: ignore[arg-type]
        (lambda p, th: instance(contexts=0), "contexts must be a whole number of at least 1; got 0"),
        (lambda p, th: instance(contexts=2.0), "contexts must be a whole number"),
        (lambda p, th: instance(arms=1), "arms must be a whole number of at least 2"),
        (lambda p, th: instance(dimension=0), "dimension must be"),
        (lambda p, th: instance(contexts=10**9), "too large to simulate"),
        (lambda p, th: instance(contexts=10**4, arms=10**4, dimension=10**4), "too many to simulate"),
        (lambda p, th: instance(seed=-3), "seed must be a whole number"),
        (lambda p, th: instance(gap=1e-9), "gap must lie"),
        (lambda p, th: instance(gap=math.nan), "gap must lie"),
        (lambda p, th: instance(rarity=math.nan), "rarity"),
        (lambda p, th: instance(rarity=math.inf), "rarity"),
        (
            lambda p, th: en.margin_instance(contexts=50, arms=2, dimension=2, gap=0.1, margin=0.1),
            "too small for the rounding of mean losses",
        ),
        (lambda p, th: en.margin_instance(contexts=3, arms=2, dimension=2, gap=0.1, margin=1, seed=-1), "seed"),
    ],
)
def test_impossible_worlds_are_refused(make: object, words: str) -> None:
    problem = random_problem(4)
    with pytest.raises(ValueError, match=words):
        make(problem, parameters(problem))  # type: ignore[operator]


ANY: Any = en  # whose functions take, and are given, anything


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ANY.corrupted(INSTANCE, budget=1, theta=[1.0, 2.0]), r"theta must have 3 finite entries"),
        (lambda: ANY.corrupted(INSTANCE, budget=1, theta="abc"), "parameters must be numbers"),
        (lambda: ANY.corrupted(INSTANCE, budget="a"), "budget must be finite"),
        (lambda: ANY.corrupted(INSTANCE, budget=1, probability="a"), "probability must lie"),
        (
            lambda: ANY.stochastic(INSTANCE.problem),
            r"takes an instance, for example Instance\(problem, theta\); got Problem",
        ),
        (lambda: ANY.stacked(INSTANCE.problem), "stacked takes an instance"),
        (lambda: ANY.corrupted(INSTANCE.problem, budget=1), "corrupted takes an instance"),
        (lambda: ANY.moving_level(INSTANCE.problem, level=0.1), "moving_level takes an instance"),
        (lambda: ANY.moving_level(INSTANCE, level="a"), "level must be finite"),
        (lambda: ANY.sine(INSTANCE.problem, PAIR, period="a"), "a positive period; got 'a'"),
        (lambda: ANY.sine(INSTANCE.problem, 3, period=5), "a sine needs two parameters, one row each; got 3"),
        (lambda: ANY.flip(INSTANCE.problem, 3, at=5), "a flip needs two parameters, one row each; got 3"),
        (lambda: ANY.random_walk(INSTANCE.problem, step="a"), "step must lie"),
        (lambda: ANY.growing_phases(INSTANCE.problem, PAIR, growth="a"), "growth must lie"),
        (lambda: ANY.alternating(INSTANCE.problem, [[1.0], [1.0, 2.0]]), "in rows of equal length"),
        (lambda: ANY.stochastic(INSTANCE, sigma="a"), "sigma must be positive"),
        (lambda: ANY.clicks(attributes=5), "attributes must be a list of numbers of levels"),
        (lambda: ANY.clicks(rates=5), "rates must be the lowest and the highest"),
        (lambda: ANY.clicks(rarity="a"), "rarity L"),
    ],
)
def test_what_makes_no_world_is_refused_in_a_sentence(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_the_possible_gain_of_given_parameters_is_known() -> None:
    rows = np.concatenate([np.tile(INSTANCE.theta, (70, 1)), np.tile(-INSTANCE.theta, (50, 1))])
    world, same = en.given(INSTANCE.problem, rows), en.flip(INSTANCE.problem, PAIR, at=70)
    for horizon in (60, 120):
        gain = en.possible_gain(world, horizon=horizon)
        assert gain == pytest.approx(en.possible_gain(same, horizon=horizon), rel=1e-12)
        assert en.captured_gain(world, gain, horizon=horizon) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="has parameters for 120 rounds, not for 121"):
        en.possible_gain(world, horizon=121)
    with pytest.raises(ValueError, match="are not known in advance"):
        en.possible_gain(en.from_function(INSTANCE.problem, lambda t, pi: INSTANCE.theta), horizon=5)
