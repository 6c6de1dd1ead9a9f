"""The kernels of a GPU as kernel text: load a replication, play a slice of rounds, save it; one thread each.

Between slices a replication is a column of the GPU's memory. While a slice is played it lies in the thread's own
memory, where what is indexed by constants alone lives in registers; what is too large for that is played in place.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba.cuda
import numpy as np

from bothworlds.environments.nature import Nature, NatureText
from bothworlds.kernels.arithmetic import matrix_of, row_of
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.contract import KernelText
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.random import stream_key
from bothworlds.simulation.driver import Learner, Queue, Record, Slice, interpreted_driver
from bothworlds.simulation.gpu import anew as anew  # its text, to the compiler
from bothworlds.simulation.gpu import in_place as in_place  # the same
from bothworlds.simulation.gpu import in_tiles as in_tiles  # the same
from bothworlds.simulation.gpu import straight as straight  # the same
from bothworlds.simulation.gpu import tiled_factors as tiled_factors  # the same
from bothworlds.simulation.gpu.columns import Extents, Parts

cuda: Any = numba.cuda  # numba's simulator looks for this very object among the globals of a kernel


class Given(NamedTuple):
    """What all replications share and none changes: the learner's problem and options, nature, the checkpoints."""

    known: Floats
    options: Floats
    constants: Floats
    tables: Floats
    path: Floats
    checkpoints: Ints


class Columns(NamedTuple):
    """The replications between slices: reals (parts, replications), and places, which are whole."""

    reals: Floats
    places: Ints


class Noted(NamedTuple):
    """What the replications leave at the checkpoints, in the last axis; ``failed`` has the rounds of failures, or 0.

    There is one row of ``rates`` for learners that have none.
    """

    expected: Floats
    realised: Floats
    own_best: Floats
    sums: Floats
    spent: Floats
    rates: Floats
    failed: Ints


class Stream(NamedTuple):
    """Where random numbers come from: the seed of the run, and the number of the first replication here."""

    seed: int
    first: int


def viewing(extents: Extents) -> Callable[..., Parts]:
    """Build the function that finds the parts of a replication in its columns, as kernel text."""
    CORE, ROWS, SUMS, STATE, TOTALS, LOSSES, DIRECTIONS, BASELINES, C, HURT, CONTEXTS, ARMS, ENDS = zip(
        extents.starts, extents.counts, strict=True
    )

    def view(columns: Columns, r: int) -> Parts:
        reals, places = columns.reals[:, r], columns.places[:, r]
        return Parts(
            row_of(reals, CORE[0], CORE[1]),
            row_of(reals, ROWS[0], ROWS[1]),
            row_of(reals, SUMS[0], SUMS[1]),
            row_of(reals, STATE[0], STATE[1]),
            row_of(reals, TOTALS[0], TOTALS[1]),
            row_of(reals, LOSSES[0], LOSSES[1]),
            row_of(reals, DIRECTIONS[0], DIRECTIONS[1]),
            row_of(reals, BASELINES[0], BASELINES[1]),
            row_of(reals, C[0], C[1]),
            row_of(reals, HURT[0], HURT[1]),
            row_of(places, CONTEXTS[0], CONTEXTS[1]),
            row_of(places, ARMS[0], ARMS[1]),
            row_of(places, ENDS[0], ENDS[1]),
        )

    return kernel(view)


@kernel
def copy_first(values: Any, count: int, out: Any) -> None:
    """Copy so many numbers."""
    for i in range(count):
        out[i] = values[i]


@kernel
def copy(values: Any, out: Any) -> None:
    """Copy all numbers."""
    copy_first(values, values.shape[0], out)


@kernel
def copy_parts(parts: Parts, core: int, rows: int, out: Parts) -> None:
    """Load or save what outlives a slice: so many numbers of core and rows, and all but nature's c and hurt."""
    copy_first(parts.core, core, out.core)
    copy_first(parts.rows, rows, out.rows)
    copy(parts.sums, out.sums)
    copy(parts.state, out.state)
    copy(parts.totals, out.totals)
    copy(parts.losses, out.losses)
    copy(parts.directions, out.directions)
    copy(parts.baselines, out.baselines)
    copy(parts.contexts, out.contexts)
    copy(parts.arms, out.arms)
    copy(parts.ends, out.ends)


def with_constants(text: KernelText, static: tuple[float, ...], count: int) -> Callable[..., None]:
    """Build a function that sets up to three options to constants: what they exclude is not even compiled."""
    known = [*zip(text.static, static, strict=True)][:3]
    (A, a), (B, b), (C, c) = known + [(-1, 0.0)] * (3 - len(known))

    def fill(options: Floats, chosen: Floats) -> None:
        for i in range(count):
            chosen[i] = options[i]
        if A >= 0:
            chosen[A] = a
        if B >= 0:
            chosen[B] = b
        if C >= 0:
            chosen[C] = c

    return kernel(fill)


