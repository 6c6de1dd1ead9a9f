"""The same text on a GPU: one replication per thread, thousands at once (optional: pip install '.[gpu]').

A thread plays a slice of rounds and writes its replication to the card's memory in between, so that progress shows, a
run can be stopped and taken up again, and what it needs is known before it starts. Sizes are constants of the compiled
kernel: loops unroll, and small arrays live in registers; large sums are made in tiles that do (`kernels.card`).
"""

import math
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba.core.config
import numpy as np

from bothworlds.errors import NumericalError
from bothworlds.kernels.arrays import Ints
from bothworlds.kernels.driver import NatureText
from bothworlds.kernels.entries import KernelText, flat_world
from bothworlds.kernels.random import stream_key
from bothworlds.policy import Machine
from bothworlds.simulation.card_text import Sizes, cuda, kernel_in_place, kernel_in_threads
from bothworlds.simulation.replication import Outcome, Setting
from bothworlds.simulation.unfinished import keep, name_of, take_up

THREADS = 128  # of a block
REGISTERS = 255  # of a thread, the most there are: measured against 80 to 168 on an H200
LARGEST_LOCAL = 200_000  # bytes of a thread's own memory; beyond, a replication is played in the card's
SHARE = 0.8  # of the card's free memory
FIRST_SLICE = 10  # rounds; slices double until they last for some tenths of a second
SLICE_SECONDS = 0.3
KEEP_SECONDS = 180.0  # between two writings of an unfinished run
WORTH_IT = 2_000_000_000  # rounds from which on the compilation for a card pays


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


def keys_of(seed: int, replications: range) -> Ints:
    """Return the keys of the replications' streams, all at once: thousands take no time.

    >>> keys_of(5, range(7, 9)).tolist() == [stream_key(5, 7), stream_key(5, 8)]
    True
    """
    keys: Any = stream_key
    return np.asarray(keys(seed, np.arange(replications.start, replications.stop)))


def require_card() -> None:
    """Say in a sentence why there is no card to work with, if there is none."""
    if not is_available():
        raise ValueError(
            "device='gpu' needs an NVIDIA card with its driver, and numba-cuda (pip install '.[gpu]' in a clone of "
            "bothworlds); there is none here. Use device='cpu'"
        )


def is_available() -> bool:
    """Tell whether there is a card to work with."""
    return bool(cuda.is_available())


@lru_cache(maxsize=64)
def compiled_kernel(text: KernelText, nature_text: NatureText, sizes: Sizes, static: tuple[float, ...]) -> Any:
    """Build the kernel as machine code of the card; once per process, algorithm and sizes."""
    settings: Any = numba.core.config
    options = {} if settings.ENABLE_CUDASIM else {"max_registers": REGISTERS}
    build = kernel_in_threads if fits_a_thread(sizes) else kernel_in_place
    return cuda.jit(**options)(build(text, nature_text, sizes, static))


