"""The one thread that writes: takes what has come in, decides, stores it all in one commit, and then answers."""

import contextlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bothworlds.policy.plan import Plan
from bothworlds.service import rules
from bothworlds.service.experiment import Experiment, Lesson
from bothworlds.service.messages import Activate, Answer, Decide, Decided, Refusal, Reward
from bothworlds.service.records import Frame, Kind, Record, Snapshot
from bothworlds.service.rules import Outcome, Place, State
from bothworlds.service.store import Store

REMEMBERED = 20_000  # decisions whose state is kept at hand
PROBED = 1.0  # seconds between two looks at a store that failed, when nobody asks
UNAVAILABLE = 503
ENDED = "the service has ended"
COUNTED = ("decisions", "activations", "rewards", "defaults", "late")
WORDS: dict[int, str] = {Kind.DECISION: "decisions", Kind.ACTIVATION: "activations", Kind.LATE: "late"}
Request = Decide | Activate | Reward


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


@dataclass(slots=True)
class Job:
    """Something to be done in one commit, and what is called with its answers once that is durable."""

    requests: Sequence[tuple[Experiment, Request] | Publish | Expire]
    waiter: Any
    outcomes: list[tuple[int, Answer]] = field(default_factory=list)


class Group:
    """What is to be stored together, and what follows once it is."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.heard: list[tuple[Experiment, int, str, Any, float]] = []
        self.published: list[Publish] = []
        self.touched: list[tuple[int, str]] = []


class Clerk:
    """Writes in a thread of its own. ``deliver`` is called there with the jobs of a group when they are stored."""

    def __init__(self, store: Store, deliver: Callable[[list[Job]], None], *, tick: float = 0.001) -> None:
        self.store, self.deliver, self.tick = store, deliver, tick
        self.failure: str | None = None
        self.commits = 0
        self.counts: dict[int, dict[str, int]] = {}
        self._jobs: deque[Job] = deque()
        self._came = threading.Event()
        self._states: OrderedDict[tuple[int, str], State] = OrderedDict()
        self._stopping = self._ended = False
        self._thread = threading.Thread(target=self._work, name="clerk", daemon=True)

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self._jobs)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Hand in a job, from any thread."""
        self._jobs.append(job)
        if not self._came.is_set():
            self._came.set()
        if self._ended:
            self._turn_away()

    def stop(self) -> None:
        """Do what has come in, and end."""
        self._stopping = True
        self._came.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stopping or self._jobs:
            self._came.wait(PROBED if self.failure else None)
            if self.tick and not self._stopping:
                time.sleep(self.tick)  # more of them in one commit
            self._came.clear()
            jobs = [self._jobs.popleft() for _ in range(len(self._jobs))]
            if jobs:
                self._do(jobs)
            elif self.failure:
                self._try_store(self.store.probe)
        self.failure, self._ended = ENDED, True
        self._turn_away()

    def _turn_away(self) -> None:
        """Answer jobs that have come since the end."""
        with contextlib.suppress(IndexError):
            while True:
                job = self._jobs.popleft()
                job.outcomes = [self._unavailable(request) for request in job.requests]
                self.deliver([job])

    def _try_store(self, work: Callable[[], None]) -> None:
        """Do something with the store that nobody waits for, and note whether it works."""
        try:
            work()
            self.failure = None
        except Exception as error:
            self.failure = str(error) or repr(error)

    def _do(self, jobs: list[Job]) -> None:
        """Do jobs in one commit, and answer: what was stored, or that nothing could be."""
        group = Group()
        try:
            self._look_up(jobs)
            for job in jobs:
                job.outcomes = [self._done(request, group) for request in job.requests]
            self._store(group)
            self.failure = None
        except Exception as error:
            for key in group.touched:
                self._states.pop(key, None)
            self.failure = str(error) or repr(error)
            for job in jobs:
                job.outcomes = [self._unavailable(request) for request in job.requests]
        while len(self._states) > REMEMBERED:
            self._states.popitem(last=False)
        try:
            self.deliver(jobs)
        except Exception as error:  # who waited has gone; the others, and the next, are served
            self.failure = f"answers could not be given: {error!r}"
        if not self.failure:
            self._try_store(self.store.tidy)

    def _look_up(self, jobs: list[Job]) -> None:
        """Bring what is known of the decisions that are asked about into memory."""
        unknown: dict[int, set[str]] = {}
        for job in jobs:
            for request in job.requests:
                for key in _keys(request):
                    if key in self._states:
                        self._states.move_to_end(key)
                    else:
                        unknown.setdefault(key[0], set()).add(key[1])
        for number, ids in unknown.items():
            found = {name: State() for name in ids}
            for record in self.store.find(number, sorted(ids)):
                found[str(record.id)].learn_of(record)
            self._states.update(((number, name), state) for name, state in found.items())

    def _done(self, request: Any, group: Group) -> tuple[int, Answer]:
        """Do one request in memory; what is to be stored goes to the group."""
        if isinstance(request, Publish):
            group.published.append(request)
            return rules.OK, Refusal("")
        if isinstance(request, Expire):
            self._expire(request, group)
            return rules.OK, Refusal("")
        experiment, asked = request
        place = Place(experiment.number, experiment.name, time.time())
        outcome, key = self._outcome(experiment, asked, place)
        if outcome.record is not None:
            group.touched.append(key)
            group.records.append(outcome.record)
            if outcome.record.kind == Kind.REWARD:
                group.heard.append((experiment, len(group.records) - 1, key[1], self._states[key].drawn, asked.reward))
        return outcome.status, outcome.answer

    def _outcome(self, experiment: Experiment, asked: Request, place: Place) -> tuple[Outcome, tuple[int, str]]:
        """Apply the rules to a request; return the key of the decision that it is about, too."""
        key = experiment.number, asked.id or ""
        if isinstance(asked, Decide):
            outcome, made = rules.decide(asked, self._states.get(key, NOTHING), experiment.plan, place)
            if made is not None and outcome.record is not None:
                key = experiment.number, str(outcome.record.id)
                self._states[key] = made
            return outcome, key
        state = self._states[key]
        if isinstance(asked, Reward):
            return rules.reward(asked, state, place, experiment.limits), key
        return rules.activate(asked, state, place), key

    def _expire(self, request: Expire, group: Group) -> None:
        """Give decisions the default reward."""
        experiment, default = request.experiment, request.experiment.told.default_reward
        if default is None:
            return
        place = Place(experiment.number, experiment.name, time.time())
        for name in request.ids:
            state = self._states[experiment.number, name]
            record = rules.expire(name, state, place, default)
            if record is not None:
                group.touched.append((experiment.number, name))
                group.records.append(record)
                group.heard.append((experiment, len(group.records) - 1, name, state.drawn, default))

    def _store(self, group: Group) -> None:
        """Commit, versions after all decisions of the group; then let plans decide, and learners hear."""
        records = [*group.records, *(one.mark for one in group.published if one.mark is not None)]
        snapshots = [snapshot for one in group.published for snapshot in one.snapshots]
        frames = [frame for one in group.published for frame in one.frames]
        if records or snapshots:
            saved = [one.experiment for one in group.published if one.snapshots]
            notes = {experiment.cursor: experiment.expired for experiment in saved}
            first = self.store.append(records, snapshots=snapshots, frames=frames, notes=notes)
            self.commits += 1
            for record in group.records:
                self._count(record)
            for experiment, place, name, drawn, reward in group.heard:
                experiment.hear(Lesson(first + place, name, drawn, reward))
                experiment.pulse.note(group.records[place].time, reward, holdout=drawn.holdout)
        for one in group.published:
            one.experiment.plan = one.plan

    def _count(self, record: Record) -> None:
        """Count a record that is stored."""
        counts = self.counts.setdefault(record.experiment, dict.fromkeys(COUNTED, 0))
        counts[word_of(record.kind, flag=record.flag)] += 1

    def _unavailable(self, request: Any) -> tuple[int, Answer]:
        """Answer where nothing could be stored: with the safe arm if one was declared."""
        if not isinstance(request, Publish | Expire):
            experiment, asked = request
            if isinstance(asked, Decide) and experiment.told.safe_arm is not None:
                safe = experiment.told.safe_arm
                name = str(asked.context) if isinstance(asked.context, str) else ""
                plan = experiment.plan
                return rules.OK, Decided(
                    asked.id or "", experiment.name, name, safe, None, plan.version, active=asked.active, stored=False
                )
        return UNAVAILABLE, Refusal(f"nothing was stored, try again: {self.failure}")


NOTHING = State()


def word_of(kind: int, *, flag: bool) -> str:
    """Return under which word a record is counted."""
    return WORDS.get(kind) or ("rewards" if flag else "defaults")


def _keys(request: Any) -> list[tuple[int, str]]:
    """Return which decisions a request is about, if it says so."""
    if isinstance(request, Publish):
        return []
    if isinstance(request, Expire):
        return [(request.experiment.number, name) for name in request.ids]
    experiment, asked = request
    return [] if asked.id is None else [(experiment.number, asked.id)]
