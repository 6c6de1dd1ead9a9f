"""Arms and contexts that come and go: what is learnt is carried over, and nothing is lost or taken twice."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.policy.feature_map import Pairs, coordinate_change
from bothworlds.policy.transfer import transform_regression
from support.problems import TUNINGS, parameters, play, random_problem

ALGORITHMS = (
    *(bw.LCTsallisINF(tuning=name) for name in TUNINGS),  # type: ignore[arg-type]
    bw.LinUCB(),
    bw.OFUL(),
    bw.LinTS(),
    bw.DLinUCB(),
    bw.SWLinUCB(),
    bw.SquareCB(),
    bw.RealFTRL(horizon=500),
    bw.RealLinExp3(horizon=500, features="arm-dependent"),
)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def named(problem: bw.Problem, arms: list[int], contexts: list[int] | None = None, **options: Any) -> bw.Problem:
    """Return a part of a problem, arms and contexts in the order given."""
    xs = list(range(problem.n_contexts)) if contexts is None else contexts
    g = problem.probabilities[xs]
    values = {
        "features": problem.features[np.ix_(xs, arms)],
        "probabilities": g / g.sum(),
        "contexts": [f"x{x}" for x in xs],
        "arms": [f"a{a}" for a in arms],
    }
    return bw.Problem(**{**values, **options})


def one_hot(arms: list[str], contexts: int = 2) -> bw.Problem:
    """A column for each arm, and one that all share."""
    K = len(arms)
    phi = np.concatenate([np.ones((contexts, K, 1)), np.broadcast_to(np.eye(K), (contexts, K, K))], axis=2)
    return bw.Problem(features=phi, probabilities=np.full(contexts, 1.0 / contexts), arms=arms)


WHOLE = random_problem(3, S=4, K=6, d=3)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_the_same_problem_changes_nothing(algorithm: bw.Algorithm) -> None:
    problem = named(WHOLE, [0, 1, 2])
    policy = algorithm.start(problem, rng=1)
    play(policy, 15)
    digest, version = policy.digest, policy.version
    policy.change(named(WHOLE, [0, 1, 2]))
    assert (policy.digest, policy.version) == (digest, version)


def followed(policy: bw.Policy) -> dict[str, Floats]:
    """Return what is learnt, theta being the sum of losses that plans follow: a change makes one of the two."""
    learnt = policy.learnt()
    return {**learnt, "theta": learnt["theta"] + learnt["drift"]} if "drift" in learnt else learnt


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_in_unchanged_coordinates_what_is_learnt_keeps_its_bits(algorithm: bw.Algorithm) -> None:
    """Other names of contexts nobody has decided in: the machine is the same, so that the map is the identity."""
    problem = named(WHOLE, [0, 1, 2])
    policy = algorithm.start(problem, rng=1)
    play(policy, 15)
    before = followed(policy)
    renamed = named(WHOLE, [0, 1, 2], contexts=[0, 1, 2, 3])
    object.__setattr__(renamed, "contexts", ("x0", "x1", "x2", "other"))
    policy.change(renamed)
    after = policy.learnt()
    for name in ("theta", "ridge", "response", "sigma", "seed", "inverse_rate", "t"):
        if name in before:
            assert np.array_equal(before[name], after[name]), name


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_permuted_arms_and_contexts_are_played_as_before(algorithm: bw.Algorithm) -> None:
    policy = algorithm.start(named(WHOLE, [0, 1, 2, 3]), rng=1)
    play(policy, 20)
    arms, contexts = [2, 0, 3, 1], [3, 1, 0, 2]
    sums = algorithm == bw.LCTsallisINF()  # which plays its exploration is estimated from depends on their order
    before = policy.state.q if sums else policy.probabilities()
    policy.change(named(WHOLE, arms, contexts))
    after = policy.state.q if sums else policy.probabilities()
    if not isinstance(algorithm, bw.LinTS):  # its plan is drawn
        assert np.allclose(after, before[np.ix_(contexts, arms)], atol=1e-4)


@pytest.mark.parametrize("tuning", TUNINGS)
def test_an_arm_that_is_added_and_removed_leaves_what_was_learnt(tuning: Any) -> None:
    policy = bw.LCTsallisINF(tuning=tuning).start(named(WHOLE, [0, 1, 2, 3]), rng=1)
    play(policy, 25)
    before, learnt = policy.probabilities(), followed(policy)
    policy.change(named(WHOLE, [0, 1, 2, 3, 4]))
    policy.change(named(WHOLE, [0, 1, 2, 3]))
    after = policy.learnt()
    assert np.allclose(after["theta"], learnt["theta"], rtol=1e-9, atol=1e-9)
    assert policy.updates == 25
    assert policy.version == 27
    assert np.allclose(policy.probabilities(), before, atol=1e-4)


def test_a_new_arm_with_a_column_of_its_own_begins_at_the_mean_of_the_others() -> None:
    algorithm = bw.LCTsallisINF(tuning="matched")
    for fresh in (0.0, 1.0, None):
        policy = algorithm.start(one_hot(["a", "b", "c"]), rng=1)
        rng = np.random.default_rng(0)
        for _ in range(60):
            made = policy.act(int(rng.integers(2)))
            policy.update(made, loss=(-0.8, 0.1, 0.7)[made.arm])
        state = policy.state
        sums = policy._machine.known.z @ (state.theta + state.drift)
        predicted = policy._machine.known.z @ np.linalg.solve(state.ridge, state.response)
        policy.change(one_hot(["a", "b", "c", "d"]), fresh=fresh)
        state = policy.state
        now = policy._machine.known.z @ state.theta
        foreseen = policy._machine.known.z @ np.linalg.solve(state.ridge, state.response)
        assert np.allclose(now[:, :3], sums)
        assert np.allclose(foreseen[:, :3], predicted)
        assert np.allclose(foreseen[:, 3], predicted.mean(axis=1))
        furthest = sums.min(axis=1) + 2.0 / state.rates[0]  # H/eta, with four arms now
        expected = {0.0: sums.min(axis=1), 1.0: sums.mean(axis=1), None: np.minimum(sums.mean(axis=1), furthest)}[fresh]
        assert np.allclose(now[:, 3], expected)
        assert policy.problem.dimension == 4


def test_dropped_coordinates_are_those_of_a_bayesian_regression() -> None:
    """Posterior of theta ~ N(0, I), noise 1, on all plays; then marginal, conditioned on nothing, in the new basis."""
    rng = np.random.default_rng(5)
    old, new = one_hot(["a", "b", "c"]), one_hot(["a", "c", "d"])
    policy = bw.LinUCB(ridge=1.0).start(old, rng=1)
    plays = [(int(rng.integers(2)), float(rng.normal())) for _ in range(40)]
    rows, losses = [], []
    for x, value in plays:
        made = policy.act(x)
        loss = float(np.clip(value, -1, 1))
        policy.update(made, loss=loss)
        rows.append(old.features[x, made.arm])
        losses.append(loss)
    phi, y = np.array(rows), np.array(losses)
    covariance = np.linalg.inv(np.eye(4) + phi.T @ phi)
    mean = covariance @ phi.T @ y
    policy.change(new)
    state = policy.state
    # Losses of the kept arms a, c: their joint posterior must be the same.
    here, there = new.features[0, [0, 1]], old.features[0, [0, 2]]
    kept_covariance = here @ np.linalg.inv(state.sigma) @ here.T
    assert np.allclose(kept_covariance, there @ covariance @ there.T)
    assert np.allclose(here @ np.linalg.solve(state.sigma, state.response), there @ mean)
    # The new arm: the mean of the old ones, and more uncertain than it.
    average = old.features[0].mean(axis=0)
    assert np.isclose(new.features[0, 2] @ np.linalg.solve(state.sigma, state.response), average @ mean)
    variance = new.features[0, 2] @ np.linalg.inv(state.sigma) @ new.features[0, 2]
    assert variance > average @ covariance @ average + 0.1


def test_trust_is_a_share_of_rounds_and_of_plays() -> None:
    for algorithm in (bw.LinUCB(), bw.LCTsallisINF(tuning="matched")):
        policy = algorithm.start(named(WHOLE, [0, 1, 2]), rng=1)
        play(policy, 20)
        before = followed(policy)
        policy.change(named(WHOLE, [0, 1, 2]), trust=0.5)
        after = policy.learnt()
        gram, moment = ("sigma", "response") if "sigma" in before else ("ridge", "response")
        assert np.allclose(after[gram], 0.5 * before[gram] + 0.5 * np.eye(3))
        assert np.allclose(after[moment], 0.5 * before[moment])
        assert after["t"][0] == 11.0
        assert policy.updates == 20
        if "ridge" in before:
            assert np.allclose(after["theta"], 0.5 * before["theta"])


def test_a_feature_that_is_added_is_not_known() -> None:
    """New columns begin at zero with the variance of the start, old ones keep theirs."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=(2, 5, 3))
    before = Pairs(contexts=("x", "y"), arms=tuple("abcde"), offered=np.ones((2, 5), bool), z=z[:, :, :2])
    after = Pairs(contexts=("x", "y"), arms=tuple("abcde"), offered=np.ones((2, 5), bool), z=z)
    change = coordinate_change(before, after)
    assert np.allclose(change.matrix, [[1, 0, 0], [0, 1, 0]])
    gram, moment = transform_regression(np.diag([4.0, 9.0]), np.array([1.0, 2.0]), change)
    assert np.allclose(gram, np.diag([4.0, 9.0, 1.0]))
    assert np.allclose(moment, [1.0, 2.0, 0.0])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["paper", "certified", "matched"]))
