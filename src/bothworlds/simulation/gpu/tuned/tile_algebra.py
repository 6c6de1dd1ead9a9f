"""Operations on a register tile and neighbouring triangles: the steps of factoring, inverting and checking a matrix.

Each formula is written once for an abstract algebra: numbers in interpreted code, LLVM values in compiled code.
"""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils

from bothworlds.kernels.arithmetic import fused
from bothworlds.kernels.jit.simd_ops import first, lower_function
from bothworlds.simulation.gpu.tuned.register_tiles import PLACES, SIDE, Corner, Tile, build_sum

Table = dict[tuple[int, int], Any]  # the numbers of a tile or of a corner by row and column


class Algebra(NamedTuple):
    """Operations of an algebra: multiply, add a product (left, right, sum), negate, and halve."""

    times: Callable[[Any, Any], Any]
    plus: Callable[[Any, Any, Any], Any]
    minus: Callable[[Any], Any]
    half: Callable[[Any], Any]


def _half(number: float) -> float:
    return 0.5 * number


NUMBERS = Algebra(operator.mul, fused, operator.neg, _half)


def _solved_tile(on: Algebra, tile: Table, lower: Table) -> Table:
    result: Table = {}
    for i, j in tile:
        remainder = tile[i, j]
        for k in range(j):
            remainder = on.plus(on.minus(result[i, k]), lower[j, k], remainder)
        result[i, j] = on.times(remainder, lower[j, j])
    return result


def _start_inverse(on: Algebra, tile: Table, inverse: Table) -> Table:
    result: Table = {}
    for i, j in tile:
        total = on.times(tile[i, j], inverse[j, j])
        for k in range(j + 1, SIDE):
            total = on.plus(tile[i, k], inverse[k, j], total)
        result[i, j] = total
    return result


def _finish_inverse(on: Algebra, tile: Table, lower: Table) -> Table:
    result: Table = {}
    for i, j in tile:
        total = tile[i, j]
        for k in range(i):
            total = on.plus(lower[i, k], result[k, j], total)
        result[i, j] = on.times(total, on.minus(lower[i, i]))
    return result


def _add_corner_product(on: Algebra, tile: Table, inverse: Table, sigma: Table) -> Table:
    result: Table = {}
    for i, j in tile:
        total = on.plus(on.half(sigma[j, j]), inverse[i, j], tile[i, j])
        for k in range(j):
            total = on.plus(sigma[j, k], inverse[i, k], total)
        result[i, j] = total
    return result


def _add_inner_product(on: Algebra, tile: Table, other: Table, total: Any) -> Any:
    for place, entry in other.items():
        total = on.plus(tile[place], entry, total)
    return total


def _table(numbers: Any) -> Table:
    return dict(zip(PLACES[len(numbers)], numbers, strict=True))


def solve_tile(tile: Tile, lower: Corner) -> Tile:
    """Return X with X L^T = tile for a triangle L with inverted diagonal: a tile of a Cholesky factor."""
    return tuple(_solved_tile(NUMBERS, _table(tile), _table(lower)).values())


def start_inverse_tile(tile: Tile, inverse: Corner) -> Tile:
    """Return the tile of L times the triangle of G above it: the first terms of a tile of G = L^-1."""
    return tuple(_start_inverse(NUMBERS, _table(tile), _table(inverse)).values())


def finish_inverse_tile(tile: Tile, lower: Corner) -> Tile:
    """Return a tile of G from its sums over all columns before those of the triangle beside it."""
    return tuple(_finish_inverse(NUMBERS, _table(tile), _table(lower)).values())


def add_corner_product(tile: Tile, inverse: Tile, sigma: Corner) -> Tile:
    """Return the tile plus a tile of G times the triangle of Sigma with halved diagonal."""
    return tuple(_add_corner_product(NUMBERS, _table(tile), _table(inverse), _table(sigma)).values())


def add_inner_product(tile: Tile, other: Tile | Corner, total: float) -> float:
    """Return the total plus the sum of products of the entries of a tile with those of a tile or a corner."""
    return float(_add_inner_product(NUMBERS, _table(tile), _table(other), total))


def _values(context: Any, builder: Any) -> Algebra:
    """Return the algebra of LLVM values."""

    def plus(left: Any, right: Any, total: Any) -> Any:
        return build_sum(context, builder, total, left, right)

    def minus(number: Any) -> Any:
        return builder.fsub(ir.Constant(ir.DoubleType(), -0.0), number)  # the GPU compiler does not support fneg

    def half(number: Any) -> Any:
        return builder.fmul(ir.Constant(ir.DoubleType(), 0.5), number)

    return Algebra(builder.fmul, plus, minus, half)


def _builder(formula: Callable[..., Table]) -> Callable[..., Any]:
    """Return the LLVM builder of a formula with tiles and corners as arguments."""

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        tables = [_table(cgutils.unpack_tuple(builder, part)) for part in args]
        result = formula(_values(context, builder), *tables)
        return context.make_tuple(builder, sig.return_type, [*result.values()])

    return build


def _build_inner(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    tile, other = (_table(cgutils.unpack_tuple(builder, part)) for part in args[:2])
    return _add_inner_product(_values(context, builder), tile, other, args[2])


lower_function(solve_tile, first, _builder(_solved_tile))
lower_function(start_inverse_tile, first, _builder(_start_inverse))
lower_function(finish_inverse_tile, first, _builder(_finish_inverse))
lower_function(add_corner_product, first, _builder(_add_corner_product))
lower_function(add_inner_product, types.float64, _build_inner)
