"""Decisions drawn together by one plan: each is what it would be alone, bit for bit, for a part of the time."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.policy.decision import Decision
from bothworlds.policy.feeding import Columns
from bothworlds.policy.identity import given_id, id_of
from bothworlds.policy.plan import Plan
from bothworlds.service.messages import Decide, Refusal
from bothworlds.service.records import Drawn, fingerprint

Draw: TypeAlias = tuple[str, Drawn] | Refusal  # a decision with its id, or why there is none
UNDRAWN = Refusal("")


def draw_all(plan: Plan, requests: Sequence[Decide]) -> list[Draw]:
    """Decide for all requests, each as if it were new; ids are made where none is given."""
    index, issue, held = plan.problem.context_index, plan.footing.desk.issue, plan.footing.holdout > 0.0
    draws: list[Draw] = []
    places, names, xs, asked = [], [], [], []
    for request in requests:
        try:
            x = index(request.context)
            name = id_of(*issue()) if request.id is None else given_id(request.id)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            draws.append(Refusal(str(error)))
            continue
        hashed = fingerprint(request.context, request.active)
        if held and plan.holds_out(name):
            draws.append((name, drawn_from(plan.again(x, name), plan, hashed)))
            continue
        places.append(len(draws))
        draws.append(UNDRAWN)
        names.append(name)
        xs.append(x)
        asked.append(hashed)
    if places:
        made = all_drawn(plan, plan.again_all(xs, names), asked)
        for place, one in zip(places, zip(names, made, strict=True), strict=True):
            draws[place] = one
    return draws


def drawn_from(decision: Decision, plan: Plan, asked: bytes) -> Drawn:
    """Return what is kept of a decision that a plan has taken."""
    if decision.holdout:
        offered = plan.problem.available[decision.context]
        chances = (offered * decision.propensity).tobytes()
    else:
        chances = plan.chances(decision.context)
    return Drawn(
        asked,
        decision.context_name,
        decision.arm_name,
        decision.propensity,
        decision.version,
        decision.holdout,
        decision.footing,
        chances,
        decision.direction.tobytes(),
        None if decision.baseline is None else decision.baseline.tobytes(),
    )


def all_drawn(plan: Plan, columns: Columns, asked: list[bytes]) -> list[Drawn]:
    """Return what the log keeps of decisions that a plan has taken, none of them held out."""
    footing, problem = plan.footing, plan.problem
    contexts, arms, mark, version = problem.contexts, problem.arms, footing.mark, plan.version
    each = zip(
        asked,
        columns.contexts.tolist(),
        columns.arms.tolist(),
        columns.propensities.tolist(),
        cut(plan.probabilities()[columns.contexts]),
        cut(columns.directions),
        cut(columns.baselines) if footing.has_baseline else [None] * len(asked),
        strict=True,
    )
    return [
        Drawn(one, contexts[x], arms[a], chance, version, False, mark, chances, direction, baseline)
        for one, x, a, chance, chances, direction, baseline in each
    ]


def cut(table: Floats) -> list[bytes]:
    """Return the rows of a table of numbers, each as bytes.

    >>> import numpy as np
    >>> [len(row) for row in cut(np.zeros((2, 3)))], cut(np.zeros((2, 0)))
    ([24, 24], [b'', b''])
    """
    length = table.shape[1] * table.itemsize
    if not length:
        return [b""] * len(table)
    rows: list[bytes] = np.ascontiguousarray(table).view(f"V{length}")[:, 0].tolist()
    return rows


def numbers(content: bytes) -> Floats:
    """Return numbers that are kept as bytes."""
    return np.frombuffer(bytearray(content), dtype=np.float64)  # can be written to: compiled code is for such arrays
