"""One replication: its arrays, and the calls that advance it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.environments.environment import TEXT, Environment
from bothworlds.errors import NumericalError
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.driver import (
    Queue,
    Record,
    add_expected,
    compiled_driver,
    expected_losses,
    interpreted_driver,
    write_checkpoint,
)
from bothworlds.kernels.entries import flat_table
from bothworlds.kernels.random import CONTEXT, draw, stream_key, two_uniforms
from bothworlds.policy import Machine


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all replications of a run share."""

    environment: Environment
    horizon: int
    checkpoints: Ints
    seed: int
    delay: int = 0
    batch: int = 1


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a replication leaves: cumulative losses at the checkpoints, sums of coefficients, final policy and state."""

    expected: Floats
    realised: Floats
    own_best: Floats
    sums: Floats
    spent: float
    policy: Floats
    final: dict[str, Floats]
    trace: Ints


class Replication:
    """A kernel-text learner against an environment; advanced slice by slice, so that it can be watched and stopped."""

    def __init__(
        self, machine: Machine, setting: Setting, number: int, *, interpreted: bool = False, trace: bool = False
    ) -> None:
        self._setting, self._machine, self._number = setting, machine, number
        make = interpreted_driver if interpreted else compiled_driver
        self._drive: Callable[..., int] = make(machine.text, TEXT)
        self._key = stream_key(setting.seed, number)
        self._fixed = (machine.world.z, flat_table(machine.world, machine.numbers), *machine.world.blocked.shape)
        self._memory = machine.memory.copy()
        self._scratch = np.zeros_like(machine.scratch)
        self._nature = setting.environment.begin()
        self._queue = _empty_queue(setting.delay + setting.batch, machine.world.z.shape[0])
        self._record = _empty_record(setting, len(self._nature.c), trace=trace)
        self.played = 0

    def advance(self, rounds: int) -> int:
        """Play some more rounds; return how many were left to play and were played."""
        setting = self._setting
        last = min(self.played + rounds, setting.horizon)
        position = int(np.searchsorted(setting.checkpoints, self.played + 1))
        failed = self._drive(
            *self._fixed,
            self._memory,
            self._scratch,
            self._nature,
            self._queue,
            self._record,
            self._key,
            self.played + 1,
            last,
            setting.delay,
            setting.batch,
            position,
        )
        if failed:
            raise NumericalError(
                f"arithmetic failed in round {failed} of replication {self._number} (seed {setting.seed}) "
                f"against {setting.environment.name!r}; replay it alone with the same seed to see why"
            )
        done = last - self.played
        self.played = last
        return done

    def outcome(self) -> Outcome:
        """Return what the replication leaves."""
        S, K = self._machine.world.blocked.shape
        d, cells = self._machine.world.z.shape
        state = self._machine.text.state_of(self._memory, S, K, d, cells)
        final = {name: getattr(state, name).copy() for name in self._machine.learnt}
        return _outcome(self._setting, self._nature, self._record, state.pi.copy(), final)


def _outcome(setting: Setting, nature: Any, record: Record, policy: Floats, final: dict[str, Floats]) -> Outcome:
    """Return what a replication leaves."""
    return Outcome(
        expected=record.expected,
        realised=record.realised,
        own_best=record.own_best,
        sums=record.sums,
        spent=float(nature.state[0]) if setting.environment.budget > 0.0 else 0.0,
        policy=policy,
        final=final,
        trace=record.trace,
    )


def _empty_queue(capacity: int, d: int) -> Queue:
    return Queue(
        contexts=np.zeros(capacity, dtype=np.int64),
        arms=np.zeros(capacity, dtype=np.int64),
        losses=np.zeros(capacity),
        directions=np.zeros((capacity, d)),
        baselines=np.zeros((capacity, d)),
        counts=np.zeros(2, dtype=np.int64),
    )


def _empty_record(setting: Setting, J: int, *, trace: bool) -> Record:
    n = len(setting.checkpoints)
    rows = setting.horizon if trace else 0
    return Record(
        checkpoints=setting.checkpoints,
        expected=np.zeros(n),
        realised=np.zeros(n),
        own_best=np.zeros(n),
        sums=np.zeros((n, J)),
        totals=np.zeros(3),
        trace=np.zeros((rows, 2), dtype=np.int64),
    )


def play_in_python(start: Callable[..., Any], setting: Setting, number: int) -> Outcome:
    """Play a learner written in plain Python: anything with act, update and probabilities.

    The same contexts, parameters and noise as in the compiled driver, one round at a time.
    """
    environment = setting.environment
    problem = environment.problem
    key = stream_key(setting.seed, number)
    learner = start(problem, rng=key)
    nature = environment.begin()
    record = _empty_record(setting, len(nature.c), trace=True)
    waiting: list[tuple[Any, float]] = []
    position = 0
    blocked = np.where(problem.available, 0.0, np.inf)
    for t in range(1, setting.horizon + 1):
        pi = np.asarray(learner.probabilities(), dtype=np.float64)
        if pi.shape != problem.available.shape or not np.abs(pi.sum(axis=1) - 1.0).max() <= 1e-6 or (pi < 0.0).any():
            raise ValueError(f"round {t}: probabilities() must be a table {problem.available.shape} of distributions")
        loss, decision = _one_round(environment, nature, record, pi, learner, key, t)
        waiting.append((decision, loss))
        due = len(waiting) - setting.delay
        if due >= setting.batch:
            ready, waiting = waiting[:due], waiting[due:]
            if due == 1:
                learner.update(ready[0][0], loss=ready[0][1])
            else:
                learner.update([made for made, _ in ready], loss=[value for _, value in ready])
        if t == setting.checkpoints[position]:
            write_checkpoint(record, position, nature.tables, nature.sums, problem.probabilities, blocked)
            position += 1
    return _outcome(setting, nature, record, np.asarray(learner.probabilities(), dtype=np.float64), {})


def _one_round(
    environment: Environment, nature: Any, record: Record, pi: Floats, learner: Any, key: int, t: int
) -> tuple[float, Any]:
    """Let nature and the learner play one round; return the loss and the decision."""
    g = environment.problem.probabilities
    expected_losses(nature.tables, g, pi, nature.hurt)
    if environment.function is None:
        TEXT.decide(nature, t, key)
    else:
        nature.c[...] = environment.theta_of(t, pi.copy())
    nature.sums[...] += nature.c
    for j in range(len(nature.c)):
        add_expected(record.totals, nature.c[j] * nature.hurt[j])
    u, v = two_uniforms(key, t, CONTEXT, 0)
    x = draw(g, u)
    decision = learner.act(x)
    if not 0 <= decision.arm < pi.shape[1] or not environment.problem.available[x, decision.arm]:
        raise ValueError(f"round {t}: arm {decision.arm} is not offered in context {x}")
    loss = float(TEXT.noisy(nature, TEXT.mean_loss(nature, x, decision.arm), v, key, t))
    TEXT.react(nature, decision.arm)
    record.totals[1] += loss
    record.trace[t - 1] = (x, decision.arm)
    return loss, decision
