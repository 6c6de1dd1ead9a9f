"""What a GPU computes in another order than a processor, because its sums must stay in registers.

Each function marked here takes the place of another one with the same arguments wherever text is compiled for a GPU
(see `on_gpu`). Interpreted and on a processor nothing changes. Every sum is added up in the order it has there.
"""

from bothworlds.kernels.arithmetic import larger, root
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.exploration import Bounds, Trial, emphasis, largest, largest_in_turn
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.matrix import leverage, lower_bounds, lower_bounds_in_turn, product
from bothworlds.kernels.plan import add_arms, add_context, collect, covariance
from bothworlds.simulation.gpu.tiles import (
    LENGTH,
    SIDE,
    Strip,
    Tile,
    add_outer,
    add_squares,
    few_of,
    no_row,
    no_strip,
    no_tile,
    row_of,
    write_row,
    write_tile,
)

TILED_FROM = 13  # dimension; below, 256 threads have their sums in the fast cache, and arms pass by only once


@on_gpu(add_context)
def add_context_later(known: Known, x: int, q: Floats, sums: Floats) -> None:
    """Leave many sums to `covariance_by_tiles`."""
    if sums.shape[0] < TILED_FROM:
        add_arms(known, x, q, sums)


@kernel
def add_to_tile(known: Known, q: Floats, x: int, a: int, i: int, j: int, tile: Tile) -> Tile:
    """Return the tile of the sums that begins at (i, j) plus that of g(x) q(a|x) phi phi^T."""
    z = known.z[x, a]
    return add_outer(tile, known.g[x] * q[x, a], few_of(z, i, i), few_of(z, j, j))


@kernel
def sum_tile(known: Known, q: Floats, i: int, j: int, sigma: Floats) -> None:
    """Write the tile of Sigma(q_t) = sum_x g(x) sum_a q(a|x) phi phi^T that begins at (i, j).

    Five arms are written out: while some are added, the probabilities and features of the next are on their way.
    """
    K = q.shape[1]
    tile = no_tile()
    for x in range(q.shape[0]):
        for a in range(0, K - 4, 5):
            tile = add_to_tile(known, q, x, a, i, j, tile)
            tile = add_to_tile(known, q, x, a + 1, i, j, tile)
            tile = add_to_tile(known, q, x, a + 2, i, j, tile)
            tile = add_to_tile(known, q, x, a + 3, i, j, tile)
            tile = add_to_tile(known, q, x, a + 4, i, j, tile)
        for a in range(K - K % 5, K):
            tile = add_to_tile(known, q, x, a, i, j, tile)
    write_tile(tile, sigma, i, j)


@on_gpu(covariance)
def covariance_by_tiles(known: Known, q: Floats, sums: Floats, sigma: Floats) -> None:
    """Write Sigma(q_t) into the lower triangle of sigma, and something above it.

    Where d is no multiple of a tile's side the last tiles overlap those before them and write the same again.
    """
    d = sigma.shape[0]
    if d < TILED_FROM:
        collect(sums, sigma)
    else:
        for i in range(0, d, SIDE):
            for j in range(0, i + 1, SIDE):
                sum_tile(known, q, min(i, d - SIDE), min(j, d - SIDE), sigma)


@kernel
def product_strip(inverse: Floats, z: Floats, i: int, a: int) -> Strip:
    """Return G z for rows of G from the i-th on and arms from the a-th on; G has zeros above its diagonal.

    The last rows may begin before the i-th: rows that were there already come out as zeros.
    """
    start = min(i, inverse.shape[0] - SIDE)
    strip = no_strip()
    for k in range(start + SIDE):
        strip = add_outer(strip, 1.0, few_of(inverse[:, k], start, max(i, k)), row_of(z[:, k], a))
    return strip


@kernel
def leverages_by_strips(inverse: Floats, z: Floats, out: Floats) -> None:
    """Write |G z|^2 of every arm of a context, G read once for many arms instead of once for each."""
    d, K = inverse.shape[0], z.shape[0]
    if d < TILED_FROM or K < LENGTH:
        for a in range(K):
            out[a] = leverage(inverse, z[a])
    else:
        for arm in range(0, K, LENGTH):
            a = min(arm, K - LENGTH)
            totals = no_row()
            for i in range(0, d, SIDE):
                totals = add_squares(totals, product_strip(inverse, z, i, a))
            write_row(totals, out, a)


@on_gpu(largest)
def largest_by_strips(trial: Trial, bounds: Bounds) -> tuple[float, float]:
    """Return max[lev] and max[q^(2 (1-alpha)) lev]."""
    if trial.factor.shape[0] < TILED_FROM:
        return largest_in_turn(trial, bounds)
    highest = 0.0
    highest_weighted = 0.0
    for x in range(trial.q.shape[0]):
        leverages_by_strips(trial.factor, trial.z[x], trial.lev[x])
        for a in range(trial.q.shape[1]):
            highest = larger(highest, trial.lev[x, a])
            highest_weighted = larger(highest_weighted, emphasis(trial.q[x, a], trial.alpha) * trial.lev[x, a])
    return highest, highest_weighted


@on_gpu(lower_bounds)
def lower_bounds_by_strips(
    theta: Floats, inverse: Floats, width: float, z: Floats, blocked: Floats, out: Floats
) -> None:  # fmt: skip
    """Write <theta, z> - width |G z| of every arm of a context: first |G z|^2, unless there are registers for all."""
    if inverse.shape[0] <= SIDE:
        lower_bounds_in_turn(theta, inverse, width, z, blocked, out)
    else:
        leverages_by_strips(inverse, z, out)
        for a in range(z.shape[0]):
            out[a] = product(theta, z[a]) - width * root(out[a]) + blocked[a]