class GpuReplications:
    """Many replications of a learner against an environment on a card; the interface of `Replications`."""

    def __init__(self, machine: Machine, setting: Setting, numbers: range) -> None:
        self._machine, self._setting, self.numbers = machine, setting, numbers
        self._sizes = sizes = sizes_of(machine, setting)
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
        columns = np.repeat(start[:, None], R, axis=1)
        if machine.seed is not None:
            parts = columns[: sizes.memory], columns[sizes.memory : sizes.memory + sizes.cells]
            machine.seed(machine.text.state_of(*parts, sizes.S, sizes.K, sizes.d), keys_of(setting.seed, numbers))
        self._saved = send(columns)
        self._places = send(np.zeros((sizes.places, R), dtype=np.int64))
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
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*low occupancy")  # few replications may be wanted
            self._play[blocks, THREADS](
                *self._fixed,
                *self._nature,
                self._saved,
                self._places,
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

    def arrays(self) -> dict[str, Any]:
        """Return all that changes while playing, so that another card can go on."""
        parts = {f"record{i}": part for i, part in enumerate(self._record)}
        parts |= {"saved": self._saved, "places": self._places}
        return {"played": np.array(self.played), **{name: part.copy_to_host() for name, part in parts.items()}}

    def go_on_from(self, arrays: dict[str, Any]) -> None:
        """Go on where another one stopped."""
        self.played = int(arrays["played"])
        self._saved, self._places = cuda.to_device(arrays["saved"]), cuda.to_device(arrays["places"])
        self._record = [cuda.to_device(arrays[f"record{i}"]) for i in range(len(self._record))]

    def outcomes(self) -> list[Outcome]:
        """Return what the replications leave."""
        sizes, setting = self._sizes, self._setting
        saved = self._saved.copy_to_host()
        expected, realised, own_best, coefficients = (part.copy_to_host() for part in self._record)
        memory, cells = saved[: sizes.memory], saved[sizes.memory : sizes.memory + sizes.cells]
        state = self._machine.text.state_of(memory, cells, sizes.S, sizes.K, sizes.d)
        remembered = saved[sizes.starts[3] :]
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


def play(
    machine: Machine,
    setting: Setting,
    replications: range,
    advance: Callable[[int], None],
    unfinished: Path | None = None,
) -> list[Outcome]:
    """Play some replications on the card, in slices of a fraction of a second; return what each leaves.

    With a file for it an unfinished run is kept there every few minutes and when it is interrupted, and taken up.
    """
    require_card()
    outcomes: list[Outcome] = []
    files = []
    for part in fitting(machine, setting, replications):
        some = GpuReplications(machine, setting, part)
        if unfinished is None:
            _finish(some, setting.horizon, advance, lambda: None)
        else:
            files.append(unfinished.with_suffix(f".{part.start}{unfinished.suffix}"))
            _finish_or_keep(some, files[-1], name_of(machine, setting, part), setting.horizon, advance)
        outcomes += some.outcomes()
    for path in files:
        path.unlink(missing_ok=True)
    return outcomes


def _finish(some: GpuReplications, horizon: int, advance: Callable[[int], None], between: Callable[[], None]) -> None:
    """Play slice by slice to the end."""
    rounds = FIRST_SLICE
    while some.played < horizon:
        began = time.monotonic()
        advance(some.advance(rounds))
        if time.monotonic() - began < SLICE_SECONDS:
            rounds *= 2
        between()


def _finish_or_keep(some: GpuReplications, path: Path, name: str, horizon: int, advance: Callable[[int], None]) -> None:
    """Play to the end from where the file stands; keep what there is now and then, at the end, and when stopped."""
    arrays = take_up(path, name)
    if arrays is not None:
        some.go_on_from(arrays)
        advance(some.played * len(some.numbers))
    kept = time.monotonic()

    def now_and_then() -> None:
        nonlocal kept
        if time.monotonic() - kept >= KEEP_SECONDS:
            keep(path, name, some.arrays())
            kept = time.monotonic()

    try:
        _finish(some, horizon, advance, now_and_then)
    finally:
        keep(path, name, some.arrays())


def fits_a_thread(sizes: Sizes) -> bool:
    """Tell whether a thread's own memory holds a replication, its scratch space included."""
    return 8 * (sizes.saved + sizes.places + sizes.memory + sizes.cells) <= LARGEST_LOCAL


def fitting(machine: Machine, setting: Setting, replications: range) -> list[range]:
    """Split replications so that each part fits into the free memory of the card."""
    sizes = sizes_of(machine, setting)
    each = 8 * (sizes.saved + sizes.places + len(setting.checkpoints) * (3 + sizes.J) + 1)
    most = int(SHARE * free_memory() / each)
    if most < 1:
        raise ValueError(
            f"a replication of {sizes.S} contexts, {sizes.K} arms and dimension {sizes.d} needs {each:,} bytes, "
            f"and the card has {free_memory():,}; use device='cpu', or a smaller problem, delay or batch"
        )
    return [replications[first : first + most] for first in range(0, len(replications), most)]


def free_memory() -> int:
    """Return how many bytes of the card's memory are free."""
    return int(cuda.current_context().get_memory_info()[0])
