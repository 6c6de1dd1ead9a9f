"""MWU-LC: its rates and moments by hand, estimates by enumeration, rejection, sizes, and learning."""

import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.mwu_lc import kernel as mwu_lc_text
from bothworlds.algorithms.mwu_lc.simplex_integrals import MOST_ARMS
from bothworlds.kernels.contract import Draw
from bothworlds.kernels.random import ARM, two_uniforms
from support.armwise_problems import context_coordinates, independent_problem, masked_problem
from support.divided_differences import moments, survival
from support.problems import bits, carried_by, chosen, parameters, play, random_problem, records

PROBLEMS = {"plain": independent_problem(1), "rare": independent_problem(2, rarity=500.0), "masked": masked_problem()}
BOLD = 3000.0  # a speed at which a few rounds make a difference


def exact_moments(policy: bw.Policy) -> tuple[np.ndarray, np.ndarray]:
    """E[r_a|x] and E[r_a^2|x] by mpmath from what the policy has learnt, zero for arms not offered."""
    losses = policy.state.rates[0] * context_coordinates(policy) @ policy.state.arms.T
    offered = policy.problem.available
    means, squares = np.zeros(offered.shape), np.zeros(offered.shape)
    for x, row in enumerate(offered):
        first, second = moments(losses[x, row])
        means[x, row], squares[x, row] = [float(m) for m in first], [float(m) for m in second]
    return means, squares


@pytest.mark.parametrize("name", PROBLEMS)
def test_rates_and_plan_follow_the_paper(name: str) -> None:
    """1/eta_t^2 = 800 d K trunc_t^2 + sum 16 trunc_s^2 loss_s^2, and pi_t(a|x) = E[r_a|x]."""
    problem = PROBLEMS[name]
    policy = bw.MWULC(speed=BOLD).start(problem, rng=1)
    rng, total = np.random.default_rng(4), 0.0
    for t in range(1, 41):
        trunc = 4 * math.log(10 * 9 * t)  # d K = 9
        assert policy.state.rates == pytest.approx([BOLD / math.sqrt(800 * 9 * trunc**2 + total), trunc], rel=1e-12)
        means, squares = exact_moments(policy)
        assert policy.probabilities() == pytest.approx(means, rel=1e-9)
        assert policy.state.squares == pytest.approx(squares, rel=1e-9)
        loss = float(rng.uniform(-1.0, 1.0))
        policy.update(policy.act(int(rng.choice(5, p=problem.probabilities))), loss=loss)
        total += 16 * trunc**2 * loss**2
    assert policy.probabilities().max() > 0.9  # the nodes were far from equal


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_arm_is_estimated_without_bias(name: str) -> None:
    """By enumeration of contexts and arms; the draw of Q enters through E[Q(a)^2|x] alone, here from mpmath.

    A decision carries Q(a) Sbar_a^-1 x and Q(a): the arm is played with probability Q(a), so that the mean over draws
    of 1{A = a} Q(a) Sbar_a^-1 x <x, theta_a> is E[Q(a)^2|x] Sbar_a^-1 x <x, theta_a>.
    """
    problem = PROBLEMS[name]
    policy = bw.MWULC(speed=BOLD).start(problem, rng=1, interpreted=True)
    x, g = context_coordinates(policy), problem.probabilities
    thetas = np.random.default_rng(3).normal(size=(3, x.shape[1]))
    for _ in range(3):
        _, squares = exact_moments(policy)
        mean, leverages = np.zeros_like(thetas), 0.0
        for context, a in np.argwhere(problem.available):
            solved = solved_by_the_policy(policy, context, a)
            mean[a] += g[context] * squares[context, a] * solved * (x[context] @ thetas[a])
            leverages += g[context] * squares[context, a] * (solved @ x[context])
        wrong = np.abs(x @ (mean - thetas).T)[problem.available].max()
        assert wrong < 1e-9 * np.abs(x @ thetas.T).max()
        ranks = [np.linalg.matrix_rank(x[problem.available[:, a]]) for a in range(3)]
        assert leverages == pytest.approx(sum(ranks), rel=1e-9)
        play(policy, 8, theta=parameters(problem))


