"""The one thread that writes: takes what has come in, decides, stores it all in one commit, and then answers."""

import contextlib
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from operator import itemgetter

from bothworlds.service import rules
from bothworlds.service.drawing import draw_all
from bothworlds.service.experiment import Experiment
from bothworlds.service.jobs import Asking, Expire, Group, Job, Places, Publish
from bothworlds.service.memory import Memory
from bothworlds.service.messages import Answer, Decide, Decided, Refusal, Reward
from bothworlds.service.records import Kind, Record
from bothworlds.service.rules import Outcome, Place
from bothworlds.service.store import Store

PROBED = 1.0  # seconds between two looks at a store that failed, when nobody asks
ENOUGH = 48  # jobs for one commit; where fewer have come, others are waited for
UNAVAILABLE = 503
ENDED = "the service has ended"
COUNTED = ("decisions", "activations", "rewards", "defaults", "late")
WORDS: dict[int, str] = {Kind.DECISION: "decisions", Kind.ACTIVATION: "activations", Kind.LATE: "late"}
COUNTED_BY = itemgetter(*map(Record._fields.index, ("experiment", "kind", "flag")))


class Clerk:
    """Writes in a thread of its own. ``deliver`` is called there with the jobs of a group when they are stored."""

    def __init__(self, store: Store, deliver: Callable[[list[Job]], None], *, tick: float = 0.001) -> None:
        self.store, self.deliver, self.tick = store, deliver, tick
        self.failure: str | None = None
        self.commits = 0
        self.counts: dict[int, dict[str, int]] = {}
        self._jobs: list[Job] = []
        self._came = threading.Event()
        self.memory = Memory(store)
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
            if self.tick and len(self._jobs) < ENOUGH and not self._stopping:
                time.sleep(self.tick)  # more of them in one commit
            self._came.clear()
            jobs = self._jobs[:]
            del self._jobs[: len(jobs)]  # others may have come meanwhile
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
                job = self._jobs.pop(0)
                job.outcomes = [self._unavailable(part) for part in job.parts]
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
        then: Callable[[], None] | None = None
        try:
            for experiment, asked in _by_experiment(jobs).items():
                self._prepare(experiment, asked)
            for job in jobs:
                job.outcomes = [self._done(part, group) for part in job.parts]
            self._store(group)
            then = self.store.probe if self.failure else self.store.tidy  # a group that wrote nothing has shown nothing
        except Exception as error:
            for record in group.records:
                self.memory.forget(record.experiment, record.id)
            self.failure = str(error) or repr(error)
            for job in jobs:
                job.outcomes = [self._unavailable(part) for part in job.parts]
        self.memory.trim()
        try:
            self.deliver(jobs)
        except Exception as error:  # who waited has gone; the others, and the next, are served
            self.failure, then = f"answers could not be given: {error!r}", None
        if then is not None:
            self._try_store(then)

    def _prepare(self, experiment: Experiment, asked: list[Asking]) -> None:
        """Recall what is known of the decisions that are asked about, and draw those that are new, all at once."""
        named = [one for one in asked if one.request.id is not None]
        states = self.memory.recall(experiment.number, [one.request.id for one in named])  # type: ignore[misc]
        for one, state in zip(named, states, strict=True):
            one.state = state
        new = [(one, one.request) for one in asked if isinstance(one.request, Decide) and one.state.drawn is None]
        if new:
            draws = draw_all(experiment.plan, [request for _, request in new])
            for (one, _), draw in zip(new, draws, strict=True):
                one.draw = draw

    def _done(self, part: Asking | Publish | Expire, group: Group) -> tuple[int, Answer]:
        """Do a part of a job in memory; what is to be stored goes to the group."""
        if isinstance(part, Asking):
            status, answer, record = self._outcome(part, group.places[part.experiment])
            if record is not None:
                group.add(part.experiment, record, part.state)
            elif part.state.drawn is None:  # nothing stands in the store under this id
                self.memory.forget(part.experiment.number, part.request.id)
            return status, answer
        if isinstance(part, Publish):
            group.published.append(part)
        else:
            self._expire(part, group)
        return rules.OK, Refusal("")

    def _outcome(self, one: Asking, place: Place) -> Outcome:
        """Apply the rules to a request."""
        request = one.request
        if isinstance(request, Reward):
            return rules.reward(request, one.state, place)
        if not isinstance(request, Decide):
            return rules.activate(request, one.state, place)
        outcome = rules.decide(request, one.state, one.draw, place)
        if request.id is None and outcome[2] is not None:
            self.memory.keep(place.number, str(outcome[2].id), one.state)
        return outcome

    def _expire(self, asked: Expire, group: Group) -> None:
        """Give decisions the default reward."""
        experiment, default = asked.experiment, asked.experiment.told.default_reward
        if default is None:
            return
        place = group.places[experiment]
        for name, state in zip(asked.ids, self.memory.recall(experiment.number, asked.ids), strict=True):
            record = rules.expire(name, state, place, default)
            if record is not None:
                group.add(experiment, record, state)

    def _store(self, group: Group) -> None:
        """Commit, versions after all decisions of the group; then let plans decide, and learners hear."""
        records = [*group.records, *(one.mark for one in group.published if one.mark is not None)]
        snapshots = [snapshot for one in group.published for snapshot in one.snapshots]
        frames = [frame for one in group.published for frame in one.frames]
        if records or snapshots:
            saved = [one.experiment for one in group.published if one.snapshots]
            notes = {experiment.cursor: experiment.expired for experiment in saved}
            first = self.store.append(records, snapshots=snapshots, frames=frames, notes=notes)
            self.failure = None
            self.commits += 1
            self._count(group.records)
            self._tell(group, first)
        for one in group.published:
            one.experiment.plan = one.plan

    def _tell(self, group: Group, first: int) -> None:
        """Let experiments hear the rewards of a group that is stored, from a place of the log on."""
        for experiment, lessons in group.lessons(first).items():
            experiment.hear(lessons)
            for holdout in (False, True):
                rewards = [one.reward for one in lessons if one.drawn.holdout == holdout]
                experiment.pulse.note(group.places.time, sum(rewards), holdout=holdout, count=len(rewards))

    def _count(self, records: Sequence[Record]) -> None:
        """Count records that are stored."""
        for (experiment, kind, flag), count in Counter(map(COUNTED_BY, records)).items():
            counts = self.counts.setdefault(experiment, dict.fromkeys(COUNTED, 0))
            counts[word_of(kind, flag=flag)] += count

    def _unavailable(self, part: Asking | Publish | Expire) -> tuple[int, Answer]:
        """Answer where nothing could be stored: as before if that is known, else with the safe arm if there is one."""
        if isinstance(part, Asking) and isinstance(part.request, Decide):
            experiment, asked = part.experiment, part.request
            if part.draw is None and part.state.drawn is not None:  # it was stored before
                return rules.decide(asked, part.state, None, Places()[experiment])[:2]
            safe, plan = experiment.told.safe_arm, experiment.plan
            if safe is not None and safe in plan.problem.arms:
                name = str(asked.context) if isinstance(asked.context, str) else ""
                return rules.OK, Decided(
                    asked.id or "", experiment.name, name, safe, None, plan.version, active=asked.active, stored=False
                )
        return UNAVAILABLE, Refusal(f"nothing was stored, try again: {self.failure}")


def word_of(kind: int, *, flag: bool) -> str:
    """Return under which word a record is counted."""
    return WORDS.get(kind) or ("rewards" if flag else "defaults")


def _by_experiment(jobs: list[Job]) -> dict[Experiment, list[Asking]]:
    """Return what clients ask in jobs, in its order."""
    found: defaultdict[Experiment, list[Asking]] = defaultdict(list)
    for job in jobs:
        for part in job.parts:
            if isinstance(part, Asking):
                found[part.experiment].append(part)
    return found
