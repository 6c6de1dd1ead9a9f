"""The reduction with one covariance per arm: unbiasedness, the base on its own, constants, and the block problem."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.reduction import kernel_armwise as text
from bothworlds.algorithms.shared import armwise
from support.armwise_problems import context_coordinates, context_vectors, independent_problem, masked_problem
from support.problems import bits, carried_by, epoch_constants, parameters, play, random_problem, records

PROBLEMS = {"plain": independent_problem(1), "rare": independent_problem(2, rarity=200.0), "masked": masked_problem()}
each_problem = pytest.mark.parametrize("name", PROBLEMS)
each_candidate = pytest.mark.parametrize("candidate", ["literal", "per-context"])


def started(problem: bw.Problem, candidate: Any = "literal", **options: Any) -> bw.Policy:
    settings = {"horizon": 1000, "features": "arm-independent", **options}
    return bw.BoBWRealLinExp3(candidate=candidate, **settings).start(problem, rng=1, interpreted=True)


def base_of(policy: bw.Policy) -> np.ndarray:
    """The arms that the base may play, (S, K)."""
    table = policy.problem.available.copy()
    for x, chosen in enumerate(policy.state.excluded.astype(int)):
        if chosen >= 0 and table[x].sum() > 1:
            table[x, chosen] = False
    return table


def every_decision(policy: bw.Policy, x: int) -> dict[tuple[int, int], Any]:
    """A decision of each (option, arm) that may be played in a context: act is called until each occurred."""
    s = policy.state
    chosen = int(s.candidate[x])
    played = [int(a) for a in np.flatnonzero(s.base[x])]
    wanted = {(1, a) for a in played}
    if s.master.shares[0] > 0.0:
        wanted |= {(0, chosen)} if chosen >= 0 else {(0, a) for a in played}
    found: dict[tuple[int, int], Any] = {}
    for _ in range(20_000):
        decision = policy.act(x)
        found[int(carried_by(policy, decision).record.option[0]), decision.arm] = decision
        if set(found) == wanted:
            return found
    raise AssertionError(f"only {sorted(found)} of {sorted(wanted)}")


@each_problem
@each_candidate
def test_master_and_base_are_unbiased_with_update_probabilities(candidate: Any, name: str) -> None:
    """E[z_i] = loss of option i, and E[<x, theta_hat_a>] = <x, theta_a> wherever the base has a choice."""
    problem = PROBLEMS[name]
    policy = started(problem, candidate, scale=0.02)
    g, x_all = problem.probabilities, context_coordinates(policy)
    S, K, d = problem.n_contexts, problem.n_arms, x_all.shape[1]
    losses = np.random.default_rng(3).normal(size=(K, d))
    losses = x_all @ (0.9 * losses / np.abs(x_all @ losses.T).max()).T
    play(policy, 30)
    for _ in range(3):
        s = policy.state
        q, base = s.master.shares.copy(), s.base.copy()
        z, truth, table, means = np.zeros(2), np.zeros(2), np.zeros((S, K)), np.zeros((K, d))
        for x in range(S):
            for (i, a), decision in every_decision(policy, x).items():
                share = 1.0 if i == 0 and s.candidate[x] >= 0 else base[x, a]
                weight, loss = g[x] * q[i] * share, losses[x, a]
                table[x, a] += q[i] * share
                truth[i] += g[x] * share * loss
                carried = carried_by(policy, decision)
                z += weight * np.array([(loss + 1) * (i == j) * carried.record.inverse[0] - 1 for j in range(2)])
                means[a] += weight * loss * carried.direction
        assert policy.probabilities() == pytest.approx(table, abs=1e-12)
        assert z == pytest.approx(truth, abs=1e-9)
        choice = base_of(policy) & (base_of(policy).sum(axis=1, keepdims=True) > 1)
        choice &= np.arange(K) != s.excluded[:, None]
        assert choice.sum() >= 4
        assert (x_all @ means.T)[choice] == pytest.approx(losses[choice], abs=1e-8)
        assert not base[~base_of(policy)].any()
        play(policy, 20)


@each_problem
@pytest.mark.parametrize("constants", ["tuned", "printed"])
def test_with_q_one_the_base_is_the_plain_real_lin_exp3(name: str, constants: Any) -> None:
    """Update probabilities of 1, no arm excluded: the plan and the directions of RealLinExp3's own text, late."""
    problem = PROBLEMS[name]
    policy = started(problem, "per-context", constants=constants)
    play(policy, 40)
    s, t, machine = policy.state, 10**6, policy._machine
    s.master.shares[:], s.master.total[:], s.master.worst[:] = [0.0, 1.0], t - 1.0, 1.0
    text.plan_base(machine.known, machine.options, s)
    eta, gamma = s.rates
    D, highest, log_arms = epoch_constants(policy)[:3]
    weight = D + 2 * highest if constants == "tuned" else 1.0
    assert eta == pytest.approx(math.sqrt(log_arms / (weight * t)))
    assert eta < 0.5 / highest
    assert gamma == pytest.approx(eta * highest)
    own = bw.RealLinExp3(horizon=10**9).machine(problem)
    plain, work, _ = records(own)
    plain.arms[...] = s.arms
    armwise.armwise_plan(machine.known, plain, eta, gamma)
    assert s.base.tolist() == plain.pi.tolist()
    complements = machine.options.complements
    for x in range(problem.n_contexts):
        for (_, a), decision in every_decision(policy, x).items():
            carried = carried_by(policy, decision)
            direction = np.zeros_like(carried.direction)
            armwise.exact_arm_direction(machine.known, plain.pi, work, complements, (x, a), direction)
            assert carried.direction.tolist() == direction.tolist()


