"""Nature as kernel text: theta_t = sum_j c_j(t) theta_j for a few fixed parameters theta_j, chosen round by round.

An environment is data: the kind of rule, its constants, and the table of mean losses of every theta_j. One compiled
driver serves them all. ``hurt[j]`` is the learner's expected loss under theta_j in this round, which an adaptive
nature may look at; the paper lets theta_t depend on the past, and so on the learner's policy.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bothworlds.kernels.arithmetic import lane_of
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.random import NATURE, NOISE, two_uniforms

FIXED, CYCLE, GROWING, SWITCH, SINE, WALK, GIVEN, WORST, CORRUPT, LEVEL, FATIGUE = range(11)
FIRST, AT_RANDOM, WHEN_SURE = range(3)
NO_NOISE, BERNOULLI, UNIFORM, NORMAL = range(4)
SLACK = 1e-9


class Nature(NamedTuple):
    """An environment as a kernel sees it.

    ``tables`` (J, S, K) mean losses of theta_j, ``path`` (T, J) given coefficients, ``c`` (J,) the coefficients of
    the round, ``sums`` (J,) their sums so far, ``hurt`` (J,), and ``state`` whatever the rule remembers.
    """

    kind: int
    noise: int
    constants: Floats
    tables: Floats
    path: Floats
    c: Floats
    sums: Floats
    hurt: Floats
    state: Floats


class NatureText(NamedTuple):
    """The functions that make a nature: `decide`, `react`, `mean_loss`, `noisy`; ``lane`` takes one of eight apart."""

    decide: Callable[..., None]
    react: Callable[..., None]
    mean_loss: Callable[..., float]
    noisy: Callable[..., float]
    lane: Callable[..., Any]


@kernel
def lane_of_nature(nature: Nature, lane: int) -> Nature:
    """Return one of eight natures, whose memories have a last axis of length eight."""
    return Nature(
        nature.kind,
        nature.noise,
        nature.constants,
        nature.tables,
        nature.path,
        lane_of(nature.c, lane),
        lane_of(nature.sums, lane),
        lane_of(nature.hurt, lane),
        lane_of(nature.state, lane),
    )


@kernel
def only(c: Floats, index: int) -> None:
    """Let theta_index alone be in force."""
    for j in range(c.shape[0]):
        c[j] = 1.0 if j == index else 0.0


@kernel
def cycle(nature: Nature, t: int) -> None:
    """theta_1, theta_2, ... in turn, each for constants[0] rounds."""
    only(nature.c, ((t - 1) // int(nature.constants[0])) % nature.c.shape[0])


@kernel
def switch(nature: Nature, t: int) -> None:
    """theta_1 up to round constants[0], theta_2 up to round constants[1], ..., and the last one from then on."""
    index = 0
    for j in range(nature.c.shape[0] - 1):
        if t > nature.constants[j]:
            index = j + 1
    only(nature.c, index)


@kernel
def growing(nature: Nature, t: int) -> None:
    """theta_1, theta_2, ... in turn, the first for constants[0] rounds, each phase constants[1] times the last."""
    if t == 1:
        nature.state[0] = 0.0
        nature.state[1] = nature.constants[0]
        nature.state[2] = nature.constants[0]
    while t > nature.state[2]:
        nature.state[0] += 1.0
        nature.state[1] = min(nature.state[1] * nature.constants[1], 1e15)
        nature.state[2] += math.ceil(nature.state[1])
    only(nature.c, int(nature.state[0]) % nature.c.shape[0])


@kernel
def walk(nature: Nature, t: int) -> None:
    """Let each coefficient take steps of +-constants[0], reflected at +-1; the path has the key constants[1]."""
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
def worst(nature: Nature) -> None:
    """Take the theta_j under which the learner loses most against uniform play, whose loss is constants[j]."""
    chosen = 0
    highest = -math.inf
    for j in range(nature.c.shape[0]):
        excess = nature.hurt[j] - nature.constants[j]
        if excess > highest:
            highest = excess
            chosen = j
    only(nature.c, chosen)


@kernel
def corrupt(nature: Nature, t: int, key: int) -> None:
    """theta_0, but theta_1 in corrupted rounds until the budget is spent; the last one is corrupted in part.

    constants: placement, budget, cost of a corrupted round, probability, threshold; state[0] is what was spent. When
    sure: whenever the learner's expected loss under theta_0 is within ``threshold`` of the optimum.
    """
    if t == 1:
        nature.state[0] = 0.0
    placement, budget, cost = nature.constants[0], nature.constants[1], nature.constants[2]
    share = min(1.0, (budget - nature.state[0]) / cost)
    if placement == AT_RANDOM:
        u, _ = two_uniforms(key, t, NATURE, 0)
        if u >= nature.constants[3]:
            share = 0.0
    elif placement == WHEN_SURE and nature.hurt[0] > nature.constants[4]:
        share = 0.0
    if share <= 0.0:
        only(nature.c, 0)
        return
    nature.state[0] += share * cost
    nature.c[0] = 1.0 - share
    nature.c[1] = share


@kernel
def tire(nature: Nature, t: int) -> None:
    """theta_0 plus constants[0] times the exposure of every arm; exposures are the state."""
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
        only(nature.c, 0)
    elif kind == CYCLE:
        cycle(nature, t)
    elif kind == GROWING:
        growing(nature, t)
    elif kind == SWITCH:
        switch(nature, t)
    elif kind == SINE:
        nature.c[0] = math.sin(2.0 * math.pi * t / nature.constants[0])
        nature.c[1] = math.cos(2.0 * math.pi * t / nature.constants[0])
    elif kind == WALK:
        walk(nature, t)
    elif kind == GIVEN:
        for j in range(nature.c.shape[0]):
            nature.c[j] = nature.path[t - 1, j]
    elif kind == WORST:
        worst(nature)
    elif kind == CORRUPT:
        corrupt(nature, t, key)
    elif kind == LEVEL:
        nature.c[0] = 1.0
        nature.c[1] = nature.constants[0] if ((t - 1) // int(nature.constants[1])) % 2 == 0 else -nature.constants[0]
    else:
        tire(nature, t)


@kernel
def react(nature: Nature, a: int) -> None:
    """Let nature see the arm that was played: exposures follow it at the rate constants[1]."""
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
    """Tell whether the coefficients weigh no more than one parameter: means are then no larger than theirs."""
    weight = 0.0
    for j in range(c.shape[0]):
        weight += abs(c[j])
    return weight <= 1.0 + 0.25 * SLACK


@kernel
def note_outside(nature: Nature) -> None:
    """Keep a mean loss outside [-1, 1], of whichever context and arm, in the last entry of state."""
    for x in range(nature.tables.shape[1]):
        for a in range(nature.tables.shape[2]):
            total = mean_loss(nature, x, a)
            if not abs(total) <= 1.0 + SLACK:
                nature.state[nature.state.shape[0] - 1] = total


@kernel
def no_reaction(nature: Nature, a: int) -> None:
    """Let plays leave nature as it is."""


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
