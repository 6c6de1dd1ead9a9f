"""Scheduled learning and exploration rates, equation (4) of the paper; see `theory.schedules`."""

from typing import NamedTuple

from bothworlds.kernels.arithmetic import Number, exponential, logarithm, root, smaller
from bothworlds.kernels.jit.compile import kernel

MOST_EXPLORATION = 0.5  # the analysis needs gamma_t <= 1/2
SAFE = 0.0625  # exploration rate at which no play can cost much: `bothworlds.algorithms.lc_tsallis.exploration_rate`


class Rates(NamedTuple):
    """Constants of a schedule: eta_t = min(gain/sqrt(t), cap), gamma_t = min(linear eta_t, power_scale eta_t^power)."""

    gain: float
    cap: float
    linear: float
    power_scale: float
    power: float


@kernel
def scheduled_learning(rates: Rates, t: Number) -> Number:
    """Return eta_t: equation (4)."""
    return smaller(rates.gain / root(t), rates.cap)


@kernel
def scheduled_exploration(rates: Rates, eta: Number) -> Number:
    """Return a gamma_t that suffices for every q_t: rules (A) and (B) of `theory.schedules`, at most 1/2."""
    curved = eta * eta
    if rates.power != 2.0:
        curved = exponential(rates.power * logarithm(eta))
    return smaller(smaller(rates.linear * eta, rates.power_scale * curved), MOST_EXPLORATION)
