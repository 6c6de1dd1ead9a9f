"""Launch simulations on a GPU: one replication per thread, thousands at once (optional: pip install '.[gpu]').

Threads play slices of rounds and save their replication to global memory in between, which allows progress reports and
checkpoints, and makes memory use known in advance. Sizes are constants of the compiled kernel, so that loops unroll and
small arrays live in registers; large sums are computed in register tiles (`bothworlds.simulation.gpu.tuned`).
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

from bothworlds.arrays import Floats, Ints
from bothworlds.environments.dynamics import NatureKernel
from bothworlds.errors import MissingDeviceError, NumericalError, how_to_install
from bothworlds.kernels.contract import Kernel, Machine, flat_known
from bothworlds.kernels.random import stream_key
from bothworlds.simulation.gpu.checkpoint import load_checkpoint, run_fingerprint, save_checkpoint
from bothworlds.simulation.gpu.kernels import (
    Columns,
    Measurements,
    Shared,
    Stream,
    cuda,
    global_memory_kernel,
    thread_memory_kernel,
)
from bothworlds.simulation.gpu.memory_layout import Extents, extents_of
from bothworlds.simulation.replication import Outcome
from bothworlds.simulation.round_loop import Slice
from bothworlds.simulation.setting import Setting

THREADS = 128  # per block
REGISTERS = 255  # per thread, the maximum: faster than 80 to 168 on an H200
LARGEST_LOCAL = 200_000  # bytes of local memory per thread; larger replications are played in global memory
SHARE = 0.8  # of the GPU's free memory
FIRST_SLICE = 10  # rounds; slices double until they take SLICE_SECONDS
SLICE_SECONDS = 0.3
CHECKPOINT_SECONDS = 180.0  # between two writes of an unfinished run
MIN_ROUNDS = 2_000_000_000  # rounds that justify the compilation for a GPU with device="auto"


def stream_keys(seed: int, replications: range) -> Ints:
    """Return the keys of the replications' streams, computed as an array.

    >>> stream_keys(5, range(7, 9)).tolist() == [stream_key(5, 7), stream_key(5, 8)]
    True
    """
    keys: Any = stream_key
    return np.asarray(keys(seed, np.arange(replications.start, replications.stop)))


def require_gpu() -> None:
    """Raise MissingDeviceError if there is no usable GPU."""
    if not is_available():
        raise MissingDeviceError(
            "device='gpu' needs an NVIDIA GPU with its driver, and numba-cuda "
            f"({how_to_install('gpu')}); none was found. Use device='cpu'"
        )


def is_available() -> bool:
    """Whether there is a usable GPU."""
    return bool(cuda.is_available())


@lru_cache(maxsize=64)
def compiled_kernel(functions: Kernel, nature_kernel: NatureKernel, extents: Extents, static: tuple[float, ...]) -> Any:
    """Compile the kernel for the GPU; once per process, algorithm and sizes."""
    settings: Any = numba.core.config
    options = {} if settings.ENABLE_CUDASIM else {"max_registers": REGISTERS}
    build = thread_memory_kernel if fits_thread_memory(extents) else global_memory_kernel
    return cuda.jit(**options)(build(functions, nature_kernel, extents, static))


def shared_arrays(machine: Machine, setting: Setting) -> Shared:
    """Copy the constants of all replications to the GPU; no array is empty."""
    nature = setting.environment.begin()
    path = nature.path if nature.path.size else np.zeros((1, len(nature.c)))
    learner = flat_known(machine.known), np.append(machine.flat_options, 0.0)
    return Shared(*map(cuda.to_device, (*learner, nature.constants, nature.tables, path, setting.checkpoints)))


def initial_columns(machine: Machine, extents: Extents, keys: Ints) -> Columns:
    """Copy the initial replications to the GPU, with values that depend on their random streams."""
    column = np.zeros(extents.saved)
    for values, part in zip(machine.memory(), memory_in(column, extents), strict=True):
        part[...] = values
    columns = np.repeat(column[:, None], len(keys), axis=1)
    for name, values in machine.seeded(keys).items():
        machine.part(name, *memory_in(columns, extents), extents.sizes)[...] = values
    places = np.zeros((extents.places, len(keys)), dtype=np.int64)
    return Columns(cuda.to_device(columns), cuda.to_device(places))


def memory_in(columns: Floats, extents: Extents) -> tuple[Floats, Floats]:
    """Return core and rows of one or several replications, as views."""
    (core, rows, *_), (n_core, n_rows, *_) = extents.starts, extents.counts
    return columns[core : core + n_core], columns[rows : rows + n_rows]


def empty_measurements(checkpoints: int, extents: Extents, replications: int) -> Measurements:
    """Allocate the measurements of all replications on the GPU."""
    totals = [np.zeros((checkpoints, replications)) for _ in range(4)]
    sums = np.zeros((checkpoints, extents.counts.c, replications))
    spent = np.zeros((checkpoints, replications))
    rates = np.zeros((checkpoints if extents.rates else 1, 2, replications))
    failed = np.zeros(replications, dtype=np.int64)
    return Measurements(*map(cuda.to_device, (*totals, sums, spent, rates, failed)))


class GpuReplications:
    """Many replications of an algorithm in an environment on a GPU; the interface of `Replications`."""

    def __init__(self, machine: Machine, setting: Setting, indices: range) -> None:
        self._machine, self._setting, self.indices = machine, setting, indices
        self._extents = extents = extents_of(machine, setting)
        options = machine.flat_options
        static = tuple(float(options[i]) for i in machine.kernel.static)
        self._play = compiled_kernel(machine.kernel, setting.environment.kernel, extents, static)
        self._shared = shared_arrays(machine, setting)
        self._columns: Any = initial_columns(machine, extents, stream_keys(setting.seed, indices))
        self._measurements: Any = empty_measurements(len(setting.checkpoints), extents, len(indices))
        self.played = 0

    def advance(self, rounds: int) -> int:
        """Play up to ``rounds`` more rounds; return the number played, summed over replications."""
        setting = self._setting
        last = min(self.played + rounds, setting.horizon)
        position = int(np.searchsorted(setting.checkpoints, self.played + 1))
        part = Slice(self.played + 1, last, position, setting.delay, setting.batch, fresh=True)
        stream = Stream(setting.seed, self.indices.start)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*low occupancy")  # few replications are allowed
            launch = self._play[math.ceil(len(self.indices) / THREADS), THREADS]
            launch(self._shared, self._columns, self._measurements, stream, part)
        failed = self._measurements.failed.copy_to_host()
        if failed.any():
            r = int(np.flatnonzero(failed)[0])
            raise NumericalError(
                f"arithmetic failed in round {failed[r]} of replication {self.indices[r]} "
                f"(seed {setting.seed}) against {setting.environment.name!r}; replay it alone with the same seed to "
                "see why"
            )
        end = self._extents.starts.state + self._extents.counts.state
        setting.environment.require_kernel_in_range(self._columns.reals[end - 1 : end].copy_to_host(), last)
        done = last - self.played
        self.played = last
        return done * len(self.indices)

    def arrays(self) -> dict[str, Any]:
        """Return all arrays that change while playing, for checkpoints."""
        parts = {**self._columns._asdict(), **self._measurements._asdict()}
        return {"played": np.array(self.played), **{name: part.copy_to_host() for name, part in parts.items()}}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore the arrays of a checkpoint."""
        self.played = int(arrays["played"])
        self._columns = Columns(*(cuda.to_device(arrays[name]) for name in Columns._fields))
        self._measurements = Measurements(*(cuda.to_device(arrays[name]) for name in Measurements._fields))

    def outcomes(self) -> list[Outcome]:
        """Return the outcome of every replication."""
        machine, extents = self._machine, self._extents
        columns = self._columns.reals.copy_to_host()
        measured = Measurements(*(part.copy_to_host() for part in self._measurements))
        names = ("pi", *machine.kernel.memory.learnt)
        fields = {name: machine.part(name, *memory_in(columns, extents), extents.sizes) for name in names}
        if not self._setting.environment.budget > 0.0:
            measured.spent[...] = 0.0
        return [
            Outcome(
                expected=measured.expected[:, r],
                realised=measured.realised[:, r],
                own_best=measured.own_best[:, r],
                round_best=measured.round_best[:, r],
                sums=measured.sums[:, :, r],
                rates=measured.rates[:, :, r] if machine.rates else None,
                spent=measured.spent[:, r],
                policy=fields["pi"][..., r],
                final={name: fields[name][..., r] for name in names[1:]},
                trace=np.zeros((0, 2), dtype=np.int64),
            )
            for r in range(len(self.indices))
        ]


