"""Code generation for packs of eight or sixteen numbers: operators and functions as vector instructions."""

import inspect
import math
import operator
from collections.abc import Callable
from functools import wraps
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, type_callable

from bothworlds.kernels import arithmetic
from bothworlds.kernels.arithmetic import WIDTH
from bothworlds.kernels.jit.fma import build_fma
from bothworlds.kernels.jit.simd_types import (
    CONTEXTS,
    INDEX,
    MASKS,
    PLACES,
    MaskType,
    PackType,
    all_alike,
    is_whole,
    joined,
    joined_places,
    positions,
    vector,
    widened,
)


def _operator(sign: Any, build: Callable[..., Any], *, compares: bool = False) -> None:
    """Define an operator for two packs, or for a pack and a number."""

    class Template(AbstractTemplate):
        def generic(self, args: tuple[Any, ...], kws: Any) -> Any:
            kind = None if kws or len(args) != 2 else joined(*args)
            if not isinstance(kind, PackType):
                return None
            return signature(MASKS[kind] if compares else kind, *args)

    infer_global(sign)(Template)
    for operands in ((PackType, PackType), (PackType, types.Number), (types.Number, PackType)):
        lower_builtin(sign, *operands)(_of_alike(build))


def _of_alike(build: Callable[..., Any]) -> Callable[..., Any]:
    """Return code that first converts its arguments to packs of one type, or to floats."""
    return lambda context, builder, sig, args: build(builder, *all_alike(context, builder, sig.args, args))


def _arithmetic(instruction: str) -> Callable[..., Any]:
    return lambda builder, left, right: getattr(builder, instruction)(left, right)


def _comparison(symbol: str) -> Callable[..., Any]:
    return lambda builder, left, right: builder.fcmp_ordered(symbol, left, right)


def lower_function(function: Callable[..., Any], typed: Any, build: Callable[..., Any]) -> None:
    """Give a function of `arithmetic` or of a GPU module its code, and its type or typing rule."""

    @wraps(function)
    def typer(*kinds: Any) -> Any:
        return typed if isinstance(typed, types.Type) else typed(*kinds)

    type_callable(function)(lambda _: typer)
    lower_builtin(function, *[types.Any] * len(inspect.signature(function).parameters))(build)


def on_cuda(context: Any) -> bool:
    """Return whether code is compiled for a GPU."""
    return ".cuda." in type(context).__module__


def first(*kinds: Any) -> Any:
    """Return the type of the first argument."""
    return kinds[0]


def build_first(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Return the first argument as it is."""
    return args[0]


def _typed_where(mask: Any, yes: Any, no: Any) -> Any:
    if not _is_truth(mask):
        return None
    packs = (mask.pack,) if isinstance(mask, MaskType) else ()
    if is_whole(yes) and is_whole(no):
        return joined_places(yes, no, *(PLACES[pack] for pack in packs))
    return joined(yes, no, *packs)


def _build_where(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    wanted, pairs = sig.return_type, zip(sig.args[1:], args[1:], strict=True)
    return builder.select(args[0], *(widened(context, builder, number, kind, wanted) for kind, number in pairs))


def _is_truth(mask: Any) -> bool:
    return isinstance(mask, MaskType | types.Boolean)


def _build_every(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    if isinstance(sig.args[0], types.Boolean):
        return args[0]
    width = sig.args[0].pack.width
    bits = ir.IntType(width)
    return builder.icmp_unsigned("==", builder.bitcast(args[0], bits), bits(2**width - 1))


def _build_bits(instruction: str) -> Callable[..., Any]:
    return lambda _context, builder, _sig, args: getattr(builder, instruction)(*args)


def _typed_every(mask: Any) -> Any:
    return types.boolean if _is_truth(mask) else None


def _typed_masks(left: Any, right: Any) -> Any:
    return left if _is_truth(left) and left == right else None


def _choose(symbol: str) -> Callable[..., Any]:
    """Return code that selects the right number where the comparison with the left one holds, else the left one."""
    return lambda builder, left, right: builder.select(builder.fcmp_ordered(symbol, right, left), right, left)


def _one_by_one(context: Any, builder: Any, function: Any, kind: Any, number: Any) -> Any:
    """Call a function of a float, given by its type, on a float or on every element of a pack."""
    call = context.get_function(function, function.get_call_type(context.typing_context, (types.float64,), {}))
    if not isinstance(kind, PackType):
        return call(builder, all_alike(context, builder, [kind], [number]))
    result = ir.Constant(vector(kind), ir.Undefined)
    for k in range(kind.width):
        result = builder.insert_element(result, call(builder, [builder.extract_element(number, INDEX(k))]), INDEX(k))
    return result


def _of_math(function: Any, name: str = "") -> Callable[..., Any]:
    """Return code for a function of ``math``; on packs the LLVM intrinsic ``name``, else element by element."""

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.args[0]
        if not (name and isinstance(kind, PackType)):
            return _one_by_one(context, builder, context.typing_context.resolve_value_type(function), kind, args[0])
        of_packs = ir.FunctionType(vector(kind), [vector(kind)])
        intrinsic = cgutils.get_or_insert_function(builder.module, of_packs, f"llvm.{name}.v{kind.width}f64")
        return builder.call(intrinsic, args)

    return build


def _typed_each(function: Any, number: Any) -> Any:
    return joined(number)


def _build_each(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    function, kind = sig.args
    return _one_by_one(context, builder, function, kind, args[1])


def _typed_reduction(number: Any) -> Any:
    return types.float64 if number is CONTEXTS else joined(number)


def _build_reduction(join: Callable[..., Any]) -> Callable[..., Any]:
    """Return code that joins the upper half of eight contexts with the lower until one is left, else does nothing."""

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if sig.args[0] is not CONTEXTS:
            return all_alike(context, builder, sig.args, args)[0]
        pack, half = args[0], WIDTH // 2
        while half:
            halves = ([*range(half)], [*range(half, 2 * half)])
            lower, upper = (builder.shuffle_vector(pack, pack, positions(chosen)) for chosen in halves)
            pack, half = join(builder, lower, upper), half // 2
        return builder.extract_element(pack, INDEX(0))

    return build


for _sign, _instruction in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv"), ("iadd", "fadd")):
    _operator(getattr(operator, _sign), _arithmetic(_instruction))
for _sign, _symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    _operator(getattr(operator, _sign), _comparison(_symbol), compares=True)
lower_function(arithmetic.value, first, build_first)
lower_function(arithmetic.where, _typed_where, _build_where)
lower_function(arithmetic.every, _typed_every, _build_every)
lower_function(arithmetic.either, _typed_masks, _build_bits("or_"))
lower_function(arithmetic.both, _typed_masks, _build_bits("and_"))
lower_function(arithmetic.fused, joined, _of_alike(build_fma))
lower_function(arithmetic.smaller, joined, _of_alike(_choose("<")))
lower_function(arithmetic.larger, joined, _of_alike(_choose(">")))
lower_function(arithmetic.absolute, joined, _of_math(math.fabs, "fabs"))
lower_function(arithmetic.root, joined, _of_math(math.sqrt, "sqrt"))
lower_function(arithmetic.exponential, joined, _of_math(math.exp))
lower_function(arithmetic.logarithm, joined, _of_math(math.log))
lower_function(arithmetic.exponential_less_one, joined, _of_math(math.expm1))
lower_function(arithmetic.each, _typed_each, _build_each)
lower_function(arithmetic.over_contexts, _typed_reduction, _build_reduction(_arithmetic("fadd")))
lower_function(arithmetic.highest_of_contexts, _typed_reduction, _build_reduction(_choose(">")))
