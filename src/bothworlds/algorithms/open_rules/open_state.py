"""Options and state of the default rule for open problems.

The grams and moments of the memories are stored divided by ``scale``, so that forgetting costs one product: memory 0 is
the regression since the last restart, the others have the exponential windows of `change_evidence`.
"""

from typing import NamedTuple

from bothworlds.arrays import Floats


class Options(NamedTuple):
    """Hyper-parameters."""

    gain: float
    least: float
    caution: float  # times d
    settled: float  # rounds after which caution counts in full
    price: float
    c: float
    first: float  # beta_1
    uncovered: float  # b: below it an uncovered step makes beta jump
    leave_in: float  # 1 if a request is in its own covariance, 0 if the reservoir has it already
    ridge: float  # times d: divided by the contexts in the reservoir it is the ridge
    capacity: float  # of the reservoir
    entry: float  # smallest chance of a context to enter the full reservoir
    trusted: float  # rounds since a restart before which there is no evidence of another
    row_by_row: float  # rounds since a restart for which every row gets a plan; later one row more between two plans
    rows_per_piece: float  # with each of these many rounds
    longest_piece: float


class State(NamedTuple):
    """Learner state: numbers have the shape (1,), vectors (blocks, p)."""

    inverse_rate: Floats  # beta
    rounds: Floats  # n, rows since the last restart
    rows: Floats  # learned
    pending: Floats  # rows since the plan
    piece: Floats  # rows for which the plan was made
    restarts: Floats
    restarting: Floats  # 1 after a restart, 0 once the plan contains it
    exploration_rate: Floats
    kept: Floats  # contexts in the reservoir
    observed: Floats  # contexts since the reservoir was filled anew
    theta: Floats
    drift: Floats
    baseline: Floats  # m of the plan
    step: Floats  # sum of estimates since the plan
    estimates: Floats  # (3, blocks, p): regression and shorter memories
    moments: Floats  # (3, blocks, p)
    grams: Floats  # (3, blocks, p, p)
    scales: Floats  # (3,)
    window_rounds: Floats  # (2,): sums of their weights
    evidence: Floats  # (2,)
    weights: Floats  # plan: Theta + mu + r m
    inverse: Floats  # plan: G with Sigma^-1 = G^T G, by blocks
    z: Floats  # reservoir: features (capacity, rows, p)
    offered: Floats  # (capacity, candidates)
    q: Floats  # (capacity, candidates)


class Work(NamedTuple):
    """Scratch space."""

    shift: Floats  # (capacity, candidates): products of the step
    table: Floats  # predictions, then losses
    roots: Floats
    column: Floats  # a number per row of features
    way: Floats  # (blocks, p)
    even: Floats  # (blocks, p, p)
    regular: Floats  # (blocks, p)
    mixed: Floats  # (p, p)
