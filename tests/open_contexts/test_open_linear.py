"""LinUCB, D-LinUCB and SquareCB on open problems: equal to the same algorithms on a list, and to NumPy."""

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.open_contexts import OpenPolicy

ALGORITHMS = [bw.LinUCB(width=0.7), bw.DLinUCB(width=0.7, discount=0.97), bw.SquareCB(scale=2.0)]
LISTS = np.random.default_rng(3).normal(size=(5, 4, 3))


def opened(algorithm: bw.LinUCB | bw.DLinUCB | bw.SquareCB) -> OpenPolicy:
    return algorithm.start(bw.OpenProblem(candidates=3), rng=7, interpreted=True)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: type(algorithm).__name__)
def test_on_listed_features_probabilities_are_those_of_the_list(algorithm: bw.LinUCB) -> None:
    """An open problem adds a constant, so that the listed one gets it, too; a plan is made for every row."""
    features = np.concatenate([np.ones((5, 4, 1)), LISTS], axis=2)
    listed = algorithm.start(bw.Problem(features=features, probabilities=[0.2] * 5), rng=7, interpreted=True)
    policy, rng = opened(algorithm), np.random.default_rng(1)
    for _ in range(60):
        x = int(rng.integers(5))
        assert policy.probabilities(candidates=LISTS[x]) == pytest.approx(listed.probabilities(x), abs=1e-9)
        ours, theirs = policy.act(candidates=LISTS[x]), listed.act(x)
        loss = float(np.clip(0.4 * LISTS[x, ours.arm, 0] + 0.3 * rng.normal(), -1, 1))
        assert ours.arm == theirs.arm
        policy.update(ours, loss=loss)
        listed.update(theirs, loss=loss)


def test_blocks_have_the_estimates_of_separate_regressions() -> None:
    rng = np.random.default_rng(2)
    policy = bw.LinUCB(width=0.0, ridge=0.5).start(bw.OpenProblem(context=2, arms=["a", "b"]), rng=1, interpreted=True)
    rows: dict[int, list[tuple[list[float], float]]] = {0: [], 1: []}
    for _ in range(50):
        x = rng.normal(size=2)
        decision, loss = policy.act(x), float(rng.uniform(-1, 1))
        rows[decision.arm].append(([1.0, *x], loss))
        policy.update(decision, loss=loss)
    for arm, plays in rows.items():
        z, losses = np.array([row for row, _ in plays]).reshape(-1, 3), np.array([loss for _, loss in plays])
        estimate = np.linalg.solve(z.T @ z + 0.5 * np.eye(3), z.T @ losses)
        np.testing.assert_allclose(policy.plan().arrays.weights[arm], estimate, atol=1e-10)


def test_long_fading_stores_sums_anew() -> None:
    """After 2,000 rows with discount .97 the weights are below 1e-26: the estimate is still that of the last rows."""
    policy, rng = bw.DLinUCB(discount=0.97).start(bw.OpenProblem(candidates=1), rng=1), np.random.default_rng(2)
    plays = []
    for _ in range(2000):
        decision = policy.act(candidates=rng.normal(size=(3, 1)))
        plays.append((decision.features[decision.place], float(rng.uniform(-1, 1))))
        policy.update(decision, loss=plays[-1][1])
    z, losses = np.array([row for row, _ in plays]), np.array([loss for _, loss in plays])
    weights = 0.97 ** np.arange(1999, -1, -1)
    estimate = np.linalg.solve((weights[:, None] * z).T @ z + np.eye(2), z.T @ (weights * losses))
    np.testing.assert_allclose(policy.plan().arrays.weights[0], estimate, atol=1e-9)


def test_other_algorithms_say_that_they_have_no_rule() -> None:
    problem = bw.OpenProblem(context=2, arms=["a", "b"])
    with pytest.raises(ValueError, match=r"RealFTRL has no rule for an OpenProblem: LCTsallisINF\(\), LinUCB\(\)"):
        bw.RealFTRL(horizon=100).start(problem)
    with pytest.raises(ValueError, match="this algorithm has no rule for an OpenProblem"):
        bw.LinTS().start(problem)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs a list of contexts, and an OpenProblem has none"):
        bw.LCTsallisINF(tuning="certified").start(problem)