@each_problem
@each_candidate
def test_one_matrix_per_arm_is_one_matrix_for_the_block_problem(candidate: Any, name: str) -> None:
    """The re-derived base in K d dimensions decides alike, epoch after epoch."""
    problem = PROBLEMS[name]
    options: Any = {"horizon": 1000, "candidate": candidate, "scale": 0.003}
    native = bw.BoBWRealLinExp3(features="arm-independent", **options).start(problem, rng=4)
    blocks = bw.BoBWRealLinExp3(**options).start(problem, rng=4)
    assert epoch_constants(native) == pytest.approx(epoch_constants(blocks), rel=1e-9)
    assert play(native, 400) == play(blocks, 400)
    assert native.probabilities() == pytest.approx(blocks.probabilities(), rel=1e-6)
    assert native.state.master.epoch[0] == blocks.state.master.epoch[0] > 1.0
    assert native.act(0).direction.shape[0] < blocks.act(0).direction.shape[0]


@each_problem
@pytest.mark.parametrize("constants", ["tuned", "printed"])
def test_steps_are_bounded_and_constants_as_derived(name: str, constants: Any) -> None:
    """eta |l_hat| <= 1 for all arms of the base, gamma <= 1/2, and c1, c2 from D and lambda, in every round."""
    problem = PROBLEMS[name]
    policy = started(problem, constants=constants, scale=0.001)
    x, g = context_coordinates(policy), problem.probabilities

    def check(policy: bw.Policy) -> None:
        s, allowed = policy.state, base_of(policy)
        eta, gamma = s.rates
        assert gamma <= 0.5 + 1e-12
        even = allowed / allowed.sum(axis=1, keepdims=True)
        D, highest = 0, 0.0
        for a in range(problem.n_arms):
            mine = allowed[:, a] & (s.excluded != a)
            if not mine.any():
                continue
            D += int(np.linalg.matrix_rank(x[problem.available[:, a]]))
            inverse = np.linalg.pinv((x.T * (g * even[:, a])) @ x, rcond=1e-10)
            highest = max(highest, *(v @ inverse @ v for v in x[mine]))
            now = np.linalg.pinv((x.T * (g * s.base[:, a])) @ x, rcond=1e-10)
            assert eta * np.abs(x[mine] @ now @ x[mine].T).max() / s.master.shares[1] <= 1.0 + 1e-9
        log_arms = math.log(allowed.sum(axis=1).max())
        root = (4 * highest + 3 * D + 1) ** 2
        c1 = 9 * (D + 2 * highest) * log_arms if constants == "tuned" else log_arms * root
        c2 = 2 * log_arms * highest
        assert epoch_constants(policy) == pytest.approx([D, highest, log_arms, 0.001 * c1, 0.001 * c2], rel=1e-6)

    play(policy, 120, each=check)


