"""The reduction with policies as actions: two policies, unbiasedness by enumeration, epochs, the base on its own."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.reduction import kernel_policies as text
from bothworlds.algorithms.shared.policy_mixture import weigh_policies
from bothworlds.theory.linear_policies import all_policies, linear_policies, policy_points
from support.problems import (
    bits,
    carried_by,
    coordinates,
    epoch_constants,
    masked,
    parameters,
    play,
    random_problem,
    records,
)

ESTIMATES = ["linear", "importance-weighted"]
each_estimate = pytest.mark.parametrize("estimates", ESTIMATES)


def started(problem: bw.Problem, estimates: Any = "linear", *, interpreted: bool = True, **options: Any) -> bw.Policy:
    settings = {"horizon": 1000, "policies": "all", **options}
    return bw.BoBWLinearEXP4(estimates=estimates, **settings).start(problem, rng=1, interpreted=interpreted)


def maps_of(policy: bw.Policy) -> np.ndarray:
    return policy._machine.frame["policies"].astype(int)


def in_base(policy: bw.Policy) -> np.ndarray:
    """The numbers of the policies but the candidate."""
    return np.flatnonzero(np.arange(len(maps_of(policy))) != policy.state.candidate[0])


def points(policy: bw.Policy) -> np.ndarray:
    return policy_points(coordinates(policy), policy.problem.probabilities, maps_of(policy))


@each_estimate
def test_two_policies_are_a_two_armed_tsallis_inf(estimates: Any) -> None:
    """d = 1: all arms up or all arms down. The base has one policy and no regret, so c1 = c2 = 0 by themselves."""
    problem = bw.Problem(features=[[[1.0], [-1.0]], [[-0.5], [0.4]], [[0.3], [0.9]]], probabilities=[0.2, 0.5, 0.3])
    policy = started(problem, estimates, policies="linear")
    maps = maps_of(policy)
    assert maps.tolist() == [[0, 1, 1], [1, 0, 0]]
    assert epoch_constants(policy)[2:] == [0.0, 0.0, 0.0]
    totals, rng = np.zeros(2), np.random.default_rng(1)
    for _ in range(300):
        master, first = policy.state.master, int(policy.state.candidate[0])
        t, epoch = float(master.clock[0]), float(master.epoch[0])
        order = [first, 1 - first]
        q = bw.ftrl_point(totals, learning_rate=1 / math.sqrt(t), alpha=0.5)
        expected = (1 - 0.5 / t**2) * q + 0.25 / t**2
        x = int(rng.choice(3, p=problem.probabilities))
        assert policy.probabilities(x)[maps[order, x]] == pytest.approx(expected, rel=1e-9)
        decision = policy.act(x)
        drawn = int(np.flatnonzero(maps[:, x] == decision.arm)[0])
        loss = float(rng.choice([-1.0, 1.0], p=[0.3, 0.7] if drawn == 0 else [0.7, 0.3]))
        totals -= 1.0
        totals[order.index(drawn)] += (loss + 1) / decision.propensity
        policy.update(decision, loss=loss)
        if policy.state.master.epoch[0] != epoch:
            totals[:] = 0.0
    assert policy.probabilities(0)[maps[1, 0]] > 0.8


def every_decision(policy: bw.Policy, x: int) -> dict[tuple[int, int], Any]:
    """A decision of each (option, policy drawn) in a context: act is called until each occurred."""
    wanted = len(maps_of(policy))
    found: dict[tuple[int, int], Any] = {}
    for _ in range(20_000):
        decision = policy.act(x)
        carried = carried_by(policy, decision)
        found[int(carried.record.option[0]), int(carried.drawn[0])] = decision
        if len(found) == wanted:
            return found
    raise AssertionError(f"only {sorted(found)}")


@each_estimate
@pytest.mark.parametrize(
    "problem", [random_problem(2, S=3, K=2, d=2, rarity=20.0), masked()], ids=["plain", "arms not offered"]
)
def test_master_and_base_are_unbiased_with_update_probabilities(estimates: Any, problem: bw.Problem) -> None:
    """E[z_i] = loss of option i, and E[estimate] = loss of every policy of the base, over all decisions possible."""
    policy = started(problem, estimates, scale=0.05)
    theta, g, maps = parameters(problem), problem.probabilities, maps_of(policy)
    S, K, d = coordinates(policy).shape
    losses = problem.features @ theta
    play(policy, 25)
    for _ in range(3):
        s, q = policy.state, policy.state.master.shares.copy()
        mean_theta, mean_table = np.zeros(d), np.zeros((S, K))
        z, truth, table = np.zeros(2), np.zeros(2), np.zeros((S, K))
        for x in range(S):
            for (i, p), decision in every_decision(policy, x).items():
                share, carried = 1.0 if i == 0 else s.weights[p], carried_by(policy, decision)
                loss = losses[x, maps[p, x]]
                assert decision.arm == maps[p, x]
                table[x, decision.arm] += q[i] * share
                truth[i] += g[x] * share * loss
                weight, inverse = g[x] * q[i] * share, carried.record.inverse[0]
                z += weight * np.array([(loss + 1) * (i == j) * inverse - 1 for j in range(2)])
                mean_theta += weight * loss * carried.direction
                mean_table[x, decision.arm] += weight * (loss + 1) * carried.direction[0]
        assert policy.probabilities() == pytest.approx(table, abs=1e-12)
        assert z == pytest.approx(truth, abs=1e-9)
        others = in_base(policy)
        true = (g * losses[np.arange(S), maps[others]]).sum(axis=1)
        if estimates == "linear":
            assert points(policy)[others] @ mean_theta == pytest.approx(true, abs=1e-9)
        else:
            assert mean_table[np.arange(S), maps[others]].sum(axis=1) == pytest.approx(true + 1.0, abs=1e-9)
        play(policy, 15)


@each_estimate
def test_with_q_one_the_base_is_linear_exp4_without_the_candidate(estimates: Any) -> None:
    """Update probabilities of 1: the weights of LinearEXP4's own text on the same list, at eta of (r + 2/lambda) t."""
    problem = random_problem(3, S=3, K=3, d=3)
    policy = started(problem, estimates)
    play(policy, 40)
    s, t = policy.state, 41
    s.master.shares[:], s.master.total[:], s.master.worst[:] = [0.0, 1.0], t - 1.0, 1.0
    machine = policy._machine
    assert text.plan_base(machine.known, machine.options, s, records(machine).work) == 0
    eta, gamma = s.rates
    others = in_base(policy)
    arms, (rank, highest, *_) = maps_of(policy)[others], epoch_constants(policy)
    if estimates == "linear":
        assert eta == pytest.approx(math.sqrt(math.log(26) / ((rank + 2 * highest) * t)))
        assert gamma == pytest.approx(eta * highest)
        losses = points(policy)[others] @ s.theta
    else:
        assert [eta, gamma] == pytest.approx([math.sqrt(math.log(26) / (4 * 3 * t)), 0.0])
        losses = s.table[np.arange(3), arms].sum(axis=1)
    plain = np.zeros((3, 3))
    weigh_policies(arms.astype(float), float(eta), losses, plain)
    even = np.zeros((3, 3))
    for one in arms:
        even[np.arange(3), one] += 1 / 26
    assert s.base == pytest.approx((1 - gamma) * plain + gamma * even, rel=1e-12)
    assert np.abs(s.base - even).max() > 0.001


