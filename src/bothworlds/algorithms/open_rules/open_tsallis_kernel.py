"""Kernel functions of the default rule for open problems: plans. `open_tsallis` has the formulas."""

import math

from bothworlds.algorithms.lc_tsallis.change_evidence import RESTART_RATE
from bothworlds.algorithms.open_rules.open_memories import learn_row
from bothworlds.algorithms.open_rules.open_state import Options, State, Work
from bothworlds.algorithms.open_rules.reservoir import (
    entropy_of,
    highest_entropy,
    regress,
    write_even_moment,
    write_moment,
    write_points,
    write_table,
)
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, fused
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import cholesky, invert_lower, product
from bothworlds.kernels.status import NOT_FINITE, NOT_POSITIVE, OK
from bothworlds.open_contexts.rule_contract import Rows
from bothworlds.theory.schedules import SURE

STEP_LIMIT = 0.999  # of c, so that rounding cannot make a step with drift exceed c
SMALLEST_SCALE = 1e-12  # of a memory, before its gram is stored anew


@kernel
def learn_rows(options: Options, state: State, work: Work, rows: Rows, first: int, last: int, key: int) -> int:
    """Learn rows first to last - 1 in order, with a new plan whenever one is due; return a status."""
    for n in range(first, last + 1):
        if state.pending[0] >= state.piece[0]:
            status = refresh(options, state, work)
            if status != OK:
                return status
        if n < last:
            status = learn_row(options, state, work, rows, n, key)
            if status != OK:
                return status
    return OK


@kernel
def cost_in_context(q: Floats, offered: Floats, shift: Floats, beta: Number, c: float) -> tuple[Number, Number, Number]:
    """Return the cost of a step in a context if it is covered, the cost if not, and the largest |y|."""
    weight, middle = 0.0, 0.0
    for a in range(q.shape[0]):
        share = q[a] * math.sqrt(q[a])
        weight, middle = weight + share, fused(share, shift[a], middle)
    middle = middle / weight
    covered, squares, widest, mean, least = 0.0, 0.0, 0.0, 0.0, math.inf
    for a in range(q.shape[0]):
        r = math.sqrt(q[a])
        y = (shift[a] - middle) * r / beta
        widest, square = max(widest, abs(y)), r * (y * y)
        squares, covered = squares + square, fused(square, 1.0 - y + y * y / (1.0 - c), covered)
        if offered[a] > 0.0:
            mean, least = fused(q[a], shift[a], mean), min(least, shift[a])
    near = beta * squares / max(1.0 - widest, 1.0 - 2.0 * c)
    return beta * covered, (min(near, mean - least) if widest <= 2.0 * c else mean - least), widest


@kernel
def step_costs(options: Options, state: State, shift: Floats) -> tuple[Number, Number, Number]:
    """Return z and u of a step (one of them is 0), averaged over the reservoir, and the largest |y|."""
    kept = int(state.kept[0])
    covered, uncovered, widest = 0.0, 0.0, 0.0
    for x in range(kept):
        near, far, most = cost_in_context(state.q[x], state.offered[x], shift[x], state.inverse_rate[0], options.c)
        covered, uncovered, widest = covered + near, uncovered + far, max(widest, most)
    if widest <= options.c:
        return covered / max(kept, 1), 0.0, widest
    return 0.0, uncovered / max(kept, 1), widest


@kernel
def widest_move(state: State, moved: Floats) -> Number:
    """Return the largest |y| of a move, whose products are in a table."""
    widest = 0.0
    for x in range(int(state.kept[0])):
        weight, middle = 0.0, 0.0
        for a in range(state.q.shape[1]):
            share = state.q[x, a] * math.sqrt(state.q[x, a])
            weight, middle = weight + share, fused(share, moved[x, a], middle)
        for a in range(state.q.shape[1]):
            widest = max(widest, abs(moved[x, a] - middle / weight) * math.sqrt(state.q[x, a]))
    return widest / state.inverse_rate[0]


@kernel
def drift(options: Options, state: State, work: Work, widest: Number) -> None:
    """Move mu toward n m - Theta as far as the step, with the move, keeps |y| <= c; ``widest`` is its |y| without."""
    part, kept = 1.0, int(state.kept[0])
    for b in range(state.theta.shape[0]):
        for i in range(state.theta.shape[1]):
            goal = state.rounds[0] * state.estimates[0, b, i] - state.theta[b, i]
            work.way[b, i] = goal - state.drift[b, i]
    if kept > 0:
        write_table(work.way, state.z, state.offered, kept, 0.0, work.table)
        reach = widest_move(state, work.table)
        if reach > 0.0:
            part = max(min((STEP_LIMIT * options.c - widest) / reach, 1.0), 0.0)
    for b in range(state.theta.shape[0]):
        for i in range(state.theta.shape[1]):
            state.drift[b, i] = fused(part, work.way[b, i], state.drift[b, i])


@kernel
def predict(state: State, work: Work) -> tuple[Number, Number]:
    """Write the predictions <m, z>; return their scale and the mean of 1 - prediction^2 under the plan."""
    kept, scale, squares = int(state.kept[0]), 1.0, 0.0
    write_table(state.estimates[0], state.z, state.offered, kept, 0.0, work.table)
    for x in range(kept):
        for a in range(state.q.shape[1]):
            prediction = work.table[x, a]
            scale = max(scale, abs(prediction))
            squares = fused(state.q[x, a] * prediction, prediction, squares)
    return scale, 1.0 - squares / max(kept, 1) / (scale * scale)


