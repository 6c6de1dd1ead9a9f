"""Register tiles on a GPU: tuples of matrix entries that stay in registers while products are added to them.

A GPU thread has 255 registers; everything else is in much slower memory. The 210 sums of a covariance with d = 20 would
be read and written for every arm of every context. A tile of them stays in registers during the loop over arms; only
the features, which all threads share, are read again for every tile.
"""

from itertools import product
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import fused
from bothworlds.kernels.jit.fma import build_fma
from bothworlds.kernels.jit.simd_ops import first, lower_function, on_cuda

SIDE = 5  # faster than 4, 7 and 10 on an H200
LENGTH = 10  # arms in a strip; strips are wider than tiles, so that fewer numbers are read per product
Side = tuple[float, ...]  # SIDE numbers
Row = tuple[float, ...]  # LENGTH numbers
Tile = tuple[float, ...]  # SIDE x SIDE numbers, row by row
Strip = tuple[float, ...]  # SIDE x LENGTH numbers, row by row
Corner = tuple[float, ...]  # the lower triangle of a tile, row by row
PLACES: dict[int, list[tuple[int, int]]] = {
    SIDE * SIDE: [(i, j) for i in range(SIDE) for j in range(SIDE)],
    SIDE * (SIDE + 1) // 2: [(i, j) for i in range(SIDE) for j in range(i + 1)],
}  # row and column of each number of a tile and of a corner


def zero_strip() -> Strip:
    """Return a strip of zeros."""
    return (0.0,) * (SIDE * LENGTH)


def zero_tile() -> Tile:
    """Return a tile of zeros."""
    return (0.0,) * (SIDE * SIDE)


def zero_row() -> Row:
    """Return a row of zeros."""
    return (0.0,) * LENGTH


def load_side_from(values: Floats, start: int, first: int) -> Side:
    """Return SIDE numbers from ``start``, with zeros in place of those before ``first``."""
    return tuple(float(values[start + k]) if start + k >= first else 0.0 for k in range(SIDE))


def load_side(values: Floats, start: int) -> Side:
    """Return SIDE numbers from ``start``."""
    return tuple(float(values[start + k]) for k in range(SIDE))


def load_features(values: Floats, start: int) -> Side:
    """Return SIDE constant numbers from ``start``, loaded with the hint to keep them in the first-level cache."""
    return tuple(float(values[start + k]) for k in range(SIDE))


def load_row(values: Floats, start: int) -> Row:
    """Return LENGTH numbers from ``start``."""
    return tuple(float(values[start + k]) for k in range(LENGTH))