@pytest.mark.parametrize("kind", ["linear", "all"])
def test_the_bases_steps_are_bounded_and_constants_as_derived(kind: Any) -> None:
    """eta |<z_p, theta_hat>| <= 1 for all policies of the base, gamma <= 1/2, c1 and c2, in every round."""
    problem = random_problem(2, S=3, K=3, d=2, rarity=30.0)
    policy = started(problem, policies=kind, scale=0.001)
    assert maps_of(policy).tolist() == (linear_policies if kind == "linear" else all_policies)(problem).tolist()
    g, z = problem.probabilities, coordinates(policy)

    def check(policy: bw.Policy) -> None:
        s, others = policy.state, in_base(policy)
        eta, gamma = s.rates
        inverse = s.inverse.T @ s.inverse
        played = z[s.base > 0.0]
        estimates = np.abs(points(policy)[others] @ inverse @ played.T) / s.master.shares[1]
        assert eta * estimates.max() <= 1.0 + 1e-9
        assert gamma <= 0.5 + 1e-12
        even = np.zeros((3, 3))
        for one in maps_of(policy)[others]:
            even[np.arange(3), one] += 1 / len(others)
        assert even[s.base > 0].min() > 0.0
        sigma = np.einsum("x,xa,xai,xaj->ij", g, even, z, z)
        highest = max(v @ np.linalg.solve(sigma, v) for v in played)
        log_size = math.log(len(others))
        c1, c2 = 9 * (2 + 2 * highest) * log_size, 2 * log_size * highest
        assert epoch_constants(policy) == pytest.approx([2, highest, log_size, 0.001 * c1, 0.001 * c2], rel=1e-6)
        table = np.zeros((3, 3))
        for p, one in enumerate(maps_of(policy)):
            table[np.arange(3), one] += s.weights[p]
        assert s.base == pytest.approx(table, abs=1e-12)
        assert s.weights[int(s.candidate[0])] == 0.0

    play(policy, 200, each=check)
    assert policy.state.master.epoch[0] > 1.0


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_constants_of_importance_weights_by_hand(scale: float) -> None:
    """27 maps of three contexts and arms, 26 of them in the base: c1 = 16 K log N, c2 = 0; then arms not offered."""
    policy = started(random_problem(3, S=3, K=3, d=3), "importance-weighted", scale=scale)
    assert epoch_constants(policy)[3:] == pytest.approx([scale * 16 * 3 * math.log(26), 0.0], rel=1e-12)
    some = started(masked(), "importance-weighted", scale=scale)  # one, two and four arms: eight maps
    assert epoch_constants(some)[3:] == pytest.approx([scale * 16 * 4 * math.log(7), 0.0], rel=1e-12)


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_the_bonus_covers_what_importance_weights_may_lose_and_less_would_not(share: float) -> None:
    """log N/eta_T + (1/2) 4 K sum eta/q, for losses in [0, 2] and eta = sqrt(log N/(4 K sum 1/q)): 0.998 of it."""
    size, arms = math.log(26), 3.0
    total = np.cumsum(np.full(20_000, 1 / share))
    eta = np.sqrt(size / (4 * arms * total))
    lost = size / eta[-1] + 2 * arms * (eta / share).sum()
    assert 0.99 * math.sqrt(16 * arms * size * total[-1]) < lost <= math.sqrt(16 * arms * size * total[-1])


