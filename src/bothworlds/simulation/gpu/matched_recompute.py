"""GPU versions of functions of the matched tuning, which recompute products instead of reading them from tables.

No cache holds the tables of all threads, and products are cheap. Each function replaces another one with the same
arguments; results are the same up to rounding. research/benchmarks.md has measurements.
"""

import math
from typing import Any

from bothworlds.algorithms.lc_tsallis.leverage_bounds import ExplorationCase, write_centres
from bothworlds.algorithms.lc_tsallis.lookahead import (
    PredictedContext,
    largest_residual,
    load_partial,
    predicted_context,
    store_partial,
    store_point,
    write_predicted_losses,
    write_residuals,
)
from bothworlds.algorithms.lc_tsallis.regression_drift import (
    PlayDrift,
    PlayStats,
    all_paused,
    play_drift,
    play_stats,
    start_play_drift,
    write_play_stats,
)
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import fused, smaller
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.linalg import product, products_with
from bothworlds.kernels.status import OK
from bothworlds.kernels.tsallis_half import LAST_STEP, Solved, last_step, point_at_rate, solve_roots


@on_gpu(all_paused)
def never_all_paused(paused: Any) -> bool:
    """Let all plans drift, some of them by zero: of the threads of a warp, nearly always one drifts."""
    return False


@on_gpu(write_play_stats)
def skip_play_stats(known: Known, state: Any, work: Any, drifting: bool) -> None:
    """Write nothing: `recompute_play_stats` computes the products."""


@on_gpu(play_stats)
def recompute_play_stats(known: Known, state: Any, work: Any, x: int, a: int, drifting: bool) -> PlayStats:
    """Compute the products of a play."""
    prediction, shift = products_with(known.z[x, a], work.half, work.vector)
    gap, drift = 0.0 * prediction, 0.0 * prediction
    if drifting:
        gap, drift = products_with(known.z[x, a], work.total, state.drift)
    return PlayStats(prediction, shift, gap, drift)


@kernel
def drift_by_vectors(known: Known, work: Any, x: int, a: int) -> PlayDrift:
    """Compute the drift of a play from the offset vector of mu."""
    shift, offset = products_with(known.z[x, a], work.vector, work.offset)
    return PlayDrift(shift, offset)


@on_gpu(start_play_drift)
def start_play_drift_by_vectors(known: Known, work: Any, x: int, a: int, share: float) -> PlayDrift:
    """Compute the drift of a play without writing it."""
    return drift_by_vectors(known, work, x, a)


@on_gpu(play_drift)
def recompute_play_drift(known: Known, work: Any, x: int, a: int) -> PlayDrift:
    """Recompute the drift of a play."""
    return drift_by_vectors(known, work, x, a)


@on_gpu(write_predicted_losses)
def skip_predicted_losses(known: Known, state: Any, work: Any, scale: float) -> None:
    """Write nothing: `recompute_predicted_context` computes the losses."""


@on_gpu(predicted_context)
def recompute_predicted_context(known: Known, state: Any, work: Any, x: int, scale: float) -> PredictedContext:
    """Compute the predictions of a context; its point overwrites the losses."""
    least = math.inf
    for a in range(state.q.shape[1]):
        prediction = product(work.half, known.z[x, a])
        work.losses[a] = fused(prediction, scale, product(work.total, known.z[x, a]) + known.blocked[x, a])
        work.residuals[a] = largest_residual(prediction, scale)
        least = smaller(least, work.losses[a])
    for a in range(state.q.shape[1]):
        work.losses[a] = work.losses[a] - least
    return PredictedContext(work.losses, work.residuals, work.losses, work.near)


@on_gpu(store_partial)
def store_solution(work: Any, x: int, found: Solved) -> None:
    """Store the solution y and the sum of r^3, which determines the derivative of y in the rate."""
    work.partial[x, 0], work.partial[x, 1] = found.y + found.step, found.sums[1]


@on_gpu(load_partial)
def load_solution(work: Any, x: int) -> Solved:
    """Return the stored solution, with only y and the sum of r^3 set."""
    return Solved(OK, work.partial[x, 0], 0.0, (1.0, work.partial[x, 1], 0.0, 0.0), 1)


@on_gpu(point_at_rate)
def recompute_point(
    losses: Floats, eta: float, k: float, partial: Solved, q: Floats, roots: Floats
) -> tuple[int, float, float]:
    """Find the point at the rate eta, starting from a y with an error of order (1 - k)^2."""
    start = k * (partial.y + (1.0 - k) / partial.sums[1])
    return last_step(solve_roots(losses, eta, start, math.sqrt(losses.shape[0]), LAST_STEP, roots), q, roots)


@on_gpu(store_point)
def store_point_and_roots(state: Any, here: PredictedContext, x: int) -> None:
    """Store the point of a context and its roots."""
    for a in range(state.q.shape[1]):
        state.q[x, a] = here.q[a]
        state.roots[x, a] = here.r[a]


@on_gpu(write_residuals)
def recompute_residuals(known: Known, state: Any, work: Any, scale: float) -> None:
    """Write the largest residual of every play."""
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            work.rho[x, a] = largest_residual(product(work.half, known.z[x, a]), scale)


@on_gpu(write_centres)
def recompute_centres(known: Known, case: ExplorationCase) -> None:
    """Write the mean feature of every context, recomputing its weights for every feature."""
    for x in range(case.q.shape[0]):
        total = 0.0
        for a in range(case.q.shape[1]):
            total = total + case.q[x, a] * case.r[x, a]
        share = 1.0 / total
        for i in range(case.centre.shape[1]):
            mean = 0.0
            for a in range(case.q.shape[1]):
                mean = fused(case.q[x, a] * case.r[x, a], known.z[x, a, i], mean)
            case.centre[x, i] = mean * share
