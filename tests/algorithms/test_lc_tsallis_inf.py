"""LC-Tsallis-INF: its rates, its simpler cases, what leaves it alone, and what it refuses."""

import math

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.kernels.random import ARM, draw, two_uniforms
from support.problems import TUNINGS, bits, coordinates, directions, parameters, play, random_problem


@pytest.mark.parametrize(("finite", "coverage"), [(True, "computed"), (True, "bound"), (False, "computed")])
def test_the_paper_tuning_is_equation_4_to_the_letter(finite: bool, coverage: str) -> None:
    problem = random_problem(8, S=3, K=5, d=2, rarity=20.0)
    explore = bw.design(problem, "per-context", coverage=coverage)  # type: ignore[arg-type]
    tuning = bw.Paper(finite_support=finite)
    policy = bw.LCTsallisINF(tuning=tuning, design=explore).start(problem, rng=0)
    K, d, L, lam = 5, 2, 20.0, explore.coverage
    if coverage == "bound":
        assert lam == pytest.approx(1.0 / (d * L))
    for t in (1, 10, 10_000, 10**8):
        policy.state.t[0] = t
        policy._learner_state.refresh()
        eta_tilde = K**0.25 / math.sqrt(d * t)
        eta = min(eta_tilde, math.sqrt(lam / L) / 16 if finite else lam / 16)
        gamma = 128 * L * eta**2 / lam if finite else 8 * eta / lam
        assert policy.state.rates == pytest.approx([eta, gamma], rel=1e-12)
        assert gamma <= 0.5 + 1e-12


@pytest.mark.parametrize("tuning", TUNINGS)
def test_the_first_plan_is_uniform_plus_exploration(tuning: str) -> None:
    problem = random_problem(9)
    algorithm = bw.LCTsallisINF(tuning=tuning)  # type: ignore[arg-type]
    policy = algorithm.start(problem, rng=0)
    gamma = policy.state.rates[1]
    expected = (1 - gamma) / 3 + gamma * algorithm.design_for(problem).exploration
    assert policy.probabilities() == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("alpha", [0.5, 0.7])
def test_one_context_with_unit_features_is_tsallis_inf(alpha: float) -> None:
    """S = 1, phi = one-hot: importance-weighted Tsallis-INF with the same rates, arm by arm."""
    K = 4
    problem = bw.Problem(features=np.eye(K)[None], probabilities=[1.0])
    explore = bw.Design.of(problem, np.full((1, K), 1 / K))
    policy = bw.LCTsallisINF(alpha=alpha, tuning="paper", design=explore).start(problem, rng=3)
    policy.state.t[0] = 10_000
    policy._learner_state.refresh()
    total = np.zeros(K)
    rng = np.random.default_rng(1)
    for time in range(1, 301):
        eta, gamma = policy.state.rates
        q = bw.ftrl_point(total, learning_rate=eta, alpha=alpha)
        pi = (1 - gamma) * q + gamma / K
        decision = policy.act(0)
        assert decision.arm == draw(pi, two_uniforms(3, time, ARM, 0)[0])
        assert decision.propensity == pytest.approx(pi[decision.arm], rel=1e-10)
        loss = float(rng.choice([-1.0, 1.0]))
        total[decision.arm] += loss / pi[decision.arm]
        policy.update(decision, loss=loss)


def test_unit_features_per_context_are_separate_learners_weighted_by_probability() -> None:
    """phi = one-hot(a, x): per-context Tsallis-INF with losses divided by g(x) and the global clock."""
    S, K, g = 3, 2, np.array([0.2, 0.3, 0.5])
    problem = bw.Problem(features=np.eye(S * K).reshape(S, K, S * K), probabilities=g)
    policy = bw.LCTsallisINF(tuning="certified", design="uniform").start(problem, rng=4)
    policy.state.t[0] = 1e6
    policy._learner_state.refresh()
    totals = np.zeros((S, K))
    rng = np.random.default_rng(1)
    for _ in range(200):
        eta, gamma = policy.state.rates
        pi = (1 - gamma) * bw.ftrl_point(totals, learning_rate=eta) + gamma / K
        assert policy.probabilities() == pytest.approx(pi, rel=1e-9)
        x = int(rng.choice(S, p=g))
        decision = policy.act(x)
        loss = float(rng.choice([-1.0, 1.0]))
        totals[x, decision.arm] += loss / (pi[x, decision.arm] * g[x])
        policy.update(decision, loss=loss)


