"""Kernel functions of LinUCB, D-LinUCB and SquareCB on open problems: a ridge regression with fading weights.

V = ridge I + sum of weight phi phi^T by blocks, V~ the same with squared weights. Both are stored without their ridge,
divided by ``scale``, so that fading costs one product.
"""

import math
from typing import NamedTuple

from bothworlds.algorithms.open_rules.reservoir import block_index, row_index, value_of
from bothworlds.algorithms.regression.discounted import multiply, quadratic_form
from bothworlds.algorithms.regression.ridge import add_smallest
from bothworlds.algorithms.regression.squarecb import inverse_gap_weights
from bothworlds.arrays import Floats, Ints
from bothworlds.kernels.arithmetic import Number, fused
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import apply_inverse, cholesky, erase, invert_lower, write_inverse
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.kernels.status import NOT_POSITIVE, OK
from bothworlds.open_contexts.rule_contract import Choices, PlanArrays, Rows

SMALLEST_SCALE = 1e-12  # before the sums are stored anew


class Options(NamedTuple):
    """Hyper-parameters."""

    ridge: float
    discount: float  # 1 without fading
    row_by_row: float  # rows for which every one gets a plan; later one row more between two plans
    rows_per_piece: float  # with each of these many rows
    longest_piece: float


class State(NamedTuple):
    """Learner state, then the plan: the estimate, and its covariance V^-1 V~ V^-1."""

    rows: Floats
    pending: Floats  # rows since the plan
    piece: Floats  # rows between two plans
    scales: Floats  # (2,): of V and V~
    moment: Floats  # (blocks, p)
    gram: Floats  # (blocks, p, p)
    squared: Floats  # (blocks, p, p)
    changed: Floats  # (blocks,): 1 where the plan is out of date
    weights: Floats
    covariance: Floats


class Work(NamedTuple):
    """Scratch space."""

    half: Floats  # (p,)
    factor: Floats  # (p, p)
    inverted: Floats
    full: Floats
    between: Floats


@kernel
def learn_row(options: Options, state: State, rows: Rows, n: int) -> None:
    """Fade all sums and add a row."""
    a, loss, z = rows.arms[n], rows.losses[n], rows.z[n]
    b, row = block_index(state.moment.shape[0], a), z[row_index(state.moment.shape[0], a)]
    state.scales[0] *= options.discount
    state.scales[1] *= options.discount * options.discount
    first, second = 1.0 / state.scales[0], 1.0 / state.scales[1]
    for i in range(row.shape[0]):
        state.moment[b, i] = fused(first * row[i], loss, state.moment[b, i])
        for j in range(i + 1):
            state.gram[b, i, j] = fused(first * row[i], row[j], state.gram[b, i, j])
            state.squared[b, i, j] = fused(second * row[i], row[j], state.squared[b, i, j])
    state.rows[0] += 1.0
    state.pending[0] += 1.0
    state.changed[b] = 1.0
    if options.discount < 1.0:
        for k in range(state.changed.shape[0]):
            state.changed[k] = 1.0


@kernel
def store_anew(scales: Floats, index: int, sums: Floats) -> None:
    """Multiply the lower triangles of sums by their scale, which becomes 1."""
    for b in range(sums.shape[0]):
        for i in range(sums.shape[1]):
            for j in range(i + 1):
                sums[b, i, j] *= scales[index]


@kernel
def rescale(state: State) -> None:
    """Store sums anew whose scale has become small."""
    if state.scales[1] < SMALLEST_SCALE:
        store_anew(state.scales, 1, state.squared)
        state.scales[1] = 1.0
    if state.scales[0] < SMALLEST_SCALE:
        store_anew(state.scales, 0, state.gram)
        for b in range(state.moment.shape[0]):
            for i in range(state.moment.shape[1]):
                state.moment[b, i] *= state.scales[0]
        state.scales[0] = 1.0


