"""The writer thread: decides, answers, and commits to the store in groups."""

import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from operator import attrgetter

from bothworlds.service import rules
from bothworlds.service.batch_decide import decide_batch
from bothworlds.service.commits import CommitContext, CommitGroup, Erase, Expire, Job, PendingRequest, Publish
from bothworlds.service.experiment import Experiment
from bothworlds.service.messages import Answer, Decide, Decided, Refusal, Reward
from bothworlds.service.records import ACTIVATION, DECISION, LATE, UNANSWERED, Record, hash_request
from bothworlds.service.rules import DecisionState
from bothworlds.service.store import ConflictError, Store
from bothworlds.service.supervision import SupervisedThread, ThreadError

CACHED_DECISIONS = 20_000  # per experiment
CACHED_SAFE = 50_000  # newest answers with the safe arm, of all experiments together


class DecisionCache:
    """LRU cache of decision states by experiment number and decision id.

    A state that is changed must be stored; otherwise it must be forgotten.
    """

    def __init__(self, store: Store, size: int) -> None:
        self.store, self.size = store, size
        self._states: defaultdict[int, OrderedDict[str, DecisionState]] = defaultdict(OrderedDict)

    def get(self, experiment: int, ids: Sequence[str | None]) -> list[DecisionState]:
        """Return the states of decisions, from the store where necessary; unknown ids and None get an empty state."""
        cached, uncached, states = self._states[experiment], dict[str, DecisionState](), list[DecisionState]()
        for name in ids:
            if name is None:
                states.append(DecisionState())
            elif (state := cached.get(name)) is not None:
                cached.move_to_end(name)
                states.append(state)
            else:
                states.append(uncached.setdefault(name, DecisionState()))
        if uncached:
            for record in self.store.find(experiment, sorted(uncached)):
                uncached[str(record.id)].apply(record)
            cached.update(uncached)
        return states

    def put(self, experiment: int, name: str, state: DecisionState) -> None:
        """Add a state."""
        self._states[experiment][name] = state

    def forget(self, experiment: int, name: str | None) -> None:
        """Remove a state, if it is cached."""
        self._states[experiment].pop(name or "", None)

    def trim(self) -> None:
        """Remove the least recently used states beyond ``size``."""
        for states in self._states.values():
            for _ in range(len(states) - self.size):
                states.popitem(last=False)

    def clear(self) -> None:
        """Remove all states."""
        self._states.clear()


PROBE_INTERVAL = 1.0  # seconds between two probes of a store that failed, while there are no jobs
STORE_LIMIT = 1.4  # seconds of one call of the store, after which the thread counts as stuck
SLOWEST_RECORDS, SLOWEST_BYTES = 10_000, 20_000_000  # per second: more time for larger commits
DECIDE_LIMIT = 60.0  # seconds to process a group of jobs: the first calls may compile
MOST_CONFLICTS = 5  # times that a commit is tried
FULL_COMMIT = 48  # jobs; with fewer, the thread waits a tick for more
UNAVAILABLE = 503
ENDED = "the service has ended"
COUNTERS = ("decisions", "activations", "rewards", "defaults", "late", "unanswered")
COUNTER_OF_KIND = {DECISION: "decisions", ACTIVATION: "activations", LATE: "late", UNANSWERED: "unanswered"}
COUNTED_BY = attrgetter("experiment", "kind", "flag")


