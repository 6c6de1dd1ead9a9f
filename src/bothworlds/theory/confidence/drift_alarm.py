"""Any-time test of recent drift: tests of `drift` that start at different times.

The counts of a year hide the change of a day. A new test therefore starts before every batch of contexts, the j-th
with weight w_j = 1/((j + 1)(j + 2)); the weights sum to 1. The sum of w_j E^(j), with E^(j) the evidence since the
start of test j, has mean at most 1 while the distribution holds, and ever reaches 1/alpha with probability at most
alpha (Ville 1939). Tests may be dropped at times fixed beforehand, which only lowers the sum: test j is kept for 4
batches times the largest power of two that divides j. The ages of kept tests are then spread evenly over orders of
magnitude, about two for each.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.confidence.drift import Drift, checked_distribution, checked_visits, log_evidence

LIFE = 4  # batches, times the largest power of two that divides the number of a test


@dataclass(frozen=True, eq=False, repr=False)
class DriftAlarm:
    """Detects soon after it happens that contexts deviate from a stated distribution.

    ``observe`` takes the counts of a batch, which may end at any time, and returns the updated alarm. ``drift`` is the
    largest evidence so far, so an alarm stays raised. After changing the policy's context distribution, create a new
    alarm. Memory: about 2 log2(batches) rows of counts.

    >>> alarm = DriftAlarm.against([0.25, 0.75])
    >>> for _ in range(100):
    ...     alarm = alarm.observe([25, 75])
    >>> alarm.drift.p_value
    1.0
    >>> alarm.observe([70, 30]).drift.p_value < 1e-6
    True
    """

    distribution: Floats
    strength: float
    batches: int = 0
    starts: tuple[int, ...] = ()
    counts: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    largest: Drift | None = None

    @classmethod
    def against(cls, probabilities: Any, *, strength: float | None = None) -> Self:
        """Return a new alarm for a context distribution; ``strength`` as in `drift_of`."""
        g, k = checked_distribution(probabilities, strength)
        return cls(g, k, counts=np.zeros((0, len(g))))

    def observe(self, counts: Any) -> Self:
        """Return the alarm after a batch, given as one count per context."""
        batch = checked_visits(counts, self.distribution)
        starts, rows = (*self.starts, self.batches), np.vstack([self.counts, np.zeros_like(self.distribution)]) + batch
        evidence = np.array([log_evidence(row, self.distribution, self.strength) for row in rows])
        weighted = evidence - np.array([math.log((j + 1.0) * (j + 2.0)) for j in starts])
        total, best = float(np.logaddexp.reduce(weighted)), int(weighted.argmax())
        current = Drift.of(total, rows[best], self.distribution)
        largest = current if self.largest is None or total > self.largest.log_evidence else self.largest
        batches = self.batches + 1
        kept = [i for i, j in enumerate(starts) if _is_kept(j, batches)]
        remaining = tuple(starts[i] for i in kept)
        return replace(self, batches=batches, starts=remaining, counts=rows[kept], largest=largest)

    @property
    def drift(self) -> Drift:
        """The largest evidence so far, with the ratios of observed to stated frequencies."""
        return Drift(0.0, np.ones_like(self.distribution)) if self.largest is None else self.largest

    def __repr__(self) -> str:
        return f"DriftAlarm({len(self.distribution)} contexts, {self.batches:,} batches, p = {self.drift.p_value:.2g})"


def _is_kept(start: int, now: int) -> bool:
    """Return whether a test is kept: test 0 always, test j for LIFE batches times the power of two that divides j.

    >>> [j for j in range(100) if _is_kept(j, 100)]
    [0, 32, 48, 64, 72, 80, 84, 88, 92, 94, 96, 97, 98, 99]
    """
    return start == 0 or now - start <= LIFE * (start & -start)
