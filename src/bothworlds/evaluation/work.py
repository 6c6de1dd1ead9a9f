"""An evaluation as pieces of work that do not need each other: policies, differences, and the log itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bothworlds.evaluation.bands import Band, Interval, band_of
from bothworlds.evaluation.diagnostics import Calibration, calibration_of, diagnostics_of, left_open
from bothworlds.evaluation.estimators import estimates
from bothworlds.evaluation.gate import Difference
from bothworlds.evaluation.logged import Logged, pieces
from bothworlds.evaluation.regression import Regression
from bothworlds.evaluation.results import Evaluated
from bothworlds.evaluation.summands import Contrast, Question
from bothworlds.evaluation.targets import Target, target_of
from bothworlds.kernels.arrays import Floats, Ints

AVERAGE: Interval = "bernstein"
FOR_ONE_VALUE = ("betting", "betting at the end", "bernstein at the end")  # the same in all rows
CHANGING = "does not do the same in all rows, so its interval is that for averages of values that change (bernstein)"
CONTRADICTED = "no value is left in its interval: it changes with time; interval='bernstein' is for that"
Piece: TypeAlias = tuple[str, ...]  # a policy, a policy over another, or nothing: the log
Done: TypeAlias = Evaluated | Difference | Calibration | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """All that the pieces need; ``policies`` are words or targets, so that little goes to other processes."""

    logged: Logged
    policies: Mapping[str, str | Target]
    against: str | None
    regression: Regression | None
    checkpoints: Ints
    interval: Interval
    alpha: float
    most_weight: float | None

    @property
    def pieces(self) -> list[Piece]:
        """The pieces of work, in the order in which they are told."""
        others = [name for name in self.policies if self.against is not None and name != self.against]
        return [*((name,) for name in self.policies), *((name, str(self.against)) for name in others), ()]

    def done(self, piece: Piece) -> Done:
        """Do one piece."""
        if not piece:
            return calibration_of(self.logged)
        return self._policy(piece[0]) if len(piece) == 1 else self._difference(*piece)

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
        """Return the band that suits a contrast; without whole rows of probabilities it uses no predictions."""
        kind = AVERAGE if contrast.changes and self.interval in FOR_ONE_VALUE else self.interval
        fit = None if self.logged.probabilities is None else self.regression
        return band_of(Question(self.logged, contrast, fit), self.checkpoints, kind=kind, alpha=self.alpha)


def _mean_table(logged: Logged, target: Target) -> Floats:
    """Return what a target does in each context, averaged over the rows where that changes."""
    if target.table is not None:
        return target.table
    S, K = logged.problem.n_contexts, logged.problem.n_arms
    counts, sums = np.zeros(S), np.zeros((K, S))
    for where in pieces(logged.rows):
        context, rows = logged.context[where], target.rows(logged, where)
        counts += np.bincount(context, minlength=S)
        sums += np.stack([np.bincount(context, weights=one, minlength=S) for one in rows])
    return np.asarray((sums / np.maximum(counts, 1.0)).T)
