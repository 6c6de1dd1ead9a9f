"""A learner that follows a log: it learns every reward once, and reproduces the same bits after a restart."""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

from bothworlds.errors import user_stacklevel
from bothworlds.logs.files import Log
from bothworlds.logs.schema import Batch, Change, ContextDistribution, Record, Reward, Row
from bothworlds.policy import Decision, Plan, Policy
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole
from bothworlds.problem.rewards import checked_loss

VersionRecord: TypeAlias = Batch | ContextDistribution | Change  # a record that ends in a new version of the policy
RecordKey: TypeAlias = tuple[type[Record], int, str, float]  # distinguishes the records of different learners
EARLY_BYTES = 1 << 24  # bytes of the log for which a reward without a decision (of this policy) is kept


class LogLearner:
    """Teaches a policy the rewards in a log. A policy has one learner at a time.

    A decision is learned from when its reward is in the log, in the order of rewards. New rewards form batches of at
    most ``batch_size``, and the learner records the end of each batch in the log. A learner that starts on an existing
    log first learns the recorded batches that its policy has not learned yet; it reproduces the same versions bit for
    bit, or raises. So the log is the only file that must be kept; saving the policy now and then shortens restarts.

    Several policies may share a log, each with its own learner; records of other policies are ignored. Rewards of
    held-out decisions are accepted and counted, but not learned from. An invalid reward, for example one outside the
    problem's range, is ignored with a warning: its decision waits for a valid one. A reward may precede its decision,
    if another process was faster: it is learned when the decision is read, unless 16 megabytes of the log lie in
    between. A reward in its decision's row, as `write` stores it, is learned with the row.

    The file is append-only: the learner raises if it was rotated, replaced or truncated, and if another learner has
    recorded a version of this policy since this one started.

    >>> from bothworlds import LCTsallisINF, Problem
    >>> from bothworlds.logs import row_of
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"])
    >>> policy, log = LCTsallisINF().start(problem, rng=7), Log("decisions.jsonl")
    >>> plan = policy.plan()  # in a server, read from a file
    >>> decision = plan.act("always")
    >>> log.append(row_of(decision, plan))
    >>> log.append(Reward(id=decision.id, time=5.0, reward=1.0))  # from the process that receives clicks
    >>> LogLearner(policy, log).step(), policy.updates
    (1, 1)
    """

    def __init__(self, policy: Policy, log: Log, *, batch_size: int = 1000) -> None:
        self.policy, self.log, self.batch_size = policy, log, whole(batch_size, 1, "batch_size")
        self.offset = 0
        self._waiting: dict[str, Decision] = {}
        self._early_rewards: dict[str, tuple[float, int]] = {}  # with the byte behind their record
        self._batch: dict[str, tuple[Decision, float]] = {}
        self._problem = policy.problem
        self._replayed = False
        self._start_size = 0  # size in bytes of the log when it was first read
        self._own_records: set[RecordKey] = set()  # appended by this learner and not read back yet
        self._file: tuple[int, int] | None = None  # device and inode

    @property
    def waiting(self) -> int:
        """Number of decisions read from the log that have no reward yet."""
        return len(self._waiting)

    def replay(self) -> Iterator[Plan]:
        """Yield the present plan, and the plan after each recorded version in the log that is not learned yet."""
        yield self.policy.plan()
        self._require_same_file()
        versions: list[VersionRecord] = []
        for record, end in self.log.read():
            self._start_size = end
            if isinstance(record, VersionRecord) and record.policy == self.policy.name:
                versions.append(record)
        for record in versions:
            if record.version > self.policy.version:
                yield self._repeat(record)
        self._problem, self._replayed = self.policy.problem, True

    def _repeat(self, record: VersionRecord) -> Plan:
        """Learn a recorded batch, or apply a recorded context distribution or problem; return the plan after it."""
        if isinstance(record, Batch):
            self._read(record.through)
            self._learn()
            what = f"the batch that ends at byte {record.through}"
        else:
            record.repeat(self.policy)
            what = (
                "the context distribution" if isinstance(record, ContextDistribution) else "the change of the problem"
            )
        plan = self.policy.plan()
        if (plan.version, plan.digest) != (record.version, record.digest):
            raise ValueError(
                f"{self.log.path}: {what} leads to version {plan.version} with digest {plan.digest}, not to "
                f"{record.version} with {record.digest}: the log was modified, or the policy is not the one that "
                "started it"
            )
        return plan

    def change_probabilities(self, probabilities: Any) -> None:
        """Give the policy another context distribution, and record it in the log."""
        self._start()
        before = self.policy.version
        self.policy.change_probabilities(probabilities)
        distribution = tuple(self.policy.problem.probabilities.tolist())
        self._record_version(before, partial(ContextDistribution, probabilities=distribution))

    def change(self, problem: Problem, *, trust: float = 1.0, fresh: float | None = None) -> None:
        """Give the policy another problem (`bothworlds.Policy.change`), and record the whole problem in the log."""
        self._start()
        before = self.policy.version
        self.policy.change(problem, trust=trust, fresh=fresh)
        self._record_version(before, partial(Change, problem=problem.to_dict(), trust=trust, fresh=fresh))

    def _record_version(self, before: int, record_of: Callable[..., VersionRecord]) -> None:
        """Append a record of the policy's version, if it is later than ``before``."""
        plan = self.policy.plan()
        self._problem = plan.problem
        if plan.version > before:
            record = record_of(version=plan.version, digest=plan.digest, time=time.time(), policy=plan.policy)
            self._own_records.add(_key_of(record))
            self.log.append(record)

    def _start(self) -> None:
        """Replay the log if that was not done; refuse another file, and a change of the problem outside the log."""
        self._require_same_file()
        if not self._replayed:
            for _ in self.replay():
                pass
        if self._problem != self.policy.problem:
            raise ValueError(
                "the policy was given another problem or context distribution that is not in the log: use "
                "learner.change(...) or learner.change_probabilities(...), so that a replay reproduces its versions"
            )

    def _require_same_file(self) -> None:
        """Refuse another file, and one that lacks bytes that were read."""
        fault = self._fault_of_file()
        if fault is not None:
            raise ValueError(
                f"{self.log.path}: the log was replaced: {fault}. A log is append-only: restore the old file; or save "
                "the policy and create a new LogLearner on this file, which does not know the decisions that wait for "
                "rewards in the old one"
            )

    def _fault_of_file(self) -> str | None:
        """Return what is wrong with the file, or None; a file that does not exist yet is no fault."""
        try:
            status = self.log.path.stat()
        except FileNotFoundError:
            return None if self._file is None else "it no longer exists"
        file = status.st_dev, status.st_ino
        self._file = self._file or file
        if file != self._file:
            return "it is another file"
        return None if status.st_size >= self.offset else f"it has {status.st_size} bytes, but {self.offset} were read"

    def _read(self, through: int | None = None) -> None:
        """Read decisions and new rewards, up to a byte or until a batch is full."""
        for record, end in self.log.read(self.offset):
            if through is not None and end > through:
                return
            if isinstance(record, VersionRecord):
                self._require_one_learner(record, end)
            self.offset = end
            if isinstance(record, Row) and record.policy == self.policy.name:
                self._take_decision(record)
            elif isinstance(record, Reward):
                self._take_reward(record.id, record.reward)
            if through is None and len(self._batch) >= self.batch_size:
                return

    def _require_one_learner(self, record: VersionRecord, end: int) -> None:
        """Refuse a version of this policy that another learner recorded since this one started.

        The offset stays before the record, so that the next call raises, too.
        """
        if end <= self._start_size or record.policy != self.policy.name:
            return
        if _key_of(record) not in self._own_records:
            raise ValueError(
                f"{self.log.path}: another learner works on this log for policy {self.policy.name!r}: it recorded "
                f"version {record.version} before byte {end}. A policy has one learner at a time: stop one of them, "
                "and restart the other with bw.load(...) and a new LogLearner"
            )
        self._own_records.discard(_key_of(record))

    def _take_decision(self, row: Row) -> None:
        """Let a decision wait for its reward, or take the reward that came before it or with it."""
        decision = row.decision(self.policy.listing(row))
        early, end = self._early_rewards.pop(row.id, (None, 0))
        if row.id in self._waiting or row.id in self._batch or not self.policy.accepts(decision):
            return
        self._waiting[row.id] = decision
        if early is not None and end >= self.offset - EARLY_BYTES:
            self._take_reward(row.id, early)
        if row.reward is not None and row.id in self._waiting:
            self._take_reward(row.id, row.reward)

    def _take_reward(self, id: str, reward: float) -> None:
        """Add the reward of a waiting decision to the batch; keep any other valid reward for a while."""
        if id in self._waiting:
            if self._is_valid(id, reward):
                self._batch[id] = self._waiting.pop(id), float(reward)
        elif id not in self._batch and self._fault_of(reward) is None:
            self._keep_early(id, reward)

    def _keep_early(self, id: str, reward: float) -> None:
        """Keep the first reward of an id that precedes its decision, and drop rewards that are too far back.

        This depends on positions in the log only, so that a learner that starts later reproduces it.
        """
        oldest = self.offset - EARLY_BYTES
        if self._early_rewards.get(id, (None, oldest - 1))[1] < oldest:
            self._early_rewards.pop(id, None)
            self._early_rewards[id] = reward, self.offset
        while next(iter(self._early_rewards.values()))[1] < oldest:
            del self._early_rewards[next(iter(self._early_rewards))]

    def _fault_of(self, reward: float) -> str | None:
        """Return why a reward is invalid, or None."""
        try:
            checked_loss(reward, is_reward=True, reward_range=self.policy.problem.reward_range)
        except ValueError as error:
            return str(error)
        return None

    def _is_valid(self, id: str, reward: float) -> bool:
        """Return whether a reward is valid; warn if not, so that one reward does not block all others."""
        fault = self._fault_of(reward)
        if fault is not None:
            ignored = f"the reward of {id!r} is ignored, and its decision waits for another one"
            warnings.warn(f"{self.log.path}: {ignored}: {fault}", stacklevel=user_stacklevel())
        return fault is None

    def _learn(self) -> None:
        """Update the policy with the batch."""
        pairs = self._batch.values()
        self.policy.update([decision for decision, _ in pairs], reward=[reward for _, reward in pairs])
        self._batch = {}

    def step(self) -> int:
        """Learn the next new rewards, at most ``batch_size``, as one batch; return their number.

        `catch_up` repeats this until no new reward is left. The first call replays the batches recorded in the log.
        """
        self._start()
        self._read()
        self._require_same_file()  # it may have been replaced just before it was opened
        count = len(self._batch)
        if count:
            before = self.policy.updates
            self._learn()
            if self.policy.updates > before:  # a batch of held-out decisions only need not be replayed
                self._record_version(0, partial(Batch, through=self.offset))
        return count

    def catch_up(self) -> int:
        """Step until no new reward is left; return the number of rewards."""
        total = 0
        while count := self.step():
            total += count
        return total


def _key_of(record: VersionRecord) -> RecordKey:
    return type(record), record.version, record.digest, record.time
