"""MWU-LC in its reduction: constants, the data-dependent master, epochs, exclusion, and unbiasedness by enumeration."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.mwu_lc.machine import constants_of
from bothworlds.algorithms.shared.corral_master import corral_point, data_master_point
from support.armwise_problems import context_coordinates, independent_problem, masked_problem
from support.divided_differences import moments
from support.problems import bits, carried_by, chosen, parameters, play, records

CANDIDATES = ["literal", "per-context"]
LIVELY = {"horizon": 1000, "scale": 0.0, "speed": 500.0}  # epochs end, and the base leaves uniform play


def lonely_problem() -> bw.Problem:
    """All arms, two, and in two contexts that span less than all dimensions one alone."""
    x = [[1.0, 0.0, 0.2], [0.3, 1.0, 0.0], [0.0, 0.4, 1.0], [0.5, 0.5, -1.0], [1.0, -0.5, 0.1]]
    offered = np.array([[1, 1, 1], [1, 0, 1], [1, 0, 0], [1, 0, 0], [1, 1, 1]], dtype=bool)
    return bw.Problem.from_arm_independent(x, probabilities=[0.2, 0.2, 0.1, 0.2, 0.3], arms=3, available=offered)


PROBLEMS = {"plain": independent_problem(1), "masked": masked_problem(), "lonely": lonely_problem()}


def in_base(policy: bw.Policy, x: int) -> np.ndarray:
    """Which arms the base may play in a context."""
    offered, candidate = policy.problem.available[x].copy(), int(policy.state.candidate[x])
    if policy.algorithm.candidate == "literal" and candidate >= 0 and offered.sum() > 1:  # type: ignore[attr-defined]
        offered[candidate] = False
    return np.asarray(offered)


def exact_base(policy: bw.Policy) -> tuple[np.ndarray, np.ndarray]:
    """E[r_a|x] and E[r_a^2|x] of the base by mpmath."""
    losses = policy.state.rates[0] * context_coordinates(policy) @ policy.state.arms.T
    means, squares = np.zeros(losses.shape), np.zeros(losses.shape)
    for x in range(len(losses)):
        row = in_base(policy, x)
        first, second = moments(losses[x, row])
        means[x, row], squares[x, row] = [float(m) for m in first], [float(m) for m in second]
    return means, squares


@pytest.mark.parametrize("difference", [-1e7, -40.0, 0.0, 0.2, 1000.0])
@pytest.mark.parametrize("inverse_rate", [0.5, 30.0, 7e6])
def test_the_masters_point_minimises_its_objective(difference: float, inverse_rate: float) -> None:
    """difference v - inverse_rate (log v + log(1 - v)) in v = q_2: its slope is zero, and increases."""
    one, two = data_master_point(1e30, difference, inverse_rate)  # so late that the mixing does not show
    assert one + two == pytest.approx(1.0, rel=1e-14)
    assert inverse_rate * (1 / two - 1 / one) == pytest.approx(
        difference, abs=1e-14 * inverse_rate * (1 / one + 1 / two)
    )
    if abs(difference) < 1e4:  # the bisection of the other master, without its root
        assert (one, two) == pytest.approx(corral_point(difference, 0.0, inverse_rate), rel=1e-12)
    assert data_master_point(1.0, difference, inverse_rate) == pytest.approx(
        (0.5 * one + 0.25, 0.5 * two + 0.25), rel=1e-12
    )


def test_constants_are_those_printed() -> None:
    """The example of the docs: d = 4, K = 3, T = 100,000."""
    kappa, c1, c2 = constants_of(12, 100_000)
    assert kappa == pytest.approx(32 * 3 * 4 * math.log(10 * 4 * 3 * 100_000) * math.log(100_000))
    assert (c1, c2) == pytest.approx((kappa**2, kappa * math.sqrt(50 * 4 * 3)))
    problem = bw.Problem.from_arm_independent(np.eye(4), probabilities=np.full(4, 0.25), arms=3)
    options = bw.BoBWMWULC(horizon=100_000, scale=0.1).machine(problem).options
    assert (options.c1, options.c2) == pytest.approx((0.1 * c1, 0.1 * c2))


def test_with_the_printed_constants_the_first_epoch_never_ends_and_shares_stay_near_one_half() -> None:
    problem = independent_problem(1)
    policy = bw.BoBWMWULC(horizon=100_000).start(problem, rng=1)
    shares = []
    play(policy, 300, each=lambda policy: shares.append(float(policy.state.master.shares[1])))
    assert 2 * policy.state.master.previous[0] > 100 * 100_000
    assert policy.state.master.epoch[0] == 1.0
    assert 0.5 <= min(shares) <= max(shares) < 0.6  # 0.55 with this seed
    first = int(policy.state.candidate[0])
    assert np.abs(np.delete(policy.state.base[0], first) - 0.5).max() < 0.01  # the base is uniform on the others


@pytest.mark.parametrize("candidate", CANDIDATES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_master_and_base_are_unbiased_with_update_probabilities(candidate: Any, name: str) -> None:
    """E[z_i] = loss of option i, and E[theta_hat_a] = theta_a for what the base plays, by enumeration.

    Contexts, options and arms are enumerated; Q enters through E[Q(a)] and E[Q(a)^2] given the context, from mpmath.
    """
    problem = PROBLEMS[name]
    policy = bw.BoBWMWULC(candidate=candidate, **LIVELY).start(problem, rng=1, interpreted=True)  # type: ignore[arg-type]
    x, g = context_coordinates(policy), problem.probabilities
    S, K, d = policy._machine.known.z.shape
    thetas = np.random.default_rng(3).normal(size=(K, d))
    epochs = set()
    for _ in range(6):
        state, q = policy.state, policy.state.master.shares.copy()
        epochs.add(float(state.master.epoch[0]))
        means, squares = exact_base(policy)
        table, truth, z, mean = np.zeros((S, K)), np.zeros(2), np.zeros(2), np.zeros((K, d))
        for context, a, option in np.ndindex(S, K, 2):
            chosen, loss = int(state.candidate[context]), float(x[context] @ thetas[a])
            share = float(a == chosen) if option == 0 and chosen >= 0 else means[context, a]
            table[context, a] += q[option] * share
            truth[option] += g[context] * share * loss
            z[option] += g[context] * q[option] * share * loss / q[option]
            if option == 1 and means[context, a] > 0.0:
                direction = direction_over_share(policy, context, a)
                mean[a] += g[context] * q[1] * squares[context, a] * direction * loss
        assert policy.probabilities() == pytest.approx(table, rel=1e-9, abs=1e-12)
        assert z == pytest.approx(truth, rel=1e-9)
        played = means > 0.0
        assert np.abs(x @ (mean - thetas).T)[played].max() < 1e-8
        play(policy, 12, theta=parameters(problem))
    assert len(epochs) > 1


def direction_over_share(policy: bw.Policy, x: int, a: int) -> np.ndarray:
    """What the base's decision carries over its Q(a), Sbar_a^-1 x/q_2: asked for until the base plays the arm."""
    state, work = policy.state, records(policy._machine).work
    for time in range(10**6, 10**6 + 20_000):
        arm, carried = chosen(policy._machine, state, work, x, time)
        if arm == a and carried.record.option[0] == 1.0:
            return np.asarray(carried.direction / carried.drawn[0])
    raise AssertionError("the base never played the arm")


