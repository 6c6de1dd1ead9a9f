"""One running experiment: its policy and plan, its queue of rewards, and how they are restored from a store."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bothworlds.loading import load_with_spec, spec_of
from bothworlds.policy import Policy
from bothworlds.policy.decision import Decision
from bothworlds.policy.feedback import DecisionBatch
from bothworlds.policy.ids import parts_of
from bothworlds.policy.plan import Plan
from bothworlds.policy.spec import PolicySpec, problem_of
from bothworlds.problem import Problem
from bothworlds.problem.file_format import read_arrays, undamaged
from bothworlds.service.batch_decide import numbers
from bothworlds.service.records import (
    MARKS,
    DecisionBody,
    Frame,
    Kind,
    Snapshot,
    unpacked,
)
from bothworlds.service.reward_events import (
    Learned,
    RewardEvent,
    events_between,
    read_ordered_events,
    read_reward_events,
)
from bothworlds.service.settings import ExperimentSettings
from bothworlds.service.store import Store
from bothworlds.service.window_clock import WindowClock

KEPT_PLANS, KEPT_NUMBERS = 256, 1_000_000  # earlier plans, and the probabilities in them, of an experiment


class Batch(NamedTuple):
    """Rewards to learn together, and what is learned after them (see `Versioned`)."""

    events: list[RewardEvent]
    through: int
    ordered_through: int


@dataclass(eq=False)
class Experiment:
    """A running experiment.

    Only the trainer thread uses ``policy``; any thread may read ``plan``, which the writer thread replaces.

    ``through``, ``ordered_through``, ``queued_through`` and ``expired_through`` are sequence numbers in the log: up to
    the first two, rewards are learned (see `Versioned`); up to the others, rewards are in the queue ``waiting``, and
    reward windows are closed. If rewards are learned in the order of their decisions, the queue is empty, and
    ``unread`` is the number of rewards since the log was last searched for the next ones. ``unsaved`` counts the
    rewards learned since the last snapshot. ``failure`` describes a failure of the trainer thread until ``failed_step``
    succeeds again; with ``needs_recovery``, the log may not lead to ``policy``, which must be restored from the store.
    ``slowest_step`` is in seconds, of those that learned since the last change, None before the first. ``shared``:
    other hosts decide, too, so that rewards are fetched from the store. ``trained``: a trainer thread of this process
    uses ``policy``. ``plans`` has some earlier plans by version.
    """

    name: str
    number: int
    settings: ExperimentSettings
    policy: Policy
    plan: Plan
    through: int = 0
    ordered_through: int = 0
    unread: int = 0
    waiting: list[RewardEvent] = field(default_factory=list)
    queued_through: int = 0
    unsaved: int = 0
    expired_through: int = 0
    failure: str | None = None
    failed_step: str = ""
    needs_recovery: bool = False
    slowest_step: float | None = None
    closed_fingerprints: frozenset[str] = frozenset()
    shared: bool = False
    trained: bool = True
    plans: dict[int, Plan] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    clock: WindowClock = field(default_factory=WindowClock)

    @property
    def cursor(self) -> str:
        """Name of the note in the store that holds ``expired_through``."""
        return f"expired {self.number}"

    @property
    def unlearned(self) -> int:
        """Number of rewards that may be learned now."""
        return len(self.waiting) + self.unread

    def take(self, store: Store, most: int) -> Batch:
        """Return the next rewards to learn, and what is learned after them."""
        if not self.settings.in_order:
            with self.lock:
                batch, self.waiting = self.waiting[:most], self.waiting[most:]
            return Batch(batch, max(self.through, *(event.seq for event in batch[-1:]), 0), self.ordered_through)
        if not self.unread:
            return Batch([], self.through, self.ordered_through)
        self.unread = 0
        events, through, more = read_ordered_events(store, self.number, self, most=most)
        self.unread += most if more else 0
        return Batch(events, self.through, through)

    def enqueue(self, events: Sequence[RewardEvent]) -> None:
        """Add stored rewards, in log order; those already read from the store are skipped."""
        if self.shared:
            return
        if self.settings.in_order:
            self.unread += len(events)
            return
        with self.lock:
            self.waiting += [event for event in events if event.seq > self.queued_through]
            self.queued_through = max(self.queued_through, events[-1].seq)

    def fetch(self, store: Store, *, most: int, last: int) -> None:
        """Add the next rewards of all hosts, so that at most ``most`` wait; ``last`` is the end of the log."""
        if self.settings.in_order:
            self.unread, self.queued_through = max(self.unread, 1), last
            return
        after, room, active = self.queued_through, most - len(self.waiting), self.ordered_through
        rewards = read_reward_events(store, self.number, after=after, through=last, active_after=active)
        events = list(islice(rewards, max(room, 0)))
        with self.lock:
            self.waiting += events
            self.queued_through = last if len(events) < room else max(after, *(event.seq for event in events[-1:]))

    def advance(self, plan: Plan) -> None:
        """Decide with a plan from now on, unless the current one is newer."""
        with self.lock:
            if plan.version >= self.plan.version:
                self._keep(self.plan)
                self.plan = plan

    def earlier_plan(self, version: int) -> Plan | None:
        """Return the current plan or an earlier one, if it is kept."""
        with self.lock:
            return self.plan if self.plan.version == version else self.plans.get(version)

    def keep_plan(self, plan: Plan) -> None:
        """Keep an earlier plan for a while."""
        with self.lock:
            self._keep(plan)

    def _keep(self, plan: Plan) -> None:
        self.plans.pop(plan.version, None)
        self.plans[plan.version] = plan
        table = plan.problem.n_contexts * plan.problem.n_arms
        while len(self.plans) > max(1, min(KEPT_PLANS, KEPT_NUMBERS // table)):
            del self.plans[next(iter(self.plans))]

    def show(self, policy: Policy) -> None:
        """Take a policy whose problem is newer, on a host where no trainer thread uses it."""
        if not self.trained:
            self.policy = policy

    def requeue(self, store: Store) -> None:
        """Replace the queue by the rewards in the store that are not learned yet."""
        if self.settings.in_order:
            self.unread = 1
            return
        if self.shared:  # they are fetched
            with self.lock:
                self.waiting, self.queued_through = [], self.through
            return
        with self.lock:
            unlearned = read_reward_events(store, self.number, after=self.through, active_after=self.ordered_through)
            self.waiting = list(unlearned)
            self.queued_through = max(self.through, *(event.seq for event in self.waiting[-1:]), 0)


def to_decision(name: str, body: DecisionBody, policy: Policy) -> Decision:
    """Return a stored decision as the policy's feedback takes it."""
    listing = policy.listing(body)
    source, number = parts_of(name)
    return Decision(
        number,
        listing.context_index(body.context),
        body.context,
        listing.arms.index(body.arm),
        body.arm,
        body.propensity,
        numbers(body.direction),
        None if body.baseline is None else numbers(body.baseline),
        policy.name,
        source,
        body.version,
        body.holdout,
        body.fingerprint,
    )


