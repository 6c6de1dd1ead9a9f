"""Larger matrices on a GPU: factored, inverted and checked tile by tile, for memory is slow and registers are few.

A sum of products that reads two numbers for each waits for memory; a tile of 25 sums reads ten numbers for 25 products.
Every sum is added up in the order it has on a processor, but for a trace, which is only compared with d. What is left
over beside the last whole tile, and all of a small matrix, goes row by row.
"""

from typing import Any

from bothworlds.kernels.arithmetic import both
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel, on_gpu
from bothworlds.kernels.matrix import cholesky, invert_lower, trace_of_ratio
from bothworlds.simulation.gpu.corners import begun, divided, ended, inner, with_corner
from bothworlds.simulation.gpu.in_place import IN_REGISTERS, factor_rows, half_trace, invert_rows
from bothworlds.simulation.gpu.tiles import (
    SIDE,
    Tile,
    add_outer,
    add_square,
    all_of,
    corner_of,
    no_tile,
    tile_of,
    write_tile,
)


@kernel
def rows_by_tiles(d: int) -> int:
    """Return how many rows go by tiles; none where the matrix lies in registers anyway."""
    return 0 if d < IN_REGISTERS else d - d % SIDE


@kernel
def write_factor(sigma: Floats, factor: Floats, i: int, j: int) -> None:
    """Write a tile of L left of the diagonal."""
    tile = tile_of(sigma, i, j)
    for k in range(j):
        tile = add_outer(tile, -1.0, all_of(factor[:, k], i), all_of(factor[:, k], j))
    write_tile(divided(tile, corner_of(factor, j, j)), factor, (i, j), (i, j))


@kernel
def write_rest(sigma: Floats, factor: Floats, i: int) -> None:
    """Write what the columns before a triangle on the diagonal leave of it."""
    corner = corner_of(sigma, i, i)
    for k in range(i):
        corner = add_square(corner, -1.0, all_of(factor[:, k], i))
    write_tile(corner, factor, (i, i), (i, i))


@on_gpu(cholesky)
def cholesky_by_tiles(sigma: Floats, factor: Floats) -> Any:
    """Write the lower Cholesky factor, its diagonal inverted; return where sigma is positive definite."""
    whole, d = rows_by_tiles(factor.shape[0]), factor.shape[0]
    sound = sigma[0, 0] > 0.0
    for i in range(0, whole, SIDE):
        for j in range(0, i, SIDE):
            write_factor(sigma, factor, i, j)
        write_rest(sigma, factor, i)
        sound = both(sound, factor_rows(factor, factor, i, i, i + SIDE))
    if whole < d:
        sound = both(sound, factor_rows(sigma, factor, 0, whole, d))
    return sound


@kernel
def write_inverse(factor: Floats, i: int, j: int) -> None:
    """Write a tile of G left of the diagonal in the place of that of L."""
    tile = begun(tile_of(factor, i, j), corner_of(factor, j, j))
    for k in range(j + SIDE, i):
        tile = add_outer(tile, 1.0, all_of(factor[:, k], i), all_of(factor[k], j))
    write_tile(ended(tile, corner_of(factor, i, i)), factor, (i, j), (i, j))


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
    """Return the tile of G Sigma^T that begins at (i, j), of the columns before the j-th."""
    tile = no_tile()
    for k in range(j):
        tile = add_outer(tile, 1.0, all_of(inverse[:, k], i), all_of(sigma[:, k], j))
    return tile


@on_gpu(trace_of_ratio)
def trace_by_tiles(inverse: Floats, sigma: Floats) -> float:
    """Return tr(Sigma^-1 Sigma) = sum_i G_i Sigma G_i^T: d, but for rounding."""
    whole, d = rows_by_tiles(inverse.shape[0]), inverse.shape[0]
    total = half_trace(inverse, sigma, 0, whole, d)
    for i in range(0, whole, SIDE):
        for j in range(0, i, SIDE):
            own = tile_of(inverse, i, j)
            total = inner(with_corner(ratio_tile(inverse, sigma, i, j), own, corner_of(sigma, j, j)), own, total)
        total = inner(ratio_tile(inverse, sigma, i, i), corner_of(inverse, i, i), total)
        total += half_trace(inverse, sigma, i, i, i + SIDE)
    return 2.0 * total
