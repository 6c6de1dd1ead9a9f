"""Checkpoint files of unfinished runs, from which the same call resumes on any machine."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.kernels.contract import Machine, flat_known
from bothworlds.kernels.jit.compile import source_hash
from bothworlds.kernels.jit.source_hash import foreign_hash
from bothworlds.problem.file_format import UNFINISHED, read_arrays, write_arrays
from bothworlds.simulation.setting import Setting

Arrays = dict[str, Any]


def run_fingerprint(machine: Machine, setting: Setting, replications: range) -> str:
    """Return a hash of everything that a run depends on: learner, environment, options, replications, our source."""
    nature, algorithm_kernel = setting.environment.begin(), machine.kernel
    learner = flat_known(machine.known), machine.flat_options, *machine.memory()
    options = (setting.seed, setting.horizon, setting.delay, setting.batch, replications, nature.kind, nature.noise)
    parts = algorithm_kernel.refresh, algorithm_kernel.choose, algorithm_kernel.learn, *setting.environment.kernel
    functions = [f"{part.__module__}.{part.__qualname__} {foreign_hash(part)}" for part in parts]
    digest = hashlib.blake2b(f"{source_hash()} {functions} {options}".encode(), digest_size=10)
    for array in (*learner, setting.checkpoints, *nature[2:5]):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def save_checkpoint(path: Path, name: str, arrays: Arrays) -> None:
    """Write an unfinished run atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(path, {"format": UNFINISHED, "name": name}, arrays, compress=False)


def load_checkpoint(path: Path, name: str) -> Arrays | None:
    """Return the arrays of an unfinished run, or None if there is no file; refuse a file of another run."""
    if not path.exists():
        return None
    header, arrays = read_arrays(path)
    if (header.get("format"), header.get("name")) != (UNFINISHED, name):
        raise ValueError(
            f"{path} belongs to a run with other sizes, options, seed or version; delete it to start from the beginning"
        )
    return arrays
