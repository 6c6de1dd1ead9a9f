"""What the clerk is asked to do: jobs of one commit each, and what happens to the parts of a job on their way."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from bothworlds.policy.plan import Plan
from bothworlds.service.drawing import Draw
from bothworlds.service.experiment import Experiment, Lesson
from bothworlds.service.messages import Activate, Answer, Decide, Reward
from bothworlds.service.records import Frame, Kind, Record, Snapshot
from bothworlds.service.rules import Place, State

REWARD = int(Kind.REWARD)
Request = Decide | Activate | Reward


class Asking(msgspec.Struct, eq=False, gc=False):
    """A client's request to an experiment; the clerk adds what is known of its decision, and draws one that is new."""

    experiment: Experiment
    request: Request
    state: State = msgspec.field(default_factory=State)
    draw: Draw | None = None


class Publish(NamedTuple):
    """A new version: its mark in the log, if it has one, its plan, and what is stored with it."""

    experiment: Experiment
    mark: Record | None
    plan: Plan
    snapshots: Sequence[Snapshot] = ()
    frames: Sequence[Frame] = ()


class Expire(NamedTuple):
    """Decisions of an experiment whose window has closed."""

    experiment: Experiment
    ids: Sequence[str]


class Job(msgspec.Struct, eq=False, gc=False):
    """Something to be done in one commit, and what is called with its answers once that is durable."""

    parts: Sequence[Asking | Publish | Expire]
    waiter: Any
    outcomes: list[tuple[int, Answer]] = []


class Places(dict[Experiment, Place]):
    """Where and when things of one group happen, by the experiment."""

    def __init__(self) -> None:
        self.time = time.time()

    def __missing__(self, experiment: Experiment) -> Place:
        footing = experiment.plan.footing
        limits = footing.problem.reward_range
        made = Place(experiment.number, experiment.name, self.time, footing, footing.mark, limits)
        self[experiment] = made
        return made


class Group:
    """What is to be stored together, and what follows once it is. ``heard`` are the places of rewards in records."""

    def __init__(self) -> None:
        self.places = Places()
        self.records: list[Record] = []
        self.heard: list[tuple[Experiment, int, State]] = []
        self.published: list[Publish] = []

    def add(self, experiment: Experiment, record: Record, state: State) -> None:
        """Have a record of a decision with a state stored; rewards are learnt then."""
        if record.kind == REWARD:
            self.heard.append((experiment, len(self.records), state))
        self.records.append(record)

    def lessons(self, first: int) -> dict[Experiment, list[Lesson]]:
        """Return the rewards of a group that is stored, from a place of the log on."""
        found: dict[Experiment, list[Lesson]] = {}
        for experiment, place, state in self.heard:
            made = Lesson(first + place, self.records[place].id, state.drawn, state.reward)  # type: ignore[arg-type]
            found.setdefault(experiment, []).append(made)
        return found
