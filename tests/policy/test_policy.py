"""Policies: late, batched and missing feedback, files, and errors that change nothing."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import bothworlds as bw
from bothworlds.problem.rewards import checked_loss, checked_losses
from support.named_policies import NAMES, make, snapshot
from support.problems import TUNINGS, bits, coordinates, living, play, random_problem

NAMES_OF_NINE: dict[str, Any] = {"contexts": [f"hour {i}" for i in range(9)]}


def test_a_decision_says_everything() -> None:
    policy = make("matched")
    before = policy.probabilities("evening")
    decision = policy.act("evening")
    assert (decision.round, decision.context, decision.context_name) == (1, 2, "evening")
    assert decision.arm_name == NAMES["arms"][decision.arm]
    assert decision.propensity == before[decision.arm]
    assert decision.direction.shape == (3,)
    assert decision.baseline is not None
    assert make("paper").act(0).baseline is None


def test_probabilities_by_name_by_index_and_whole() -> None:
    policy = make()
    play(policy, 10)
    table = policy.probabilities()
    assert table.shape == (4, 3)
    assert table.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-14)
    assert policy.probabilities("noon").tolist() == policy.probabilities(1).tolist() == table[1].tolist()
    table[...] = 0.0
    assert policy.probabilities().sum() > 3.9


@pytest.mark.parametrize("tuning", TUNINGS)
def test_arms_are_drawn_with_their_propensities(tuning: str) -> None:
    policy = make(tuning)
    play(policy, 200)
    counts = np.bincount([d.arm for d in policy.act([1] * 5000)], minlength=3)
    expected = 5000 * policy.probabilities(1)
    assert chisquare(counts, expected).pvalue > 0.01  # 0.08 or more with these seeds


def test_the_same_seed_decides_the_same_and_another_does_not() -> None:
    runs = [play(make(rng=seed), 60) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("tuning", ["paper", "certified", bw.Matched(drift_cap=0.0, forgetting=0.0)], ids=str)
def test_a_batch_equals_its_updates_one_by_one_in_any_order(tuning: Any) -> None:
    losses = [0.5, -0.25, 1.0, -1.0]
    one, two = make(tuning), make(tuning)
    batch = one.act(["noon", "night", "noon", "morning"])
    single = [two.act(c) for c in ["noon", "night", "noon", "morning"]]
    one.update(batch, loss=losses)
    for i in (2, 0, 3, 1):
        two.update(single[i], loss=losses[i])
    assert one.updates == two.updates == 4
    assert one.state.theta == pytest.approx(two.state.theta, rel=1e-12)
    if isinstance(tuning, str):  # the rates of the other look at the plan of the moment of the feedback
        assert one.probabilities() == pytest.approx(two.probabilities(), rel=1e-12)


@pytest.mark.parametrize("algorithm", [*TUNINGS, bw.LinTS(), bw.PerContextTsallisINF()], ids=str)
def test_a_large_batch_has_the_bits_of_its_decisions_one_by_one(
    algorithm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One compiled call for all of them, against one for each; with and without a look at what is open."""
    made = bw.LCTsallisINF(tuning=algorithm) if algorithm in TUNINGS else algorithm
    policy = made.start(random_problem(3, S=9, **NAMES_OF_NINE), rng=7)
    play(policy, 10)
    batch = policy.act([i % 9 for i in range(40)])
    losses = np.random.default_rng(1).uniform(-1, 1, size=40)
    policy.save("before.npz")
    found = []
    for few, way in ((1, "update"), (1000, "update"), (1, "learn")):
        monkeypatch.setattr("bothworlds.policy.batch_feedback.FEW", few)
        again = bw.load("before.npz")
        getattr(again, way)(batch, loss=losses if way == "update" else losses.tolist())
        found.append((again.digest, bits(again), again.updates, again.open_rounds))
    assert found[0] == found[1] == (*found[2][:3], 0)
    assert found[2][3] == 40  # `learn` does not note what it has learnt from


