"""Decide a batch of requests with one plan: the same bits as one request at a time, in less time."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.policy.decision import Decision
from bothworlds.policy.feedback import DecisionBatch
from bothworlds.policy.ids import given_id, id_of
from bothworlds.policy.plan import Plan
from bothworlds.service.messages import Decide, Refusal
from bothworlds.service.records import DecisionBody, hash_request

Draw: TypeAlias = tuple[str, DecisionBody] | Refusal  # id and decision, or why there is none
UNDRAWN = Refusal("")


def decide_batch(plan: Plan, requests: Sequence[Decide], traceparents: Sequence[str | None]) -> list[Draw]:
    """Decide all requests as new decisions; a request without an id gets one."""
    index, issue, has_holdout = plan.problem.context_index, plan.spec.id_issuer.issue, plan.spec.holdout > 0.0
    draws: list[Draw] = []
    slots, names, contexts, heads = [], [], [], []
    for request, traceparent in zip(requests, traceparents, strict=True):
        try:
            context = index(request.context)
            name = id_of(*issue()) if request.id is None else given_id(request.id)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            draws.append(Refusal(str(error)))
            continue
        head = hash_request(request.context, request.active), traceparent
        if has_holdout and plan.holds_out(name):
            draws.append((name, decision_body(plan.redecide(context, name), plan, *head)))
            continue
        slots.append(len(draws))
        draws.append(UNDRAWN)
        names.append(name)
        contexts.append(context)
        heads.append(head)
    if slots:
        bodies = decision_bodies(plan, plan.redecide_batch(contexts, names), heads)
        for slot, draw in zip(slots, zip(names, bodies, strict=True), strict=True):
            draws[slot] = draw
    return draws


def decision_body(decision: Decision, plan: Plan, request_hash: bytes, traceparent: str | None) -> DecisionBody:
    """Return the log body of one decision."""
    other = None
    if decision.holdout:
        offered = plan.problem.available[decision.context]
        probabilities = (offered * decision.propensity).tobytes()
        other = float(plan.probabilities()[decision.context, decision.arm])
    else:
        probabilities = plan.probability_bytes(decision.context)
        if plan.spec.holdout:
            other = 1.0 / int(plan.problem.available[decision.context].sum())
    return DecisionBody(
        request_hash,
        decision.context_name,
        traceparent,
        decision.arm_name,
        decision.propensity,
        decision.version,
        decision.holdout,
        other,
        decision.fingerprint,
        probabilities,
        decision.direction.tobytes(),
        None if decision.baseline is None else decision.baseline.tobytes(),
    )


def decision_bodies(plan: Plan, batch: DecisionBatch, heads: Sequence[tuple[bytes, str | None]]) -> list[DecisionBody]:
    """Return the log bodies of a batch of decisions; none of them may belong to the holdout.

    ``heads`` has the hash and the traceparent of each request.
    """
    spec, problem = plan.spec, plan.problem
    contexts, arms, mark, version = problem.contexts, problem.arms, spec.short_fingerprint, plan.version
    if spec.holdout:
        others: list[float | None] = (1.0 / problem.available[batch.contexts].sum(axis=1)).tolist()
    else:
        others = [None] * len(heads)
    rows = zip(
        heads,
        batch.contexts.tolist(),
        batch.arms.tolist(),
        batch.propensities.tolist(),
        others,
        row_bytes(plan.probabilities()[batch.contexts]),
        row_bytes(batch.directions),
        row_bytes(batch.baselines) if spec.has_baseline else [None] * len(heads),
        strict=True,
    )
    return [
        DecisionBody(
            hashed, contexts[x], trace, arms[a], propensity, version, False, other, mark, chances, direction, baseline
        )
        for (hashed, trace), x, a, propensity, other, chances, direction, baseline in rows
    ]


def row_bytes(table: Floats) -> list[bytes]:
    """Return the rows of a table of numbers, each as bytes.

    >>> import numpy as np
    >>> [len(row) for row in row_bytes(np.zeros((2, 3)))], row_bytes(np.zeros((2, 0)))
    ([24, 24], [b'', b''])
    """
    length = table.shape[1] * table.itemsize
    if not length:
        return [b""] * len(table)
    rows: list[bytes] = np.ascontiguousarray(table).view(f"V{length}")[:, 0].tolist()
    return rows


def numbers(content: bytes) -> Floats:
    """Return the float64 array in some bytes; it is writable, as the compiled code requires."""
    return np.frombuffer(bytearray(content), dtype=np.float64)
