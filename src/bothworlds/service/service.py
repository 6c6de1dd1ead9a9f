"""A service without its network: store, clerk, learner and experiments, put together and taken apart."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from bothworlds.errors import NumericalError
from bothworlds.service import messages, rules
from bothworlds.service.clerk import Clerk
from bothworlds.service.drawing import numbers
from bothworlds.service.experiment import Experiment, begun, decision_in
from bothworlds.service.jobs import Asking, Request
from bothworlds.service.learner import Learner
from bothworlds.service.messages import Answer, Known, Planned, Refusal
from bothworlds.service.records import Drawn, Kind, Record, Versioned, unpacked
from bothworlds.service.settings import Settings
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.store import Store

Deliver = Callable[[list[Asking]], None]


class Service:
    """Decides, stores and learns. Answers are given once they are stored; all calls are safe in threads.

    >>> from bothworlds.service.settings import Experiment as Told
    >>> settings = Settings(experiments={"banners": Told(arms=["red", "blue"], contexts=["mobile", "desktop"])})
    >>> service = Service(settings)
    >>> status, decided = service.ask(messages.Decide(context="mobile", id="visit 9"))
    >>> status, decided.propensity, decided.version
    (200, 0.5, 0)
    >>> service.ask(messages.Reward(id="visit 9", reward=1.0))
    (200, Rewarded(id='visit 9', experiment='banners', reward=1.0, learned=True, reason=None))
    >>> service.close()
    """

    def __init__(
        self, settings: Settings, *, store: Store | None = None, say: Callable[[str], None] = lambda _: None
    ) -> None:
        settings.check()
        self.settings = settings
        folder = Path(settings.folder)
        self.store = store or SQLiteStore(folder / settings.store, durability=settings.durability)
        try:
            self.experiments = {
                name: begun(name, told, self.store, folder, say) for name, told in settings.experiments.items()
            }
        except BaseException:
            self.store.close()
            raise
        self.names = {one.number: name for name, one in self.experiments.items()}
        self.began, self.start = time.time(), self.store.last()
        self.deliver: Deliver = _answered
        self.clerk = Clerk(self.store, self._stored)
        self.learner = Learner(self.experiments, self.clerk, refresh=settings.refresh)
        self.clerk.start()
        self.learner.start()
        if any(one.waiting for one in self.experiments.values()):
            self.learner.wake()

    def _stored(self, asked: list[Asking]) -> None:
        """Tell those who wait; the learner hears of rewards."""
        if asked:
            self.deliver(asked)
        if any(one.waiting for one in self.experiments.values()):
            self.learner.wake()

    def of(self, name: str | None) -> Experiment:
        """Return an experiment by its name, or the only one."""
        if name is None:
            if len(self.experiments) > 1:
                raise KeyError(f"which experiment? there are {', '.join(self.experiments)}")
            return next(iter(self.experiments.values()))
        found = self.experiments.get(name)
        if found is None:
            raise KeyError(f"there is no experiment {name[:60]!r}; there are {', '.join(self.experiments)}")
        return found

    def ask(self, request: Request) -> tuple[int, Answer]:
        """Do one request and wait until it is stored."""
        return self.ask_all([request])[0]

    def ask_all(self, requests: Sequence[Request]) -> list[tuple[int, Answer]]:
        """Do requests in one commit and wait until they are stored."""
        asked = [Asking(self.of(one.experiment), one) for one in requests]
        if asked:
            asked[-1].waiter = done = Future[None]()
            self.clerk.submit(asked)
            done.result()
        return [(one.status, one.answer) for one in asked]

    def change(self, asked: messages.Change | messages.Rollback) -> tuple[int, Answer]:
        """Change an experiment and wait until it is stored."""
        experiment, done = self.of(asked.experiment), Future[Any]()
        work = self.learner.change if isinstance(asked, messages.Change) else self.learner.roll_back
        self.learner.errand(lambda: work(experiment, asked), done.set_result)  # type: ignore[arg-type]
        made = done.result()
        if isinstance(made, ValueError | NumericalError):
            return rules.BAD, Refusal(str(made))
        if isinstance(made, Exception):
            raise made
        return rules.OK, made

    def plan(self, name: str | None) -> Planned:
        """Return the plan of now."""
        experiment = self.of(name)
        plan = experiment.plan
        table, problem = plan.probabilities().tolist(), plan.problem
        return Planned(experiment.name, plan.version, plan.digest, list(problem.arms), list(problem.contexts), table)

    def known(self, identifier: str, name: str | None) -> Known | None:
        """Return all that is known of a decision; where its plan is still there, whether it decides the same again."""
        experiment = self.of(name)
        found = {Kind(record.kind): record for record in self.store.find(experiment.number, [identifier])}
        made = found.get(Kind.DECISION)
        if made is None:
            return None
        state = rules.State()
        for record in found.values():
            state.learn_of(record)
        return self._told(experiment, made, state, found)

    def _told(self, experiment: Experiment, made: Record, state: rules.State, found: dict[Kind, Record]) -> Known:
        drawn, plan = unpacked(Drawn, made.body), experiment.plan
        arms = experiment.policy.listing(drawn).arms
        confirmed = None
        if (plan.version, plan.footing.mark) == (drawn.version, drawn.footing):
            confirmed = plan.confirms(decision_in(str(made.id), drawn, experiment.policy))
        rewarded = found.get(Kind.REWARD)
        return Known(
            id=str(made.id),
            experiment=experiment.name,
            time=made.time,
            context=drawn.context,
            arm=drawn.arm,
            propensity=drawn.propensity,
            probabilities=dict(zip(arms, numbers(drawn.probabilities).tolist(), strict=True)),
            version=drawn.version,
            holdout=drawn.holdout,
            active=state.active,
            reward=state.reward,
            reward_time=None if rewarded is None else rewarded.time,
            by_default=state.reward is not None and not state.given,
            learned_in=None if rewarded is None or drawn.holdout else self._learnt_in(experiment, rewarded),
            late_reward=state.late,
            confirmed=confirmed,
        )

    def _learnt_in(self, experiment: Experiment, rewarded: Record) -> int | None:
        """Return the first version that had heard a reward, None as long as there is none."""
        for mark in self.store.marks(experiment.number, after=rewarded.seq):
            if mark.kind == Kind.VERSION and (body := unpacked(Versioned, mark.body)).through >= rewarded.seq:
                return body.version
        return None

    @property
    def failures(self) -> list[str]:
        """What does not work at the moment, in sentences."""
        told = [f"{name}: {one.failure}" for name, one in self.experiments.items() if one.failure]
        return told + ([f"the store: {self.clerk.failure}"] if self.clerk.failure else [])

    def close(self) -> None:
        """Do what has come in, learn it, save it, and let go of the store."""
        self.learner.stop()
        self.clerk.stop()
        self.store.close()


def _answered(asked: list[Asking]) -> None:
    for one in asked:
        if one.waiter is not None:
            one.waiter.set_result(None)
