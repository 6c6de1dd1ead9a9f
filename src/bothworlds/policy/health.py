"""Health of a policy from its counts: mean rewards with intervals that hold at any time, drift, and alarms."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.policy.health_report import Health, Rate, Reading, Restarts
from bothworlds.policy.paired_gain import GainSums
from bothworlds.problem import Problem
from bothworlds.problem.lookup import table_of
from bothworlds.theory.confidence import Drift, average_rate_interval, drift_of
from bothworlds.theory.confidence.checks import checked_alpha

LARGEST_WEIGHT = 100.0  # alarm if one decision weighs more than a hundred others
UNANSWERED_LIMIT = 0.2  # alarm if a larger share of decisions has no feedback
WHO = ("the policy", "uniform play")


class Tables(NamedTuple):
    """Decisions, decisions with feedback, and sums of rewards or losses: shape (contexts, arms) each."""

    decided: Floats
    answered: Floats
    sums: Floats


class Totals(NamedTuple):
    """Decisions, decisions with feedback, and sums of their rewards and of the squares of these."""

    decided: float
    answered: float
    total: float
    squares: float


def health_of(
    problem: Problem,
    *,
    decided: Any,
    answered: Any,
    rewards: Any,
    probabilities: Any,
    holdout: Sequence[Any] | None = None,
    who: tuple[Totals, Totals] | None = None,
    gain: GainSums | None = None,
    drift: Drift | None = None,
    observed: int | None = None,
    alpha: float = 0.05,
    since: int = 0,
    restarts: Restarts | None = None,
) -> Health:
    """Compute the health of a policy from its counts.

    Parameters
    ----------
    problem
        Names, reward range and context distribution.
    decided, answered
        Numbers of decisions and of decisions with feedback, shape (contexts, arms).
    rewards
        Sums of rewards in the user's units, shape (contexts, arms); without a ``reward_range``, rewards are -loss in
        [-1, 1].
    probabilities
        The policy's current plan, shape (contexts, arms).
    holdout
        The same three tables (decided, answered, rewards) for held-out decisions.
    who
        Totals of the policy's own and of held-out decisions, by default those of the tables. They may include decisions
        of arms that were removed since.
    gain
        Sums for the gain of the policy over uniform play from all decisions; without it, it is the difference of two
        means.
    drift
        The state of a `DriftAlarm`, which detects changes early; without it, all decisions together are tested against
        the context distribution.
    observed
        The number of contexts behind ``drift``; by default that of the decisions.
    alpha
        The probability that any interval is ever wrong; drift of the contexts is reported at this level.
    since
        Number of updates before counting began.
    restarts
        Restarts of the algorithm because the world had changed, from ``policy.restarts``.

    Notes
    -----
    Intervals are for the average so far of the conditional mean reward of each arm or context, which may change over
    time and with the policy (`theory.confidence.averages`). They require that the arrival of feedback does not depend
    on the outcome. Half of alpha is split evenly among arms, half among contexts; with held-out decisions, a third
    each, and a third between policy and holdout; with ``gain``, a quarter each, and a quarter for the gain.

    >>> problem = Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
    >>> print(health_of(problem, decided=[[700, 100], [100, 100]], answered=[[700, 100], [100, 100]],
    ...     rewards=[[70, 2], [4, 5]], probabilities=[[0.9, 0.1], [0.5, 0.5]]))
    arm   decisions  answers    mean  95% interval at any time
    ----  ---------  -------  ------  ------------------------
    red         800      800  0.0925  0.0563 to 0.142
    blue        200      200   0.035  0.00441 to 0.109
    <BLANKLINE>
    context  decisions  answers   mean  95% interval at any time
    -------  ---------  -------  -----  ------------------------
    mobile         800      800   0.09  0.0544 to 0.138
    desktop        200      200  0.045  0.00836 to 0.126
    <BLANKLINE>
      explored: 30.0% of the traffic gets another arm than the likeliest of its context
      smallest propensity: 0.1, for arm 'blue' in context 'mobile': one such decision weighs as much as 10 others
      unanswered: all 1,000 decisions have feedback
    ! traffic: contexts do not follow the problem's distribution (p = 6.2e-83, at any time): 'desktop' comes 0.40 times
      as often. Update it with policy.change_probabilities or policy.follow, or estimates are biased
    """
    checked_alpha(alpha)  # before it is split: a share of an invalid alpha could be a valid probability
    own = _checked(problem, decided, answered, rewards)
    held = None if holdout is None else _checked(problem, *holdout)
    pi = _table_of(probabilities, problem, "probabilities")
    if who is not None:
        counted = np.array(who).T
    else:
        counted = np.zeros((3, 0)) if held is None else np.array([own, held]).sum(axis=(2, 3)).T
    sums = gain if counted.size and gain is not None and gain.count else None
    limits, level = problem.reward_range or (-1.0, 1.0), alpha / (2.0 + bool(counted.size) + (sums is not None))
    visits, answers, _ = own if held is None else (mine + other for mine, other in zip(own, held, strict=True))
    drift = drift_of(visits.sum(1), problem.probabilities) if drift is None else drift
    rates = rates_of(WHO, counted, limits, level) if counted.size else ()
    return Health(
        arms=rates_of(problem.arms, [table.sum(0) for table in own], limits, level),
        contexts=rates_of(problem.contexts, [table.sum(1) for table in own], limits, level),
        explored=explored_share(pi, problem.probabilities),
        smallest_propensity=smallest_propensity(pi, problem.available, problem.arms, problem.contexts),
        unanswered=unanswered_share(int(visits.sum()), int(answers.sum())),
        traffic=traffic_reading(drift, problem.contexts, int(visits.sum()) if observed is None else observed, alpha),
        drift=drift,
        alpha=alpha,
        who=rates,
        since=since,
        restarts=restarts,
        paired=None if sums is None else sums.gain(limits, variance=rates[0].variance, level=level, alpha=alpha),
    )


def _checked(problem: Problem, decided: Any, answered: Any, rewards: Any) -> Tables:
    """Return tables of counts; refuse impossible counts."""
    given = {"decided": decided, "answered": answered, "rewards": rewards}
    n, k, r = (_table_of(values, problem, name) for name, values in given.items())
    if (k > n).any() or (k < 0.0).any():
        raise ValueError("answered must lie between 0 and decided for every pair of context and arm")
    _check_rewards(k, r, problem.reward_range or (-1.0, 1.0))
    return Tables(n, k, r)


def _table_of(values: Any, problem: Problem, name: str) -> Floats:
    table, shape = table_of(values, problem.contexts, problem.arms), problem.available.shape
    if table.shape != shape or not np.isfinite(table).all():
        raise ValueError(f"{name} must be a table of {shape} finite numbers, contexts by arms; got shape {table.shape}")
    return table


def _check_rewards(k: Floats, r: Floats, limits: tuple[float, float]) -> None:
    """Refuse sums of rewards that are impossible within the reward range."""
    low, high = limits
    slack = 1e-9 * (k + 1.0) * max(abs(low), abs(high))
    wrong = (r < low * k - slack) | (r > high * k + slack)
    if wrong.any():
        raise ValueError(f"{k[wrong][0]:g} rewards in [{low:g}, {high:g}] cannot sum to {r[wrong][0]:g}")


def rates_of(
    names: Sequence[str], counts: Sequence[Floats] | Floats, limits: tuple[float, float], alpha: float
) -> tuple[Rate, ...]:
    """Return the mean reward of each name, in the user's units, from decisions, feedback and sums of rewards.

    A fourth row of ``counts`` has the sums of the squares of rewards.
    """
    n, k, rewards, *squares = counts
    low, high = limits
    shares = np.clip((rewards - low * k) / (high - low), 0.0, k)  # but for rounding they are
    ends = average_rate_interval(k, shares, alpha=alpha / len(names))
    bottom, top = (low + (high - low) * end for end in ends)
    means = [total / count if count else math.nan for total, count in zip(rewards, k, strict=True)]
    centre = (rewards + low + high) / (k + 2.0)
    largest = (centre - low) * (high - centre)
    exact = (squares[0] + low * low + high * high) / (k + 2.0) - centre * centre if squares else largest
    parts = zip(names, n, k, means, bottom, top, np.minimum(exact, largest), strict=True)
    return tuple(Rate(name, int(n), int(k), *map(float, values)) for name, n, k, *values in parts)


def explored_share(pi: Floats, probabilities: Floats) -> Reading:
    """Return the share of decisions that get another arm than the likeliest one of their context."""
    share = float(probabilities @ (1.0 - pi.max(axis=1)))
    return Reading("explored", share, f"{share:.1%} of the traffic gets another arm than the likeliest of its context")


def smallest_propensity(
    pi: Floats, available: Bools, arms: Sequence[str], contexts: Sequence[str] | None = None
) -> Reading:
    """Return the smallest positive probability of an arm; without names, contexts are recent ones."""
    offered = np.where(available & (pi > 0.0), pi, math.inf)
    x, a = (int(i) for i in np.unravel_index(offered.argmin(), pi.shape))
    least = float(offered[x, a])
    never = int((available & (pi <= 0.0)).sum())
    context = "a recent context" if contexts is None else f"context {contexts[x]!r}"
    where = f"{least:.3g}, for arm {arms[a]!r} in {context}"
    sentence = f"{where}: one such decision weighs as much as {_size(1.0 / least)} others"
    if never:
        sentence += f"; {never} offered pairs of context and arm are never played, so nothing is learned about them"
    return Reading("smallest propensity", least, sentence, alarm=never > 0 or 1.0 / least > LARGEST_WEIGHT)


def _size(number: float) -> str:
    return f"{number:,.0f}" if number >= 10.0 else f"{number:.2g}"


def _p(value: float) -> str:
    return f"p = {value:.2g}" if value > 0.0 else "p < 1e-300"


def unanswered_share(decided: int, answered: int) -> Reading:
    """Return the share of decisions without feedback."""
    open_ = decided - answered
    share = open_ / decided if decided else 0.0
    if not decided:
        return Reading("unanswered", 0.0, "there are no decisions yet")
    if not open_:
        return Reading("unanswered", 0.0, f"all {decided:,} decisions have feedback")
    sentence = f"{open_:,} of {decided:,} decisions ({share:.1%}) have no feedback"
    if share > UNANSWERED_LIMIT:
        sentence += ": is it late or lost, or only sent for clicks? No click must be sent as reward=0"
    return Reading("unanswered", share, sentence, alarm=share > UNANSWERED_LIMIT)


def traffic_reading(drift: Drift, contexts: Sequence[str], observed: int, alpha: float) -> Reading:
    """Return whether contexts follow the problem's context distribution."""
    if drift.p_value > alpha:
        sentence = (
            f"contexts are consistent with the problem's distribution ({_p(drift.p_value)} after {observed:,} contexts)"
        )
        return Reading("traffic", drift.p_value, sentence)
    with np.errstate(divide="ignore"):
        x = int(np.abs(np.log(np.maximum(drift.ratios, 1e-300))).argmax())
    sentence = (
        f"contexts do not follow the problem's distribution ({_p(drift.p_value)}, at any time): {contexts[x]!r} comes "
        f"{drift.ratios[x]:.2f} times as often. Update it with policy.change_probabilities or policy.follow, or "
        "estimates are biased"
    )
    return Reading("traffic", drift.p_value, sentence, alarm=True)