@kernel
def record_of(given: Given, columns: Columns, noted: Noted, r: int, totals: Floats) -> Record:
    """Return the record of one replication; a GPU keeps no trace."""
    kept = noted.expected[:, r], noted.realised[:, r], noted.own_best[:, r]
    more = noted.sums[:, :, r], noted.spent[:, r], noted.rates[:, :, r]
    no_trace = columns.places[0:0, 0:2]
    return Record(given.checkpoints, kept[0], kept[1], kept[2], more[0], more[1], more[2], totals, no_trace)


def playing(text: KernelText, nature_text: NatureText, extents: Extents) -> Callable[..., int]:
    """Build the function that plays a slice of one replication, wherever its parts lie; as kernel text."""
    run = kernel(interpreted_driver(text, nature_text, extents.rates))
    SIZES, CAPACITY, KIND, NOISE = tuple(extents.sizes), extents.capacity, extents.kind, extents.noise
    DIRECTION, BASELINE = extents.carried

    def play(learner: Learner, parts: Parts, given: Given, record: Record, key: int, part: Slice) -> int:
        rule = given.constants, given.tables, given.path
        nature = Nature(KIND, NOISE, rule[0], rule[1], rule[2], parts.c, parts.sums, parts.hurt, parts.state)
        directions = matrix_of(parts.directions, 0, CAPACITY, DIRECTION)
        baselines = matrix_of(parts.baselines, 0, CAPACITY, BASELINE)
        queue = Queue(parts.contexts, parts.arms, parts.losses, directions, baselines, parts.ends)
        return run(learner, SIZES, nature, queue, record, key, part)

    return kernel(play)


def kernel_in_threads(
    text: KernelText, nature_text: NatureText, extents: Extents, static: tuple[float, ...]
) -> Callable[..., None]:
    """Build the kernel that plays in the threads' own memory, as plain Python."""
    fill, advance = with_constants(text, static, extents.options), playing(text, nature_text, extents)
    OPTIONS, view = max(1, extents.options), viewing(extents)
    CORE, ROWS, SUMS, STATE, TOTALS, LOSSES, DIRECTIONS, BASELINES, C, HURT, CONTEXTS, ARMS, ENDS = extents.counts
    (KEPT, KEPT_ROWS), PLANNED = extents.kept, extents.planned
    number, whole = np.float64, np.int64

    def play(given: Given, columns: Columns, noted: Noted, stream: Stream, part: Slice) -> None:
        r = cuda.grid(1)
        if r >= columns.reals.shape[1]:
            return
        parts = Parts(
            cuda.local.array(CORE, number),
            cuda.local.array(ROWS, number),
            cuda.local.array(SUMS, number),
            cuda.local.array(STATE, number),
            cuda.local.array(TOTALS, number),
            cuda.local.array(LOSSES, number),
            cuda.local.array(DIRECTIONS, number),
            cuda.local.array(BASELINES, number),
            cuda.local.array(C, number),
            cuda.local.array(HURT, number),
            cuda.local.array(CONTEXTS, whole),
            cuda.local.array(ARMS, whole),
            cuda.local.array(ENDS, whole),
        )
        scratch = cuda.local.array(CORE, number), cuda.local.array(ROWS, number)
        options = cuda.local.array(OPTIONS, number)
        fill(given.options, options)
        learner = Learner(given.known, options, parts.core, parts.rows, scratch[0], scratch[1])
        saved = view(columns, r)
        copy_parts(saved, KEPT, KEPT_ROWS, parts)
        record, key = record_of(given, columns, noted, r, parts.totals), stream_key(stream.seed, stream.first + r)
        noted.failed[r] = advance(learner, parts, given, record, key, part)
        copy_parts(parts, KEPT, PLANNED, saved)

    return play


def kernel_in_place(
    text: KernelText, nature_text: NatureText, extents: Extents, static: tuple[float, ...]
) -> Callable[..., None]:
    """Build the kernel that plays in the GPU's memory, as plain Python: for what threads cannot hold."""
    fill, advance = with_constants(text, static, extents.options), playing(text, nature_text, extents)
    OPTIONS, view = max(1, extents.options), viewing(extents)
    number = np.float64

    def play(given: Given, columns: Columns, noted: Noted, stream: Stream, part: Slice) -> None:
        r = cuda.grid(1)
        if r >= columns.reals.shape[1]:
            return
        options = cuda.local.array(OPTIONS, number)
        fill(given.options, options)
        parts = view(columns, r)
        learner = Learner(given.known, options, parts.core, parts.rows, parts.core, parts.rows)
        record, key = record_of(given, columns, noted, r, parts.totals), stream_key(stream.seed, stream.first + r)
        noted.failed[r] = advance(learner, parts, given, record, key, part)

    return play
