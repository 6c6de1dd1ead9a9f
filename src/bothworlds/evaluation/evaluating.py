"""What policies would have earned on a log, with intervals, differences, and a gate."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bothworlds.evaluation.bands import Band, Interval, band_of, checkpoints_for
from bothworlds.evaluation.diagnostics import Calibration, Diagnostics, calibration_of, diagnostics_of
from bothworlds.evaluation.estimators import Estimate, estimates
from bothworlds.evaluation.gate import Difference, Verdict, verdict
from bothworlds.evaluation.logged import Logged
from bothworlds.evaluation.regression import Regression, ridge
from bothworlds.evaluation.summands import Contrast
from bothworlds.evaluation.targets import Target, target_of
from bothworlds.kernels.arrays import Floats, Ints

AVERAGE: Interval = "bernstein"
MEANING = (
    "a value is what the policy would have earned per decision, on average over the rows of the log: with the "
    "contexts, and the world, of that time. It is no forecast: where the world changes, tomorrow's value is another one"
)
CHANGING = "does not do the same in all rows, so its interval is that for averages of values that change (bernstein)"


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluated:
    """One policy: estimates by name, its band, its weights, and its table (contexts, arms), averaged over rows."""

    name: str
    about: str
    estimates: Mapping[str, Estimate]
    band: Band
    diagnostics: Diagnostics
    table: Floats
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The doubly robust estimate, or inverse propensity weighting where there are no predictions."""
        return self.estimates["dr" if "dr" in self.estimates else "ips"].value

    @property
    def interval(self) -> tuple[float, float]:
        """The interval after the last row."""
        return self.band.interval


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation:
    """What `evaluate` returns: policies by name, differences by pairs of names, and what is to be known of the log.

    ``evaluation["new"]`` is one policy, ``evaluation.difference("new", "old")`` a difference with its own interval,
    ``evaluation.promotes("new", over="old", by=0.01)`` a decision with its reason.
    """

    logged: Logged
    policies: Mapping[str, Evaluated]
    differences: Mapping[tuple[str, str], Difference]
    calibration: Calibration | None
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Evaluated:
        if name not in self.policies:
            raise ValueError(f"no policy {name!r} was evaluated; there are {', '.join(map(repr, self.policies))}")
        return self.policies[name]

    def difference(self, name: str, over: str) -> Difference:
        """Return the difference of two policies' values, with its interval."""
        if (name, over) not in self.differences:
            known = ", ".join(f"{a!r} over {b!r}" for a, b in self.differences) or "none"
            raise ValueError(f"{name!r} was not compared with {over!r}; say against= when evaluating. Known: {known}")
        return self.differences[name, over]

    def promotes(self, name: str, *, over: str, by: float = 0.0) -> Verdict:
        """Decide whether a policy is better than another by more than ``by``, at the level of the intervals.

        It is if the lower bound of the difference exceeds ``by``. With an interval that holds at any time one may ask
        again after every row, and promote at the first yes: that is wrong with probability alpha/2 at most.
        """
        return verdict(self.difference(name, over), by=by, calibration=self.calibration)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to know before using the numbers, in plain words."""
        own = [
            f"{name}: {text}"
            for name, one in self.policies.items()
            for text in (*one.notes, *one.diagnostics.sentences)
        ]
        return (*(self.calibration.sentences if self.calibration else ()), *own, *self.notes)

    def __repr__(self) -> str:
        parts = []
        for name, one in self.policies.items():
            low, high = one.interval
            parts.append(f"{name}: {one.value:.4g} in [{low:.4g}, {high:.4g}]")
        return f"Evaluation({self.logged.rows:,} rows; {'; '.join(parts)})"


def evaluate(
    logged: Logged,
    policies: Mapping[str, Any] | Sequence[str],
    *,
    against: str | None = None,
    interval: Interval = "betting",
    alpha: float = 0.05,
    regression: Regression | Literal["ridge"] | None = "ridge",
    checkpoints: int | Sequence[int] = 200,
    most_weight: float | None = None,
    threads: int = 2,
    told: Callable[[str], None] | None = None,
) -> Evaluation:
    """Estimate what policies would have earned on a log.

    Parameters
    ----------
    logged
        The log as columns.
    policies
        Policies by name: tables (contexts, arms), plans, policies as they are now, `learning` algorithms, or the words
        "uniform", "logging" (who wrote the log) and "always ARM". A list of words is enough where all are words.
    against
        Name of the policy that all others are compared with, say "logging".
    interval
        "betting" (default), "bernstein", both "at the end", or "normal"; what each assumes is in docs/evaluation.md.
        Policies that change from row to row get "bernstein" in place of "betting".
    alpha
        The probability that an interval is wrong, for each policy and each difference; divide it by their number for
        all of them together.
    regression
        Predictions for the doubly robust sums: ridge regression on the past, one of your own, or None.
    checkpoints
        At how many moments to look, or at which.
    most_weight
        Where "clipped" and "switch" cut.
    threads
        How many policies to work on at once.
    told
        Called with the name of each piece of work that is done.

    >>> import numpy as np
    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> rng = np.random.default_rng(1)
    >>> arm = rng.integers(2, size=2000)
    >>> log = Logged.from_columns(
    ...     problem, context=np.zeros(2000, dtype=int), arm=arm, probabilities=np.full((2000, 2), 0.5),
    ...     reward=rng.random(2000) < np.where(arm == 1, 0.6, 0.3),
    ... )
    >>> found = evaluate(log, ["always b", "always a"], against="always a")
    >>> found
    Evaluation(2,000 rows; always b: 0.6253 in [0.5814, 0.67]; always a: 0.303 in [0.2613, 0.3404])
    >>> found.promotes("always b", over="always a", by=0.1).yes
    True
    """
    if not logged.rows:
        raise ValueError("the log has no rows; there is nothing to evaluate")
    targets = {name: target_of(given, logged) for name, given in _named(policies, against).items()}
    at = _checkpoints(checkpoints, logged.rows)
    fit = ridge(logged) if isinstance(regression, str) else regression
    options: dict[str, Any] = {"alpha": alpha}
    tell = told or (lambda _: None)

    def one(name: str) -> Evaluated:
        kind = _kind(interval, targets[name].changes)
        band = band_of(logged, Contrast(of=targets[name]), _fit_for(logged, fit), at, kind=kind, **options)
        found = estimates(logged, targets[name], fit, most_weight=most_weight)
        made = _evaluated(logged, name, targets[name], found, band, fell_back=kind != interval)
        tell(name)
        return made

    def two(pair: tuple[str, str]) -> Difference:
        contrast = Contrast(of=targets[pair[0]], against=targets[pair[1]])
        band = band_of(logged, contrast, _fit_for(logged, fit), at, kind=_kind(interval, contrast.changes), **options)
        tell(f"{pair[0]} over {pair[1]}")
        return Difference(name=pair[0], over=pair[1], band=band)

    pairs = [(name, against) for name in targets if against is not None and name != against]
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        ones, twos, arms = pool.map(one, targets), pool.map(two, pairs), pool.submit(calibration_of, logged)
        found = dict(zip(targets, ones, strict=True))
        differences = dict(zip(pairs, twos, strict=True))
        calibration = arms.result()
    return Evaluation(
        logged=logged, policies=found, differences=differences, calibration=calibration, notes=_notes(logged, fit)
    )


def _named(policies: Mapping[str, Any] | Sequence[str], against: str | None) -> dict[str, Any]:
    """Return policies by name; the one compared with is added if it is a word."""
    found = dict(policies) if isinstance(policies, Mapping) else {name: name for name in policies}
    if against is not None and against not in found:
        found[against] = against
    if not found:
        raise ValueError("name a policy at least: evaluate(logged, {'new': plan})")
    return found


def _checkpoints(given: int | Sequence[int], rows: int) -> Ints:
    """Return the moments to look at, ending with all rows."""
    if isinstance(given, int | np.integer):
        return checkpoints_for(rows, int(given))
    at = np.unique(np.asarray(given, dtype=np.int64))
    if not len(at) or at[0] < 1 or at[-1] > rows:
        raise ValueError(f"checkpoints are numbers of rows from 1 to {rows}; got {list(given)}")
    return at if at[-1] == rows else np.append(at, rows)


def _kind(interval: Interval, changes: bool) -> Interval:
    """Return the interval that suits a contrast."""
    return AVERAGE if changes and interval.startswith("betting") else interval


def _fit_for(logged: Logged, fit: Regression | None) -> Regression | None:
    """Return the predictions that intervals may use: none without whole rows of probabilities."""
    return None if logged.probabilities is None else fit


def _evaluated(
    logged: Logged,
    name: str,
    target: Target,
    found: Mapping[str, Estimate],
    band: Band,
    *,
    fell_back: bool,
) -> Evaluated:
    """Return all there is to say of one policy; ``fell_back``: to an interval that allows for change."""
    notes = [CHANGING] if fell_back else []
    if band.contradicted:
        notes.append("no value is left in its interval: it changes with time; interval='bernstein' is for that")
    return Evaluated(
        name=name,
        about=target.about,
        estimates=found,
        band=band,
        diagnostics=diagnostics_of(logged, target),
        table=_mean_table(logged, target),
        notes=tuple(notes),
    )


def _mean_table(logged: Logged, target: Target) -> Floats:
    """Return what a target does in each context, averaged over the rows where that changes."""
    if target.table is not None:
        return target.table
    assert target.by_row is not None
    S, K = logged.problem.n_contexts, logged.problem.n_arms
    counts = np.bincount(logged.context, minlength=S)
    sums = np.stack([np.bincount(logged.context, weights=target.by_row[:, a], minlength=S) for a in range(K)], axis=1)
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


def _notes(logged: Logged, fit: Regression | None) -> tuple[str, ...]:
    """Return what holds for all policies."""
    bare = "the log has propensities only, not whole rows of probabilities: intervals are those of ips, support unknown"
    return (*((bare,) if logged.probabilities is None and fit is not None else ()), MEANING)
