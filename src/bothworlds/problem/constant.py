"""The constant feature that rewards in a range need: they become losses in [-1, 1] by a shift."""

import numpy as np

from bothworlds.kernels.arrays import Bools, Floats
from bothworlds.problem.span import contains_constant
from bothworlds.problem.transform import undo_blocks


def _has_constant(phi: Floats, offered: Bools) -> bool:
    """Tell whether features can express a constant; of blocks, one for each arm, a single one is asked first."""
    original = undo_blocks(phi)
    alone = original is not None and contains_constant(original[:, None, :], np.ones((len(phi), 1), dtype=bool))
    return alone or contains_constant(phi, offered)


def with_constant(phi: Floats, offered: Bools, limits: tuple[float, float] | None) -> tuple[Floats, tuple[str, ...]]:
    """Add a constant feature where the shift from rewards to losses needs one."""
    if limits is None or limits[0] + limits[1] == 0.0 or _has_constant(phi, offered):
        return phi, ()
    wider = np.concatenate([phi, np.ones((*phi.shape[:2], 1))], axis=2)
    wider.setflags(write=False)
    note = (
        f"a constant feature was added as column {phi.shape[2]}: rewards in [{limits[0]:g}, {limits[1]:g}] "
        "become losses in [-1, 1] by a shift, which the given features cannot express"
    )
    return wider, (note,)