def learn(policy: Policy, events: list[RewardEvent]) -> None:
    """Learn rewards as one batch."""
    spec = policy.plan().spec
    if {event.decision.fingerprint for event in events} != {spec.short_fingerprint}:
        batch = [to_decision(event.id, event.decision, policy) for event in events]
        policy.learn(batch, reward=[event.reward for event in events])
        return
    learned = [event for event in events if not event.decision.holdout]
    held_out = [event for event in events if event.decision.holdout]
    if held_out:  # only counted
        batch = [to_decision(event.id, event.decision, policy) for event in held_out]
        policy.learn(batch, reward=[event.reward for event in held_out])
    if learned:
        columns = to_batch([event.decision for event in learned], spec)
        policy.learn(columns, reward=[event.reward for event in learned])


def to_batch(bodies: list[DecisionBody], spec: PolicySpec) -> DecisionBatch:
    """Return decisions of one spec as columns; none may belong to the holdout.

    Raises
    ------
    ValueError
        If a decision does not fit the spec.
    """
    contexts, arms = spec.numbered
    lengths = *spec.carried[:1], spec.carried[1] * spec.has_baseline
    vectors = [body.direction for body in bodies], [body.baseline or b"" for body in bodies]
    for parts, length in zip(vectors, lengths, strict=True):
        if {len(part) for part in parts} != {8 * length}:
            raise ValueError(f"a decision in the store is damaged: its vectors must have {length} numbers")
    directions, baselines = (numbers(b"".join(parts)).reshape(len(bodies), -1) for parts in vectors)
    return DecisionBatch(
        np.array(indices_of(contexts, [body.context for body in bodies])),
        np.array(indices_of(arms, [body.arm for body in bodies])),
        np.array([body.propensity for body in bodies]),
        directions,
        baselines if spec.has_baseline else np.zeros((len(bodies), spec.carried[1])),
    )


def indices_of(index: Mapping[str, int], names: Iterable[str]) -> list[int]:
    """Return the indices of contexts or arms; an unknown name is a ValueError, as the store is damaged."""
    try:
        return [index[name] for name in names]
    except KeyError as error:
        raise ValueError(f"a decision in the store is damaged: there is no context or arm {error}") from None


def restarts_of(plan: Plan) -> int:
    """Return how often the algorithm of a plan restarted because the world had changed."""
    return 0 if plan.restarts is None else plan.restarts.number


def warm_plan(policy: Policy) -> Plan:
    """Return the current plan with its lazy values computed."""
    plan = policy.plan()
    plan.probability_bytes(0)
    assert plan.digest
    return plan


class Restored(NamedTuple):
    """A policy from the store, what it has learned (see `Versioned`), and the number of rewards replayed for that."""

    policy: Policy
    through: int
    ordered_through: int
    replayed: int