def test_features_may_be_written_in_any_basis(seed: int, tuning: Any) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, S=3, K=5, d=3)
    basis = rng.normal(size=(3, 3)) + 2.0 * np.eye(3)
    if np.linalg.cond(basis) > 100.0:
        basis = np.eye(3) + 0.1 * basis
    turned = bw.Problem(features=problem.features @ basis, probabilities=problem.probabilities)
    tables = []
    design = bw.LCTsallisINF(tuning=tuning, design="uniform")
    for whole in (problem, turned):
        policy = design.start(named(problem, [0, 1, 2]), rng=seed)
        play(policy, 8, theta=parameters(problem))
        policy.change(named(whole, [1, 2, 3, 4]))
        rounds = np.random.default_rng(seed)
        for _ in range(3):
            made = policy.act(int(rounds.integers(3)))
            policy.update(made, loss=float(rounds.uniform(-1, 1)))
        tables.append(policy.probabilities())
    assert np.abs(tables[0] - tables[1]).max() <= 1e-9


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_open_decisions_are_learnt_after_two_changes(algorithm: bw.Algorithm, tmp_path: Path) -> None:
    problems = [named(WHOLE, [0, 1, 2, 3]), named(WHOLE, [3, 1, 4], [2, 0, 1]), named(WHOLE, [5, 1, 3], [1, 0, 2, 3])]
    policy = algorithm.start(problems[0], rng=4, interpreted=True)  # nobody else compiles all their plans
    play(policy, 10)
    first = [policy.plan().act(x, id=f"{x} {i}") for x in range(4) for i in range(12)]
    policy.change(problems[1])
    second = [policy.act(x) for x in range(3) for _ in range(8)]
    policy.change(problems[2])
    policy.save(tmp_path / "policy.npz")
    again = bw.load(tmp_path / "policy.npz", interpreted=True)
    updates = policy.updates
    late = [*first, *second]
    alive = [made for made in late if made.arm_name in ("a1", "a3")]
    assert 0 < len(alive) < len(late)
    for made in late:
        assert policy.accepts(made)
        policy.update(made, loss=0.25)
    assert policy.updates == updates + len(alive)
    assert not any(policy.accepts(made) for made in late)
    with pytest.raises(ValueError, match="feedback once"):
        policy.update(late[0], loss=0.25)
    for made in late:
        again.update(bw.Decision.from_dict(made.to_dict()), loss=0.25)
    assert again.digest == policy.digest
    assert again.version == policy.version