def test_printed_constants_of_the_specified_sizes() -> None:
    """No arm excluded, K = 5, d = 4: log K (4 c + 3 K d + 1)^2 and 9 (K d + 2 c) log K with c = K max x' Sigma^-1 x."""
    problem = bw.Problem.from_arm_independent(np.eye(4), probabilities=np.full(4, 0.25), arms=5)
    fixed = [epoch_constants(started(problem, "per-context", constants=name)) for name in ("printed", "tuned")]
    c, log_arms = 5 * 4.0, math.log(5)
    assert fixed[0] == pytest.approx([20, c, log_arms, log_arms * (4 * c + 61) ** 2, 2 * c * log_arms])
    assert fixed[1] == pytest.approx([20, c, log_arms, 9 * (20 + 2 * c) * log_arms, 2 * c * log_arms])


def test_it_does_not_see_linear_maps_of_the_contexts() -> None:
    x, mapping = context_vectors(6), np.array([[2.0, 1.0, 0.0], [0.0, 30.0, -1.0], [0.1, 0.0, 0.02]])
    first, second = (
        bw.Problem.from_arm_independent(v, probabilities=np.full(5, 0.2), arms=3) for v in (x, x @ mapping.T)
    )
    theta = parameters(first)
    mapped = bw.block_parameters(theta.reshape(3, 3) @ np.linalg.inv(mapping))
    one, two = started(first, scale=0.01), started(second, scale=0.01)
    assert play(one, 200, theta=theta) == play(two, 200, theta=mapped)
    assert one.probabilities() == pytest.approx(two.probabilities(), rel=1e-8)


def test_other_problems_are_stacked_with_a_warning() -> None:
    with pytest.warns(bw.DegenerateProblemWarning, match="each context and arm on its own"):
        policy = started(random_problem(3, S=3, K=4, d=2))
    play(policy, 30)


def test_scaled_down_it_learns_one_best_arm_and_printed_constants_do_not() -> None:
    """Printed: the bonus exceeds all losses of 20,000 rounds (research/reductions.md)."""
    problem = bw.Problem.from_arm_independent([[1.0, 0.2], [1.0, -0.2]], probabilities=[0.5, 0.5], arms=3)
    world = en.stochastic(en.Instance(problem, np.array([0.4, 0, 0.4, 0, -0.2, 0])))
    options: Any = {"horizon": 20_000, "features": "arm-independent"}
    decision = {
        "scaled": bw.BoBWRealLinExp3(scale=0.01, **options),
        "printed": bw.BoBWRealLinExp3(constants="printed", **options),
        "uniform": bw.FixedPolicy(),
    }
    run = bw.simulate(world, decision, horizon=20_000, replications=8)
    assert run["scaled"].regret[-1] < 0.1 * run["uniform"].regret[-1]  # 0.012 with this seed
    assert run["printed"].regret[-1] > 3 * run["scaled"].regret[-1]  # 22 times


@pytest.mark.filterwarnings("ignore::bothworlds.DegenerateProblemWarning")
@each_candidate
def test_it_conforms_and_survives_files(candidate: Any, tmp_path: Path) -> None:
    options: Any = {"horizon": 1000, "candidate": candidate, "features": "arm-independent"}
    for more in ({"scale": 0.0}, {}, {"constants": "printed"}):
        assert bw.check_algorithm(bw.BoBWRealLinExp3(**options, **more)) == []
    policy = bw.BoBWRealLinExp3(scale=0.0, **options).start(masked_problem(), rng=1)
    play(policy, 200)
    assert policy.state.master.epoch[0] > 1.0
    policy.save(tmp_path / "p.npz")
    copy = bw.load(tmp_path / "p.npz")
    assert repr(copy.algorithm) == repr(policy.algorithm)
    assert play(copy, 100) == play(policy, 100)
    assert copy.probabilities().tobytes() == policy.probabilities().tobytes()


@each_candidate
def test_interpreted_and_compiled_runs_agree_bit_for_bit(candidate: Any) -> None:
    options: Any = {"horizon": 1000, "candidate": candidate, "features": "arm-independent", "scale": 0.01}
    algorithm = bw.BoBWRealLinExp3(**options)
    one, two = (algorithm.start(masked_problem(), rng=9, interpreted=flag) for flag in (False, True))
    assert play(one, 300) == play(two, 300)
    assert bits(one) == bits(two)


@pytest.mark.parametrize(("options", "words"), [({"features": "x"}, "features"), ({"constants": "x"}, "constants")])
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.BoBWRealLinExp3(horizon=100, **options)
