"""Replications played together: their arrays, and the calls that advance them."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.arrays import Floats, Ints, aligned
from bothworlds.environments.dynamics import Nature
from bothworlds.errors import NumericalError
from bothworlds.kernels.arithmetic import MAX_LANES, WIDTH
from bothworlds.kernels.contract import Machine, flat_known
from bothworlds.kernels.random import stream_key
from bothworlds.simulation.round_loop import (
    TOTALS,
    LearnerArrays,
    Queue,
    Record,
    Slice,
    compiled_loop,
    interpreted_loop,
)
from bothworlds.simulation.round_loop_simd import Draws, compiled_lanes_loop, lane_of_record
from bothworlds.simulation.setting import Setting

FAST_MEMORY = 65_536  # floats, half a megabyte: more does not fit into the second-level cache
LONG_REGISTERS = platform.machine().lower() in (
    "x86_64",
    "amd64",
)  # ARM registers hold two floats, too few for 16 lanes


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome of a replication: cumulative losses at the checkpoints, sums of coefficients, final policy and state.

    ``spent`` has the corruption so far at the checkpoints (n,), zero without a budget; ``rates`` has eta_t and gamma_t
    (n, 2), or is None for learners without such rates.
    """

    expected: Floats
    realised: Floats
    own_best: Floats
    round_best: Floats
    sums: Floats
    rates: Floats | None
    spent: Floats
    policy: Floats
    final: dict[str, Floats]
    trace: Ints


class Replications:
    """One to 16 replications of an algorithm's kernel in an environment, played together.

    They advance slice by slice, which allows progress reports and interruption. Replications played together have the
    same outcomes as one by one. ``lanes`` is the number of lanes; 0 means as many as needed.
    """

    def __init__(
        self,
        machine: Machine,
        setting: Setting,
        indices: Sequence[int],
        *,
        lanes: int = 0,
        interpreted: bool = False,
        trace: bool = False,
    ) -> None:
        self._setting, self._machine, self.indices = setting, machine, indices
        lanes, nature_kernel = lanes or lanes_for(len(indices)), setting.environment.kernel
        self._is_single = single = lanes == 1
        if interpreted:
            self._play_slice: Callable[..., int] = interpreted_loop(machine.kernel, nature_kernel, machine.rates)
        elif single:
            self._play_slice = compiled_loop(machine.kernel, nature_kernel, machine.rates)
        else:
            self._play_slice = compiled_lanes_loop(machine.kernel, nature_kernel, lanes, machine.rates)
        axis = () if single else (lanes,)
        keys = [stream_key(setting.seed, index) for index in indices]
        # Lanes without a replication repeat the keys of others; their outcomes are ignored.
        key: Any = keys[0] if single else np.resize(np.array(keys), axis)
        self._keys = key if single else Draws(key, aligned(4, *axis))
        self._memory = machine.memory(*axis, key=key)
        self._learner = LearnerArrays(flat_known(machine.known), machine.flat_options, *self._memory, *self._memory)
        self._nature = setting.environment.begin(*axis)
        self._queue = empty_queue(setting.delay + setting.batch, *machine.carried, axis)
        self._record = empty_record(setting, len(self._nature.c), axis, trace=trace)
        self.played = 0

    def advance(self, rounds: int) -> int:
        """Play up to ``rounds`` more rounds; return the number played, summed over replications."""
        setting = self._setting
        last = min(self.played + rounds, setting.horizon)
        position = int(np.searchsorted(setting.checkpoints, self.played + 1))
        part = Slice(self.played + 1, last, position, setting.delay, setting.batch, self.played == 0)
        world = self._nature, self._queue, self._record
        failed = self._play_slice(self._learner, tuple(self._machine.sizes), *world, self._keys, part)
        if failed:
            which = " or ".join(str(index) for index in self.indices)
            raise NumericalError(
                f"arithmetic failed in round {failed} of replication {which} (seed {setting.seed}) "
                f"against {setting.environment.name!r}; replay it alone with the same seed to see why"
            )
        setting.environment.require_kernel_in_range(self._nature.state, last)
        done = last - self.played
        self.played = last
        return done * len(self.indices)

    @property
    def nature(self) -> Nature:
        """The current nature: coefficients of the last round, and the state of the rule."""
        return self._nature

    def outcomes(self) -> list[Outcome]:
        """Return the outcome of every replication."""
        if self._is_single:
            return [self._outcome(self._memory, self._record)]
        parts = []
        for k in range(len(self.indices)):
            memory = (self._memory[0][:, k].copy(), self._memory[1][:, k].copy())
            parts.append(self._outcome(memory, lane_of_record(self._record, k)))
        return parts

    def _outcome(self, memory: tuple[Floats, Floats], record: Record) -> Outcome:
        machine = self._machine
        pi, *arrays = (
            machine.part(name, *memory, machine.sizes).copy() for name in ("pi", *machine.kernel.memory.learnt)
        )
        final = dict(zip(machine.kernel.memory.learnt, arrays, strict=True))
        return outcome_of(self._setting, record, pi, final, rates=bool(machine.rates))


def lanes_for(count: int) -> int:
    """Return the number of lanes for ``count`` replications: 1, 8 or 16."""
    return count if count == 1 else WIDTH if count <= WIDTH else MAX_LANES


def most_at_once(machine: Machine) -> int:
    """Return how many replications can be played together: limited by kernel, registers and second-level cache."""
    if not machine.kernel.wide:
        return 1
    count = sum(machine.kernel.memory.counts(machine.sizes).values())
    return MAX_LANES if LONG_REGISTERS and MAX_LANES * count <= FAST_MEMORY else WIDTH


def outcome_of(setting: Setting, record: Record, policy: Floats, final: dict[str, Floats], *, rates: bool) -> Outcome:
    """Make the outcome of a replication from its record."""
    return Outcome(
        expected=record.expected,
        realised=record.realised,
        own_best=record.own_best,
        round_best=record.round_best,
        sums=record.sums,
        rates=record.rates if rates else None,
        spent=record.spent if setting.environment.budget > 0.0 else np.zeros(len(record.spent)),
        policy=policy,
        final=final,
        trace=record.trace,
    )


def empty_queue(capacity: int, direction: int, baseline: int, lanes: tuple[int, ...] = ()) -> Queue:
    """Return an empty queue for ``capacity`` decisions per lane."""
    return Queue(
        contexts=aligned(capacity, *lanes).view(np.int64),
        arms=aligned(capacity, *lanes).view(np.int64),
        losses=aligned(capacity, *lanes),
        directions=aligned(capacity, direction, *lanes),
        baselines=aligned(capacity, baseline, *lanes),
        ends=np.zeros(3, dtype=np.int64),
    )


def empty_record(setting: Setting, J: int, lanes: tuple[int, ...] = (), *, trace: bool) -> Record:
    """Return an empty record; with ``trace`` it has space for the path."""
    n = len(setting.checkpoints)
    rows = setting.horizon if trace else 0
    return Record(
        checkpoints=setting.checkpoints,
        expected=np.zeros((*lanes, n)),
        realised=np.zeros((*lanes, n)),
        own_best=np.zeros((*lanes, n)),
        round_best=np.zeros((*lanes, n)),
        sums=np.zeros((*lanes, n, J)),
        spent=np.zeros((*lanes, n)),
        rates=np.zeros((*lanes, n, 2)),
        totals=aligned(TOTALS, *lanes),
        trace=np.zeros((*lanes, rows, 2), dtype=np.int64),
    )
