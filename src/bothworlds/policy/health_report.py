"""Health reports: mean rewards with their intervals, readings as sentences, and both as text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from bothworlds.policy.paired_gain import Gain
from bothworlds.serialization import printable
from bothworlds.theory.confidence import Drift
from bothworlds.theory.confidence.checks import level_of

MOST_SHOWN = 20


class Restarts(NamedTuple):
    """How often a learner restarted because the world had changed, and on how many of its updates it rests since."""

    number: int
    remembered: float
    updates: int


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


@dataclass(frozen=True, kw_only=True)
class OpenHealth:
    """The health of a policy on an `OpenProblem`; printed as tables and a sentence per reading.

    ``arms`` has the mean reward of each arm with a name, with an interval; all intervals hold together, at all times,
    with probability 1 - alpha. ``unanswered`` is a reading, as are ``explored`` and ``smallest_propensity``, which are
    of the recent requests that the learner keeps, and None if it keeps none; ``alarms`` has the readings that call for
    attention. If decisions are held out, ``who`` has the mean rewards of the policy and of uniform play (``value`` and
    ``holdout``), and ``gain`` is the reading of their difference. ``changes`` says how often the algorithm restarted,
    if it is one that does.
    """

    arms: tuple[Rate, ...]
    explored: Reading | None
    smallest_propensity: Reading | None
    unanswered: Reading
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
        found = self.gain, self.explored, self.smallest_propensity, self.unanswered, *self._of_contexts, self.changes
        return tuple(reading for reading in found if reading is not None)

    @property
    def _of_contexts(self) -> tuple[Reading, ...]:
        """Readings of listed contexts."""
        return ()

    @property
    def _tables(self) -> tuple[tuple[str, tuple[Rate, ...]], ...]:
        """Tables by the word for their names."""
        return ("decided by", self.who), ("arm", self.arms)

    @property
    def alarms(self) -> tuple[Reading, ...]:
        """The readings that call for attention."""
        return tuple(reading for reading in self.readings if reading.alarm)

    def __str__(self) -> str:
        share = level_of(self.alpha)
        tables = [_table(word, rates, share) for word, rates in self._tables if rates]
        lines = [str(reading) for reading in self.readings]
        if self.since:
            lines.append(f"  counted: since update {self.since:,}; earlier decisions are not counted")
        return "\n\n".join([*tables, "\n".join(lines)])


@dataclass(frozen=True, kw_only=True)
class Health(OpenHealth):
    """The health of a policy, from ``policy.health()`` or `health_of`; printed as tables and a sentence per reading.

    ``arms`` and ``contexts`` have the mean reward of each with an interval; all intervals hold together, at all times,
    with probability 1 - alpha. ``explored``, ``smallest_propensity``, ``unanswered`` and ``traffic`` are readings;
    ``drift`` is the test behind ``traffic``; ``alarms`` has the readings that call for attention. If decisions are held
    out, ``who`` has the mean rewards of the policy and of uniform play (``value`` and ``holdout``), and ``gain`` is the
    reading of their difference. ``since`` is the number of updates before counting began. ``paired`` is the difference
    as estimated from all decisions together (`policy.paired_gain`), if their probabilities are known. ``changes`` says
    how often the algorithm restarted, if it is one that does.
    """

    contexts: tuple[Rate, ...]
    explored: Reading
    smallest_propensity: Reading
    traffic: Reading
    drift: Drift

    @property
    def _of_contexts(self) -> tuple[Reading, ...]:
        return (self.traffic,)

    @property
    def _tables(self) -> tuple[tuple[str, tuple[Rate, ...]], ...]:
        return *super()._tables, ("context", self.contexts)


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
