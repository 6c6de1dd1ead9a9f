"""Ridge regression on the plays, the estimate shared by the optimists and by Thompson sampling. Kernel text.

V = ridge I + sum of phi phi^T grows by one rank-one matrix a play and is factored afresh for every plan, so that the
stored inverse never drifts from V, however long the run.
"""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

from bothworlds.kernels.arithmetic import Number, absolute, every, feature, larger, where
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Beliefs, KernelText, Known, Machine, Play, even_play, known_of, no_seed
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import learnt, planned, scratch
from bothworlds.kernels.matrix import apply_inverse, cholesky, invert_lower, lower_bounds
from bothworlds.kernels.simplex import smallest
from bothworlds.kernels.status import NOT_POSITIVE, OK
from bothworlds.problem import Problem

TIE = 1e-12  # relative to the largest index of the context
LARGEST = 1e153  # of a feature: its square is a number
BELIEFS = Beliefs(gram="sigma", moment="response", linear=False)


class State(NamedTuple):
    """What is learnt: the clock, V and sum of phi loss; then the plan.

    ``sigma`` is V under its common name, ``inverse`` is G with V^-1 = G^T G.
    """

    t: Annotated[Floats, learnt()]
    response: Annotated[Floats, learnt("d")]
    sigma: Annotated[Floats, learnt("d", "d")]
    theta: Annotated[Floats, planned("d")]
    inverse: Annotated[Floats, planned("d", "d")]
    pi: Annotated[Floats, planned("S", "K")]


class Work(NamedTuple):
    """Scratch space: half a solution, and the index of every arm of a context."""

    half: Annotated[Floats, scratch("d")]
    scores: Annotated[Floats, scratch("K", packed=True)]


@kernel
def add_play(known: Known, options: Any, state: Any, play: Play, carried: Any) -> None:
    """Add phi phi^T to V and phi loss to the response."""
    for i in range(state.response.shape[0]):
        z = feature(known.z, play.x, play.a, i)
        state.response[i] += play.loss * z
        for j in range(state.response.shape[0]):
            state.sigma[i, j] += z * feature(known.z, play.x, play.a, j)
    state.t[0] += 1.0


@kernel
def estimate(state: Any, half: Floats) -> int:
    """Factor V afresh and compute theta_hat = V^-1 response; return a status."""
    if not every(cholesky(state.sigma, state.inverse)):
        return NOT_POSITIVE
    invert_lower(state.inverse)
    apply_inverse(state.inverse, state.response, half, state.theta)
    return OK


@kernel
def add_smallest(index: Floats, pi: Floats) -> None:
    """Add 1 to the probability of the arm of smallest index, in equal parts where several tie.

    A tie is a difference of 1e-12 of the largest index in size, rounding: the unit of the features does not matter.
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
def play_lower_bounds(known: Known, state: State, work: Work, width: Number) -> None:
    """Put all probability on argmin_a <phi(a, x), theta_hat> - width |phi(a, x)|_{V^-1} in each context."""
    for x in range(state.pi.shape[0]):
        lower_bounds(state.theta, state.inverse, width, known.z[x], known.blocked[x], work.scores)
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = 0.0
        add_smallest(work.scores, state.pi[x])


def ridge_machine(
    text: KernelText,
    problem: Problem,
    options: Any,
    *,
    ridge: float,
    seeded: Callable[[Any], Mapping[str, Any]] = no_seed,
) -> Machine:
    """Return the machine of an algorithm with a ridge regression, on the features as they are."""
    features = np.where(problem.available[:, :, None], problem.features, 0.0)
    if np.abs(features).max() > LARGEST:
        raise ValueError(
            f"a feature is {np.abs(features).max():.3g} in size, and its square is beyond all numbers: a regression "
            "takes features as they are, so give them in a larger unit"
        )
    return Machine(
        text=text,
        known=known_of(problem, even_play(problem.available), features),
        options=options,
        begin={"sigma": ridge * np.eye(features.shape[2])},
        seeded=seeded,
        beliefs=BELIEFS if "seed" not in text.memory.leaves else BELIEFS._replace(kept=("seed",)),
    )
