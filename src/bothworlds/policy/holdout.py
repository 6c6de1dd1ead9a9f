"""Decisions held out of a policy, to compare it with: which ones, and with which arm, follows from their ids.

A coin of a decision is a keyed hash of its id, and depends on nothing else: not on the plan, its version, the context
or what was learnt. So, given that a decision is not held out, its arm is drawn from pi exactly, and what is proved
for the policy holds for those decisions as it stands; what is held out costs at most its share of the regret of uniform
play, and its feedback is counted and not learnt.
"""

import hashlib
import math
from typing import Any

import numpy as np

from bothworlds.policy.decision import Decision, decision_of
from bothworlds.policy.identity import MADE
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number

NOTHING = np.zeros(0)
NOTHING.setflags(write=False)


class Holdout:
    """Holds out a share of the decisions, each uniform among the arms offered, by a keyed hash (BLAKE2b) of its id.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> held = Holdout(problem, 0.1, "00" * 32)
    >>> sum(held.decided("p", 0, f"visit {i}", 0, 3) is not None for i in range(1000))
    97
    >>> held.decided("p", 0, "visit 2", 0, 3).propensity
    0.5
    """

    def __init__(self, problem: Problem, share: float, secret: str, footing: str = "") -> None:
        self._keyed = hashlib.blake2b(digest_size=16, key=bytes.fromhex(secret), person=b"bothworlds-hold")
        self._limit = math.ceil(share * 2**64)
        self._problem, self._footing = problem, footing
        self._offered = [np.flatnonzero(row).tolist() for row in problem.available]

    def decided(self, policy: str, x: int, source: str, number: int, version: int) -> Decision | None:
        """Return the decision for a context if its id is held out, else None."""
        hashed = self._keyed.copy()
        hashed.update(drawn_as(source, number).encode())
        made = int.from_bytes(hashed.digest())
        if made >> 64 >= self._limit:
            return None
        problem, offered = self._problem, self._offered[x]
        arm = offered[((made & (2**64 - 1)) * len(offered)) >> 64]
        seen = number, x, problem.contexts[x], arm, problem.arms[arm], 1.0 / len(offered)
        return decision_of((*seen, NOTHING, None, policy, source, version, True, self._footing))


def drawn_as(source: str, number: int) -> str:
    """Return what of an id the coin is a hash of: of a policy's life its stream, as for the draws, else all.

    So the same seed holds out the same rounds, and a loaded policy goes on with it bit for bit.

    >>> drawn_as("@84332610-2-51-9f3c", 60), drawn_as("@9f3c", 7), drawn_as("visit-9", 0)
    ('@84332610.60', '@9f3c.7', 'visit-9')
    """
    return f"{source.partition('-')[0]}.{number}" if source[:1] == MADE else source


def checked_share(share: Any) -> float:
    """Return a share of decisions to hold out; refuse what is none."""
    if not is_number(share) or not 0.0 <= share < 1.0:
        raise ValueError(
            f"holdout is the share of decisions to hold out, from 0 to less than 1, say 0.02; got {share!r}"
        )
    return float(share)