def solved_by_the_policy(policy: bw.Policy, x: int, a: int) -> np.ndarray:
    """Sbar_a^-1 x: the direction of a decision over its Q(a), asked for until the arm is played."""
    state, work = policy.state, records(policy._machine).work
    for time in range(10**6, 10**6 + 5000):
        arm, carried = chosen(policy._machine, state, work, x, time)
        if arm == a:
            assert carried.drawn[0] == work.point[a]
            return np.asarray(carried.direction / carried.drawn[0])
    raise AssertionError("the arm was never played")


def test_one_constant_context_divides_by_the_second_moment() -> None:
    """d = 1, x = 1: theta_hat = Q(a) loss/E[r_a^2], and without learning E[r_a^2] = 2/(K (K + 1))."""
    problem = bw.Problem.from_arm_independent([[1.0]], probabilities=[1.0], arms=4)
    policy = bw.MWULC().start(problem, rng=3)
    assert policy.probabilities(0) == pytest.approx(np.full(4, 0.25), rel=1e-14)
    decision = policy.act(0)
    assert decision.direction[0] == pytest.approx(carried_by(policy, decision).drawn[0] * 4 * 5 / 2)
    assert decision.propensity == pytest.approx(0.25)
    policy.update(decision, loss=-0.5)
    assert policy.state.arms[:, 0].tolist() == [-0.5 * decision.direction[0] * (a == decision.arm) for a in range(4)]


@given(st.lists(st.integers(0, 3000).map(lambda i: i / 10), min_size=1, max_size=5), st.floats(1.0, 60.0))
def test_a_share_exceeds_its_root_mean_square_as_rarely_as_claimed(nodes: list[float], factor: float) -> None:
    """P(r_a > c sqrt(E[r_a^2])) <= exp(1 - c), from log-concavity: behind the bound on rejections."""
    _, squares = moments(nodes)
    for node, square in zip(nodes, squares, strict=True):
        assert survival(nodes, node, factor * mpmath.sqrt(square), 1.0) <= mpmath.exp(1 - factor) * (1 + 1e-12)


def test_draws_beyond_the_bound_are_rejected_and_counted() -> None:
    """With a bound so low that it matters: what is accepted is within, and the decision tells how many were not."""
    policy = bw.MWULC(speed=BOLD).start(PROBLEMS["rare"], rng=1, interpreted=True)
    play(policy, 10)
    machine, state = policy._machine, policy.state
    (S, K, d), work = machine.known.z.shape, records(machine).work
    state.rates[1] = 0.9
    counts = []
    for time in range(200):
        x = time % S
        largest = mwu_lc_text.solve_arms(machine.known, machine.options, state, work, x)
        draw = Draw(two_uniforms(7, time, ARM, 0), 7, time)
        counts.append(mwu_lc_text.draw_accepted(machine.known, machine.options, state, work, x, draw))
        assert counts[-1] < mwu_lc_text.MOST_DRAWS
        assert (work.point**2 * work.leverages).sum() <= K * max(d, largest) * 0.9**2
    assert 0 < sum(count > 0 for count in counts) < 200
    decisions = policy.act([*range(S)] * 10)
    rejected = sum(carried_by(policy, decision).rejected[0] for decision in decisions)
    assert rejected > 0
    policy.update(decisions, loss=[0.0] * 50)
    assert policy.state.rejected[0] == rejected


@pytest.mark.parametrize("speed", [1.0, BOLD])
def test_with_the_papers_bound_nothing_is_rejected(speed: float) -> None:
    """At most K e (10 d K t)^-4 in every round: 1e-6 in all, whatever was learnt and however rare a context."""
    world = en.stochastic(en.Instance(PROBLEMS["rare"], parameters(PROBLEMS["rare"])))
    policy = bw.MWULC(speed=speed).start(world.problem, rng=1)
    play(policy, 400)
    assert policy.state.rejected[0] == 0.0


