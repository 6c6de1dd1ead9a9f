"""Counts of a policy on an open problem: by arm if arms have names, else of all candidates together."""

from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.open_contexts.open_decision import OpenDecision
from bothworlds.policy.counts import ArmCounts


class OpenCounts:
    """Decisions, decisions with feedback and sums of losses, of the policy's own decisions and of held-out ones.

    A decision counts when the policy takes it. One that it did not take itself (of a plan, with a given id, or lost
    with an earlier process) counts when its feedback arrives.
    """

    def __init__(self, n_arms: int, saved: Any = None) -> None:
        tables: Any = [None, None] if saved is None else np.asarray(saved).reshape(2, 3, 1, n_arms)
        self.own, self.held = (ArmCounts((1, n_arms), start) for start in tables)
        self._last = n_arms - 1

    def _place(self, decision: OpenDecision) -> tuple[ArmCounts, int]:
        """Return where a decision counts; candidates share one place."""
        return self.held if decision.holdout else self.own, decision.arm if self._last else 0

    def add(self, decision: OpenDecision) -> None:
        """Count a decision that the policy takes."""
        counts, arm = self._place(decision)
        counts.decided[0][arm] += 1

    def close(self, decision: OpenDecision, loss: float, *, counted: bool) -> None:
        """Count the feedback of a decision, and the decision unless it is ``counted``."""
        counts, arm = self._place(decision)
        counts.answered[0][arm] += 1
        counts.losses[0][arm] += loss
        counts.decided[0][arm] += not counted

    def array(self) -> Floats:
        """Return all counts as an array for a file."""
        return np.array([counts.tables() for counts in (self.own, self.held)])
