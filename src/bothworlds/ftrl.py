"""`ftrl_point`: FTRL points for tables of losses, with checks of the arguments."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.errors import NumericalError
from bothworlds.kernels.ftrl_points import shannon_point, tsallis_point
from bothworlds.kernels.jit.compile import compiled
from bothworlds.kernels.status import OK, sentence

NEAREST = 1e-8  # smallest 1 - alpha: probabilities have a relative error of about 1e-16/(1 - alpha)


def check_index(alpha: float) -> None:
    """Refuse a Tsallis index so close to 1 that FTRL points lose their precision."""
    if 1.0 - NEAREST < alpha < 1.0:
        raise ValueError(
            f"alpha = {alpha!r} is within 1e-8 of 1, where probabilities lose their precision: use a smaller alpha, "
            "or Shannon entropy (alpha = 1 in ftrl_point; RealFTRL among the algorithms)"
        )


@lru_cache(maxsize=1)
def _points() -> tuple[Callable[..., tuple[int, float]], Callable[..., None]]:
    """Return the functions for Tsallis and Shannon points, compiled on first use."""
    return compiled(tsallis_point), compiled(shannon_point)


def ftrl_point(losses: Any, *, learning_rate: float = 1.0, alpha: float = 0.5) -> Floats:
    """Return argmin over the simplex of <losses, q> + psi(q)/learning_rate (equation (4)).

    psi(q) = (1 - sum q^alpha)/alpha for alpha in (0, 1); alpha = 1 means Shannon entropy, q proportional to
    exp(-learning_rate losses). ``losses`` has shape (arms,) or (contexts, arms), on any scale.

    >>> ftrl_point([0.0, 1.0, 1.0]).round(3).tolist()
    [0.614, 0.193, 0.193]
    >>> ftrl_point([0.0, 0.0], alpha=1.0).tolist()
    [0.5, 0.5]
    """
    table = np.array(losses, dtype=np.float64)
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(f"losses must have shape (arms,) or (contexts, arms); got {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("losses must be finite")
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"alpha must lie in (0, 1], 1 meaning Shannon entropy; got {alpha!r}")
    check_index(alpha)
    if not 0.0 < learning_rate < np.inf:
        raise ValueError(f"learning_rate must be positive and finite; got {learning_rate!r}")
    with np.errstate(over="ignore"):
        widest = np.ptp(table, axis=-1).max()
    if not np.isfinite(widest):
        raise ValueError("the losses of a context differ by more than 1.7e308: their difference overflows")
    tsallis, shannon = _points()
    powers = np.empty(table.shape[-1])
    for row in table.reshape(-1, table.shape[-1]):
        if alpha == 1.0:
            shannon(row, learning_rate, row)
            continue
        status, _ = tsallis(row, learning_rate, alpha, 1.0, powers, row)
        if status != OK:
            raise NumericalError(f"{sentence(status)} for alpha = {alpha}")
    return table