def test_what_is_wrong_in_a_large_batch_is_named_and_changes_nothing() -> None:
    policy = make("matched")
    batch = policy.act([i % 4 for i in range(30)])
    losses = [0.5] * 30
    before = snapshot(policy)
    seventh = batch[6]
    for wrong, words in (
        (seventh._replace(direction=-seventh.direction), "round 7: propensity, direction or baseline damaged"),
        (seventh._replace(direction=np.zeros(2)), "round 7: direction or baseline damaged"),
        (seventh._replace(baseline=None), "round 7: the decision's baseline does not fit"),
        (seventh._replace(context=9), "round 7: the problem has no context 9"),
        (seventh._replace(policy="another"), "the decision is of policy 'another'"),
    ):
        spoilt = [*batch[:6], wrong, *batch[7:]]
        for call in (policy.update, policy.learn):
            with pytest.raises(ValueError, match=words):
                call(spoilt, loss=losses)
        assert snapshot(policy) == before
    with pytest.raises(ValueError, match="in the batch twice"):
        policy.update([*batch, batch[0]], loss=[*losses, 0.5])
    with pytest.raises(ValueError, match=r"loss 2\.0 is outside"):
        policy.learn(batch, loss=[*losses[1:], 2.0])
    with pytest.raises(ValueError, match="must be a number"):
        policy.learn(batch, loss=[*losses[1:], "much"])  # type: ignore[list-item]
    assert snapshot(policy) == before


def test_rewards_in_a_large_batch_are_rescaled_as_single_ones_are() -> None:
    rewards = [*np.random.default_rng(1).uniform(0.1, 0.7, size=200).tolist(), 0.1, 0.7]
    single = [checked_loss(reward, is_reward=True, reward_range=(0.1, 0.7)) for reward in rewards]
    assert checked_losses(rewards, is_reward=True, reward_range=(0.1, 0.7)).tolist() == single
    plain = [checked_loss(reward, is_reward=True, reward_range=None) for reward in rewards]
    assert checked_losses(rewards, is_reward=True, reward_range=None).tolist() == plain


@pytest.mark.parametrize("many", [["0.5"] * 20, [0.5] * 19 + ["0.5"], np.array(["1", "0"] * 10, dtype=object)])
def test_texts_are_no_numbers_however_many(many: object) -> None:
    with pytest.raises(ValueError, match="reward must be a number; got "):
        checked_losses(many, is_reward=True, reward_range=(0.0, 1.0))


def test_feedback_may_be_late_lost_or_never_come() -> None:
    policy = make()
    first = policy.act(0)
    play(policy, 20)
    third = policy.act(1)
    assert policy.open_rounds == 2
    assert policy.expire(before=third.round) == 1
    with pytest.raises(ValueError, match="round 1 was answered or has expired"):
        policy.update(first, loss=0.0)
    policy.update(third, loss=0.0)
    assert (policy.open_rounds, policy.updates, policy.rounds) == (0, 21, 22)


def test_rewards_are_rescaled_to_losses() -> None:
    problem = random_problem(3, reward_range=(0.0, 1.0))
    policies = [bw.LCTsallisINF(tuning="matched").start(problem, rng=1) for _ in range(2)]
    for policy, feedback in zip(policies, ({"reward": 0.25}, {"loss": 0.5}), strict=True):
        policy.update(policy.act(0), **feedback)
    assert policies[0].probabilities().tolist() == policies[1].probabilities().tolist()


def test_rescaling_never_leaves_the_unit_interval_by_rounding() -> None:
    policy = make(reward_range=(0.1, 0.7))
    for reward in (0.1, 0.7):
        policy.update(policy.act(0), reward=reward)
    assert policy.updates == 2


@pytest.mark.parametrize(
    ("feedback", "words"),
    [
        ({"loss": 1.5}, r"loss 1.5 is outside \[-1, 1\].*reward_range"),
        ({"loss": float("nan")}, "loss nan"),
        ({"reward": float("inf")}, "reward inf"),
        ({"loss": "much"}, "must be a number"),
        ({"reward": "1"}, "reward must be a number; got '1'"),
        ({"loss": 10**400}, "must be a number"),
        ({}, "either loss= or reward="),
        ({"loss": 0.0, "reward": 0.0}, "either loss= or reward="),
    ],
)
def test_bad_feedback_is_refused_and_changes_nothing(feedback: dict[str, object], words: str) -> None:
    policy = make()
    decision = policy.act("noon")
    before = snapshot(policy)
    with pytest.raises(ValueError, match=words):
        policy.update(decision, **feedback)  # type: ignore[arg-type]
    assert snapshot(policy) == before
    policy.update(decision, loss=0.0)


