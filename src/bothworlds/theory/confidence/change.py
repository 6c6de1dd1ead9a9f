"""Has the traffic changed lately? The test of `drift`, begun anew all the time, and still valid at any time.

Counts of a year hide the change of a day. So a fresh test begins before every batch of contexts, the j-th with the
weight w_j = 1/((j + 1)(j + 2)), which sum to 1; the sum of w_j E^(j), each the evidence since its beginning, has mean
1 at most while the law holds, and ever reaches 1/alpha with probability alpha at most (Ville 1939). Tests may be
given up at times that are fixed beforehand, which only lowers the sum: test j is kept for 4 batches for each power of
two in j, so that those kept are spread evenly over the orders of magnitude of age, about two for each.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.theory.confidence.drift import Drift, checked_law, checked_visits, log_evidence

LIFE = 4  # batches, times the largest power of two in the number of a test


@dataclass(frozen=True, eq=False, repr=False)
class DriftAlarm:
    """Watches whether contexts come as a stated law says, and finds a change soon after it.

    ``observe`` takes the counts of a batch, which may end at any moment, and returns the alarm after it. ``drift`` has
    the largest evidence so far, so an alarm once given stays; after giving the policy another law, begin another
    alarm. All it remembers are some 2 log2(batches) rows of counts.

    >>> alarm = DriftAlarm.against([0.25, 0.75])
    >>> for _ in range(100):
    ...     alarm = alarm.observe([25, 75])
    >>> alarm.drift.p_value
    1.0
    >>> alarm.observe([70, 30]).drift.p_value < 1e-6
    True
    """

    law: Floats
    strength: float
    batches: int = 0
    starts: tuple[int, ...] = ()
    counts: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    largest: Drift | None = None

    @classmethod
    def against(cls, law: Any, *, strength: float | None = None) -> Self:
        """Begin to watch a law; ``strength`` as in `drift_of`."""
        g, k = checked_law(law, strength)
        return cls(g, k, counts=np.zeros((0, len(g))))

    def observe(self, counts: Any) -> Self:
        """Return the alarm after a batch of contexts, so many of each."""
        new = checked_visits(counts, self.law)
        starts, rows = (*self.starts, self.batches), np.vstack([self.counts, np.zeros_like(self.law)]) + new
        evidence = np.array([log_evidence(row, self.law, self.strength) for row in rows])
        weighted = evidence - np.array([math.log((j + 1.0) * (j + 2.0)) for j in starts])
        total, best = float(np.logaddexp.reduce(weighted)), int(weighted.argmax())
        found = Drift.of(total, rows[best], self.law)
        largest = found if self.largest is None or total > self.largest.log_evidence else self.largest
        done = self.batches + 1
        kept = [i for i, j in enumerate(starts) if _lives(j, done)]
        left = tuple(starts[i] for i in kept)
        return replace(self, batches=done, starts=left, counts=rows[kept], largest=largest)

    @property
    def drift(self) -> Drift:
        """The largest evidence so far, and the shares of contexts that gave it."""
        return Drift(0.0, np.ones_like(self.law)) if self.largest is None else self.largest

    def __repr__(self) -> str:
        return f"DriftAlarm({len(self.law)} contexts, {self.batches:,} batches, p = {self.drift.p_value:.2g})"


def _lives(start: int, now: int) -> bool:
    """Tell whether a test is kept: the first for ever, the j-th for LIFE batches times the power of two in j.

    >>> [j for j in range(100) if _lives(j, 100)]
    [0, 32, 48, 64, 72, 80, 84, 88, 92, 94, 96, 97, 98, 99]
    """
    return start == 0 or now - start <= LIFE * (start & -start)
