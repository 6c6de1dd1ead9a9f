"""Health of a policy from its counts: mean rewards with intervals that hold at any time, drift, and alarms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.policy.paired_gain import Gain, GainSums
from bothworlds.problem import Problem
from bothworlds.problem.lookup import table_of
from bothworlds.serialization import printable
from bothworlds.theory.confidence import Drift, average_rate_interval, drift_of
from bothworlds.theory.confidence.checks import checked_alpha, level_of

MOST_SHOWN = 20
LARGEST_WEIGHT = 100.0  # alarm if one decision weighs more than a hundred others
UNANSWERED_LIMIT = 0.2  # alarm if a larger share of decisions has no feedback
WHO = ("the policy", "uniform play")


class Tables(NamedTuple):
    """Decisions, decisions with feedback, and sums of rewards or losses: shape (contexts, arms) each."""

    decided: Floats
    answered: Floats
    sums: Floats


class Restarts(NamedTuple):
    """How often a learner restarted because the world had changed, and on how many of its updates it rests since."""

    number: int
    remembered: float
    updates: int


class Totals(NamedTuple):
    """Decisions, decisions with feedback, and sums of their rewards and of the squares of these."""

    decided: float
    answered: float
    total: float
    squares: float


@dataclass(frozen=True)
class Rate:
    """The mean reward so far of an arm or in a context, in the user's units, with an interval valid at any time.

    ``variance`` is that of the rewards and two more at the ends of the reward range, so that it is never 0; if only the
    sum of the rewards is known, it is the largest possible one, which is exact for rewards at the ends of the range.
    """

    name: str
    decisions: int
    answers: int
    mean: float
    low: float
    high: float
    variance: float = math.nan


@dataclass(frozen=True)
class Reading:
    """A measured value, its meaning in a sentence, and whether it calls for attention."""

    name: str
    value: float
    sentence: str
    alarm: bool = False

    def __str__(self) -> str:
        return f"{'! ' if self.alarm else '  '}{self.name}: {self.sentence}"


@dataclass(frozen=True)
class Health:
    """The health of a policy, from ``policy.health()`` or `health_of`; printed as tables and a sentence per reading.

    ``arms`` and ``contexts`` have the mean reward of each with an interval; all intervals hold together, at all times,
    with probability 1 - alpha. ``explored``, ``smallest_propensity``, ``unanswered`` and ``traffic`` are readings;
    ``drift`` is the test behind ``traffic``; ``alarms`` has the readings that call for attention. If decisions are held
    out, ``who`` has the mean rewards of the policy and of uniform play (``value`` and ``holdout``), and ``gain`` is the
    reading of their difference. ``since`` is the number of updates before counting began. ``paired`` is the difference
    as estimated from all decisions together (`policy.paired_gain`), if their probabilities are known. ``changes`` says
    how often the algorithm restarted, if it is one that does.
    """

    arms: tuple[Rate, ...]
    contexts: tuple[Rate, ...]
    explored: Reading
    smallest_propensity: Reading
    unanswered: Reading
    traffic: Reading
    drift: Drift
    alpha: float
    who: tuple[Rate, ...] = ()
    since: int = 0
    paired: Gain | None = None
    restarts: Restarts | None = None

    @property
    def value(self) -> Rate | None:
        """The mean reward of the policy's own decisions, if others are held out."""
        return self.who[0] if self.who else None

    @property
    def holdout(self) -> Rate | None:
        """The mean reward of uniform play, from held-out decisions."""
        return self.who[1] if self.who else None

    @property
    def gain(self) -> Reading | None:
        """The reward per decision that the policy earns above uniform play."""
        return gain_reading(*self.who, alpha=self.alpha, paired=self.paired) if self.who else None

    @property
    def changes(self) -> Reading | None:
        """How often the world changed so much that the algorithm restarted."""
        return None if self.restarts is None else changes_reading(self.restarts)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """All readings."""
        always = self.explored, self.smallest_propensity, self.unanswered, self.traffic
        return tuple(reading for reading in (self.gain, *always, self.changes) if reading is not None)

    @property
    def alarms(self) -> tuple[Reading, ...]:
        """The readings that call for attention."""
        return tuple(reading for reading in self.readings if reading.alarm)

    def __str__(self) -> str:
        share = level_of(self.alpha)
        tables = [_table("arm", self.arms, share), _table("context", self.contexts, share)]
        if self.who:
            tables.insert(0, _table("decided by", self.who, share))
        lines = [str(reading) for reading in self.readings]
        if self.since:
            lines.append(f"  counted: since update {self.since:,}; earlier decisions are not counted")
        return "\n\n".join([*tables, "\n".join(lines)])


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
    rates = _rates(WHO, counted, limits, level) if counted.size else ()
    return Health(
        arms=_rates(problem.arms, [table.sum(0) for table in own], limits, level),
        contexts=_rates(problem.contexts, [table.sum(1) for table in own], limits, level),
        explored=explored_share(pi, problem.probabilities),
        smallest_propensity=smallest_propensity(pi, problem),
        unanswered=unanswered_share(int(visits.sum()), int(answers.sum())),
        traffic=traffic_reading(drift, problem.contexts, int(visits.sum()) if observed is None else observed, alpha),
        drift=drift,
        alpha=alpha,
        who=rates,
        since=since,
        restarts=restarts,
        paired=None if sums is None else sums.gain(limits, variance=rates[0].variance, level=level, alpha=alpha),
    )