def test_one_update_does_what_the_formulas_say() -> None:
    policy = bw.BoBWMWULC(horizon=1000, scale=1e-6, speed=100.0).start(independent_problem(1), rng=4)
    _, c1, c2 = constants_of(9, 1000)
    total = spread = worst = rate_sum = 0.0
    losses = np.zeros(2)
    options = []
    for t in range(1, 31):
        q = policy.state.master.shares.copy()
        bonus = math.sqrt(1e-6 * c1 * total) + 1e-6 * c2 * worst
        rate = 4 * math.sqrt((spread + (1e-6 * c1 + (1e-6 * c2) ** 2) * math.log(1000)) / math.log(1000))
        assert q == pytest.approx(data_master_point(t, losses[1] - bonus - losses[0], rate), rel=1e-9)
        trunc = 4 * math.log(10 * 9 * t)
        eta = 100.0 / math.sqrt(800 * 9 * trunc**2 * max(worst, 1 / q[1]) + rate_sum)
        assert policy.state.rates == pytest.approx([eta, trunc], rel=1e-9)
        decision = policy.act(t % 5)
        option = int(carried_by(policy, decision).record.option[0])
        options.append(option)
        assert option == 1 or decision.arm == policy.state.candidate[0]
        assert option == 0 or decision.arm != policy.state.candidate[0]
        loss = math.sin(t)
        policy.update(decision, loss=loss)
        losses[option] += loss / q[option]
        spread += loss**2 * (1 - q[option]) ** 2
        worst = max(worst, 1 / q[1])
        if option == 1:
            total += loss**2 / q[1] ** 2
            rate_sum += 16 * trunc**2 * loss**2 / q[1] ** 2
    assert set(options) == {0, 1}
    assert policy.state.master.epoch[0] == 1.0


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_epochs_double_and_forget(candidate: Any) -> None:
    policy = bw.BoBWMWULC(candidate=candidate, **LIVELY).start(PROBLEMS["plain"], rng=2)  # type: ignore[arg-type]
    lengths, rng = [0.0], np.random.default_rng(1)
    best = [(int(math.log(t / 10 + 1, 3)) + 1) % 3 for t in range(2000)]  # each for three times as long as the last
    for t in range(2000):
        before, candidates = float(policy.state.master.clock[0]), policy.state.candidate.copy()
        decision = policy.act(int(rng.integers(5)))
        policy.update(decision, loss=-1.0 if decision.arm == best[t] else 1.0)
        if policy.state.master.clock[0] == 1.0:
            assert before >= 2 * lengths[-1]
            lengths.append(before)
            assert (policy.state.candidate != candidates).any()
            for part in ("theta", "losses", "total", "worst", "spread", "rate_sum", "counts"):
                assert not policy.learnt()[part].any(), part
    assert len(lengths) >= 4


