"""Memory layouts: the fields of an algorithm, declared once.

A record is a NamedTuple whose fields are annotated with their kind and shape:

    class State(NamedTuple):
        t: Annotated[Floats, learnt()]
        theta: Annotated[Floats, learnt("d")]
        pi: Annotated[Floats, planned("S", "K")]

The declarations determine the size of a learner's memory, the position of each field, which fields are saved, which are
copied before an update, and which are recomputed by a plan. Letters are sizes: S contexts, K arms, d dimensions, P
listed policies or plays kept; ``"K*d"`` is a product. A field may itself be such a record; the names of all leaf fields
are unique.

The memory has two arrays. Fields with an axis S and ``packed`` scratch space lie in ``rows``, which a policy reads as
packs of eight contexts; all other fields lie in ``core``. In each array learnt fields come first, then recalled,
planned and scratch fields.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import cube_of, matrix_of, row_of
from bothworlds.kernels.jit.compile import kernel

Kind = Literal["learnt", "recalled", "planned", "scratch", "carried", "given", "known"]
Shape = tuple[str | int, ...]
ORDER: tuple[Kind, ...] = ("learnt", "recalled", "planned", "scratch")
VIEWS: dict[int, Callable[..., Any]] = {1: row_of, 2: matrix_of, 3: cube_of}


class Sizes(NamedTuple):
    """Sizes of a problem: contexts (or blocks of eight), arms, dimensions, listed policies or plays kept."""

    S: int
    K: int
    d: int
    P: int = 0


class FieldSpec(NamedTuple):
    """Declaration of a field: its kind, its shape in letters and numbers, and where it is stored."""

    kind: Kind
    shape: Shape
    packed: bool = False
    same_as: str = ""

    @property
    def in_rows(self) -> bool:
        """Whether the field lies in ``rows``."""
        return self.packed or "S" in self.shape


class Field(NamedTuple):
    """A leaf field of a record: its declaration, the array it lies in, and the shapes of the fields before it there."""

    name: str
    spec: FieldSpec
    array: str
    before: tuple[Shape, ...]

    @property
    def start(self) -> str:
        """Position of the first number, in letters."""
        return " + ".join(count_text(shape) for shape in self.before) or "0"

    def place(self, sizes: Sizes) -> tuple[int, tuple[int, ...]]:
        """Return the position of the first number, and the shape, in numbers."""
        return sum(number(shape, sizes) for shape in self.before), lengths(self.spec.shape, sizes)


def learnt(*shape: str | int, same_as: str = "") -> FieldSpec:
    """Declare a learnt field, which is saved. ``same_as``: a field with the same memory in another shape."""
    return FieldSpec("learnt", shape or (1,), same_as=same_as)


def recalled(*shape: str | int) -> FieldSpec:
    """Declare a field that follows from learnt ones, but is read by `learn` or by the next plan."""
    return FieldSpec("recalled", shape or (1,))


def planned(*shape: str | int) -> FieldSpec:
    """Declare a field that every plan recomputes."""
    return FieldSpec("planned", shape or (1,))


def scratch(*shape: str | int, packed: bool = False) -> FieldSpec:
    """Declare scratch space, undefined between calls; ``packed``: with packs of eight contexts as numbers."""
    return FieldSpec("scratch", shape or (1,), packed=packed)


def carries(*shape: str | int) -> FieldSpec:
    """Declare a field that a decision carries to its feedback."""
    return FieldSpec("carried", shape or (1,))


def fixed(*shape: str | int) -> FieldSpec:
    """Declare a constant array of the problem."""
    return FieldSpec("known", shape)


def given(*shape: str | int) -> FieldSpec:
    """Declare an option that is an array; options that are numbers are annotated ``float``."""
    return FieldSpec("given", shape)


class Nothing(NamedTuple):
    """A record without fields: no scratch space, no options, or no carried arrays."""


NOTHING = Nothing()


def fields_of(record: type) -> Iterator[tuple[str, Any]]:
    """Yield the name of every field with its `FieldSpec`, or with its type if it is a record.

    >>> class Example(NamedTuple):
    ...     t: Annotated[Floats, learnt()]
    ...     eta: float
    >>> dict(fields_of(Example))["t"].kind, dict(fields_of(Example))["eta"].shape
    ('learnt', ())
    """
    for name, hint in get_type_hints(record, include_extras=True).items():
        if get_origin(hint) is Annotated:
            [spec] = [extra for extra in get_args(hint)[1:] if isinstance(extra, FieldSpec)]
            yield name, spec
        elif hint is float:
            yield name, given()
        else:
            yield name, hint


def leaves_of(record: type) -> Iterator[tuple[str, FieldSpec]]:
    """Yield the name and the `FieldSpec` of every leaf field."""
    for name, spec in fields_of(record):
        if isinstance(spec, FieldSpec):
            yield name, spec
        else:
            yield from leaves_of(spec)


def count_text(shape: Shape) -> str:
    """Return the number of entries of a shape, in letters.

    >>> count_text(("S", "K")), count_text(())
    ('S*K', '1')
    """
    return "*".join(str(size) for size in shape) or "1"


@lru_cache(maxsize=4096)  # every start of a policy asks for the same shapes many times
def lengths(shape: Shape, sizes: Sizes) -> tuple[int, ...]:
    """Return the lengths of a shape.

    >>> lengths(("S", "K*d", 2), Sizes(S=3, K=4, d=5))
    (3, 20, 2)
    """
    return tuple(math.prod(int(getattr(sizes, factor, factor)) for factor in str(size).split("*")) for size in shape)


def number(shape: Shape, sizes: Sizes) -> int:
    """Return the number of entries of a shape."""
    return math.prod(lengths(shape, sizes))


def array_of(name: str, spec: FieldSpec) -> str:
    """Return the name of the array that a field lies in."""
    if spec.kind in ("given", "known"):
        return "options" if spec.kind == "given" else "known"
    if spec.kind == "carried":
        return "baseline" if name == "baseline" else "direction"
    return "rows" if spec.in_rows else "core"


class Layout:
    """Positions of the fields of some records in the arrays that they share."""

    def __init__(self, *records: type) -> None:
        specs = [pair for record in records for pair in leaves_of(record)]
        names = sorted(name for name, _ in specs)
        if len(set(names)) < len(names):
            raise ValueError(f"two fields of a learner have the same name: {', '.join(names)}")
        self.leaves = _in_memory_order(specs)

    def extent(self, array: str, *kinds: Kind) -> tuple[Shape, ...]:
        """Return the shapes of all fields in an array, or of those of some kinds."""
        specs = [leaf.spec for leaf in self.leaves.values() if leaf.array == array and not leaf.spec.same_as]
        return tuple(spec.shape for spec in specs if not kinds or spec.kind in kinds)

    def count(self, array: str, sizes: Sizes, *kinds: Kind) -> int:
        """Return the number of entries of all fields in an array, or of those of some kinds."""
        return sum(number(shape, sizes) for shape in self.extent(array, *kinds))

    def counts(self, sizes: Sizes) -> Mapping[str, int]:
        """Return the length of each array."""
        return _counts(self, sizes)

    @property
    def learnt(self) -> tuple[str, ...]:
        """Names of the learnt fields, which are saved."""
        return tuple(name for name, leaf in self.leaves.items() if leaf.spec.kind == "learnt" and not leaf.spec.same_as)

    def part(self, name: str, array: Floats, sizes: Sizes) -> Floats:
        """Return a view of a field in an array, whose other axes (packs or lanes), if any, come last."""
        start, shape = self.leaves[name].place(sizes)
        return array[start : start + math.prod(shape)].reshape(*shape, *array.shape[1:])

    def reader(self, record: type, *arrays: str) -> Callable[..., Any]:
        """Generate the kernel function that returns a record as views of some arrays.

        It takes the arrays, and the sizes as a tuple.
        """
        records: dict[str, type] = {}
        body = self._construction(record, records)
        names: dict[str, Any] = {**records, **{view.__name__: view for view in VIEWS.values()}}
        source = f"def read({', '.join(arrays)}, sizes):\n    S, K, d, P = sizes\n    return {body}"
        return _function_from(source, names, record)

    def pair(self, name: str) -> Callable[..., Any]:
        """Generate the kernel function of core, rows and sizes that returns both numbers of a field of shape (2,)."""
        names: dict[str, Any] = {view.__name__: view for view in VIEWS.values()}
        lines = "S, K, d, P = sizes", f"field = {_view(self.leaves[name])}", "return field[0], field[1]"
        return _function_from("\n    ".join(["def read(core, rows, sizes):", *lines]), names, Layout)

    def _construction(self, record: type, records: dict[str, type]) -> str:
        """Return the expression that constructs a record; add its type and those of its fields to ``records``."""
        constructor = f"record_{len(records)}"
        records[constructor] = record
        arguments = []
        for name, spec in fields_of(record):
            if isinstance(spec, FieldSpec):
                arguments.append(_view(self.leaves[name]))
            else:
                arguments.append(self._construction(spec, records))
        return f"{constructor}({', '.join(arguments)})"


@lru_cache(maxsize=1024)  # called for every field that is written into a policy
def _counts(layout: Layout, sizes: Sizes) -> Mapping[str, int]:
    """Return the length of each array."""
    return {array: layout.count(array, sizes) for array in ("core", "rows", "options", "known")}


def counter(*extents: tuple[Shape, ...]) -> Callable[..., Any]:
    """Generate the kernel function of the sizes that returns the number of entries of each extent."""
    counts = [" + ".join(count_text(shape) for shape in extent) or "0" for extent in extents]
    return _function_from(f"def read(sizes):\n    S, K, d, P = sizes\n    return {', '.join(counts)}", {}, Layout)


def _in_memory_order(specs: list[tuple[str, FieldSpec]]) -> dict[str, Field]:
    """Return the fields in the order in which they lie in memory, then those that share the memory of another field."""
    before: dict[str, tuple[Shape, ...]] = {}
    leaves: dict[str, Field] = {}
    for kind in (*ORDER, "carried", "given", "known"):
        for name, spec in specs:
            if spec.kind == kind and not spec.same_as:
                array = array_of(name, spec)
                leaves[name] = Field(name, spec, array, before.get(array, ()))
                before[array] = (*before.get(array, ()), spec.shape)
    for name, spec in specs:
        if spec.same_as:
            leaves[name] = leaves[spec.same_as]._replace(name=name, spec=spec)
    return leaves


def _view(leaf: Field) -> str:
    """Return the expression that views a field in its array, or that reads an option that is a number."""
    shape = leaf.spec.shape
    if not shape:
        return f"{leaf.array}[{leaf.start}]"
    return f"{VIEWS[len(shape)].__name__}({leaf.array}, {leaf.start}, {', '.join(str(size) for size in shape)})"


def _function_from(source: str, names: dict[str, Any], owner: type) -> Callable[..., Any]:
    """Compile the source of a function called ``read`` to a kernel function.

    The disk cache identifies functions by module and name, so the name contains a hash of the source.
    """
    exec(compile(source, f"<{owner.__qualname__}>", "exec"), names)
    read: Callable[..., Any] = names["read"]
    source_hash = hashlib.blake2b(source.encode(), digest_size=8).hexdigest()
    read.__module__, read.__qualname__ = owner.__module__, f"{owner.__qualname__}.read_{source_hash}"
    return kernel(read)


def flat(options: Any) -> Floats:
    """Return a record of options as one array: its numbers and flattened arrays, concatenated.

    >>> class Options(NamedTuple):
    ...     eta: float
    ...     points: Annotated[Floats, given("P", "d")]
    >>> flat(Options(0.5, np.ones((2, 2)))).tolist()
    [0.5, 1.0, 1.0, 1.0, 1.0]
    """
    parts = [flat(value) if hasattr(value, "_fields") else np.ravel(value) for value in options]
    return np.concatenate([np.zeros(0), *parts]).astype(np.float64)
