"""LC-Tsallis-INF as one would write it in NumPy, vectorised over contexts: what the library is measured against.

The paper's tuning (alpha = 1/2, finite support), cold-started Newton on all contexts at once, the covariance
as one matrix product, the direction by a Cholesky solve.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class NumpyTsallis:
    """One learner in progress: act, then update, one round at a time."""

    def __init__(self, features: Floats, g: Floats, exploration: Floats, coverage: float, seed: int) -> None:
        S, K, d = features.shape
        self.features, self.g, self.exploration, self.coverage = features, g, exploration, coverage
        self.flat = features.reshape(S * K, d)
        self.rarity = 1.0 / g.min()
        self.rng = np.random.default_rng(seed)
        self.theta = np.zeros(d)
        self.t = 1
        self.y = np.ones(S)

    def point(self, eta: float) -> Floats:
        """Return q_t for all contexts, shape (S, K)."""
        losses = self.features @ self.theta
        s = eta * (losses - losses.min(axis=1, keepdims=True))
        y = self.y
        for _ in range(60):
            r = 1.0 / (s + y[:, None])
            w = r * r
            total = w.sum(axis=1)
            if np.abs(total - 1.0).max() < 1e-14:
                break
            y = np.clip(y + total * (np.sqrt(total) - 1.0) / (w * r).sum(axis=1), 1.0, None)
        self.y = y
        return np.asarray(w / total[:, None])

    def act(self, x: int) -> tuple[int, float, Floats]:
        """Return arm, propensity and direction for context x."""
        S, K, d = self.features.shape
        eta = min(K**0.25 / np.sqrt(d * self.t), np.sqrt(self.coverage / self.rarity) / 16.0)
        gamma = 128.0 * self.rarity * eta**2 / self.coverage
        pi = (1.0 - gamma) * self.point(eta) + gamma * self.exploration
        weights = (self.g[:, None] * pi).reshape(S * K, 1)
        sigma = self.flat.T @ (weights * self.flat)
        factor = np.linalg.cholesky(sigma)
        arm = int(self.rng.choice(K, p=pi[x] / pi[x].sum()))
        half = np.linalg.solve(factor, self.features[x, arm])
        return arm, float(pi[x, arm]), np.linalg.solve(factor.T, half)

    def update(self, direction: Floats, loss: float) -> None:
        """Add theta_hat = loss * Sigma^-1 phi."""
        self.theta = self.theta + loss * direction
        self.t += 1
