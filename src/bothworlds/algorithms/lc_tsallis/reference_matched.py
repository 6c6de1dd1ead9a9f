"""The default rule, tuning `matched`, in plain NumPy, to be read beside research/default-rule.md and `reference`.

The library does not use this module: its compiled kernels compute the same probabilities, and a test compares the two
round by round. Contexts are listed and every arm is offered in every context. Array axes: context x (S of them), arm a
(K of them), feature i (d of them); beta = 1/eta; E_X is the mean over contexts with weights g.
"""

from typing import Any

import numpy as np

from bothworlds.algorithms.lc_tsallis.reference import covariance, ftrl_points
from bothworlds.arrays import Floats

GAIN, LEAST, CAUTION, PRICE, C, DRIFT_CAP = 1.0, 0.25, 16.0, 0.6, 0.45, 0.1  # as in `Matched`
STEP_LIMIT = 0.999 * C  # largest |y| of a step with drift
WINDOWS, LIMIT, MOST, RESTART_RATE = (300, 100), 2e7, 0.95, 0.5  # shorter memories, evidence that restarts, clip, beta
EARLY, LATER, SAFE = 0.5, 2.0, 1 / 16  # exploration rates, in units of 1/(n + 1), 1/(n + 1) and 1
SETTLED = 400.0  # rounds per dimension, since a restart, until caution counts in full


def entropy(q: Floats, g: Floats) -> float:
    """Return h = E_X[-psi(q)] = 2 E_X[sum_a sqrt(q_a) - 1]."""
    return float(2 * g @ (np.sqrt(q).sum(axis=1) - 1))


def centred(q: Floats, values: Floats) -> Floats:
    """Subtract the mean of each context, weighted by q^(3/2), from values (..., S, K)."""
    w = q**1.5
    return np.asarray(values - (w * values).sum(axis=-1, keepdims=True) / w.sum(axis=1, keepdims=True))


def costs(q: Floats, g: Floats, beta: float, delta: Floats) -> tuple[float, float]:
    """Return z and u of the step delta: its stability if it is covered, else the bound k; the other one is 0."""
    r, y = np.sqrt(q), centred(q, delta) * np.sqrt(q) / beta
    m = np.abs(y).max(axis=1)
    if m.max() <= C:
        return float(g @ (beta * r * y**2 * (1 - y + y**2 / (1 - C))).sum(axis=1)), 0.0
    fall = (q * delta).sum(axis=1) - delta.min(axis=1)
    near = beta * (r * y**2).sum(axis=1) / np.maximum(1 - m, 1 - 2 * C)
    return 0.0, float(g @ np.where(m <= 2 * C, np.minimum(near, fall), fall))


