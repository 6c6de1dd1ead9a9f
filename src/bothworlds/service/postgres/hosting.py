"""What a service runs in addition when several hosts share its store: the learner's term and commits, newer plans."""

from collections.abc import Callable, Iterable

from bothworlds.service.experiment import Experiment, restore
from bothworlds.service.postgres.plan_follower import PlanFollower
from bothworlds.service.postgres.postgres_store import PostgresStore
from bothworlds.service.postgres.term import Term
from bothworlds.service.sqlite import Durability
from bothworlds.service.supervision import SupervisedThread
from bothworlds.service.turns import Role
from bothworlds.service.writer import WriterThread

MOST_FETCHED = 5000  # rewards that wait for the trainer thread


class SharedTurn:
    """The turn of a host that learns during its terms, and otherwise stands by.

    A new term begins with policies restored from the store: the log is the truth, whatever this host knew before.
    """

    def __init__(self, term: Term, store: PostgresStore, *, poll: float) -> None:
        self.term, self.store = term, store
        self.poll: float | None = poll

    def holds(self) -> bool:
        """Return whether the term that the experiments were prepared for goes on, as far as is known here."""
        return self.term.epoch is not None and self.term.epoch == self.store.term

    def begin(self, experiments: Iterable[Experiment]) -> bool:
        """Return whether this host learns: after the begin of a term, once its policies are to be restored."""
        epoch = self.term.epoch
        if epoch is None:
            for experiment in experiments:
                self._stand_by(experiment)
            return False
        if epoch != self.store.term:  # only here: commits of an earlier term must not pass for those of this one
            for experiment in experiments:
                experiment.expired_through = self.store.note(experiment.cursor)
                experiment.needs_recovery = True
            self.store.term = epoch
            return True
        last = self.store.last()
        for experiment in experiments:
            if experiment.queued_through < last and not experiment.needs_recovery:
                experiment.fetch(self.store, most=MOST_FETCHED, last=last)
        return True

    def _stand_by(self, experiment: Experiment) -> None:
        """Keep the policy of an experiment at the current problem, which tells the arms of stored decisions."""
        experiment.failure = None
        if experiment.policy.plan().spec.fingerprint != experiment.plan.spec.fingerprint:
            experiment.policy = restore(self.store, experiment.number)[0]


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
        self.turn = SharedTurn(self.term, self.learner_store, poll=poll)

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
        """Stop the threads, the trainer thread having ended; return False if one is stuck."""
        ended = [self.follower.stop()]
        if self.learns:
            ended += [self.publisher.stop(), self.term.stop()]
        if all(ended):
            self.learner_store.close()
        return all(ended)


def _nothing() -> None:
    """Do nothing: no request waits for the thread at fault."""