def restore(store: Store, number: int, *, version: int | None = None) -> Restored:
    """Restore the policy of an experiment from the newest readable snapshot and the log after it.

    ``version`` is the version to restore, by default the newest.
    """
    reason = ""
    for snapshot in store.snapshots(number):
        if version is not None and snapshot.version > version:
            continue
        try:
            policy = load_snapshot(store, snapshot)
            return replay_log(store, number, policy, snapshot, version)
        except ValueError as error:
            reason = reason or f": {error}"
    raise ValueError(f"no snapshot in the store is readable and leads to the versions in its log{reason}")


def replay_log(store: Store, number: int, policy: Policy, snapshot: Snapshot, version: int | None = None) -> Restored:
    """Replay the log after a snapshot, and check the digest of every version."""
    learned: Learned = snapshot
    count = 0
    for mark in store.marks(number, after=snapshot.end):
        body = unpacked(MARKS[mark.kind], mark.body)
        if body.version <= snapshot.version:
            continue
        if version is not None and body.version > version:
            break
        events = events_between(store, number, learned, body)
        policy = apply_mark(
            policy,
            mark.kind,
            body,
            learn_rewards=partial(learn, events=events),
            restore_version=lambda to: restore(store, number, version=to).policy,
        )
        learned, count = body, count + len(events)
    return Restored(policy, learned.through, learned.ordered_through, count)


def apply_mark(
    policy: Policy,
    kind: int,
    body: Any,
    *,
    learn_rewards: Callable[[Policy], None],
    restore_version: Callable[[int], Policy],
) -> Policy:
    """Repeat what a mark of the log records, and check version and digest.

    ``learn_rewards`` learns the rewards before the mark; ``restore_version`` returns the policy of an earlier version.
    """
    if kind == Kind.ROLLBACK:
        policy = restore_version(body.to)
        policy.renumber(body.version)
    elif kind == Kind.CHANGE:
        policy.change(problem_in(body.problem), trust=body.trust, fresh=body.fresh)
    elif kind == Kind.HOLDOUT:
        policy.change_holdout(body.holdout)
    elif kind == Kind.ALGORITHM:
        policy.change_algorithm(algorithm_in(body.algorithm))
    elif kind == Kind.WINDOW:
        policy.renumber(body.version)
    else:
        learn_rewards(policy)
    if (policy.version, policy.digest) != (body.version, body.digest):
        raise ValueError(
            f"the log leads to version {policy.version} with digest {policy.digest}, but records version "
            f"{body.version} with {body.digest}: it was changed, or written by another version of the library"
        )
    return policy


def snapshot_of(policy: Policy, number: int, learned: Learned | None = None) -> Snapshot:
    """Return a snapshot of a policy; ``learned`` says what it has learned, None for nothing."""
    plan = policy.plan()
    content = as_bytes(lambda path: policy.save(path, frame=False))
    through, ordered = (0, 0) if learned is None else (learned.through, learned.ordered_through)
    return Snapshot(number, policy.version, through, plan.digest, plan.spec.fingerprint, content, ordered, time.time())


def frame_of(policy: Policy) -> Frame:
    """Return what all snapshots of the policy's spec share."""
    return Frame(policy.plan().spec.fingerprint, as_bytes(lambda path: policy.save(path)))


@lru_cache(maxsize=1)
def _spec_in(frame: bytes) -> tuple[str, PolicySpec]:
    """Return fingerprint and spec in a frame; cached, as consecutive snapshots share their frame."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.npz"
        path.write_bytes(frame)
        header, arrays = read_arrays(path)
        with undamaged(path):
            return header["fingerprint"], spec_of(header, arrays)


def load_snapshot(store: Store, snapshot: Snapshot) -> Policy:
    """Return the policy in a snapshot; a damaged one is a ValueError."""
    fingerprint, spec = _spec_in(store.frame(snapshot.fingerprint))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.npz"
        path.write_bytes(store.content(snapshot))
        policy = load_with_spec(path, fingerprint, spec)
    if (policy.version, policy.digest) != (snapshot.version, snapshot.digest):
        raise ValueError(
            f"the snapshot of version {snapshot.version} is damaged, or was written by a version of the library whose "
            "algorithm differs: use that version, or export the log (bothworlds service export) and start a new store"
        )
    return policy


def problem_of_snapshot(store: Store, snapshot: Snapshot) -> tuple[str, Problem]:
    """Return policy name and problem of a snapshot without loading its algorithm."""
    with tempfile.TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.npz"
        frame.write_bytes(store.frame(snapshot.fingerprint))
        header, arrays = read_arrays(frame)
    return str(header["name"]), problem_of(header, arrays)


def as_bytes(save: Callable[[Path], None]) -> bytes:
    """Return the bytes that ``save`` writes to an .npz file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "content.npz"
        save(path)
        return path.read_bytes()


def problem_in(content: bytes) -> Problem:
    """Return the problem in the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        path.write_bytes(content)
        return Problem.load(path)


def algorithm_in(content: bytes) -> Any:
    """Return the algorithm of a table in JSON."""
    from bothworlds.algorithms.registry import make_algorithm  # not needed to read a store

    return make_algorithm(msgspec.json.decode(content))
