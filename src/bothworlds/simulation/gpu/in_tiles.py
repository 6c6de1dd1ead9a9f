"""What a GPU computes in another order than a processor, because its sums must stay in registers.

Each function marked here takes the place of another one with the same arguments wherever text is compiled for a GPU
(see `on_gpu`). Interpreted and on a processor nothing changes. Every sum is added up in the order it has there.
"""

from collections.abc import Callable

from bothworlds.kernels.arithmetic import larger, root, value
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.exploration import Bounds, Trial, emphasis, largest, largest_in_turn
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.matrix import leverage, lower_bounds, lower_bounds_in_turn, product, squared_length
from bothworlds.kernels.plan import add_by_twos, add_context, clear, collect, covariance
from bothworlds.kernels.price import squared_lengths
from bothworlds.kernels.reach import Case, Extent, distance, look_at, look_in_turn, with_play
from bothworlds.simulation.gpu.tiles import (
    LENGTH,
    SIDE,
    Corner,
    Strip,
    Tile,
    add_outer,
    add_products,
    add_square,
    add_squares,
    all_of,
    corner_of,
    features_of,
    few_of,
    no_row,
    no_strip,
    row_of,
    tile_of,
    write_row,
    write_tile,
)

CONTEXTS = 3  # that all tiles take before the next: measured on an H200 against 2, 4, 5 and 10
TILED_FROM = 13  # dimension; below, 256 threads have their sums in the fast cache, and arms pass by only once


@on_gpu(add_context)
def add_context_later(known: Known, x: int, q: Floats, sums: Floats) -> None:
    """Leave many sums to `covariance_by_tiles`; few are in registers, and two arms at a time are enough."""
    if sums.shape[0] < TILED_FROM:
        add_by_twos(known, x, q, 0, sums)


@kernel
def add_to_tile(known: Known, q: Floats, x: int, a: int, i: int, j: int, tile: Tile) -> Tile:
    """Return the tile of the sums that begins at (i, j) plus that of g(x) q(a|x) phi phi^T."""
    z = known.z[x, a]
    return add_outer(tile, known.g[x] * q[x, a], features_of(z, i), features_of(z, j))


@kernel
def add_to_corner(known: Known, q: Floats, x: int, a: int, i: int, corner: Corner) -> Corner:
    """Return the lower triangle of the tile that begins at (i, i) plus that of g(x) q(a|x) phi phi^T."""
    return add_square(corner, known.g[x] * q[x, a], features_of(known.z[x, a], i))


@kernel
def add_corner(known: Known, q: Floats, first: int, i: int, sigma: Floats) -> None:
    """Do for a tile on the diagonal what `add_tile` does for others: half of it is enough."""
    K, start = q.shape[1], min(i, sigma.shape[0] - SIDE)
    corner = corner_of(sigma, start, start)
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

    Five arms are written out: while some are added, the probabilities and features of the next are on their way.
    """
    K, start_i, start_j = q.shape[1], min(i, sigma.shape[0] - SIDE), j
    tile = tile_of(sigma, start_i, start_j)
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

    All tiles take some contexts, then all take the next: what was read once is still near when the next tile needs it.
    Where d is no multiple of a tile's side the last tiles overlap those before them, and leave to them what is theirs.
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
    """Return G z for rows of G from the i-th on and arms from the a-th on; G has zeros above its diagonal.

    The last rows may begin before the i-th: rows that were there already come out as zeros.
    """
    start = min(i, inverse.shape[0] - SIDE)
    strip = no_strip()
    for k in range(start + SIDE):
        strip = add_outer(strip, 1.0, few_of(inverse[:, k], start, max(i, k)), row_of(z[:, k], a))
    return strip


@kernel
def whole_strip(matrix: Floats, z: Floats, i: int, a: int) -> Strip:
    """Return the same of a matrix without zeros."""
    start = min(i, matrix.shape[0] - SIDE)
    strip = no_strip()
    for k in range(matrix.shape[0]):
        strip = add_outer(strip, 1.0, few_of(matrix[:, k], start, i), row_of(z[:, k], a))
    return strip


def squares_by_strips(strip_of: Callable[..., Strip], in_turn: Callable[..., float]) -> Callable[..., None]:
    """Build the text that writes |M z|^2 of every arm of a context, M read once for many arms instead of for each.

    ``strip_of`` is the product for some rows and arms, ``in_turn`` the square for one arm where there are few.
    """

    def write_squares(matrix: Floats, z: Floats, out: Floats) -> None:
        d, K = matrix.shape[0], z.shape[0]
        if d < TILED_FROM or K < LENGTH:
            for a in range(K):
                out[a] = in_turn(matrix, z[a])
        else:
            for arm in range(0, K, LENGTH):
                a = min(arm, K - LENGTH)
                totals = no_row()
                for i in range(0, d, SIDE):
                    totals = add_squares(totals, strip_of(matrix, z, i, a))
                write_row(totals, out, a)

    return write_squares


leverages_by_strips = kernel(squares_by_strips(product_strip, leverage))  # (inverse, z, out): |G z|^2


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


squared_lengths_by_strips = on_gpu(squared_lengths)(squares_by_strips(whole_strip, squared_length))


@on_gpu(look_at)
def look_by_strips(known: Known, case: Case, x: int, own: float) -> Extent:
    """Write the reach of every play of a context, and return its extent: first all leverages, then the rest."""
    d, K = case.inverse.shape[0], case.q.shape[1]
    if d < TILED_FROM or K < LENGTH:
        return look_in_turn(known, case, x, own)
    for arm in range(0, K, LENGTH):
        a = min(arm, K - LENGTH)
        levs, crosses = no_row(), no_row()
        for i in range(0, d, SIDE):
            strip = product_strip(case.inverse, known.z[x], i, a)
            levs = add_squares(levs, strip)
            crosses = add_products(crosses, strip, all_of(case.middle, min(i, d - SIDE)))
        write_row(levs, case.reach[x], a)
        write_row(crosses, case.apart[x], a)
    extent = Extent(0.0, 0.0, 0.0)
    for a in range(K):
        lev = value(case.reach[x, a])
        extent = with_play(case, x, a, lev, distance(lev, value(case.apart[x, a]), own), extent)
    return extent


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
