"""A small instance, and a learner in plain Python that plays it."""

from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds import environments as en

INSTANCE = en.random_instance(contexts=4, arms=3, dimension=3, gap=0.2, seed=1)
PAIR = en.opposite(INSTANCE.theta)


class Plain:
    """A learner in plain Python: uniform play that remembers what it was told."""

    def __init__(self, problem: bw.Problem, rng: int) -> None:
        self.problem, self.rng, self.told = problem, np.random.default_rng(rng), 0

    def probabilities(self) -> Any:
        return self.problem.available / self.problem.available.sum(axis=1, keepdims=True)

    def act(self, x: int) -> Any:
        arm = int(self.rng.choice(self.problem.n_arms, p=self.probabilities()[x]))
        return type("Choice", (), {"arm": arm})

    def update(self, decision: Any, *, loss: Any) -> None:
        self.told += 1


class PlainAlgorithm:
    """Starts `Plain`."""

    def start(self, problem: bw.Problem, *, rng: int) -> Plain:
        return Plain(problem, rng)
