"""LC-Tsallis-INF in NumPy, vectorised over contexts: the baseline of the library's benchmarks.

The paper's formulas as printed, with the same features as the library: any alpha, Newton on all contexts at once, the
covariance as the sum it is defined by, the trace identity as a guard, the direction by a linear solve. With
``tuned=True`` it is optimised NumPy: powers written out for alpha = 1/2, the covariance as one BLAS product, no guard.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class NumpyTsallis:
    """One learner in progress: act, then update, one round at a time."""

    def __init__(
        self,
        features: Floats,
        g: Floats,
        exploration: Floats,
        coverage: float,
        *,
        seed: int,
        alpha: float = 0.5,
        tuned: bool = False,
    ) -> None:
        S, K, d = features.shape
        self.features, self.g, self.exploration, self.coverage = features, g, exploration, coverage
        self.flat = features.reshape(S * K, d)
        self.rarity = 1.0 / g.min()
        self.rng = np.random.default_rng(seed)
        self.alpha, self.tuned = alpha, tuned
        self.theta = np.zeros(d)
        self.t = 1

    def sums(self, base: Floats) -> tuple[Floats, Floats]:
        """Return w = base^-p and w/base for p = 1/(1 - alpha)."""
        if self.tuned:
            r = 1.0 / base
            return r * r, r * r * r
        w = base ** (-1.0 / (1.0 - self.alpha))
        return w, w / base

    def point(self, eta: float) -> Floats:
        """Return q_t for all contexts, shape (S, K), by Newton from the lower end of the bracket."""
        losses = self.features @ self.theta
        s = eta * (losses - losses.min(axis=1, keepdims=True))
        y = np.ones((len(s), 1))
        for _ in range(60):
            w, slopes = self.sums(s + y)
            total = w.sum(axis=1, keepdims=True)
            if np.abs(total - 1.0).max() < 1e-14:
                break
            step = total * (total ** (1.0 - self.alpha) - 1.0) / slopes.sum(axis=1, keepdims=True)
            y, before = np.maximum(y + step, 1.0), y
            if np.abs(y - before).max() < 1e-15:
                break
        return np.asarray(w / total)

    def act(self, x: int) -> tuple[int, float, Floats]:
        """Return arm, propensity and direction for context x."""
        _, K, d = self.features.shape
        eta = min(K**0.25 / np.sqrt(d * self.t), np.sqrt(self.coverage / self.rarity) / 16.0)
        gamma = 128.0 * self.rarity * eta**2 / self.coverage
        pi = (1.0 - gamma) * self.point(eta) + gamma * self.exploration
        weights = self.g[:, None] * pi
        sigma = self.covariance(weights)
        arm = int(self.rng.choice(K, p=pi[x] / pi[x].sum()))
        return arm, float(pi[x, arm]), np.linalg.solve(sigma, self.features[x, arm])

    def covariance(self, weights: Floats) -> Floats:
        """Return Sigma_t = sum_x g(x) sum_a pi(a|x) phi phi^T, guarded by sum_x g sum_a pi lev = d."""
        if self.tuned:
            return np.asarray(self.flat.T @ (weights.reshape(-1, 1) * self.flat))
        sigma = np.einsum("xa,xai,xaj->ij", weights, self.features, self.features)
        if abs(np.trace(np.linalg.solve(sigma, sigma)) - len(sigma)) > 1e-6 * len(sigma):
            raise ArithmeticError("covariance too ill-conditioned")
        return np.asarray(sigma)

    def update(self, direction: Floats, loss: float) -> None:
        """Add theta_hat = loss * Sigma^-1 phi."""
        self.theta = self.theta + loss * direction
        self.t += 1
