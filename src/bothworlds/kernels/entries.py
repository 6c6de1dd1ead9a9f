"""From an algorithm's kernel text to the two calls a policy makes: ``act`` and ``step``.

Numba unpacks a plain array in about 150 ns and a named tuple of arrays in microseconds, so the entries take
flat arrays and build the named tuples inside.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import compiled, kernel
from bothworlds.kernels.status import DAMAGED, OK


class World(NamedTuple):
    """What a kernel knows of the problem and never changes.

    z (d, cells) features, the cell of (x, a) is x K + a, zero-padded at the end; blocked (S, K) zero, or infinity
    where an arm is not offered; g (S,) probabilities; e (S, K) exploration policy. Sigma(e) is the identity.
    """

    z: Floats
    blocked: Floats
    g: Floats
    e: Floats


class KernelText(NamedTuple):
    """The functions that make an algorithm, all of them kernel text.

    ``numbers_of(array)`` names the hyper-parameters, ``state_of(memory, S, K, d, cells)`` and ``work_of(scratch,
    ...)`` name the parts of flat memory. ``refresh(world, numbers, state, work) -> status`` computes the plan,
    ``choose(world, numbers, state, work, x, key, time, direction, baseline) -> arm`` draws from it and fills in
    what the decision carries, and ``learn(world, numbers, state, x, a, loss, direction, baseline)`` adds one
    observation. The state has a field ``pi``, the probabilities of all contexts and arms.
    """

    numbers_of: Callable[..., Any]
    state_of: Callable[..., Any]
    work_of: Callable[..., Any]
    refresh: Callable[..., int]
    choose: Callable[..., int]
    learn: Callable[..., None]


class Entries(NamedTuple):
    """The calls a policy makes, compiled or interpreted."""

    act: Callable[..., int]
    step: Callable[..., int]


def flat_table(world: World, numbers: Floats) -> Floats:
    """Return everything fixed but the features as one array: g, blocked, e, numbers."""
    return np.concatenate([world.g, world.blocked.reshape(-1), world.e.reshape(-1), numbers])


@kernel
def world_of(z: Floats, table: Floats, S: int, K: int) -> World:
    """Name the parts of the flat table."""
    c = S * K
    return World(z, table[S : S + c].reshape((S, K)), table[0:S], table[S + c : S + 2 * c].reshape((S, K)))


def interpreted_entries(text: KernelText) -> Entries:
    """Build the entries of an algorithm as plain Python.

    ``act`` draws an arm and fills in direction and baseline. ``step`` copies the first ``kept`` numbers of
    ``before`` into ``memory``, adds an observation (feed) and computes the plan (finish), each if asked to.
    """
    numbers_of, state_of, work_of, refresh, choose, learn = text

    def act(
        z: Floats,
        table: Floats,
        S: int,
        K: int,
        memory: Floats,
        scratch: Floats,
        x: int,
        key: int,
        time: int,
        direction: Floats,
        baseline: Floats,
    ) -> int:
        d, cells = z.shape
        numbers = numbers_of(table[S + 2 * S * K :])
        state = state_of(memory, S, K, d, cells)
        work = work_of(scratch, S, K, d, cells)
        return choose(world_of(z, table, S, K), numbers, state, work, x, key, time, direction, baseline)

    def step(
        z: Floats,
        table: Floats,
        S: int,
        K: int,
        before: Floats,
        memory: Floats,
        scratch: Floats,
        kept: int,
        feed: bool,
        finish: bool,
        x: int,
        a: int,
        loss: float,
        direction: Floats,
        baseline: Floats,
    ) -> int:
        d, cells = z.shape
        world = world_of(z, table, S, K)
        numbers = numbers_of(table[S + 2 * S * K :])
        state = state_of(memory, S, K, d, cells)
        for i in range(kept):
            memory[i] = before[i]
        if feed:
            for i in range(d):
                if not math.isfinite(direction[i] + baseline[i]):
                    return DAMAGED
            learn(world, numbers, state, x, a, loss, direction, baseline)
        if finish:
            return refresh(world, numbers, state, work_of(scratch, S, K, d, cells))
        return OK

    return Entries(act, step)


@lru_cache(maxsize=64)
def compiled_entries(text: KernelText) -> Entries:
    """Build the entries of an algorithm as machine code; once per process and algorithm."""
    act, step = interpreted_entries(text)
    return Entries(compiled(act), compiled(step))
