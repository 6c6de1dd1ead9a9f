"""Evidence that the world has changed, and restarts of the regression. Kernel functions.

The long regression learns from all rounds since the last restart, n of them. Two shorter ones remember about the last
300 and 100 rounds. Before a round with the loss l is learned, the long one predicts m and a shorter one m', clipped to
[-MOST, MOST]. If E[l] = m, the factor

    1 + (l - m) (m' - m)/(1 - m^2)

has mean 1 for every distribution of losses in [-1, 1]; for losses of -1 and 1 it is the likelihood ratio. The evidence
of a shorter memory is the product of these factors, raised to 1 whenever it is less. While the long regression is right
the mean number of rounds until it reaches a limit is at least that limit. At LIMIT the longer memories take over what
the shorter one has learned, and beta falls (`lowered_rate`). A memory collects evidence while n is at least twice the
number of rounds that it remembers.
"""

from typing import Any

from bothworlds.algorithms.lc_tsallis.regression_drift import late_cost
from bothworlds.kernels.arithmetic import Number, both, every, feature, fused, larger, root, smaller, where
from bothworlds.kernels.contract import Known, Play
from bothworlds.kernels.jit.compile import kernel

WINDOWS = (300.0, 100.0)  # the longest first
LIMIT = 2e7  # at most one false restart in 10^7 rounds, for two memories whose predictions are right
MOST = 0.95
RESTART_RATE = 0.5  # beta after a restart, in units of that of plans that stayed undecided for n rounds


@kernel
def prediction_of(known: Known, play: Play, m: Any, scale: Number) -> Number:
    """Return the prediction <m, z>/scale for a play, clipped."""
    total = 0.0 * play.loss
    for i in range(m.shape[0]):
        total = fused(m[i], feature(known.z, play.x, play.a, i), total)
    return larger(smaller(total / scale, MOST), -MOST)


@kernel
def weigh_evidence(known: Known, state: Any, play: Play) -> None:
    """Multiply the evidence of every shorter memory by the factor of a round that is not learned yet."""
    long = prediction_of(known, play, state.baseline, state.scale[0])
    ratio = (play.loss - long) / (1.0 - long * long)
    for w in range(state.evidence.shape[0]):
        short = prediction_of(known, play, state.recent[w], 1.0 + 0.0 * long)
        grown = smaller(state.evidence[w] * (1.0 + ratio * (short - long)), 10.0 * LIMIT)
        shorter = state.remembered[0] >= 2.0 * state.recent_rounds[w]
        state.evidence[w] = where(shorter, larger(grown, 1.0), 1.0)


@kernel
def learn_in_window(known: Known, state: Any, play: Play, w: int) -> None:
    """Add a play to a shorter memory, whose ridge estimate follows by one sweep of Gauss and Seidel."""
    keep = 1.0 - 1.0 / WINDOWS[w]
    gram, moment, m = state.recent_gram[w], state.recent_moment[w], state.recent[w]
    state.recent_rounds[w] = keep * state.recent_rounds[w] + 1.0
    for i in range(m.shape[0]):
        z = feature(known.z, play.x, play.a, i)
        moment[i] = keep * moment[i] + play.loss * z
        for j in range(i + 1):
            entry = keep * gram[i, j] + z * feature(known.z, play.x, play.a, j)
            gram[i, j], gram[j, i] = entry, entry
        gram[i, i] += 1.0 - keep
    for i in range(m.shape[0]):
        rest = 1.0 * moment[i]
        for j in range(m.shape[0]):
            rest = fused(0.0 - gram[i, j], m[j], rest)
        m[i] = m[i] + rest / gram[i, i]


@kernel
def take_over(state: Any, w: int, changed: Any) -> None:
    """Let the longer memories take over what memory w has learned, where ``changed``."""
    d = state.theta.shape[0]
    state.remembered[0] = where(changed, state.recent_rounds[w], state.remembered[0])
    for i in range(d):
        state.response[i] = where(changed, state.recent_moment[w, i], state.response[i])
        for j in range(d):
            state.ridge[i, j] = where(changed, state.recent_gram[w, i, j], state.ridge[i, j])
    for u in range(w):
        state.recent_rounds[u] = where(changed, state.recent_rounds[w], state.recent_rounds[u])
        for i in range(d):
            state.recent[u, i] = where(changed, state.recent[w, i], state.recent[u, i])
            state.recent_moment[u, i] = where(changed, state.recent_moment[w, i], state.recent_moment[u, i])
            for j in range(d):
                state.recent_gram[u, i, j] = where(changed, state.recent_gram[w, i, j], state.recent_gram[u, i, j])


@kernel
def restart_if_changed(state: Any) -> None:
    """Restart where the evidence of a shorter memory has reached the limit, and count restarts."""
    for w in range(state.evidence.shape[0]):
        changed = state.evidence[w] >= LIMIT
        if every(state.evidence[w] < LIMIT):
            continue
        take_over(state, w, changed)
        for u in range(state.evidence.shape[0]):
            state.evidence[u] = where(changed, 1.0, state.evidence[u])
        state.restarts[0] = where(changed, state.restarts[0] + 1.0, state.restarts[0])
        state.restarting[0] = where(changed, 1.0, state.restarting[0])


@kernel
def lowered_rate(options: Any, state: Any) -> Number:
    """Return beta, lowered after a restart to at most RESTART_RATE beta_1 sqrt(1 + n), and note that it was."""
    beta = state.inverse_rate[0]
    lowered = smaller(beta, RESTART_RATE * options.first * root(1.0 + state.remembered[0]))
    lowered = where(both(state.restarting[0] > 0.0, late_cost(state) <= 0.0), lowered, beta)
    state.restarting[0] = 0.0 * lowered
    return lowered