def play(
    machine: Machine,
    setting: Setting,
    replications: range,
    advance: Callable[[int], None],
    resume_file: Path | None = None,
) -> list[Outcome]:
    """Play replications on the GPU in slices of a fraction of a second; return their outcomes.

    With a resume file, unfinished runs are saved every few minutes and when interrupted, and resumed from the file.
    """
    require_gpu()
    outcomes: list[Outcome] = []
    files = []
    for part in split_by_memory(machine, setting, replications):
        group = GpuReplications(machine, setting, part)
        if resume_file is None:
            _play_to_end(group, setting.horizon, advance, lambda: None)
        else:
            files.append(resume_file.with_suffix(f".{part.start}{resume_file.suffix}"))
            _play_with_checkpoints(group, files[-1], run_fingerprint(machine, setting, part), setting.horizon, advance)
        outcomes += group.outcomes()
    for path in files:
        path.unlink(missing_ok=True)
    return outcomes


def _play_to_end(
    group: GpuReplications, horizon: int, advance: Callable[[int], None], after_slice: Callable[[], None]
) -> None:
    """Play slice by slice to the end."""
    rounds = FIRST_SLICE
    while group.played < horizon:
        start = time.monotonic()
        advance(group.advance(rounds))
        if time.monotonic() - start < SLICE_SECONDS:
            rounds *= 2
        after_slice()


