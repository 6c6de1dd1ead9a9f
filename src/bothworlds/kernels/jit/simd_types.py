"""Types of packs, masks and places for the compiler, and broadcasting of numbers to packs."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typeconv.castgraph import Conversion
from numba.extending import lower_cast, models, register_model

from bothworlds.kernels.arithmetic import MAX_LANES, WIDTH

INDEX = ir.IntType(32)


class PlacesType(types.Type):
    """Integers, one per lane: indices of contexts or arms."""

    def __init__(self, width: int) -> None:
        super().__init__(name=f"Places({width})")
        self.width = width

    def can_convert_from(self, typing_context: Any, other: Any) -> Any:
        """Allow an integer to be broadcast."""
        return Conversion.safe if isinstance(other, types.Integer) else None

    def unify(self, typing_context: Any, other: Any) -> Any:
        """Let a variable that is an integer in one branch and places in another be places."""
        return self if isinstance(other, types.Integer) else None


class PackType(types.Type):
    """Floats: of eight contexts, or of eight or sixteen lanes."""

    def __init__(self, kind: str, width: int) -> None:
        super().__init__(name=f"Pack({kind}, {width})")
        self.width = width

    def can_convert_from(self, typing_context: Any, other: Any) -> Any:
        """Allow a number to be broadcast."""
        return Conversion.safe if isinstance(other, types.Float | types.Integer) else None

    def unify(self, typing_context: Any, other: Any) -> Any:
        """Let a variable that is a number in one branch and a pack in another be a pack."""
        return self if isinstance(other, types.Float | types.Integer) else None


class MaskType(types.Type):
    """Booleans, one per element of a pack."""

    def __init__(self, pack: PackType) -> None:
        super().__init__(name=f"Mask({pack})")
        self.pack = pack


CONTEXTS, LANES, SIXTEEN_LANES = PackType("contexts", WIDTH), PackType("lanes", WIDTH), PackType("lanes", MAX_LANES)
MASKS = {pack: MaskType(pack) for pack in (CONTEXTS, LANES, SIXTEEN_LANES)}
PLACES = {pack: PlacesType(pack.width) for pack in (LANES, SIXTEEN_LANES)}


def vector(kind: Any) -> Any:
    """Return the LLVM type of a pack or places."""
    return ir.VectorType(ir.IntType(64) if isinstance(kind, PlacesType) else ir.DoubleType(), kind.width)


@register_model(PackType)
@register_model(PlacesType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, vector(kind))  # type: ignore[no-untyped-call]


@register_model(MaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), kind.pack.width))  # type: ignore[no-untyped-call]


def joined(*kinds: Any) -> Any:
    """Return the common type of numbers: float, or the one type of packs among them; None if there is none."""
    if not all(isinstance(kind, PackType | types.Float | types.Integer) for kind in kinds):
        return None
    packs = {kind for kind in kinds if isinstance(kind, PackType)}
    return types.float64 if not packs else packs.pop() if len(packs) == 1 else None


def is_whole(kind: Any) -> bool:
    """Return whether a type is one of integers."""
    return isinstance(kind, PlacesType | types.Integer)


def joined_places(*kinds: Any) -> Any:
    """Return the common type of integers: an integer, or one per lane."""
    return next((kind for kind in kinds if isinstance(kind, PlacesType)), types.intp)


def positions(indices: list[int]) -> Any:
    """Return the mask of a shuffle."""
    return ir.Constant(ir.VectorType(INDEX, len(indices)), indices)


def widened(context: Any, builder: Any, number: Any, kind: Any, wanted: Any) -> Any:
    """Return a number, broadcast if the wanted type is a pack or places."""
    if isinstance(kind, PackType | PlacesType):
        return number
    number = context.cast(builder, number, kind, types.intp if is_whole(wanted) else types.float64)
    if not isinstance(wanted, PackType | PlacesType):
        return number
    first = builder.insert_element(ir.Constant(vector(wanted), ir.Undefined), number, INDEX(0))
    return builder.shuffle_vector(first, first, positions([0] * wanted.width))


@lower_cast(types.Number, PackType)  # type: ignore[untyped-decorator]
@lower_cast(types.Integer, PlacesType)  # type: ignore[untyped-decorator]
def _cast(context: Any, builder: Any, kind: Any, wanted: Any, number: Any) -> Any:
    return widened(context, builder, number, kind, wanted)


def all_alike(context: Any, builder: Any, kinds: Any, args: Any) -> list[Any]:
    """Return numbers converted to their common type."""
    wanted = joined(*kinds)
    return [widened(context, builder, number, kind, wanted) for kind, number in zip(kinds, args, strict=True)]