def test_late_estimates_are_the_old_ones_in_new_coordinates() -> None:
    """<z, theta_hat> of every kept pair is what it would have been without the change."""
    old, new = named(WHOLE, [0, 1, 2, 3]), named(WHOLE, [3, 2, 1, 5])
    policy = bw.LCTsallisINF(tuning="certified").start(old, rng=4)
    play(policy, 10)
    z_old = policy._machine.known.z
    made = next(made for made in (policy.act(0) for _ in range(50)) if made.arm_name != "a0")
    policy.change(new)
    before, z = policy.state.theta.copy(), policy._machine.known.z
    policy.update(made, loss=0.5)
    added = z @ (policy.state.theta - before)
    expected = 0.5 * z_old @ made.direction
    assert np.allclose(added[:, :3], expected[:, [3, 2, 1]])


def test_a_batch_of_late_and_new_decisions() -> None:
    problems = [named(WHOLE, [0, 1, 2]), named(WHOLE, [2, 1, 3])]
    one = bw.LCTsallisINF(tuning="certified").start(problems[0], rng=4)
    late = [one.act(x) for x in range(4) for _ in range(5)]
    one.change(problems[1])
    both = [*late, *(one.act(x) for x in range(4))]
    updates = one.updates
    one.update(both, loss=[0.1] * len(both))
    assert one.updates == updates + sum(made.arm_name != "a0" for made in both)
    assert one.open_rounds == 0


def test_versions_grow_and_old_plans_cannot_be_renewed(tmp_path: Path) -> None:
    policy = bw.LCTsallisINF(tuning="certified").start(named(WHOLE, [0, 1, 2]), rng=4)
    play(policy, 5)
    plan = policy.plan()
    policy.change(named(WHOLE, [1, 2, 3]))
    assert policy.plan().version == plan.version + 1
    policy.plan().save(tmp_path / "plan.npz", frame=False)
    with pytest.raises(ValueError, match="another problem"):
        plan.renewed(tmp_path / "plan.npz")
    policy.update(plan.act(0, id="late"), loss=0.1)
    assert policy.copy().updates == policy.updates


