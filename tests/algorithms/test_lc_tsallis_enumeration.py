"""LC-Tsallis-INF by enumeration: unbiased estimates, the trace identity, stability in every round."""

import itertools
import math

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Play
from support.problems import TUNINGS, coordinates, directions, parameters, play, random_problem, records


def mean_estimate(later: bw.Policy, z: Floats, pi: Floats, d: Floats, m: Floats, theta: Floats) -> Floats:
    """E[theta_hat] by enumeration: what `learn` adds to Theta, for every (x, a), weighted by g pi."""
    total = np.zeros(z.shape[2])
    machine, learnt = later._machine, later.learnt()
    for x, a in np.ndindex(pi.shape):
        state, work, sizes = records(machine)
        for name, part in learnt.items():
            getattr(state, name)[...] = part
        assert machine.kernel.refresh(machine.known, machine.options, state, work) == 0
        before, play = state.theta.copy(), Play(x, a, float(z[x, a] @ theta))
        machine.kernel.learn(machine.known, machine.options, state, play, machine.kernel.carried_of(d[x, a], m, sizes))
        total += machine.known.g[x] * pi[x, a] * (state.theta - before)
    return total


def baseline_of(policy: bw.Policy) -> Floats:
    """The control variate that decisions carry now; empty where there is none."""
    return np.array(getattr(policy.state, "baseline", []))


@pytest.mark.parametrize(
    ("tuning", "alpha"),
    [(name, alpha) for name in TUNINGS for alpha in (0.3, 0.5, 0.8) if name != "matched" or alpha == 0.5],
)
@pytest.mark.parametrize("wait", [0, 25])
def test_estimates_are_unbiased_also_when_feedback_is_late(tuning: str, alpha: float, wait: int) -> None:
    problem = random_problem(1, S=4, K=3, d=3)
    policy = bw.LCTsallisINF(alpha=alpha, tuning=tuning).start(problem, rng=1)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    for _ in range(4):
        play(policy, 20)
        z, pi, d = coordinates(policy), policy.probabilities(), directions(policy)
        m, condition = baseline_of(policy), float(np.linalg.cond(policy.state.sigma))
        theta: Floats = rng.normal(size=(z.shape[2],))
        play(policy, wait)
        # Theta itself is rounded when the estimate is added to it.
        rounding = 4e-16 * np.abs(policy.state.theta).max()
        error = np.abs(mean_estimate(policy, z, pi, d, m, theta) - theta).max()
        assert error <= 100 * 2.2e-16 * condition * np.abs(theta).max() + rounding


