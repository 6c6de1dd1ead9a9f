"""Ad fatigue: nature reacts to the plays themselves."""

from typing import Any

import numpy as np

from bothworlds.environments import nature
from bothworlds.environments.environment import Environment, Noise
from bothworlds.environments.making import make, rounds_of
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
    """Make the paper's motive: the response to an ad falls the more often its audience has seen it lately.

    click_rates (contexts, ads) are those of fresh ads. Exposure follows what is shown at the rate 1/memory a round, and
    an ad shown all the time tends to lose ``wear``; exposure is shared by all contexts. Every ad has its own click
    rate in every context, so features are one unit vector per pair.
    """
    rates = np.array(click_rates, dtype=np.float64)
    rate = 1.0 / rounds_of(memory, 1, "memory")
    if rates.ndim != 2 or (rates < 0).any() or (rates > 1).any() or not 0.0 <= wear <= rates.min():
        raise ValueError(
            "click_rates must be a (contexts, ads) table of probabilities, and wear at most the smallest of them"
        )
    S, K = rates.shape
    phi = np.eye(S * K).reshape(S, K, S * K)
    problem = Problem(features=phi, probabilities=probabilities, reward_range=(0.0, 1.0))
    fresh = (1.0 - 2.0 * rates).reshape(-1)
    tired = np.tile(np.eye(K), (1, S))
    made = make(
        "ad fatigue",
        problem,
        [fresh, *tired],
        nature.FATIGUE,
        noise=noise,
        sigma=sigma,
        constants=[2.0 * wear, rate],
        reacts=True,
    )
    made.require_losses(made.tables[0] + 2.0 * wear, "wear")
    return made
