"""The trainer thread: learns rewards in log order, publishes a version after every batch, and saves snapshots."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bothworlds.service import messages
from bothworlds.service.changes import ProblemChange, prepared_change
from bothworlds.service.commits import Erase, Expire, Publish
from bothworlds.service.experiment import (
    Experiment,
    frame_of,
    learn,
    restarts_of,
    restore,
    snapshot_of,
    warm_plan,
)
from bothworlds.service.maintenance import restore_earlier, rollback_body
from bothworlds.service.records import Changed, Kind, Record, Versioned, packed
from bothworlds.service.retention import Erasure, next_erasure
from bothworlds.service.roles import NOT_LEARNING, AlwaysPermit, LearningPermit
from bothworlds.service.setting_changes import (
    PreparedSettings,
    apply_settings,
    follow_settings,
    mark_of,
    notes_of_settings,
)
from bothworlds.service.store import NO_NOTES, StoreError, TermOverError
from bothworlds.service.supervision import CHECK_INTERVAL, SupervisedThread, ThreadError
from bothworlds.service.writer import ENDED, WriterThread

MAX_BATCH = 1000  # rewards
SNAPSHOT_EVERY = 10_000  # rewards
SNAPSHOT_AFTER = 60.0  # seconds, if anything was learned
ERASE_INTERVAL = 60.0  # seconds between two searches for decisions that need not be kept any longer
ERASE_RECORDS, ERASE_ROUNDS = 2000, 5  # records of the log per part, and parts before learning continues
EXPIRE_RECORDS, EXPIRE_ROUNDS = 500, 20  # records examined per round, and rounds before learning continues
PAUSE = 1.0  # seconds after a failure
FIRST_LIMIT = 120.0  # seconds of one step, after which the thread counts as stuck; it may compile
LEARN_LIMIT = 10.0  # seconds of a later step, unless earlier ones took long
SLOWER = 30  # times as long as any before, a step may take
CHANGE_LIMIT = 600.0  # seconds of a change or a rollback
RESTORE_LIMIT = 1800.0  # seconds to replay the log after a failure
PAUSE_RATIO = 15  # while rewards wait, a pause takes this many times as long as the last work, so that batches grow
LONGEST_PAUSE = 0.15  # seconds


class TrainerThread:
    """Learns in its own thread; the writer thread publishes each version in the commit of its mark."""

    def __init__(
        self,
        experiments: Mapping[str, Experiment],
        writer: WriterThread,
        *,
        refresh: float,
        permit: LearningPermit | None = None,
    ) -> None:
        self.experiments, self.writer, self.refresh = experiments, writer, refresh
        self.permit = permit or AlwaysPermit()
        self._wake = threading.Event()
        self._tasks: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]]] = queue.SimpleQueue()
        self._task_done: Callable[[Any], None] | None = None  # of the task in progress
        self._stopping = self._ended = False
        self._saved = dict.fromkeys(experiments, time.monotonic())
        self._erasures: dict[str, Erasure | None] = {}
        self._erased = dict.fromkeys(experiments, -ERASE_INTERVAL)
        self.thread = SupervisedThread("trainer", self._work)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def wake(self) -> None:
        """Wake the thread, as there are rewards or tasks."""
        if not self._wake.is_set():
            self._wake.set()

    def run_between_batches(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run ``work`` in the trainer thread between two batches, and call ``done`` with its result or exception.

        If the thread gets stuck, ``done`` may be called a second time.
        """
        self._tasks.put((work, done))
        self.wake()
        if self._ended:
            self._refuse_tasks(StoreError(ENDED))
        elif self.thread.fault is not None:
            self._refuse_tasks(ThreadError(f"nothing was changed: {self.thread.fault}"))

    def refuse_all(self) -> None:
        """Refuse all tasks, from another thread, as this one is dead or stuck."""
        if self._task_done is not None:
            self._task_done(ThreadError(f"it is not known whether the change was made: {self.thread.fault}"))
        self._refuse_tasks(ThreadError(f"nothing was changed: {self.thread.fault}"))

    def _refuse_tasks(self, refusal: Exception) -> None:
        """Refuse all waiting tasks: the thread has ended, or nothing can be stored."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._tasks.get_nowait()[1](refusal)

    def stop(self) -> bool:
        """Learn the waiting rewards, save snapshots, and stop the thread; return False if it is stuck."""
        self._stopping = True
        self._wake.set()
        return self.thread.join()

    def _work(self) -> None:
        expired = 0.0
        while not self._stopping:
            self._wake.wait(timeout=self.permit.poll or self.refresh * 10)
            self._wake.clear()
            start = time.monotonic()
            if not self._may_learn():
                continue
            while not self._tasks.empty():
                self._run_task(*self._tasks.get())
            for experiment in self.experiments.values():
                self._try(experiment, self.step)
                if start - expired > self.refresh * 10:
                    self._try(experiment, self.expire)
                    self._try(experiment, self.erase)
            expired = start if start - expired > self.refresh * 10 else expired
            self._rest(time.monotonic() - start)
        for experiment in self.experiments.values() if self._may_learn() else ():
            self._try(experiment, self.step)
            self._try(experiment, self.save)
        self._ended = True
        self._refuse_tasks(StoreError(ENDED))

    def _may_learn(self) -> bool:
        """Return whether this host may learn now; refuse tasks if it may not."""
        try:
            with self.thread.doing("looks for rewards", FIRST_LIMIT):
                if self.permit.begin(self.experiments.values()):
                    return True
        except StoreError:
            if not self._stopping:
                time.sleep(PAUSE / 4)
        self._refuse_tasks(ThreadError(f"nothing was changed: {NOT_LEARNING}"))
        return False

    def _run_task(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run a task; what it raises is raised where it was submitted."""
        self._task_done = done
        with self.thread.doing("changes an experiment", CHANGE_LIMIT):
            try:
                result = work()
            except Exception as error:
                result = error
        self._task_done = None
        done(result)

    def _rest(self, took: float) -> None:
        """Pause after work that took ``took`` seconds, so that batches grow; not if a full batch waits."""
        waiting = max((experiment.unlearned for experiment in self.experiments.values()), default=0)
        if waiting < MAX_BATCH:
            time.sleep(min(LONGEST_PAUSE, max(self.refresh - took, took * PAUSE_RATIO if waiting else 0.0)))

    def _try(self, experiment: Experiment, work: Callable[[Experiment], None]) -> None:
        """Do a step of work; a failure is reported until the step succeeds, and the policy is restored first."""
        try:
            self._recover(experiment)
            version, begin = experiment.policy.version, time.monotonic()
            with self.thread.doing("learns", self._limit(experiment)):
                work(experiment)
            if experiment.policy.version > version:
                experiment.slowest_step = max(experiment.slowest_step or 0.0, time.monotonic() - begin)
            if experiment.failed_step == work.__name__:
                experiment.failure = None
        except Exception as error:
            _fail(experiment, work, error)
            if not self._stopping:
                time.sleep(PAUSE)

    def _limit(self, experiment: Experiment) -> float:
        """Return the seconds that a step may take."""
        slowest = experiment.slowest_step
        return FIRST_LIMIT if slowest is None else min(FIRST_LIMIT, max(LEARN_LIMIT, SLOWER * slowest))

    def _recover(self, experiment: Experiment) -> None:
        """After a failure, restore policy and queue from the store."""
        if experiment.needs_recovery:
            store = self.writer.store
            with self.thread.doing("restores a policy", RESTORE_LIMIT):
                restored = restore(store, experiment.number)
                experiment.policy, experiment.through = restored.policy, restored.through
                experiment.ordered_through = restored.ordered_through
                experiment.closed_fingerprints = restored.policy.closed_fingerprints
                follow_settings(experiment, store, restored.policy.plan().spec)
                experiment.requeue(store)
            experiment.needs_recovery, experiment.slowest_step = False, None

    def step(self, experiment: Experiment) -> None:
        """Learn one batch and publish the new version."""
        events, *learned = experiment.take(self.writer.store, MAX_BATCH)
        policy, before = experiment.policy, experiment.policy.version
        if events:
            with self.thread.doing("learns", self._limit(experiment), computes=True):
                learn(policy, events)
        experiment.through, experiment.ordered_through = learned
        experiment.unsaved += len(events)
        if policy.version > before:  # otherwise all of them belonged to the holdout
            plan = warm_plan(policy)
            through = experiment.through, experiment.ordered_through
            body = Versioned(policy.version, plan.digest, *through, restarts_of(plan))
            mark = mark_of(experiment, Kind.VERSION, packed(body))
            self._publish(experiment, [mark], save=self._is_snapshot_due(experiment))
        if experiment.unlearned:
            self.wake()

    def _is_snapshot_due(self, experiment: Experiment) -> bool:
        since = time.monotonic() - self._saved[experiment.name]
        return experiment.unsaved >= SNAPSHOT_EVERY or (experiment.unsaved > 0 and since > SNAPSHOT_AFTER)

    def save(self, experiment: Experiment) -> None:
        """Save a snapshot, if anything was learned since the last one."""
        if experiment.unsaved:
            snapshot = snapshot_of(experiment.policy, experiment.number, experiment)
            if self._store(Publish(experiment, (), experiment.plan, [snapshot])):
                self._note_saved(experiment)

    def _note_saved(self, experiment: Experiment) -> None:
        experiment.unsaved, self._saved[experiment.name] = 0, time.monotonic()

    def _publish(
        self,
        experiment: Experiment,
        marks: Sequence[Record],
        *,
        save: bool,
        frame: bool = False,
        notes: Mapping[str, int] = NO_NOTES,
    ) -> None:
        """Store marks and publish the current plan; a version is retried until it is stored.

        If they cannot be stored, the policy is restored from the store: the log does not lead to its state.
        """
        try:
            self._publish_once(experiment, marks, notes, save=save, frame=frame)
        except Exception as error:
            _fail(experiment, self.step, error)
            raise

    def _publish_once(
        self, experiment: Experiment, marks: Sequence[Record], notes: Mapping[str, int], *, save: bool, frame: bool
    ) -> None:
        policy, plan = experiment.policy, warm_plan(experiment.policy)
        snapshots = [snapshot_of(policy, experiment.number, experiment)] if save else []
        frames = [frame_of(policy)] if frame else []
        while not self._store(Publish(experiment, marks, plan, snapshots, frames, notes)):
            refusal = StoreError(f"nothing was changed, try again: {self.writer.obstacle}")
            if not self.permit.holds():
                raise TermOverError(NOT_LEARNING)
            if marks[0].kind != Kind.VERSION:
                raise refusal
            if self._stopping:
                raise StoreError("the last version could not be stored; its rewards are replayed at the next start")
            self._refuse_tasks(refusal)
            time.sleep(PAUSE / 4)
        if save:
            self._note_saved(experiment)

    def _store(self, job: Publish | Expire | Erase) -> bool:
        """Submit a job to the writer thread, wait, and return whether it was stored."""
        self.writer.submit([job])
        with self.thread.doing("waits for the writer thread"):
            while not job.done.wait(CHECK_INTERVAL):
                if self._stopping and self.writer.thread.fault is not None:
                    return False
        return job.stored

    def expire(self, experiment: Experiment) -> None:
        """Close reward windows: give decisions the default reward, or record that they are unanswered."""
        settings = experiment.settings
        if settings.default_reward is None:
            return
        for _ in range(EXPIRE_ROUNDS):
            now, after = experiment.clock.now(settings.seconds), experiment.expired_through
            ids, through = self.writer.store.overdue(
                experiment.number, after=after, before=now - settings.seconds, now=time.time(), most=EXPIRE_RECORDS
            )
            if through == after or (ids and not self._store(Expire(experiment, ids))):
                return
            experiment.expired_through = through
            if ids and experiment.settings.in_order:
                experiment.unread += 1  # an unanswered decision is no reward, but later ones waited for it
                self.wake()

    def erase(self, experiment: Experiment) -> None:
        """Erase decisions that need not be kept any longer, some at a time."""
        keep, name, store = experiment.settings.keep_seconds, experiment.name, self.writer.store
        if keep is None:
            return
        if self._erasures.get(name) is None:
            if time.monotonic() - self._erased[name] < ERASE_INTERVAL:
                return
            self._erased[name] = time.monotonic()
            self._erasures[name] = next_erasure(store, experiment.number, before=time.time() - keep)
        for _ in range(ERASE_ROUNDS):
            erasure = self._erasures[name]
            if erasure is None:
                return
            snapshot, position = erasure
            end = min(position + ERASE_RECORDS, snapshot.end)
            if not self._store(Erase(snapshot, position, end)):
                return
            self._erasures[name] = Erasure(snapshot, end) if end < snapshot.end else None

    def change(self, experiment: Experiment, prepared: ProblemChange) -> messages.Changed:
        """Add and retire arms, or replace the context distribution; call it in the trainer thread."""
        self._recover(experiment)
        policy, request = experiment.policy, prepared.request
        before = policy.version
        if not policy.fits(prepared.change):  # it was restored or rolled back since
            prepared = prepared_change(policy, request)
        policy.change_as_prepared(prepared.change)
        experiment.slowest_step = None  # the next step may compile
        if policy.version > before:
            digest, learned = warm_plan(policy).digest, (experiment.through, experiment.ordered_through)
            body = Changed(policy.version, digest, *learned, prepared.problem, request.trust, request.fresh)
            self._publish(experiment, [mark_of(experiment, Kind.CHANGE, packed(body))], save=True, frame=True)
        return messages.Changed(experiment.name, policy.version, policy.digest)

    def roll_back(self, experiment: Experiment, request: messages.Rollback) -> messages.Changed:
        """Return to an earlier version; call it in the trainer thread."""
        self._recover(experiment)
        store, now = self.writer.store, experiment.policy.version
        policy = experiment.policy = restore_earlier(store, experiment.number, now=now, to=request.version)
        body = rollback_body(policy, experiment, to=request.version)
        self._publish(experiment, [mark_of(experiment, Kind.ROLLBACK, body)], save=True)
        return messages.Changed(experiment.name, policy.version, policy.digest)

    def change_settings(self, experiment: Experiment, prepared: PreparedSettings) -> messages.Changed:
        """Decide with other settings from a new version on; call it in the trainer thread."""
        self._recover(experiment)
        policy, settings = experiment.policy, prepared.settings
        marks = apply_settings(experiment, settings, machine=prepared.machine_for(policy.problem))
        if marks:
            experiment.slowest_step = None  # the next step may compile
            experiment.closed_fingerprints = policy.closed_fingerprints
            notes = notes_of_settings(experiment.number, settings)
            self._publish(experiment, marks, save=True, frame=True, notes=notes)
            experiment.settings = settings
        return messages.Changed(experiment.name, policy.version, policy.digest)


def _fail(experiment: Experiment, work: Callable[[Experiment], None], error: Exception) -> None:
    """Note a failed step; the policy must be restored before the next one."""
    reason = f"{type(error).__name__}: {error.strerror}" if isinstance(error, OSError) else repr(error)
    experiment.failure, experiment.failed_step = f"learning has failed and is retried: {reason}", work.__name__
    experiment.needs_recovery = True
