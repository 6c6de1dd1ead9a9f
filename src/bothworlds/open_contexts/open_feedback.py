"""Checks of feedback for open problems, and batches of decisions as rows to learn."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.entry_points import MAX_CARRIED, MAX_PROPENSITY
from bothworlds.open_contexts.open_decision import OpenDecision
from bothworlds.open_contexts.rule_contract import Rows
from bothworlds.policy.feedback import label_of
from bothworlds.problem.open import OpenProblem
from bothworlds.problem.open.encoder import LARGEST


def batch_of(decisions: Any, values: Any) -> list[OpenDecision]:
    """Return decisions as a list; refuse other objects, and values that are not a sequence of the same length."""
    if isinstance(decisions, Mapping):
        raise ValueError("this is a decision's dictionary: convert it with OpenDecision.from_dict")
    batch = list(decisions) if isinstance(decisions, Iterable) else [decisions]
    others = [item for item in batch if not isinstance(item, OpenDecision)]
    if others:
        raise ValueError(f"feedback needs a decision, as returned by act, or a list of them; got {others[0]!r:.80}")
    if isinstance(values, str | bytes | Mapping | Set) or not hasattr(values, "__len__") or len(values) != len(batch):
        raise ValueError(f"a batch of {len(batch)} decisions needs as many values, in the same order; got {values!r}")
    return batch


def check_decision(decision: OpenDecision, problem: OpenProblem, baseline: tuple[int, ...]) -> None:
    """Refuse a decision whose arm or arrays do not fit the problem, or have numbers out of range."""
    if problem.arms is not None and problem.arms[decision.arm : decision.arm + 1] != (decision.arm_name,):
        raise ValueError(f"{label_of(decision)}: the problem has no arm {decision.arm} called {decision.arm_name!r}")
    if decision.holdout:
        if not 0.0 < decision.propensity <= 1.0:
            raise ValueError(f"{label_of(decision)}: its propensity {decision.propensity!r} is damaged")
        return
    (blocks, size), rows = problem.shape, decision.features.shape[0]
    candidates = blocks if blocks > 1 else rows
    shapes = (decision.direction.shape, decision.baseline.shape, decision.features.shape, decision.offered.shape)
    if shapes != ((size,), baseline, (1 if blocks > 1 else candidates, size), (candidates,)) or rows == 0:
        raise ValueError(f"{label_of(decision)}: its arrays are damaged, they do not fit this problem")
    if not (decision.place < candidates and decision.offered[decision.place] > 0.0):
        raise ValueError(f"{label_of(decision)}: candidate {decision.arm_name!r} was not offered")
    limits = (decision.direction, MAX_CARRIED), (decision.baseline, MAX_CARRIED), (decision.features, LARGEST)
    in_range = all((np.abs(array) <= limit).all() for array, limit in limits)
    if not (in_range and 0.0 < decision.propensity <= MAX_PROPENSITY and np.isin(decision.offered, (0.0, 1.0)).all()):
        raise ValueError(f"{label_of(decision)}: a number of the decision is damaged: not finite, or out of range")


def rows_of(batch: Sequence[OpenDecision], losses: Sequence[float] | Floats) -> Rows:
    """Return a batch as rows to learn."""
    n, rows = len(batch), max(decision.features.shape[0] for decision in batch)
    candidates = max(len(decision.offered) for decision in batch)
    z, offered = np.zeros((n, rows, batch[0].features.shape[1])), np.zeros((n, candidates))
    baselines: dict[int, int] = {}
    plans = np.zeros(n, dtype=np.int64)
    for i, decision in enumerate(batch):
        z[i, : len(decision.features)] = decision.features
        offered[i, : len(decision.offered)] = decision.offered
        plans[i] = baselines.setdefault(id(decision.baseline), len(baselines))
    first = {plan: decision.baseline for plan, decision in zip(plans[::-1], batch[::-1], strict=True)}
    return Rows(
        z,
        offered,
        np.array([decision.place for decision in batch], dtype=np.int64),
        np.array(losses, dtype=np.float64),
        np.array([decision.direction for decision in batch]),
        np.array([first[plan] for plan in range(len(baselines))]),
        plans,
    )
