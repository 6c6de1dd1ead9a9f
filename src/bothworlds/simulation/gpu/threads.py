"""The kernels of a GPU as kernel text: load a replication, play a slice of rounds, save it; one thread each.

Between slices a replication is a column of the card's memory: ``saved`` (numbers, replications) and ``places`` (whole
numbers, replications). While a slice is played it lies in the thread's own memory, where what is indexed by constants
alone lives in registers; what is too large for that is played in place.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba.cuda
import numpy as np

from bothworlds.environments.nature import Nature
from bothworlds.kernels import card as card  # its text, to the compiler
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.jit.compile import kernel
from bothworlds.simulation.driver import NatureText, Queue, Record, interpreted_driver
from bothworlds.kernels.entries import KernelText
from bothworlds.kernels.arithmetic import matrix_of
from bothworlds.kernels.random import stream_key

cuda: Any = numba.cuda  # numba's simulator looks for this very object among the globals of a kernel
TOTALS = ENDS = 3


class Sizes(NamedTuple):
    """Constants of a kernel: contexts, arms, dimension, parameters, sizes of its memories, and nature's rule."""

    S: int
    K: int
    d: int
    J: int
    memory: int
    cells: int
    remembered: int
    carried: int
    capacity: int
    hyper: int
    kept: int
    kind: int
    noise: int

    @property
    def parts(self) -> tuple[int, ...]:
        """How many numbers of a column are memory, cells, sums, nature's memory, totals, queue (3), c and hurt."""
        waiting = (self.capacity, self.capacity * self.carried, self.capacity * self.carried)
        return (self.memory, self.cells, self.J, self.remembered, TOTALS, *waiting, self.J, self.J)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each part begins."""
        return tuple(int(n) for n in np.cumsum((0, *self.parts))[:-1])

    @property
    def saved(self) -> int:
        """Numbers of a column."""
        return sum(self.parts)

    @property
    def places(self) -> int:
        """Whole numbers of a column: contexts and arms of waiting decisions, and the ends of their queue."""
        return 2 * self.capacity + ENDS


@kernel
def load(column: Any, start: int, count: int, out: Any) -> None:
    """Copy a part of a column into a thread's own memory."""
    for i in range(count):
        out[i] = column[start + i]


@kernel
def save(column: Any, start: int, count: int, values: Any) -> None:
    """Copy a thread's own memory into a part of a column."""
    for i in range(count):
        column[start + i] = values[i]


def with_constants(text: KernelText, static: tuple[float, ...]) -> Callable[..., None]:
    """Build a function that sets up to three hyper-parameters to constants: what they exclude is not even compiled."""
    known = [*zip(text.static, static, strict=True)][:3]
    (A, a), (B, b), (C, c) = known + [(-1, 0.0)] * (3 - len(known))

    def fill(hyper: Floats, count: int, chosen: Floats) -> None:
        for i in range(count):
            chosen[i] = hyper[i]
        if A >= 0:
            chosen[A] = a
        if B >= 0:
            chosen[B] = b
        if C >= 0:
            chosen[C] = c

    return kernel(fill)


@kernel
def record_of(
    r: int, checkpoints: Ints, expected: Floats, realised: Floats, own_best: Floats, sums: Floats, totals: Floats,
    places: Ints,
) -> Record:  # fmt: skip
    """Return the record of one replication; the card keeps no trace."""
    return Record(
        checkpoints, expected[:, r], realised[:, r], own_best[:, r], sums[:, :, r], totals, places[0:0, 0:2]
    )  # fmt: skip


