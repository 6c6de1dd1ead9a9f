"""GPU kernels: a thread loads a replication, plays a slice of rounds, and saves it.

Between slices a replication is a column of the GPU's global memory. During a slice it is in the thread's local memory,
where arrays indexed by constants live in registers. Replications that are too large for that stay in global memory.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba.cuda
import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.environments.dynamics import Nature, NatureKernel
from bothworlds.kernels.arithmetic import matrix_of, row_of
from bothworlds.kernels.contract import Kernel
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.random import stream_key
from bothworlds.simulation.gpu import branchless_reciprocal as branchless_reciprocal  # registers functions for GPUs
from bothworlds.simulation.gpu.memory_layout import Extents, Parts
from bothworlds.simulation.gpu.tuned import small_factors as small_factors  # registers functions for GPUs
from bothworlds.simulation.gpu.tuned import tiled_cholesky as tiled_cholesky  # registers functions for GPUs
from bothworlds.simulation.gpu.tuned import tiled_sums as tiled_sums  # registers functions for GPUs
from bothworlds.simulation.round_loop import LearnerArrays, Queue, Record, Slice, interpreted_loop

cuda: Any = numba.cuda  # numba's simulator looks for this object among the globals of a kernel


class Shared(NamedTuple):
    """Constants of all replications: the learner's problem and options, the environment, the checkpoints."""

    known: Floats
    options: Floats
    constants: Floats
    tables: Floats
    path: Floats
    checkpoints: Ints


class Columns(NamedTuple):
    """The replications between slices: reals (parts, replications), and whole numbers (parts, replications)."""

    reals: Floats
    places: Ints


class Measurements(NamedTuple):
    """Measurements at the checkpoints, with replications as the last axis; ``failed`` has the round of failure, or 0.

    For learners without rates, ``rates`` has a single unused row.
    """

    expected: Floats
    realised: Floats
    own_best: Floats
    round_best: Floats
    sums: Floats
    spent: Floats
    rates: Floats
    failed: Ints


class Stream(NamedTuple):
    """Source of the random streams: the seed of the run, and the number of the first replication."""

    seed: int
    first: int


def build_view(extents: Extents) -> Callable[..., Parts]:
    """Build the kernel function that returns the parts of a replication as views of its columns."""
    CORE, ROWS, SUMS, STATE, TOTALS, LOSSES, DIRECTIONS, BASELINES, BEST, C, EXPECTED_LOSS, CONTEXTS, ARMS, ENDS = zip(
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
            row_of(reals, BEST[0], BEST[1]),
            row_of(reals, C[0], C[1]),
            row_of(reals, EXPECTED_LOSS[0], EXPECTED_LOSS[1]),
            row_of(places, CONTEXTS[0], CONTEXTS[1]),
            row_of(places, ARMS[0], ARMS[1]),
            row_of(places, ENDS[0], ENDS[1]),
        )

    return kernel(view)


@kernel
def copy_leading(values: Any, count: int, out: Any) -> None:
    """Copy the first ``count`` numbers."""
    for i in range(count):
        out[i] = values[i]


@kernel
def copy(values: Any, out: Any) -> None:
    """Copy all numbers."""
    copy_leading(values, values.shape[0], out)


@kernel
def copy_parts(parts: Parts, core: int, rows: int, out: Parts) -> None:
    """Load or save what the next slice needs: leading numbers of core and rows, and all but c and expected_loss."""
    copy_leading(parts.core, core, out.core)
    copy_leading(parts.rows, rows, out.rows)
    copy(parts.sums, out.sums)
    copy(parts.state, out.state)
    copy(parts.totals, out.totals)
    copy(parts.losses, out.losses)
    copy(parts.directions, out.directions)
    copy(parts.baselines, out.baselines)
    copy(parts.best, out.best)
    copy(parts.contexts, out.contexts)
    copy(parts.arms, out.arms)
    copy(parts.ends, out.ends)


def build_fill_options(functions: Kernel, static: tuple[float, ...], count: int) -> Callable[..., None]:
    """Build a function that sets up to three options to constants, so that excluded branches are not compiled."""
    constants = [*zip(functions.static, static, strict=True)][:3]
    (A, a), (B, b), (C, c) = constants + [(-1, 0.0)] * (3 - len(constants))

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
def record_of(shared: Shared, columns: Columns, measurements: Measurements, r: int, totals: Floats) -> Record:
    """Return the record of one replication, without trace."""
    return Record(
        shared.checkpoints,
        measurements.expected[:, r],
        measurements.realised[:, r],
        measurements.own_best[:, r],
        measurements.round_best[:, r],
        measurements.sums[:, :, r],
        measurements.spent[:, r],
        measurements.rates[:, :, r],
        totals,
        columns.places[0:0, 0:2],
    )


