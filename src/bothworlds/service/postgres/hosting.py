"""What a service runs in addition when several hosts share its store: the learner's term and commits, newer plans."""

import time
from collections.abc import Callable, Iterable

from bothworlds.errors import NumericalError
from bothworlds.service.experiment import Experiment, replay_log, restore
from bothworlds.service.postgres.plan_follower import PlanFollower
from bothworlds.service.postgres.postgres_store import PostgresStore
from bothworlds.service.postgres.term import Term
from bothworlds.service.records import Snapshot
from bothworlds.service.roles import Role
from bothworlds.service.setting_changes import follow_settings
from bothworlds.service.sqlite import Durability
from bothworlds.service.supervision import SupervisedThread
from bothworlds.service.writer import WriterThread

FOLLOW_EVERY = 1.0  # seconds between two looks of a host that stands by
MOST_FETCHED = 5000  # rewards that wait for the trainer thread


class TermPermit:
    """The permit of a host that learns during its terms, and otherwise stands by.

    Who stands by follows the log: a term begins with policies that have learned all that is published. What was learned
    in a term that was lost is thrown away, as the log may lead elsewhere.
    """

    def __init__(self, term: Term, store: PostgresStore, *, poll: float) -> None:
        self.term, self.store = term, store
        self.poll: float | None = poll
        self._followed = 0.0

    def holds(self) -> bool:
        """Return whether the term that the experiments were prepared for goes on, as far as is known here."""
        return self.term.epoch is not None and self.term.epoch == self.store.term

    def begin(self, experiments: Iterable[Experiment]) -> bool:
        """Return whether this host learns; bring policies and queues up to date."""
        epoch = self.term.epoch
        if epoch != self.store.term and self.store.term is not None:
            self.store.term = None
            for experiment in experiments:
                experiment.needs_recovery = True
        if epoch is None:
            self._stand_by(experiments)
            return False
        if epoch != self.store.term:
            for experiment in experiments:
                self._follow(experiment)
                experiment.expired_through = self.store.note(experiment.cursor)
                experiment.slowest_step = None  # the next step may compile
                follow_settings(experiment, self.store, experiment.policy.plan().spec)
            self.store.term = epoch  # only here: commits of an earlier term must not pass for those of this one
        last = self.store.last()
        for experiment in experiments:
            if experiment.queued_through < last and not experiment.needs_recovery:
                experiment.fetch(self.store, most=MOST_FETCHED, last=last)
        return True

    def _stand_by(self, experiments: Iterable[Experiment]) -> None:
        """Follow the log from time to time."""
        is_due = time.monotonic() > self._followed + FOLLOW_EVERY
        for experiment in experiments:
            experiment.failure = None
            if is_due:
                self._follow(experiment)
        self._followed = time.monotonic() if is_due else self._followed

    def _follow(self, experiment: Experiment) -> None:
        """Learn what is published after the policy's version; if that fails, it is to be restored from a snapshot."""
        store, number, policy = self.store, experiment.number, experiment.policy
        learned = experiment.through, experiment.ordered_through
        known = Snapshot(number, policy.version, learned[0], "", "", b"", learned[1])
        restored, experiment.needs_recovery = experiment.needs_recovery, True
        try:
            found = restore(store, number) if restored else replay_log(store, number, policy, known)
        except (ValueError, NumericalError):
            return  # the trainer thread restores it, and reports what fails
        experiment.policy = found.policy
        experiment.through, experiment.ordered_through = found.through, found.ordered_through
        experiment.requeue(store)
        experiment.needs_recovery = False


class Hosting:
    """The additional threads of a service on one of several hosts."""

    def __init__(
        self,
        store: PostgresStore,
        role: Role,
        experiments: Iterable[Experiment],
        *,
        durability: Durability,
        poll: float,
    ) -> None:
        self.learns = role != "decide"
        self.follower = PlanFollower(store, experiments)
        self.term = Term(store.dsn)
        self.learner_store = PostgresStore(store.dsn, durability=durability)
        self.publisher = WriterThread(self.learner_store, lambda _: None, tick=0.0, cached=0)
        self.permit = TermPermit(self.term, self.learner_store, poll=poll)

    @property
    def threads(self) -> dict[SupervisedThread, Callable[[], None]]:
        """The threads to supervise."""
        threads: dict[SupervisedThread, Callable[[], None]] = {self.follower.thread: _nothing}
        if self.learns:
            threads |= {self.term.thread: _nothing, self.publisher.thread: self.publisher.refuse_all}
        return threads

    @property
    def failures(self) -> list[str]:
        """What fails at the moment."""
        return [self.follower.failure] if self.follower.failure else []

    def start(self) -> None:
        """Start the threads."""
        self.follower.start()
        if self.learns:
            self.term.start()
            self.publisher.start()

    def stop(self) -> bool:
        """Stop the threads, the trainer thread having ended; return False if one is stuck.

        The store of the learner stays open.
        """
        ended = [self.follower.stop()]
        if self.learns:
            ended += [self.publisher.stop(), self.term.stop()]
        return all(ended)


def _nothing() -> None:
    """Do nothing: no request waits for the thread at fault."""
