"""GPU versions of functions with many sums, reordered so that the sums stay in registers.

A function marked with `on_gpu` replaces another one with the same arguments in kernels compiled for a GPU; interpreted
code and code for CPUs are not affected. Every single sum has the same order as on a CPU.
"""

from bothworlds.algorithms.lc_tsallis.certified_exploration import Bounds, Trial, emphasis, largest, largest_in_turn
from bothworlds.algorithms.lc_tsallis.exploration_rate import leverages
from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import larger, root
from bothworlds.kernels.contract import Known
from bothworlds.kernels.exact_ftrl import add_context, add_pairs_of_arms, clear, collect, covariance
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.linalg import leverage, lower_bounds, lower_bounds_one_by_one, product
from bothworlds.simulation.gpu.tuned.register_tiles import (
    LENGTH,
    SIDE,
    Corner,
    Strip,
    Tile,
    add_outer,
    add_square,
    add_squares,
    load_corner,
    load_features,
    load_row,
    load_side_from,
    load_tile,
    write_row,
    write_tile,
    zero_row,
    zero_strip,
)

CONTEXTS = 3  # contexts per pass over all tiles: faster than 2, 4, 5 and 10 on an H200
TILED_FROM = 13  # dimension; below, the sums of 256 threads fit into the first-level cache


@on_gpu(add_context)
def add_context_later(known: Known, x: int, q: Floats, sums: Floats) -> None:
    """Add two arms at a time if the sums are few; leave larger dimensions to `covariance_by_tiles`."""
    if sums.shape[0] < TILED_FROM:
        add_pairs_of_arms(known, x, q, 0, sums)


@kernel
def add_to_tile(known: Known, q: Floats, x: int, a: int, i: int, j: int, tile: Tile) -> Tile:
    """Return the tile of the sums that begins at (i, j) plus that of g(x) q(a|x) phi phi^T."""
    z = known.z[x, a]
    return add_outer(tile, known.g[x] * q[x, a], load_features(z, i), load_features(z, j))


@kernel
def add_to_corner(known: Known, q: Floats, x: int, a: int, i: int, corner: Corner) -> Corner:
    """Return the lower triangle of the tile that begins at (i, i) plus that of g(x) q(a|x) phi phi^T."""
    return add_square(corner, known.g[x] * q[x, a], load_features(known.z[x, a], i))


@kernel
def add_corner(known: Known, q: Floats, first: int, i: int, sigma: Floats) -> None:
    """Add some contexts to the lower triangle of a tile on the diagonal."""
    K, start = q.shape[1], min(i, sigma.shape[0] - SIDE)
    corner = load_corner(sigma, start, start)
    for x in range(first, min(first + CONTEXTS, q.shape[0])):
        for a in range(0, K - 4, 5):
            corner = add_to_corner(known, q, x, a, start, corner)
            corner = add_to_corner(known, q, x, a + 1, start, corner)
            corner = add_to_corner(known, q, x, a + 2, start, corner)
            corner = add_to_corner(known, q, x, a + 3, start, corner)
            corner = add_to_corner(known, q, x, a + 4, start, corner)
        for a in range(K - K % 5, K):
            corner = add_to_corner(known, q, x, a, start, corner)
    write_tile(corner, sigma, (start, start), (i, i))


@kernel
def add_tile(known: Known, q: Floats, first: int, i: int, j: int, sigma: Floats) -> None:
    """Add some contexts to the tile of Sigma(q_t) = sum_x g(x) sum_a q(a|x) phi phi^T that begins at (i, j).

    The loop over arms is unrolled by five, so that loads overlap with additions.
    """
    K, start_i, start_j = q.shape[1], min(i, sigma.shape[0] - SIDE), j
    tile = load_tile(sigma, start_i, start_j)
    for x in range(first, min(first + CONTEXTS, q.shape[0])):
        for a in range(0, K - 4, 5):
            tile = add_to_tile(known, q, x, a, start_i, start_j, tile)
            tile = add_to_tile(known, q, x, a + 1, start_i, start_j, tile)
            tile = add_to_tile(known, q, x, a + 2, start_i, start_j, tile)
            tile = add_to_tile(known, q, x, a + 3, start_i, start_j, tile)
            tile = add_to_tile(known, q, x, a + 4, start_i, start_j, tile)
        for a in range(K - K % 5, K):
            tile = add_to_tile(known, q, x, a, start_i, start_j, tile)
    write_tile(tile, sigma, (start_i, start_j), (i, j))


@on_gpu(covariance)
def covariance_by_tiles(known: Known, q: Floats, sums: Floats, sigma: Floats) -> None:
    """Write Sigma(q_t) into the lower triangle of sigma.

    All tiles are updated for some contexts before the next ones, so that features are still cached for the next tile.
    If d is not a multiple of SIDE, the last tiles overlap those before them and do not write the overlap.
    """
    d = sigma.shape[0]
    if d < TILED_FROM:
        collect(sums, sigma)
    else:
        clear(sigma)
        for first in range(0, q.shape[0], CONTEXTS):
            for i in range(0, d, SIDE):
                for j in range(0, i, SIDE):
                    add_tile(known, q, first, i, j, sigma)
                add_corner(known, q, first, i, sigma)


@kernel
def product_strip(inverse: Floats, z: Floats, i: int, a: int) -> Strip:
    """Return G z for SIDE rows of the triangular G from the i-th, and LENGTH arms from the a-th.

    At the end of the matrix the strip begins before row i; rows before i are zeros.
    """
    start = min(i, inverse.shape[0] - SIDE)
    strip = zero_strip()
    for k in range(start + SIDE):
        strip = add_outer(strip, 1.0, load_side_from(inverse[:, k], start, max(i, k)), load_row(z[:, k], a))
    return strip


@on_gpu(leverages)
def leverages_by_strips(inverse: Floats, z: Floats, out: Floats) -> None:
    """Write |G z|^2 of every arm of a context, reading G once for LENGTH arms; small matrices in turn."""
    d, K = inverse.shape[0], z.shape[0]
    if d < TILED_FROM or K < LENGTH:
        for a in range(K):
            out[a] = leverage(inverse, z[a])
    else:
        for arm in range(0, K, LENGTH):
            a = min(arm, K - LENGTH)
            totals = zero_row()
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
    """Write <theta, z> - width |G z| of every arm of a context; larger matrices compute all |G z|^2 first."""
    if inverse.shape[0] <= SIDE:
        lower_bounds_one_by_one(theta, inverse, width, z, blocked, out)
    else:
        leverages_by_strips(inverse, z, out)
        for a in range(z.shape[0]):
            out[a] = product(theta, z[a]) - width * root(out[a]) + blocked[a]
