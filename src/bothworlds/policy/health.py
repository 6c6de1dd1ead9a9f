"""How a policy is doing, from counts: rates with intervals that hold at any time, drift, and what to look at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.plain import printable
from bothworlds.problem import Problem
from bothworlds.problem.labelled import table_of
from bothworlds.theory.confidence import Drift, average_rate_interval, drift_of
from bothworlds.theory.confidence.checks import checked_alpha, level_of

MOST_SHOWN = 20
HEAVY = 100.0  # a decision that weighs more than a hundred others
SILENT = 0.2
WHO = ("the policy", "uniform play")


class Tables(NamedTuple):
    """Decided, answered, and the sum of rewards or losses: (contexts, arms) each."""

    decided: Floats
    answered: Floats
    sums: Floats


@dataclass(frozen=True)
class Rate:
    """The mean reward of an arm or in a context so far, in the user's units, with an interval."""

    name: str
    decisions: int
    answers: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Reading:
    """A number, what it says in a sentence, and whether someone should look."""

    name: str
    value: float
    sentence: str
    alarm: bool = False

    def __str__(self) -> str:
        return f"{'! ' if self.alarm else '  '}{self.name}: {self.sentence}"


@dataclass(frozen=True)
class Health:
    """How a policy is doing; made by ``policy.health()`` or `health_of`, printed as tables and a sentence per reading.

    ``arms`` and ``contexts`` have the mean reward of each with an interval; all of them hold together, at all times,
    with probability 1 - alpha. ``explored``, ``smallest_propensity``, ``unanswered`` and ``traffic`` are readings,
    ``drift`` is the test behind the last of them, and ``alarms`` has the readings that ask for a look. Where decisions
    are held out, ``who`` has the mean reward of the policy and of uniform play: ``value`` and ``holdout``, and ``gain``
    reads what is between them. ``since`` is how many updates went before counting began.
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

    @property
    def value(self) -> Rate | None:
        """The mean reward of the policy's own decisions, where others are held out."""
        return self.who[0] if self.who else None

    @property
    def holdout(self) -> Rate | None:
        """The mean reward of uniform play, in decisions that were held out."""
        return self.who[1] if self.who else None

    @property
    def gain(self) -> Reading | None:
        """What a decision of the policy earns more than one of uniform play."""
        return gain_reading(*self.who) if self.who else None

    @property
    def readings(self) -> tuple[Reading, ...]:
        """All readings."""
        gain = () if self.gain is None else (self.gain,)
        return *gain, self.explored, self.smallest_propensity, self.unanswered, self.traffic

    @property
    def alarms(self) -> tuple[Reading, ...]:
        """The readings that ask for a look."""
        return tuple(reading for reading in self.readings if reading.alarm)

    def __str__(self) -> str:
        share = level_of(self.alpha)
        tables = [_table("arm", self.arms, share), _table("context", self.contexts, share)]
        if self.who:
            tables.insert(0, _table("decided by", self.who, share))
        lines = [str(reading) for reading in self.readings]
        if self.since:
            lines.append(f"  counted: since update {self.since:,}; nothing is known here of what was before")
        return "\n\n".join([*tables, "\n".join(lines)])


