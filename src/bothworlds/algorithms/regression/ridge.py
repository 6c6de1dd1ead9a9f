"""Ridge regression on the plays, the estimate of LinUCB, OFUL, LinTS, SW-LinUCB and SquareCB. Kernel functions.

V = ridge I + sum of phi phi^T grows by a rank-one matrix per play and is factored from scratch for every plan, so that
the stored inverse never drifts from V, however long the run.
"""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, absolute, every, larger, where
from bothworlds.kernels.contract import Beliefs, Kernel, Known, Machine, Play, even_play, known_of, no_seed
from bothworlds.kernels.ftrl_points import smallest
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, scratch
from bothworlds.kernels.least_squares import add_to_ridge
from bothworlds.kernels.linalg import apply_inverse, cholesky, invert_lower, lower_bounds
from bothworlds.kernels.status import NOT_POSITIVE, OK
from bothworlds.problem import Problem

TIE = 1e-12  # relative to the largest index of the context
LARGEST = 1e153  # of a feature: its square does not overflow
BELIEFS = Beliefs(gram="sigma", moment="response", linear=False)


class State(NamedTuple):
    """Learner state: the clock, V and sum of phi loss; then the plan.

    ``sigma`` is V under its common name, ``inverse`` is G with V^-1 = G^T G.
    """

    t: Annotated[Floats, learnt()]
    response: Annotated[Floats, learnt("d")]
    sigma: Annotated[Floats, learnt("d", "d")]
    theta: Annotated[Floats, planned("d")]
    inverse: Annotated[Floats, planned("d", "d")]
    pi: Annotated[Floats, planned("S", "K")]


class Work(NamedTuple):
    """Scratch space: a half solution, and the index of every arm of a context."""

    half: Annotated[Floats, scratch("d")]
    scores: Annotated[Floats, scratch("K", packed=True)]


@kernel
def add_play(known: Known, options: Any, state: Any, play: Play, carried: Any) -> None:
    """Add phi phi^T to V and phi loss to the response."""
    add_to_ridge(known, play, state.sigma, state.response)
    state.t[0] += 1.0


@kernel
def estimate(state: Any, half: Floats) -> int:
    """Factor V and compute theta_hat = V^-1 response; return a status."""
    if not every(cholesky(state.sigma, state.inverse)):
        return NOT_POSITIVE
    invert_lower(state.inverse)
    apply_inverse(state.inverse, state.response, half, state.theta)
    return OK


@kernel
def add_smallest(index: Floats, pi: Floats) -> None:
    """Add 1 to the probability of the arm with the smallest index, divided equally among ties.

    A tie is a difference of at most 1e-12 of the largest absolute index: rounding, whatever the unit of the features.
    """
    least = smallest(index)
    size = absolute(least)
    for a in range(index.shape[0]):
        size = larger(size, where(index[a] < math.inf, absolute(index[a]), 0.0))
    limit = least + TIE * size
    count = 0.0
    for a in range(index.shape[0]):
        count = count + where(index[a] <= limit, 1.0, 0.0)
    for a in range(index.shape[0]):
        pi[a] = pi[a] + where(index[a] <= limit, 1.0 / count, 0.0)


@kernel
def play_lower_bounds(known: Known, state: Any, work: Any, width: Number) -> None:
    """Put all probability on argmin_a <phi(a, x), theta_hat> - width |phi(a, x)|_{V^-1} in each context."""
    for x in range(state.pi.shape[0]):
        lower_bounds(state.theta, state.inverse, width, known.z[x], known.blocked[x], work.scores)
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = 0.0
        add_smallest(work.scores, state.pi[x])


def ridge_machine(
    functions: Kernel,
    problem: Problem,
    options: Any,
    *,
    ridge: float,
    seeded: Callable[[Any], Mapping[str, Any]] = no_seed,
    beliefs: Beliefs = BELIEFS,
    rows: int = 0,
) -> Machine:
    """Return the machine of an algorithm with a ridge regression, on the features without a transformation.

    ``rows`` is the number of plays that it keeps.
    """
    features = np.where(problem.available[:, :, None], problem.features, 0.0)
    if np.abs(features).max() > LARGEST:
        raise ValueError(
            f"a feature is {np.abs(features).max():.3g} in size, and its square overflows: a regression does not scale "
            "features, so give them in a larger unit"
        )
    return Machine(
        kernel=functions,
        known=known_of(problem, even_play(problem.available), features),
        options=options,
        begin={name: ridge * np.eye(features.shape[2]) for name in (beliefs.gram, beliefs.squared) if name},
        seeded=seeded,
        listed=rows,
        beliefs=beliefs,
    )
