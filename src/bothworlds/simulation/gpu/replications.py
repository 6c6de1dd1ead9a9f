"""The same text on a GPU: one replication per thread, thousands at once (optional: pip install 'bothworlds[gpu]').

A thread plays a slice of rounds and writes its replication to the GPU's memory in between, so that progress shows, a
run can be stopped and taken up again, and what it needs is known before it starts. Sizes are constants of the compiled
kernel: loops unroll, and small arrays live in registers; large sums are made in tiles that do (`in_tiles`).
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

from bothworlds.environments.nature import NatureText
from bothworlds.errors import MissingDeviceError, NumericalError
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.contract import KernelText, Machine, flat_known
from bothworlds.kernels.random import stream_key
from bothworlds.simulation.driver import Slice
from bothworlds.simulation.gpu.columns import Extents, extents_of
from bothworlds.simulation.gpu.threads import Columns, Given, Noted, Stream, cuda, kernel_in_place, kernel_in_threads
from bothworlds.simulation.gpu.unfinished import keep, name_of, take_up
from bothworlds.simulation.replication import Outcome
from bothworlds.simulation.setting import Setting

THREADS = 128  # of a block
REGISTERS = 255  # of a thread, the most there are: measured against 80 to 168 on an H200
LARGEST_LOCAL = 200_000  # bytes of a thread's own memory; beyond, a replication is played in the GPU's
SHARE = 0.8  # of the GPU's free memory
FIRST_SLICE = 10  # rounds; slices double until they last for some tenths of a second
SLICE_SECONDS = 0.3
KEEP_SECONDS = 180.0  # between two writings of an unfinished run
WORTH_IT = 2_000_000_000  # rounds from which on the compilation for a GPU pays


def keys_of(seed: int, replications: range) -> Ints:
    """Return the keys of the replications' streams, all at once: thousands take no time.

    >>> keys_of(5, range(7, 9)).tolist() == [stream_key(5, 7), stream_key(5, 8)]
    True
    """
    keys: Any = stream_key
    return np.asarray(keys(seed, np.arange(replications.start, replications.stop)))


def require_gpu() -> None:
    """Say in a sentence why there is no GPU to work with, if there is none."""
    if not is_available():
        raise MissingDeviceError(
            "device='gpu' needs an NVIDIA GPU with its driver, and numba-cuda (pip install 'bothworlds[gpu]'); "
            "there is none here. Use device='cpu'"
        )


def is_available() -> bool:
    """Tell whether there is a GPU to work with."""
    return bool(cuda.is_available())


@lru_cache(maxsize=64)
def compiled_kernel(text: KernelText, nature_text: NatureText, extents: Extents, static: tuple[float, ...]) -> Any:
    """Build the kernel as machine code of the GPU; once per process, algorithm and sizes."""
    settings: Any = numba.core.config
    options = {} if settings.ENABLE_CUDASIM else {"max_registers": REGISTERS}
    build = kernel_in_threads if fits_a_thread(extents) else kernel_in_place
    return cuda.jit(**options)(build(text, nature_text, extents, static))


def given_to(machine: Machine, setting: Setting) -> Given:
    """Send to the GPU what all replications share; nothing there is empty."""
    nature = setting.environment.begin()
    path = nature.path if nature.path.size else np.zeros((1, len(nature.c)))
    learner = flat_known(machine.known), np.append(machine.flat_options, 0.0)
    return Given(*map(cuda.to_device, (*learner, nature.constants, nature.tables, path, setting.checkpoints)))


def first_columns(machine: Machine, extents: Extents, keys: Ints) -> Columns:
    """Send the replications to the GPU as they begin, each with what it needs of its own stream."""
    one = np.zeros(extents.saved)
    for values, part in zip(machine.memory(), memory_in(one, extents), strict=True):
        part[...] = values
    columns = np.repeat(one[:, None], len(keys), axis=1)
    for name, values in machine.seeded(keys).items():
        machine.part(name, *memory_in(columns, extents), extents.sizes)[...] = values
    places = np.zeros((extents.places, len(keys)), dtype=np.int64)
    return Columns(cuda.to_device(columns), cuda.to_device(places))


def memory_in(columns: Floats, extents: Extents) -> tuple[Floats, Floats]:
    """Return core and rows of one replication or of several."""
    (core, rows, *_), (n_core, n_rows, *_) = extents.starts, extents.counts
    return columns[core : core + n_core], columns[rows : rows + n_rows]


def nothing_noted(checkpoints: int, extents: Extents, replications: int) -> Noted:
    """Make room on the GPU for what replications leave."""
    totals = [np.zeros((checkpoints, replications)) for _ in range(3)]
    sums = np.zeros((checkpoints, extents.counts.c, replications))
    spent = np.zeros((checkpoints, replications))
    rates = np.zeros((checkpoints if extents.rates else 1, 2, replications))
    failed = np.zeros(replications, dtype=np.int64)
    return Noted(*map(cuda.to_device, (*totals, sums, spent, rates, failed)))


class GpuReplications:
    """Many replications of a learner against an environment on a GPU; the interface of `Replications`."""

    def __init__(self, machine: Machine, setting: Setting, indices: range) -> None:
        self._machine, self._setting, self.indices = machine, setting, indices
        self._extents = extents = extents_of(machine, setting)
        options = machine.flat_options
        static = tuple(float(options[i]) for i in machine.text.static)
        self._play = compiled_kernel(machine.text, setting.environment.text, extents, static)
        self._given = given_to(machine, setting)
        self._columns: Any = first_columns(machine, extents, keys_of(setting.seed, indices))
        self._noted: Any = nothing_noted(len(setting.checkpoints), extents, len(indices))
        self.played = 0

    def advance(self, rounds: int) -> int:
        """Play some more rounds; return how many were played, of all replications together."""
        setting = self._setting
        last = min(self.played + rounds, setting.horizon)
        position = int(np.searchsorted(setting.checkpoints, self.played + 1))
        part = Slice(self.played + 1, last, position, setting.delay, setting.batch, fresh=True)
        stream = Stream(setting.seed, self.indices.start)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*low occupancy")  # few replications may be wanted
            launch = self._play[math.ceil(len(self.indices) / THREADS), THREADS]
            launch(self._given, self._columns, self._noted, stream, part)
        failed = self._noted.failed.copy_to_host()
        if failed.any():
            which = int(np.flatnonzero(failed)[0])
            raise NumericalError(
                f"arithmetic failed in round {failed[which]} of replication {self.indices[which]} "
                f"(seed {setting.seed}) against {setting.environment.name!r}; replay it alone with the same seed to "
                "see why"
            )
        end = self._extents.starts.state + self._extents.counts.state
        setting.environment.require_obedience(self._columns.reals[end - 1 : end].copy_to_host(), last)
        done = last - self.played
        self.played = last
        return done * len(self.indices)

    def arrays(self) -> dict[str, Any]:
        """Return all that changes while playing, so that another GPU can go on."""
        parts = {**self._columns._asdict(), **self._noted._asdict()}
        return {"played": np.array(self.played), **{name: part.copy_to_host() for name, part in parts.items()}}

    def go_on_from(self, arrays: dict[str, Any]) -> None:
        """Go on where another one stopped."""
        self.played = int(arrays["played"])
        self._columns = Columns(*(cuda.to_device(arrays[name]) for name in Columns._fields))
        self._noted = Noted(*(cuda.to_device(arrays[name]) for name in Noted._fields))

    def outcomes(self) -> list[Outcome]:
        """Return what the replications leave."""
        machine, extents = self._machine, self._extents
        saved, noted = self._columns.reals.copy_to_host(), Noted(*(part.copy_to_host() for part in self._noted))
        names = ("pi", *machine.text.memory.learnt)
        learnt = {name: machine.part(name, *memory_in(saved, extents), extents.sizes) for name in names}
        if not self._setting.environment.budget > 0.0:
            noted.spent[...] = 0.0
        return [
            Outcome(
                expected=noted.expected[:, r],
                realised=noted.realised[:, r],
                own_best=noted.own_best[:, r],
                sums=noted.sums[:, :, r],
                rates=noted.rates[:, :, r] if machine.rates else None,
                spent=noted.spent[:, r],
                policy=learnt["pi"][..., r],
                final={name: learnt[name][..., r] for name in names[1:]},
                trace=np.zeros((0, 2), dtype=np.int64),
            )
            for r in range(len(self.indices))
        ]


def play(
    machine: Machine,
    setting: Setting,
    replications: range,
    advance: Callable[[int], None],
    unfinished: Path | None = None,
) -> list[Outcome]:
    """Play some replications on the GPU, in slices of a fraction of a second; return what each leaves.

    With a file for it an unfinished run is kept there every few minutes and when it is interrupted, and taken up.
    """
    require_gpu()
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
        advance(some.played * len(some.indices))
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


def fits_a_thread(extents: Extents) -> bool:
    """Tell whether a thread's own memory holds a replication, its scratch space included."""
    scratch: int = extents.counts.core + extents.counts.rows
    return 8 * (extents.saved + extents.places + scratch) <= LARGEST_LOCAL


def fitting(machine: Machine, setting: Setting, replications: range) -> list[range]:
    """Split replications so that each part fits into the free memory of the GPU."""
    extents = extents_of(machine, setting)
    S, K, d, _ = extents.sizes
    noted = 4 + extents.counts.c + (2 if extents.rates else 0)
    each = 8 * (extents.saved + extents.places + len(setting.checkpoints) * noted + 3)
    most = int(SHARE * free_memory() / each)
    if most < 1:
        raise ValueError(
            f"a replication of {S} contexts, {K} arms and dimension {d} needs {each:,} bytes, "
            f"and the GPU has {free_memory():,}; use device='cpu', or a smaller problem, delay or batch"
        )
    return [replications[first : first + most] for first in range(0, len(replications), most)]


def free_memory() -> int:
    """Return how many bytes of the GPU's memory are free."""
    return int(cuda.current_context().get_memory_info()[0])
