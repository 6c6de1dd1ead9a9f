"""Code generation for memory: views of arrays as packs, views of parts, and access to single numbers in packs.

``contexts(array)`` and ``lanes(array)`` view memory whose last axis has length eight (``sixteen_lanes``: sixteen) as an
array of packs. `over_contexts` sums packs of contexts over their eight numbers, but leaves lanes as they are.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from bothworlds.kernels import arithmetic
from bothworlds.kernels.arithmetic import WIDTH
from bothworlds.kernels.jit.simd_ops import build_first, first, lower_function
from bothworlds.kernels.jit.simd_types import (
    CONTEXTS,
    INDEX,
    LANES,
    PLACES,
    SIXTEEN_LANES,
    PackType,
    PlacesType,
    is_whole,
    positions,
    vector,
    widened,
)


def _typed_view(kind: PackType) -> Callable[..., Any]:
    """Return the typing of a view: an array of packs, or of places, with one axis less."""

    def typed(memory: Any) -> Any:
        if not isinstance(memory, types.Array):
            return None
        return types.Array(PLACES[kind] if is_whole(memory.dtype) else kind, memory.ndim - 1, "C")

    return typed


def _build_view(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    view = sig.return_type
    old = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    new = cgutils.create_struct_proxy(view)(context, builder)
    new.data = builder.bitcast(old.data, vector(view.dtype).as_pointer())
    new.nitems = builder.udiv(old.nitems, old.nitems.type(view.dtype.width))
    new.itemsize = old.itemsize.type(8 * view.dtype.width)
    new.meminfo, new.parent = old.meminfo, old.parent
    for part in ("shape", "strides"):
        sizes = cgutils.unpack_tuple(builder, getattr(old, part))
        setattr(new, part, cgutils.pack_array(builder, sizes[: view.ndim]))
    return new._getvalue()


def _typed_part(memory: Any, _: Any, *sizes: Any) -> Any:
    return types.Array(memory.dtype, len(sizes), memory.layout) if isinstance(memory, types.Array) else None


def _array(context: Any, builder: Any, kind: Any, old: Any, data: Any, sizes: list[Any], strides: list[Any]) -> Any:
    """Return an array that shares the memory of ``old``."""
    new = cgutils.create_struct_proxy(kind)(context, builder)
    new.data, new.itemsize, new.meminfo, new.parent = data, old.itemsize, old.meminfo, old.parent
    new.nitems = reduce(builder.mul, sizes)
    new.shape, new.strides = cgutils.pack_array(builder, sizes), cgutils.pack_array(builder, strides)
    return new._getvalue()


def _offset(builder: Any, data: Any, offset: Any) -> Any:
    """Return an address plus an offset in bytes."""
    start = builder.bitcast(data, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(start, [offset]), data.type)


def _build_part(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """View evenly spaced numbers as an array, without copies or bounds checks; constant sizes stay constant."""
    old = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    numbers = [context.cast(builder, n, kind, types.intp) for n, kind in zip(args[1:], sig.args[1:], strict=True)]
    start, sizes = numbers[0], numbers[1:]
    [stride] = cgutils.unpack_tuple(builder, old.strides)
    if sig.args[0].layout == "C":
        stride = stride.type(context.get_abi_sizeof(context.get_data_type(sig.args[0].dtype)))
    data = _offset(builder, old.data, builder.mul(start, stride))
    strides = [stride]
    for size in sizes[:0:-1]:
        strides.insert(0, builder.mul(strides[0], size))
    return _array(context, builder, sig.return_type, old, data, sizes, strides)


def _typed_lane(memory: Any, lane: Any) -> Any:
    if not isinstance(memory, types.Array):
        return None
    if isinstance(memory.dtype, PackType | PlacesType):
        return types.Array(types.intp if is_whole(memory.dtype) else types.float64, memory.ndim, "A")
    return types.Array(memory.dtype, memory.ndim - 1, "A")


def _build_lane(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    old = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    lane = context.cast(builder, args[1], sig.args[1], types.intp)
    size = lane.type(context.get_abi_sizeof(ir.DoubleType()))
    sizes, view = cgutils.unpack_tuple(builder, old.shape), sig.return_type
    width = sizes.pop() if view.ndim < sig.args[0].ndim else lane.type(sig.args[0].dtype.width)
    strides = [builder.mul(width, size)]
    for length in sizes[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    start = builder.bitcast(old.data, context.get_data_type(view.dtype).as_pointer())
    data = _offset(builder, start, builder.mul(lane, size))
    return _array(context, builder, view, old, data, sizes, strides)


def _typed_flat(rows: Any) -> Any:
    contiguous = isinstance(rows, types.Array) and rows.layout == "C"
    return types.Array(rows.dtype, rows.ndim - 1, "C") if contiguous else None


def _build_flat(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    old = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    sizes, strides = (cgutils.unpack_tuple(builder, part) for part in (old.shape, old.strides))
    sizes = [builder.mul(sizes[0], sizes[1]), *sizes[2:]]
    return _array(context, builder, sig.return_type, old, old.data, sizes, strides[1:])


def _exchanged(builder: Any, rows: list[Any], half: int) -> list[Any]:
    """Do one step of a transpose by blocks: exchange off-diagonal blocks of size ``half`` in each diagonal block."""
    lower = positions([k ^ half ^ WIDTH if k & half else k for k in range(WIDTH)])
    upper = positions([k ^ WIDTH if k & half else k ^ half for k in range(WIDTH)])
    new = list(rows)
    for k in (k for k in range(WIDTH) if not k & half):
        pair = rows[k], rows[k | half]
        new[k], new[k | half] = (builder.shuffle_vector(*pair, chosen) for chosen in (lower, upper))
    return new


def _build_transposed(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    z, out = (cgutils.create_struct_proxy(sig.args[n])(context, builder, value=args[n]) for n in (1, 3))
    weight = widened(context, builder, args[0], sig.args[0], CONTEXTS)
    j, start = (context.cast(builder, args[n], sig.args[n], types.intp) for n in (2, 4))
    [count] = cgutils.unpack_tuple(builder, z.shape)
    last, rows = builder.sub(count, count.type(1)), []
    for i in (builder.add(builder.mul(j, j.type(WIDTH)), j.type(k)) for k in range(WIDTH)):
        inside = builder.icmp_signed("<=", i, last)
        read = builder.fmul(weight, builder.load(builder.gep(z.data, [builder.select(inside, i, last)])))
        rows.append(builder.select(inside, read, ir.Constant(vector(CONTEXTS), None)))
    for half in (WIDTH // 2, WIDTH // 4, 1):
        rows = _exchanged(builder, rows, half)
    first = builder.add(builder.mul(j, cgutils.unpack_tuple(builder, out.shape)[1]), start)
    for k, row in enumerate(rows):
        builder.store(row, builder.gep(out.data, [builder.add(first, first.type(k))]))
    return context.get_dummy_value()


lower_function(arithmetic.contexts, _typed_view(CONTEXTS), _build_view)
lower_function(arithmetic.lanes, _typed_view(LANES), _build_view)
lower_function(arithmetic.sixteen_lanes, _typed_view(SIXTEEN_LANES), _build_view)
lower_function(arithmetic.scalars, first, build_first)
lower_function(arithmetic.row_of, _typed_part, _build_part)
lower_function(arithmetic.matrix_of, _typed_part, _build_part)
lower_function(arithmetic.cube_of, _typed_part, _build_part)
lower_function(arithmetic.flat_of, _typed_flat, _build_flat)
lower_function(arithmetic.write_transposed, types.none, _build_transposed)
lower_function(arithmetic.lane_of, _typed_lane, _build_lane)


def _holds_contexts(table: Any) -> bool:
    return bool(isinstance(table, types.Array) and table.dtype is CONTEXTS)


def _floats_at(context: Any, builder: Any, table: Any, value: Any) -> Any:
    """Return the address of the first number of a contiguous array of packs, or of floats."""
    data = cgutils.create_struct_proxy(table)(context, builder, value=value).data
    return builder.bitcast(data, ir.DoubleType().as_pointer())


@intrinsic
def _entry(typing_context: Any, table: Any, position: Any, lane: Any) -> Any:
    """Return one of the eight numbers of the pack at a position of contiguous memory."""

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _floats_at(context, builder, sig.args[0], args[0])
        offset = builder.add(builder.mul(args[1], args[1].type(WIDTH)), args[2])
        return builder.load(builder.gep(start, [offset]))

    return types.float64(table, types.intp, types.intp), build


@intrinsic
def _add_entry(typing_context: Any, table: Any, position: Any, lane: Any, number: Any) -> Any:
    """Add to one of the eight numbers of the pack at a position of contiguous memory."""

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _floats_at(context, builder, sig.args[0], args[0])
        address = builder.gep(start, [builder.add(builder.mul(args[1], args[1].type(WIDTH)), args[2])])
        builder.store(builder.fadd(builder.load(address), args[3]), address)
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp, types.float64), build


def _pack_of(places: Any) -> PackType:
    """Return the type of packs with the same lanes as some places."""
    return next(pack for pack, kind in PLACES.items() if kind == places)


@intrinsic
def _entries(typing_context: Any, table: Any, x: Any, columns: Any, a: Any, depth: Any, i: Any) -> Any:
    """Return the numbers at (x, a, i) of contiguous memory; each lane has its own x, a and, in packs, table."""
    pack = _pack_of(x)
    in_lanes = table.dtype is pack

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _floats_at(context, builder, sig.args[0], args[0])
        arms = widened(context, builder, args[3], sig.args[3], x)
        result = ir.Constant(vector(pack), ir.Undefined)
        for k in range(pack.width):
            row, arm = (builder.extract_element(number, INDEX(k)) for number in (args[1], arms))
            position = builder.add(builder.mul(builder.add(builder.mul(row, args[2]), arm), args[4]), args[5])
            if in_lanes:
                position = builder.add(builder.mul(position, position.type(pack.width)), position.type(k))
            result = builder.insert_element(result, builder.load(builder.gep(start, [position])), INDEX(k))
        return result

    kinds = (table, x, types.intp, a if a == x else types.intp, types.intp, types.intp)
    return pack(*kinds), build


@intrinsic
def _add_entries(typing_context: Any, table: Any, x: Any, columns: Any, a: Any, number: Any) -> Any:
    """Add to the numbers at (x, a) of contiguous memory; each lane has its own x, a and table."""
    pack = _pack_of(x)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _floats_at(context, builder, sig.args[0], args[0])
        added = widened(context, builder, args[4], sig.args[4], pack)
        for k in range(pack.width):
            row, arm, value = (builder.extract_element(each, INDEX(k)) for each in (args[1], args[3], added))
            position = builder.add(builder.mul(row, args[2]), arm)
            address = builder.gep(
                start, [builder.add(builder.mul(position, position.type(pack.width)), position.type(k))]
            )
            builder.store(builder.fadd(builder.load(address), value), address)
        return context.get_dummy_value()

    return types.void(table, x, types.intp, x, number if number == pack else types.float64), build


read: Any = _entry
read_each: Any = _entries
add_to: Any = _add_entry
add_to_each: Any = _add_entries


@overload(arithmetic.at, strict=False)
def _compiled_at(table: Any, x: Any, a: Any) -> Any:
    if _holds_contexts(table):
        return lambda table, x, a: read(table, (x // WIDTH) * table.shape[1] + a, x % WIDTH)
    if isinstance(x, PlacesType):
        return lambda table, x, a: read_each(table, x, table.shape[1], a, 1, 0)
    return lambda table, x, a: table[x, a]


@overload(arithmetic.add_at, strict=False)
def _compiled_add_at(table: Any, x: Any, a: Any, number: Any) -> Any:
    if _holds_contexts(table):
        return lambda table, x, a, number: add_to(table, (x // WIDTH) * table.shape[1] + a, x % WIDTH, number)
    if isinstance(x, PlacesType):
        return lambda table, x, a, number: add_to_each(table, x, table.shape[1], a, number)

    def add_one(table: Any, x: Any, a: Any, number: Any) -> None:
        table[x, a] += number

    return add_one


@overload(arithmetic.count_of, strict=False)
def _compiled_count_of(column: Any) -> Any:
    width = WIDTH if _holds_contexts(column) else 1
    return lambda column: column.shape[0] * width


@overload(arithmetic.feature, strict=False)
def _compiled_feature(z: Any, x: Any, a: Any, i: Any) -> Any:
    if _holds_contexts(z):
        return lambda z, x, a, i: read(z, ((x // WIDTH) * z.shape[1] + a) * z.shape[2] + i, x % WIDTH)
    if isinstance(x, PlacesType):
        return lambda z, x, a, i: read_each(z, x, z.shape[1], a, z.shape[2], i)
    return lambda z, x, a, i: z[x, a, i]
