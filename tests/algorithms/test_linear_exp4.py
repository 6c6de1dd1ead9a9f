"""Linear EXP4: brute force against the product form, the list of linear policies, unbiasedness, bounded steps."""

import itertools
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.theory.linear_policies import all_policies, linear_policies
from support.problems import bits, coordinates, directions, parameters, play, random_problem

KINDS = ["linear", "all", "listed"]


def brute_force(policy: bw.Policy, maps: Any, eta: float) -> np.ndarray:
    """q(a|x) of exponential weights on a list of policies, each policy by its expected estimated loss."""
    z, g = coordinates(policy), policy.problem.probabilities
    losses = np.array([sum(g[x] * z[x, a] @ policy.state.theta for x, a in enumerate(one)) for one in maps])
    weights = np.exp(-eta * (losses - losses.min()))
    q = np.zeros(z.shape[:2])
    for one, weight in zip(maps, weights / weights.sum(), strict=True):
        for x, a in enumerate(one):
            q[x, a] += weight
    return q


@pytest.mark.parametrize("masked", [False, True])
def test_brute_force_over_all_policies_is_the_product_form(masked: bool) -> None:
    available = np.ones((4, 3), dtype=bool)
    available[0, 1] = available[2, 0] = not masked
    problem = random_problem(3, S=4, K=3, d=3, rarity=30.0, available=available)
    maps = [one for one in itertools.product(range(3), repeat=4) if all(available[x, a] for x, a in enumerate(one))]
    assert sorted(map(tuple, all_policies(problem).tolist())) == maps
    product, listed = (bw.LinearEXP4(horizon=400, policies=kind).start(problem, rng=1) for kind in ("all", "listed"))
    worst = 0.0

    def check(policy: bw.Policy) -> None:
        nonlocal worst
        eta = float(policy.state.rates[0])
        assert eta == listed.state.rates[0]
        worst = max(worst, float(np.abs(policy.state.q - brute_force(policy, maps, eta)).max()))

    play(product, 300, each=check)
    assert worst <= 1e-12  # 7e-16 measured
    assert np.ptp(product.state.q, axis=1).max() > 0.2  # it learnt something
    play(listed, 300)
    assert np.abs(listed.state.q - product.state.q).max() <= 1e-12


def angles(problem: bw.Problem) -> set[tuple[int, ...]]:
    """The linear policies of two dimensions: one between any two angles at which two arms of a context tie."""
    phi = problem.features
    ties = []
    for x, a, b in itertools.product(range(len(phi)), *[range(phi.shape[1])] * 2):
        if a != b:
            v = phi[x, a] - phi[x, b]
            ties.append(math.atan2(v[0], -v[1]))
    ties.sort()
    middles = [(one + two) / 2 for one, two in itertools.pairwise([*ties, ties[0] + 2 * math.pi])]
    thetas = np.array([[math.cos(middle), math.sin(middle)] for middle in middles])
    return {tuple((phi @ theta).argmin(axis=1).tolist()) for theta in thetas}


@pytest.mark.parametrize("seed", range(5))
def test_linear_policies_of_two_dimensions_are_those_of_the_angles(seed: int) -> None:
    problem = random_problem(seed, S=5, K=4, d=2)
    found = [tuple(one) for one in linear_policies(problem).tolist()]
    assert len(set(found)) == len(found)
    assert set(found) == angles(problem)


def test_linear_policies_are_those_that_a_linear_program_confirms() -> None:
    """Map by map: max m with <phi(b, x) - phi(p(x), x), theta> >= m for all x and b, |theta_i| <= 1."""
    problem = random_problem(4, S=4, K=3, d=3)
    phi, confirmed = problem.features, []
    for one in itertools.product(range(3), repeat=4):
        rows = np.array([phi[x, b] - phi[x, a] for x, a in enumerate(one) for b in range(3) if b != a])
        table = np.concatenate([-rows, np.ones((len(rows), 1))], axis=1)
        found = linprog([0, 0, 0, -1], A_ub=table, b_ub=np.zeros(len(rows)), bounds=[(-1, 1)] * 3 + [(None, 1)])
        if -found.fun > 1e-7:
            confirmed.append(list(one))
    assert linear_policies(problem).tolist() == confirmed
    assert 10 < len(confirmed) < 81


