"""The same text on a GPU: one replication per thread, thousands at once (optional: pip install bothworlds[gpu]).

A thread keeps its learner, its world and its waiting decisions in local memory while it plays a slice of rounds, and
writes them to the card's memory in between, so that progress shows, a run can be stopped, and what it needs is known
before it starts. Sizes are constants of the compiled kernel: loops unroll, and small arrays live in registers.
"""

import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numba.core.config
import numba.cuda
import numpy as np

from bothworlds.environments.nature import Nature
from bothworlds.errors import NumericalError
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.driver import NatureText, Queue, Record, interpreted_driver
from bothworlds.kernels.entries import KernelText, flat_world
from bothworlds.kernels.random import stream_key
from bothworlds.policy import Machine
from bothworlds.simulation.replication import Outcome, Setting

cuda: Any = numba.cuda  # numba's simulator looks for this very object among the globals of a kernel
THREADS = 128  # of a block
REGISTERS = 255  # of a thread, the most there are: measured against 80 to 168 on an H200
LARGEST_LOCAL = 400_000  # bytes of a thread's own memory; the hardware allows 512 KiB
SHARE = 0.8  # of the card's free memory
FIRST_SLICE = 10  # rounds; slices double until they last for some tenths of a second
SLICE_SECONDS = 0.3
WORTH_IT = 2_000_000_000  # rounds from which on the compilation for a card pays


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
    def saved(self) -> int:
        """Numbers that a replication keeps between slices."""
        waiting = self.capacity * (3 + 2 * self.carried) + 2
        return self.memory + self.cells + self.J + self.remembered + 3 + waiting


def sizes_of(machine: Machine, setting: Setting) -> Sizes:
    """Return the sizes of a run."""
    S, K, d = machine.world.z.shape
    nature = setting.environment.begin()
    memory, cells = machine.sizes(S)
    capacity = setting.delay + setting.batch
    hyper = max(1, len(machine.numbers))
    kept = memory if machine.kept is None else machine.kept(S, d)[0]
    numbers = (memory, cells, len(nature.state), machine.carried, capacity, hyper, kept)
    return Sizes(S, K, d, len(nature.c), *numbers, nature.kind, nature.noise)


def require_card() -> None:
    """Say in a sentence why there is no card to work with, if there is none."""
    if not is_available():
        raise ValueError(
            "device='gpu' needs an NVIDIA card with its driver, and numba-cuda (pip install 'bothworlds[gpu]'); "
            "there is none here. Use device='cpu'"
        )


def is_available() -> bool:
    """Tell whether there is a card to work with."""
    return bool(cuda.is_available())


