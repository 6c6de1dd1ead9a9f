"""Holdout: a share of decisions with uniform arms, to compare the policy with.

Whether a decision is held out, and its arm then, follow from a keyed hash of its id and from nothing else: not from the
plan, its version, the context or the learner state. So the arm of a decision that is not held out is drawn from pi
exactly, and everything proved for the policy holds for these decisions unchanged. Held-out decisions cost at most their
share of the regret of uniform play; their feedback is counted and not learned from.
"""

import hashlib
import math
from typing import Any

import numpy as np

from bothworlds.policy.decision import Decision, decision_of
from bothworlds.policy.ids import ISSUED
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number

EMPTY = np.zeros(0)
EMPTY.setflags(write=False)


class HoldoutCoin:
    """Holds out a share of ids by a keyed hash (BLAKE2b), and gives those an arm.

    >>> coin = HoldoutCoin(0.1, "00" * 32)
    >>> coin.place("visit 1", 0, 3), coin.place("visit 2", 0, 3)
    (None, 0)
    """

    def __init__(self, share: float, secret: str) -> None:
        self._keyed_hash = hashlib.blake2b(digest_size=16, key=bytes.fromhex(secret), person=b"bothworlds-hold")
        self._limit = math.ceil(share * 2**64)

    def place(self, source: str, number: int, count: int) -> int | None:
        """Return which of ``count`` offered arms an id gets if it is held out, else None."""
        digest = self._keyed_hash.copy()
        digest.update(hash_input(source, number).encode())
        bits = int.from_bytes(digest.digest())
        return None if bits >> 64 >= self._limit else ((bits & (2**64 - 1)) * count) >> 64


def coin_of(share: float, secret: str) -> HoldoutCoin | None:
    """Return the coin for a share of decisions to hold out; None for none."""
    return HoldoutCoin(share, secret) if share else None


class Holdout:
    """Holds out a share of decisions, uniform over the offered arms, by the `HoldoutCoin` of a policy.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> holdout = Holdout(problem, 0.1, "00" * 32)
    >>> sum(holdout.decide("p", 0, f"visit {i}", 0, 3) is not None for i in range(1000))
    97
    >>> holdout.decide("p", 0, "visit 2", 0, 3).propensity
    0.5
    """

    def __init__(self, problem: Problem, share: float, secret: str, fingerprint: str = "") -> None:
        self._coin = HoldoutCoin(share, secret)
        self._problem, self._fingerprint = problem, fingerprint
        self._offered = [np.flatnonzero(row).tolist() for row in problem.available]

    def decide(self, policy: str, x: int, source: str, number: int, version: int) -> Decision | None:
        """Return the decision for a context if its id is held out, else None."""
        problem, offered = self._problem, self._offered[x]
        place = self._coin.place(source, number, len(offered))
        if place is None:
            return None
        arm = offered[place]
        choice = number, x, problem.contexts[x], arm, problem.arms[arm], 1.0 / len(offered)
        return decision_of((*choice, EMPTY, None, policy, source, version, True, self._fingerprint))


def hash_input(source: str, number: int) -> str:
    """Return the part of an id that is hashed: stream and number for a session of a policy, else the whole id.

    So the same seed holds out the same rounds, and a loaded policy continues bit for bit.

    >>> hash_input("@84332610-2-51-9f3c", 60), hash_input("@9f3c", 7), hash_input("visit-9", 0)
    ('@84332610.60', '@9f3c.7', 'visit-9')
    """
    return f"{source.partition('-')[0]}.{number}" if source[:1] == ISSUED else source


def checked_share(share: Any) -> float:
    """Return the share of decisions to hold out; refuse values outside [0, 1)."""
    if not is_number(share) or not 0.0 <= share < 1.0:
        raise ValueError(
            f"holdout is the share of decisions to hold out, from 0 to less than 1, such as 0.02; got {share!r}"
        )
    return float(share)
