"""An anytime-valid lower bound for the average of values that may change from row to row: empirical Bernstein.

Let v_t be the value in row t given the past; the world, or the policy, may change at any moment. With X_t as in
`dr_terms`, m_t any guess of it in [-b, a] made before row t, and D = k + b + a, so that (X_t - m_t)/D >= -1,

    exp(lambda (X_t - v_t) - psi(lambda D) ((X_t - m_t)/D)^2),        psi(c) = -log(1 - c) - c,

has mean 1 at most (Fan, Grama and Liu 2015, lemma 4.1: exp(c y - psi(c) y^2) <= 1 + c y for y >= -1; and 1 + z <=
e^z). The same lambda in all rows makes the product depend on sum_t v_t alone. The steps of a grid of bets are mixed,
and the bound is the average at which the mixture reaches 2/alpha: below the average of the v_t at all times, with
probability 1 - alpha/2 (Ville 1939). It is the interval for time-varying values of Waudby-Smith, Wu, Ramdas,
Karampatziakis and Mineiro 2024 (section 3), with a mixture over a grid and a cut for each bet. Earlier bounds are for
other averages, so the bounds are not intersected over time.
"""

import math

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.evaluation.betting_bounds import planned_steps
from bothworlds.evaluation.betting_grid import COMPONENTS, BetGrid
from bothworlds.evaluation.dr_terms import SummandRows, ValueQuery
from bothworlds.evaluation.logged import chunks

SHARE, PEAK = 0.25, 1.0
PSI = -math.log1p(-SHARE) - SHARE
BISECTIONS = 50


def both_averages(
    query: ValueQuery, checkpoints: Ints, *, alpha: float, planned: bool = False
) -> tuple[Floats, Floats]:
    """Return lower bounds for the average value so far and for its negative, at checkpoints.

    Each holds at all times together with probability 1 - alpha/2. With ``planned`` one bet for each row is chosen for
    the last checkpoint; the bounds hold there alone, and for a value that is the same in all rows.
    """
    b, a = query.contrast.value_bounds
    if a + b == 0.0:
        return np.zeros(len(checkpoints)), np.zeros(len(checkpoints))
    bound, threshold = _planned if planned else _mixed, math.log(2.0 / alpha)
    sides = (query, b, a), (query.negative(), a, b)
    grids = [(signed, BetGrid(b=below, a=above, share=SHARE, peak=PEAK)) for signed, below, above in sides]
    low, high = (bound(signed, checkpoints, grid, threshold) for signed, grid in grids)
    return low, high


def _mixed(query: ValueQuery, checkpoints: Ints, grid: BetGrid, threshold: float) -> Floats:
    """Return the bounds of the mixture."""
    steps = np.arange(COMPONENTS)
    bets, widths = grid.bet(steps), grid.cut(steps) + grid.width
    sums, squares = _sums(query, checkpoints, grid)
    fixed = grid.log_prior + bets * sums - PSI * squares / widths**2  # (checkpoints, components)
    return _roots(fixed, bets * checkpoints[:, None].astype(np.float64), grid, threshold)


def _roots(fixed: Floats, slope: Floats, grid: BetGrid, threshold: float) -> Floats:
    """Return the largest average that the mixtures sum_j exp(fixed_j - slope_j v) reject, or -b."""
    low, high = np.full(len(fixed), -grid.b), np.full(len(fixed), grid.a)
    rejects_lowest = _log_mixture(fixed - slope * low[:, None]) >= threshold
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        rejected = _log_mixture(fixed - slope * middle[:, None]) >= threshold
        low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
    return np.where(rejects_lowest, low, -grid.b)


def _log_mixture(logs: Floats) -> Floats:
    largest = logs.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1)))


def _sums(query: ValueQuery, checkpoints: Ints, grid: BetGrid) -> tuple[Floats, Floats]:
    """Return sum X and sum (X - m)^2 up to each checkpoint for every cut, shapes (checkpoints, components)."""
    C = len(checkpoints)
    sums, squares = np.zeros((C, COMPONENTS)), np.zeros((C, COMPONENTS))
    earlier, total = 0, 0.0
    for where in chunks(int(checkpoints[-1])):
        rows = query.rows(where)
        segment = np.searchsorted(checkpoints, np.arange(where.start, where.stop), side="right")
        clipped = np.clip(rows.uncut, -grid.b - grid.width, grid.a + grid.width)
        guess = _guesses(clipped, earlier, total, grid)
        earlier, total = earlier + len(clipped), total + float(clipped.sum())
        uncut_from = grid.first_uncut_step(rows.uncut_k)
        for j in range(COMPONENTS):
            x = _cut_at(rows, np.full(len(guess), j), uncut_from, grid)
            sums[:, j] += np.bincount(segment, weights=x, minlength=C)
            squares[:, j] += np.bincount(segment, weights=(x - guess) ** 2, minlength=C)
    return np.cumsum(sums, axis=0), np.cumsum(squares, axis=0)


def _guesses(x: Floats, earlier: int, total: float, grid: BetGrid) -> Floats:
    """Return a guess of each summand: the mean of the earlier ones and of the middle of [-b, a].

    ``earlier`` and ``total`` are the number and the sum of the summands before ``x``.
    """
    before = total + np.concatenate([[0.0], np.cumsum(x)[:-1]]) + 0.5 * (grid.a - grid.b)
    return np.clip(before / (earlier + 1.0 + np.arange(len(x))), -grid.b, grid.a)


def _cut_at(rows: SummandRows, step: Ints, uncut_from: Ints, grid: BetGrid) -> Floats:
    """Return the summands, each cut at the k of its step."""
    cut = np.flatnonzero(uncut_from > step)
    if not len(cut):
        return rows.uncut
    x = rows.uncut.copy()
    x[cut] = rows.cut(grid.cut(step[cut]), cut)
    return x


def _planned(query: ValueQuery, checkpoints: Ints, grid: BetGrid, threshold: float) -> Floats:
    """Return the bound at the last checkpoint, with a bet for each row; -b at the others."""
    rows = query.rows(slice(0, int(checkpoints[-1])))
    step = planned_steps(rows.uncut, grid, threshold).astype(np.int64)
    x, bet = _cut_at(rows, step, grid.first_uncut_step(rows.uncut_k), grid), grid.bet(step)
    clipped = np.clip(rows.uncut, -grid.b - grid.width, grid.a + grid.width)
    guess = _guesses(clipped, 0, 0.0, grid)
    spent = PSI * float((((x - guess) / (grid.cut(step) + grid.width)) ** 2).sum())
    bound = (float((bet * x).sum()) - spent - threshold) / float(bet.sum())
    return np.append(np.full(len(checkpoints) - 1, -grid.b), max(bound, -grid.b))
