"""Ad fatigue: an environment that reacts to the arms played."""

from typing import Any

import numpy as np

from bothworlds.environments import dynamics
from bothworlds.environments.common import make, rounds_of
from bothworlds.environments.environment import Environment, Noise
from bothworlds.problem import Problem


def ad_fatigue(
    *,
    click_rates: Any,
    probabilities: Any,
    wear: float = 0.15,
    memory: int = 200,
    noise: Noise = "bernoulli",
    sigma: float = 0.25,
) -> Environment:
    """Make the paper's motivating example: the click rate of an ad falls the more often it was shown recently.

    click_rates (contexts, ads) are those of fresh ads. The exposure of an ad is an exponential average of its displays,
    with rate 1/memory per round, shared by all contexts. The click rate of an ad that is shown all the time falls by
    ``wear`` in the limit. Every ad has its own click rate in every context, so features are one unit vector per pair.
    """
    rates = np.array(click_rates, dtype=np.float64)
    rate = 1.0 / rounds_of(memory, 1, "memory")
    if rates.ndim != 2 or (rates < 0).any() or (rates > 1).any() or not 0.0 <= wear <= rates.min():
        raise ValueError(
            "click_rates must be a (contexts, ads) table of probabilities, and wear must lie between 0 and the smallest"
        )
    S, K = rates.shape
    phi = np.eye(S * K).reshape(S, K, S * K)
    problem = Problem(features=phi, probabilities=probabilities, reward_range=(0.0, 1.0))
    fresh = (1.0 - 2.0 * rates).reshape(-1)
    wear_of_arm = np.tile(np.eye(K), (1, S))
    environment = make(
        "ad fatigue",
        problem,
        [fresh, *wear_of_arm],
        dynamics.FATIGUE,
        noise=noise,
        sigma=sigma,
        constants=[2.0 * wear, rate],
        reacts=True,
    )
    environment.require_mean_losses(environment.tables[0] + 2.0 * wear, "wear")
    return environment