def changes_reading(restarts: Restarts) -> Reading:
    """Return a reading of the restarts of an algorithm.

    >>> changes_reading(Restarts(number=1, remembered=830.4, updates=20_000)).sentence
    'what was learned stopped predicting rewards once; decisions rest on about the last 830 of 20,000'
    """
    if not restarts.number:
        return Reading("changes", 0.0, "what was learned still predicts rewards")
    number = {1: "once", 2: "twice"}.get(restarts.number, f"{restarts.number:,} times")
    rests = f"decisions rest on about the last {restarts.remembered:,.0f} of {restarts.updates:,}"
    return Reading("changes", float(restarts.number), f"what was learned stopped predicting rewards {number}; {rests}")


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


def _rates(
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


def smallest_propensity(pi: Floats, problem: Problem) -> Reading:
    """Return the smallest positive probability of an arm."""
    offered = np.where(problem.available & (pi > 0.0), pi, math.inf)
    x, a = (int(i) for i in np.unravel_index(offered.argmin(), pi.shape))
    least = float(offered[x, a])
    never = int((problem.available & (pi <= 0.0)).sum())
    where = f"{least:.3g}, for arm {problem.arms[a]!r} in context {problem.contexts[x]!r}"
    sentence = f"{where}: one such decision weighs as much as {_size(1.0 / least)} others"
    if never:
        sentence += f"; {never} offered pairs of context and arm are never played, so nothing is learned about them"
    return Reading("smallest propensity", least, sentence, alarm=never > 0 or 1.0 / least > LARGEST_WEIGHT)


def gain_reading(value: Rate, holdout: Rate, *, alpha: float, paired: Gain | None = None) -> Reading:
    """Return the reward per decision that the policy earns above uniform play.

    The sentence has a fixed-time interval (`fixed_time_gain`) and one that holds at any time; only the latter alarms.
    """
    if math.isnan(value.mean - holdout.mean):
        return Reading("gain", math.nan, "not known before both have feedback")
    if paired is None:
        once = fixed_time_gain(value, holdout, alpha=alpha)
        paired = Gain(value.mean - holdout.mean, value.low - holdout.high, value.high - holdout.low, *once)
    gain, low, high, once_low, once_high = paired
    verdict = "no difference between the policy and uniform play shows yet"
    for sure, likely, direction in ((low > 0.0, once_low > 0.0, "more"), (high < 0.0, once_high < 0.0, "less")):
        if sure or likely:
            verdict = f"the policy {'' if sure else 'probably '}earns {direction} than uniform play"
    lift = f" ({gain / holdout.mean:+.1%})" if holdout.mean > 0.0 else ""
    sentence = (
        f"{verdict}: {gain:+.3g} a decision{lift}, between {low:.3g} and {high:.3g} at any time, "
        f"between {once_low:.3g} and {once_high:.3g} at a fixed time (for a single look)"
    )
    return Reading("gain", gain, sentence, alarm=high < 0.0)


def fixed_time_gain(value: Rate, holdout: Rate, *, alpha: float) -> tuple[float, float]:
    """Return a normal interval for the difference of two mean rewards, at a time chosen before looking at them."""
    spread = sum(rate.variance / max(rate.answers, 1) for rate in (value, holdout))
    radius = NormalDist().inv_cdf(1.0 - alpha / 2.0) * math.sqrt(spread)
    return value.mean - holdout.mean - radius, value.mean - holdout.mean + radius


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


def _table(word: str, rates: Sequence[Rate], share: str) -> str:
    """Return rates as text in columns; only those with the most decisions if there are many."""
    shown = rates if len(rates) <= MOST_SHOWN else sorted(rates, key=lambda rate: -rate.decisions)[:MOST_SHOWN]
    rows = [[word, "decisions", "answers", "mean", f"{share} interval at any time"]]
    rows += [
        [printable(r.name), f"{r.decisions:,}", f"{r.answers:,}", _mean(r), f"{r.low:.3g} to {r.high:.3g}"]
        for r in shown
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    rows.insert(1, ["-" * width for width in widths])
    more = [f"... and {len(rates) - MOST_SHOWN} more"] if len(rates) > MOST_SHOWN else []
    return "\n".join([*(_line(row, widths) for row in rows), *more])


def _mean(rate: Rate) -> str:
    return f"{rate.mean:.3g}" if rate.answers else "-"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return cells in columns, text aligned to the left and numbers to the right."""
    padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join([cells[0].ljust(widths[0]), *padded[1:-1], cells[-1]])
