"""Sums in the registers of a card: a few numbers, or a small square of a matrix, as values that never touch memory.

A thread of a card has 255 registers, and what does not fit into them lies in memory that is slower by far. The 210 sums
of a covariance with d = 20 would be read and written for every arm of every context; a tile of them stays in
registers while all arms pass by, and it is the features, the same for all threads, that are read again for every tile.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.wide import lower_function

SIDE = 5
Few = tuple[float, ...]  # SIDE numbers
Tile = tuple[float, ...]  # SIDE x SIDE numbers, row by row


def few_of(row: Floats, start: int) -> Few:
    """Return a few numbers of a row from a position on."""
    return tuple(float(row[start + k]) for k in range(SIDE))


def empty_tile() -> Tile:
    """Return a tile of zeros."""
    return (0.0,) * (SIDE * SIDE)


def add_outer(tile: Tile, weight: float, u: Few, v: Few) -> Tile:
    """Return the tile plus weight u v^T."""
    left = [weight * entry for entry in u]
    return tuple(entry + left[n // SIDE] * v[n % SIDE] for n, entry in enumerate(tile))


def write_tile(tile: Tile, out: Floats, i: int, j: int) -> None:
    """Write a tile into a matrix, its first entry at (i, j)."""
    for n, entry in enumerate(tile):
        out[i + n // SIDE, j + n % SIDE] = entry


FEW, TILE = (types.UniTuple(types.float64, n) for n in (SIDE, SIDE * SIDE))


def _pointer(context: Any, builder: Any, kind: Any, array: Any, *place: Any) -> Any:
    """Return where an entry of an array lies."""
    held = cgutils.create_struct_proxy(kind)(context, builder, value=array)
    return cgutils.get_item_pointer(context, builder, kind, held, place)


def _build_few(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    row, start = args
    places = [builder.add(start, start.type(k)) for k in range(SIDE)]
    entries = [builder.load(_pointer(context, builder, sig.args[0], row, place)) for place in places]
    return context.make_tuple(builder, FEW, entries)


def _build_empty(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
    return context.make_tuple(builder, TILE, [ir.Constant(ir.DoubleType(), 0.0)] * (SIDE * SIDE))


def _build_sum(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
    tile, weight, u, v = args
    left, right = ([*cgutils.unpack_tuple(builder, few)] for few in (u, v))
    left = [builder.fmul(weight, entry) for entry in left]
    products = [builder.fmul(entry, other) for entry in left for other in right]
    sums = [builder.fadd(*pair) for pair in zip(cgutils.unpack_tuple(builder, tile), products, strict=True)]
    return context.make_tuple(builder, TILE, sums)


def _build_writing(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    tile, out, i, j = args
    for n, entry in enumerate(cgutils.unpack_tuple(builder, tile)):
        place = builder.add(i, i.type(n // SIDE)), builder.add(j, j.type(n % SIDE))
        builder.store(entry, _pointer(context, builder, sig.args[1], out, *place))
    return context.get_dummy_value()


lower_function(few_of, 2, lambda row, start: FEW, _build_few)  # noqa: ARG005
lower_function(empty_tile, 0, lambda: TILE, _build_empty)
lower_function(add_outer, 4, lambda tile, weight, u, v: TILE, _build_sum)  # noqa: ARG005
lower_function(write_tile, 4, lambda tile, out, i, j: types.none, _build_writing)  # noqa: ARG005