def kernel_in_threads(
    text: KernelText, nature_text: NatureText, sizes: Sizes, static: tuple[float, ...]
) -> Callable[..., None]:
    """Build the kernel that plays in the threads' own memory, as plain Python."""
    run = kernel(interpreted_driver(text, nature_text))
    fill = with_constants(text, static)
    S, K, d, J, MEMORY, CELLS, REMEMBERED, CARRIED, CAPACITY, HYPER, KEPT, KIND, NOISE = sizes
    _, AT_CELLS, AT_SUMS, AT_REMEMBERED, AT_TOTALS, AT_LOSSES, AT_DIRECTIONS, AT_BASELINES, *_ = sizes.starts
    WAITING = CAPACITY * CARRIED
    number, whole = np.float64, np.int64

    def play(
        fixed: Floats,
        hyper: Floats,
        numbers: Floats,
        tables: Floats,
        path: Floats,
        saved: Floats,
        places: Ints,
        checkpoints: Ints,
        expected: Floats,
        realised: Floats,
        own_best: Floats,
        coefficients: Floats,
        failed: Ints,
        seed: int,
        offset: int,
        first: int,
        last: int,
        delay: int,
        batch: int,
        position: int,
    ) -> None:
        r = cuda.grid(1)
        if r >= saved.shape[1]:
            return
        chosen = cuda.local.array(HYPER, number)
        memory, cells = cuda.local.array(MEMORY, number), cuda.local.array(CELLS, number)
        scratch, scratch_cells = cuda.local.array(MEMORY, number), cuda.local.array(CELLS, number)
        c, sums, hurt = cuda.local.array(J, number), cuda.local.array(J, number), cuda.local.array(J, number)
        remembered, totals = cuda.local.array(REMEMBERED, number), cuda.local.array(TOTALS, number)
        contexts, arms = cuda.local.array(CAPACITY, whole), cuda.local.array(CAPACITY, whole)
        losses, ends = cuda.local.array(CAPACITY, number), cuda.local.array(ENDS, whole)
        directions, baselines = cuda.local.array(WAITING, number), cuda.local.array(WAITING, number)
        column, where = saved[:, r], places[:, r]
        fill(hyper, HYPER, chosen)
        load(column, 0, KEPT, memory)
        load(column, AT_CELLS, CELLS, cells)
        load(column, AT_SUMS, J, sums)
        load(column, AT_REMEMBERED, REMEMBERED, remembered)
        load(column, AT_TOTALS, TOTALS, totals)
        load(column, AT_LOSSES, CAPACITY, losses)
        load(column, AT_DIRECTIONS, WAITING, directions)
        load(column, AT_BASELINES, WAITING, baselines)
        load(where, 0, CAPACITY, contexts)
        load(where, CAPACITY, CAPACITY, arms)
        load(where, 2 * CAPACITY, ENDS, ends)
        nature = Nature(KIND, NOISE, numbers, tables, path, c, sums, hurt, remembered)
        waiting = matrix_of(directions, 0, CAPACITY, CARRIED), matrix_of(baselines, 0, CAPACITY, CARRIED)
        queue = Queue(contexts, arms, losses, waiting[0], waiting[1], ends)
        record = record_of(r, checkpoints, expected, realised, own_best, coefficients, totals, places)
        failed[r] = run(
            fixed, chosen, memory, cells, scratch, scratch_cells, S, K, d, nature, queue, record,
            stream_key(seed, offset + r), first, last, delay, batch, position, True,
        )  # fmt: skip
        save(column, 0, KEPT, memory)
        save(column, AT_CELLS, CELLS, cells)
        save(column, AT_SUMS, J, sums)
        save(column, AT_REMEMBERED, REMEMBERED, remembered)
        save(column, AT_TOTALS, TOTALS, totals)
        save(column, AT_LOSSES, CAPACITY, losses)
        save(column, AT_DIRECTIONS, WAITING, directions)
        save(column, AT_BASELINES, WAITING, baselines)
        save(where, 0, CAPACITY, contexts)
        save(where, CAPACITY, CAPACITY, arms)
        save(where, 2 * CAPACITY, ENDS, ends)

    return play


def kernel_in_place(
    text: KernelText, nature_text: NatureText, sizes: Sizes, static: tuple[float, ...]
) -> Callable[..., None]:
    """Build the kernel that plays in the card's memory, as plain Python: for what threads cannot hold."""
    run = kernel(interpreted_driver(text, nature_text))
    fill = with_constants(text, static)
    S, K, d, J, MEMORY, CELLS, REMEMBERED, CARRIED, CAPACITY, HYPER, _, KIND, NOISE = sizes
    _, AT_CELLS, AT_SUMS, AT_REMEMBERED, AT_TOTALS, AT_LOSSES, AT_DIRECTIONS, AT_BASELINES, AT_C, AT_HURT = sizes.starts

    def play(
        fixed: Floats,
        hyper: Floats,
        numbers: Floats,
        tables: Floats,
        path: Floats,
        saved: Floats,
        places: Ints,
        checkpoints: Ints,
        expected: Floats,
        realised: Floats,
        own_best: Floats,
        coefficients: Floats,
        failed: Ints,
        seed: int,
        offset: int,
        first: int,
        last: int,
        delay: int,
        batch: int,
        position: int,
    ) -> None:
        r = cuda.grid(1)
        if r >= saved.shape[1]:
            return
        chosen = cuda.local.array(HYPER, np.float64)
        fill(hyper, HYPER, chosen)
        column, where = saved[:, r], places[:, r]
        memory, cells = column[:MEMORY], column[AT_CELLS : AT_CELLS + CELLS]
        nature = Nature(
            KIND, NOISE, numbers, tables, path, column[AT_C : AT_C + J], column[AT_SUMS : AT_SUMS + J],
            column[AT_HURT : AT_HURT + J], column[AT_REMEMBERED : AT_REMEMBERED + REMEMBERED],
        )  # fmt: skip
        directions = matrix_of(column, AT_DIRECTIONS, CAPACITY, CARRIED)
        baselines = matrix_of(column, AT_BASELINES, CAPACITY, CARRIED)
        contexts, arms, ends = where[:CAPACITY], where[CAPACITY : 2 * CAPACITY], where[2 * CAPACITY :]
        queue = Queue(contexts, arms, column[AT_LOSSES : AT_LOSSES + CAPACITY], directions, baselines, ends)
        totals = column[AT_TOTALS : AT_TOTALS + TOTALS]
        record = record_of(r, checkpoints, expected, realised, own_best, coefficients, totals, places)
        failed[r] = run(
            fixed, chosen, memory, cells, memory, cells, S, K, d, nature, queue, record,
            stream_key(seed, offset + r), first, last, delay, batch, position, True,
        )  # fmt: skip

    return play
