"""The one thread that writes: takes what has come in, decides, stores it all in one commit, and then answers."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from operator import attrgetter

from bothworlds.service import rules
from bothworlds.service.drawing import draw_all
from bothworlds.service.experiment import Experiment
from bothworlds.service.jobs import Asking, Expire, Group, Job, Places, Publish
from bothworlds.service.memory import Memory
from bothworlds.service.messages import Answer, Decide, Decided, Refusal, Reward
from bothworlds.service.records import ACTIVATION, DECISION, LATE, Record
from bothworlds.service.store import Store

PROBED = 1.0  # seconds between two looks at a store that failed, when nobody asks
ENOUGH = 48  # jobs for one commit; where fewer have come, others are waited for
UNAVAILABLE = 503
ENDED = "the service has ended"
COUNTED = ("decisions", "activations", "rewards", "defaults", "late")
WORDS = {DECISION: "decisions", ACTIVATION: "activations", LATE: "late"}
COUNTED_BY = attrgetter("experiment", "kind", "flag")


class Clerk:
    """Writes in a thread of its own. ``deliver`` is called there with the requests of a group when they are stored."""

    def __init__(self, store: Store, deliver: Callable[[list[Asking]], None], *, tick: float = 0.001) -> None:
        self.store, self.deliver, self.tick = store, deliver, tick
        self.failure: str | None = None
        self.commits = 0
        self.counts: dict[int, dict[str, int]] = {}
        self._jobs: list[Job] = []
        self._came, self._late = threading.Event(), threading.Lock()
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

    def submit(self, jobs: Sequence[Job]) -> None:
        """Hand in jobs that are to be done together, from any thread."""
        self._jobs.extend(jobs)  # at once: the clerk never sees a part of them
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
        with self._late:  # one thread at a time: the last of a batch must not be told before the others have answers
            jobs = self._jobs[:]
            del self._jobs[: len(jobs)]
            self._answer_all(jobs, stored=False)

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
        stored = True
        try:
            self._prepare(jobs)
            for job in jobs:
                self._perform(job, group)
            self._store(group)
            then = self.store.probe if self.failure else self.store.tidy  # a group that wrote nothing has shown nothing
        except Exception as error:
            for record in group.records:
                self.memory.forget(record.experiment, record.id)
            self.failure, stored = str(error) or repr(error), False
        self.memory.trim()
        try:
            self._answer_all(jobs, stored=stored)
        except Exception as error:  # who waited has gone; the others, and the next, are served
            self.failure = f"answers could not be given: {error!r}"
        else:
            if stored:
                self._try_store(then)

    def _answer_all(self, jobs: list[Job], *, stored: bool) -> None:
        """Let those who wait know what has come of jobs."""
        asked: list[Asking] = []
        for job in jobs:
            if isinstance(job, Asking):
                asked.append(job)
                if not stored:
                    job.status, job.answer = self._unavailable(job)
            else:
                job.stored = stored
                job.done.set()
        self.deliver(asked)

    def _prepare(self, jobs: list[Job]) -> None:
        """Recall what is known of the decisions that are asked about, and draw those that are new, all at once."""
        for experiment, asked in _by_experiment(jobs).items():
            new: list[tuple[Asking, Decide]] = []
            states = self.memory.recall(experiment.number, [one.request.id for one in asked])
            for one, state in zip(asked, states, strict=True):
                one.state = state
                if state.drawn is None and type(one.request) is Decide:
                    new.append((one, one.request))
            if new:
                draws = draw_all(experiment.plan, [request for _, request in new])
                for (one, _), draw in zip(new, draws, strict=True):
                    one.draw = draw

    def _perform(self, job: Job, group: Group) -> None:
        """Do a job in memory; what is to be stored goes to the group."""
        if isinstance(job, Asking):
            self._answer(job, group)
        elif isinstance(job, Publish):
            group.published.append(job)
        else:
            self._expire(job, group)

    def _answer(self, one: Asking, group: Group) -> None:
        """Apply the rules to a request."""
        request, state, place = one.request, one.state, group.places[one.experiment]
        assert state is not None
        if type(request) is Reward:
            one.status, one.answer, record = rules.reward(request, state, place)
        elif type(request) is Decide:
            one.status, one.answer, record = rules.decide(request, state, one.draw, place)
        else:
            one.status, one.answer, record = rules.activate(request, state, place)
        if record is not None:
            if request.id is None:
                self.memory.keep(place.number, str(record.id), state)
            group.add(one.experiment, record, state)
        elif state.drawn is None:  # nothing stands in the store under this id
            self.memory.forget(place.number, request.id)

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
            rewards: tuple[list[float], list[float]] = [], []
            for lesson in lessons:
                rewards[lesson.drawn.holdout].append(lesson.reward)
            for holdout, some in enumerate(rewards):
                experiment.pulse.note(group.places.time, sum(some), holdout=bool(holdout), count=len(some))

    def _count(self, records: Sequence[Record]) -> None:
        """Count records that are stored."""
        for (experiment, kind, flag), count in Counter(map(COUNTED_BY, records)).items():
            counts = self.counts.setdefault(experiment, dict.fromkeys(COUNTED, 0))
            counts[word_of(kind, flag=flag)] += count

    def _unavailable(self, one: Asking) -> tuple[int, Answer]:
        """Answer where nothing could be stored: as before if that is known, else with the safe arm if there is one."""
        experiment, asked = one.experiment, one.request
        if isinstance(asked, Decide):
            if one.draw is None and one.state is not None and one.state.drawn is not None:  # it was stored before
                return rules.decide(asked, one.state, None, Places()[experiment])[:2]
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
        if isinstance(job, Asking):
            found[job.experiment].append(job)
    return found
