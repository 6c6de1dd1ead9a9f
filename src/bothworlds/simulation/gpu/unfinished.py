"""A run that is not finished yet, as a file: written now and then, taken up by the same call on any machine."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.kernels.contract import Machine, flat_known
from bothworlds.kernels.jit.compile import source_hash
from bothworlds.kernels.jit.fingerprint import foreign_hash
from bothworlds.problem.storage import UNFINISHED, read_arrays, write_arrays
from bothworlds.simulation.setting import Setting

Arrays = dict[str, Any]


def name_of(machine: Machine, setting: Setting, replications: range) -> str:
    """Return a hash of all that a run depends on: learner, world, options, replications, and our own source."""
    nature, text = setting.environment.begin(), machine.text
    learner = flat_known(machine.known), machine.flat_options, *machine.memory()
    options = (setting.seed, setting.horizon, setting.delay, setting.batch, replications, nature.kind, nature.noise)
    parts = text.refresh, text.choose, text.learn, *setting.environment.text
    functions = [f"{part.__module__}.{part.__qualname__} {foreign_hash(part)}" for part in parts]
    digest = hashlib.blake2b(f"{source_hash()} {functions} {options}".encode(), digest_size=10)
    for array in (*learner, setting.checkpoints, *nature[2:5]):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def keep(path: Path, name: str, arrays: Arrays) -> None:
    """Write an unfinished run; a file that is there is replaced at once or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(path, {"format": UNFINISHED, "name": name}, arrays, compress=False)


def take_up(path: Path, name: str) -> Arrays | None:
    """Return the arrays of an unfinished run, or None if there is none; that of another run is refused."""
    if not path.exists():
        return None
    header, arrays = read_arrays(path)
    if (header.get("format"), header.get("name")) != (UNFINISHED, name):
        raise ValueError(
            f"{path} belongs to another run: other sizes, options, seed or version; delete it to begin again"
        )
    return arrays
