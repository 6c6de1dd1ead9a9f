"""The default rule in plain NumPy against the kernels, round by round, with feedback at once, in batches and late."""

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.lc_tsallis import change_evidence, exploration_rate, reference_matched
from bothworlds.algorithms.lc_tsallis.reference_matched import ReferenceMatched
from bothworlds.kernels.rates import SAFE
from bothworlds.theory.schedules import Matching

CASES = [  # S, K, d, rarity; the second has few plays for each dimension, the third comes to beta >= b
    (4, 3, 3, None),
    (3, 4, 8, None),
    (1, 3, 3, None),
    (5, 4, 4, 20.0),
]


def worlds_with(case: tuple[int, int, int, float | None]) -> en.Environment:
    S, K, d, rarity = case
    return en.stochastic(en.random_instance(contexts=S, arms=K, dimension=d, gap=0.3, rarity=rarity, seed=S))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch", [1, 7])
def test_the_kernels_compute_the_rule_of_the_reference(case: tuple[int, int, int, float | None], batch: int) -> None:
    problem = worlds_with(case).problem
    policy = bw.LCTsallisINF().start(problem, rng=1)
    e = policy._learner_state.machine.known.e
    reference = ReferenceMatched(problem.features, problem.probabilities, e)
    rng, later = np.random.default_rng(len(case)), 0
    for _ in range(280 // batch):
        xs = rng.choice(problem.n_contexts, p=problem.probabilities, size=batch)
        decisions = [policy.act(int(x)) for x in xs]
        carried = [reference.decision(decision.context, decision.arm) for decision in decisions]
        losses = [float(rng.choice([-1.0, 1.0], p=[0.6, 0.4])) if decision.arm else 0.4 for decision in decisions]
        for decision, loss, arrays in zip(decisions, losses, carried, strict=True):
            reference.learn(decision.context, decision.arm, loss, *arrays)
        policy.update(decisions, loss=losses)
        state = policy.state
        assert policy.probabilities() == pytest.approx(reference.pi, abs=1e-6)
        assert float(state.inverse_rate[0]) == pytest.approx(reference.beta, rel=1e-5)
        assert (float(state.rates[1]), float(state.price[0])) == pytest.approx(
            (reference.gamma, reference.price), rel=1e-5, abs=1e-9
        )
        assert float(state.account[0]) == pytest.approx((1.0 + Matching.drift_cap) * reference.A, rel=1e-5)
        later += reference.beta >= reference.b
    assert later > 0 or case[0] > 1, "the third case explores by the price of its plays"


def test_the_constants_are_those_of_the_library() -> None:
    ours = Matching()
    constants = (ours.gain, ours.least, ours.caution, ours.price, ours.c, ours.drift_cap)
    theirs = reference_matched
    assert constants == (
        theirs.GAIN,
        theirs.LEAST,
        theirs.CAUTION,
        theirs.PRICE,
        theirs.C,
        theirs.DRIFT_CAP,
    )
    assert (theirs.EARLY, theirs.LATER, theirs.SAFE) == (
        exploration_rate.EARLY,
        exploration_rate.LATER,
        SAFE,
    )
    assert (theirs.WINDOWS, theirs.LIMIT, theirs.MOST, theirs.RESTART_RATE) == (
        change_evidence.WINDOWS,
        change_evidence.LIMIT,
        change_evidence.MOST,
        change_evidence.RESTART_RATE,
    )


def test_they_restart_in_the_same_round() -> None:
    """A world that turns round after 600 rounds; both restart once, soon, and have the same plans after it."""
    world = worlds_with(CASES[0])
    problem, means = world.problem, world.problem.features @ world.thetas[0]
    policy = bw.LCTsallisINF().start(problem, rng=1)
    reference = ReferenceMatched(problem.features, problem.probabilities, policy._learner_state.machine.known.e)
    reference.z = policy._machine.known.z  # a sweep of Gauss and Seidel depends on the coordinates
    reference.explore()
    rng, restarted = np.random.default_rng(1), []
    for t in range(900):
        decision = policy.act(int(rng.choice(problem.n_contexts, p=problem.probabilities)))
        mean = float(means[decision.context, decision.arm]) * (1.0 if t < 600 else -1.0)
        loss = float(rng.choice([-1.0, 1.0], p=[(1.0 - mean) / 2.0, (1.0 + mean) / 2.0]))
        arrays = reference.decision(decision.context, decision.arm)
        reference.learn(decision.context, decision.arm, loss, *arrays)
        before = float(policy.state.restarts[0])
        policy.update(decision, loss=loss)
        assert policy.probabilities() == pytest.approx(reference.pi, abs=1e-5)
        assert np.asarray(policy.state.evidence) == pytest.approx(reference.evidence, rel=1e-3)
        assert float(policy.state.restarts[0]) == reference.restarts
        if policy.state.restarts[0] > before:
            restarted.append(t)
            assert policy.state.remembered[0] <= 100.0
    assert len(restarted) == 1
    assert 600 < restarted[0] < 700