def test_a_name_is_never_given_to_another_arm(tmp_path: Path) -> None:
    policy = bw.LCTsallisINF(tuning="certified").start(named(WHOLE, [0, 1, 2]), rng=4)
    policy.change(named(WHOLE, [1, 2, 3]))
    policy.save(tmp_path / "p.npz")
    policy = bw.load(tmp_path / "p.npz")
    strange = named(WHOLE, [1, 2, 4])
    object.__setattr__(strange, "arms", ("a1", "a2", "a0"))
    with pytest.raises(ValueError, match="give the new arm another name"):
        policy.change(strange)
    assert policy.problem.arms == ("a1", "a2", "a3")
    policy.change(named(WHOLE, [0, 1, 2]))
    assert policy.version == 2


def test_a_copy_and_its_file_know_the_names_that_are_gone(tmp_path: Path) -> None:
    policy = bw.LCTsallisINF(tuning="certified").start(named(WHOLE, [0, 1, 2]), rng=4)
    policy.change(named(WHOLE, [1, 2, 3]))
    copy, strange = policy.copy(), named(WHOLE, [1, 2, 4])
    object.__setattr__(strange, "arms", ("a1", "a2", "a0"))
    for _ in range(2):
        with pytest.raises(ValueError, match="give the new arm another name"):
            copy.change(strange)
        copy.save(tmp_path / "p.npz")
        copy = bw.load(tmp_path / "p.npz")
    copy.change(named(WHOLE, [0, 1, 2]))
    assert copy.problem.arms == ("a0", "a1", "a2")


def test_refusals_leave_the_policy_as_it_was() -> None:
    policy = bw.LCTsallisINF(tuning="certified").start(named(WHOLE, [0, 1, 2]), rng=4)
    play(policy, 5)
    digest = policy.digest
    other = random_problem(9, S=4, K=3, d=3)
    squared = named(bw.Problem(features=WHOLE.features**2, probabilities=WHOLE.probabilities), [0, 1, 2])
    for problem, match in (
        (other, "share no pair"),
        (squared, "not a linear function"),
        (named(WHOLE, [0, 1, 3], reward_range=(-2, 2)), "two scales"),
    ):
        with pytest.raises(ValueError, match=match):
            policy.change(problem)
    with pytest.raises(ValueError, match="trust"):
        policy.change(named(WHOLE, [0, 1, 3]), trust=2.0)
    assert policy.digest == digest
    fixed = bw.FixedPolicy().start(named(WHOLE, [0, 1]))
    with pytest.raises(ValueError, match="cannot take over earlier learning"):
        fixed.change(named(WHOLE, [0, 1, 2]))


def test_a_decision_of_a_change_that_was_lost_is_refused_by_its_names(tmp_path: Path) -> None:
    policy = bw.LCTsallisINF(tuning="certified").start(named(WHOLE, [0, 1, 2]), rng=4)
    policy.save(tmp_path / "p.npz")
    policy.change(named(WHOLE, [3, 4, 2]))
    lost = next(made for made in (policy.act(0) for _ in range(50)) if made.arm_name != "a2")
    with pytest.raises(ValueError, match="that this policy does not know"):
        bw.load(tmp_path / "p.npz").update(lost, loss=0.1)


def test_new_contexts_and_pairs_not_offered() -> None:
    offered = np.ones((4, 4), dtype=bool)
    offered[0, 3] = offered[3, 0] = False
    first = named(WHOLE, [0, 1, 2, 3], available=offered)
    policy = bw.LCTsallisINF(tuning="matched").start(first, rng=4)
    play(policy, 12)
    late = [policy.act(1) for _ in range(10)]
    hidden = offered.copy()
    hidden[0, 3], hidden[1, 0] = True, False
    policy.change(named(WHOLE, [0, 1, 2, 3], available=hidden))
    assert policy.probabilities()[1, 0] == 0.0
    assert policy.probabilities()[0, 3] > 0.0
    updates = policy.updates
    for made in late:
        policy.update(made, loss=0.0)
    assert policy.updates == updates + sum(made.arm != 0 for made in late)


def test_more_probable_contexts_do_not_make_late_directions_impossible() -> None:
    g = np.array([0.02, 0.49, 0.49])
    features = random_problem(1, S=3, K=3, d=3).features
    rare = bw.Problem(features=features, probabilities=g)
    often = bw.Problem(features=features, probabilities=g[::-1].copy())
    policy = bw.LCTsallisINF(tuning="certified").start(rare, rng=1)
    made = policy.act(0)
    policy.change(often)
    policy.update(made, loss=1.0)
    assert policy.updates == 1
