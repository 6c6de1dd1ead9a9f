"""From one problem to another: what a mind goes on with."""

from typing import Any

import numpy as np

from bothworlds.policy.carrying import beliefs_of, carried_over, explored
from bothworlds.policy.epochs import History
from bothworlds.policy.footing import Footing
from bothworlds.policy.mapping import change_of, pairs_of
from bothworlds.policy.mind import Mind
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number


def check_change(problem: Any, *, trust: float, fresh: float | None) -> None:
    """Refuse what is no problem, and what is no share."""
    if not isinstance(problem, Problem):
        raise ValueError(f"a policy goes on with another Problem; got {problem!r:.80}")
    for name, share in {"trust": trust, **({} if fresh is None else {"fresh": fresh})}.items():
        if not is_number(share) or not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} must lie between 0 and 1; got {share!r}")


def check_move(now: Footing, seen: Footing, new: Footing) -> None:
    """Refuse losses of two scales, and what was made from a footing that is not that of now any more."""
    before, after = now.problem.reward_range, new.problem.reward_range
    if after != before:
        raise ValueError(
            f"rewards were in {before} and would be in {after} now: losses of two scales cannot be added. Keep "
            "reward_range, or start a new policy"
        )
    if now is not seen:
        raise ValueError("another thread has changed the problem meanwhile: one at a time does that")


def changed(
    mind: Mind, history: History, new: Footing, *, key: int, began: int, trust: float, fresh: float | None
) -> tuple[Mind, History]:
    """Return a mind on another footing that has learnt the same, and the history after the change.

    The old one stays as it is. ``began`` is the version of the first plan; `bothworlds.Policy.change` has the rest.
    """
    old = mind.footing
    beliefs = beliefs_of(old.machine, old.algorithm)
    change = change_of(pairs_of(old.problem, old.machine), pairs_of(new.problem, new.machine))
    after = history.after(
        old.problem,
        new.problem,
        change,
        carried=old.carried,
        linear=beliefs.linear,
        began=began,
        footing=old.mark,
    )
    begun = carried_over(old.machine, mind.learnt(), new.machine, beliefs, change, trust=trust)
    made, updates = Mind(new, key), mind.updates
    made.begin_with(begun, updates=updates)
    rate = float(getattr(made.state, "rates", np.ones(1))[0])
    tried = explored(new.machine, beliefs, change, begun, fresh=fresh, rate=rate)
    if tried is not None:
        made.begin_with(tried, updates=updates)
    return made, after