@pytest.mark.parametrize("rarity", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("nearly", [False, True])
def test_estimates_stay_unbiased_with_rare_contexts_and_nearly_dependent_features(rarity: float, nearly: bool) -> None:
    """The coordinates make Sigma(e*) the identity to rounding, however badly conditioned the features are."""
    phi = random_problem(2, S=4, K=3, d=3).features
    if nearly:
        phi = np.concatenate([phi, phi[:, :, :1] + 1e-8 * np.random.default_rng(0).normal(size=(4, 3, 1))], axis=2)
    g = np.array([1.0 / rarity, 0.3, 0.3, 0.4 - 1.0 / rarity])
    problem = bw.Problem(features=phi, probabilities=g)
    policy = bw.LCTsallisINF(tuning="paper").start(problem, rng=1)
    z, pi, d = coordinates(policy), policy.probabilities(), directions(policy)
    sigma = np.einsum("x,xa,xai,xaj->ij", g, pi, z, z)
    theta = np.linspace(-1.0, 1.0, z.shape[2])
    estimate = mean_estimate(policy, z, pi, d, baseline_of(policy), theta)
    assert np.abs(estimate - theta).max() <= 100 * 2.2e-16 * np.linalg.cond(sigma)


def test_a_baseline_read_at_update_time_would_be_biased() -> None:
    """The reason why a decision carries its baseline: once the play has moved the ridge estimate, it is too late."""
    policy = bw.LCTsallisINF(tuning="matched").start(random_problem(1), rng=1)
    play(policy, 30)
    z, pi, d = coordinates(policy), policy.probabilities(), directions(policy)
    theta, total = np.array([0.3, 0.1, -0.2]), np.zeros(3)
    for x, a in np.ndindex(pi.shape):
        loss = float(z[x, a] @ theta)
        ridge = policy.state.ridge + np.outer(z[x, a], z[x, a])
        late = np.linalg.solve(ridge, policy.state.response + loss * z[x, a])
        weight = policy.problem.probabilities[x] * pi[x, a]
        total += weight * (late + d[x, a] * (loss - z[x, a] @ late))
    assert np.abs(total - theta).max() > 1e-3


@pytest.mark.parametrize("tuning", TUNINGS)
def test_leverages_average_to_the_dimension(tuning: str) -> None:
    policy = bw.LCTsallisINF(tuning=tuning).start(random_problem(2, S=5, K=4, d=3), rng=3)  # type: ignore[arg-type]

    def check(policy: bw.Policy) -> None:
        lev = np.einsum("xai,xai->xa", coordinates(policy), directions(policy))
        mean = float(policy.problem.probabilities @ (policy.probabilities() * lev).sum(axis=1))
        assert mean == pytest.approx(3.0, rel=1e-12)

    play(policy, 60, each=check)


def stability(policy: bw.Policy, alpha: float) -> float:
    """The largest eta |l_hat(a, x)| q(a|x)^(1 - alpha) over all (a, x) and all plays, |loss| = 1."""
    z, d = coordinates(policy), directions(policy)
    n = z.shape[2]
    estimates = np.abs(z.reshape(-1, n) @ d.reshape(-1, n).T).max(axis=1)
    q = policy.state.q.reshape(-1)
    return float((policy.state.rates[0] * estimates * q ** (1.0 - alpha)).max())


CASES = [
    (0.5, "paper"),
    (0.5, "certified"),
    (0.2, "certified"),
    (0.8, "certified"),
    (0.8, "paper"),
    (0.2, "paper"),
]


@pytest.mark.parametrize(("alpha", "tuning"), CASES)
@pytest.mark.parametrize("rarity", [None, 1000.0])
@pytest.mark.parametrize("design", ["joint-g", "per-context"])
def test_the_stability_condition_holds_in_every_round(
    alpha: float, tuning: str, rarity: float | None, design: str
) -> None:
    """Lemma B.1's condition, enumerated; also in the first rounds, with a rare context, for all alpha."""
    problem = random_problem(4, S=4, K=3, d=2, rarity=rarity)
    algorithm = bw.LCTsallisINF(alpha=alpha, tuning=tuning, design=design)  # type: ignore[arg-type]
    policy = algorithm.start(problem, rng=5)
    c = {"paper": (1.0 - alpha) / 4.0, "certified": (1.0 - alpha) / 2.0}[tuning]
    limit = c * (1.0 + 1e-12)

    def check(policy: bw.Policy) -> None:
        assert stability(policy, alpha) <= limit
        assert policy.state.rates[1] <= 0.5 + 1e-12

    play(policy, 40, each=check)
    for t in (1e3, 1e5, 1e7):  # later rounds: move the clock, and Theta to where it would be
        policy.state.t[0] = t
        policy.state.theta[...] = t * parameters(problem)[:2]
        policy._learner_state.refresh()
        check(policy)
        play(policy, 10, each=check)


def test_certified_explores_no_more_than_it_must() -> None:
    """Five percent less exploration breaks the bound that was certified; gamma stays below the schedule's."""
    problem = random_problem(6, S=5, K=4, d=3)
    algorithm = bw.LCTsallisINF(tuning=bw.Certified(c=0.01))
    policy = algorithm.start(problem, rng=1)
    rates = algorithm.schedule_for(problem, algorithm.design_for(problem))
    explored = 0
    directions_tried = np.random.default_rng(3).normal(size=(4, 3))
    for t, theta in itertools.product((1e2, 1e4, 1e5, 1e6, 1e7, 1e8), directions_tried):
        policy.state.t[0] = t
        policy.state.theta[...] = 0.4 * t * theta
        policy._learner_state.refresh()
        eta, gamma = policy.state.rates
        assert eta == pytest.approx(rates.learning_rate(t), rel=1e-14)
        assert gamma <= rates.exploration_rate(t) * (1 + 1e-12)
        if gamma > 0.0:
            explored += 1
            z, g = coordinates(policy), problem.probabilities
            q = policy.state.q
            sigma = np.einsum("x,xa,xai,xaj->ij", g, q, z, z)
            bounds = []
            for rate in (0.949 * gamma, gamma):
                inverse = np.linalg.inv((1 - rate) * sigma + rate * np.eye(3))
                lev = np.einsum("xai,ij,xaj->xa", z, inverse, z)
                bounds.append(eta**2 * (q * lev).max() * lev.max() / 0.01**2)
            assert bounds[1] <= 1.0 + 1e-9 < bounds[0]
    assert explored >= 3  # 4 of 24


def test_estimates_and_predictions_of_matched_are_the_stated_ones() -> None:
    """Theta and m_t from their definitions, with sums instead of recursions."""
    problem = random_problem(3, S=4, K=3, d=3)
    policy = bw.LCTsallisINF(tuning=bw.Matched(drift_cap=0.0, forgetting=5.0)).start(problem, rng=4)
    rng, z = np.random.default_rng(5), coordinates(policy)
    estimates: list[Floats] = []
    plays: list[tuple[int, int, float]] = []
    for t in range(1, 60):
        if estimates:
            assert policy.state.theta == pytest.approx(np.sum(estimates, axis=0), rel=1e-9)
            assert policy.state.remembered[0] == t - 1
            weights = np.cumprod([1.0, *(s / (s + 5.0) for s in range(t - 1, 1, -1))])[::-1]
            used, losses = np.array([z[x, a] for x, a, _ in plays]), np.array([loss for *_, loss in plays])
            m = np.linalg.solve(np.eye(3) + used.T @ (weights[:, None] * used), used.T @ (weights * losses))
            assert policy.state.baseline == pytest.approx(m / max(1.0, np.abs(z @ m).max()), rel=1e-9)
        decision = policy.act(int(rng.choice(4, p=problem.probabilities)))
        loss = float(rng.uniform(-1, 1))
        residual = loss - z[decision.context, decision.arm] @ policy.state.baseline
        estimates.append(policy.state.baseline + directions(policy)[decision.context, decision.arm] * residual)
        plays.append((decision.context, decision.arm, loss))
        policy.update(decision, loss=loss)


@pytest.mark.parametrize("batch", [1, 10])
def test_certified_for_batches_covers_the_sum_of_a_batch(batch: int) -> None:
    problem = random_problem(7, S=4, K=3, d=2)
    policy = bw.LCTsallisINF(tuning=bw.Certified(batch=batch)).start(problem, rng=2)
    rng = np.random.default_rng(0)
    for _ in range(60):
        decisions = policy.act(rng.choice(4, size=batch, p=problem.probabilities))
        total = np.abs(sum(coordinates(policy) @ d.direction for d in decisions)).reshape(-1)
        q = policy.state.q.reshape(-1)
        assert (policy.state.rates[0] * total * np.sqrt(q)).max() <= 0.25
        policy.update(decisions, loss=rng.choice([-1.0, 1.0], size=batch))


@pytest.mark.parametrize("batch", [1, 4, 30])
def test_a_batch_is_one_round_with_the_mean_of_its_estimates(batch: int) -> None:
    """For the mean, eta of the n-th round of single decisions, or a batch early; t0 counts batches."""
    problem = random_problem(7, S=4, K=3, d=2)
    algorithm = bw.LCTsallisINF(tuning=bw.Certified(batch=batch))
    coverage = algorithm.design_for(problem).coverage
    cap = max(coverage, math.sqrt(coverage / problem.rarity)) / 8.0
    gain = 3.0**0.25 / math.sqrt(2.0)
    ahead = algorithm.forecast(problem, horizon=1000)
    assert ahead.t0 == pytest.approx(batch * (gain / cap) ** 2)
    assert (f"t0 is {batch} times the {(gain / cap) ** 2:,.0f} of" in str(ahead)) is (batch > 1)
    policy = algorithm.start(problem, rng=2)
    for n in (1, 2, 10, 1000, 10**5):
        policy.state.t[...] = 1.0 + (n - 1) * batch
        policy._learner_state.refresh()
        of_the_mean = batch * float(policy.state.rates[0])
        assert of_the_mean >= min(gain / math.sqrt(n), cap) * (1 - 1e-12)
        assert of_the_mean <= min(gain / math.sqrt(max(n - 1, 1e-9)), cap) * (1 + 1e-12)


@pytest.mark.parametrize("batch", [2, 3])
def test_the_mean_of_a_batch_is_unbiased_and_no_wilder_than_one_estimate(batch: int) -> None:
    """By enumeration of all plays of a batch: E[mean] = loss, and E sum_a pi mean^2 <= d (Lemma A.4)."""
    problem = random_problem(7, S=2, K=3, d=2)
    policy = bw.LCTsallisINF(tuning=bw.Certified(batch=batch)).start(problem, rng=2)
    play(policy, 200)
    z, theta = coordinates(policy), np.array([0.3, -0.5])
    joint = (problem.probabilities[:, None] * policy.probabilities()).reshape(-1)
    decision = directions(policy).reshape(-1, 2) * (z.reshape(-1, 2) @ theta)[:, None]
    sure = directions(policy).reshape(-1, 2)  # loss 1, the largest there is
    mean, square, one = np.zeros(2), 0.0, joint @ ((sure @ z.reshape(-1, 2).T) ** 2 @ joint)
    for plays in itertools.product(range(6), repeat=batch):
        chance = np.prod(joint[list(plays)])
        mean += chance * decision[list(plays)].mean(axis=0)
        square += chance * (joint @ (z.reshape(-1, 2) @ sure[list(plays)].mean(axis=0)) ** 2)
    assert mean == pytest.approx(theta, rel=1e-9)
    assert square <= one * (1 + 1e-9)
    assert one == pytest.approx(2.0)
