"""The service without HTTP: store, writer thread, trainer thread and experiments."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bothworlds.errors import NumericalError
from bothworlds.service import messages, rules
from bothworlds.service.batch_decide import numbers
from bothworlds.service.changes import ChangeThread, Finish, ProblemChange
from bothworlds.service.commits import PendingRequest, Request
from bothworlds.service.dsn import is_dsn
from bothworlds.service.experiment import Experiment, to_decision
from bothworlds.service.locations import open_store
from bothworlds.service.messages import Answer, Known, Planned, Refusal
from bothworlds.service.opening import open_experiment
from bothworlds.service.records import DecisionBody, Kind, Record, Versioned, unpacked
from bothworlds.service.retention import SNAPSHOTS
from bothworlds.service.roles import NOT_LEARNING, Role
from bothworlds.service.setting_changes import PreparedSettings
from bothworlds.service.settings import Settings
from bothworlds.service.starts import note_start, note_stop
from bothworlds.service.store import Store
from bothworlds.service.supervision import SupervisedThread, Supervisor, ThreadError
from bothworlds.service.trainer import TrainerThread
from bothworlds.service.writer import CACHED_DECISIONS, UNAVAILABLE, WriterThread

if TYPE_CHECKING:
    from bothworlds.service.postgres.hosting import Hosting

DRAINING = "the service is about to end"
Deliver = Callable[[list[PendingRequest]], None]


class Service:
    """Decides, stores and learns. A request is answered once its record is stored. Thread-safe.

    >>> from bothworlds.service.settings import ExperimentSettings
    >>> banners = ExperimentSettings(arms=["red", "blue"], contexts=["mobile", "desktop"])
    >>> service = Service(Settings(experiments={"banners": banners}))
    >>> status, decided = service.ask(messages.Decide(context="mobile", id="visit 9"))
    >>> status, decided.propensity, decided.version
    (200, 0.5, 0)
    >>> service.ask(messages.Reward(id="visit 9", reward=1.0))
    (200, Rewarded(id='visit 9', experiment='banners', reward=1.0, learned=True, reason=None))
    >>> service.close()
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store | None = None,
        role: Role = "both",
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        settings.check()
        self.settings, self.role, self.shared = settings, role, is_dsn(settings.location)
        if role != "both" and not self.shared:
            raise ValueError(f"role {role!r} needs a store in PostgreSQL, which several hosts share")
        folder = Path(settings.folder)
        self.store = store or open_store(settings.location, durability=settings.durability)
        try:
            self.hosting = None
            with self.store.starting():
                self.experiments = {
                    name: open_experiment(
                        name, options, self.store, folder, say, shared=self.shared, trained=role != "decide"
                    )
                    for name, options in settings.experiments.items()
                }
                self.start_time, self.last_at_start = time.time(), self.store.last()
                self._start_number = note_start(self.store, self.start_time)
            if self.shared:
                self.hosting = self._join_hosts()
            else:
                for name in self.store.drop_unused(settings.experiments):
                    say(f"{name}: removed from the store, as it has no decisions and the settings do not name it")
        except BaseException:
            self.store.close()
            raise
        self.draining = False
        self.deliver: Deliver = _wake
        self.writer = WriterThread(self.store, self._stored, cached=0 if self.shared else CACHED_DECISIONS)
        publisher, permit = (self.hosting.publisher, self.hosting.permit) if self.hosting else (self.writer, None)
        for experiment in self.experiments.values():
            if (keep := experiment.settings.keep_seconds) is not None:
                publisher.store.keep_snapshots(experiment.number, keep / SNAPSHOTS)
        self.trainer = TrainerThread(self.experiments, publisher, refresh=settings.refresh, permit=permit)
        self.changes = ChangeThread(self._make_change)
        threads = {self.writer.thread: self.writer.refuse_all, self.changes.thread: self.changes.refuse_all}
        self.writer.start()
        self.changes.start()
        if self.hosting is not None:
            self.hosting.start()
            threads |= self.hosting.threads
        if role != "decide":
            self.trainer.start()
            threads[self.trainer.thread] = self.trainer.refuse_all
        self.supervisor = Supervisor(threads)
        self.supervisor.start()
        if any(experiment.unlearned for experiment in self.experiments.values()):
            self.trainer.wake()

    def _join_hosts(self) -> "Hosting":
        """Return what runs in addition on one of several hosts."""
        from bothworlds.service.postgres.hosting import Hosting
        from bothworlds.service.postgres.postgres_store import PostgresStore

        settings, running = self.settings, self.experiments.values()
        assert isinstance(self.store, PostgresStore)
        return Hosting(self.store, self.role, running, durability=settings.durability, poll=settings.refresh)

    def _stored(self, pending: list[PendingRequest]) -> None:
        """Deliver answers, and wake the trainer thread if there are rewards to learn."""
        if pending:
            self.deliver(pending)
        if any(experiment.unlearned for experiment in self.experiments.values()):
            self.trainer.wake()

    def experiment(self, name: str | None) -> Experiment:
        """Return an experiment by its name; without a name, the only one. An unknown name is a KeyError."""
        if name is None:
            if len(self.experiments) > 1:
                raise KeyError(f"which experiment? there are {', '.join(self.experiments)}")
            return next(iter(self.experiments.values()))
        experiment = self.experiments.get(name)
        if experiment is None:
            raise KeyError(f"there is no experiment {name[:60]!r}; there are {', '.join(self.experiments)}")
        return experiment

    def ask(self, request: Request) -> tuple[int, Answer]:
        """Submit one request and wait for its answer."""
        return self.ask_all([request])[0]

    def ask_all(self, requests: Sequence[Request]) -> list[tuple[int, Answer]]:
        """Submit requests for one commit and wait for their answers."""
        pending = [PendingRequest(self.experiment(request.experiment), request) for request in requests]
        if pending:
            pending[-1].waiter = done = Future[None]()
            self.writer.submit(pending)
            try:
                done.result()
            except ThreadError as error:
                return [(UNAVAILABLE, Refusal(str(error)))] * len(pending)
        return [(job.status, job.answer) for job in pending]

    def change(self, request: messages.Change | messages.SettingsChange | messages.Rollback) -> tuple[int, Answer]:
        """Change an experiment or its settings, or roll it back, and wait until that is stored.

        Raises
        ------
        ThreadError
            If a thread is dead or stuck, or another host learns.
        StoreError
            If nothing could be stored, or the service ends.
        """
        experiment, done = self.experiment(request.experiment), Future[Any]()
        if not self.learns:
            raise ThreadError(f"nothing was changed: {NOT_LEARNING}")

        def finish(result: Any) -> None:
            with contextlib.suppress(InvalidStateError):  # it was refused while the trainer thread was stuck
                done.set_result(result)

        if isinstance(request, messages.Rollback):
            self.trainer.run_between_batches(lambda: self.trainer.roll_back(experiment, request), finish)
        else:
            self.changes.submit(experiment, request, finish)
        result = done.result()
        if isinstance(result, ValueError | NumericalError):
            return rules.INVALID, Refusal(str(result))
        if isinstance(result, Exception):
            raise result
        return rules.OK, result

    def _make_change(self, experiment: Experiment, prepared: ProblemChange | PreparedSettings, finish: Finish) -> None:
        def make() -> messages.Changed:
            if isinstance(prepared, PreparedSettings):
                return self.trainer.change_settings(experiment, prepared)
            return self.trainer.change(experiment, prepared)

        self.trainer.run_between_batches(make, finish)

    def plan(self, name: str | None) -> Planned:
        """Return the current plan of an experiment."""
        experiment = self.experiment(name)
        plan = experiment.plan
        table, problem = plan.probabilities().tolist(), plan.problem
        return Planned(experiment.name, plan.version, plan.digest, list(problem.arms), list(problem.contexts), table)

    def decision(self, identifier: str, name: str | None) -> Known | None:
        """Return everything known about a decision, or None if there is no such decision."""
        experiment = self.experiment(name)
        records = {Kind(record.kind): record for record in self.store.find(experiment.number, [identifier])}
        if Kind.DECISION not in records:
            return None
        state = rules.DecisionState()
        for record in records.values():
            state.apply(record)
        return self._describe(experiment, state, records)

    def _describe(self, experiment: Experiment, state: rules.DecisionState, records: dict[Kind, Record]) -> Known:
        record, reward = records[Kind.DECISION], records.get(Kind.REWARD)
        body, plan = unpacked(DecisionBody, record.body), experiment.plan
        arms = experiment.policy.listing(body).arms
        confirmed = None
        if (plan.version, plan.spec.short_fingerprint) == (body.version, body.fingerprint):
            confirmed = plan.confirms(to_decision(str(record.id), body, experiment.policy))
        return Known(
            id=str(record.id),
            experiment=experiment.name,
            time=record.time,
            context=body.context,
            arm=body.arm,
            propensity=body.propensity,
            probabilities=dict(zip(arms, numbers(body.probabilities).tolist(), strict=True)),
            version=body.version,
            holdout=body.holdout,
            active=state.active,
            reward=state.reward,
            reward_time=None if reward is None else reward.time,
            by_default=state.reward is not None and not state.reward_sent,
            learned_in=None if reward is None or body.holdout else self._learned_in(experiment, records),
            late_reward=state.late_reward,
            confirmed=confirmed,
            unanswered=state.unanswered,
            traceparent=body.traceparent,
        )

    def _learned_in(self, experiment: Experiment, records: dict[Kind, Record]) -> int | None:
        """Return the first version that has learned the reward of a decision, None if there is none yet."""
        reward, active = records[Kind.REWARD].seq, records.get(Kind.ACTIVATION, records[Kind.DECISION]).seq
        for mark in self.store.marks(experiment.number, after=reward):
            if mark.kind == Kind.VERSION:
                body = unpacked(Versioned, mark.body)
                if body.through >= reward or body.ordered_through >= active:
                    return body.version
        return None

    @property
    def failures(self) -> list[str]:
        """Descriptions of what fails at the moment."""
        running = self.experiments.items()
        failures = [f"{name}: {experiment.failure}" for name, experiment in running if experiment.failure]
        hosting = self.hosting.failures if self.hosting is not None else []
        return [*self.supervisor.faults, *failures, *hosting, *self._store_failure]

    @property
    def learns(self) -> bool:
        """Whether this host learns at the moment, as far as it knows."""
        return self.role != "decide" and self.trainer.permit.holds()

    @property
    def reasons_to_restart(self) -> list[str]:
        """Which threads are dead or stuck; all else recovers without a restart."""
        return self.supervisor.faults

    @property
    def reasons_not_ready(self) -> list[str]:
        """Why no decision can be taken and stored at the moment, or soon."""
        fault = self.writer.thread.fault
        return [*([fault] if fault else []), *([DRAINING] if self.draining else []), *self._store_failure]

    @property
    def _store_failure(self) -> list[str]:
        return [f"the store: {self.writer.failure}"] if self.writer.failure else []

    def close(self) -> None:
        """Finish the submitted requests, learn, save a snapshot, and close the store.

        Stuck threads are left alone; the store is closed once they have ended, too.
        """
        self.changes.stop()
        ended = [self.trainer.stop()] if self.role != "decide" else []
        ended += [self.hosting.stop()] if self.hosting is not None else []
        ended += [self.writer.stop()]
        self.supervisor.stop()
        if all(ended):
            note_stop(self.store, self._start_number, time.time())
            self._close_stores()
        else:
            threading.Thread(target=self._close_later, name="closing", daemon=True).start()

    def _close_later(self) -> None:
        """Close the stores when the stuck threads have ended: until then they may use their connections."""
        for thread in self.supervisor.threads:
            if isinstance(thread, SupervisedThread) and thread is not self.changes.thread:
                thread.wait()
        self._close_stores()

    def _close_stores(self) -> None:
        if self.hosting is not None:
            self.hosting.learner_store.close()
        self.store.close()


def _wake(pending: list[PendingRequest]) -> None:
    for job in pending:
        if job.waiter is not None:
            with contextlib.suppress(InvalidStateError):  # it was refused while the writer thread was stuck
                if job.error is None:
                    job.waiter.set_result(None)
                else:
                    job.waiter.set_exception(job.error)