class ReferenceMatched:
    """The tuning `matched` on features phi (S, K, d), context distribution g (S,) and exploration policy e (S, K)."""

    def __init__(self, phi: Floats, g: Floats, e: Floats) -> None:
        self.g, self.e, (_, K, d) = g, e, phi.shape
        self.z = phi @ np.linalg.inv(np.linalg.cholesky(covariance(e, phi, g))).T  # coordinates with Sigma(e) = I
        L, self.lam = float(1 / g.min()), float(1 / (self.z**2).sum(axis=2).max())
        self.u, self.H = 2 * 1.01667**2 * L / (C**2 * self.lam), 2 * (np.sqrt(K) - 1)
        self.b = 2 * np.sqrt(2 * self.u)
        self.Theta, self.mu, self.m, self.V, self.V_m = np.zeros(d), np.zeros(d), np.zeros(d), np.eye(d), np.zeros(d)
        self.t, self.beta, self.n, self.got = 1, np.sqrt(d) * K**-0.25, 0.0, 0.0
        self.first, self.penalised, self.restarts, self.late = self.beta, self.beta, 0, 0.0
        self.long: Floats = np.zeros(d)
        self.recent: list[list[Any]] = [
            [np.eye(d), np.zeros(d), np.zeros(d), 0.0] for _ in WINDOWS
        ]  # V, its moment, m and n
        self.evidence = [1.0 for _ in WINDOWS]
        self.q = np.full((len(g), K), 1 / K)
        self.A = self.beta * entropy(self.q, g)  # account: stability, prices and penalties of the path
        self.explore()

    def covering(self) -> float:
        """Return the exploration rate that leaves no play uncovered."""
        return float(min(self.u / self.beta**2, 4 / (C * self.lam * self.beta)))

    def explore(self) -> None:
        """Choose gamma_t and the price of its uncovered plays, and compute pi_t and Sigma_t."""
        early = self.beta < self.b
        most = SAFE if early else self.covering()
        self.gamma, self.price = min((EARLY if early else LATER) / (self.n + 1), most), 0.0
        self.mix()
        if early:
            lev = np.einsum("xai,ij,xaj->xa", self.z, np.linalg.inv(self.Sigma), self.z)
            D = 4 * np.sqrt(lev.max()) * (self.g @ np.sqrt(lev.max(axis=1)))
            affordable = 4 / (self.lam * SAFE) >= D
        else:
            self.price = self.price_of_plays()
            affordable = 2 * self.gamma + self.price <= 2 * most
        if not affordable:
            self.gamma, self.price = most, 0.0
            self.mix()

    def mix(self) -> None:
        """Compute pi_t = (1 - gamma_t) q_t + gamma_t e (equation (3)) and Sigma_t."""
        self.pi = (1 - self.gamma) * self.q + self.gamma * self.e
        self.Sigma = covariance(self.pi, self.z, self.g)

    def price_of_plays(self) -> float:
        """Return the sum over plays that are not covered of g pi E_X[k], k for the largest residual rho."""
        total, rho = 0.0, 1 + np.abs(self.z @ self.m)
        for x, a in np.ndindex(*self.q.shape):
            d = centred(self.q, self.z @ np.linalg.solve(self.Sigma, self.z[x, a]))
            reach = rho[x, a] * (np.abs(d) * np.sqrt(self.q)).max(axis=1)
            if reach.max() > C * self.beta:
                mean = (self.q * d).sum(axis=1)
                far = rho[x, a] * np.maximum(mean - d.min(axis=1), d.max(axis=1) - mean)
                squares = rho[x, a] ** 2 * (self.q**1.5 * d**2).sum(axis=1)
                near = squares / np.maximum(self.beta - reach, (1 - 2 * C) * self.beta)
                total += (
                    self.g[x]
                    * self.pi[x, a]
                    * (self.g @ np.where(reach <= 2 * C * self.beta, np.minimum(near, far), far))
                )
        return float(total)

    def decision(self, x: int, a: int) -> tuple[Floats, Floats]:
        """Return what a decision carries: Sigma_t^-1 phi and m_t."""
        return np.linalg.solve(self.Sigma, self.z[x, a]), self.m

    def learn(self, x: int, a: int, loss: float, direction: Floats, baseline: Floats) -> None:
        """Learn one row, which may be late, and compute the next plan."""
        theta_hat = baseline + direction * (loss - baseline @ self.z[x, a])
        step, self.Theta = theta_hat - self.m, self.Theta + theta_hat
        self.weigh_evidence(self.z[x, a], loss)
        keep = (self.n + 1) / (self.n + 2)  # the regression: older rounds s since a restart count as s/n
        self.V = keep * self.V + np.outer(self.z[x, a], self.z[x, a]) + (1 - keep) * np.eye(len(self.m))
        self.V_m = keep * self.V_m + loss * self.z[x, a]
        self.n, self.t = self.n + 1, self.t + 1
        self.remember(self.z[x, a], loss)
        restarted = self.restart_if_changed()
        m, before = np.asarray(np.linalg.solve(self.V, self.V_m), dtype=np.float64), entropy(self.q, self.g)
        gained = float(self.g @ (self.q * (self.z @ theta_hat)).sum(axis=1))
        self.got, self.late = self.got + gained, self.late + (loss - gained if (baseline != self.m).any() else 0.0)
        self.long, move = m, self.drift_step(self.n * m - self.Theta, step)
        z, u = costs(self.q, self.g, self.beta, self.z @ step)
        self.pay(z, u, 2 * self.gamma + self.price)
        if restarted and self.late_cost() <= 0:
            self.beta = min(self.beta, RESTART_RATE * self.first * np.sqrt(1 + self.n))
            self.penalised = min(self.penalised, self.beta)
        scale = max(1.0, np.abs(self.z @ m).max())
        variance = 1 - self.g @ (self.q * (self.z @ m) ** 2).sum(axis=1) / scale**2
        self.mu, self.m = self.mu + move, m / scale
        self.raise_beta(z, before, variance)
        self.explore()

    def weigh_evidence(self, z: Floats, loss: float) -> None:
        """Multiply the evidence of the shorter memories by a factor of mean 1 if the long one is right."""
        m = float(np.clip(self.long @ z, -MOST, MOST))
        for w, (_, _, recent, rounds) in enumerate(self.recent):
            factor = 1 + (loss - m) * (float(np.clip(recent @ z, -MOST, MOST)) - m) / (1 - m**2)
            self.evidence[w] = max(1.0, self.evidence[w] * factor) if self.n >= 2 * rounds else 1.0

    def remember(self, z: Floats, loss: float) -> None:
        """Let the shorter memories learn a row; one sweep of Gauss and Seidel updates their estimates."""
        for memory, window in zip(self.recent, WINDOWS, strict=True):
            keep, (V, moment, m, rounds) = 1 - 1 / window, memory
            V = keep * V + np.outer(z, z) + (1 - keep) * np.eye(len(z))
            moment, m = keep * moment + loss * z, m.copy()
            for i in range(len(z)):
                m[i] += (moment[i] - V[i] @ m) / V[i, i]
            memory[:] = V, moment, m, keep * rounds + 1

    def restart_if_changed(self) -> bool:
        """Let longer memories take over what a shorter one has, if its evidence reaches the limit."""
        before = self.restarts
        for w in range(len(WINDOWS)):
            if self.evidence[w] >= LIMIT:
                V, moment, m, rounds = self.recent[w]
                self.V, self.V_m, self.n = V.copy(), moment.copy(), rounds
                for u in range(w):
                    self.recent[u][:] = V, moment, m, rounds
                self.evidence, self.restarts = [1.0 for _ in WINDOWS], self.restarts + 1
        return self.restarts > before

    def potential(self, mu: Floats) -> float:
        """Return S = got - min_q[<Theta + mu, q> + beta psi(q)] + E_X max_a <mu, phi>."""
        losses = self.z @ (self.Theta + mu)
        q = ftrl_points(losses, 1 / self.beta, 0.5)
        least = self.g @ (q * losses).sum(axis=1) - self.beta * entropy(q, self.g)
        return float(self.got - least + self.g @ (self.z @ mu).max(axis=1))

    def late_cost(self) -> float:
        """Return what late answers have cost beyond what chance explains."""
        return float(max(0.0, self.late - 2 * np.sqrt(self.t)))

    def drift_step(self, G: Floats, step: Floats) -> Floats:
        """Return mu_{t+1} - mu_t: toward G, as far as account and step allow."""
        way, r, allowed = G - self.mu, np.sqrt(self.q), (1 + DRIFT_CAP) * self.A
        allowed -= self.late_cost()
        y, v = (np.abs(centred(self.q, self.z @ part) * r / self.beta).max() for part in (step, way))
        covered = np.clip((STEP_LIMIT - y) / v, 0, 1) if v > 0 else 1.0
        here, there = self.potential(self.mu), self.potential(G)
        if there > allowed and there > here:
            covered = min(covered, np.clip((allowed - here) / (there - here), 0, 1))
        return np.asarray(covered * way)

    def pay(self, z: float, u: float, explored: float) -> None:
        """Add to the account; an uncovered step makes beta jump, early."""
        early = self.beta < self.b
        self.A += z + explored + (u if early else 0.0)
        self.penalised, self.beta = self.beta, self.beta * (1 + PRICE * u / (self.b * self.H) if early else 1.0)
        self.due = PRICE * explored * (self.beta / self.b if early else 1.0)

    def raise_beta(self, z: float, before: float, variance: float) -> None:
        """Solve (beta' - beta) (beta'/beta) h' = gain z + caution + price, and compute the next point."""
        d, losses = len(self.m), self.z @ (self.Theta + self.mu + self.m)
        h = max(entropy(ftrl_points(losses, 1 / self.beta, 0.5), self.g), 1e-13)
        s = (min(h, before) / self.H) ** 8 * variance**4 * np.sqrt(min((self.n + 1) / (SETTLED * d), 1))
        due = max(GAIN * (h / self.H) ** 2, LEAST) * z + CAUTION * d * s / self.beta + self.due
        self.beta *= (1 + np.sqrt(1 + 4 * due / (h * self.beta))) / 2
        self.q = ftrl_points(losses, 1 / self.beta, 0.5)
        self.A += (self.beta - self.penalised) * max(entropy(self.q, self.g), 1e-13)
