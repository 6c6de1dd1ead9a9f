"""Arm-independent problems for the tests, and every direction a policy may choose, by enumeration."""

from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats
from support.problems import chosen, records

MOST_TRIES = 20_000
MASK = np.array([[1, 0, 1], [1, 1, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)  # arm 2: in contexts 0, 3, 4


def context_vectors(seed: int = 0, S: int = 5, d: int = 3) -> Floats:
    """Random vectors of different lengths."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(S, d)) * rng.uniform(0.5, 2.0, size=(S, 1)))


def independent_problem(
    seed: int = 0, S: int = 5, K: int = 3, d: int = 3, *, rarity: float | None = None, **options: Any
) -> bw.Problem:
    """Random contexts and probabilities; with ``rarity`` one context has probability 1/rarity."""
    g = np.random.default_rng(seed + 100).dirichlet(np.full(S, 5.0))
    if rarity is not None:
        g = np.concatenate([[1.0 / rarity], (1.0 - 1.0 / rarity) * g[1:] / g[1:].sum()])
    return bw.Problem.from_arm_independent(context_vectors(seed, S, d), probabilities=g, arms=K, **options)


def masked_problem() -> bw.Problem:
    """Three arms, none offered everywhere; the contexts that offer arm 2 span two dimensions of three."""
    x = context_vectors(3)
    x[4] = x[0] - 0.5 * x[3]
    return bw.Problem.from_arm_independent(x, probabilities=[0.1, 0.3, 0.2, 0.15, 0.25], arms=3, available=MASK)


def context_coordinates(policy: bw.Policy) -> Floats:
    """The contexts as the policy sees them, shape (S, d)."""
    return policy._machine.known.z[:, 0]


def all_directions(policy: bw.Policy) -> Floats:
    """The direction of every (x, a) that may be played, shape (S, K, d): choose is asked until it has played each."""
    machine, state = policy._machine, policy.state
    pi, (S, K, d) = state.pi, machine.known.z.shape
    work = records(machine).work
    found, seen = np.zeros((S, K, d)), pi <= 0.0
    for x in range(S):
        for time in range(10**6, 10**6 + MOST_TRIES):
            arm, carried = chosen(machine, state, work, x, time)
            found[x, arm], seen[x, arm] = carried.direction, True
            if seen[x].all():
                break
    assert seen.all()
    return found


def spectral_filter(sigma: Floats, beta: float, draws: int) -> Floats:
    """Sigma^-1 (I - (I - beta Sigma)^(M+1)) as beta times a geometric sum: defined for singular Sigma too."""
    values, vectors = np.linalg.eigh(sigma)
    sums = [beta * sum((1.0 - beta * value) ** k for k in range(draws + 1)) for value in values]
    return np.asarray(vectors * sums @ vectors.T)
