"""Export the decisions and rewards of a store as log rows."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from bothworlds.logs import Row
from bothworlds.problem import Problem
from bothworlds.service.batch_decide import numbers
from bothworlds.service.experiment import problem_in, problem_of_snapshot
from bothworlds.service.locations import open_store
from bothworlds.service.records import MARKS, Changed, DecisionBody, RewardBody, unpacked
from bothworlds.service.store import Store, erased_version_key, number_in


class VersionHistory:
    """The problem and the plan's digest of every version of an experiment."""

    def __init__(self, store: Store, number: int) -> None:
        first = store.snapshots(number)[-1]
        self.policy, problem = problem_of_snapshot(store, first)
        self._starts, self._problems = [0], [problem]
        self.digests = {first.version: first.digest}
        for mark in store.marks(number):
            body = unpacked(MARKS[mark.kind], mark.body)
            self.digests[body.version] = body.digest
            if isinstance(body, Changed):
                self._starts.append(body.version)
                self._problems.append(problem_in(body.problem))
        self._offered: dict[tuple[int, str], tuple[tuple[str, ...], list[int]]] = {}

    @property
    def problem(self) -> Problem:
        """The current problem."""
        return self._problems[-1]

    @property
    def start(self) -> int:
        """The first version of the current problem."""
        return self._starts[-1]

    def offered(self, version: int, context: str) -> tuple[tuple[str, ...], list[int]]:
        """Return names and indices of the arms offered in a context."""
        epoch = bisect_right(self._starts, version) - 1
        if (epoch, context) not in self._offered:
            problem = self._problems[epoch]
            arms = np.flatnonzero(problem.available[problem.context_index(context)]).tolist()
            self._offered[epoch, context] = tuple(problem.arms[a] for a in arms), arms
        return self._offered[epoch, context]


def rows_in(store: Store, number: int, versions: VersionHistory) -> Iterator[Row]:
    """Yield every active decision with its reward; a late reward replaces the default reward."""
    for record, reward, late in store.history(number):
        body = unpacked(DecisionBody, record.body)
        arms, indices = versions.offered(body.version, body.context)
        actual = late or reward
        yield Row(
            id=str(record.id),
            time=record.time,
            context=body.context,
            offered=arms,
            probabilities=tuple(numbers(body.probabilities)[indices].tolist()),
            arm=body.arm,
            propensity=body.propensity,
            policy=versions.policy,
            version=body.version,
            digest=versions.digests.get(body.version),
            holdout=body.holdout,
            fingerprint=body.fingerprint,
            direction=tuple(numbers(body.direction).tolist()),
            baseline=None if body.baseline is None else tuple(numbers(body.baseline).tolist()),
            reward=None if actual is None else unpacked(RewardBody, actual.body).reward,
            reward_time=None if actual is None else actual.time,
        )


@contextmanager
def open_export(
    path: str | Path, name: str | None = None, *, current_only: bool = False
) -> Iterator[tuple[Problem, Iterator[Row]]]:
    """Open a store; the context manager returns the current problem of an experiment and its rows.

    ``current_only`` skips decisions from before the last change of the problem, and those up to the version through
    which rewarded decisions were erased: only decisions without a reward are left of them, a biased sample.
    """
    with closing(open_store(path, writes=False)) as store:
        number = number_in(store, name, path)
        versions = VersionHistory(store, number)
        rows = rows_in(store, number, versions)
        start = max(versions.start, store.note(erased_version_key(number)))
        yield versions.problem, (row for row in rows if row.version >= start) if current_only else rows
