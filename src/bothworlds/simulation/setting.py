"""`Setting`: what all replications of a run share, and the checks of its options."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bothworlds.arrays import Ints
from bothworlds.environments.environment import Environment, require_environment
from bothworlds.kernels.random import Seed, key_from
from bothworlds.problem.checks import whole

LARGEST_COUNT = 10**6
LARGEST_HORIZON = 2**53  # round counters are floats, exact up to here
LARGEST_QUEUE = 2**31  # bytes of decisions that wait for feedback, per replication


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all replications of a run share: environment, horizon, checkpoints, seed, delay and batch size."""

    environment: Environment
    horizon: int
    checkpoints: Ints
    seed: int
    delay: int = 0
    batch: int = 1


def log_spaced(horizon: int, count: int = 200) -> Ints:
    """Return about ``count`` rounds from 1 to the horizon, evenly spaced in the logarithm.

    >>> log_spaced(10, 4).tolist()
    [1, 2, 5, 10]
    """
    return np.unique(np.rint(np.geomspace(1, horizon, count)).astype(np.int64))


def check_feedback(horizon: int, delay: int, batch: int, dimension: int = 1) -> None:
    """Raise ValueError if no feedback arrives within the horizon, or if open decisions take too much memory."""
    if delay + batch > horizon:
        raise ValueError(
            f"with delay {delay} and batch {batch} no feedback arrives within the horizon {horizon}; "
            "the learner would learn nothing"
        )
    size = 8 * (delay + batch) * (3 + 2 * dimension)
    if size > LARGEST_QUEUE:
        raise ValueError(
            f"delay {delay} and batch {batch} need {size / 2**30:,.1f} GiB for open decisions per replication; "
            f"at most {LARGEST_QUEUE / 2**30:g} GiB are allowed"
        )


def make_setting(
    environment: Environment,
    *,
    horizon: int,
    rng: Seed,
    checkpoints: int | Iterable[int] = 200,
    delay: int = 0,
    batch: int = 1,
) -> Setting:
    """Check the options of a run and return its setting."""
    require_environment(environment)
    horizon, delay, batch = whole(horizon, 1, "horizon"), whole(delay, 0, "delay"), whole(batch, 1, "batch")
    check_feedback(horizon, delay, batch, environment.problem.features.shape[2])
    if horizon > LARGEST_HORIZON:
        raise ValueError(f"horizon must be at most 2**53; got {horizon}")
    if environment.path.size and horizon > len(environment.path):
        raise ValueError(f"the environment has parameters for {len(environment.path)} rounds, not for {horizon}")
    if isinstance(checkpoints, Iterable):
        rounds = [whole(mark, 1, "a checkpoint") for mark in checkpoints]
        if rounds and max(rounds) > horizon:
            raise ValueError(f"checkpoints must lie between 1 and the horizon {horizon}; got {max(rounds)}")
        marks = np.unique(np.array([*rounds, horizon], dtype=np.int64))
    else:
        count = whole(checkpoints, 1, "checkpoints")
        if count > LARGEST_COUNT:
            raise ValueError(f"checkpoints must be at most {LARGEST_COUNT:,}, or a list of rounds; got {count:,}")
        marks = log_spaced(horizon, max(2, count))
    return Setting(
        environment=environment, horizon=horizon, checkpoints=marks, seed=key_from(rng), delay=delay, batch=batch
    )