def test_arms_are_drawn_with_their_probabilities() -> None:
    policy = bw.BoBWMWULC(**LIVELY).start(masked_problem(), rng=3)  # type: ignore[arg-type]
    play(policy, 50)
    for x in (0, 4):
        expected = policy.probabilities(x)
        seen = np.bincount([decision.arm for decision in policy.act([x] * 10_000)], minlength=3)
        assert not seen[expected == 0.0].any()
        assert chisquare(seen[expected > 0.0], 10_000 * expected[expected > 0.0]).pvalue > 0.001  # 0.20 with this seed


@pytest.mark.filterwarnings("ignore::bothworlds.DegenerateProblemWarning")
@pytest.mark.parametrize("candidate", CANDIDATES)
def test_it_conforms_and_survives_files(candidate: Any, tmp_path: Path) -> None:
    algorithm = bw.BoBWMWULC(candidate=candidate, **LIVELY)  # type: ignore[arg-type]
    assert bw.check_algorithm(algorithm) == []
    assert bw.check_algorithm(bw.BoBWMWULC(horizon=1000, candidate=candidate)) == []
    policy = algorithm.start(lonely_problem(), rng=1)
    play(policy, 100)
    policy.save(tmp_path / "p.npz")
    assert play(bw.load(tmp_path / "p.npz"), 60) == play(policy, 60)


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_interpreted_and_compiled_runs_agree_bit_for_bit(candidate: Any) -> None:
    algorithm = bw.BoBWMWULC(candidate=candidate, **LIVELY)  # type: ignore[arg-type]
    one, two = (algorithm.start(lonely_problem(), rng=9, interpreted=flag) for flag in (False, True))
    theta = parameters(one.problem)
    assert play(one, 100, theta=theta) == play(two, 100, theta=theta)
    assert bits(one) == bits(two)


def test_scaled_down_and_bold_it_learns_one_best_arm() -> None:
    """Where one arm is the best in every context the candidate becomes that arm; a heuristic, see the docstring."""
    problem = bw.Problem.from_arm_independent([[1.0, 0.2], [1.0, -0.2]], probabilities=[0.5, 0.5], arms=3)
    world = en.stochastic(en.Instance(problem, np.array([0.4, 0, 0.4, 0, -0.2, 0])))
    decision = {
        "printed": bw.BoBWMWULC(horizon=5000),
        "scaled": bw.BoBWMWULC(horizon=5000, scale=1e-8, speed=100.0),
        "uniform": bw.FixedPolicy(),
    }
    run = bw.simulate(world, decision, horizon=5000, replications=4)
    printed, scaled, uniform = (run[name].regret[-1] for name in decision)
    assert printed > 0.9 * uniform  # 1.00 with this seed
    assert scaled < 0.2 * uniform  # 0.085


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 1}, "horizon"),
        ({"candidate": "x"}, "candidate"),
        ({"scale": -1.0}, "scale"),
        ({"speed": 0}, "speed"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.BoBWMWULC(**{"horizon": 100, **options})