@each_estimate
@pytest.mark.parametrize("scale", [0.0, 0.02])
def test_epochs_at_least_double_and_end_for_a_majority_of_draws(estimates: Any, scale: float) -> None:
    """The policy after the candidate in the list is the good one, so candidates change as often as lengths allow."""
    policy = started(random_problem(1, S=2, K=2, d=2), estimates, scale=scale, interpreted=False)
    maps = maps_of(policy)
    lengths, drawn = [epoch_constants(policy)[4] * math.log(1000)], []
    rng = np.random.default_rng(5)
    for _ in range(2000):
        before, candidate = float(policy.state.master.clock[0]), int(policy.state.candidate[0])
        good = maps[(candidate + 1) % 4]
        decision = policy.act(int(rng.choice(2, p=policy.problem.probabilities)))
        drawn.append(int(carried_by(policy, decision).drawn[0]))
        policy.update(decision, loss=-1.0 if decision.arm == good[decision.context] else 1.0)
        if policy.state.master.clock[0] == 1.0:
            assert before >= 2 * lengths[-1]
            lengths.append(before)
            now = int(policy.state.candidate[0])
            assert now != candidate
            assert drawn.count(now) >= len(drawn) / 2
            assert not policy.state.counts.any()
            assert not policy.state.table.any()
            drawn = []
    assert len(lengths) >= 4


def test_a_candidate_can_take_a_dimension_with_it() -> None:
    """Without the policy that plays arm 0 the features span one dimension of two; the others are still estimated."""
    problem = bw.Problem(features=[[[0.0, 1.0], [1.0, 0.0], [-0.5, 0.0]]], probabilities=[1.0])
    policy = started(problem)
    assert epoch_constants(policy)[0] == 1.0
    s, z = policy.state, points(policy)
    inverse, theta = s.inverse.T @ s.inverse, np.array([0.3, -0.4])
    mean = sum(s.base[0, a] * (inverse @ (z[a] * s.span)) * (z[a] @ theta) for a in (1, 2))
    assert z[1:] @ mean == pytest.approx(z[1:] @ theta, abs=1e-12)
    play(policy, 50, theta=np.array([0.5, -0.5]))


