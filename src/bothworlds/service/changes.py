"""Changes of an experiment's problem: they are prepared in a thread of their own, while the trainer thread learns."""

import contextlib
import queue
import threading
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.policy import Policy
from bothworlds.policy.transfer import PreparedChange
from bothworlds.problem import Problem
from bothworlds.problem.block_features import undo_blocks
from bothworlds.service import messages
from bothworlds.service.experiment import Experiment, as_bytes
from bothworlds.service.limits import ProblemSize, check_size
from bothworlds.service.setting_changes import PreparedSettings, prepare_settings
from bothworlds.service.store import StoreError
from bothworlds.service.supervision import SupervisedThread, ThreadError
from bothworlds.service.writer import ENDED

PREPARE_LIMIT = 600.0  # seconds to prepare a change, after which the thread counts as stuck
Finish = Callable[[Any], None]


class ProblemChange(NamedTuple):
    """A prepared change of an experiment, the request, and the file of the changed problem."""

    request: messages.Change
    change: PreparedChange
    problem: bytes


def prepared_change(policy: Policy, request: messages.Change) -> ProblemChange:
    """Compute what a change needs; a ValueError if it is not possible."""
    problem = changed_problem(policy.problem, request)
    return ProblemChange(
        request, policy.prepare_change(problem, trust=request.trust, fresh=request.fresh), as_bytes(problem.save)
    )


Request = messages.Change | messages.SettingsChange


class ChangeThread:
    """Prepares changes one at a time, and hands each to the trainer thread, which makes it between two batches.

    ``make`` gets an experiment, a prepared change, and a function to call with the result or an exception.
    """

    def __init__(self, make: Callable[[Experiment, ProblemChange | PreparedSettings, Finish], None]) -> None:
        self._make = make
        self._requests: queue.SimpleQueue[tuple[Experiment, Request, Finish] | None] = queue.SimpleQueue()
        self._finish: Finish | None = None  # of the change in progress
        self._ended = self._refused = False
        self.thread = SupervisedThread("change", self._work)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def submit(self, experiment: Experiment, request: Request, finish: Finish) -> None:
        """Make a change, and call ``finish``, perhaps twice, with its result or an exception."""
        self._requests.put((experiment, request, finish))
        if self._ended:
            self._refuse(StoreError(ENDED))
        elif self.thread.fault is not None:
            self.refuse_all()

    def refuse_all(self) -> None:
        """Refuse all changes, from another thread, as this one is dead or stuck."""
        self._refuse(ThreadError(f"nothing was changed: {self.thread.fault}"))

    def stop(self) -> None:
        """Refuse the changes that the trainer thread does not have yet; one that is being prepared is abandoned."""
        self._ended = True
        self._refuse(StoreError(ENDED))

    def _refuse(self, refusal: Exception) -> None:
        if self._finish is not None:
            self._refused = True
            self._finish(refusal)
        with contextlib.suppress(queue.Empty):
            while True:
                if (waiting := self._requests.get_nowait()) is not None:
                    waiting[2](refusal)
        if self._ended:
            self._requests.put(None)

    def _work(self) -> None:
        while (request := self._requests.get()) is not None:
            self._prepare(*request)

    def _prepare(self, experiment: Experiment, request: Request, finish: Finish) -> None:
        """Prepare a change, and wait until it is made: the next one starts from the changed problem."""
        self._finish, self._refused = finish, False
        try:
            with self.thread.doing("prepares a change", PREPARE_LIMIT, computes=True):
                prepared = _prepared(experiment, request)
        except Exception as error:
            self._finish = None
            finish(error)
            return
        self._finish = None
        made = threading.Event()

        def finish_and_go_on(result: Any) -> None:
            made.set()
            finish(result)

        if self._ended or self._refused:
            finish(StoreError(ENDED))
        else:
            self._make(experiment, prepared, finish_and_go_on)
            made.wait()


def _prepared(experiment: Experiment, request: Request) -> ProblemChange | PreparedSettings:
    if isinstance(request, messages.SettingsChange):
        return prepare_settings(experiment, request)
    return prepared_change(experiment.policy, request)


def changed_problem(problem: Problem, request: messages.Change) -> Problem:
    """Return a problem with arms added and retired, and with another context distribution.

    Raise a ValueError before anything large is allocated if the changed problem would exceed the limits of a service.
    """
    retired = frozenset(request.retire)
    known = frozenset(problem.arms)
    unknown = next((name for name in request.retire if name not in known), None)
    if unknown is not None:
        raise ValueError(f"there is no arm {unknown!r} to retire; the arms are {', '.join(problem.arms[:8])}")
    context_features = undo_blocks(problem.features)
    plain = [arm.name for arm in request.add if arm.features is None]
    featured = {arm.name: arm.features for arm in request.add if arm.features is not None}
    if plain and context_features is None:
        raise ValueError(f"arm {plain[0]!r} needs features, as the arms of this experiment share feature columns")
    if plain and featured:
        raise ValueError(f"arm {plain[0]!r} has no features, but others have: give features for all new arms or none")
    columns = context_features if (plain or retired) and not featured else None  # of each arm's own
    if request.add:
        check_size(_size_after(problem, request, own=0 if columns is None else columns.shape[1]))
    if columns is not None:
        problem = _with_arm_blocks(problem, columns, plain, retired)
    else:
        problem = problem.with_arms(featured) if featured else problem  # first: retiring must leave arms
        problem = problem.without_arms(request.retire) if retired else problem
    return problem if request.probabilities is None else problem.with_probabilities(request.probabilities)


def _size_after(problem: Problem, request: messages.Change, *, own: int) -> ProblemSize:
    """Return the size of a problem after a change; ``own`` is the number of columns of each arm's own, 0 if shared."""
    contexts, arms, columns = problem.features.shape
    arms += len(request.add) - len(set(request.retire))
    return ProblemSize(contexts=contexts, arms=arms, own=own, shared=0 if own else columns)


def _with_arm_blocks(problem: Problem, features: Floats, added: list[str], retired: Collection[str]) -> Problem:
    """Return a problem with other arms, each with its own parameters on the features of the context."""
    remaining = [a for a, name in enumerate(problem.arms) if name not in retired]
    offered = np.ones((problem.n_contexts, len(added)), dtype=bool)
    return Problem.from_arm_independent(
        features,
        probabilities=problem.probabilities,
        arms=[*(problem.arms[a] for a in remaining), *added],
        contexts=problem.contexts,
        available=np.concatenate([problem.available[:, remaining], offered], axis=1),
        reward_range=problem.reward_range,
        rows=problem.rows,
        other=problem.other,
    )
