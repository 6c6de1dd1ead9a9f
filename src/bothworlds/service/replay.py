"""Replay a segment of the log and check that it leads to the same decisions and plans."""

import contextlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Ints
from bothworlds.policy import Policy
from bothworlds.policy.feedback import DecisionBatch
from bothworlds.policy.plan import Plan
from bothworlds.service.batch_decide import decision_bodies, decision_body
from bothworlds.service.experiment import (
    apply_mark,
    indices_of,
    learn,
    load_snapshot,
    restarts_of,
    restore,
    to_batch,
    warm_plan,
)
from bothworlds.service.records import (
    DECISION,
    MARKS,
    REWARD,
    DecisionBody,
    DecisionHead,
    RewardBody,
    Snapshot,
    Versioned,
    all_unpacked,
    packed,
    unpacked,
)
from bothworlds.service.reward_events import Learned, RewardEvent, events_between
from bothworlds.service.store import Row, Store, erased_version_key

HOLDOUT, ABSENT = -1, -2  # in place of the number of a decision
MOST_FAULTS = 20  # printed
EARLIER_PLANS = 64  # kept: hosts decide with an earlier plan until they have the newest one


class LogSegment(NamedTuple):
    """The records of one experiment after ``first`` and up to ``last``, between two snapshots or up to the end."""

    path: str
    experiment: int
    begin: Snapshot
    end: Snapshot | None
    first: int
    last: int


@dataclass
class VerifyReport:
    """Counts of what was recomputed, and a description of every difference from the log.

    ``erased_through`` is the version through which rewarded decisions were erased, 0 if none were.
    """

    decisions: int = 0
    rewards: int = 0
    versions: int = 0
    segments: int = 0
    erased_through: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: "VerifyReport") -> None:
        """Add the report of another segment."""
        self.decisions += other.decisions
        self.rewards += other.rewards
        self.versions += other.versions
        self.segments += other.segments
        self.faults += other.faults

    def __str__(self) -> str:
        counts = f"{self.decisions:,} decisions, {self.rewards:,} rewards, {self.versions:,} versions"
        if self.erased_through:
            counts += f" after version {self.erased_through}, through which rewarded decisions were erased"
        if not self.faults:
            return f"verified: {counts}, all equal to the log, bit for bit"
        return "\n".join([f"not verified: {counts}, and", *self.faults[:MOST_FAULTS]])


class PendingDecisions:
    """Ring buffer of the newest ``size`` decisions of one spec that have no reward yet.

    ``carried`` are the lengths of a decision's direction and baseline. Decisions are numbered in order; number modulo
    ``size`` is the slot. Older decisions are missing and must be read from the store.

    >>> pending = PendingDecisions((1, 0), size=2)
    >>> three = DecisionBatch(np.arange(3), np.zeros(3, int), np.ones(3), np.ones((3, 1)), np.ones((3, 0)))
    >>> pending.put(["a", "b", "c"], three)
    >>> pending.missing(["a", "b", "c"])
    ['a']
    >>> pending.take(["c", "b"])[0].contexts.tolist()
    [2, 1]
    """

    def __init__(self, carried: tuple[int, int], *, size: int = 2**15) -> None:
        self._size, self._count = size, 0
        self._numbers: dict[str, int] = {}
        scalars = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.zeros(size)
        self._columns = DecisionBatch(*scalars, *(np.zeros((size, length)) for length in carried))

    def put(self, ids: Sequence[str], batch: DecisionBatch) -> None:
        """Add decisions."""
        numbers = range(self._count, self._count + len(ids))
        begin = numbers.start % self._size
        end = begin + len(ids)
        slots = slice(begin, end) if end <= self._size else np.arange(begin, end) % self._size
        for column, values in zip(self._columns, batch, strict=True):
            column[slots] = values
        self._numbers.update(zip(ids, numbers, strict=True))
        self._count = numbers.stop
        if len(self._numbers) > 2 * self._size:
            oldest = self._count - self._size
            self._numbers = {name: number for name, number in self._numbers.items() if number >= oldest}

    def put_holdout(self, ids: Sequence[str]) -> None:
        """Add decisions of the holdout; nothing is learned from them."""
        self._numbers.update(dict.fromkeys(ids, HOLDOUT))

    def missing(self, ids: Sequence[str]) -> list[str]:
        """Return which of these decisions are not in the buffer."""
        oldest, numbers = self._count - self._size, [self._numbers.get(name, ABSENT) for name in ids]
        if min(numbers, default=oldest) >= max(oldest, 0):
            return []
        return [
            name
            for name, number in zip(ids, numbers, strict=True)
            if number == ABSENT or (number < oldest and number != HOLDOUT)
        ]

    def take(self, ids: Sequence[str]) -> tuple[DecisionBatch, Ints]:
        """Remove decisions; return those outside the holdout, and their indices in ``ids``."""
        numbers = np.array([self._numbers.pop(name) for name in ids], dtype=np.int64)
        learned = np.flatnonzero(numbers != HOLDOUT)
        slots = numbers[learned] % self._size
        contexts, arms, propensities, directions, baselines = self._columns
        taken = contexts[slots], arms[slots], propensities[slots], directions[slots], baselines[slots]
        return DecisionBatch(*taken), learned


