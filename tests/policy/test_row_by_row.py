"""Observations that arrive together: the default rule learns each with the plan that the one before it led to."""

from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.lc_tsallis import loss_prediction, matched_kernel, paper
from bothworlds.errors import NumericalError
from bothworlds.kernels.contract import Play
from bothworlds.kernels.exact_ftrl import exact_direction
from bothworlds.kernels.status import NOT_POSITIVE
from bothworlds.logs import Log, LogLearner, Reward, row_of
from bothworlds.policy.feedback import DecisionBatch
from bothworlds.simulation.replication import Replications
from bothworlds.simulation.setting import make_setting
from support.problems import bits, play, random_problem, records

MATCHED, CERTIFIED = bw.LCTsallisINF(), bw.LCTsallisINF(tuning="certified")
PROBLEM = random_problem(3, S=9, K=3, d=3)
PLAYED = ("context", "arm", "propensity")
WAYS = ["list", "columns", "learn", "decisions of a plan"]


@pytest.fixture(autouse=True)
def _in_this_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def feed(policy: bw.Policy, batch: list[bw.Decision], losses: list[float], way: str) -> None:
    """Let a policy learn from a batch at once."""
    if way == "decisions of a plan":
        contexts, arms, propensities = (np.array([getattr(d, name) for d in batch]) for name in PLAYED)
        directions = np.array([d.direction for d in batch])
        baselines = np.array([[] if d.baseline is None else d.baseline for d in batch])
        policy.learn(DecisionBatch(contexts, arms, propensities, directions, baselines), loss=losses)
    elif way == "learn":
        policy.learn(batch, loss=losses)
    else:
        policy.update(batch, loss=losses)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rounds", [0, 300])