@pytest.mark.parametrize("tuning", TUNINGS)
def test_invariance_under_linear_maps_of_the_features(tuning: str) -> None:
    problem = random_problem(10, S=4, K=3, d=3)
    rng = np.random.default_rng(2)
    mapped = bw.Problem(
        features=problem.features @ (rng.normal(size=(3, 3)) * [1e-6, 1.0, 1e6]),
        probabilities=problem.probabilities,
    )
    explore = bw.Design.of(problem, bw.design(problem).exploration)
    theta = parameters(problem)
    means = problem.features @ theta
    policies = [bw.LCTsallisINF(tuning=tuning, design=explore).start(p, rng=6) for p in (problem, mapped)]  # type: ignore[arg-type]
    for t in range(400):
        x = int(rng.choice(4, p=problem.probabilities))
        decisions = [policy.act(x) for policy in policies]
        assert decisions[0].arm == decisions[1].arm
        loss = float(np.clip(means[x, decisions[0].arm] + 0.1 * math.sin(t), -1, 1))
        for policy, decision in zip(policies, decisions, strict=True):
            policy.update(decision, loss=loss)
    assert policies[0].probabilities() == pytest.approx(policies[1].probabilities(), rel=1e-6)


@pytest.mark.parametrize("tuning", TUNINGS)
def test_invariance_under_renaming_arms_and_contexts(tuning: str) -> None:
    """Which plays `matched` looks at to choose its exploration depends on their order, and a little of it is seen."""
    problem = random_problem(11, S=4, K=3, d=3)
    e = bw.design(problem).exploration
    contexts, arms = np.array([2, 0, 3, 1]), np.array([1, 2, 0])
    other = bw.Problem(features=problem.features[contexts][:, arms], probabilities=problem.probabilities[contexts])
    one = bw.LCTsallisINF(tuning=tuning, design=bw.Design.of(problem, e)).start(problem, rng=0)  # type: ignore[arg-type]
    two = bw.LCTsallisINF(tuning=tuning, design=bw.Design.of(other, e[contexts][:, arms])).start(other, rng=0)  # type: ignore[arg-type]
    rng = np.random.default_rng(3)
    for _ in range(100):
        x, loss = int(rng.integers(4)), float(rng.uniform(-1, 1))
        decision = one.act(x)
        x2, a2 = int(np.flatnonzero(contexts == x)[0]), int(np.flatnonzero(arms == decision.arm)[0])
        base = two.state.baseline.copy() if tuning == "matched" else None
        direction = directions(two)[x2, a2]
        twin = two.act(x2)._replace(arm=a2, arm_name=other.arms[a2], propensity=decision.propensity)
        twin = twin._replace(direction=direction, baseline=base)
        one.update(decision, loss=loss)
        two.update(twin, loss=loss)
    near = 2e-3 if tuning == "matched" else 1e-8
    assert two.probabilities() == pytest.approx(one.probabilities()[contexts][:, arms], rel=near)


@pytest.mark.parametrize("tuning", TUNINGS)
def test_a_constant_added_to_all_losses_changes_no_probability(tuning: str) -> None:
    base = random_problem(12, S=3, K=3, d=2)
    phi = np.concatenate([base.features, np.ones((3, 3, 1))], axis=2)
    problem = bw.Problem(features=phi, probabilities=base.probabilities)
    policy = bw.LCTsallisINF(tuning=tuning).start(problem, rng=0)  # type: ignore[arg-type]
    play(policy, 50)
    before = policy.probabilities()
    z = coordinates(policy).reshape(9, 3)
    constant = np.linalg.lstsq(z, np.ones(9), rcond=None)[0]
    policy.state.theta[...] += 37.0 * constant
    policy._learner_state.refresh()
    assert policy.probabilities() == pytest.approx(before, rel=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"tuning": "paper"},
        {"tuning": "certified"},
        {"tuning": "matched"},
        {"tuning": bw.Matched(drift_cap=0.0, forgetting=0.0)},
        {"tuning": "certified", "alpha": 0.7},
        {"tuning": "paper", "covariance": bw.MGR(samples=30)},
    ],
    ids=str,
)
def test_interpreted_and_compiled_runs_agree_bit_for_bit(options: dict[str, object]) -> None:
    problem = random_problem(13, S=4, K=3, d=3)
    algorithm = bw.LCTsallisINF(**options)  # type: ignore[arg-type]
    policies = [algorithm.start(problem, rng=9, interpreted=flag) for flag in (False, True)]
    assert play(policies[0], 300) == play(policies[1], 300)
    assert bits(policies[0]) == bits(policies[1])


def test_resampled_estimates_have_the_stated_bias() -> None:
    """The mean of the directions over fresh draws is the geometric series, within 4 standard errors."""
    problem = random_problem(14, S=3, K=3, d=2)
    policy = bw.LCTsallisINF(tuning="paper", covariance=bw.MGR(samples=25)).start(problem, rng=5)
    z, g, pi = coordinates(policy), problem.probabilities, policy.probabilities()
    sigma = np.einsum("x,xa,xai,xaj->ij", g, pi, z, z)
    beta = policy._machine.options.resampling.beta
    assert beta == pytest.approx(0.5 / (z**2).sum(axis=2).max())
    decisions = policy.act(np.random.default_rng(0).choice(3, size=6000, p=g))
    theta = np.array([0.3, -0.2])
    estimates = np.array([d.direction * (z[d.context, d.arm] @ theta) for d in decisions])
    power = np.linalg.matrix_power(np.eye(2) - beta * sigma, 26)
    errors = (estimates.mean(axis=0) - (np.eye(2) - power) @ theta) / (estimates.std(axis=0) / math.sqrt(6000))
    assert np.abs(errors).max() < 4.0


