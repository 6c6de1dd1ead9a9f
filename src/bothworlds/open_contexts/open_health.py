"""Health of a policy on an open problem from its counts, and from requests that its learner keeps."""

from collections.abc import Sequence

import numpy as np

from bothworlds.open_contexts.open_choices import MOST_KEPT
from bothworlds.open_contexts.open_counts import OpenCounts
from bothworlds.open_contexts.rule_contract import OpenLearner, PlanArrays
from bothworlds.policy.counts import rewards_from
from bothworlds.policy.health import WHO, explored_share, rates_of, smallest_propensity, unanswered_share
from bothworlds.policy.health_report import OpenHealth, Reading
from bothworlds.problem.open import OpenProblem
from bothworlds.theory.confidence.checks import checked_alpha


def open_health_of(
    problem: OpenProblem, counts: OpenCounts, learner: OpenLearner, plan: PlanArrays, *, alpha: float, holds_out: bool
) -> OpenHealth:
    """Return the health of a policy; alpha is split evenly between arms, and policy against holdout."""
    checked_alpha(alpha)
    limits, names = problem.reward_range or (-1.0, 1.0), problem.arms or ()
    own, held = (rewards_from(part.tables(), problem.reward_range) for part in (counts.own, counts.held))
    both, level = np.array([own, held]).sum(axis=(2, 3)), alpha / (2.0 if names and holds_out else 1.0)
    decided, answered, _ = both.sum(axis=0)
    explored, smallest = _exploration(names, learner, plan)
    return OpenHealth(
        arms=rates_of(names, [table.sum(0) for table in own], limits, level) if names else (),
        explored=explored,
        smallest_propensity=smallest,
        unanswered=unanswered_share(int(decided), int(answered)),
        alpha=alpha,
        who=rates_of(WHO, both.T, limits, level) if holds_out else (),
        restarts=learner.restarts(),
    )


def _exploration(names: Sequence[str], learner: OpenLearner, plan: PlanArrays) -> tuple[Reading | None, Reading | None]:
    """Return how much the plan explores in recent requests; None where these are not kept with all arms by name."""
    recent = learner.recent()
    if recent is None or not 0 < len(names) <= MOST_KEPT:
        return None, None
    nothing = np.zeros(len(recent[0]), dtype=np.int64)
    pi = learner.decide(plan, *recent, nothing, nothing).probabilities
    even = np.full(len(pi), 1.0 / len(pi))
    return explored_share(pi, even), smallest_propensity(pi, recent[1] > 0.0, names)