def text_of(text: KernelText, nature_text: NatureText, sizes: Sizes, static: tuple[float, ...]) -> Callable[..., None]:
    """Build the kernel, as plain Python: load a replication, play a slice, save it."""
    run = kernel(interpreted_driver(text, nature_text))
    S, K, d, J, MEMORY, CELLS, REMEMBERED, CARRIED, CAPACITY, HYPER, KEPT, KIND, NOISE = sizes
    number, whole = np.float64, np.int64
    # Up to three hyper-parameters become constants, so that what they choose against is not even compiled.
    known = [*zip(text.static, static, strict=True)][:3]
    (A, a), (B, b), (C, c_) = known + [(-1, 0.0)] * (3 - len(known))

    def play(
        fixed: Floats,
        hyper: Floats,
        numbers: Floats,
        tables: Floats,
        path: Floats,
        saved: Floats,
        checkpoints: Any,
        expected: Floats,
        realised: Floats,
        own_best: Floats,
        coefficients: Floats,
        failed: Any,
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
        for i in range(HYPER):
            chosen[i] = hyper[i]
        if A >= 0:
            chosen[A] = a
        if B >= 0:
            chosen[B] = b
        if C >= 0:
            chosen[C] = c_
        memory = cuda.local.array(MEMORY, number)
        cells = cuda.local.array(CELLS, number)
        scratch = cuda.local.array(MEMORY, number)
        scratch_cells = cuda.local.array(CELLS, number)
        c = cuda.local.array(J, number)
        sums = cuda.local.array(J, number)
        hurt = cuda.local.array(J, number)
        remembered = cuda.local.array(REMEMBERED, number)
        totals = cuda.local.array(3, number)
        contexts = cuda.local.array(CAPACITY, whole)
        arms = cuda.local.array(CAPACITY, whole)
        losses = cuda.local.array(CAPACITY, number)
        directions = cuda.local.array((CAPACITY, CARRIED), number)
        baselines = cuda.local.array((CAPACITY, CARRIED), number)
        counts = cuda.local.array(2, whole)
        trace = cuda.local.array((1, 2), whole)
        n = 0
        for i in range(KEPT):
            memory[i] = saved[n + i, r]
        n += MEMORY
        for i in range(CELLS):
            cells[i] = saved[n + i, r]
        n += CELLS
        for j in range(J):
            c[j] = 0.0
            hurt[j] = 0.0
            sums[j] = saved[n + j, r]
        n += J
        for i in range(REMEMBERED):
            remembered[i] = saved[n + i, r]
        n += REMEMBERED
        for i in range(3):
            totals[i] = saved[n + i, r]
        n += 3
        for i in range(2):
            counts[i] = int(saved[n + i, r])
        n += 2
        for k in range(CAPACITY):
            contexts[k] = int(saved[n, r])
            arms[k] = int(saved[n + 1, r])
            losses[k] = saved[n + 2, r]
            for i in range(CARRIED):
                directions[k, i] = saved[n + 3 + i, r]
                baselines[k, i] = saved[n + 3 + CARRIED + i, r]
            n += 3 + 2 * CARRIED
        failed[r] = run(
            fixed,
            chosen,
            memory,
            cells,
            scratch,
            scratch_cells,
            S,
            K,
            d,
            Nature(KIND, NOISE, numbers, tables, path, c, sums, hurt, remembered),
            Queue(contexts, arms, losses, directions, baselines, counts),
            Record(
                checkpoints,
                expected[:, r],
                realised[:, r],
                own_best[:, r],
                coefficients[:, :, r],
                totals,
                trace[0:0],
            ),
            stream_key(seed, offset + r),
            first,
            last,
            delay,
            batch,
            position,
            True,
        )
        n = 0
        for i in range(KEPT):
            saved[n + i, r] = memory[i]
        n += MEMORY
        for i in range(CELLS):
            saved[n + i, r] = cells[i]
        n += CELLS
        for j in range(J):
            saved[n + j, r] = sums[j]
        n += J
        for i in range(REMEMBERED):
            saved[n + i, r] = remembered[i]
        n += REMEMBERED
        for i in range(3):
            saved[n + i, r] = totals[i]
        n += 3
        for i in range(2):
            saved[n + i, r] = counts[i]
        n += 2
        for k in range(CAPACITY):
            saved[n, r] = contexts[k]
            saved[n + 1, r] = arms[k]
            saved[n + 2, r] = losses[k]
            for i in range(CARRIED):
                saved[n + 3 + i, r] = directions[k, i]
                saved[n + 3 + CARRIED + i, r] = baselines[k, i]
            n += 3 + 2 * CARRIED

    return play


@lru_cache(maxsize=64)
def compiled_kernel(text: KernelText, nature_text: NatureText, sizes: Sizes, static: tuple[float, ...]) -> Any:
    """Build the kernel as machine code of the card; once per process, algorithm and sizes."""
    settings: Any = numba.core.config
    options = {} if settings.ENABLE_CUDASIM else {"max_registers": REGISTERS}
    return cuda.jit(**options)(text_of(text, nature_text, sizes, static))


class GpuReplications:
    """Many replications of a learner against an environment on a card; the interface of `Replications`."""

    def __init__(self, machine: Machine, setting: Setting, numbers: range) -> None:
        self._machine, self._setting, self.numbers = machine, setting, numbers
        self._sizes = sizes = sizes_of(machine, setting)
        require_room(sizes)
        static = tuple(float(machine.numbers[i]) for i in machine.text.static)
        self._play = compiled_kernel(machine.text, setting.environment.text, sizes, static)
        send = cuda.to_device
        nature = setting.environment.begin()
        path = nature.path if nature.path.size else np.zeros((1, sizes.J))
        self._fixed = [send(part) for part in (flat_world(machine.world, wide=False), np.append(machine.numbers, 0.0))]
        self._nature = [send(nature.numbers), send(nature.tables), send(path)]
        start = np.zeros(sizes.saved)
        memory, cells = machine.memory(sizes.S, cells=())
        start[: sizes.memory], start[sizes.memory : sizes.memory + sizes.cells] = memory, cells
        R, n = len(numbers), len(setting.checkpoints)
        self._saved = send(np.repeat(start[:, None], R, axis=1))
        self._checkpoints = send(setting.checkpoints)
        self._record = [send(np.zeros((n, R))) for _ in range(3)] + [send(np.zeros((n, sizes.J, R)))]
        self._failed = send(np.zeros(R, dtype=np.int64))
        self.played = 0

    def advance(self, rounds: int) -> int:
        """Play some more rounds; return how many were played, of all replications together."""
        setting = self._setting
        last = min(self.played + rounds, setting.horizon)
        position = int(np.searchsorted(setting.checkpoints, self.played + 1))
        blocks = math.ceil(len(self.numbers) / THREADS)
        self._play[blocks, THREADS](
            *self._fixed,
            *self._nature,
            self._saved,
            self._checkpoints,
            *self._record,
            self._failed,
            setting.seed,
            self.numbers.start,
            self.played + 1,
            last,
            setting.delay,
            setting.batch,
            position,
        )
        failed = self._failed.copy_to_host()
        if failed.any():
            which = int(np.flatnonzero(failed)[0])
            raise NumericalError(
                f"arithmetic failed in round {failed[which]} of replication {self.numbers[which]} "
                f"(seed {setting.seed}) against {setting.environment.name!r}; replay it alone with the same seed to "
                "see why"
            )
        done = last - self.played
        self.played = last
        return done * len(self.numbers)

    def outcomes(self) -> list[Outcome]:
        """Return what the replications leave."""
        sizes, setting = self._sizes, self._setting
        saved = self._saved.copy_to_host()
        expected, realised, own_best, coefficients = (part.copy_to_host() for part in self._record)
        memory, cells = saved[: sizes.memory], saved[sizes.memory : sizes.memory + sizes.cells]
        state = self._machine.text.state_of(memory, cells, sizes.S, sizes.K, sizes.d)
        remembered = saved[sizes.memory + sizes.cells + sizes.J :]
        has_budget = setting.environment.budget > 0.0
        return [
            Outcome(
                expected=expected[:, r],
                realised=realised[:, r],
                own_best=own_best[:, r],
                sums=coefficients[:, :, r],
                spent=float(remembered[0, r]) if has_budget else 0.0,
                policy=state.pi[..., r],
                final={name: getattr(state, name)[..., r] for name in self._machine.learnt},
                trace=np.zeros((0, 2), dtype=np.int64),
            )
            for r in range(len(self.numbers))
        ]


def play(machine: Machine, setting: Setting, replications: range, advance: Callable[[int], None]) -> list[Outcome]:
    """Play some replications on the card, in slices of a fraction of a second; return what each leaves."""
    require_card()
    outcomes: list[Outcome] = []
    for part in fitting(machine, setting, replications):
        some = GpuReplications(machine, setting, part)
        rounds = FIRST_SLICE
        while some.played < setting.horizon:
            began = time.monotonic()
            advance(some.advance(rounds))
            if time.monotonic() - began < SLICE_SECONDS:
                rounds *= 2
        outcomes += some.outcomes()
    return outcomes


def require_room(sizes: Sizes) -> None:
    """Refuse what a thread cannot hold, before any work starts."""
    needed = 8 * (sizes.saved + 2 * sizes.J)
    if needed > LARGEST_LOCAL:
        raise ValueError(
            f"a replication of {sizes.S} contexts, {sizes.K} arms and dimension {sizes.d} needs {needed:,} bytes, "
            f"and a thread of the card has {LARGEST_LOCAL:,}; use device='cpu', or a smaller problem or delay"
        )


def fitting(machine: Machine, setting: Setting, replications: range) -> list[range]:
    """Split replications so that each part fits into the free memory of the card."""
    sizes = sizes_of(machine, setting)
    require_room(sizes)
    each = 8 * (sizes.saved + len(setting.checkpoints) * (3 + sizes.J) + 1)
    most = max(1, int(SHARE * free_memory() / each))
    return [replications[first : first + most] for first in range(0, len(replications), most)]


def free_memory() -> int:
    """Return how many bytes of the card's memory are free."""
    return int(cuda.current_context().get_memory_info()[0])
