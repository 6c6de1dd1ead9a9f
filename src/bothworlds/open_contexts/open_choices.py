"""From requests to decisions: what a plan decides, and what each decision carries."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.open_contexts.open_decision import OpenDecision
from bothworlds.open_contexts.rule_contract import Choices, OpenLearner, PlanArrays
from bothworlds.policy.holdout import EMPTY, HoldoutCoin
from bothworlds.problem.open import Request, Requests

MOST_KEPT = 256  # candidates of a request that a learner keeps; of more it keeps the one chosen and others, evenly
NO_ROW = EMPTY[None]


class Origin(NamedTuple):
    """Who decides: name of the policy, version of the plan, fingerprint of algorithm and problem, and the holdout."""

    policy: str
    version: int
    fingerprint: str
    holdout: HoldoutCoin | None


class Names(NamedTuple):
    """The parts of ids, and the keys and times of the draws that belong to them."""

    sources: Sequence[str]
    numbers: Sequence[int]
    keys: Ints
    times: Ints


def kept_candidates(count: int, arm: int) -> Ints:
    """Return the indices of candidates that a learner keeps, the one chosen among them.

    >>> kept_candidates(3, 1).tolist(), len(kept_candidates(10_000, 77)), 77 in kept_candidates(10_000, 77)
    ([0, 1, 2], 256, True)
    """
    if count <= MOST_KEPT:
        return np.arange(count)
    others = np.delete(np.arange(count), arm)
    return np.sort(np.append(others[np.linspace(0, count - 2, MOST_KEPT - 1).astype(np.int64)], arm))


def probabilities_of(learner: OpenLearner, plan: PlanArrays, request: Request) -> Floats:
    """Return the probabilities of the candidates of a request."""
    nothing = np.zeros(1, dtype=np.int64)
    choices = learner.decide(plan, request.z[None], request.offered[None], nothing, nothing)
    return np.asarray(choices.probabilities[0])


def decide_one(learner: OpenLearner, plan: PlanArrays, request: Request, names: Names, origin: Origin) -> OpenDecision:
    """Decide for one request."""
    held = _held_out(request, 0, names, origin)
    if held is not None:
        return held
    choices = learner.decide(plan, request.z[None], request.offered[None], names.keys, names.times)
    return _decision(plan, request, choices, 0, names, origin)


def decide_many(
    learner: OpenLearner, plan: PlanArrays, requests: Requests, names: Names, origin: Origin
) -> list[OpenDecision]:
    """Decide for many requests."""
    choices = learner.decide(plan, requests.z, requests.offered, names.keys, names.times)
    each = [Request(*parts) for parts in zip(*requests, strict=True)]
    return [
        _held_out(request, n, names, origin) or _decision(plan, request, choices, n, names, origin)
        for n, request in enumerate(each)
    ]


def _held_out(request: Request, n: int, names: Names, origin: Origin) -> OpenDecision | None:
    """Return decision n, uniform over what its request offers, if its id is held out, else None."""
    if origin.holdout is None:
        return None
    source, number, count = names.sources[n], names.numbers[n], int(request.offered.sum())
    place = origin.holdout.place(source, number, count)
    if place is None:
        return None
    arm = int(np.flatnonzero(request.offered)[place])
    return OpenDecision(
        number,
        arm,
        request.names[arm],
        1.0 / count,
        EMPTY,
        NO_ROW,
        NO_ROW,
        EMPTY,
        0,
        origin.policy,
        source,
        origin.version,
        True,
        origin.fingerprint,
    )


def _decision(
    plan: PlanArrays, request: Request, choices: Choices, n: int, names: Names, origin: Origin
) -> OpenDecision:
    """Return decision n of some choices, with the part of its request that a learner keeps."""
    arm, count = int(choices.arms[n]), len(request.names)
    features, offered, place = request.z, request.offered[:count], arm
    if len(features) > 1:
        kept = kept_candidates(count, arm)
        features, offered, place = features[kept], offered[kept], int(np.searchsorted(kept, arm))
    return OpenDecision(
        names.numbers[n],
        arm,
        request.names[arm],
        float(choices.probabilities[n, arm]),
        choices.directions[n],
        plan.baseline,
        features,
        offered,
        place,
        origin.policy,
        names.sources[n],
        origin.version,
        False,
        origin.fingerprint,
    )
