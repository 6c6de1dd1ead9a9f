"""What kernel text may do with a number, so that the same text runs on one number or on many at once.

A *number* is a float, or a pack: of eight contexts of one learner (a `Policy`), or of eight or sixteen replications of
a simulation (lanes). Sums, products and comparisons act number by number, and a float meets a pack as so many equal
ones. A branch must hold for all of them, so kernel text chooses with `where` and stops a loop with `every`.
Interpreted, a pack is a NumPy array whose last axis has its length; compiled, it is one register or two (`wide`). No
operation is reordered, so each gets bit for bit what it would get alone.
"""

import math
from typing import Any

import numpy as np

from bothworlds.kernels.jit.fma import fma_of_arrays, fma_of_floats

WIDTH = 8
MORE = 16  # lanes, where memory is small: two registers at a time hide what one waits for
Number = Any  # a float, or a pack
Place = int  # or one of each lane: to mypy a whole number, for most text knows no other


def value(number: Number) -> Number:
    """Return a number that later writes to the array it comes from do not change."""
    return number.copy() if isinstance(number, np.ndarray) else number


def fused(left: Number, right: Number, more: Number) -> Number:
    """Return left * right + more with a single rounding, as IEEE 754 defines it: the same on every processor.

    Compilers may not fuse a product and a sum of their own accord, for interpreted text would round twice. Where the
    text asks for it all round once, and it takes half the time.

    >>> fused(1.0 + 2.0**-52, 1.0 - 2.0**-52, -1.0) == -(2.0**-104)
    True
    """
    if isinstance(left, float) and isinstance(right, float) and isinstance(more, float):
        return fma_of_floats()(left, right, more)
    return fma_of_arrays()(left, right, more)


def where(mask: Any, yes: Number, no: Number) -> Number:
    """Return yes where the mask holds, else no; both are computed.

    >>> where(1.0 < 2.0, 3.0, 4.0)
    3.0
    """
    if isinstance(mask, np.ndarray):
        return np.where(mask, yes, no)
    return yes if mask else no


def every(mask: Any) -> bool:
    """Tell whether the mask holds everywhere."""
    return bool(mask.all() if isinstance(mask, np.ndarray) else mask)


def either(left: Any, right: Any) -> Any:
    """Return where one mask or the other holds."""
    return left | right


def both(left: Any, right: Any) -> Any:
    """Return where both masks hold."""
    return left & right


def smaller(left: Number, right: Number) -> Number:
    """Return the smaller number; the left one where they do not compare."""
    return where(right < left, right, left)


def larger(left: Number, right: Number) -> Number:
    """Return the larger number; the left one where they do not compare."""
    return where(right > left, right, left)


def absolute(number: Number) -> Number:
    """Return |number|."""
    return abs(number)


def root(number: Number) -> Number:
    """Return the square root."""
    return np.sqrt(number) if isinstance(number, np.ndarray) else math.sqrt(number)


def exponential(number: Number) -> Number:
    """Return exp(number), the same for a pack as for its numbers one by one."""
    return np.array([math.exp(n) for n in number]) if isinstance(number, np.ndarray) else math.exp(number)


def logarithm(number: Number) -> Number:
    """Return log(number) of a positive number."""
    return np.array([math.log(n) for n in number]) if isinstance(number, np.ndarray) else math.log(number)


def exponential_less_one(number: Number) -> Number:
    """Return exp(number) - 1 without cancellation."""
    return np.array([math.expm1(n) for n in number]) if isinstance(number, np.ndarray) else math.expm1(number)


def each(function: Any, number: Number) -> Number:
    """Return kernel text of a float, one number after the other: for what packs have no instructions for.

    >>> each(math.floor, np.array([0.5, 2.5])).tolist()
    [0, 2]
    """
    return np.array([function(n) for n in number]) if isinstance(number, np.ndarray) else function(number)