def _play_with_checkpoints(
    group: GpuReplications, path: Path, fingerprint: str, horizon: int, advance: Callable[[int], None]
) -> None:
    """Resume from the file, if any, and play to the end; save periodically, at the end, and when interrupted."""
    arrays = load_checkpoint(path, fingerprint)
    if arrays is not None:
        group.restore(arrays)
        advance(group.played * len(group.indices))
    last_saved = time.monotonic()

    def save_if_due() -> None:
        nonlocal last_saved
        if time.monotonic() - last_saved >= CHECKPOINT_SECONDS:
            save_checkpoint(path, fingerprint, group.arrays())
            last_saved = time.monotonic()

    try:
        _play_to_end(group, horizon, advance, save_if_due)
    finally:
        save_checkpoint(path, fingerprint, group.arrays())


def fits_thread_memory(extents: Extents) -> bool:
    """Whether a thread's local memory can hold a replication and its scratch space."""
    scratch: int = extents.counts.core + extents.counts.rows
    return 8 * (extents.saved + extents.places + scratch) <= LARGEST_LOCAL


def split_by_memory(machine: Machine, setting: Setting, replications: range) -> list[range]:
    """Split replications into groups that fit into the free memory of the GPU."""
    extents = extents_of(machine, setting)
    S, K, d, _ = extents.sizes
    per_checkpoint = 5 + extents.counts.c + (2 if extents.rates else 0)
    size = 8 * (extents.saved + extents.places + len(setting.checkpoints) * per_checkpoint + 3)
    most = int(SHARE * free_memory() / size)
    if most < 1:
        raise ValueError(
            f"a replication of {S} contexts, {K} arms and dimension {d} needs {size:,} bytes, but the GPU has only "
            f"{free_memory():,} bytes free; use device='cpu', or a smaller problem, delay or batch"
        )
    return [replications[first : first + most] for first in range(0, len(replications), most)]


def free_memory() -> int:
    """Return the free memory of the GPU in bytes."""
    return int(cuda.current_context().get_memory_info()[0])
