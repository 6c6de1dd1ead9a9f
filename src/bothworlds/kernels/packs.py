"""Eight numbers at once: vector arithmetic that kernel text asks for by name.

A compiler may not reorder additions, so a plain sum stays one addition after the other. Kernel text that keeps eight
partial sums in a pack says which order is meant, and the machine adds eight numbers with one instruction. Interpreted,
a pack is a NumPy array of eight: the same operations on the same numbers, bit for bit.
"""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

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
    """Return the sum of a pack, added one after the other."""
    result: float = pack[0]
    for k in range(1, WIDTH):
        result += pack[k]
    return float(result)


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


def _typed_add_up(pack: Any) -> Any:
    return types.float64 if pack is PACK else None


def _address(context: Any, builder: Any, array_type: Any, array: Any, n: Any) -> Any:
    """Return the address of eight numbers in a contiguous array."""
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [n]), VECTOR.as_pointer())


def _build_load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_address(context, builder, sig.args[0], args[0], args[1]), align=WIDTH)


def _build_store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], _address(context, builder, sig.args[0], args[0], args[1]), align=WIDTH)
    return context.get_dummy_value()


def _build_add_up(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
    lanes = [builder.extract_element(args[0], ir.IntType(32)(k)) for k in range(WIDTH)]
    return reduce(builder.fadd, lanes)


def _as_pack(builder: Any, kind: Any, value: Any) -> Any:
    """Return a pack as it is, and a number eight times."""
    if kind is PACK:
        return value
    first = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), value, ir.IntType(32)(0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, ir.Constant(VECTOR, ir.Undefined), everywhere)


def _build_arithmetic(instruction: str) -> Callable[..., Any]:
    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        left, right = (_as_pack(builder, kind, value) for kind, value in zip(sig.args, args, strict=True))
        return getattr(builder, instruction)(left, right)

    return build


def _register() -> None:
    """Tell the compiler the types and the machine code of what packs can do."""
    type_callable(load)(lambda context: _typed_load)  # noqa: ARG005
    type_callable(store)(lambda context: _typed_store)  # noqa: ARG005
    type_callable(add_up)(lambda context: _typed_add_up)  # noqa: ARG005
    lower_builtin(load, types.Array, types.Integer)(_build_load)
    lower_builtin(store, types.Array, types.Integer, PackType)(_build_store)
    lower_builtin(add_up, PackType)(_build_add_up)
    for sign, instruction in ((operator.add, "fadd"), (operator.mul, "fmul"), (operator.truediv, "fdiv")):
        infer_global(sign)(type("_Arithmetic", (_Arithmetic,), {}))
        for operands in ((PackType, PackType), (PackType, types.Float), (types.Float, PackType)):
            lower_builtin(sign, *operands)(_build_arithmetic(instruction))


_register()
