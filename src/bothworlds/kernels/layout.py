"""A learner's memory, declared once.

A record is a NamedTuple whose fields say what they are and how large:

    class State(NamedTuple):
        t: Annotated[Floats, learnt()]
        theta: Annotated[Floats, learnt("d")]
        pi: Annotated[Floats, planned("S", "K")]

From the declarations follow how many numbers a learner takes, where each part lies, what a file keeps, what is copied
before an update and what a plan computes afresh. Letters are sizes: S contexts, K arms, d dimensions, P policies that
are listed; ``"K*d"`` is a product. A field may itself be such a record; the names of the fields at the ends are unique.

The memory has two parts. What has an entry per context, and scratch space that is ``packed``, lies in ``rows``: a
policy reads it as packs of eight contexts. The rest is the ``core``. In each, what is learnt comes first, then what is
recalled, then what is planned, then scratch space.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from bothworlds.kernels.arithmetic import cube_of, matrix_of, row_of
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel

Kind = Literal["learnt", "recalled", "planned", "scratch", "carried", "given", "known"]
Shape = tuple[str | int, ...]
ORDER: tuple[Kind, ...] = ("learnt", "recalled", "planned", "scratch")
VIEWS: dict[int, Callable[..., Any]] = {1: row_of, 2: matrix_of, 3: cube_of}


class Sizes(NamedTuple):
    """How large a problem is: contexts (or blocks of eight of them), arms, dimensions, listed policies."""

    S: int
    K: int
    d: int
    P: int = 0


class Part(NamedTuple):
    """What a field of a record is: its kind, its shape in letters and numbers, and where it lies."""

    kind: Kind
    shape: Shape
    packed: bool = False
    same_as: str = ""

    @property
    def in_rows(self) -> bool:
        """Whether it lies in the rows."""
        return self.packed or "S" in self.shape


class Leaf(NamedTuple):
    """A field at the end of a record: what it is, the array it lies in, and the shapes of what lies before it there."""

    name: str
    part: Part
    array: str
    before: tuple[Shape, ...]

    @property
    def start(self) -> str:
        """Where it begins, in letters."""
        return " + ".join(count_text(shape) for shape in self.before) or "0"

    def place(self, sizes: Sizes) -> tuple[int, tuple[int, ...]]:
        """Return where it begins and its shape, in numbers."""
        return sum(number(shape, sizes) for shape in self.before), lengths(self.part.shape, sizes)


def learnt(*shape: str | int, same_as: str = "") -> Part:
    """Declare what is learnt: a file keeps it. ``same_as`` names a field whose memory this is in another shape."""
    return Part("learnt", shape or (1,), same_as=same_as)


def recalled(*shape: str | int) -> Part:
    """Declare what follows from what is learnt, but is looked at again by `learn` or by the next plan."""
    return Part("recalled", shape or (1,))


def planned(*shape: str | int) -> Part:
    """Declare what every plan computes afresh."""
    return Part("planned", shape or (1,))


def scratch(*shape: str | int, packed: bool = False) -> Part:
    """Declare space that nothing outlives a call in; ``packed`` where a number stands for a block of contexts."""
    return Part("scratch", shape or (1,), packed=packed)


def carries(*shape: str | int) -> Part:
    """Declare what a decision carries to its feedback."""
    return Part("carried", shape or (1,))


def fixed(*shape: str | int) -> Part:
    """Declare what is known of the problem and never changes."""
    return Part("known", shape)


def given(*shape: str | int) -> Part:
    """Declare an option that is an array; single numbers are plain floats."""
    return Part("given", shape)


class Nothing(NamedTuple):
    """A record without fields: no scratch space, no options, or nothing to carry."""


NOTHING = Nothing()


def parts_of(record: type) -> Iterator[tuple[str, Any]]:
    """Yield name and part, or record, of every field.

    >>> class Example(NamedTuple):
    ...     t: Annotated[Floats, learnt()]
    ...     eta: float
    >>> dict(parts_of(Example))["t"].kind, dict(parts_of(Example))["eta"].shape
    ('learnt', ())
    """
    for name, hint in get_type_hints(record, include_extras=True).items():
        if get_origin(hint) is Annotated:
            [part] = [extra for extra in get_args(hint)[1:] if isinstance(extra, Part)]
            yield name, part
        elif hint is float:
            yield name, given()
        else:
            yield name, hint


def leaves_of(record: type) -> Iterator[tuple[str, Part]]:
    """Yield name and part of every field at an end."""
    for name, part in parts_of(record):
        if isinstance(part, Part):
            yield name, part
        else:
            yield from leaves_of(part)


def count_text(shape: Shape) -> str:
    """Return how many numbers a shape has, in letters.

    >>> count_text(("S", "K")), count_text(())
    ('S*K', '1')
    """
    return "*".join(str(size) for size in shape) or "1"


@lru_cache(maxsize=4096)  # every start of a policy asks for the same ones many times
def lengths(shape: Shape, sizes: Sizes) -> tuple[int, ...]:
    """Return the lengths of a shape.

    >>> lengths(("S", "K*d", 2), Sizes(S=3, K=4, d=5))
    (3, 20, 2)
    """
    return tuple(math.prod(int(getattr(sizes, factor, factor)) for factor in str(size).split("*")) for size in shape)


def number(shape: Shape, sizes: Sizes) -> int:
    """Return how many numbers a shape has."""
    return math.prod(lengths(shape, sizes))


def array_of(name: str, part: Part) -> str:
    """Return the array that a field lies in."""
    if part.kind in ("given", "known"):
        return "options" if part.kind == "given" else "known"
    if part.kind == "carried":
        return "baseline" if name == "baseline" else "direction"
    return "rows" if part.in_rows else "core"


class Layout:
    """Where the fields of records lie in the arrays that they share."""

    def __init__(self, *records: type) -> None:
        found = [pair for record in records for pair in leaves_of(record)]
        names = sorted(name for name, _ in found)
        if len(set(names)) < len(names):
            raise ValueError(f"two fields of a learner have the same name: {', '.join(names)}")
        self.leaves = _placed(found)

    def extent(self, array: str, *kinds: Kind) -> tuple[Shape, ...]:
        """Return the shapes of all that lies in an array, or of what is of some kinds."""
        inside = [leaf.part for leaf in self.leaves.values() if leaf.array == array and not leaf.part.same_as]
        return tuple(part.shape for part in inside if not kinds or part.kind in kinds)

    def count(self, array: str, sizes: Sizes, *kinds: Kind) -> int:
        """Return how many numbers that is."""
        return sum(number(shape, sizes) for shape in self.extent(array, *kinds))

    def counts(self, sizes: Sizes) -> Mapping[str, int]:
        """Return how many numbers each array takes."""
        return _counts(self, sizes)

    @property
    def learnt(self) -> tuple[str, ...]:
        """Names of what a file keeps."""
        return tuple(name for name, leaf in self.leaves.items() if leaf.part.kind == "learnt" and not leaf.part.same_as)

    def part(self, name: str, array: Floats, sizes: Sizes) -> Floats:
        """Return a field of an array whose further axes, if it has any, are packs or lanes."""
        start, shape = self.leaves[name].place(sizes)
        return array[start : start + math.prod(shape)].reshape(*shape, *array.shape[1:])

    def reader(self, record: type, *arrays: str) -> Callable[..., Any]:
        """Write the function, as kernel text, that names the fields of a record in the arrays it is given.

        It takes the arrays, and the sizes as a tuple.
        """
        records: dict[str, type] = {}
        body = self._construction(record, records)
        names: dict[str, Any] = {**records, **{view.__name__: view for view in VIEWS.values()}}
        text = f"def read({', '.join(arrays)}, sizes):\n    S, K, d, P = sizes\n    return {body}"
        return _written(text, names, record)

    def pair(self, name: str) -> Callable[..., Any]:
        """Write the function of core, rows and the sizes, as kernel text, that reads a field of two numbers."""
        names: dict[str, Any] = {view.__name__: view for view in VIEWS.values()}
        lines = "S, K, d, P = sizes", f"found = {_view(self.leaves[name])}", "return found[0], found[1]"
        return _written("\n    ".join(["def read(core, rows, sizes):", *lines]), names, Layout)

    def _construction(self, record: type, records: dict[str, type]) -> str:
        """Return the text that makes a record."""
        own = f"record_{len(records)}"
        records[own] = record
        found = []
        for name, part in parts_of(record):
            if isinstance(part, Part):
                found.append(_view(self.leaves[name]))
            else:
                found.append(self._construction(part, records))
        return f"{own}({', '.join(found)})"


@lru_cache(maxsize=1024)  # every field that is put into a policy asks for them
def _counts(layout: Layout, sizes: Sizes) -> Mapping[str, int]:
    """Return how many numbers each array takes."""
    return {array: layout.count(array, sizes) for array in ("core", "rows", "options", "known")}


def counter(*extents: tuple[Shape, ...]) -> Callable[..., Any]:
    """Write the function of the sizes, as kernel text, that counts the numbers of some extents."""
    counts = [" + ".join(count_text(shape) for shape in extent) or "0" for extent in extents]
    return _written(f"def read(sizes):\n    S, K, d, P = sizes\n    return {', '.join(counts)}", {}, Layout)


def _placed(found: list[tuple[str, Part]]) -> dict[str, Leaf]:
    """Return the fields in the order in which they lie in memory, then those that share the memory of another one."""
    before: dict[str, tuple[Shape, ...]] = {}
    leaves: dict[str, Leaf] = {}
    for kind in (*ORDER, "carried", "given", "known"):
        for name, part in found:
            if part.kind == kind and not part.same_as:
                array = array_of(name, part)
                leaves[name] = Leaf(name, part, array, before.get(array, ()))
                before[array] = (*before.get(array, ()), part.shape)
    for name, part in found:
        if part.same_as:
            leaves[name] = leaves[part.same_as]._replace(name=name, part=part)
    return leaves


def _view(leaf: Leaf) -> str:
    """Return the text that names a field: a part of its array, or one number of the options."""
    shape = leaf.part.shape
    if not shape:
        return f"{leaf.array}[{leaf.start}]"
    return f"{VIEWS[len(shape)].__name__}({leaf.array}, {leaf.start}, {', '.join(str(size) for size in shape)})"


def _written(text: str, names: dict[str, Any], owner: type) -> Callable[..., Any]:
    """Make a function called ``read`` of its text.

    The disk cache knows functions by module and name, so the name says all that the text depends on.
    """
    exec(compile(text, f"<{owner.__qualname__}>", "exec"), names)
    read: Callable[..., Any] = names["read"]
    mark = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    read.__module__, read.__qualname__ = owner.__module__, f"{owner.__qualname__}.read_{mark}"
    return kernel(read)


def flat(options: Any) -> Floats:
    """Return a record of options as one array: its numbers and arrays one after the other.

    >>> class Options(NamedTuple):
    ...     eta: float
    ...     points: Annotated[Floats, given("P", "d")]
    >>> flat(Options(0.5, np.ones((2, 2)))).tolist()
    [0.5, 1.0, 1.0, 1.0, 1.0]
    """
    parts = [flat(value) if hasattr(value, "_fields") else np.ravel(value) for value in options]
    return np.concatenate([np.zeros(0), *parts]).astype(np.float64)
