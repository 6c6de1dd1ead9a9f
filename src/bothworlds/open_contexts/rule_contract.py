"""What a rule for open problems provides: a learner, whose plans decide for any features."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.policy.health_report import Restarts
from bothworlds.problem.open import OpenProblem


class PlanArrays(NamedTuple):
    """Everything that decisions need: vectors (blocks, p), matrices (blocks, p, p), and numbers of the rule.

    ``baseline`` is carried by decisions, and not read by them.
    """

    weights: Floats
    matrix: Floats
    numbers: Floats
    baseline: Floats


class Rows(NamedTuple):
    """Rows to learn, in order: features and candidates of their requests, and what their decisions carried."""

    z: Floats  # (rows, rows of features, p)
    offered: Floats  # (rows, candidates)
    arms: Ints
    losses: Floats
    directions: Floats  # (rows, p), in the block of the arm
    baselines: Floats  # (plans, blocks, p)
    plans: Ints  # which of the baselines


def no_rows() -> Rows:
    """Return a batch without rows."""
    whole = np.zeros(0, dtype=np.int64)
    z, matrix, vector = np.zeros((0, 0, 0)), np.zeros((0, 0)), np.zeros(0)
    return Rows(z, matrix, whole, vector, matrix, z, whole)


class Choices(NamedTuple):
    """Decisions for many requests: arms, probabilities of all candidates, directions in the block of the arm."""

    arms: Ints
    probabilities: Floats
    directions: Floats


class OpenLearner(Protocol):
    """Learner state of one policy. Not thread-safe."""

    def plan(self) -> PlanArrays:
        """Return the present plan; its arrays are never written again."""

    def decide(self, plan: PlanArrays, z: Floats, offered: Floats, keys: Ints, times: Ints) -> Choices:
        """Decide with any plan for requests (n, rows, p), offers (n, candidates), keys and times of their draws."""

    def learn(self, rows: Rows) -> bool:
        """Learn rows in order, and return whether there is a new plan. After a NumericalError nothing has changed."""

    def recent(self) -> tuple[Floats, Floats] | None:
        """Return features and offers of recent requests; None if the learner keeps none, or has none yet."""

    def restarts(self) -> Restarts | None:
        """Return how often the learner restarted because the world had changed; None if it never does."""

    def arrays(self) -> Mapping[str, Floats]:
        """Return the state as arrays for a file, copies."""

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Continue from the arrays of a file; KeyError or TypeError if they do not fit."""


class OpenRule(Protocol):
    """The rule of an algorithm for open problems."""

    def learner(self, problem: OpenProblem, *, key: int, interpreted: bool) -> OpenLearner:
        """Return a learner before its first row; ``key`` is that of its random numbers."""