def health_of(
    problem: Problem,
    *,
    decided: Any,
    answered: Any,
    rewards: Any,
    probabilities: Any,
    holdout: Sequence[Any] | None = None,
    drift: Drift | None = None,
    alpha: float = 0.05,
    since: int = 0,
) -> Health:
    """Read the health of a policy from its counts.

    Parameters
    ----------
    problem
        Names, the range of rewards, and the stated law of contexts.
    decided, answered
        How many decisions were taken, and how many of them have feedback: tables (contexts, arms).
    rewards
        The sum of rewards in the user's units, (contexts, arms); without a ``reward_range``, rewards are -loss in
        [-1, 1].
    probabilities
        The policy's plan now, (contexts, arms).
    holdout
        The same three tables, decided, answered and rewards, of decisions that were held out.
    drift
        What a `DriftAlarm` found, which sees a change soon; without it, all decisions together are held against the
        law.
    alpha
        The probability that any interval is ever wrong; and a change of traffic is reported at this level.
    since
        How many updates went before counting began.

    Notes
    -----
    Intervals are for the average so far of each arm's, or context's, conditional mean reward, which may change with
    time and with who is shown what (`theory.confidence.averages`); they need that whether feedback comes does not
    depend on the outcome. Half of alpha is split evenly among arms, half among contexts; where decisions were held
    out, a third each, and a third between policy and holdout.

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
    ! traffic: contexts do not come as stated (p = 6.2e-83, at any time): 'desktop' comes 0.40 times as often. Give the
      policy a new law, or estimates are biased
    """
    checked_alpha(alpha)  # what is split among many intervals would pass for a probability
    own = _checked(problem, decided, answered, rewards)
    held = None if holdout is None else _checked(problem, *holdout)
    pi = _table_of(probabilities, problem, "probabilities")
    return _read(problem, pi, own, held, drift=drift, alpha=alpha, since=since)


def _read(
    problem: Problem, pi: Floats, own: Tables, held: Tables | None, *, drift: Drift | None, alpha: float, since: int
) -> Health:
    """Read the health from the plan, the counts of the policy's own decisions, and of those held out."""
    limits, level = problem.reward_range or (-1.0, 1.0), alpha / (2.0 if held is None else 3.0)
    decided, answered, _ = own if held is None else (one + other for one, other in zip(own, held, strict=True))
    drift = drift_of(decided.sum(1), problem.probabilities) if drift is None else drift
    return Health(
        arms=_rates(problem.arms, [table.sum(0) for table in own], limits, level),
        contexts=_rates(problem.contexts, [table.sum(1) for table in own], limits, level),
        explored=explored_share(pi, problem.probabilities),
        smallest_propensity=smallest_propensity(pi, problem),
        unanswered=unanswered_share(int(decided.sum()), int(answered.sum())),
        traffic=traffic_reading(drift, problem.contexts, int(decided.sum()), alpha),
        drift=drift,
        alpha=alpha,
        who=() if held is None else _rates(WHO, np.array([own, held]).sum(axis=(2, 3)).T, limits, level),
        since=since,
    )


def _checked(problem: Problem, decided: Any, answered: Any, rewards: Any) -> Tables:
    """Return tables of counts; refuse what cannot be."""
    given = {"decided": decided, "answered": answered, "rewards": rewards}
    n, k, r = (_table_of(values, problem, name) for name, values in given.items())
    if (k > n).any() or (k < 0.0).any():
        raise ValueError("no pair of context and arm can have more answers than decisions, or less than none")
    _check_rewards(k, r, problem.reward_range or (-1.0, 1.0))
    return Tables(n, k, r)


def _table_of(values: Any, problem: Problem, name: str) -> Floats:
    table, shape = table_of(values, problem), problem.available.shape
    if table.shape != shape or not np.isfinite(table).all():
        raise ValueError(f"{name} must be a table of {shape} finite numbers, contexts by arms; got shape {table.shape}")
    return table


def _check_rewards(k: Floats, r: Floats, limits: tuple[float, float]) -> None:
    """Refuse sums that answers within the range of rewards cannot have."""
    low, high = limits
    slack = 1e-9 * (k + 1.0) * max(abs(low), abs(high))
    wrong = (r < low * k - slack) | (r > high * k + slack)
    if wrong.any():
        raise ValueError(f"{k[wrong][0]:g} rewards in [{low:g}, {high:g}] cannot sum to {r[wrong][0]:g}")


def _rates(
    names: Sequence[str], counts: Sequence[Floats] | Floats, limits: tuple[float, float], alpha: float
) -> tuple[Rate, ...]:
    """Return the mean reward of each name, in the user's units, from decisions, answers and rewards."""
    n, k, rewards = counts
    low, high = limits
    shares = np.clip((rewards - low * k) / (high - low), 0.0, k)  # but for rounding they are
    ends = average_rate_interval(k, shares, alpha=alpha / len(names))
    bottom, top = (low + (high - low) * end for end in ends)
    means = [total / count if count else math.nan for total, count in zip(rewards, k, strict=True)]
    parts = zip(names, n, k, means, bottom, top, strict=True)
    return tuple(Rate(name, int(a), int(b), float(m), float(lo), float(hi)) for name, a, b, m, lo, hi in parts)


