"""Learning a row: the estimate, the memories with their evidence of a change, and the reservoir. Kernel functions."""

import math

from bothworlds.algorithms.lc_tsallis.change_evidence import LIMIT, MOST, WINDOWS
from bothworlds.algorithms.open_rules.open_state import Options, State, Work
from bothworlds.algorithms.open_rules.reservoir import block_index, point_of, row_index, value_of, write_values
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, fused
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.random import RESAMPLING, two_uniforms
from bothworlds.kernels.status import OK
from bothworlds.open_contexts.rule_contract import Rows


@kernel
def clipped(number: Number) -> Number:
    """Return a prediction between -MOST and MOST."""
    return max(min(number, MOST), -MOST)


@kernel
def weigh_evidence(options: Options, state: State, z: Floats, a: int, loss: Number) -> None:
    """Multiply the evidence of the shorter memories by a factor of mean 1 if the regression is right."""
    long = clipped(value_of(state.estimates[0], z, a))
    ratio = (loss - long) / (1.0 - long * long)
    for w in range(state.evidence.shape[0]):
        short = clipped(value_of(state.estimates[w + 1], z, a))
        grown = min(state.evidence[w] * (1.0 + ratio * (short - long)), 10.0 * LIMIT)
        shorter = state.rounds[0] >= max(2.0 * state.window_rounds[w], options.trusted)
        state.evidence[w] = max(grown, 1.0) if shorter else 1.0


@kernel
def add_to_memory(state: State, w: int, keep: Number, z: Floats, a: int, loss: Number) -> None:
    """Discount a memory and add a row."""
    blocks = state.theta.shape[0]
    b, row = block_index(blocks, a), z[row_index(blocks, a)]
    state.scales[w] *= keep
    share = 1.0 / state.scales[w]
    for i in range(row.shape[0]):
        left = share * row[i]
        state.moments[w, b, i] = fused(left, loss, state.moments[w, b, i])
        for j in range(i + 1):
            state.grams[w, b, i, j] = fused(left, row[j], state.grams[w, b, i, j])


@kernel
def copy_memory(state: State, source: int, target: int) -> None:
    """Let a memory take over what another one has."""
    state.scales[target] = state.scales[source]
    for b in range(state.theta.shape[0]):
        for i in range(state.theta.shape[1]):
            state.estimates[target, b, i] = state.estimates[source, b, i]
            state.moments[target, b, i] = state.moments[source, b, i]
            for j in range(i + 1):
                state.grams[target, b, i, j] = state.grams[source, b, i, j]


@kernel
def restart_if_changed(state: State) -> None:
    """Restart where the evidence of a shorter memory has reached the limit; new contexts enter the reservoir."""
    for w in range(state.evidence.shape[0]):
        if state.evidence[w] < LIMIT:
            continue
        copy_memory(state, w + 1, 0)
        state.rounds[0] = state.window_rounds[w]
        for u in range(w):
            copy_memory(state, w + 1, u + 1)
            state.window_rounds[u] = state.window_rounds[w]
        for u in range(state.evidence.shape[0]):
            state.evidence[u] = 1.0
        state.restarts[0] += 1.0
        state.restarting[0] = 1.0
        state.observed[0] = state.kept[0]


@kernel
def place_in_reservoir(options: Options, state: State, key: int) -> int:
    """Return which context a new one replaces, -1 for none: at first each enters, later a share of them."""
    state.observed[0] += 1.0
    kept = int(state.kept[0])
    if kept < int(options.capacity):
        state.kept[0] += 1.0
        return kept
    u, v = two_uniforms(key, int(state.rows[0]), RESAMPLING, 0)
    enters = u < max(options.capacity / state.observed[0], options.entry)
    return int(v * options.capacity) if enters else -1


@kernel
def keep_context(state: State, work: Work, place: int, z: Floats, offered: Floats) -> int:
    """Put the features of a request into the reservoir, with the point of the present plan; return a status."""
    target, count, q = state.z[place], offered.shape[0], state.q[place]
    for a in range(target.shape[0]):
        for i in range(target.shape[1]):
            target[a, i] = z[a, i] if a < z.shape[0] else 0.0
    for a in range(state.offered.shape[1]):
        state.offered[place, a] = offered[a] if a < count else 0.0
    write_values(state.weights, target, state.offered[place], math.inf, q)
    return point_of(state.inverse_rate[0], state.offered[place], work.roots[place], q)


@kernel
def learn_row(options: Options, state: State, work: Work, rows: Rows, n: int, key: int) -> int:
    """Add the estimate m + Sigma^-1 phi (loss - <m, phi>) of a row, and observe its context; return a status."""
    z, a, loss = rows.z[n], rows.arms[n], rows.losses[n]
    baseline, direction, blocks = rows.baselines[rows.plans[n]], rows.directions[n], state.theta.shape[0]
    residual, b = loss - value_of(baseline, z, a), block_index(blocks, a)
    for k in range(blocks):
        for i in range(direction.shape[0]):
            estimate = fused(residual, direction[i], baseline[k, i]) if k == b else baseline[k, i]
            state.theta[k, i] += estimate
            state.step[k, i] += estimate
    weigh_evidence(options, state, z, a, loss)
    add_to_memory(state, 0, (state.rounds[0] + 1.0) / (state.rounds[0] + 2.0), z, a, loss)
    state.rounds[0] += 1.0
    state.pending[0] += 1.0
    state.rows[0] += 1.0
    for w in range(len(WINDOWS)):
        keep = 1.0 - 1.0 / WINDOWS[w]
        add_to_memory(state, w + 1, keep, z, a, loss)
        state.window_rounds[w] = keep * state.window_rounds[w] + 1.0
    restart_if_changed(state)
    place = place_in_reservoir(options, state, key)
    return keep_context(state, work, place, z, rows.offered[n]) if place >= 0 else OK
