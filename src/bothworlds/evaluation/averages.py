"""A lower bound for the average of values that may change from row to row, at any time: empirical Bernstein.

Let v_t be the value in row t given the past; the world, or the policy, may change at any moment. With X_t as in
`summands`, m_t any guess of it in [-b, a] made before row t, and D = k + b + a, so that (X_t - m_t)/D >= -1,

    exp(lambda (X_t - v_t) - psi(lambda D) ((X_t - m_t)/D)^2),        psi(c) = -log(1 - c) - c,

has mean 1 at most (Fan, Grama and Liu 2015, lemma 4.1: exp(c y - psi(c) y^2) <= 1 + c y for y >= -1; and 1 + z <=
e^z). The same lambda in all rows makes the product depend on sum_t v_t alone. The steps of a ladder are mixed, and the
bound is the average at which the mixture reaches 2/alpha: below the average of the v_t at all times, with probability
1 - alpha/2 (Ville 1939). It is the interval for time-varying values of Waudby-Smith, Wu, Ramdas, Karampatziakis and
Mineiro 2024 (section 3), with a mixture over a grid and cuts that go with the bets. Earlier bounds are for other
averages, so nothing is intersected.
"""

import math

import numpy as np

from bothworlds.evaluation.bets import planned_steps
from bothworlds.evaluation.ladder import COMPONENTS, Ladder
from bothworlds.evaluation.logged import pieces
from bothworlds.evaluation.summands import Question, Rows
from bothworlds.kernels.arrays import Floats, Ints

SHARE, PEAK = 0.25, 1.0
PSI = -math.log1p(-SHARE) - SHARE
HALVINGS = 50


def both_averages(
    question: Question, checkpoints: Ints, *, alpha: float, planned: bool = False
) -> tuple[Floats, Floats]:
    """Return lower bounds for the average value so far, and for its negative, at checkpoints.

    Each is valid with alpha/2 at all times together. With ``planned`` one bet for each row is chosen for the last
    checkpoint; the bounds hold there alone, and for a value that is the same in all rows.
    """
    b, a = question.contrast.reach
    if a + b == 0.0:
        return np.zeros(len(checkpoints)), np.zeros(len(checkpoints))
    make, depth = _planned if planned else _mixed, math.log(2.0 / alpha)
    sides = (question, b, a), (question.negative(), a, b)
    ladders = [(one, Ladder(b=low, a=high, share=SHARE, peak=PEAK)) for one, low, high in sides]
    low, high = (make(one, checkpoints, ladder, depth) for one, ladder in ladders)
    return low, high


def _mixed(question: Question, checkpoints: Ints, ladder: Ladder, depth: float) -> Floats:
    """Return the bounds of the mixture."""
    steps = np.arange(COMPONENTS)
    bets, widths = ladder.bet(steps), ladder.cut(steps) + ladder.reach
    sums, squares = _sums(question, checkpoints, ladder)
    fixed = ladder.log_prior + bets * sums - PSI * squares / widths**2  # (checkpoints, components)
    return _roots(fixed, bets * checkpoints[:, None].astype(np.float64), ladder, depth)


def _roots(fixed: Floats, slope: Floats, ladder: Ladder, depth: float) -> Floats:
    """Return the largest average that is out, or -b, of the mixtures sum_j exp(fixed_j - slope_j v)."""
    low, high = np.full(len(fixed), -ladder.b), np.full(len(fixed), ladder.a)
    begins = _mixture(fixed - slope * low[:, None]) >= depth
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        out = _mixture(fixed - slope * middle[:, None]) >= depth
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    return np.where(begins, low, -ladder.b)


def _mixture(logs: Floats) -> Floats:
    most = logs.max(axis=1)
    return np.asarray(most + np.log(np.exp(logs - most[:, None]).sum(axis=1)))


def _sums(question: Question, checkpoints: Ints, ladder: Ladder) -> tuple[Floats, Floats]:
    """Return sum X and sum (X - m)^2 up to each checkpoint for every cut, shapes (checkpoints, components)."""
    C = len(checkpoints)
    sums, squares = np.zeros((C, COMPONENTS)), np.zeros((C, COMPONENTS))
    seen, total = 0, 0.0
    for where in pieces(int(checkpoints[-1])):
        rows = question.rows(where)
        segment = np.searchsorted(checkpoints, np.arange(where.start, where.stop), side="right")
        trimmed = np.clip(rows.whole, -ladder.b - ladder.reach, ladder.a + ladder.reach)
        guess = _guesses(trimmed, seen, total, ladder)
        seen, total = seen + len(trimmed), total + float(trimmed.sum())
        whole_from = ladder.step_without_cut(rows.need)
        for j in range(COMPONENTS):
            x = _cut_at(rows, np.full(len(guess), j), whole_from, ladder)
            sums[:, j] += np.bincount(segment, weights=x, minlength=C)
            squares[:, j] += np.bincount(segment, weights=(x - guess) ** 2, minlength=C)
    return np.cumsum(sums, axis=0), np.cumsum(squares, axis=0)


def _guesses(x: Floats, seen: int, total: float, ladder: Ladder) -> Floats:
    """Return a guess of each summand from those before: their mean, beginning with the middle of the reach."""
    before = total + np.concatenate([[0.0], np.cumsum(x)[:-1]]) + 0.5 * (ladder.a - ladder.b)
    return np.clip(before / (seen + 1.0 + np.arange(len(x))), -ladder.b, ladder.a)


def _cut_at(rows: Rows, step: Ints, whole_from: Ints, ladder: Ladder) -> Floats:
    """Return the summands, each cut at the k of its step."""
    still = np.flatnonzero(whole_from > step)
    if not len(still):
        return rows.whole
    x = rows.whole.copy()
    x[still] = rows.cut(ladder.cut(step[still]), still)
    return x


def _planned(question: Question, checkpoints: Ints, ladder: Ladder, depth: float) -> Floats:
    """Return the bound at the last checkpoint, with a bet for each row; -b at the others."""
    rows = question.rows(slice(0, int(checkpoints[-1])))
    step = planned_steps(rows.whole, ladder, depth).astype(np.int64)
    x, bet = _cut_at(rows, step, ladder.step_without_cut(rows.need), ladder), ladder.bet(step)
    trimmed = np.clip(rows.whole, -ladder.b - ladder.reach, ladder.a + ladder.reach)
    guess = _guesses(trimmed, 0, 0.0, ladder)
    spent = PSI * float((((x - guess) / (ladder.cut(step) + ladder.reach)) ** 2).sum())
    bound = (float((bet * x).sum()) - spent - depth) / float(bet.sum())
    return np.append(np.full(len(checkpoints) - 1, -ladder.b), max(bound, -ladder.b))
