"""Forecast the learning and exploration rates of a schedule over a horizon."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.theory.schedules import Schedule


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """eta_t, gamma_t and the cumulative exploration at selected rounds t.

    ``exact`` is False where gamma_t depends on the data: it is then an upper bound (certified). ``cost`` bounds the
    reward lost to exploration, in the user's units: each exploration round costs at most the full range of rewards.
    ``batch`` is the number of decisions that get their feedback together; t0 is ``batch`` times the t0 of feedback
    after every decision.
    """

    rounds: Ints
    learning_rate: Floats
    exploration_rate: Floats
    exploration_rounds: Floats
    cost: Floats
    t0: float
    coverage: float
    exact: bool
    batch: int = 1

    def __str__(self) -> str:
        at_most = "" if self.exact else " (gamma, explored and cost are upper bounds)"
        lines = [f"lambda = {self.coverage:.4g}, t0 = {self.t0:,.0f}{at_most}"]
        if self.batch > 1:
            single = self.t0 / self.batch
            lines.append(f"batches of {self.batch:,}: t0 is {self.batch:,} times the {single:,.0f} of single decisions")
        lines.append(f"{'t':>14} {'eta_t':>10} {'gamma_t':>10} {'explored':>14} {'cost at most':>14}")
        columns = (self.rounds, self.learning_rate, self.exploration_rate, self.exploration_rounds, self.cost)
        lines += [
            f"{t:>14,} {eta:>10.3g} {gamma:>10.3g} {explored:>14,.1f} {cost:>14,.4g}"
            for t, eta, gamma, explored, cost in zip(*columns, strict=True)
        ]
        return "\n".join(lines)


def forecast(
    schedule: Schedule, *, horizon: int, coverage: float, reward_per_loss: float, exact: bool, batch: int = 1
) -> Forecast:
    """Tabulate a schedule at 1, 10, 100, ... and the horizon."""
    value: Any = horizon
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**62:
        raise ValueError(f"horizon must be a whole number of at least 1 (and below 2**62); got {horizon!r}")
    powers = [10**i for i in range(len(str(int(value))))]
    rounds = np.unique(np.array([*powers, horizon], dtype=np.int64))
    grid = np.unique(np.concatenate([np.geomspace(1, horizon, 2000).astype(np.int64), rounds]))
    gamma = np.array([schedule.exploration_rate(float(t)) for t in grid])
    # Trapezoids over the gaps of the grid: exact below a few hundred rounds, within a fraction of a percent above.
    steps = np.diff(grid) * 0.5 * (gamma[1:] + gamma[:-1]) + 0.5 * (gamma[1:] - gamma[:-1])
    explored = np.concatenate([[gamma[0]], gamma[0] + np.cumsum(steps)])
    at = np.searchsorted(grid, rounds)
    return Forecast(
        rounds=rounds,
        learning_rate=np.array([schedule.learning_rate(float(t)) for t in rounds]),
        exploration_rate=gamma[at],
        exploration_rounds=explored[at],
        cost=2.0 * reward_per_loss * explored[at],
        t0=schedule.exploration_rounds,
        coverage=coverage,
        exact=exact,
        batch=batch,
    )