def test_a_batch_has_the_bits_of_its_rows_one_after_the_other(
    way: str, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state and the plan; decisions carry direction and baseline of the plan that made them."""
    monkeypatch.setattr("bothworlds.policy.batch_feedback.FEW", 1000 if way == "list" else 1)
    policy = MATCHED.start(PROBLEM, rng=7)
    play(policy, rounds)
    batch = policy.act([i % 9 for i in range(25)])
    losses = np.random.default_rng(1).uniform(-1, 1, size=25).tolist()
    assert len({decision.baseline.tobytes() for decision in batch if decision.baseline is not None}) == 1
    policy.save("before.npz")
    single, together, reordered = (bw.load("before.npz") for _ in range(3))
    for decision, loss in zip(batch, losses, strict=True):
        single.update(decision, loss=loss)
    feed(together, batch, losses, way)
    assert bits(together) == bits(single)
    assert together.digest == single.digest
    feed(reordered, batch[::-1], losses[::-1], way)
    assert reordered.digest != single.digest


def test_a_log_is_learned_row_by_row_whatever_the_size_of_a_batch() -> None:
    policy, log, found = MATCHED.start(PROBLEM, rng=1), Log("visits.jsonl"), []
    policy.save("start.npz")
    plan = policy.plan()
    for i in range(30):
        made = plan.act(i % 9, id=f"visit {i}")
        log.append(row_of(made, plan, time=1.0), Reward(id=made.id, time=2.0, reward=float(i % 3) - 1.0))
    text = log.path.read_bytes()
    for size in (1, 7, 30):
        log.path.write_bytes(text)
        again: Any = bw.load("start.npz")
        assert LogLearner(again, log, batch_size=size).catch_up() == 30
        found.append((again.digest, bits(again)))
    assert found[0] == found[1] == found[2]


def counted(monkeypatch: pytest.MonkeyPatch, module: Any) -> list[int]:
    """Count the plans that a module computes in interpreted code: each begins with a look at Theta."""
    plans, look = [0], module.all_finite

    def counting(values: Any) -> bool:
        plans[0] += 1
        return bool(look(values))

    monkeypatch.setattr(module, "all_finite", counting)
    return plans


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("algorithm", "module", "count"), [(MATCHED, matched_kernel, 12), (CERTIFIED, paper, 1)])
def test_other_rules_compute_one_plan_for_a_batch(
    way: str, algorithm: Any, module: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bothworlds.policy.batch_feedback.FEW", 1000 if way == "list" else 1)
    policy = algorithm.start(PROBLEM, rng=7, interpreted=True)
    batch = policy.act([i % 9 for i in range(12)])
    plans = counted(monkeypatch, module)
    feed(policy, batch, [0.5] * 12, way)
    assert plans[0] == count


@pytest.mark.parametrize("failing", [3, 12])
@pytest.mark.parametrize("way", WAYS)
def test_a_plan_that_fails_within_a_batch_changes_nothing(
    way: str, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bothworlds.policy.batch_feedback.FEW", 1000 if way == "list" else 1)
    policy = MATCHED.start(PROBLEM, rng=7, interpreted=True)
    play(policy, 5)
    batch, losses = policy.act([i % 9 for i in range(12)]), [0.5] * 12
    before, bits_before, open_before = policy.digest, bits(policy), policy.open_rounds
    regress, calls = loss_prediction.regress, [0]

    def fails(state: Any, work: Any) -> int:
        calls[0] += 1
        return NOT_POSITIVE if calls[0] == failing else int(regress(state, work))

    with monkeypatch.context() as patch:
        patch.setattr(matched_kernel, "regress", fails)
        with pytest.raises(NumericalError, match="not positive definite"):
            feed(policy, batch, losses, way)
    assert calls[0] == failing
    assert (policy.digest, bits(policy), policy.open_rounds) == (before, bits_before, open_before)
    feed(policy, batch, losses, way)
    assert policy.updates == 17


@pytest.mark.parametrize("place", [0, 5, 11])
@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_row_within_a_batch_changes_nothing(way: str, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.policy.batch_feedback.FEW", 1000 if way == "list" else 1)
    policy = MATCHED.start(PROBLEM, rng=7)
    play(policy, 5)
    batch = policy.act([i % 9 for i in range(12)])
    before = policy.digest, bits(policy)
    batch[place] = batch[place]._replace(direction=-batch[place].direction)
    with pytest.raises(ValueError, match="damaged"):
        feed(policy, batch, [0.5] * 12, way)
    assert (policy.digest, bits(policy)) == before


class ByHand:
    """A learner in kernel memory that plays what a replication has played, and learns when told to."""

    def __init__(self, algorithm: Any, problem: bw.Problem) -> None:
        self.machine = algorithm.machine(problem)
        self.state, self.work, self.sizes = records(self.machine)
        self.plan()

    def plan(self) -> None:
        """Compute the plan."""
        machine = self.machine
        assert machine.kernel.refresh(machine.known, machine.options, self.state, self.work) == 0

    def decide(self, x: int, a: int) -> Any:
        """Return what the decision for an arm carries."""
        lengths = self.machine.carried
        carried = self.machine.kernel.carried_of(*(np.zeros(length) for length in lengths), self.sizes)
        exact_direction(self.machine.known, self.state, self.work, x, a, carried.direction)
        if lengths[1]:
            carried.baseline[...] = self.state.baseline
        return carried

    def learn(self, play: Play, carried: Any) -> None:
        """Learn from one observation."""
        self.machine.kernel.learn(self.machine.known, self.machine.options, self.state, play, carried)


def sure_world() -> en.Environment:
    """Losses are -1 or 1, without noise."""
    features = np.zeros((2, 3, 3))
    features[:, :, :] = np.eye(3)
    features[1] = np.roll(np.eye(3), 1, axis=0)
    problem = bw.Problem(features=features, probabilities=[0.4, 0.6])
    return en.alternating(problem, [np.array([1.0, -1.0, 1.0]), np.array([-1.0, 1.0, 1.0])], every=40)


@pytest.mark.parametrize(("delay", "batch"), [(0, 5), (4, 1), (3, 4)])
@pytest.mark.parametrize("algorithm", [MATCHED, CERTIFIED], ids=["matched", "certified"])
@pytest.mark.parametrize("count", [1, 8])
def test_simulated_batches_are_rows_one_after_the_other(algorithm: Any, delay: int, batch: int, count: int) -> None:
    """Played again in kernel memory, the default with a plan after each row, and certified with one after the last.

    Alone and in lanes; final states are the same bit for bit.
    """
    world, horizon = sure_world(), 157
    setting = make_setting(world, horizon=horizon, rng=4, checkpoints=10, delay=delay, batch=batch)
    machine = algorithm.machine(world.problem)
    runs = Replications(machine, setting, range(count), trace=True)
    runs.advance(horizon)
    for outcome in runs.outcomes()[:2]:
        ours, waiting = ByHand(algorithm, world.problem), []
        for t, (x, a) in enumerate(outcome.trace.tolist(), start=1):
            loss = loss_at(world, t, x, a)
            waiting.append((Play(x, a, loss), ours.decide(x, a)))
            due = len(waiting) - delay
            if due < batch:
                continue
            for number in range(due):
                ours.learn(*waiting.pop(0))
                if machine.kernel.row_by_row or number == due - 1:
                    ours.plan()
        for name, values in outcome.final.items():
            np.testing.assert_array_equal(ours.state._asdict()[name].reshape(values.shape), values, err_msg=name)


def loss_at(world: en.Environment, t: int, x: int, a: int) -> float:
    """Return the loss of an arm in round t, which is sure."""
    return float(world.tables[((t - 1) // 40) % 2][x, a])
