"""Eight numbers at once: vector arithmetic that kernel text asks for by name.

A compiler may not reorder additions, so a plain sum stays one addition after the other. Kernel text that keeps eight
partial sums in a pack says which order is meant, and the machine adds eight numbers with one instruction. Interpreted,
a pack is a NumPy array of eight: the same operations on the same numbers, bit for bit.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model, type_callable

from bothworlds.kernels.arrays import Floats

WIDTH = 8
VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


def load(values: Floats, n: int) -> Floats:
    """Return the eight numbers from position n on as a pack.

    >>> import numpy as np
    >>> add_up(load(np.arange(10.0), 2) * load(np.ones(8), 0))
    44.0
    """
    return values[n : n + WIDTH].copy()


def store(values: Floats, n: int, pack: Floats) -> None:
    """Write a pack to the eight positions from n on."""
    values[n : n + WIDTH] = pack


def add_up(pack: Floats) -> float:
    """Return the sum of a pack: the upper half is added to the lower, until one number is left."""
    while pack.size > 1:
        half = pack.size // 2
        pack = pack[:half] + pack[half:]
    return float(pack[0])


def smaller(left: Floats, right: Floats) -> Floats:
    """Return the smaller of two packs, number by number; the left one where they do not compare."""
    return np.where(right < left, right, left)


def smallest_of(pack: Floats) -> float:
    """Return the smallest number of a pack, found by halves like `add_up`."""
    while pack.size > 1:
        half = pack.size // 2
        pack = smaller(pack[:half], pack[half:])
    return float(pack[0])


class PackType(types.Type):
    """The type of a pack, to the compiler."""

    def __init__(self) -> None:
        super().__init__(name="Pack")


PACK = PackType()


@register_model(PackType)
class _PackModel(models.PrimitiveModel):
    def __init__(self, manager: Any, pack: PackType) -> None:
        super().__init__(manager, pack, VECTOR)  # type: ignore[no-untyped-call]


class _Arithmetic(AbstractTemplate):
    """Two packs, or a pack and a number, which stands for eight equal ones, make a pack."""

    def generic(self, args: tuple[Any, ...], kws: Any) -> Any:
        if kws or len(args) != 2 or PACK not in args or not set(args) <= {PACK, types.float64}:
            return None
        return signature(PACK, *args)


def _is_contiguous(values: Any) -> bool:
    return bool(isinstance(values, types.Array) and values.layout == "C" and values.dtype == types.float64)


def _typed_load(values: Any, n: Any) -> Any:
    return PACK if _is_contiguous(values) and isinstance(n, types.Integer) else None


def _typed_store(values: Any, n: Any, pack: Any) -> Any:
    return types.none if _typed_load(values, n) and pack is PACK else None


def _typed_reduction(pack: Any) -> Any:
    return types.float64 if pack is PACK else None


def _typed_smaller(left: Any, right: Any) -> Any:
    return PACK if left is PACK and right is PACK else None


def _address(context: Any, builder: Any, array_type: Any, array: Any, n: Any) -> Any:
    """Return the address of eight numbers in a contiguous array."""
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [n]), VECTOR.as_pointer())


def _build_load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_address(context, builder, sig.args[0], args[0], args[1]), align=WIDTH)


def _build_store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], _address(context, builder, sig.args[0], args[0], args[1]), align=WIDTH)
    return context.get_dummy_value()


def _smaller(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", right, left), right, left)


def _add(builder: Any, left: Any, right: Any) -> Any:
    return builder.fadd(left, right)


def _build_smaller(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
    return _smaller(builder, *args)


def _build_reduction(join: Callable[..., Any]) -> Callable[..., Any]:
    """Join the upper half of a pack with the lower, until one number is left."""

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        pack, half = args[0], WIDTH // 2
        while half:
            halves = ([*range(half)], [*range(half, 2 * half)])
            lower, upper = (builder.shuffle_vector(pack, pack, _indices(chosen)) for chosen in halves)
            pack, half = join(builder, lower, upper), half // 2
        return builder.extract_element(pack, ir.IntType(32)(0))

    return build


def _indices(chosen: list[int]) -> Any:
    """Return positions in a pack as the compiler writes them down."""
    return ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), chosen)


def _as_pack(builder: Any, kind: Any, value: Any) -> Any:
    """Return a pack as it is, and a number eight times."""
    if kind is PACK:
        return value
    first = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, first, _indices([0] * WIDTH))


def _build_arithmetic(instruction: str) -> Callable[..., Any]:
    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        left, right = (_as_pack(builder, kind, value) for kind, value in zip(sig.args, args, strict=True))
        return getattr(builder, instruction)(left, right)

    return build


def _register() -> None:
    """Tell the compiler the types and the machine code of what packs can do."""
    type_callable(load)(lambda context: _typed_load)  # noqa: ARG005
    type_callable(store)(lambda context: _typed_store)  # noqa: ARG005
    type_callable(smaller)(lambda context: _typed_smaller)  # noqa: ARG005
    lower_builtin(smaller, PackType, PackType)(_build_smaller)
    for reduction, join in ((add_up, _add), (smallest_of, _smaller)):
        type_callable(reduction)(lambda context: _typed_reduction)  # noqa: ARG005
        lower_builtin(reduction, PackType)(_build_reduction(join))
    lower_builtin(load, types.Array, types.Integer)(_build_load)
    lower_builtin(store, types.Array, types.Integer, PackType)(_build_store)
    for sign, instruction in ((operator.add, "fadd"), (operator.mul, "fmul"), (operator.truediv, "fdiv")):
        infer_global(sign)(type("_Arithmetic", (_Arithmetic,), {}))
        for operands in ((PackType, PackType), (PackType, types.Float), (types.Float, PackType)):
            lower_builtin(sign, *operands)(_build_arithmetic(instruction))


_register()
