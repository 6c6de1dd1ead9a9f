"""What the clerk is asked to do, and what comes of it. Jobs that are handed in together are stored in one commit."""

import threading
import time
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from bothworlds.policy.plan import Plan
from bothworlds.service.drawing import Draw
from bothworlds.service.experiment import Experiment, Lesson
from bothworlds.service.messages import Activate, Answer, Decide, Refusal, Reward
from bothworlds.service.records import REWARD, Frame, Record, Snapshot
from bothworlds.service.rules import Place, State

Request: TypeAlias = Decide | Activate | Reward
UNANSWERED = Refusal("")


class Asking(msgspec.Struct, eq=False, gc=False):
    """A client's request to an experiment, and its answer once the waiter has been told that there is one.

    Of requests that are handed in together the last has the waiter. The clerk adds what is known of a decision, and
    draws one that is new.
    """

    experiment: Experiment
    request: Request
    waiter: Any = None
    state: State | None = None
    draw: Draw | None = None
    status: int = 0
    answer: Answer = UNANSWERED


class Publish(msgspec.Struct, eq=False):
    """A new version: its mark in the log, if it has one, its plan, and what is stored with it."""

    experiment: Experiment
    mark: Record | None
    plan: Plan
    snapshots: Sequence[Snapshot] = ()
    frames: Sequence[Frame] = ()
    done: threading.Event = msgspec.field(default_factory=threading.Event)
    stored: bool = False


class Expire(msgspec.Struct, eq=False):
    """Decisions of an experiment whose window has closed."""

    experiment: Experiment
    ids: Sequence[str]
    done: threading.Event = msgspec.field(default_factory=threading.Event)
    stored: bool = False


Job: TypeAlias = Asking | Publish | Expire


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
