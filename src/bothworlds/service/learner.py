"""The one thread that learns: rewards in the order of the log, a version after every batch, snapshots now and then."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem import Problem
from bothworlds.problem.transform import undo_blocks
from bothworlds.service import messages
from bothworlds.service.clerk import ENDED, Clerk
from bothworlds.service.experiment import (
    Experiment,
    as_bytes,
    frame_of,
    learn,
    ready,
    restored,
    snapshot_of,
)
from bothworlds.service.jobs import Expire, Publish
from bothworlds.service.records import Changed, Kind, Record, Versioned, packed
from bothworlds.service.rolling import mark_of, went_back
from bothworlds.service.store import StoreError

PACE = 1000  # rewards in a batch, at most
SAVED_EVERY = 10_000  # rewards
SAVED_AFTER = 60.0  # seconds, if anything was learnt
OVERDUE, GOES = 500, 20  # records looked at in one go, and goes before learning has its turn
PAUSE = 1.0  # seconds after a failure
SHARE = 15  # where rewards wait already, pauses are so many times longer than what was done: batches grow
LONGEST_PAUSE = 0.15  # seconds


class Learner:
    """Learns in a thread of its own; what it learns is published by the clerk, in the commit of its mark in the log."""

    def __init__(self, experiments: Mapping[str, Experiment], clerk: Clerk, *, refresh: float) -> None:
        self.experiments, self.clerk, self.refresh = experiments, clerk, refresh
        self._came = threading.Event()
        self._errands: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]]] = queue.SimpleQueue()
        self._stopping = self._ended = False
        self._saved = dict.fromkeys(experiments, time.monotonic())
        self._thread = threading.Thread(target=self._work, name="learner", daemon=True)

    def start(self) -> None:
        """Begin to learn."""
        self._thread.start()

    def wake(self) -> None:
        """Say that rewards have come."""
        if not self._came.is_set():
            self._came.set()

    def errand(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Have something done between two batches; ``done`` gets what comes of it, or the error."""
        self._errands.put((work, done))
        self.wake()
        if self._ended:
            self._turn_away(StoreError(ENDED))

    def _turn_away(self, refusal: StoreError) -> None:
        """Refuse errands that have come: since the end, or while nothing can be stored."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._errands.get_nowait()[1](refusal)

    def stop(self) -> None:
        """Learn what has come in, save it, and end."""
        self._stopping = True
        self._came.set()
        self._thread.join()

    def _work(self) -> None:
        looked = 0.0
        while not self._stopping:
            self._came.wait(timeout=self.refresh * 10)
            self._came.clear()
            began = time.monotonic()
            while not self._errands.empty():
                work, done = self._errands.get()
                try:
                    done(work())
                except Exception as error:  # told to whoever asked
                    done(error)
            for experiment in self.experiments.values():
                self._try(experiment, self.step)
                if began - looked > self.refresh * 10:
                    self._try(experiment, self.expire)
            looked = began if began - looked > self.refresh * 10 else looked
            self._rest(time.monotonic() - began)
        for experiment in self.experiments.values():
            self._try(experiment, self.step)
            self._try(experiment, self.save)
        self._ended = True
        self._turn_away(StoreError(ENDED))

    def _rest(self, took: float) -> None:
        """Pause after work that took some seconds, so that batches grow; not where whole batches wait already."""
        waiting = max((len(one.waiting) for one in self.experiments.values()), default=0)
        if waiting < PACE:
            time.sleep(min(LONGEST_PAUSE, max(self.refresh - took, took * SHARE if waiting else 0.0)))

    def _try(self, experiment: Experiment, work: Callable[[Experiment], None]) -> None:
        """Do something; after a failure say so until it works, and begin again from what the store has."""
        try:
            self._recover(experiment)
            work(experiment)
            if experiment.failed == work.__name__:
                experiment.failure = None
        except Exception as error:
            _fail(experiment, work, error)
            if not self._stopping:
                time.sleep(PAUSE)

    def _recover(self, experiment: Experiment) -> None:
        """After a failure learn again from the store what was learnt, and take what came since."""
        if experiment.astray:
            store = self.clerk.store
            experiment.policy, experiment.through, _ = restored(store, experiment.number)
            experiment.hear_again(store)
            experiment.astray = False

    def step(self, experiment: Experiment) -> None:
        """Learn one batch and publish what comes of it."""
        lessons = experiment.take(PACE)
        if not lessons:
            return
        policy, before = experiment.policy, experiment.policy.version
        learn(policy, lessons)
        experiment.unsaved += len(lessons)
        experiment.through = lessons[-1].seq
        if policy.version > before:  # else all of them were held out, and there is nothing to learn again
            body = Versioned(policy.version, ready(policy).digest, experiment.through)
            self._publish(experiment, Kind.VERSION, packed(body), save=self._is_time(experiment))
        if experiment.waiting:
            self.wake()

    def _is_time(self, experiment: Experiment) -> bool:
        """Tell whether it is time for a snapshot."""
        since = time.monotonic() - self._saved[experiment.name]
        return experiment.unsaved >= SAVED_EVERY or (experiment.unsaved > 0 and since > SAVED_AFTER)

    def save(self, experiment: Experiment) -> None:
        """Save a snapshot, if anything was learnt since the last."""
        if experiment.unsaved:
            snapshot = snapshot_of(experiment.policy, experiment.number, experiment.through)
            if self._stored(Publish(experiment, None, experiment.plan, [snapshot])):
                self._saved_now(experiment)

    def _saved_now(self, experiment: Experiment) -> None:
        experiment.unsaved, self._saved[experiment.name] = 0, time.monotonic()

    def _publish(self, experiment: Experiment, kind: Kind, body: bytes, *, save: bool, frame: bool = False) -> None:
        """Have the clerk store a mark and let the plan of now decide; a version is tried again until it stands there.

        A policy whose mark does not get there is not gone on with: it would be one that the log does not lead to.
        """
        try:
            self._publish_once(experiment, kind, body, save=save, frame=frame)
        except Exception as error:
            _fail(experiment, self.step, error)
            raise

    def _publish_once(self, experiment: Experiment, kind: Kind, body: bytes, *, save: bool, frame: bool) -> None:
        policy, plan = experiment.policy, ready(experiment.policy)
        mark = Record(0, experiment.number, kind, None, time.time(), True, body)
        snapshots = [snapshot_of(policy, experiment.number, experiment.through)] if save else []
        frames = [frame_of(policy)] if frame else []
        while not self._stored(Publish(experiment, mark, plan, snapshots, frames)):
            refusal = StoreError(f"nothing was changed, try again: {self.clerk.failure}")
            if kind != Kind.VERSION:
                raise refusal
            if self._stopping:
                raise StoreError("what was learnt last could not be stored; it is learnt again at the next start")
            self._turn_away(refusal)
            time.sleep(PAUSE / 4)
        if save:
            self._saved_now(experiment)

    def _stored(self, request: Publish | Expire) -> bool:
        """Tell whether the clerk could store it."""
        self.clerk.submit([request])
        request.done.wait()
        return request.stored

    def expire(self, experiment: Experiment) -> None:
        """Hand decisions whose window has closed to the clerk."""
        told = experiment.told
        if told.default_reward is None:
            return
        for _ in range(GOES):
            now = time.time()
            ids, looked = self.clerk.store.overdue(
                experiment.number, after=experiment.expired, before=now - told.seconds, now=now, most=OVERDUE
            )
            if looked == experiment.expired or (ids and not self._stored(Expire(experiment, ids))):
                return
            experiment.expired = looked

    def change(self, experiment: Experiment, asked: messages.Change) -> messages.Changed:
        """Let arms come and go, or take another law of contexts; in the learner's thread."""
        self._recover(experiment)
        policy = experiment.policy
        problem = changed_problem(policy.problem, asked)
        before, content = policy.version, as_bytes(problem.save)
        policy.change(problem, trust=asked.trust, fresh=asked.fresh)
        if policy.version > before:
            body = Changed(policy.version, ready(policy).digest, experiment.through, content, asked.trust, asked.fresh)
            self._publish(experiment, Kind.CHANGE, packed(body), save=True, frame=True)
        return messages.Changed(experiment.name, policy.version, policy.digest)

    def roll_back(self, experiment: Experiment, asked: messages.Rollback) -> messages.Changed:
        """Forget what was learnt after a version; in the learner's thread."""
        self._recover(experiment)
        store, now = self.clerk.store, experiment.policy.version
        policy = experiment.policy = went_back(store, experiment.number, now=now, to=asked.version)
        body = mark_of(policy, through=experiment.through, to=asked.version)
        self._publish(experiment, Kind.ROLLBACK, body, save=True)
        return messages.Changed(experiment.name, policy.version, policy.digest)