def test_arms_are_drawn_with_their_probabilities() -> None:
    """Given the past an arm's probability is E[r_a|x]: over fresh draws of Q and of the arm."""
    policy = bw.MWULC(speed=BOLD).start(independent_problem(3, K=4), rng=3)
    play(policy, 60)
    expected = policy.probabilities(1)
    assert expected.max() - expected.min() > 0.2
    decisions = policy.act([1] * 20_000)
    seen = np.bincount([decision.arm for decision in decisions], minlength=4)
    assert chisquare(seen, 20_000 * expected).pvalue > 0.001  # 0.39 with this seed
    shares = np.array([carried_by(policy, decision).drawn[0] for decision in decisions])
    assert np.unique(shares).size == 20_000  # every decision draws its own Q_t


@pytest.mark.filterwarnings("ignore::bothworlds.DegenerateProblemWarning")
def test_it_conforms_and_survives_files(tmp_path: Path) -> None:
    assert bw.check_algorithm(bw.MWULC()) == []
    policy = bw.MWULC(speed=BOLD).start(masked_problem(), rng=1)
    play(policy, 60)
    policy.save(tmp_path / "p.npz")
    assert play(bw.load(tmp_path / "p.npz"), 60) == play(policy, 60)


@pytest.mark.parametrize("algorithm", [bw.MWULC(), bw.MWULC(speed=BOLD)], ids=repr)
def test_interpreted_and_compiled_runs_agree_bit_for_bit(algorithm: Any) -> None:
    one, two = (algorithm.start(masked_problem(), rng=9, interpreted=flag) for flag in (False, True))
    theta = parameters(one.problem)
    assert play(one, 60, theta=theta) == play(two, 60, theta=theta)
    assert bits(one) == bits(two)


def test_the_printed_rates_stay_uniform_and_bolder_ones_learn() -> None:
    """The guarantee's constants against a gap of 0.6 at least; see research/mwu-lc.md."""
    x = [[1.0, 0.0], [0.6, 0.8], [-0.3, 1.0]]
    problem = bw.Problem.from_arm_independent(x, probabilities=[0.4, 0.3, 0.3], arms=2)
    world = en.stochastic(en.Instance(problem, np.array([0.5, 0.3, -0.5, -0.3])))
    decision = {"printed": bw.MWULC(), "bold": bw.MWULC(speed=100.0), "uniform": bw.FixedPolicy()}
    run = bw.simulate(world, decision, horizon=5000, replications=4)
    printed, bold, uniform = (run[name].regret[-1] for name in decision)
    assert printed > 0.8 * uniform  # 0.96 with this seed
    assert bold < 0.2 * uniform  # 0.12


@pytest.mark.parametrize("shape", [{"S": 1, "d": 1}, {"K": 2, "d": 1}, {"K": MOST_ARMS}, {"S": 60, "d": 50, "K": 2}])
@pytest.mark.parametrize("rarity", [None, 1e7])
def test_all_sizes_run(shape: dict[str, Any], rarity: float | None) -> None:
    policy = bw.MWULC(speed=BOLD).start(
        independent_problem(1, rarity=rarity if "S" not in shape else None, **shape), rng=1
    )
    play(policy, 20)
    for decision in policy.act([0] * 20):  # the rare context, where the printed rule would reject nearly all draws
        policy.update(decision, loss=0.5)
    assert policy.probabilities().sum(axis=1) == pytest.approx(np.ones(policy.problem.n_contexts))
    assert policy.state.rejected[0] == 0.0


@pytest.mark.filterwarnings("ignore::bothworlds.DegenerateProblemWarning")
def test_too_many_arms_are_refused_before_the_start() -> None:
    problem = random_problem(1, S=2, K=MOST_ARMS + 3, d=2)
    with pytest.raises(ValueError, match=rf"at most {MOST_ARMS} of them.* offers {MOST_ARMS + 3}"):
        bw.MWULC().machine(problem)
    available = np.zeros((2, MOST_ARMS + 3), dtype=bool)
    available[0, :MOST_ARMS] = available[1, 3:] = True
    fewer = random_problem(1, S=2, K=MOST_ARMS + 3, d=2, available=available)
    policy = bw.MWULC().start(fewer, rng=1)
    play(policy, 5)
    assert policy.probabilities().sum(axis=1) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("speed", [0.0, -1.0, math.inf, math.nan, "fast", True])
def test_wrong_options_are_refused(speed: Any) -> None:
    with pytest.raises(ValueError, match="speed must be positive and finite"):
        bw.MWULC(speed=speed)