class WriterThread:
    """The only thread that writes to the store.

    It calls ``deliver`` with the requests of a group once they are stored. ``tick`` is in seconds. ``counts`` has the
    records stored since the start, by experiment number and counter. ``cached`` is the number of decisions whose states
    are cached, 0 if other hosts change them. While the thread is dead or stuck, requests are
    refused.
    """

    def __init__(
        self,
        store: Store,
        deliver: Callable[[list[PendingRequest]], None],
        *,
        tick: float = 0.001,
        cached: int = CACHED_DECISIONS,
    ) -> None:
        self.store, self.deliver, self.tick = store, deliver, tick
        self.failure: str | None = None
        self.commits = 0
        self.counts: dict[int, dict[str, int]] = {}
        self._jobs: list[Job] = []
        self._in_progress: list[Job] = []
        self._wake, self._taking = threading.Event(), threading.Lock()
        self.cache = DecisionCache(store, cached)
        self._safe: OrderedDict[tuple[int, str], tuple[bytes, Decided]] = OrderedDict()
        self._stopping = self._ended = False
        self.thread = SupervisedThread("writer", self._work)

    @property
    def waiting(self) -> int:
        """Number of waiting jobs."""
        return len(self._jobs)

    @property
    def obstacle(self) -> str | None:
        """Why nothing can be stored, if nothing can."""
        return self.thread.fault or self.failure

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Submit jobs for one commit, from any thread."""
        self._jobs.extend(jobs)  # atomic: the writer thread sees all of them or none
        if not self._wake.is_set():
            self._wake.set()
        if self._ended or self.thread.fault is not None:
            self._refuse_jobs()

    def stop(self) -> bool:
        """Finish the submitted jobs and stop the thread; return False if it is stuck."""
        self._stopping = True
        self._wake.set()
        return self.thread.join()

    def _work(self) -> None:
        while not self._stopping or self._jobs:
            self._wake.wait(PROBE_INTERVAL if self.failure else None)
            if self.tick and len(self._jobs) < FULL_COMMIT and not self._stopping:
                time.sleep(self.tick)  # for a larger group
            self._wake.clear()
            with self._taking:
                jobs = self._in_progress = self._take()
            if jobs:
                erasures = [job for job in jobs if type(job) is Erase]
                with self.thread.doing("decides", DECIDE_LIMIT, computes=True):
                    self._process([job for job in jobs if type(job) is not Erase] if erasures else jobs)
                    for erasure in erasures:
                        self._erase(erasure)
                self._in_progress = []
            elif self.failure:
                self._try_store(self.store.probe)
        self.failure, self._ended = ENDED, True
        self._refuse_jobs()

    def _take(self) -> list[Job]:
        """Remove and return all waiting jobs."""
        jobs = self._jobs[:]
        del self._jobs[: len(jobs)]  # other threads may have added more since
        return jobs

    def _refuse_jobs(self) -> None:
        """Answer the jobs that the thread, which has ended or is stuck, has not begun."""
        with self._taking:  # one thread at a time: the last job of a batch is woken after all of them have answers
            self._answer_all(self._take(), stored=False)

    def refuse_all(self) -> None:
        """Refuse all requests, from another thread, as this one is dead or stuck.

        The trainer thread keeps waiting for a stuck thread: its version may still be stored.
        """
        self._refuse_jobs()
        begun, self._in_progress = self._in_progress, [] if self.thread.dead else self._in_progress
        if self.thread.dead:
            for job in begun:
                if not isinstance(job, PendingRequest):
                    job.done.set()
        requests = [job for job in begun if isinstance(job, PendingRequest)]
        for request in requests:
            request.error = ThreadError(f"it is not known whether this was stored, repeat it: {self.thread.fault}")
        self.deliver(requests)

    def _try_store(self, work: Callable[[], None]) -> None:
        """Do work on the store that no request waits for, and note whether it fails."""
        try:
            with self.thread.doing("writes to the store", STORE_LIMIT):
                work()
            self.failure = None
        except Exception as error:
            self.failure = str(error) or repr(error)

    def _erase(self, job: Erase) -> None:
        """Erase a part of the log."""
        limit = STORE_LIMIT + (job.through - job.after) / SLOWEST_RECORDS
        try:
            with self.thread.doing("erases old decisions", limit):
                self.store.erase_part(job.snapshot, after=job.after, through=job.through)
            job.stored = True
        except Exception as error:
            self.failure = str(error) or repr(error)
        job.done.set()

    def _process(self, jobs: list[Job]) -> None:
        """Process jobs in one commit, and answer them, also if nothing can be stored."""
        stored = True
        try:
            self._commit(jobs)
            follow_up = self.store.probe if self.failure else self.store.tidy  # probe: the group wrote nothing
        except Exception as error:
            self.failure, stored = str(error) or repr(error), False
        self.cache.trim()
        try:
            self._answer_all(jobs, stored=stored)
        except Exception as error:  # a waiter is broken; later jobs are still served
            self.failure = f"answers could not be delivered: {error!r}"
        else:
            if stored:
                self._try_store(follow_up)

    def _commit(self, jobs: list[Job]) -> None:
        """Commit what jobs store; if another host has changed a decision meanwhile, do it again with its new state."""
        for left in reversed(range(MOST_CONFLICTS)):
            group = CommitGroup()
            try:
                self._prepare(jobs)
                for job in jobs:
                    self._perform(job, group)
                self._store(group)
            except Exception as error:
                for record in group.records:
                    self.cache.forget(record.experiment, record.id)
                if not left or not isinstance(error, ConflictError):
                    raise
            else:
                return

    def _answer_all(self, jobs: list[Job], *, stored: bool) -> None:
        """Wake the waiters of finished jobs; clients' requests get a refusal if nothing was stored."""
        pending: list[PendingRequest] = []
        for job in jobs:
            if isinstance(job, PendingRequest):
                pending.append(job)
                if not stored:
                    job.status, job.answer = self._unavailable(job)
            else:
                job.stored = stored
                job.done.set()
        self.deliver(pending)

    def _prepare(self, jobs: list[Job]) -> None:
        """Look up the states of all decisions, and draw the new decisions, each in one batch."""
        for experiment, pending in _by_experiment(jobs).items():
            new: list[tuple[PendingRequest, Decide]] = []
            with self.thread.doing("reads the store", STORE_LIMIT):
                states = self.cache.get(experiment.number, [job.request.id for job in pending])
            for job, state in zip(pending, states, strict=True):
                job.state, job.draw = state, job.given
                if state.decision is not None or job.given is not None or self._is_safe(job):
                    continue
                if type(job.request) is Decide:
                    new.append((job, job.request))
            if new:
                traceparents = [job.traceparent for job, _ in new]
                draws = decide_batch(experiment.plan, [request for _, request in new], traceparents)
                for (job, _), draw in zip(new, draws, strict=True):
                    job.draw = draw

    def _perform(self, job: Job, group: CommitGroup) -> None:
        """Perform a job in memory, and add what must be stored to the group."""
        if isinstance(job, PendingRequest):
            self._answer(job, group)
        elif isinstance(job, Publish):
            group.published.append(job)
        elif isinstance(job, Expire):
            self._expire(job, group)

    def _answer(self, job: PendingRequest, group: CommitGroup) -> None:
        """Apply the rules to a request."""
        request, state, context = job.request, job.state, group.context[job.experiment]
        assert state is not None
        if state.decision is None and self._is_safe(job):
            job.status, job.answer = self._safe_answer(job)
            self.cache.forget(context.number, request.id)
            return
        if type(request) is Reward:
            job.status, job.answer, record = rules.reward(request, state, context)
        elif type(request) is Decide:
            job.status, job.answer, record = rules.decide(request, state, job.draw, context)
        else:
            job.status, job.answer, record = rules.activate(request, state, context)
        if record is not None:
            if request.id is None:
                self.cache.put(context.number, str(record.id), state)
            group.add(job.experiment, record, state)
        elif state.decision is None:  # the store has no decision with this id
            self.cache.forget(context.number, request.id)

    def _expire(self, job: Expire, group: CommitGroup) -> None:
        """Give decisions the default reward, or record that they are unanswered."""
        experiment, default = job.experiment, job.experiment.settings.default_reward
        if default is None:
            return
        context = group.context[experiment]
        for name, state in zip(job.ids, self.cache.get(experiment.number, job.ids), strict=True):
            record = rules.expire(name, state, context, default)
            if record is not None:
                group.add(experiment, record, state)

    def _store(self, group: CommitGroup) -> None:
        """Commit the group, versions after decisions and rewards; then publish the plans and queue the rewards."""
        records = [*group.records, *(mark for job in group.published for mark in job.marks)]
        snapshots = [snapshot for job in group.published for snapshot in job.snapshots]
        frames = [frame for job in group.published for frame in job.frames]
        if records or snapshots:
            saved = [job.experiment for job in group.published if job.snapshots]
            plans = [(job.experiment.number, job.plan) for job in group.published if job.marks]
            notes = {name: value for job in group.published for name, value in job.notes.items()}
            notes |= {experiment.cursor: experiment.expired_through for experiment in saved}
            size = sum(len(snapshot.content) for snapshot in snapshots) + sum(len(frame.content) for frame in frames)
            limit = STORE_LIMIT + len(records) / SLOWEST_RECORDS + size / SLOWEST_BYTES
            with self.thread.doing("writes to the store", limit):
                first = self.store.append(records, snapshots=snapshots, frames=frames, notes=notes, plans=plans)
            self.failure = None
            self.commits += 1
            self._count(group.records)
            self._queue_rewards(group, first)
        for job in group.published:
            job.experiment.advance(job.plan)

    def _queue_rewards(self, group: CommitGroup, first: int) -> None:
        """Queue the rewards of a stored group for learning; ``first`` is the sequence number of its first record."""
        for experiment, events in group.reward_events(first).items():
            experiment.enqueue(events)

    def _count(self, records: Sequence[Record]) -> None:
        """Count stored records."""
        for (experiment, kind, flag), count in Counter(map(COUNTED_BY, records)).items():
            counts = self.counts.setdefault(experiment, dict.fromkeys(COUNTERS, 0))
            counts[counter_of(kind, flag=flag)] += count

    def _unavailable(self, job: PendingRequest) -> tuple[int, Answer]:
        """Return the answer while nothing can be stored: that of a stored decision, the safe arm, or a refusal."""
        experiment, request = job.experiment, job.request
        if isinstance(request, Decide) and job.given is None:
            if job.draw is None and job.state is not None and job.state.decision is not None:  # stored before
                return rules.decide(request, job.state, None, CommitContext()[experiment])[:2]
            if self._is_safe(job):
                return self._safe_answer(job)
            safe, plan = experiment.settings.safe_arm, experiment.plan
            if safe is not None and safe in plan.problem.arms:
                name = str(request.context) if isinstance(request.context, str) else ""
                answer = Decided(
                    request.id or "",
                    experiment.name,
                    name,
                    safe,
                    None,
                    plan.version,
                    active=request.active,
                    stored=False,
                )
                self._keep_safe(experiment.number, request, answer)
                return rules.OK, answer
        return UNAVAILABLE, Refusal(f"nothing was stored, try again: {self.obstacle}")

    def _keep_safe(self, experiment: int, request: Decide, answer: Decided) -> None:
        """Keep an answer with the safe arm, so that a repetition of the request gets the same one."""
        if request.id is not None:
            self._safe[experiment, request.id] = hash_request(request.context, request.active), answer
            if len(self._safe) > CACHED_SAFE:
                self._safe.popitem(last=False)

    def _is_safe(self, job: PendingRequest) -> bool:
        """Return whether a request repeats one that was answered with the safe arm."""
        is_decide = bool(self._safe) and type(job.request) is Decide and job.given is None
        return is_decide and (job.experiment.number, job.request.id) in self._safe

    def _safe_answer(self, job: PendingRequest) -> tuple[int, Answer]:
        """Return the answer given before; a conflict if the request is another one."""
        request = job.request
        assert type(request) is Decide
        hashed, answer = self._safe[job.experiment.number, str(request.id)]
        if hashed != hash_request(request.context, request.active):
            return rules.CONFLICT, Refusal(rules.other_body(request.id))
        return rules.OK, answer


def counter_of(kind: int, *, flag: bool) -> str:
    """Return the name of the counter of a record."""
    return COUNTER_OF_KIND.get(kind) or ("rewards" if flag else "defaults")


def _by_experiment(jobs: list[Job]) -> dict[Experiment, list[PendingRequest]]:
    """Return the clients' requests among jobs by experiment, in order."""
    requests: defaultdict[Experiment, list[PendingRequest]] = defaultdict(list)
    for job in jobs:
        if isinstance(job, PendingRequest):
            requests[job.experiment].append(job)
    return requests