def add_outer(tile: Tile, weight: float, u: Side, v: Side) -> Tile:
    """Return a tile or a strip plus weight u v^T."""
    left = [weight * entry for entry in u]
    return tuple(fused(left[n // len(v)], v[n % len(v)], entry) for n, entry in enumerate(tile))


def add_squares(row: Row, strip: Strip) -> Row:
    """Return the row plus the squares of each row of the strip, one row after the other."""
    for n in range(0, SIDE * LENGTH, LENGTH):
        row = tuple(fused(strip[n + k], strip[n + k], total) for k, total in enumerate(row))
    return row


def write_row(row: Row, out: Floats, start: int) -> None:
    """Write a row into an array from ``start``."""
    for k, entry in enumerate(row):
        out[start + k] = entry


def add_square(corner: Corner, weight: float, u: Side) -> Corner:
    """Return a corner plus weight u u^T."""
    left = [weight * entry for entry in u]
    places = PLACES[len(corner)]
    return tuple(fused(left[i], u[j], entry) for (i, j), entry in zip(places, corner, strict=True))


def load_tile(values: Floats, i: int, j: int) -> Tile:
    """Return the tile of a matrix whose first entry is at (i, j)."""
    return tuple(float(values[i + k, j + n]) for k, n in product(range(SIDE), repeat=2))


def load_corner(values: Floats, i: int, j: int) -> Corner:
    """Return the lower triangle of the tile of a matrix whose first entry is at (i, j)."""
    return tuple(float(values[i + k, j + n]) for k in range(SIDE) for n in range(k + 1))


def write_tile(tile: Tile, out: Floats, start: tuple[int, int], first: tuple[int, int]) -> None:
    """Write a tile or a corner into a matrix at ``start``, except for rows and columns before ``first``."""
    for entry, (k, n) in zip(tile, PLACES[len(tile)], strict=True):
        if start[0] + k >= first[0] and start[1] + n >= first[1]:
            out[start[0] + k, start[1] + n] = entry


SIDE_TYPE, ROW_TYPE, STRIP_TYPE = (types.UniTuple(types.float64, n) for n in (SIDE, LENGTH, SIDE * LENGTH))
TILE_TYPE, CORNER_TYPE = (types.UniTuple(types.float64, n) for n in PLACES)
ZERO = ir.Constant(ir.DoubleType(), 0.0)


def _places(builder: Any, start: Any, count: int) -> list[Any]:
    """Return ``count`` positions from ``start``; the flag nsw lets the compiler assume that they increase."""
    return [builder.add(start, start.type(k), flags=("nsw",)) for k in range(count)]


def _pointer(context: Any, builder: Any, kind: Any, array: Any, *place: Any) -> Any:
    """Return the pointer to an entry of an array."""
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=array)
    return cgutils.get_item_pointer(context, builder, kind, struct, place)


def build_sum(context: Any, builder: Any, total: Any, left: Any, right: Any) -> Any:
    """Return total + left right, rounded once; on a GPU the compiler contracts the two instructions by itself.

    With explicit fused instructions on a GPU, LinUCB plays half as many rounds per second at S, K, d = 100, 20, 20.
    """
    if on_cuda(context):
        return builder.fadd(total, builder.fmul(left, right))
    return build_fma(builder, left, right, total)


def _build_zeros(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.make_tuple(builder, sig.return_type, [ZERO] * len(sig.return_type))


def _build_reading(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Read numbers of an array; with a third argument, zeros in place of those before that position."""
    values, start, *first = args
    entries = []
    for place in _places(builder, start, len(sig.return_type)):
        entry = builder.load(_pointer(context, builder, sig.args[0], values, place))
        in_range = builder.icmp_signed(">=", place, first[0]) if first else ir.Constant(ir.IntType(1), 1)
        entries.append(builder.select(in_range, entry, ZERO))
    return context.make_tuple(builder, sig.return_type, entries)


def _build_cached_reading(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Read numbers of an array that all threads read repeatedly; on a GPU with a cache hint."""
    if not on_cuda(context):
        return _build_reading(context, builder, sig, args)
    number, address = ir.DoubleType(), ir.IntType(64)
    load = "ld.global.nc.L1::evict_last.f64 $0, [$1];"
    instruction = ir.InlineAsm(ir.FunctionType(number, [address]), load, "=d,l")
    entries = []
    for place in _places(builder, args[1], len(sig.return_type)):
        pointer = _pointer(context, builder, sig.args[0], args[0], place)
        global_pointer = builder.addrspacecast(pointer, ir.PointerType(number, addrspace=1))
        entries.append(builder.call(instruction, [builder.ptrtoint(global_pointer, address)]))
    return context.make_tuple(builder, sig.return_type, entries)


def _build_outer(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    tile, weight, u, v = args
    totals, left, right = (cgutils.unpack_tuple(builder, part) for part in (tile, u, v))
    left, n = [builder.fmul(weight, entry) for entry in left], len(right)
    new = [build_sum(context, builder, total, left[k // n], right[k % n]) for k, total in enumerate(totals)]
    return context.make_tuple(builder, sig.return_type, new)


def _build_square(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    corner, weight, u = args
    totals, right = (cgutils.unpack_tuple(builder, part) for part in (corner, u))
    left, places = [builder.fmul(weight, entry) for entry in right], PLACES[len(totals)]
    pairs = zip(places, totals, strict=True)
    new = [build_sum(context, builder, total, left[i], right[j]) for (i, j), total in pairs]
    return context.make_tuple(builder, sig.return_type, new)


def _build_squares(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    totals, entries = (cgutils.unpack_tuple(builder, part) for part in args)
    for n in range(0, SIDE * LENGTH, LENGTH):
        totals = [build_sum(context, builder, total, entries[n + k], entries[n + k]) for k, total in enumerate(totals)]
    return context.make_tuple(builder, sig.return_type, totals)


def _build_row_writing(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    row, out, start = args
    for entry, place in zip(cgutils.unpack_tuple(builder, row), _places(builder, start, LENGTH), strict=True):
        builder.store(entry, _pointer(context, builder, sig.args[1], out, place))
    return context.get_dummy_value()


def _build_tile_reading(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    values, *start = args
    rows, columns = (_places(builder, place, SIDE) for place in start)
    places = [(rows[i], columns[j]) for i, j in PLACES[len(sig.return_type)]]
    entries = [builder.load(_pointer(context, builder, sig.args[0], values, *place)) for place in places]
    return context.make_tuple(builder, sig.return_type, entries)


def _build_tile_writing(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    tile, out, start, first = args
    (rows, row), (columns, column) = (
        (_places(builder, place, SIDE), least)
        for place, least in zip(*(cgutils.unpack_tuple(builder, pair) for pair in (start, first)), strict=True)
    )
    for entry, (i, j) in zip(cgutils.unpack_tuple(builder, tile), PLACES[len(sig.args[0])], strict=True):
        in_range = [builder.icmp_signed(">=", *pair) for pair in ((rows[i], row), (columns[j], column))]
        with builder.if_then(builder.and_(*in_range)):
            builder.store(entry, _pointer(context, builder, sig.args[1], out, rows[i], columns[j]))
    return context.get_dummy_value()


lower_function(zero_strip, STRIP_TYPE, _build_zeros)
lower_function(zero_tile, TILE_TYPE, _build_zeros)
lower_function(zero_row, ROW_TYPE, _build_zeros)
lower_function(load_side_from, SIDE_TYPE, _build_reading)
lower_function(load_side, SIDE_TYPE, _build_reading)
lower_function(load_features, SIDE_TYPE, _build_cached_reading)
lower_function(load_row, ROW_TYPE, _build_reading)
lower_function(add_outer, first, _build_outer)
lower_function(add_squares, first, _build_squares)
lower_function(write_row, types.none, _build_row_writing)
lower_function(add_square, first, _build_square)
lower_function(load_tile, TILE_TYPE, _build_tile_reading)
lower_function(load_corner, CORNER_TYPE, _build_tile_reading)
lower_function(write_tile, types.none, _build_tile_writing)
