"""Decisions that clients took themselves from a plan: computed again, and stored as if they were taken here."""

import base64
import threading
from collections.abc import Sequence
from typing import TypeAlias

from bothworlds.policy.plan import Plan
from bothworlds.service import rules
from bothworlds.service.batch_decide import decide_batch
from bothworlds.service.commits import PendingRequest
from bothworlds.service.experiment import Experiment, as_bytes, restore, warm_plan
from bothworlds.service.messages import Decide, Decided, Local, PlanFile, Refusal
from bothworlds.service.store import Store

Prepared: TypeAlias = PendingRequest | tuple[int, Refusal]
_restoring = threading.Lock()  # one version at a time: it may take a second


def plan_file(plan: Plan, *, fingerprint: str | None, version: int | None) -> PlanFile:
    """Return a plan for a client that has another version, without its frame if the client has that."""
    if (plan.spec.fingerprint, plan.version) == (fingerprint, version):
        return PlanFile(plan.version, plan.spec.fingerprint, None)
    content = as_bytes(lambda path: plan.save(path, frame=plan.spec.fingerprint != fingerprint))
    return PlanFile(plan.version, plan.spec.fingerprint, base64.b64encode(content).decode())


def plan_of(experiment: Experiment, version: int, store: Store) -> Plan | None:
    """Return the plan of an earlier version, None if there was none; one that is not kept is restored."""
    with _restoring:
        plan = experiment.earlier_plan(version)
        may_exist = version < experiment.plan.version or experiment.shared  # another host may have a newer one
        if plan is None and may_exist:
            try:
                policy = restore(store, experiment.number, version=version).policy
            except ValueError:
                return None
            if policy.version == version:
                plan = warm_plan(policy)
                experiment.keep_plan(plan)
        return plan


def prepare(
    experiment: Experiment, rows: Sequence[Local], store: Store, *, traceparent: str | None = None
) -> list[Prepared]:
    """Compute the decisions of one experiment again; return what to store, or why a row is refused."""
    plans = {version: plan_of(experiment, version, store) for version in {row.version for row in rows}}
    prepared: list[Prepared] = []
    for row in rows:
        plan = plans[row.version]
        if plan is None:
            known = f"there is no plan of version {row.version}; the current one is {experiment.plan.version}"
            prepared.append((rules.INVALID, Refusal(known)))
            continue
        request = Decide(row.context, row.id, row.experiment, row.active)
        (draw,) = decide_batch(plan, [request], [traceparent])
        if isinstance(draw, Refusal):
            prepared.append((rules.INVALID, draw))
        elif (draw[1].arm, draw[1].propensity) != (row.arm, row.propensity):
            sentence = f"plan {row.version} decides {draw[1].arm!r} for {row.id!r}, not {row.arm!r} as in the row"
            prepared.append((rules.CONFLICT, Refusal(sentence)))
        else:
            prepared.append(PendingRequest(experiment, request, given=draw))
    return prepared


def answer_of(pending: PendingRequest) -> tuple[int, object]:
    """Return status and answer of a stored row; another decision under its id is a conflict."""
    answer, given = pending.answer, pending.given
    if isinstance(answer, Decided) and given is not None and not isinstance(given, Refusal):
        body = given[1]
        if (answer.version, answer.arm) != (body.version, body.arm):
            return rules.CONFLICT, Refusal(f"decision {answer.id!r} was taken before, with version {answer.version}")
    return pending.status, answer
