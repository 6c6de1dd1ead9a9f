"""The types of several numbers at once to the compiler, and how a number becomes several equal ones."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typeconv.castgraph import Conversion
from numba.extending import lower_cast, models, register_model

from bothworlds.kernels.arithmetic import MORE, WIDTH

INDEX = ir.IntType(32)


class PlacesType(types.Type):
    """Several whole numbers, contexts or arms, one of each lane."""

    def __init__(self, width: int) -> None:
        super().__init__(name=f"Places({width})")
        self.width = width

    def can_convert_from(self, typing_context: Any, other: Any) -> Any:
        """Let a whole number become several equal ones."""
        return Conversion.safe if isinstance(other, types.Integer) else None

    def unify(self, typing_context: Any, other: Any) -> Any:
        """Let a variable that holds one number here and several there hold several."""
        return self if isinstance(other, types.Integer) else None


class PackType(types.Type):
    """Several floats: of eight contexts, or of eight or sixteen lanes."""

    def __init__(self, kind: str, width: int) -> None:
        super().__init__(name=f"Pack({kind}, {width})")
        self.width = width

    def can_convert_from(self, typing_context: Any, other: Any) -> Any:
        """Let a float become several equal ones."""
        return Conversion.safe if isinstance(other, types.Float | types.Integer) else None

    def unify(self, typing_context: Any, other: Any) -> Any:
        """Let a variable that holds a float here and a pack there hold a pack."""
        return self if isinstance(other, types.Float | types.Integer) else None


class MaskType(types.Type):
    """Truth values, of a pack."""

    def __init__(self, pack: PackType) -> None:
        super().__init__(name=f"Mask({pack})")
        self.pack = pack


CONTEXTS, LANES, MORE_LANES = PackType("contexts", WIDTH), PackType("lanes", WIDTH), PackType("lanes", MORE)
MASKS = {pack: MaskType(pack) for pack in (CONTEXTS, LANES, MORE_LANES)}
PLACES = {pack: PlacesType(pack.width) for pack in (LANES, MORE_LANES)}


def vector(kind: Any) -> Any:
    """Return how the machine sees a pack or places."""
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
    """Return the type of numbers together: float, or that of the one kind of pack among them."""
    if not all(isinstance(kind, PackType | types.Float | types.Integer) for kind in kinds):
        return None
    packs = {kind for kind in kinds if isinstance(kind, PackType)}
    return types.float64 if not packs else packs.pop() if len(packs) == 1 else None


def is_whole(kind: Any) -> bool:
    """Tell whether a type is one of whole numbers."""
    return isinstance(kind, PlacesType | types.Integer)


def joined_places(*kinds: Any) -> Any:
    """Return the type of whole numbers together: one, or one of each lane."""
    return next((kind for kind in kinds if isinstance(kind, PlacesType)), types.intp)


def positions(chosen: list[int]) -> Any:
    """Return the positions of a shuffle."""
    return ir.Constant(ir.VectorType(INDEX, len(chosen)), chosen)


def widened(context: Any, builder: Any, number: Any, kind: Any, wanted: Any) -> Any:
    """Return a number as a pack where a pack is wanted: the same many times."""
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
    """Return numbers as floats or packs, all of the same kind."""
    wanted = joined(*kinds)
    return [widened(context, builder, number, kind, wanted) for kind, number in zip(kinds, args, strict=True)]