def over_contexts(number: Number) -> Number:
    """Return the sum over the contexts of a block, the upper half added to the lower until one is left.

    A float is one context, and eight replications are no contexts: they come back as they are.

    >>> float(over_contexts(np.arange(8.0)))
    28.0
    """
    while isinstance(number, np.ndarray) and number.size > 1:
        half = number.size // 2
        number = number[:half] + number[half:]
    return float(number[0]) if isinstance(number, np.ndarray) else number


def highest_of_contexts(number: Number) -> Number:
    """Return the largest of the contexts of a block, by halves like `over_contexts`."""
    while isinstance(number, np.ndarray) and number.size > 1:
        half = number.size // 2
        number = larger(number[:half], number[half:])
    return float(number[0]) if isinstance(number, np.ndarray) else number


def at(table: Any, x: Place, a: Place) -> Number:
    """Return the entry of context x and arm a of a table (blocks, arms) of numbers, or of (contexts, arms).

    Of lanes, each has its own x, and its own table if it is one of packs.
    """
    if table.ndim == 3:
        return float(table[x // WIDTH, a, x % WIDTH])
    return float(table[x, a])


def add_at(table: Any, x: Place, a: Place, number: Number) -> None:
    """Add a number to the entry of context x and arm a; of lanes, to that of each lane's own x and a.

    >>> table = np.zeros((1, 2, 8))
    >>> add_at(table, 3, 1, 0.5)
    >>> float(table[0, 1, 3])
    0.5
    """
    if table.ndim == 3:
        table[x // WIDTH, a, x % WIDTH] += number
    else:
        table[x, a] += number


def count_of(column: Any) -> int:
    """Return how many contexts a column of numbers has, those beyond the last that fill a block included."""
    return int(column.shape[0]) * (WIDTH if column.ndim == 2 else 1)


def feature(z: Any, x: Place, a: Place, i: int) -> Number:
    """Return feature i of context x and arm a, of each lane where they are several."""
    if z.ndim == 4:
        return float(z[x // WIDTH, a, i, x % WIDTH])
    return float(z[x, a, i])


def row_of(memory: Any, start: int, count: int) -> Any:
    """Return ``count`` numbers of a memory from a position on."""
    return memory[start : start + count]


def matrix_of(memory: Any, start: int, rows: int, columns: int) -> Any:
    """Return the numbers of a memory from a position on as a matrix."""
    return memory[start : start + rows * columns].reshape((rows, columns, *memory.shape[1:]))


def cube_of(memory: Any, start: int, first: int, second: int, third: int) -> Any:
    """Return the numbers of a memory from a position on as an array of three axes."""
    return memory[start : start + first * second * third].reshape((first, second, third, *memory.shape[1:]))


def flat_of(rows: Any) -> Any:
    """Return the numbers of a matrix one after the other, or the vectors of a cube: one axis less."""
    return rows.reshape((rows.shape[0] * rows.shape[1], *rows.shape[2:]))


def write_turned(weight: Number, z: Any, j: int, out: Any, start: int) -> None:
    """Write eight features of eight contexts, times a weight, as eight packs of features, one of each context.

    They are the features of the j-th pack of columns, zeros beyond the last, and go to out[j] from a position on.
    """
    for k in range(WIDTH):
        i = WIDTH * j + k
        out[j, start : start + WIDTH, k] = weight * z[i] if i < len(z) else 0.0


def lane_of(memory: Any, lane: int) -> Any:
    """Return one of several replications from a memory whose last axis counts them, or from an array of packs."""
    return memory[..., lane]


def contexts(memory: Any) -> Any:
    """Read memory whose last axis has length eight as numbers of eight contexts."""
    return memory


def lanes(memory: Any) -> Any:
    """Read memory whose last axis has length eight as numbers of eight replications; compiled text only."""
    return memory


def more_lanes(memory: Any) -> Any:
    """Read memory whose last axis has length sixteen as numbers of sixteen replications; compiled text only."""
    return memory


def alone(memory: Any) -> Any:
    """Read memory as floats, one context and one replication at a time."""
    return memory
