"""An algorithm that learns along a log, as a target: its probabilities at each row, known from earlier rows only."""

from typing import Any

import numpy as np

from bothworlds.evaluation.logged import Logged
from bothworlds.evaluation.regression import blocks
from bothworlds.evaluation.targets import Target
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.random import Seed, key_from
from bothworlds.policy import Algorithm

LOW = 0.05  # quantile of propensities


def learning(algorithm: Algorithm, logged: Logged, *, floor: float | None = None, rng: Seed = 0) -> Target:
    """Let an algorithm learn from the rows that it might have decided itself; return what it would have done in each.

    At each row it draws an arm of its own. If that is the arm logged, the row is kept with probability min(1, floor/h),
    h being the logged propensity, and the algorithm learns from its reward; all other rows it does not see (rejection:
    Li, Chu, Langford and Wang 2011; Dudik, Erhan, Langford and Li 2012). With ``floor`` no larger than any h the rows
    kept are distributed as in a world of its own, and it learns as it would there, over fewer rounds. A larger floor
    keeps more rows, and favours arms that were logged with a propensity below it less than it should.

    Its value is the average, over the rows, of what its policy of that moment is worth; estimates and intervals weigh
    all rows, not only those kept.

    Parameters
    ----------
    floor
        If left out, the 5 % quantile of the propensities logged before, taken anew for blocks of rows that grow by a
        quarter; for the first 20 rows, what an arm has if all are played alike.
    rng
        Seed of its draws and of what is kept: an integer, a SeedSequence, a Generator, or None for a random seed.
    """
    if not logged.rows:
        raise ValueError("the log has no rows; there is nothing to learn from")
    if floor is not None and not 0.0 < floor <= 1.0:
        raise ValueError(f"floor is a probability, above 0 and at most 1; got {floor!r}")
    key = key_from(rng)
    policy: Any = algorithm.start(logged.problem, rng=key)
    floors = _floors(logged) if floor is None else floor
    wanted = np.random.default_rng(key).random(logged.rows) * logged.propensity < floors
    found = np.empty((logged.rows, logged.problem.n_arms))
    kept = 0
    columns = zip(logged.context.tolist(), logged.arm.tolist(), logged.reward.tolist(), wanted.tolist(), strict=True)
    for i, (x, arm, reward, keep) in enumerate(columns):
        found[i] = policy.probabilities(x)
        decision = policy.act(x)
        if keep and decision.arm == arm:
            policy.update(decision, reward=reward)
            kept += 1
    return Target(by_row=found, about=f"{algorithm!r} learning by rejection from {kept:,} of {logged.rows:,} rows")


def _floors(logged: Logged) -> Floats:
    """Return a floor for every row, known from the rows before its block."""
    starts = blocks(logged.rows)
    each = [1.0 / logged.problem.n_arms, *(np.quantile(logged.propensity[:start], LOW) for start in starts[1:])]
    return np.repeat(each, np.diff([*starts, logged.rows]))
