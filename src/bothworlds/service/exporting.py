"""What a store has as rows of a log, for files and for evaluation."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from bothworlds.logs import Row
from bothworlds.problem import Problem
from bothworlds.service.drawing import numbers
from bothworlds.service.experiment import played, problem_in
from bothworlds.service.records import MARKS, Changed, Drawn, Paid, unpacked
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.store import Store, number_in, sealed_in


class Epochs:
    """Which problem was played, and which digest a plan had, by version."""

    def __init__(self, store: Store, number: int) -> None:
        first = store.snapshots(number)[-1]
        self.policy, problem = played(store, first)
        self._began, self._problems = [0], [problem]
        self.digests = {first.version: first.digest}
        for mark in store.marks(number):
            body = unpacked(MARKS[mark.kind], mark.body)
            self.digests[body.version] = body.digest
            if isinstance(body, Changed):
                self._began.append(body.version)
                self._problems.append(problem_in(body.problem))
        self._offered: dict[tuple[int, str], tuple[tuple[str, ...], list[int]]] = {}

    @property
    def problem(self) -> Problem:
        """The problem of now."""
        return self._problems[-1]

    @property
    def began(self) -> int:
        """The first version of the problem of now."""
        return self._began[-1]

    def offered(self, version: int, context: str) -> tuple[tuple[str, ...], list[int]]:
        """Return names and places of the arms that were offered."""
        place = bisect_right(self._began, version) - 1
        if (place, context) not in self._offered:
            problem = self._problems[place]
            arms = np.flatnonzero(problem.available[problem.context_index(context)]).tolist()
            self._offered[place, context] = tuple(problem.arms[a] for a in arms), arms
        return self._offered[place, context]


def rows_in(store: Store, number: int, epochs: Epochs) -> Iterator[Row]:
    """Yield every decision that was shown, with the reward that came, late or not; else with the one by default."""
    for made, reward, late in store.history(number):
        drawn = unpacked(Drawn, made.body)
        arms, places = epochs.offered(drawn.version, drawn.context)
        came = late or reward
        yield Row(
            id=str(made.id),
            time=made.time,
            context=drawn.context,
            offered=arms,
            probabilities=tuple(numbers(drawn.probabilities)[places].tolist()),
            arm=drawn.arm,
            propensity=drawn.propensity,
            policy=epochs.policy,
            version=drawn.version,
            digest=epochs.digests.get(drawn.version),
            holdout=drawn.holdout,
            footing=drawn.footing,
            direction=tuple(numbers(drawn.direction).tolist()),
            baseline=None if drawn.baseline is None else tuple(numbers(drawn.baseline).tolist()),
            reward=None if came is None else unpacked(Paid, came.body).reward,
            reward_time=None if came is None else came.time,
        )


@contextmanager
def exported(
    path: str | Path, name: str | None = None, *, of_now: bool = False
) -> Iterator[tuple[Problem, Iterator[Row]]]:
    """Open the file of a store for the problem of an experiment as it is now, and its rows.

    ``of_now`` leaves out what was decided before the problem was last changed, or before the version through which
    rewarded decisions were erased: of those only the ones that still waited are left, which are not like the others.
    """
    with closing(SQLiteStore(path, writes=False)) as store:
        number = number_in(store, name, Path(path))
        epochs = Epochs(store, number)
        rows = rows_in(store, number, epochs)
        began = max(epochs.began, store.noted(sealed_in(number)))
        yield epochs.problem, (row for row in rows if row.version >= began) if of_now else rows