def test_feedback_of_an_earlier_epoch_is_not_learnt_from() -> None:
    policy = started(random_problem(1, S=2, K=2, d=2), scale=0.0)
    waiting = policy.act([0, 1])
    while policy.state.master.epoch[0] == 1.0:
        play(policy, 1, seed=policy.rounds)
    kept = ("theta", "losses", "counts", "total")
    before = policy.learnt()
    policy.update(waiting, loss=[1.0, -1.0])
    assert all(policy.learnt()[name].tolist() == before[name].tolist() for name in kept)


@each_estimate
def test_where_the_best_arm_depends_on_the_context_it_finds_the_policy(estimates: Any) -> None:
    """Where `literal` candidates fail (see the reduction to arms); scaled down to see it soon."""
    world = en.stochastic(en.random_instance(contexts=3, arms=3, dimension=3, gap=0.4, seed=4))
    best = world.problem.features @ world.thetas[0]
    assert len(set(best.argmin(axis=1))) > 1
    decision: dict[str, Any] = {
        "a": bw.BoBWLinearEXP4(horizon=20_000, estimates=estimates, scale=0.01),
        "literal": bw.BoBWRealLinExp3(horizon=20_000, scale=0.01),
    }
    run = bw.simulate(world, decision, horizon=20_000, replications=8, checkpoints=[10_000])
    assert run["a"].regret[-1] < 0.5 * run["literal"].regret[-1]  # 0.15 and 0.26 with this seed
    assert run["a"].regret[-1] < 1.5 * run["a"].regret[0]  # twice the rounds: 1.05 and 1.37


@each_estimate
def test_it_conforms_and_survives_files(estimates: Any, tmp_path: Path) -> None:
    algorithm = bw.BoBWLinearEXP4(horizon=1000, estimates=estimates, scale=0.0)
    assert bw.check_algorithm(algorithm) == []
    assert bw.check_algorithm(bw.BoBWLinearEXP4(horizon=1000, policies="all", estimates=estimates)) == []
    policy = algorithm.start(random_problem(1), rng=1)
    play(policy, 200)
    assert policy.state.master.epoch[0] > 1.0
    policy.save(tmp_path / "p.npz")
    copy = bw.load(tmp_path / "p.npz")
    assert play(copy, 100) == play(policy, 100)
    assert bits(copy) == bits(policy)


@each_estimate
def test_arms_are_drawn_with_their_probabilities(estimates: Any) -> None:
    policy = bw.BoBWLinearEXP4(horizon=1000, estimates=estimates, scale=0.01).start(random_problem(6, K=4), rng=3)
    play(policy, 40)
    seen = np.bincount([decision.arm for decision in policy.act([1] * 20_000)], minlength=4)
    expected = 20_000 * policy.probabilities(1)
    assert not seen[expected == 0].any()
    assert chisquare(seen[expected > 0], expected[expected > 0]).pvalue > 0.001


@each_estimate
def test_interpreted_and_compiled_runs_agree_bit_for_bit(estimates: Any) -> None:
    algorithm = bw.BoBWLinearEXP4(horizon=1000, estimates=estimates, scale=0.01)
    one, two = (algorithm.start(random_problem(5), rng=9, interpreted=flag) for flag in (False, True))
    assert play(one, 200) == play(two, 200)
    assert bits(one) == bits(two)


def test_one_policy_and_longer_lists() -> None:
    """Nothing to choose: it plays on; too much to list: a refusal that names the size and the way out."""
    alone = bw.Problem(features=[[[1.0], [1.0]], [[0.5], [0.5]]], probabilities=[0.5, 0.5])
    policy = started(alone, policies="linear")
    assert maps_of(policy).tolist() == [[0, 0]]
    play(policy, 20)
    assert policy.probabilities().tolist() == [[1.0, 0.0]] * 2
    large = random_problem(1, S=300, K=3, d=3)
    with pytest.raises(ValueError, match=r"use at most the first .. contexts.*per-context"):
        bw.BoBWLinearEXP4(horizon=100).machine(large)
    with pytest.raises(ValueError, match=r"10\^143 maps of 300 contexts.* 6 contexts with 3 arms.*per-context"):
        bw.BoBWLinearEXP4(horizon=100, policies="all").machine(large)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 0}, "horizon"),
        ({"policies": "x"}, "policies"),
        ({"estimates": "x"}, "estimates"),
        ({"scale": -1.0}, "scale"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.BoBWLinearEXP4(**{"horizon": 100, **options})
