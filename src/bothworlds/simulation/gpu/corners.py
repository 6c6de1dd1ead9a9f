"""What a tile and the triangles beside it do to each other while a matrix is factored, inverted and checked by tiles.

Each formula is written once, for whatever can multiply: numbers, when text is interpreted, or the compiler's values.
"""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils

from bothworlds.kernels.arithmetic import fused
from bothworlds.kernels.jit.wide import first, lower_function
from bothworlds.simulation.gpu.tiles import PLACES, SIDE, Corner, Tile, build_sum

Table = dict[tuple[int, int], Any]  # the numbers of a tile or of a corner by row and column


class Algebra(NamedTuple):
    """How to multiply, to add a product (left, right, sum), to change a sign, and to halve."""

    times: Callable[[Any, Any], Any]
    plus: Callable[[Any, Any, Any], Any]
    minus: Callable[[Any], Any]
    half: Callable[[Any], Any]


def _half(number: float) -> float:
    return 0.5 * number


NUMBERS = Algebra(operator.mul, fused, operator.neg, _half)


def _divided(on: Algebra, tile: Table, lower: Table) -> Table:
    found: Table = {}
    for i, j in tile:
        rest = tile[i, j]
        for k in range(j):
            rest = on.plus(on.minus(found[i, k]), lower[j, k], rest)
        found[i, j] = on.times(rest, lower[j, j])
    return found


def _begun(on: Algebra, tile: Table, inverse: Table) -> Table:
    found: Table = {}
    for i, j in tile:
        total = on.times(tile[i, j], inverse[j, j])
        for k in range(j + 1, SIDE):
            total = on.plus(tile[i, k], inverse[k, j], total)
        found[i, j] = total
    return found


def _ended(on: Algebra, tile: Table, lower: Table) -> Table:
    found: Table = {}
    for i, j in tile:
        total = tile[i, j]
        for k in range(i):
            total = on.plus(lower[i, k], found[k, j], total)
        found[i, j] = on.times(total, on.minus(lower[i, i]))
    return found


def _with_corner(on: Algebra, tile: Table, inverse: Table, sigma: Table) -> Table:
    found: Table = {}
    for i, j in tile:
        total = on.plus(on.half(sigma[j, j]), inverse[i, j], tile[i, j])
        for k in range(j):
            total = on.plus(sigma[j, k], inverse[i, k], total)
        found[i, j] = total
    return found


def _inner(on: Algebra, tile: Table, other: Table, total: Any) -> Any:
    for place, entry in other.items():
        total = on.plus(tile[place], entry, total)
    return total


def _table(numbers: Any) -> Table:
    return dict(zip(PLACES[len(numbers)], numbers, strict=True))


def divided(tile: Tile, lower: Corner) -> Tile:
    """Return X with X L^T = tile, for a triangle L whose diagonal is inverted: a tile of a Cholesky factor."""
    return tuple(_divided(NUMBERS, _table(tile), _table(lower)).values())


def begun(tile: Tile, inverse: Corner) -> Tile:
    """Return the tile of L times the triangle of G above it: the first sums of a tile of G = L^-1."""
    return tuple(_begun(NUMBERS, _table(tile), _table(inverse)).values())


def ended(tile: Tile, lower: Corner) -> Tile:
    """Return the tile of G whose sums over all columns before those of the triangle beside it are given."""
    return tuple(_ended(NUMBERS, _table(tile), _table(lower)).values())


def with_corner(tile: Tile, inverse: Tile, sigma: Corner) -> Tile:
    """Return the tile plus that of G times the triangle of Sigma, its diagonal halved."""
    return tuple(_with_corner(NUMBERS, _table(tile), _table(inverse), _table(sigma)).values())


def inner(tile: Tile, other: Tile | Corner, total: float) -> float:
    """Return the total plus the products of all numbers of a tile or of a corner with those of a tile."""
    return float(_inner(NUMBERS, _table(tile), _table(other), total))


def _values(context: Any, builder: Any) -> Algebra:
    """Return how the compiler multiplies."""

    def plus(left: Any, right: Any, total: Any) -> Any:
        return build_sum(context, builder, total, left, right)

    def minus(number: Any) -> Any:
        return builder.fsub(ir.Constant(ir.DoubleType(), -0.0), number)  # a GPU's compiler knows no instruction for it

    def half(number: Any) -> Any:
        return builder.fmul(ir.Constant(ir.DoubleType(), 0.5), number)

    return Algebra(builder.fmul, plus, minus, half)


def _builder(formula: Callable[..., Table]) -> Callable[..., Any]:
    """Return code that makes a tile of a tile and what else a formula takes."""

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        tables = [_table(cgutils.unpack_tuple(builder, part)) for part in args]
        found = formula(_values(context, builder), *tables)
        return context.make_tuple(builder, sig.return_type, [*found.values()])

    return build


def _build_inner(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    tile, other = (_table(cgutils.unpack_tuple(builder, part)) for part in args[:2])
    return _inner(_values(context, builder), tile, other, args[2])


lower_function(divided, first, _builder(_divided))
lower_function(begun, first, _builder(_begun))
lower_function(ended, first, _builder(_ended))
lower_function(with_corner, first, _builder(_with_corner))
lower_function(inner, types.float64, _build_inner)
