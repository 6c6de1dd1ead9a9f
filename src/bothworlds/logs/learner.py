"""One learner that follows a log: every reward once, and the same bits again after a restart."""

import time
from collections.abc import Iterator

from bothworlds.decision import Decision
from bothworlds.logs.files import Log
from bothworlds.logs.schema import Batch, Reward, Row
from bothworlds.plan import Plan
from bothworlds.policy import Policy


class Learner:
    """Teaches a policy what stands in a log; one at a time for a policy.

    A decision is learnt from when its reward stands in the log, in the order of rewards; all rewards that are new make
    one batch, and the log is told where it ended. A learner that begins on a log first learns the batches that stand
    there, beyond what its policy has learnt already, and finds the same versions bit for bit, or says that it does not.
    So the log is all there is to keep; a policy that is saved now and then makes restarts short. Decisions of other
    policies are passed over; the rewards of held-out ones are taken, counted and not learnt.

    ``pace`` is how many rewards a batch has at most.

    >>> from bothworlds import LCTsallisINF, Problem
    >>> from bothworlds.logs import row_of
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], contexts=["always"])
    >>> policy, log = LCTsallisINF(tuning="adaptive").start(problem, rng=7), Log("decisions.jsonl")
    >>> plan = policy.plan()  # in a server, read from a file
    >>> decision = plan.act("always")
    >>> log.append(row_of(decision, plan))
    >>> log.append(Reward(id=decision.id, time=5.0, reward=1.0))  # from wherever clicks come
    >>> Learner(policy, log).step(), policy.updates
    (1, 1)
    """

    def __init__(self, policy: Policy, log: Log, *, pace: int = 1000) -> None:
        self.policy, self.log, self.pace = policy, log, pace
        self.offset = 0
        self._waiting: dict[str, Decision] = {}
        self._new: list[tuple[Decision, float]] = []
        self._replayed = False

    @property
    def waiting(self) -> int:
        """How many decisions that were read from the log have no reward yet."""
        return len(self._waiting)

    def replay(self) -> Iterator[Plan]:
        """Yield the plan at the start, and that after each batch that stands in the log and is not learnt yet."""
        yield self.policy.plan()
        for batch in [record for record, _ in self.log.read() if isinstance(record, Batch)]:
            if batch.version > self.policy.version:
                yield self._follow(batch)
        self._replayed = True

    def _follow(self, batch: Batch) -> Plan:
        """Learn a batch again that stands in the log."""
        self._read(batch.through)
        self._learn()
        plan = self.policy.plan()
        if (plan.version, plan.digest) != (batch.version, batch.digest):
            raise ValueError(
                f"{self.log.path}: the batch that ends at byte {batch.through} leads to version {plan.version} with "
                f"digest {plan.digest}, not to {batch.version} with {batch.digest}: the log was changed, or the policy "
                "is not the one that began it"
            )
        return plan

    def _read(self, through: int | None = None) -> None:
        """Take note of decisions, and of rewards that are new, up to a byte or until a batch is full."""
        for record, end in self.log.read(self.offset):
            if through is not None and end > through:
                return
            self.offset = end
            if isinstance(record, Row) and record.policy == self.policy.name:
                made = record.decision(self.policy.listing(record.version))
                if self.policy.takes(made):
                    self._waiting.setdefault(record.id, made)
            elif isinstance(record, Reward) and record.id in self._waiting:
                self._new.append((self._waiting.pop(record.id), record.reward))
                if through is None and len(self._new) == self.pace:
                    return

    def _learn(self) -> None:
        """Learn from what is new, as one batch."""
        new, self._new = self._new, []
        self.policy.update([made for made, _ in new], reward=[reward for _, reward in new])

    def step(self) -> int:
        """Take rewards that have come to the log since, as one batch; return how many.

        The first time, batches that stand in the log come before.
        """
        if not self._replayed:
            for _ in self.replay():
                pass
        self._read()
        count = len(self._new)
        if count:
            through, before = self.offset, self.policy.updates
            self._learn()
            policy = self.policy
            if policy.updates > before:  # where all were held out there is nothing that must be learnt again
                self.log.append(Batch(version=policy.version, digest=policy.digest, through=through, time=time.time()))
        return count
