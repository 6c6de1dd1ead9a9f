"""Rivals on streams, in NumPy: one ridge regression of the reward per arm, on the row's features and a constant."""

import math
from dataclasses import dataclass, field

import numpy as np

from bothworlds.arrays import Floats

RIDGE = 1.0


def with_constant(row: Floats) -> Floats:
    return np.append(row, 1.0)


@dataclass
class Ridge:
    """One regression per arm: inverse of the ridge plus the sum of x x^T, (K, p + 1, p + 1), and sum of x reward."""

    arms: int
    features: int
    inverse: Floats = field(init=False)
    response: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.inverse = np.tile(np.eye(self.features + 1) / RIDGE, (self.arms, 1, 1))
        self.response = np.zeros((self.arms, self.features + 1))

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the predicted reward of every arm and its standard deviation at unit noise."""
        solved = self.inverse @ x
        return (solved * self.response).sum(axis=1), np.sqrt(np.maximum(solved @ x, 0.0))

    def learn(self, x: Floats, arm: int, reward: float) -> None:
        solved = self.inverse[arm] @ x
        self.inverse[arm] -= np.outer(solved, solved) / (1.0 + x @ solved)
        self.response[arm] += reward * x


class LinUCB:
    """The arm with the largest prediction plus width standard deviations; the first of equals."""

    def __init__(self, arms: int, features: int, *, width: float) -> None:
        self.ridge, self.width = Ridge(arms, features), width

    def act(self, row: Floats) -> int:
        self.x = with_constant(row)
        mean, deviation = self.ridge.predict(self.x)
        self.arm = int((mean + self.width * deviation).argmax())
        return self.arm

    def update(self, reward: float) -> None:
        self.ridge.learn(self.x, self.arm, reward)


class LinTS:
    """Thompson sampling: the arm with the largest draw from the normal with the prediction and spread deviations.

    With one model per arm, a draw of all parameters and the normals of the arms' rewards are the same.
    """

    def __init__(self, arms: int, features: int, *, spread: float, seed: int) -> None:
        self.ridge, self.spread, self.rng = Ridge(arms, features), spread, np.random.default_rng([seed, 1])

    def act(self, row: Floats) -> int:
        self.x = with_constant(row)
        mean, deviation = self.ridge.predict(self.x)
        self.arm = int((mean + self.spread * deviation * self.rng.standard_normal(len(mean))).argmax())
        return self.arm

    def update(self, reward: float) -> None:
        self.ridge.learn(self.x, self.arm, reward)


class DLinUCB:
    """LinUCB whose answers fade by ``discount`` in every round, of all arms; deviations from A^-1 A~ A^-1."""

    def __init__(self, arms: int, features: int, *, width: float, discount: float) -> None:
        self.width, self.discount, self.ridge = width, discount, RIDGE * np.eye(features + 1)
        self.sums, self.squares = (np.tile(self.ridge, (arms, 1, 1)) for _ in range(2))
        self.response = np.zeros((arms, features + 1))

    def indices(self, x: Floats) -> Floats:
        """Return the index of every arm."""
        columns = np.broadcast_to(x[:, None], (len(self.sums), len(x), 1))
        solved = np.linalg.solve(self.sums, columns)[..., 0]
        variance = (solved[:, None, :] @ self.squares @ solved[:, :, None])[:, 0, 0]
        predicted: Floats = (solved * self.response).sum(axis=1)
        return predicted + self.width * np.sqrt(np.maximum(variance, 0.0))

    def act(self, row: Floats) -> int:
        self.x = with_constant(row)
        self.arm = int(self.indices(self.x).argmax())
        return self.arm

    def update(self, reward: float) -> None:
        gamma, square = self.discount, math.pow(self.discount, 2)
        self.sums *= gamma
        self.squares *= square
        self.response *= gamma
        self.sums += (1.0 - gamma) * self.ridge
        self.squares += (1.0 - square) * self.ridge
        outer = np.outer(self.x, self.x)
        self.sums[self.arm] += outer
        self.squares[self.arm] += outer
        self.response[self.arm] += reward * self.x


class Uniform:
    """Every arm with the same probability."""

    def __init__(self, arms: int, *, seed: int) -> None:
        self.arms, self.rng = arms, np.random.default_rng([seed, 2])

    def act(self, row: Floats) -> int:  # noqa: ARG002
        return int(self.rng.integers(self.arms))

    def update(self, reward: float) -> None:
        """Learn nothing."""