@kernel
def regress_all(state: State, work: Work) -> bool:
    """Write the ridge estimates of all memories; return whether they are defined."""
    for w in range(state.scales.shape[0]):
        if state.scales[w] < SMALLEST_SCALE:
            for b in range(state.theta.shape[0]):
                for i in range(state.theta.shape[1]):
                    state.moments[w, b, i] *= state.scales[w]
                    for j in range(i + 1):
                        state.grams[w, b, i, j] *= state.scales[w]
            state.scales[w] = 1.0
        gram, moment, scale = state.grams[w], state.moments[w], state.scales[w]
        if not regress(scale, gram, moment, work.even, work.regular, work.mixed, state.estimates[w]):
            return False
    return True


@kernel
def adjust_rate(options: Options, state: State, jump: Number) -> None:
    """Let beta grow by an uncovered step, and lower it after a restart."""
    H = max(highest_entropy(state.offered, int(state.kept[0])), SURE)
    if state.inverse_rate[0] < options.uncovered:
        state.inverse_rate[0] *= 1.0 + options.price * jump / (options.uncovered * H)
    if state.restarting[0] > 0.0:
        lowered = RESTART_RATE * options.first * math.sqrt(1.0 + state.rounds[0])
        state.inverse_rate[0] = min(state.inverse_rate[0], lowered)
    state.restarting[0] = 0.0


@kernel
def raise_rate(options: Options, state: State, cost: Number, variance: Number, before: Number, now: Number) -> None:
    """Solve (beta' - beta) (beta'/beta) h = gain z + caution, h the entropy of the next plan at beta."""
    H = highest_entropy(state.offered, int(state.kept[0]))
    if H <= SURE:  # no request had a choice so far
        return
    h, beta = max(now, SURE), state.inverse_rate[0]
    undecided, share = h / H, min(h, before) / H
    square = share * share * variance * (share * share * variance)
    caution = options.caution * square * square * math.sqrt(min((state.rounds[0] + 1.0) / options.settled, 1.0))
    due = max(options.gain * undecided * undecided, options.least) * cost + caution / beta
    state.inverse_rate[0] = 0.5 * beta * (1.0 + math.sqrt(1.0 + 4.0 * due / (h * beta)))


@kernel
def write_weights(options: Options, state: State, scale: Number) -> None:
    """Begin a plan: its length in rows, the baseline m, and the weights Theta + mu + r m."""
    state.pending[0] = 0.0
    longer = 1.0 + math.floor(max(state.rounds[0] - options.row_by_row, 0.0) / options.rows_per_piece)
    state.piece[0] = min(longer, options.longest_piece)
    for b in range(state.theta.shape[0]):
        for i in range(state.theta.shape[1]):
            m = state.estimates[0, b, i] / scale
            state.step[b, i], state.baseline[b, i] = 0.0, m
            state.weights[b, i] = state.theta[b, i] + state.drift[b, i] + state.piece[0] * m


@kernel
def make_plan(options: Options, state: State, work: Work) -> int:
    """Compute gamma and Sigma^-1, given the points and the even moment; return a status."""
    gamma, kept = min(1.0 / (state.rounds[0] + 1.0), 0.5), int(state.kept[0])
    state.exploration_rate[0] = gamma
    write_moment(state.q, state.z, kept, work.column, state.inverse)
    for b in range(state.theta.shape[0]):
        sigma = state.inverse[b]
        for i in range(sigma.shape[0]):
            for j in range(i + 1):
                sigma[i, j] = fused(gamma, work.even[b, i, j], (1.0 - gamma) * sigma[i, j])
            sigma[i, i] = sigma[i, i] + work.regular[b, i]
        if not cholesky(sigma, sigma):
            return NOT_POSITIVE
        invert_lower(sigma)
    return OK


@kernel
def refresh(options: Options, state: State, work: Work) -> int:
    """Charge the step since the last plan, drift toward the regression, and make the next plan; return a status."""
    kept = int(state.kept[0])
    ridge = options.ridge / max(kept, 1)
    write_even_moment(state.z, state.offered, kept, ridge, work.table, work.column, work.even, work.regular)
    if not regress_all(state, work):
        return NOT_POSITIVE
    for b in range(state.theta.shape[0]):
        if not math.isfinite(product(state.theta[b], state.theta[b])):
            return NOT_FINITE
        for i in range(state.theta.shape[1]):
            work.way[b, i] = fused(0.0 - state.piece[0], state.baseline[b, i], state.step[b, i])
    write_table(work.way, state.z, state.offered, kept, 0.0, work.shift)
    cost, jump, widest = step_costs(options, state, work.shift)
    drift(options, state, work, widest)
    before = entropy_of(state.q, kept)
    scale, variance = predict(state, work)
    adjust_rate(options, state, jump)
    write_weights(options, state, scale)
    write_table(state.weights, state.z, state.offered, kept, math.inf, work.table)
    for number in range(2):
        status = write_points(state.inverse_rate[0], work.table, state.offered, kept, work.roots, state.q)
        if status != OK:
            return status
        if number == 0 and kept > 0:
            raise_rate(options, state, cost, variance, before, entropy_of(state.q, kept))
    return make_plan(options, state, work)
