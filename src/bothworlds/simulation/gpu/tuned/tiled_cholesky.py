"""Cholesky factors and inverses of larger matrices on a GPU, computed in register tiles.

A single sum of products reads two numbers per product and waits for memory; a tile of 25 sums reads ten numbers for 25
products. Sums have the same order as on a CPU, except for a trace that is only compared with d. Rows beyond the last
whole tile, and small matrices, are processed row by row.
"""

from typing import Any

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import both
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.linalg import cholesky, invert_lower, trace_of_ratio
from bothworlds.simulation.gpu.tuned.register_tiles import (
    SIDE,
    Tile,
    add_outer,
    add_square,
    load_corner,
    load_side,
    load_tile,
    write_tile,
    zero_tile,
)
from bothworlds.simulation.gpu.tuned.small_factors import IN_REGISTERS, factor_rows, half_trace, invert_rows
from bothworlds.simulation.gpu.tuned.tile_algebra import (
    add_corner_product,
    add_inner_product,
    finish_inverse_tile,
    solve_tile,
    start_inverse_tile,
)


@kernel
def rows_by_tiles(d: int) -> int:
    """Return how many rows are processed in tiles; none if the matrix is small enough for registers."""
    return 0 if d < IN_REGISTERS else d - d % SIDE


@kernel
def write_factor(sigma: Floats, factor: Floats, i: int, j: int) -> None:
    """Write a tile of L left of the diagonal."""
    tile = load_tile(sigma, i, j)
    for k in range(j):
        tile = add_outer(tile, -1.0, load_side(factor[:, k], i), load_side(factor[:, k], j))
    write_tile(solve_tile(tile, load_corner(factor, j, j)), factor, (i, j), (i, j))


@kernel
def write_diagonal_remainder(sigma: Floats, factor: Floats, i: int) -> None:
    """Write a triangle on the diagonal less the products of the columns before it."""
    corner = load_corner(sigma, i, i)
    for k in range(i):
        corner = add_square(corner, -1.0, load_side(factor[:, k], i))
    write_tile(corner, factor, (i, i), (i, i))


@on_gpu(cholesky)
def cholesky_by_tiles(sigma: Floats, factor: Floats) -> Any:
    """Write the lower Cholesky factor, its diagonal inverted; return where sigma is positive definite."""
    whole, d = rows_by_tiles(factor.shape[0]), factor.shape[0]
    is_positive = sigma[0, 0] > 0.0
    for i in range(0, whole, SIDE):
        for j in range(0, i, SIDE):
            write_factor(sigma, factor, i, j)
        write_diagonal_remainder(sigma, factor, i)
        is_positive = both(is_positive, factor_rows(factor, factor, i, i, i + SIDE))
    if whole < d:
        is_positive = both(is_positive, factor_rows(sigma, factor, 0, whole, d))
    return is_positive


@kernel
def write_inverse(factor: Floats, i: int, j: int) -> None:
    """Replace a tile of L left of the diagonal by that of G."""
    tile = start_inverse_tile(load_tile(factor, i, j), load_corner(factor, j, j))
    for k in range(j + SIDE, i):
        tile = add_outer(tile, 1.0, load_side(factor[:, k], i), load_side(factor[k], j))
    write_tile(finish_inverse_tile(tile, load_corner(factor, i, i)), factor, (i, j), (i, j))


@on_gpu(invert_lower)
def invert_by_tiles(factor: Floats) -> None:
    """Replace L by its inverse G."""
    whole, d = rows_by_tiles(factor.shape[0]), factor.shape[0]
    for i in range(0, whole, SIDE):
        for j in range(0, i, SIDE):
            write_inverse(factor, i, j)
        invert_rows(factor, i, i, i + SIDE)
    invert_rows(factor, 0, whole, d)


@kernel
def ratio_tile(inverse: Floats, sigma: Floats, i: int, j: int) -> Tile:
    """Return the tile of G Sigma^T that begins at (i, j), summed over the columns before the j-th."""
    tile = zero_tile()
    for k in range(j):
        tile = add_outer(tile, 1.0, load_side(inverse[:, k], i), load_side(sigma[:, k], j))
    return tile


@on_gpu(trace_of_ratio)
def trace_by_tiles(inverse: Floats, sigma: Floats) -> float:
    """Return tr(Sigma^-1 Sigma) = sum_i G_i Sigma G_i^T, which is d up to rounding."""
    whole, d = rows_by_tiles(inverse.shape[0]), inverse.shape[0]
    total = half_trace(inverse, sigma, 0, whole, d)
    for i in range(0, whole, SIDE):
        for j in range(0, i, SIDE):
            tile = load_tile(inverse, i, j)
            total = add_inner_product(
                add_corner_product(ratio_tile(inverse, sigma, i, j), tile, load_corner(sigma, j, j)), tile, total
            )
        total = add_inner_product(ratio_tile(inverse, sigma, i, i), load_corner(inverse, i, i), total)
        total += half_trace(inverse, sigma, i, i, i + SIDE)
    return 2.0 * total
