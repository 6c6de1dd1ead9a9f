"""Kernel functions of the built-in environments: theta_t = sum_j c_j(t) theta_j for fixed parameters theta_j.

An environment is data: the kind of rule, its constants, and the table of mean losses of every theta_j. One compiled
round loop plays them all. ``expected_loss[j]`` is the learner's expected loss under theta_j in this round, which
adaptive rules may read; the paper lets theta_t depend on the past, and so on the learner's policy.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import lane_of
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.random import NATURE, NOISE, two_uniforms

FIXED, CYCLE, GROWING, SWITCH, SINE, RANDOM_WALK, GIVEN, WORST, CORRUPT, LEVEL, FATIGUE = range(11)
FIRST, AT_RANDOM, ADAPTIVE = range(3)
NO_NOISE, BERNOULLI, UNIFORM, NORMAL = range(4)
SLACK = 1e-9


class Nature(NamedTuple):
    """The state of an environment in kernel functions.

    ``tables`` (J, S, K) has the mean losses under theta_j, ``path`` (T, J) given coefficients, ``c`` (J,) the
    coefficients of the round, ``sums`` (J,) their sums so far, ``expected_loss`` (J,) the learner's expected loss under
    each theta_j, and ``state`` the variables of the rule. ``best`` (J + 1,) has coefficients, and the loss of the best
    arms under them: it is computed again only in rounds whose coefficients differ.
    """

    kind: int
    noise: int
    constants: Floats
    tables: Floats
    path: Floats
    c: Floats
    sums: Floats
    expected_loss: Floats
    state: Floats
    best: Floats


class NatureKernel(NamedTuple):
    """Kernel functions of an environment; ``lane`` returns the nature of one of several replications."""

    decide: Callable[..., None]
    react: Callable[..., None]
    mean_loss: Callable[..., float]
    noisy: Callable[..., float]
    lane: Callable[..., Any]


@kernel
def lane_of_nature(nature: Nature, lane: int) -> Nature:
    """Return the nature of one replication from arrays with a last axis for replications."""
    return Nature(
        nature.kind,
        nature.noise,
        nature.constants,
        nature.tables,
        nature.path,
        lane_of(nature.c, lane),
        lane_of(nature.sums, lane),
        lane_of(nature.expected_loss, lane),
        lane_of(nature.state, lane),
        lane_of(nature.best, lane),
    )


@kernel
def select(c: Floats, index: int) -> None:
    """Set theta_t = theta_index."""
    for j in range(c.shape[0]):
        c[j] = 1.0 if j == index else 0.0


@kernel
def cycle(nature: Nature, t: int) -> None:
    """Cycle through theta_1, theta_2, ..., each for constants[0] rounds."""
    select(nature.c, ((t - 1) // int(nature.constants[0])) % nature.c.shape[0])


@kernel
def switch(nature: Nature, t: int) -> None:
    """Use theta_1 through round constants[0], theta_2 through round constants[1], ..., then the last one."""
    index = 0
    for j in range(nature.c.shape[0] - 1):
        if t > nature.constants[j]:
            index = j + 1
    select(nature.c, index)


@kernel
def growing(nature: Nature, t: int) -> None:
    """Cycle through theta_1, theta_2, ...; the first phase has constants[0] rounds, each next constants[1] times more.

    state: number of the phase, its length, its last round.
    """
    if t == 1:
        nature.state[0] = 0.0
        nature.state[1] = nature.constants[0]
        nature.state[2] = nature.constants[0]
    while t > nature.state[2]:
        nature.state[0] += 1.0
        nature.state[1] = min(nature.state[1] * nature.constants[1], 1e15)
        nature.state[2] += math.ceil(nature.state[1])
    select(nature.c, int(nature.state[0]) % nature.c.shape[0])


@kernel
def random_walk(nature: Nature, t: int) -> None:
    """Move each coefficient by +-constants[0], reflected at +-1; constants[1] is the key of the random numbers."""
    for j in range(nature.c.shape[0]):
        if t == 1:
            nature.state[j] = nature.constants[2 + j]
        u, _ = two_uniforms(int(nature.constants[1]), t, NATURE, j)
        moved = nature.state[j] + (nature.constants[0] if u < 0.5 else -nature.constants[0])
        if moved > 1.0:
            moved = 2.0 - moved
        elif moved < -1.0:
            moved = -2.0 - moved
        nature.state[j] = moved
        nature.c[j] = moved


@kernel
def choose_worst(nature: Nature) -> None:
    """Use the theta_j with the largest expected loss of the learner in excess of uniform play's, constants[j]."""
    chosen = 0
    highest = -math.inf
    for j in range(nature.c.shape[0]):
        excess = nature.expected_loss[j] - nature.constants[j]
        if excess > highest:
            highest = excess
            chosen = j
    select(nature.c, chosen)