def test_a_reward_outside_its_range_names_the_range() -> None:
    policy = make(reward_range=(0.0, 10.0))
    with pytest.raises(ValueError, match=r"reward -1.0 is outside \[0, 10\]"):
        policy.update(policy.act(0), reward=-1)


def test_wrong_decisions_are_refused_and_change_nothing() -> None:
    policy, other = make(), make()
    decision, foreign = policy.act("noon"), other.act("noon")
    spoilt = decision._replace(direction=np.array([1.0, np.nan, 0.0]))
    short = decision._replace(direction=np.zeros(2))
    elsewhere = decision._replace(context=9)
    future = decision._replace(round=99)
    based = decision._replace(baseline=np.zeros(3))
    before = snapshot(policy)
    cases = [
        (foreign, "policy"),
        (spoilt, "damaged"),
        (short, "damaged"),
        (elsewhere, "no context 9"),
        (future, "never decided"),
        (based, "baseline"),
        ([decision, decision], "twice"),
    ]
    for wrong, words in cases:
        with pytest.raises(ValueError, match=words):
            policy.update(wrong, loss=[0.0, 0.0] if isinstance(wrong, list) else 0.0)  # type: ignore[arg-type]
        assert snapshot(policy) == before
    policy.update(decision, loss=0.0)
    with pytest.raises(ValueError, match="each decision takes feedback once"):
        policy.update(decision, loss=0.0)


def test_mistaken_calls_say_what_was_meant() -> None:
    policy = make()
    decisions = policy.act([0, 1])
    before = snapshot(policy)
    with pytest.raises(ValueError, match="needs as many values"):
        policy.update(decisions, loss=0.3)
    with pytest.raises(ValueError, match=r"Decision\.from_dict"):
        policy.update(decisions[0].to_dict(), loss=0.3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="number of a round"):
        policy.expire(before=2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a context is a name"):
        policy.act(np.array(1))
    assert snapshot(policy) == before


@pytest.mark.parametrize("count", [3, 40])
def test_values_under_a_mask_are_no_values(count: int) -> None:
    """Few are checked one by one, many as an array, which has a number under the mask."""
    policy = make()
    batch = policy.act([0] * count)
    before = snapshot(policy)
    hidden = np.ma.masked_less(np.append(np.zeros(count - 1, dtype=int), -1), 0)
    with pytest.raises(ValueError, match="loss nan"):
        policy.update(batch, loss=hidden)
    assert snapshot(policy) == before


def test_values_without_an_order_are_not_taken_for_those_of_a_batch() -> None:
    """A dictionary would be read by its keys, a set in any order, and a word letter by letter."""
    policy = make()
    batch = policy.act([0, 1])
    before = snapshot(policy)
    for values in ({0: 0.3, 1: 0.9}, {0.3, 0.9}, "01", b"01"):
        with pytest.raises(ValueError, match="in the same order"):
            policy.update(batch, reward=values)  # type: ignore[arg-type]
    assert snapshot(policy) == before


@pytest.mark.parametrize("wrong", [None, 5, ["a", "b"], [[0.5]], "visit"])
def test_what_is_no_decision_is_refused_with_a_sentence(wrong: Any) -> None:
    policy = make()
    for call in (policy.update, policy.learn):
        with pytest.raises(ValueError, match="as returned by act"):
            call(wrong, loss=[0.0, 0.0])
    with pytest.raises(ValueError, match="as returned by act"):
        policy.learn(policy.act(0), loss=[0.0])  # type: ignore[arg-type]


def test_an_invalid_value_in_a_batch_stops_the_whole_batch() -> None:
    policy = make()
    batch = policy.act([0, 1, 2])
    before = snapshot(policy)
    for losses, words in (([0.0, 0.0, 2.0], "outside"), ([0.0], "a batch of 3 decisions needs as many values")):
        with pytest.raises(ValueError, match=words):
            policy.update(batch, loss=losses)
        assert snapshot(policy) == before
    policy.update([], loss=[])
    assert snapshot(policy) == before


@pytest.mark.parametrize("context", ["dawn", 4, -1, 1.5, None])
def test_unknown_contexts_are_refused(context: object) -> None:
    policy = make()
    with pytest.raises(ValueError, match="context"):
        policy.act(context)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="unknown context 'dawn'; the contexts are 'morning'"):
        policy.act(["noon", "dawn"])
    assert policy.rounds == 0


