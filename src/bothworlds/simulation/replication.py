"""Replications: their arrays, and the calls that advance them."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.environments.nature import Nature
from bothworlds.errors import NumericalError
from bothworlds.kernels.arithmetic import MORE, WIDTH
from bothworlds.kernels.arrays import Floats, Ints, aligned
from bothworlds.kernels.contract import Machine, flat_known
from bothworlds.kernels.random import stream_key
from bothworlds.simulation.driver import (
    Learner,
    Queue,
    Record,
    Slice,
    compiled_driver,
    interpreted_driver,
)
from bothworlds.simulation.lanes import Draws, compiled_lanes_driver, lane_of_record
from bothworlds.simulation.setting import Setting

FAST_MEMORY = 65_536  # floats, half a megabyte: beyond, 16 replications leave the second-level cache
LONG_REGISTERS = platform.machine().lower() in ("x86_64", "amd64")  # ARM's hold two floats: 16 of anything are too many


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a replication leaves: cumulative losses at the checkpoints, sums of coefficients, final policy and state.

    ``spent`` has the corruption so far at the checkpoints (n,), zero where nature has no budget for it; ``rates`` eta_t
    and gamma_t (n, 2), of learners that have such.
    """

    expected: Floats
    realised: Floats
    own_best: Floats
    sums: Floats
    rates: Floats | None
    spent: Floats
    policy: Floats
    final: dict[str, Floats]
    trace: Ints


class Replications:
    """A kernel-text learner against an environment, one replication or up to 16 at once.

    Advanced slice by slice, so that it can be watched and stopped. Many at once give the same as one by one.
    ``lanes`` says for how many there is room; 0 means for as many as there are.
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
        lanes, text = lanes or lanes_for(len(indices)), setting.environment.text
        self._alone = alone = lanes == 1
        if interpreted:
            self._drive: Callable[..., int] = interpreted_driver(machine.text, text, machine.rates)
        elif alone:
            self._drive = compiled_driver(machine.text, text, machine.rates)
        else:
            self._drive = compiled_lanes_driver(machine.text, text, lanes, machine.rates)
        axis = () if alone else (lanes,)
        keys = [stream_key(setting.seed, index) for index in indices]
        # Lanes without a replication of their own play along and are not looked at.
        key: Any = keys[0] if alone else np.resize(np.array(keys), axis)
        self._keys = key if alone else Draws(key, aligned(4, *axis))
        self._memory = machine.memory(*axis, key=key)
        self._learner = Learner(flat_known(machine.known), machine.flat_options, *self._memory, *self._memory)
        self._nature = setting.environment.begin(*axis)
        self._queue = empty_queue(setting.delay + setting.batch, *machine.carried, axis)
        self._record = empty_record(setting, len(self._nature.c), axis, trace=trace)
        self.played = 0

    def advance(self, rounds: int) -> int:
        """Play some more rounds; return how many were left to play and were played, of all replications together."""
        setting = self._setting
        last = min(self.played + rounds, setting.horizon)
        position = int(np.searchsorted(setting.checkpoints, self.played + 1))
        part = Slice(self.played + 1, last, position, setting.delay, setting.batch, self.played == 0)
        world = self._nature, self._queue, self._record
        failed = self._drive(self._learner, tuple(self._machine.sizes), *world, self._keys, part)
        if failed:
            which = " or ".join(str(index) for index in self.indices)
            raise NumericalError(
                f"arithmetic failed in round {failed} of replication {which} (seed {setting.seed}) "
                f"against {setting.environment.name!r}; replay it alone with the same seed to see why"
            )
        setting.environment.require_obedience(self._nature.state, last)
        done = last - self.played
        self.played = last
        return done * len(self.indices)

    @property
    def nature(self) -> Nature:
        """The world as it stands: the coefficients of the round played last, and what it remembers."""
        return self._nature

    def outcomes(self) -> list[Outcome]:
        """Return what the replications leave."""
        if self._alone:
            return [self._outcome(self._memory, self._record)]
        parts = []
        for k in range(len(self.indices)):
            memory = (self._memory[0][:, k].copy(), self._memory[1][:, k].copy())
            parts.append(self._outcome(memory, lane_of_record(self._record, k)))
        return parts

    def _outcome(self, memory: tuple[Floats, Floats], record: Record) -> Outcome:
        machine = self._machine
        names = ("pi", *machine.text.memory.learnt)
        pi, *learnt = (machine.part(name, *memory, machine.sizes).copy() for name in names)
        found = dict(zip(names[1:], learnt, strict=True))
        return outcome_of(self._setting, record, pi, found, rates=bool(machine.rates))


def lanes_for(count: int) -> int:
    """Return how many lanes so many replications take."""
    return count if count == 1 else WIDTH if count <= WIDTH else MORE


def most_at_once(machine: Machine) -> int:
    """Return how many replications of a learner go together: as many as its text, registers and fast memory allow."""
    if not machine.text.wide:
        return 1
    count = sum(machine.text.memory.counts(machine.sizes).values())
    return MORE if LONG_REGISTERS and MORE * count <= FAST_MEMORY else WIDTH


def outcome_of(setting: Setting, record: Record, policy: Floats, final: dict[str, Floats], *, rates: bool) -> Outcome:
    """Return what a replication leaves."""
    return Outcome(
        expected=record.expected,
        realised=record.realised,
        own_best=record.own_best,
        sums=record.sums,
        rates=record.rates if rates else None,
        spent=record.spent if setting.environment.budget > 0.0 else np.zeros(len(record.spent)),
        policy=policy,
        final=final,
        trace=record.trace,
    )


def empty_queue(capacity: int, direction: int, baseline: int, lanes: tuple[int, ...] = ()) -> Queue:
    """Return a queue with room for so many decisions, in each of the lanes."""
    return Queue(
        contexts=aligned(capacity, *lanes).view(np.int64),
        arms=aligned(capacity, *lanes).view(np.int64),
        losses=aligned(capacity, *lanes),
        directions=aligned(capacity, direction, *lanes),
        baselines=aligned(capacity, baseline, *lanes),
        ends=np.zeros(3, dtype=np.int64),
    )


def empty_record(setting: Setting, J: int, lanes: tuple[int, ...] = (), *, trace: bool) -> Record:
    """Return a record with nothing written yet; with ``trace`` it has room for the path."""
    n = len(setting.checkpoints)
    rows = setting.horizon if trace else 0
    return Record(
        checkpoints=setting.checkpoints,
        expected=np.zeros((*lanes, n)),
        realised=np.zeros((*lanes, n)),
        own_best=np.zeros((*lanes, n)),
        sums=np.zeros((*lanes, n, J)),
        spent=np.zeros((*lanes, n)),
        rates=np.zeros((*lanes, n, 2)),
        totals=aligned(3, *lanes),
        trace=np.zeros((*lanes, rows, 2), dtype=np.int64),
    )