def test_resampling_takes_as_many_draws_as_the_bias_asks_for() -> None:
    problem = random_problem(14, S=3, K=3, d=2)
    z_bias = []
    for bias in (0.5, 0.05):
        policy = bw.LCTsallisINF(tuning="paper", covariance=bw.MGR(bias=bias)).start(problem, rng=5)
        given, gamma = policy._machine.options.resampling, policy.state.rates[1]
        draws = math.ceil(given.log_bias / (given.beta * gamma))
        assert math.exp(-gamma * given.beta * draws) <= bias
        remainder = np.linalg.matrix_power(np.eye(2) - given.beta * policy.state.sigma, draws + 1)
        z_bias.append(np.linalg.norm(remainder, 2))
        assert z_bias[-1] <= bias
        play(policy, 5)
    assert z_bias[1] < z_bias[0]


def test_all_worlds_learn() -> None:
    """Every tuning ends up preferring the better arm on an easy problem; certified after its cautious start."""
    problem = bw.Problem(features=np.eye(2)[None], probabilities=[1.0])
    for tuning, rounds in (("matched", 300), ("certified", 20_000)):
        policy = bw.LCTsallisINF(tuning=tuning).start(problem, rng=1)  # type: ignore[arg-type]
        play(policy, rounds, theta=np.array([-0.5, 0.5]))
        assert policy.probabilities(0)[0] > 0.9


def test_matched_stops_exploring_without_noise() -> None:
    """With vanishing residuals eta_t does not decay; the exploration must."""
    problem = random_problem(16, S=6, K=4, d=3)
    policy = bw.LCTsallisINF(tuning="matched").start(problem, rng=1)
    arms = play(policy, 3000, noise=False)
    assert policy.state.rates[1] < 0.02
    assert len(arms) == 3000
    means = problem.features @ parameters(problem)
    regret = (policy.probabilities() * (means - means.min(axis=1, keepdims=True))).sum(axis=1)
    assert float(problem.probabilities @ regret) < 0.02


def test_a_design_of_another_problem_is_refused() -> None:
    one, two = random_problem(1), random_problem(2, rarity=500.0)
    with pytest.raises(ValueError, match="made for another one"):
        bw.LCTsallisINF(design=bw.design(one)).start(two)
    available = np.ones((4, 3), dtype=bool)
    available[0, 1] = False
    blocked = bw.Problem(features=one.features, probabilities=one.probabilities, available=available)
    with pytest.raises(ValueError, match="not offered"):
        bw.LCTsallisINF(design=bw.design(one)).start(blocked)
    with pytest.raises(ValueError, match="shape"):
        bw.LCTsallisINF(design=bw.design(one)).start(random_problem(1, S=5))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": "x"}, "alpha"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.0}, "alpha"),
        ({"alpha": 0.3}, "alpha = 1/2; got 0.3: use tuning='certified' or tuning='paper'"),
        ({"tuning": "papper"}, "paper, certified, matched$"),
        ({"tuning": 3}, "tuning"),
        ({"covariance": "mgr"}, "covariance"),
        ({"covariance": bw.MGR()}, "tuning='paper'"),
        ({"design": "best"}, "joint-g"),
    ],
)
def test_wrong_options_are_refused_with_the_right_ones(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.LCTsallisINF(**options)  # type: ignore[arg-type]


def test_without_a_tuning_it_is_the_matched_one() -> None:
    assert bw.LCTsallisINF() == bw.LCTsallisINF(tuning=bw.Matched()) != bw.LCTsallisINF(tuning="certified")


@pytest.mark.parametrize(
    "make",
    [
        lambda: bw.Certified(c=-1.0),
        lambda: bw.Certified(batch=0),
        lambda: bw.Matched(gain=0.0),
        lambda: bw.Matched(drift_cap=-0.1),
        lambda: bw.Matched(forgetting=float("inf")),
        lambda: bw.MGR(samples=0),
        lambda: bw.MGR(bias=1.0),
        lambda: bw.Certified(c="x"),  # type: ignore[arg-type]
        lambda: bw.Certified(batch=1.5),  # type: ignore[arg-type]
    ],
)
def test_tunings_refuse_impossible_numbers(make: object) -> None:
    with pytest.raises(ValueError, match="must"):
        make()  # type: ignore[operator]