@kernel
def estimate_block(options: Options, state: State, work: Work, b: int) -> int:
    """Write estimate and covariance of a block; return a status."""
    p = state.moment.shape[1]
    for i in range(p):
        for j in range(i + 1):
            work.factor[i, j] = state.scales[0] * state.gram[b, i, j]
            work.full[i, j] = state.scales[1] * state.squared[b, i, j]
        work.factor[i, i] = work.factor[i, i] + options.ridge
        work.full[i, i] = work.full[i, i] + options.ridge
        for j in range(i):
            work.full[j, i] = work.full[i, j]
    if not cholesky(work.factor, work.factor):
        return NOT_POSITIVE
    invert_lower(work.factor)
    apply_inverse(work.factor, state.moment[b], work.half, state.weights[b])
    for i in range(p):
        state.weights[b, i] = state.scales[0] * state.weights[b, i]
    if options.discount < 1.0:
        write_inverse(work.factor, work.inverted)
        multiply(work.full, work.inverted, work.between)
        multiply(work.inverted, work.between, state.covariance[b])
    else:
        write_inverse(work.factor, state.covariance[b])
    return OK


@kernel
def refresh(options: Options, state: State, work: Work) -> int:
    """Make the next plan: estimate the blocks that have changed; return a status."""
    rescale(state)
    for b in range(state.changed.shape[0]):
        if state.changed[b] > 0.0:
            status = estimate_block(options, state, work, b)
            if status != OK:
                return status
            state.changed[b] = 0.0
    longer = 1.0 + math.floor(max(state.rows[0] - options.row_by_row, 0.0) / options.rows_per_piece)
    state.pending[0], state.piece[0] = 0.0, min(longer, options.longest_piece)
    return OK


@kernel
def learn_rows(options: Options, state: State, work: Work, rows: Rows, first: int, last: int, key: int) -> int:
    """Learn rows first to last - 1 in order, with a new plan whenever one is due; return a status."""
    for n in range(first, last + 1):
        if state.pending[0] >= state.piece[0]:
            status = refresh(options, state, work)
            if status != OK:
                return status
        if n < last:
            learn_row(options, state, rows, n)
    return OK


@kernel
def lower_bound(plan: PlanArrays, z: Floats, a: int, width: Number) -> Number:
    """Return <theta_hat, phi> - width |phi| in the norm of the covariance."""
    blocks = plan.weights.shape[0]
    row = z[row_index(blocks, a)]
    square = quadratic_form(plan.matrix[block_index(blocks, a)], row)
    return value_of(plan.weights, z, a) - width * math.sqrt(max(square, 0.0))


@kernel
def decide_by_bounds(
    plan: PlanArrays, z: Floats, offered: Floats, keys: Ints, times: Ints, work: Floats, half: Floats, out: Choices
) -> int:
    """Choose the smallest lower bound for many requests, ties evenly; return a status."""
    for n in range(z.shape[0]):
        erase(out.probabilities[n])
        for a in range(offered.shape[1]):
            work[a] = lower_bound(plan, z[n], a, plan.numbers[0]) if offered[n, a] > 0.0 else math.inf
        add_smallest(work, out.probabilities[n])
        u, _ = two_uniforms(keys[n], times[n], ARM, 0)
        out.arms[n] = draw(out.probabilities[n], u)
    return OK


@kernel
def decide_by_gaps(
    plan: PlanArrays, z: Floats, offered: Floats, keys: Ints, times: Ints, work: Floats, half: Floats, out: Choices
) -> int:
    """Draw by inverse gap weights for many requests, gamma = scale sqrt(candidates rows/d); return a status."""
    for n in range(z.shape[0]):
        count = 0.0
        for a in range(offered.shape[1]):
            work[a] = value_of(plan.weights, z[n], a) if offered[n, a] > 0.0 else math.inf
            count += offered[n, a]
        gamma = plan.numbers[0] * math.sqrt(count * (1.0 + plan.numbers[1]) / plan.numbers[2])
        inverse_gap_weights(work, gamma, out.probabilities[n])
        u, _ = two_uniforms(keys[n], times[n], ARM, 0)
        out.arms[n] = draw(out.probabilities[n], u)
    return OK
