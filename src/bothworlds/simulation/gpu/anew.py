"""What a GPU computes anew instead of keeping it: no cache holds tables of all threads, and products cost little.

Each function takes the place of another one with the same arguments, and its numbers are the same but for rounding.
docs/benchmarks.md has what that gains.
"""

import math
from typing import Any

from bothworlds.algorithms.lc_tsallis.foresight import (
    Foreseen,
    begun_in,
    find_residuals,
    foresee_all,
    foreseen_in,
    keep_begun,
    keep_point,
    largest_residual,
)
from bothworlds.algorithms.lc_tsallis.leaning import (
    Going,
    Told,
    all_rest,
    going,
    set_out,
    tell_all,
    told,
)
from bothworlds.kernels.arithmetic import fused, smaller
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.matrix import product, products_with
from bothworlds.kernels.reach import Case, find_centres
from bothworlds.kernels.root_point import LAST, Solved, last_step, point_at_rate, solve_roots
from bothworlds.kernels.status import OK


@on_gpu(all_rest)
def none_rests(rests: Any) -> bool:
    """Let all go the way, some of them nowhere: of the threads that go together one nearly always leans."""
    return False


@on_gpu(tell_all)
def tell_later(known: Known, state: Any, work: Any, leans: bool) -> None:
    """Leave it to `told_anew`."""


@on_gpu(told)
def told_anew(known: Known, state: Any, work: Any, x: int, a: int, leans: bool) -> Told:
    """Compute what there is to tell of a play."""
    guess, moved = products_with(known.z[x, a], work.half, work.vector)
    behind, leant = 0.0 * guess, 0.0 * guess
    if leans:
        behind, leant = products_with(known.z[x, a], work.total, state.lean)
    return Told(guess, moved, behind, leant)


@kernel
def going_by_vectors(known: Known, work: Any, x: int, a: int) -> Going:
    """Compute what a way makes of a play, from how far mu itself is off its goal."""
    moved, off = products_with(known.z[x, a], work.vector, work.off)
    return Going(moved, off)


@on_gpu(set_out)
def set_out_by_vectors(known: Known, work: Any, x: int, a: int, share: float) -> Going:
    """Keep nothing."""
    return going_by_vectors(known, work, x, a)


@on_gpu(going)
def going_anew(known: Known, work: Any, x: int, a: int) -> Going:
    """Compute it again."""
    return going_by_vectors(known, work, x, a)


@on_gpu(foresee_all)
def foresee_later(known: Known, state: Any, work: Any, scale: float) -> None:
    """Leave it to `foreseen_anew`."""


@on_gpu(foreseen_in)
def foreseen_anew(known: Known, state: Any, work: Any, x: int, scale: float) -> Foreseen:
    """Compute what is foreseen in a context; its point takes the place of the losses."""
    least = math.inf
    for a in range(state.q.shape[1]):
        guess = product(work.half, known.z[x, a])
        work.losses[a] = fused(guess, scale, product(work.total, known.z[x, a]) + known.blocked[x, a])
        work.residuals[a] = largest_residual(guess, scale)
        least = smaller(least, work.losses[a])
    for a in range(state.q.shape[1]):
        work.losses[a] = work.losses[a] - least
    return Foreseen(work.losses, work.residuals, work.losses, work.near)


@on_gpu(keep_begun)
def keep_solution(work: Any, x: int, found: Solved) -> None:
    """Keep the y that was found, and the sum of r^3, which says how it goes on with the rate."""
    work.begun[x, 0], work.begun[x, 1] = found.y + found.step, found.sums[1]


@on_gpu(begun_in)
def kept_solution(work: Any, x: int) -> Solved:
    """Return both; the rest is not known any more."""
    return Solved(OK, work.begun[x, 0], 0.0, (1.0, work.begun[x, 1], 0.0, 0.0), 1)


@on_gpu(point_at_rate)
def point_anew(
    losses: Floats, eta: float, k: float, begun: Solved, q: Floats, roots: Floats
) -> tuple[int, float, float]:
    """Find the point at the rate eta, from a y with an error of the order of (1 - k)^2."""
    start = k * (begun.y + (1.0 - k) / begun.sums[1])
    return last_step(solve_roots(losses, eta, start, math.sqrt(losses.shape[0]), LAST, roots), q, roots)


@on_gpu(keep_point)
def keep_point_and_roots(state: Any, here: Foreseen, x: int) -> None:
    """Keep the point of a context and its roots."""
    for a in range(state.q.shape[1]):
        state.q[x, a] = here.q[a]
        state.roots[x, a] = here.r[a]


@on_gpu(find_residuals)
def find_residuals_anew(known: Known, state: Any, work: Any, scale: float) -> None:
    """Write the largest residual of every play."""
    for x in range(state.q.shape[0]):
        for a in range(state.q.shape[1]):
            work.rho[x, a] = largest_residual(product(work.half, known.z[x, a]), scale)


@on_gpu(find_centres)
def find_centres_anew(known: Known, case: Case) -> None:
    """Write the mean feature of every context, and compute its weights each time."""
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
