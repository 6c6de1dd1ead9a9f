"""Per-context Tsallis-INF and Exp3: plain versions side by side, unbiased estimates, own clocks, and LC-Tsallis-INF."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.random import ARM, draw, two_uniforms
from support.problems import bits, coordinates, directions, play, random_problem

IW, RV, EXP3 = (bw.PerContextTsallisINF(estimator="iw"), bw.PerContextTsallisINF(estimator="rv"), bw.PerContextExp3())
ALL = [IW, RV, EXP3]
Algorithm = bw.PerContextTsallisINF | bw.PerContextExp3


def tsallis_weights(losses: np.ndarray, eta: float) -> np.ndarray:
    """w_i = (eta (L_i - y))^-2 with the y below all losses at which they sum to one."""
    shifted = losses - losses.min()

    def excess(y: float) -> float:
        return float(((eta * (shifted - y)) ** -2.0).sum()) - 1.0

    y = brentq(excess, -math.sqrt(len(losses)) / eta - 1e-9, -1.0 / eta + 1e-12, xtol=1e-15, rtol=1e-15)
    return np.asarray((eta * (shifted - y)) ** -2.0)


class Plain:
    """Tsallis-INF of the papers, for one context: its own words, the same random numbers."""

    def __init__(self, K: int, estimator: str) -> None:
        self.estimator, self.sums, self.n = estimator, np.zeros(K), 1

    def weights(self) -> np.ndarray:
        return tsallis_weights(self.sums, (1.0 if self.estimator == "iw" else 2.0) / math.sqrt(self.n))

    def update(self, arm: int, loss: float, w: np.ndarray) -> None:
        played = np.arange(len(w)) == arm
        b = np.where(w >= 16.0 / self.n, 0.5, 0.0) if self.estimator == "rv" else np.zeros(len(w))
        self.sums += played * ((1.0 + loss) / 2.0 - b) / w + b
        self.n += 1


@pytest.mark.parametrize("algorithm", [IW, RV], ids=str)
@pytest.mark.parametrize("S", [1, 3])
def test_every_context_is_plain_tsallis_inf_path_by_path(algorithm: bw.PerContextTsallisINF, S: int) -> None:
    problem = bw.Problem(features=np.tile(np.eye(4), (S, 1, 1)), probabilities=np.full(S, 1.0 / S))
    policy, copies = algorithm.start(problem, rng=5), [Plain(4, algorithm.estimator) for _ in range(S)]
    rng = np.random.default_rng(1)
    for time in range(1, 501):
        x = int(rng.integers(S))
        plain = copies[x]
        w = plain.weights()
        decision = policy.act(x)
        assert decision.arm == draw(w, two_uniforms(5, time, ARM, 0)[0])
        assert policy.probabilities(x) == pytest.approx(w, rel=1e-9)
        loss = float(rng.choice([-1.0, 1.0], p=[0.3, 0.7] if decision.arm else [0.7, 0.3]))
        plain.update(decision.arm, loss, w)
        policy.update(decision, loss=loss)
    assert policy.state.losses == pytest.approx(np.array([plain.sums for plain in copies]), rel=1e-9)


def test_one_context_is_plain_exp3() -> None:
    problem = bw.Problem(features=np.eye(3)[None], probabilities=[1.0])
    policy, total = EXP3.start(problem, rng=5), np.zeros(3)
    rng = np.random.default_rng(1)
    for time in range(1, 301):
        weights = np.exp(-math.sqrt(math.log(3) / (3 * time)) * (total - total.min()))
        pi = weights / weights.sum()
        decision = policy.act(0)
        assert decision.arm == draw(pi, two_uniforms(5, time, ARM, 0)[0])
        assert decision.propensity == pytest.approx(pi[decision.arm], rel=1e-10)
        loss = float(rng.choice([-1.0, 1.0]))
        total[decision.arm] += (1.0 + loss) / 2.0 / pi[decision.arm]
        policy.update(decision, loss=loss)


@pytest.mark.parametrize("algorithm", ALL, ids=str)
@pytest.mark.parametrize("late", [0, 25])
def test_estimates_are_unbiased_by_enumeration_even_late(algorithm: Algorithm, late: int) -> None:
    """Sum over arms of pi(a) (change of the sums if a was played then and is answered now) = the losses, in [0, 1]."""
    available = np.ones((3, 4), dtype=bool)
    available[1, 2] = False
    features = random_problem(1, S=3, K=4, d=2).features
    problem = bw.Problem(features=features, probabilities=[0.5, 0.3, 0.2], available=available)
    policy = algorithm.start(problem, rng=2)
    losses = np.array([-0.9, 0.7, 0.1, -0.3])
    checked = with_baseline = 0
    for repeat in range(60):
        play(policy, 20, seed=repeat, theta=np.zeros(2))
        x = repeat % 3
        pi = policy.probabilities(x)
        if pi[available[x]].min() < 0.01:  # too rare to wait for
            continue
        by_arm: dict[int, bw.Decision] = {}
        while len(by_arm) < available[x].sum():
            decision = policy.act(x)
            by_arm.setdefault(decision.arm, decision)
        play(policy, late, seed=100 + repeat, theta=np.zeros(2))
        mean, before, side = (
            np.zeros(4),
            [part.copy() for part in policy._learner_state.body[:2]],
            policy._learner_state.side,
        )
        sums = policy.state.losses[x].copy()
        for arm, decision in by_arm.items():
            assert decision.propensity == pi[arm]
            policy.update(decision, loss=losses[arm])
            mean += pi[arm] * (policy.state.losses[x] - sums)
            for part, old in zip(policy._learner_state.body[:2], before, strict=True):
                part[...] = old  # the other arms are answered in the same state
            policy._learner_state.side = side
        assert mean[available[x]] == pytest.approx((1.0 + losses[available[x]]) / 2.0, abs=1e-9)
        checked += 1
        with_baseline += 0 if decision.baseline is None else int(decision.baseline.any())
    assert checked >= 15
    assert (with_baseline >= 10) == (algorithm is RV)  # at least 20 seen


@pytest.mark.parametrize("algorithm", ALL, ids=str)
def test_every_context_has_its_own_clock_and_learns_alone(algorithm: Algorithm) -> None:
    policy = algorithm.start(random_problem(3, S=3, K=3), rng=1)
    before = policy.probabilities()
    for _ in range(10):
        policy.update(policy.act(1), loss=0.5)
    policy.update(policy.act(2), loss=0.5)
    assert policy.state.clocks.tolist() == [1.0, 11.0, 2.0]
    assert policy.probabilities(0).tolist() == before[0].tolist()
    assert np.abs(policy.probabilities(1) - before[1]).max() > 0.01
    alone = algorithm.start(bw.Problem(features=np.eye(3)[None], probabilities=[1.0]), rng=9)
    alone.state.losses[0], alone.state.clocks[0] = policy.state.losses[1], 11.0
    alone._learner_state.refresh()
    assert alone.probabilities(0).tolist() == policy.probabilities(1).tolist()


def test_lc_tsallis_inf_on_unit_features_is_the_per_context_point_at_another_rate() -> None:
    """phi = one-hot(a, x): estimates are importance weights over g(x), and with gamma = 0 so are the points.

    First for LC-Tsallis-INF itself, whatever its gamma; then with gamma = 0 written out: the FTRL point of context x
    for Theta = sum of Sigma^-1 phi loss at the global rate eta_t is the per-context one at rate eta_t/g(x).
    """
    g = np.array([0.5, 0.3, 0.2])
    problem = bw.Problem(features=np.eye(6).reshape(3, 2, 6), probabilities=g)
    theirs = bw.LCTsallisINF(tuning="certified").start(problem, rng=1)
    for _ in range(20):
        play(theirs, 1, seed=theirs.updates)
        z, d = coordinates(theirs).reshape(6, 6), directions(theirs).reshape(6, 6)
        weights = (g[:, None] * theirs.probabilities()).reshape(-1)
        assert z @ d.T == pytest.approx(np.diag(1.0 / weights), abs=1e-9 / weights.min())
        sums = (z @ theirs.state.theta).reshape(3, 2)
        for x in range(3):
            assert theirs.state.q[x] == pytest.approx(
                tsallis_weights(sums[x] * g[x], theirs.state.rates[0] / g[x]), rel=1e-8
            )
    ours = IW.start(problem, rng=1)
    total = np.zeros(6)
    for time in range(1, 200):
        decision = ours.act(time % 3)
        sigma = np.diag((g[:, None] * ours.probabilities()).reshape(-1))
        phi = problem.features[decision.context, decision.arm]
        loss = math.sin(time)
        total += np.linalg.solve(sigma, phi) * (1.0 + loss) / 2.0
        ours.update(decision, loss=loss)
        for x in range(3):
            global_rate = g[x] / math.sqrt(ours.state.clocks[x])
            point = bw.ftrl_point(total.reshape(3, 2)[x], learning_rate=global_rate, alpha=0.5)
            assert ours.probabilities(x) == pytest.approx(point, rel=1e-9)


@pytest.mark.parametrize("algorithm", ALL, ids=str)
def test_regret_stays_below_the_bounds_against_an_adversary(algorithm: Algorithm) -> None:
    """One context, K = 3: regret in [-1, 1] is at most twice 4 sqrt(K T) + 1 (iw) and its kin; here half of that."""
    T, K = 4000, 3
    problem = bw.Problem(features=np.eye(K)[None], probabilities=[1.0])
    bounds = {"iw": 4 * math.sqrt(K * T) + 1, "rv": 2 * math.sqrt(K * T) + 10 * K * math.log(T) + 16}
    bound = 2 * bounds.get(getattr(algorithm, "estimator", ""), 2 * math.sqrt(T * K * math.log(K)))
    targets = np.array([[-0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.5, 0.5, -0.5]])
    for world in (en.adaptive_adversary(problem, targets), en.growing_phases(problem, targets[:2])):
        run = bw.simulate(world, {"a": algorithm}, horizon=T, replications=20, rng=1, checkpoints=20)["a"]
        assert run.regret[-1] <= 0.5 * bound  # 0.06 to 0.40 of it seen


def test_in_a_calm_world_the_regret_is_logarithmic_and_grows_with_contexts() -> None:
    regrets = []
    for S in (2, 8):
        world = en.stochastic(en.random_instance(contexts=S, arms=3, dimension=2, gap=0.4, seed=2))
        run = bw.simulate(world, {"a": RV, "u": bw.FixedPolicy()}, horizon=20_000, replications=4, checkpoints=[10_000])
        assert run["a"].regret[-1] < 0.1 * run["u"].regret[-1]  # 0.014 and 0.038
        assert run["a"].regret[1] - run["a"].regret[0] < 0.25 * run["a"].regret[-1]  # 0.09, 0.14
        regrets.append(run["a"].regret[-1])
    assert regrets[1] > 1.5 * regrets[0]  # 406 and 147


@pytest.mark.parametrize("algorithm", ALL, ids=str)
def test_they_conform_survive_files_and_are_the_same_interpreted(algorithm: Algorithm, tmp_path: Path) -> None:
    assert bw.check_algorithm(algorithm) == []
    policy = algorithm.start(random_problem(2), rng=1)
    play(policy, 30)
    policy.save(tmp_path / "p.npz")
    copy = bw.load(tmp_path / "p.npz")
    assert copy.probabilities().tobytes() == policy.probabilities().tobytes()
    assert play(copy, 200) == play(policy, 200)
    one, two = (algorithm.start(random_problem(2), rng=1, interpreted=flag) for flag in (False, True))
    assert play(one, 300) == play(two, 300)
    assert bits(one) == bits(two)


@pytest.mark.parametrize("algorithm", ALL, ids=str)
def test_arms_are_drawn_from_the_probabilities(algorithm: Algorithm) -> None:
    policy = algorithm.start(random_problem(4, S=2, K=4, d=3), rng=3)
    play(policy, 40)
    pi = policy.probabilities(1)
    seen = np.bincount([d.arm for d in policy.act([1] * 4000)], minlength=4)
    assert stats.chisquare(seen, 4000 * pi).pvalue > 0.01  # 0.5 to 0.6 with these seeds


def test_an_unknown_estimator_is_refused() -> None:
    with pytest.raises(ValueError, match="'iw' or 'rv'"):
        bw.PerContextTsallisINF(estimator="ix")  # type: ignore[arg-type]