def explored_share(pi: Floats, law: Floats) -> Reading:
    """Read which share of the traffic gets another arm than the one the plan likes best."""
    share = float(law @ (1.0 - pi.max(axis=1)))
    return Reading("explored", share, f"{share:.1%} of the traffic gets another arm than the likeliest of its context")


def smallest_propensity(pi: Floats, problem: Problem) -> Reading:
    """Read the smallest probability with which an arm is played at all."""
    offered = np.where(problem.available & (pi > 0.0), pi, math.inf)
    x, a = (int(i) for i in np.unravel_index(offered.argmin(), pi.shape))
    least = float(offered[x, a])
    never = int((problem.available & (pi <= 0.0)).sum())
    where = f"{least:.3g}, for arm {problem.arms[a]!r} in context {problem.contexts[x]!r}"
    sentence = f"{where}: one such decision weighs as much as {_size(1.0 / least)} others"
    if never:
        sentence += f"; {never} offered pairs of context and arm are never played, nothing can be learnt of them"
    return Reading("smallest propensity", least, sentence, alarm=never > 0 or 1.0 / least > HEAVY)


def gain_reading(value: Rate, holdout: Rate) -> Reading:
    """Read what a decision of the policy earns more than one of uniform play."""
    gain = value.mean - holdout.mean
    if math.isnan(gain):
        return Reading("gain", gain, "not known before both have answers")
    low, high = value.low - holdout.high, value.high - holdout.low
    span = f"between {low:.3g} and {high:.3g} a decision, at any time"
    if high < 0.0:
        return Reading("gain", gain, f"the policy earns less than uniform play: {gain:.3g}, {span}", alarm=True)
    known = "the policy earns more than uniform play" if low > 0.0 else "more than uniform play, not certain yet"
    return Reading("gain", gain, f"{known}: {gain:.3g}, {span}")


def _size(number: float) -> str:
    return f"{number:,.0f}" if number >= 10.0 else f"{number:.2g}"


def _p(value: float) -> str:
    return f"p = {value:.2g}" if value > 0.0 else "p < 1e-300"


def unanswered_share(decided: int, answered: int) -> Reading:
    """Read which share of the decisions has no feedback."""
    open_ = decided - answered
    share = open_ / decided if decided else 0.0
    if not decided:
        return Reading("unanswered", 0.0, "no decision was taken yet")
    if not open_:
        return Reading("unanswered", 0.0, f"all {decided:,} decisions have feedback")
    sentence = f"{open_:,} of {decided:,} decisions ({share:.1%}) have no feedback"
    if share > SILENT:
        sentence += ": late, lost, or are those without a click never answered? No click is reward=0, not silence"
    return Reading("unanswered", share, sentence, alarm=share > SILENT)


def traffic_reading(drift: Drift, contexts: Sequence[str], observed: int, alpha: float) -> Reading:
    """Read whether contexts come as the stated law says."""
    if drift.p_value > alpha:
        sentence = f"nothing speaks against the stated law ({_p(drift.p_value)} after {observed:,} contexts)"
        return Reading("traffic", drift.p_value, sentence)
    with np.errstate(divide="ignore"):
        x = int(np.abs(np.log(np.maximum(drift.ratios, 1e-300))).argmax())
    sentence = (
        f"contexts do not come as stated ({_p(drift.p_value)}, at any time): {contexts[x]!r} comes "
        f"{drift.ratios[x]:.2f} times as often. Give the policy a new law, or estimates are biased"
    )
    return Reading("traffic", drift.p_value, sentence, alarm=True)


def _table(word: str, rates: Sequence[Rate], share: str) -> str:
    """Return rates as text in columns; the busiest where there are many."""
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
    """Return cells in columns, words to the left, numbers to the right."""
    padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join([cells[0].ljust(widths[0]), *padded[1:-1], cells[-1]])