def test_degenerate_lists() -> None:
    """Equal features: the first arm stands for all; the same context twice plays the same; one-hot: all maps."""
    twice = bw.Problem(features=[[[1.0, 0], [0, 1], [0, 1]]] * 2, probabilities=[0.5, 0.5])
    assert linear_policies(twice).tolist() == [[0, 0], [1, 1]]
    one_hot = bw.Problem(features=np.eye(6).reshape(3, 2, 6), probabilities=[0.2, 0.3, 0.5])
    assert len(linear_policies(one_hot)) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_estimates_are_unbiased_and_steps_bounded_in_every_round(kind: Any) -> None:
    """E[theta_hat] = theta by enumeration; eta |<z_p, theta_hat>| <= 1; E[z_p' Sigma^-1 z_p] <= d/(1 - gamma)."""
    problem = random_problem(2, S=4, K=3, d=3, rarity=100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = bw.LinearEXP4(horizon=10_000, policies=kind).start(problem, rng=1)
    theta = np.array([0.4, -0.3, 0.2])
    maps = linear_policies(problem) if kind == "linear" else all_policies(problem)
    z, g = coordinates(policy), problem.probabilities
    points = np.array([(g[:, None] * z[np.arange(4), one]).sum(axis=0) for one in maps])

    def check(policy: bw.Policy) -> None:
        d = directions(policy)
        eta, gamma = policy.state.rates
        mean = np.einsum("xa,xai,xa->i", g[:, None] * policy.probabilities(), d, z @ theta)
        assert np.abs(mean - theta).max() <= 100 * 2.2e-16 * float(np.linalg.cond(policy.state.sigma))
        assert eta * np.abs(points @ d.reshape(-1, 3).T).max() <= 1.0 + 1e-9
        weights = np.exp(-eta * (points @ policy.state.theta))
        inverse = np.linalg.inv(policy.state.sigma)
        spread = np.einsum("p,pi,ij,pj->", weights / weights.sum(), points, inverse, points)
        assert spread <= 3 / (1 - gamma) + 1e-9

    play(policy, 60, each=check)


def test_rates_are_those_of_the_bound() -> None:
    problem = random_problem(6, S=4, K=3, d=3)
    lam = bw.design(problem).coverage
    for kind, count in (("linear", len(linear_policies(problem))), ("all", 81), ("listed", 81)):
        options = bw.LinearEXP4(horizon=50_000, policies=kind).machine(problem).options  # type: ignore[arg-type]
        assert options.eta == pytest.approx(math.sqrt(math.log(count) / (50_000 * (3 + 2 / lam))), rel=1e-6)
        assert options.gamma == pytest.approx(options.eta / lam, rel=1e-6)


def test_larger_problems_are_refused_with_the_size_that_could_be_done() -> None:
    large = random_problem(1, S=300, K=3, d=3)
    with pytest.raises(ValueError, match=r"use at most the first .. contexts"):
        bw.LinearEXP4(horizon=100).machine(large)
    with pytest.raises(ValueError, match=r"10\^143 maps of 300 contexts.* 6 contexts with 3 arms"):
        bw.LinearEXP4(horizon=100, policies="listed").machine(large)
    bw.LinearEXP4(horizon=10**6, policies="all", design="uniform").machine(large)
    with pytest.raises(ValueError, match="policies must be one of"):
        bw.LinearEXP4(horizon=100, policies="some")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::bothworlds.TuningWarning")
def test_it_conforms_learns_and_survives_files(tmp_path: Path) -> None:
    assert bw.check_algorithm(bw.LinearEXP4(horizon=2000)) == []
    assert bw.check_algorithm(bw.LinearEXP4(horizon=2000, policies="all")) == []
    world = en.flip(
        random_problem(1, S=4, K=3, d=2), en.opposite(parameters(random_problem(1, S=4, K=3, d=2))), at=2000
    )
    algorithm = bw.LinearEXP4(horizon=20_000)
    run = bw.simulate(world, {"a": algorithm, "u": bw.FixedPolicy()}, horizon=20_000, replications=4)
    assert run["a"].regret[-1] < 0.2 * run["u"].regret[-1]  # 0.06 with this seed
    policy = algorithm.start(world.problem, rng=1)
    play(policy, 20)
    policy.save(tmp_path / "p.npz")
    assert play(bw.load(tmp_path / "p.npz"), 30) == play(policy, 30)


@pytest.mark.parametrize("kind", ["linear", "all"])
def test_interpreted_and_compiled_runs_agree_bit_for_bit(kind: Any) -> None:
    algorithm = bw.LinearEXP4(horizon=5000, policies=kind)
    one, two = (algorithm.start(random_problem(5), rng=9, interpreted=flag) for flag in (False, True))
    assert play(one, 300) == play(two, 300)
    assert bits(one) == bits(two)
