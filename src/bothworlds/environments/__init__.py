"""Simulated environments for every regime of the paper; each knows its mean losses, gaps and comparator."""

from bothworlds.environments.adversarial import (
    adaptive_adversary,
    alternating,
    flip,
    from_function,
    given,
    growing_phases,
    random_walk,
    sine,
)
from bothworlds.environments.changing import change_point, jumps, seasons, slow_turn
from bothworlds.environments.clicks import clicks
from bothworlds.environments.common import opposite
from bothworlds.environments.corrupted import corrupted, moving_level
from bothworlds.environments.custom import kernel_environment
from bothworlds.environments.environment import Environment
from bothworlds.environments.fatigue import ad_fatigue
from bothworlds.environments.instances import Instance, margin_instance, random_instance
from bothworlds.environments.stochastic import lower_bound, stacked, stochastic
from bothworlds.environments.uniform_baseline import captured_gain, possible_gain

__all__ = [
    "Environment",
    "Instance",
    "ad_fatigue",
    "adaptive_adversary",
    "alternating",
    "captured_gain",
    "change_point",
    "clicks",
    "corrupted",
    "flip",
    "from_function",
    "given",
    "growing_phases",
    "jumps",
    "kernel_environment",
    "lower_bound",
    "margin_instance",
    "moving_level",
    "opposite",
    "possible_gain",
    "random_instance",
    "random_walk",
    "seasons",
    "sine",
    "slow_turn",
    "stacked",
    "stochastic",
]
