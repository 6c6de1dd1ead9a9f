"""Jobs of the writer thread, and the group of records that one commit stores."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from bothworlds.policy.plan import Plan
from bothworlds.service.batch_decide import Draw
from bothworlds.service.experiment import Experiment
from bothworlds.service.messages import Activate, Answer, Decide, Refusal, Reward
from bothworlds.service.records import REWARD, Frame, Record, Snapshot
from bothworlds.service.reward_events import RewardEvent
from bothworlds.service.rules import DecisionContext, DecisionState
from bothworlds.service.store import NO_NOTES

Request: TypeAlias = Decide | Activate | Reward
UNANSWERED = Refusal("")


class PendingRequest(msgspec.Struct, eq=False, gc=False):
    """A client's request; status and answer are set when the waiter is woken, or ``error`` if they never will be.

    Of requests submitted together, the last one has the waiter. The writer thread fills in the state of the decision,
    and the draw of a new one, unless it is ``given``. ``traceparent`` is stored with a new decision.
    """

    experiment: Experiment
    request: Request
    waiter: Any = None
    state: DecisionState | None = None
    draw: Draw | None = None
    given: Draw | None = None
    status: int = 0
    answer: Answer = UNANSWERED
    error: Exception | None = None
    traceparent: str | None = None


class Publish(msgspec.Struct, eq=False):
    """A new version to publish: its plan, its marks in the log, and snapshots, frames and notes stored with it.

    Without a mark only the snapshots are stored.
    """

    experiment: Experiment
    marks: Sequence[Record]
    plan: Plan
    snapshots: Sequence[Snapshot] = ()
    frames: Sequence[Frame] = ()
    notes: Mapping[str, int] = NO_NOTES
    done: threading.Event = msgspec.field(default_factory=threading.Event)
    stored: bool = False


class Expire(msgspec.Struct, eq=False):
    """Decisions of an experiment whose reward window has closed."""

    experiment: Experiment
    ids: Sequence[str]
    done: threading.Event = msgspec.field(default_factory=threading.Event)
    stored: bool = False


class Erase(msgspec.Struct, eq=False):
    """A part of the log in which a snapshot's decisions are erased, on its own and not in a commit with others."""

    snapshot: Snapshot
    after: int
    through: int
    done: threading.Event = msgspec.field(default_factory=threading.Event)
    stored: bool = False


Job: TypeAlias = PendingRequest | Publish | Expire | Erase


class CommitContext(dict[Experiment, DecisionContext]):
    """The `DecisionContext` of each experiment in one commit; all have the same time."""

    def __init__(self) -> None:
        self.time = time.time()

    def __missing__(self, experiment: Experiment) -> DecisionContext:
        spec = experiment.plan.spec
        reward_range = spec.problem.reward_range
        context = DecisionContext(
            experiment.number,
            experiment.name,
            self.time,
            spec,
            spec.short_fingerprint,
            reward_range,
            experiment.closed_fingerprints,
        )
        self[experiment] = context
        return context


class CommitGroup:
    """Records and versions that one commit stores.

    ``rewards`` has experiment, index in ``records`` and decision state of each reward.
    """

    def __init__(self) -> None:
        self.context = CommitContext()
        self.records: list[Record] = []
        self.rewards: list[tuple[Experiment, int, DecisionState]] = []
        self.published: list[Publish] = []

    def add(self, experiment: Experiment, record: Record, state: DecisionState) -> None:
        """Add a record about a decision in this state."""
        if record.kind == REWARD:
            self.rewards.append((experiment, len(self.records), state))
        self.records.append(record)

    def reward_events(self, first: int) -> dict[Experiment, list[RewardEvent]]:
        """Return the rewards to learn, by experiment; ``first`` is the sequence number of the first stored record."""
        events: dict[Experiment, list[RewardEvent]] = {}
        for experiment, index, state in self.rewards:
            event = RewardEvent(first + index, self.records[index].id, state.decision, state.reward)  # type: ignore[arg-type]
            events.setdefault(experiment, []).append(event)
        return events
