"""From an algorithm's kernel text to the two calls a policy makes: ``act`` and ``step``.

Numba unpacks a plain array in about 150 ns and a named tuple of arrays in microseconds, so the entries take
flat arrays and build the named tuples inside.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats, aligned
from bothworlds.kernels.compile import compiled, kernel
from bothworlds.kernels.numbers import WIDTH, alone, contexts, cube_of, matrix_of, row_of
from bothworlds.kernels.random import ARM, two_uniforms
from bothworlds.kernels.status import DAMAGED, OK

LARGEST = 1e100  # no covariance that can be inverted makes a direction of that size


class World(NamedTuple):
    """What a kernel knows of the problem and never changes; arrays of numbers, a block of contexts at each index x.

    z (contexts, arms, d) features, g (contexts,) probabilities, blocked (contexts, arms) zero, or infinity where an arm
    is not offered; e (contexts, arms) exploration policy.
    """

    z: Floats
    g: Floats
    blocked: Floats
    e: Floats


class KernelText(NamedTuple):
    """The functions that make an algorithm, all of them kernel text.

    ``sizes(B, K, d)`` tells how many numbers the memory takes, for B blocks of contexts: first those of the learner,
    then those that have an entry per context. ``numbers_of(array)`` names the hyper-parameters, ``state_of(memory,
    cells, B, K, d)`` and ``work_of(memory, cells, B, K, d)`` name the parts of the memory. ``refresh(world, numbers,
    state, work) -> status`` computes the plan, ``choose(world, numbers, state, work, x, uniforms, key, time, direction,
    baseline) -> arm`` draws from it by two uniforms and fills in what the decision carries, and ``learn(world, numbers,
    state, x, a, loss, direction, baseline)`` adds one observation. The state has a field ``pi``, the probabilities of
    all contexts and arms. ``wide`` says that ``refresh`` keeps to what `numbers` allows, so that it can work on eight
    contexts or sixteen replications at once, and ``together`` that ``choose`` and ``learn`` can take sixteen
    replications at once, too, each with its own context and arm. ``static`` has the positions of hyper-parameters that
    choose between branches: a GPU compiles them in.
    """

    sizes: Callable[[int, int, int], tuple[int, int]]
    numbers_of: Callable[..., Any]
    state_of: Callable[..., Any]
    work_of: Callable[..., Any]
    refresh: Callable[..., int]
    choose: Callable[..., int]
    learn: Callable[..., None]
    wide: bool = False
    together: bool = False
    static: tuple[int, ...] = ()


class Entries(NamedTuple):
    """The calls a policy makes, compiled or interpreted."""

    act: Callable[..., int]
    step: Callable[..., int]


def in_blocks(values: Floats) -> Floats:
    """Return an array (contexts, ...) as (blocks, ..., 8): eight contexts side by side, zeros beyond the last."""
    blocks = -(-len(values) // WIDTH)
    padded = np.zeros((blocks * WIDTH, *values.shape[1:]))
    padded[: len(values)] = values
    return np.moveaxis(padded.reshape(blocks, WIDTH, *values.shape[1:]), 1, -1)


def out_of_blocks(values: Floats, n_contexts: int) -> Floats:
    """Return an array (blocks, ..., 8) as (contexts, ...).

    >>> out_of_blocks(in_blocks(np.arange(10.0)), 10).tolist()[-1]
    9.0
    """
    rows = np.moveaxis(values, -1, 1)
    return rows.reshape(-1, *rows.shape[2:])[:n_contexts].copy()


def flat_world(world: World, *, wide: bool) -> Floats:
    """Return a world as one array of numbers: z, g, blocked, e."""
    parts = [in_blocks(part).reshape(-1, WIDTH) if wide else part.reshape(-1) for part in world]
    out = aligned(sum(len(part) for part in parts), *parts[0].shape[1:])
    out[...] = np.concatenate(parts)
    return out


@kernel
def world_of(fixed: Any, B: int, K: int, d: int) -> World:
    """Name the parts of a flat world."""
    n = B * K * d
    m = n + B
    return World(
        cube_of(fixed, 0, B, K, d), row_of(fixed, n, B), matrix_of(fixed, m, B, K), matrix_of(fixed, m + B * K, B, K)
    )


def interpreted_entries(text: KernelText) -> Entries:
    """Build the entries of an algorithm as plain Python.

    ``act`` draws an arm and fills in direction and baseline. ``step`` copies the first ``kept`` numbers of ``before``
    and ``kept_cells`` of ``before_cells``, adds an observation (feed) and computes the plan (finish), each if asked to.
    """
    _, numbers_of, state_of, work_of, refresh, choose, learn, wide, *_ = text
    view = contexts if wide else alone

    def act(
        fixed: Floats,
        hyper: Floats,
        memory: Floats,
        cells: Floats,
        B: int,
        K: int,
        d: int,
        x: int,
        key: int,
        time: int,
        direction: Floats,
        baseline: Floats,
    ) -> int:
        world = world_of(view(fixed), B, K, d)
        state = state_of(memory, view(cells), B, K, d)
        work = work_of(memory, view(cells), B, K, d)
        uniforms = two_uniforms(key, time, ARM, 0)
        return choose(world, numbers_of(hyper), state, work, x, uniforms, key, time, direction, baseline)

    def step(
        fixed: Floats,
        hyper: Floats,
        before: Floats,
        before_cells: Floats,
        memory: Floats,
        cells: Floats,
        B: int,
        K: int,
        d: int,
        kept: int,
        kept_cells: int,
        feed: bool,
        finish: bool,
        x: int,
        a: int,
        loss: float,
        direction: Floats,
        baseline: Floats,
    ) -> int:
        world = world_of(view(fixed), B, K, d)
        numbers = numbers_of(hyper)
        state = state_of(memory, view(cells), B, K, d)
        for i in range(kept):
            memory[i] = before[i]
        for i in range(kept_cells):
            view(cells)[i] = view(before_cells)[i]
        if feed:
            for i in range(direction.shape[0]):
                if not abs(direction[i]) + abs(baseline[i]) <= LARGEST:
                    return DAMAGED
            learn(world, numbers, state, x, a, loss, direction, baseline)
        if finish:
            return refresh(world, numbers, state, work_of(memory, view(cells), B, K, d))
        return OK

    return Entries(act, step)


@lru_cache(maxsize=64)
def compiled_entries(text: KernelText) -> Entries:
    """Build the entries of an algorithm as machine code; once per process and algorithm."""
    act, step = interpreted_entries(text)
    return Entries(compiled(act), compiled(step))