class SegmentReplay:
    """Replays one segment: the current policy and plan, what is learned, and the rewards that are not learned yet."""

    def __init__(self, store: Store, segment: LogSegment) -> None:
        self.store, self.segment, self.report = store, segment, VerifyReport(segments=1)
        self.learned: Learned = segment.begin
        self.rewards: list[Row] = []  # unless rewards are learned in the order of their decisions
        self.earlier: dict[int, Plan] = {}
        self.erased = store.note(erased_version_key(segment.experiment))

    def run(self) -> VerifyReport:
        """Replay the segment up to its end, or to the first version that differs from the log."""
        segment = self.segment
        try:
            self.policy = self._initial_policy()
            self._use_plan(warm_plan(self.policy), is_new_spec=True)
            for rows in self.store.blocks(segment.experiment, after=segment.begin.through, through=segment.first):
                self._keep(rows)
            for rows in self.store.blocks(segment.experiment, after=segment.first, through=segment.last):
                self._replay_rows(rows)
            end = segment.end
            if end is not None and (self.policy.version, self.policy.digest) != (end.version, end.digest):
                self.report.faults.append(f"the log does not lead to the snapshot of version {end.version}")
        except ValueError as error:
            self.report.faults.append(f"after version {segment.begin.version}: {error}")
        return self.report

    def _initial_policy(self) -> Policy:
        """Return the policy of the first snapshot; restore it if a running service has dropped the snapshot."""
        number, begin = self.segment.experiment, self.segment.begin
        try:
            return load_snapshot(self.store, begin)
        except ValueError:
            if begin in self.store.snapshots(number):
                raise
        policy = self._restore(begin.version)
        if (policy.version, policy.digest) != (begin.version, begin.digest):
            raise ValueError("the log does not lead to the snapshot with which the segment begins, since dropped")
        return policy

    def _use_plan(self, plan: Plan, *, is_new_spec: bool) -> None:
        """Decide with another plan; a new spec empties the buffer of pending decisions."""
        self.plan = self.earlier[plan.version] = plan
        if len(self.earlier) > EARLIER_PLANS:
            del self.earlier[min(self.earlier)]
        if is_new_spec:
            self.pending = PendingDecisions(plan.spec.carried)

    def _replay_rows(self, rows: list[Row]) -> None:
        """Replay records: those between two marks together, and each mark."""
        begin = 0
        for index in [index for index, row in enumerate(rows) if row[1] in MARKS]:
            self._replay_between_marks(rows[begin:index])
            self._replay_mark(rows[index][1], unpacked(MARKS[rows[index][1]], rows[index][3]))
            begin = index + 1
        self._replay_between_marks(rows[begin:])

    def _replay_between_marks(self, rows: list[Row]) -> None:
        """Repeat the decisions among records without a mark, and keep the rewards."""
        decisions = [(name, body) for _, kind, name, body in rows if kind == DECISION]
        bodies = dict(decisions)
        if len(bodies) < len(decisions) or None in bodies:
            names = [name for name, _ in decisions]
            twice = next(name for name in names if name is None or names.count(name) > 1)
            raise ValueError(f"decision {twice!r} has no id, or is in the log twice")
        self._check_decisions(bodies)  # type: ignore[arg-type]
        self.report.rewards += self._keep(rows)

    def _keep(self, rows: list[Row]) -> int:
        """Keep the rewards among records until they are learned; return their number."""
        rewards = [row for row in rows if row[1] == REWARD]
        if not self.learned.ordered_through:
            self.rewards += rewards
        return len(rewards)

    def _check_decisions(self, bodies: dict[str, bytes]) -> None:
        """Repeat decisions with their plans, compare their bodies, and keep those of the current plan for learning."""
        groups: dict[int, list[tuple[str, bytes, DecisionHead]]] = {}
        heads = all_unpacked(DecisionHead, bodies.values())
        for (name, body), head in zip(bodies.items(), heads, strict=True):
            groups.setdefault(head.version, []).append((name, body, head))
        for version, group in groups.items():
            if version < self.erased:  # what its plan had learned from is erased
                continue
            self.report.decisions += len(group)
            plan = self._plan_of(version)
            held_out = [plan.spec.holdout > 0.0 and plan.holds_out(name) for name, _, _ in group]
            self._check_holdout(plan, [one for one, held in zip(group, held_out, strict=True) if held])
            self._check_drawn(plan, [one for one, held in zip(group, held_out, strict=True) if not held])

    def _plan_of(self, version: int) -> Plan:
        """Return the plan of a version up to the current one, from the store if need be.

        For a version that no plan had by then, return the current plan: its decisions differ.
        """
        if version not in self.earlier and version < self.plan.version:
            with contextlib.suppress(ValueError):
                policy = self._restore(version)
                if policy.version == version:
                    self.earlier[version] = warm_plan(policy)
        return self.earlier.get(version, self.plan)

    def _check_holdout(self, plan: Plan, group: list[tuple[str, bytes, DecisionHead]]) -> None:
        for name, body, head in group:
            decision = plan.redecide(head.context, name)
            if packed(decision_body(decision, plan, head.request_hash, head.traceparent)) != body:
                self._report_decision(name, plan)
        self.pending.put_holdout([name for name, _, _ in group])

    def _check_drawn(self, plan: Plan, group: list[tuple[str, bytes, DecisionHead]]) -> None:
        if not group:
            return
        names, bodies, heads = (list(column) for column in zip(*group, strict=True))
        contexts = indices_of(plan.spec.numbered[0], [head.context for head in heads])
        batch = plan.redecide_batch(contexts, names)
        requests = [(head.request_hash, head.traceparent) for head in heads]
        repeated = [packed(body) for body in decision_bodies(plan, batch, requests)]
        if repeated != bodies:
            for name, body, stored in zip(names, repeated, bodies, strict=True):
                if body != stored:
                    self._report_decision(name, plan)
        if plan.spec.short_fingerprint == self.plan.spec.short_fingerprint:
            self.pending.put(names, batch)

    def _report_decision(self, name: str, plan: Plan) -> None:
        self.report.faults.append(f"decision {name!r} differs from what plan {plan.version} decides")

    def _replay_mark(self, kind: int, body: Any) -> None:
        names, rewards = self._next_rewards(body)

        def learn_rewards(policy: Policy) -> None:
            self._learn(policy, names, rewards)

        self.policy = apply_mark(self.policy, kind, body, learn_rewards=learn_rewards, restore_version=self._restore)
        plan = warm_plan(self.policy)
        if isinstance(body, Versioned) and body.restarts != restarts_of(plan):
            self.report.faults.append(f"version {body.version} is marked with {body.restarts} restarts, not its own")
        self._use_plan(plan, is_new_spec=plan.spec.short_fingerprint != self.plan.spec.short_fingerprint)
        self.report.versions += 1

    def _next_rewards(self, body: Learned) -> tuple[list[str], list[float]]:
        """Return the decisions whose rewards are learned in a version, and the rewards."""
        start, self.learned = self.learned, body
        if body.ordered_through:
            self.rewards = []
            events = events_between(self.store, self.segment.experiment, start, body)
            return [event.id for event in events], [event.reward for event in events]
        count = bisect_right(self.rewards, body.through, key=itemgetter(0))
        batch, self.rewards = self.rewards[:count], self.rewards[count:]
        bodies = all_unpacked(RewardBody, [row[3] for row in batch])
        return [str(row[2]) for row in batch], [reward.reward for reward in bodies]

    def _learn(self, policy: Policy, names: list[str], rewards: list[float]) -> None:
        """Learn a batch; decisions that are not in the buffer are read from the store."""
        missing = self.pending.missing(names)
        if missing and (not self._load_pending(missing) or self.pending.missing(names)):
            bodies = self._bodies(names)
            learn(
                policy,
                [RewardEvent(0, name, bodies[name], reward) for name, reward in zip(names, rewards, strict=True)],
            )
            return
        batch, learned = self.pending.take(names)
        if len(learned):
            policy.learn(batch, reward=np.array(rewards)[learned])

    def _bodies(self, names: Sequence[str]) -> dict[str, DecisionBody]:
        """Return the bodies of decisions in the store."""
        records = self.store.find(self.segment.experiment, names)
        decisions = [record for record in records if record.kind == DECISION]
        bodies = {str(record.id): unpacked(DecisionBody, record.body) for record in decisions}
        for name in names:
            if name not in bodies:
                raise ValueError(f"the log has a reward of decision {name!r}, and no such decision")
        return bodies

    def _load_pending(self, names: Sequence[str]) -> bool:
        """Read decisions from the store into the buffer; return False if one is of another spec."""
        bodies, spec = self._bodies(names), self.plan.spec
        drawn = {name: body for name, body in bodies.items() if not body.holdout}
        if any(body.fingerprint != spec.short_fingerprint for body in drawn.values()):
            return False
        self.pending.put_holdout([name for name in names if name not in drawn])
        if drawn:
            self.pending.put(list(drawn), to_batch(list(drawn.values()), spec))
        return True

    def _restore(self, version: int) -> Policy:
        return restore(self.store, self.segment.experiment, version=version).policy