def _fail(experiment: Experiment, work: Callable[[Experiment], None], error: Exception) -> None:
    """Have it told what failed, until it works."""
    told = f"{type(error).__name__}: {error.strerror}" if isinstance(error, OSError) else repr(error)
    experiment.failure, experiment.failed = f"learning has stopped, and begins again: {told}", work.__name__
    experiment.astray = True


def changed_problem(problem: Problem, asked: messages.Change) -> Problem:
    """Return a problem with arms added and retired, and another law of contexts."""
    own = undo_blocks(problem.features)
    plain = [arm.name for arm in asked.add if arm.features is None]
    featured = {arm.name: arm.features for arm in asked.add if arm.features is not None}
    if plain and own is None:
        raise ValueError(f"arm {plain[0]!r} needs features: arms of this experiment share columns")
    if plain and featured:
        raise ValueError(f"arm {plain[0]!r} has no features, and others have: add them to all new arms, or to none")
    if own is not None and not featured and (plain or asked.retire):
        problem = _with_own_columns(problem, own, plain, asked.retire)
    else:
        problem = problem.with_arms(featured) if featured else problem  # first, for all others but one may go
        problem = problem.without_arms(asked.retire) if asked.retire else problem
    return problem if asked.probabilities is None else problem.with_probabilities(asked.probabilities)


def _with_own_columns(problem: Problem, features: Floats, added: list[str], retired: list[str]) -> Problem:
    """Return a problem with other arms, each with a model of its own in features of the context."""
    strange = [name for name in retired if name not in problem.arms]
    if strange:
        raise ValueError(f"there is no arm {strange[0]!r} to retire; the arms are {', '.join(problem.arms[:8])}")
    kept = [a for a, name in enumerate(problem.arms) if name not in retired]
    offered = np.ones((problem.n_contexts, len(added)), dtype=bool)
    return Problem.from_arm_independent(
        features,
        probabilities=problem.probabilities,
        arms=[*(problem.arms[a] for a in kept), *added],
        contexts=problem.contexts,
        available=np.concatenate([problem.available[:, kept], offered], axis=1),
        reward_range=problem.reward_range,
        rows=problem.rows,
        other=problem.other,
    )