def build_play(functions: Kernel, nature_kernel: NatureKernel, extents: Extents) -> Callable[..., int]:
    """Build the kernel function that plays a slice of one replication, in local or global memory."""
    run = kernel(interpreted_loop(functions, nature_kernel, extents.rates))
    SIZES, CAPACITY, KIND, NOISE = tuple(extents.sizes), extents.capacity, extents.kind, extents.noise
    DIRECTION, BASELINE = extents.carried

    def play(learner: LearnerArrays, parts: Parts, shared: Shared, record: Record, key: int, part: Slice) -> int:
        rule = shared.constants, shared.tables, shared.path
        varying = parts.c, parts.sums, parts.expected_loss, parts.state, parts.best
        nature = Nature(KIND, NOISE, rule[0], rule[1], rule[2], *varying)
        directions = matrix_of(parts.directions, 0, CAPACITY, DIRECTION)
        baselines = matrix_of(parts.baselines, 0, CAPACITY, BASELINE)
        queue = Queue(parts.contexts, parts.arms, parts.losses, directions, baselines, parts.ends)
        return run(learner, SIZES, nature, queue, record, key, part)

    return kernel(play)


def thread_memory_kernel(
    functions: Kernel, nature_kernel: NatureKernel, extents: Extents, static: tuple[float, ...]
) -> Callable[..., None]:
    """Build the kernel that plays in the local memory of threads, as plain Python."""
    fill, advance = (
        build_fill_options(functions, static, extents.options),
        build_play(functions, nature_kernel, extents),
    )
    OPTIONS, view = max(1, extents.options), build_view(extents)
    CORE, ROWS, SUMS, STATE, TOTALS, LOSSES, DIRECTIONS, BASELINES, BEST, C, EXPECTED_LOSS, CONTEXTS, ARMS, ENDS = (
        extents.counts
    )
    (CORE_LOADED, ROWS_LOADED), ROWS_SAVED = extents.loaded, extents.saved_rows
    number, whole = np.float64, np.int64

    def play(shared: Shared, columns: Columns, measurements: Measurements, stream: Stream, part: Slice) -> None:
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
            cuda.local.array(BEST, number),
            cuda.local.array(C, number),
            cuda.local.array(EXPECTED_LOSS, number),
            cuda.local.array(CONTEXTS, whole),
            cuda.local.array(ARMS, whole),
            cuda.local.array(ENDS, whole),
        )
        scratch = cuda.local.array(CORE, number), cuda.local.array(ROWS, number)
        options = cuda.local.array(OPTIONS, number)
        fill(shared.options, options)
        learner = LearnerArrays(shared.known, options, parts.core, parts.rows, scratch[0], scratch[1])
        saved = view(columns, r)
        copy_parts(saved, CORE_LOADED, ROWS_LOADED, parts)
        record, key = (
            record_of(shared, columns, measurements, r, parts.totals),
            stream_key(stream.seed, stream.first + r),
        )
        measurements.failed[r] = advance(learner, parts, shared, record, key, part)
        copy_parts(parts, CORE_LOADED, ROWS_SAVED, saved)

    return play


def global_memory_kernel(
    functions: Kernel, nature_kernel: NatureKernel, extents: Extents, static: tuple[float, ...]
) -> Callable[..., None]:
    """Build the kernel that plays in global memory, for replications too large for threads, as plain Python."""
    fill, advance = (
        build_fill_options(functions, static, extents.options),
        build_play(functions, nature_kernel, extents),
    )
    OPTIONS, view = max(1, extents.options), build_view(extents)
    number = np.float64

    def play(shared: Shared, columns: Columns, measurements: Measurements, stream: Stream, part: Slice) -> None:
        r = cuda.grid(1)
        if r >= columns.reals.shape[1]:
            return
        options = cuda.local.array(OPTIONS, number)
        fill(shared.options, options)
        parts = view(columns, r)
        learner = LearnerArrays(shared.known, options, parts.core, parts.rows, parts.core, parts.rows)
        record, key = (
            record_of(shared, columns, measurements, r, parts.totals),
            stream_key(stream.seed, stream.first + r),
        )
        measurements.failed[r] = advance(learner, parts, shared, record, key, part)

    return play