def test_a_singular_covariance_is_an_error_that_changes_nothing() -> None:
    policy = bw.LCTsallisINF(tuning="paper").start(random_problem(4, S=1, contexts=["only"]), rng=0)
    decision = policy.act(0)
    living(policy).t[...] = 1e100  # with next to no exploration
    living(policy).theta[...] = 1e200 * np.array([1.0, 2.0, 3.0])
    before = snapshot(policy)
    with pytest.raises(bw.NumericalError, match=r"at t = 1\d{100} \(condition number .*'only'"):
        policy.update(decision, loss=1.0)
    assert snapshot(policy) == before


def test_overflowing_estimates_are_an_error() -> None:
    policy = make("paper")
    decision = policy.act(0)
    living(policy).theta[...] = np.inf
    with pytest.raises(bw.NumericalError, match="no longer finite"):
        policy.update(decision, loss=1.0)


@pytest.mark.parametrize("tuning", TUNINGS)
def test_what_no_plan_can_have_decided_is_refused(tuning: str) -> None:
    """<z, direction> is a leverage: at most 1/(g(x) pi(a|x)), for every plan that this policy ever had."""
    policy = make(tuning)
    play(policy, 30)
    decision = policy.act("noon")
    z, direction = coordinates(policy)[1, decision.arm], decision.direction
    most = 1.0 / (policy.problem.probabilities[1] * decision.propensity)
    before = snapshot(policy)
    for wrong in (
        decision._replace(direction=np.full(3, 1e308)),
        decision._replace(direction=direction + 1e105 * np.cross(z, [1.0, 2.0, 3.0])),
        decision._replace(direction=-direction),
        decision._replace(direction=direction + (1.05 * most - z @ direction) * z / (z @ z)),
        decision._replace(propensity=0.0),
        decision._replace(propensity=1.5),
        decision._replace(propensity=float("nan")),
    ):
        line = json.loads(json.dumps(wrong.to_dict()))
        with pytest.raises(ValueError, match="damaged: no plan"):
            policy.update(bw.Decision.from_dict(line), loss=0.5)
        with pytest.raises(ValueError, match="damaged"):
            policy.update([wrong], loss=[0.5])
        assert snapshot(policy) == before
    policy.update(decision, loss=0.5)


def test_arms_not_offered_are_never_chosen() -> None:
    available = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 0]], dtype=bool)
    for tuning in TUNINGS:
        policy = make(tuning, available=available)
        play(policy, 100)
        table = policy.probabilities()
        assert table[~available].tolist() == [0.0] * 4
        assert table.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-14)
        assert all(available[d.context, d.arm] for d in policy.act([0, 1, 2, 3] * 50))


def test_arms_not_offered_equal_a_problem_without_them() -> None:
    problem = random_problem(5, S=3, K=3)
    available = np.ones((3, 3), dtype=bool)
    available[:, 1] = False
    kept = bw.Problem(features=problem.features[:, [0, 2]], probabilities=problem.probabilities)
    masked = bw.Problem(features=problem.features, probabilities=problem.probabilities, available=available)
    small = bw.LCTsallisINF(tuning="certified").start(kept, rng=0)
    large = bw.LCTsallisINF(tuning="certified").start(masked, rng=0)
    # The cap of eta_t does not know K, so in the first rounds both policies have the same rate.
    for policy in (small, large):
        offered = policy.problem.available
        losses = policy.problem.features[offered] @ np.array([300.0, -200.0, 100.0])
        policy.state.theta[...] = np.linalg.lstsq(coordinates(policy)[offered], losses, rcond=None)[0]
        policy._learner_state.refresh()
    assert large.state.rates == pytest.approx(small.state.rates, rel=1e-12)
    assert large.probabilities()[:, 1].tolist() == [0.0, 0.0, 0.0]
    assert large.probabilities()[:, [0, 2]] == pytest.approx(small.probabilities(), rel=1e-9)


def test_a_policy_has_few_attributes() -> None:
    """With more than 29, CPython 3.11 takes half as long again to find any of them: 8 % of act, 12 % with update."""
    assert len(vars(bw.LinUCB().start(random_problem(), rng=7, interpreted=True))) <= 29
