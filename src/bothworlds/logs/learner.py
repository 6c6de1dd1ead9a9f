"""One learner that follows a log: every reward once, and the same bits again after a restart."""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

from bothworlds.errors import users_line
from bothworlds.logs.files import Log
from bothworlds.logs.schema import Batch, Change, Law, Record, Reward, Row
from bothworlds.policy import Decision, Plan, Policy
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole
from bothworlds.problem.feedback import checked_loss

Mark: TypeAlias = tuple[type[Record], int, str, float]  # tells what one learner has noted from what another has
EARLY = 1 << 24  # bytes of a log for which a reward is kept that stands before its decision, or is of another policy


class Learner:
    """Teaches a policy what stands in a log; one at a time for a policy.

    A decision is learnt from when its reward stands in the log, in the order of rewards; rewards that are new make one
    batch, ``pace`` of them at most, and the log is told where it ended. A learner that begins on a log first learns the
    batches that stand there, beyond what its policy has learnt already, and finds the same versions bit for bit, or
    says that it does not. So the log is all there is to keep; a policy that is saved now and then makes restarts short.
    Several policies may share a log, each with its learner: what is of others is passed over. The rewards of held-out
    decisions are taken, counted and not learnt. A reward that cannot be, outside the problem's range say, is passed
    over with a warning: its decision waits for one that is right. A reward that stands before its decision, for another
    process was faster, is learnt when that is read, unless 16 megabytes of the log lie in between. One that stands in
    its decision's row, as `write` leaves it, is taken with the row. The file is only ever added to: one that was
    rotated, replaced or cut is refused, and one in which another learner has noted something of this policy since this
    one has begun.

    >>> from bothworlds import LCTsallisINF, Problem
    >>> from bothworlds.logs import row_of
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"])
    >>> policy, log = LCTsallisINF().start(problem, rng=7), Log("decisions.jsonl")
    >>> plan = policy.plan()  # in a server, read from a file
    >>> decision = plan.act("always")
    >>> log.append(row_of(decision, plan))
    >>> log.append(Reward(id=decision.id, time=5.0, reward=1.0))  # from wherever clicks come
    >>> Learner(policy, log).step(), policy.updates
    (1, 1)
    """

    def __init__(self, policy: Policy, log: Log, *, pace: int = 1000) -> None:
        self.policy, self.log, self.pace = policy, log, whole(pace, 1, "pace")
        self.offset = 0
        self._waiting: dict[str, Decision] = {}
        self._early: dict[str, tuple[float, int]] = {}  # with the byte behind it
        self._new: dict[str, tuple[Decision, float]] = {}
        self._problem = policy.problem
        self._replayed = False
        self._begun = 0  # the byte behind what stood in the log when it was first read
        self._noted: set[Mark] = set()  # what this learner has added to the log and not read yet
        self._file: tuple[int, int] | None = None  # device and number, which tell it from any other

    @property
    def waiting(self) -> int:
        """How many decisions that were read from the log have no reward yet."""
        return len(self._waiting)

    def replay(self) -> Iterator[Plan]:
        """Yield the plan at the start, and that after each batch, law or change in the log that is not learnt yet."""
        yield self.policy.plan()
        self._require_same_file()
        found: list[Batch | Law | Change] = []
        for record, end in self.log.read():
            self._begun = end
            if isinstance(record, Batch | Law | Change) and record.policy in (None, self.policy.name):
                found.append(record)
        for record in found:
            if record.version > self.policy.version:
                yield self._follow(record)
        self._problem, self._replayed = self.policy.problem, True

    def _follow(self, record: Batch | Law | Change) -> Plan:
        """Learn a batch again, or take a law or a problem, that stands in the log."""
        if isinstance(record, Batch):
            self._read(record.through)
            self._learn()
            what = f"the batch that ends at byte {record.through}"
        else:
            record.repeat(self.policy)
            what = "the law of contexts" if isinstance(record, Law) else "the change of the problem"
        plan = self.policy.plan()
        if (plan.version, plan.digest) != (record.version, record.digest):
            raise ValueError(
                f"{self.log.path}: {what} leads to version {plan.version} with digest {plan.digest}, not to "
                f"{record.version} with {record.digest}: the log was changed, or the policy is not the one that began "
                "it"
            )
        return plan

    def change_probabilities(self, probabilities: Any) -> None:
        """Let the policy go on under another law of contexts, and note it in the log."""
        self._begin()
        before = self.policy.version
        self.policy.change_probabilities(probabilities)
        law = tuple(self.policy.problem.probabilities.tolist())
        self._note(before, partial(Law, probabilities=law))

    def change(self, problem: Problem, *, trust: float = 1.0, fresh: float | None = None) -> None:
        """Let the policy go on with another problem (`bothworlds.Policy.change`), and note it in the log, whole."""
        self._begin()
        before = self.policy.version
        self.policy.change(problem, trust=trust, fresh=fresh)
        self._note(before, partial(Change, problem=problem.to_dict(), trust=trust, fresh=fresh))

    def _note(self, before: int, record: Callable[..., Batch | Law | Change]) -> None:
        """Add to the log that the policy goes on with another version than before, if it does."""
        plan = self.policy.plan()
        self._problem = plan.problem
        if plan.version > before:
            made = record(version=plan.version, digest=plan.digest, time=time.time(), policy=plan.policy)
            self._noted.add(_mark_of(made))
            self.log.append(made)

    def _begin(self) -> None:
        """Learn what stands in the log, the first time; refuse another file, a problem or law that it does not know."""
        self._require_same_file()
        if not self._replayed:
            for _ in self.replay():
                pass
        if self._problem != self.policy.problem:
            raise ValueError(
                "the policy was given another problem or law of contexts, and the log does not say so: give it by way "
                "of the learner, learner.change(...) or learner.change_probabilities(...), so that the same versions "
                "can be found again"
            )

    def _require_same_file(self) -> None:
        """Refuse a file that is not the one of before, or does not have any more what was read there."""
        fault = self._fault_of_file()
        if fault is not None:
            raise ValueError(
                f"{self.log.path}: the log was replaced: {fault}. A log is only ever added to: put the old file "
                "back; or save the policy and begin a new Learner on this one, to which decisions that wait in the "
                "old file are not known"
            )

    def _fault_of_file(self) -> str | None:
        """Say what is wrong with the file, if anything is; one that is not there yet may come."""
        try:
            found = self.log.path.stat()
        except FileNotFoundError:
            return None if self._file is None else "it is gone"
        file = found.st_dev, found.st_ino
        self._file = self._file or file
        if file != self._file:
            return "it is another file"
        return None if found.st_size >= self.offset else f"it has {found.st_size} bytes, where {self.offset} were read"

    def _read(self, through: int | None = None) -> None:
        """Take note of decisions, and of rewards that are new, up to a byte or until a batch is full."""
        for record, end in self.log.read(self.offset):
            if through is not None and end > through:
                return
            if isinstance(record, Batch | Law | Change):
                self._require_own(record, end)
            self.offset = end
            if isinstance(record, Row) and record.policy == self.policy.name:
                self._take_decision(record)
            elif isinstance(record, Reward):
                self._take_reward(record.id, record.reward)
            if through is None and len(self._new) >= self.pace:
                return

    def _require_own(self, record: Batch | Law | Change, end: int) -> None:
        """Refuse what another learner has noted of this policy since this one began; it is met again the next time."""
        if end <= self._begun or record.policy not in (None, self.policy.name):
            return
        if _mark_of(record) not in self._noted:
            raise ValueError(
                f"{self.log.path}: another learner works on this log for policy {self.policy.name!r}: it has come to "
                f"version {record.version}, as is noted before byte {end}. A policy has one learner at a time: end one "
                "of them, and begin the other again with bw.load(...) and a new Learner"
            )
        self._noted.discard(_mark_of(record))

    def _take_decision(self, row: Row) -> None:
        """Let a decision wait for its reward, or learn the one that came before it, or with it."""
        made = row.decision(self.policy.listing(row))
        early, end = self._early.pop(row.id, (None, 0))
        if row.id in self._waiting or row.id in self._new or not self.policy.takes(made):
            return
        self._waiting[row.id] = made
        if early is not None and end >= self.offset - EARLY:
            self._take_reward(row.id, early)
        if row.reward is not None and row.id in self._waiting:
            self._take_reward(row.id, row.reward)

    def _take_reward(self, id: str, reward: float) -> None:
        """Learn the reward of a decision that waits for it; keep any other one, if it can be, for a while."""
        if id in self._waiting:
            if self._can_be(id, reward):
                self._new[id] = self._waiting.pop(id), float(reward)
        elif id not in self._new and self._fault_of(reward) is None:
            self._keep(id, reward)

    def _keep(self, id: str, reward: float) -> None:
        """Keep the first reward of an id that stands before its decision, and forget those that are too far back.

        What counts depends on places in the log alone, so that whoever begins later finds the same.
        """
        oldest = self.offset - EARLY
        if self._early.get(id, (None, oldest - 1))[1] < oldest:
            self._early.pop(id, None)
            self._early[id] = reward, self.offset
        while next(iter(self._early.values()))[1] < oldest:
            del self._early[next(iter(self._early))]

    def _fault_of(self, reward: float) -> str | None:
        """Say why a reward cannot be, if it cannot."""
        try:
            checked_loss(reward, is_reward=True, reward_range=self.policy.problem.reward_range)
        except ValueError as error:
            return str(error)
        return None

    def _can_be(self, id: str, reward: float) -> bool:
        """Tell whether a reward can be learnt; else say why not, and go on: one must not stop all others for good."""
        fault = self._fault_of(reward)
        if fault is not None:
            said = f"the reward of {id!r} is passed over, and its decision waits for another one"
            warnings.warn(f"{self.log.path}: {said}: {fault}", stacklevel=users_line())
        return fault is None

    def _learn(self) -> None:
        """Learn from what is new, as one batch."""
        new = self._new.values()
        self.policy.update([made for made, _ in new], reward=[reward for _, reward in new])
        self._new = {}

    def step(self) -> int:
        """Take rewards that have come to the log since, at most ``pace``, as one batch; return how many.

        What is left is for the next step; `catch_up` makes as many as it takes. The first time, batches that stand in
        the log come before.
        """
        self._begin()
        self._read()
        self._require_same_file()  # it may have been replaced just before it was opened
        count = len(self._new)
        if count:
            before = self.policy.updates
            self._learn()
            if self.policy.updates > before:  # where all were held out there is nothing that must be learnt again
                self._note(0, partial(Batch, through=self.offset))
        return count

    def catch_up(self) -> int:
        """Step until nothing is new; return how many rewards were taken, each in a batch of at most ``pace``."""
        total = 0
        while count := self.step():
            total += count
        return total


def _mark_of(record: Batch | Law | Change) -> Mark:
    return type(record), record.version, record.digest, record.time