@kernel
def corrupt(nature: Nature, t: int, key: int) -> None:
    """Use theta_0, and theta_1 in corrupted rounds until the budget is spent; the last one is corrupted in part.

    constants: placement, budget, cost of a corrupted round, probability, threshold; state[0] is the corruption so far.
    Adaptive placement corrupts rounds in which the learner's expected loss under theta_0 is at most the threshold.
    """
    if t == 1:
        nature.state[0] = 0.0
    placement, budget, cost = nature.constants[0], nature.constants[1], nature.constants[2]
    share = min(1.0, (budget - nature.state[0]) / cost)
    if placement == AT_RANDOM:
        u, _ = two_uniforms(key, t, NATURE, 0)
        if u >= nature.constants[3]:
            share = 0.0
    elif placement == ADAPTIVE and nature.expected_loss[0] > nature.constants[4]:
        share = 0.0
    if share <= 0.0:
        select(nature.c, 0)
        return
    nature.state[0] += share * cost
    nature.c[0] = 1.0 - share
    nature.c[1] = share


@kernel
def add_fatigue(nature: Nature, t: int) -> None:
    """Use theta_0 plus constants[0] times the exposure of each arm times its parameter; state has the exposures."""
    nature.c[0] = 1.0
    for j in range(1, nature.c.shape[0]):
        if t == 1:
            nature.state[j - 1] = 0.0
        nature.c[j] = nature.constants[0] * nature.state[j - 1]


@kernel
def decide(nature: Nature, t: int, key: int) -> None:
    """Choose the coefficients of round t."""
    kind = nature.kind
    if kind == FIXED:
        select(nature.c, 0)
    elif kind == CYCLE:
        cycle(nature, t)
    elif kind == GROWING:
        growing(nature, t)
    elif kind == SWITCH:
        switch(nature, t)
    elif kind == SINE:
        nature.c[0] = math.sin(2.0 * math.pi * t / nature.constants[0])
        nature.c[1] = math.cos(2.0 * math.pi * t / nature.constants[0])
    elif kind == RANDOM_WALK:
        random_walk(nature, t)
    elif kind == GIVEN:
        for j in range(nature.c.shape[0]):
            nature.c[j] = nature.path[t - 1, j]
    elif kind == WORST:
        choose_worst(nature)
    elif kind == CORRUPT:
        corrupt(nature, t, key)
    elif kind == LEVEL:
        nature.c[0] = 1.0
        nature.c[1] = nature.constants[0] if ((t - 1) // int(nature.constants[1])) % 2 == 0 else -nature.constants[0]
    else:
        add_fatigue(nature, t)


@kernel
def react(nature: Nature, a: int) -> None:
    """Update the exposures with the arm that was played, at the rate constants[1]."""
    if nature.kind == FATIGUE:
        for j in range(nature.c.shape[0] - 1):
            shown = 1.0 if j == a else 0.0
            nature.state[j] += nature.constants[1] * (shown - nature.state[j])


@kernel
def mean_loss(nature: Nature, x: int, a: int) -> float:
    """Return <phi(a, x), theta_t>."""
    total = 0.0
    for j in range(nature.c.shape[0]):
        total += nature.c[j] * nature.tables[j, x, a]
    return total


@kernel
def is_average(c: Floats) -> bool:
    """Whether sum_j |c_j| <= 1, so that mean losses are no larger than those of the parameters."""
    weight = 0.0
    for j in range(c.shape[0]):
        weight += abs(c[j])
    return weight <= 1.0 + 0.25 * SLACK


@kernel
def note_outside(nature: Nature) -> None:
    """Store a mean loss outside [-1, 1] of any context and arm in the last entry of state."""
    for x in range(nature.tables.shape[1]):
        for a in range(nature.tables.shape[2]):
            total = mean_loss(nature, x, a)
            if not abs(total) <= 1.0 + SLACK:
                nature.state[nature.state.shape[0] - 1] = total


@kernel
def no_reaction(nature: Nature, a: int) -> None:
    """Ignore the arm that was played."""


@kernel
def truncated_normal(sigma: float, bound: float, key: int, t: int) -> float:
    """Draw from N(0, sigma^2) truncated to [-bound, bound], exactly, by rejection."""
    if bound <= 0.0:
        return 0.0
    value = 0.0
    for k in range(1000):
        u, v = two_uniforms(key, t, NOISE, k)
        if bound < 1.5 * sigma:
            value = (2.0 * u - 1.0) * bound
            if v <= math.exp(-0.5 * value * value / (sigma * sigma)):
                return value
        else:
            value = sigma * math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)
            if abs(value) <= bound:
                return value
    return 0.0


@kernel
def noisy(nature: Nature, mean: float, u: float, key: int, t: int) -> float:
    """Return a loss in [-1, 1] with the given mean; u is a uniform of the round."""
    mean = min(max(mean, -1.0), 1.0)  # a mean may leave the range by rounding
    room = 1.0 - abs(mean)
    if nature.noise == BERNOULLI:
        return 1.0 if u < 0.5 * (1.0 + mean) else -1.0
    if nature.noise == UNIFORM:
        return mean + (2.0 * u - 1.0) * room
    if nature.noise == NORMAL:
        return mean + truncated_normal(nature.constants[nature.constants.shape[0] - 1], room, key, t)
    return mean
