"""The independent tasks of an evaluation: policies, differences, and the calibration of the log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.evaluation.diagnostics import Calibration, calibration_of, diagnostics_of, left_open
from bothworlds.evaluation.dr_terms import Contrast, ValueQuery
from bothworlds.evaluation.estimators import estimates
from bothworlds.evaluation.gate import Difference
from bothworlds.evaluation.intervals import Band, Interval, band_of
from bothworlds.evaluation.logged import Logged, chunks
from bothworlds.evaluation.regression import Regression
from bothworlds.evaluation.results import Evaluated
from bothworlds.evaluation.targets import Target, target_of

AVERAGE: Interval = "bernstein"
FOR_ONE_VALUE = ("betting", "betting at the end", "bernstein at the end")  # assume the same value in all rows
CHANGING = "changes from row to row, so its interval is the one for averages of values that change (bernstein)"
CONTRADICTED = "its interval is empty: the value changes with time; interval='bernstein' allows that"
Task: TypeAlias = tuple[str, ...]  # (policy,), (policy, other policy), or () for the calibration of the log
TaskResult: TypeAlias = Evaluated | Difference | Calibration | None


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationJob:
    """The inputs of all tasks; ``policies`` are words where possible, so that little is sent to other processes."""

    logged: Logged
    policies: Mapping[str, str | Target]
    against: str | None
    regression: Regression | None
    checkpoints: Ints
    interval: Interval
    alpha: float
    most_weight: float | None

    @property
    def tasks(self) -> list[Task]:
        """The tasks, in the order in which they are submitted."""
        others = [name for name in self.policies if self.against is not None and name != self.against]
        return [*((name,) for name in self.policies), *((name, str(self.against)) for name in others), ()]

    def run(self, task: Task) -> TaskResult:
        """Run one task."""
        if not task:
            return calibration_of(self.logged)
        return self._policy(task[0]) if len(task) == 1 else self._difference(*task)

    def _target(self, name: str) -> Target:
        return target_of(self.policies[name], self.logged)

    def _policy(self, name: str) -> Evaluated:
        target = self._target(name)
        band = self._band(Contrast(of=target))
        fell_back = band.kind != self.interval
        return Evaluated(
            name=name,
            about=target.about,
            estimates=estimates(self.logged, target, self.regression, most_weight=self.most_weight),
            band=band,
            diagnostics=diagnostics_of(self.logged, target),
            table=_mean_table(self.logged, target),
            notes=(*((CHANGING,) if fell_back else ()), *((CONTRADICTED,) if band.contradicted else ())),
        )

    def _difference(self, name: str, over: str) -> Difference:
        contrast = Contrast(of=self._target(name), against=self._target(over))
        return Difference(name=name, over=over, band=self._band(contrast), left_open=left_open(self.logged, contrast))

    def _band(self, contrast: Contrast) -> Band:
        """Return the band of a contrast; without whole rows of probabilities it uses no predictions."""
        kind = AVERAGE if contrast.changes and self.interval in FOR_ONE_VALUE else self.interval
        fit = None if self.logged.probabilities is None else self.regression
        return band_of(ValueQuery(self.logged, contrast, fit), self.checkpoints, kind=kind, alpha=self.alpha)


def _mean_table(logged: Logged, target: Target) -> Floats:
    """Return a target's probabilities by context, averaged over rows if they change, shape (contexts, arms)."""
    if target.table is not None:
        return target.table
    S, K = logged.problem.n_contexts, logged.problem.n_arms
    counts, sums = np.zeros(S), np.zeros((K, S))
    for where in chunks(logged.rows):
        context, rows = logged.context[where], target.rows(logged, where)
        counts += np.bincount(context, minlength=S)
        sums += np.stack([np.bincount(context, weights=arm, minlength=S) for arm in rows])
    return np.asarray((sums / np.maximum(counts, 1.0)).T)
