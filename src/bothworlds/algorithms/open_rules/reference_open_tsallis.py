"""The default rule for open problems in plain NumPy, to be read beside `open_tsallis`, whose kernels do the same.

The library does not use this module: a test compares the two round by round. It is the rule of `reference_matched` with
the average over a reservoir of recent contexts in place of the mean over a list, and a simpler exploration. Array axes:
context x of the reservoir, candidate a, feature i; beta = 1/eta. Candidates beyond those of a context have the feature
0 and are not offered.
"""

from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Bools, Floats

SURE = 1e-13  # smallest entropy: anything below is rounding


class Settings(NamedTuple):
    """Hyper-parameters; those of the listed rule have its defaults."""

    gain: float = 1.0
    least: float = 0.25
    caution: float = 16.0
    price: float = 0.6
    c: float = 0.45
    settled: float = 400.0
    leave_in: float = 1.0
    ridge: float = 0.1
    windows: tuple[float, float] = (300.0, 100.0)
    limit: float = 2e7
    most: float = 0.95
    restart_rate: float = 0.5


def ftrl_points(losses: Floats, beta: float) -> Floats:
    """Return the points q = (l/beta + y)^-2 of every context, sum q = 1; infinite losses are not offered."""
    gaps = (losses - losses.min(axis=1, keepdims=True)) / beta
    y = np.ones((len(losses), 1))
    for _ in range(100):
        r = 1 / (gaps + y)
        total = (r**2).sum(axis=1, keepdims=True)
        y = y + total * (np.sqrt(total) - 1) / (r**3).sum(axis=1, keepdims=True)  # Newton on total^(-1/2) - 1
    return np.asarray((1 / (gaps + y)) ** 2)


class ReferenceOpen:
    """The default rule on features z (candidates, d) of requests. ``first`` and ``uncovered`` are beta_1 and b."""

    def __init__(self, d: int, n_arms: float, settings: Settings) -> None:
        self.o, self.d = settings, d
        self.first, self.uncovered = np.sqrt(d) * n_arms**-0.25, 4 * d / settings.c
        self.z, self.on = np.zeros((0, 1, d)), np.zeros((0, 1), dtype=bool)
        self.q = np.zeros((0, 1))
        self.Theta, self.mu, self.m, self.step, self.weights = np.zeros((5, d))
        self.n, self.beta, self.restarts, self.piece, self.pending = 0.0, self.first, 0, 1.0, 0
        self.V, self.moment = np.zeros((d, d)), np.zeros(d)
        self.long: Floats = np.zeros(d)
        self.recent: list[list[Any]] = [[np.zeros((d, d)), np.zeros(d), np.zeros(d), 0.0] for _ in settings.windows]
        self.evidence, self.restarted = [1.0 for _ in settings.windows], False
        self.make_plan(*self.even_moment())

    # Averages over the reservoir

    def mean(self, values: Floats) -> float:
        """Return the average over the contexts of the reservoir; 0 without any."""
        return float(values.sum() / max(len(values), 1))

    def moment_of(self, weights: Floats) -> Floats:
        """Return the average of sum_a weight z z^T."""
        return np.asarray(np.einsum("xa,xai,xaj->ij", weights, self.z, self.z) / max(len(self.z), 1))

    def even_moment(self) -> tuple[Floats, Floats]:
        """Return the second moment E of features under even play, and R: ridge d/n times its diagonal (1 where 0)."""
        E = self.moment_of(self.on / self.on.sum(axis=1, keepdims=True))
        ridge = self.o.ridge * self.d / max(len(self.z), 1)
        return E, ridge * np.diag(np.where(np.diag(E) > 0, np.diag(E), 1.0))

    def entropy(self, q: Floats) -> float:
        """Return h = 2 (sum_a sqrt(q_a) - 1), averaged."""
        return self.mean(2 * (np.sqrt(q).sum(axis=1) - 1))

    def highest_entropy(self) -> float:
        """Return H, the entropy of even play."""
        return self.mean(2 * (np.sqrt(self.on.sum(axis=1)) - 1)) if len(self.z) else 1.0

    def centred(self, values: Floats) -> Floats:
        """Subtract the mean of each context, weighted by q^(3/2)."""
        w = self.q**1.5
        return np.asarray(values - (w * values).sum(axis=1, keepdims=True) / w.sum(axis=1, keepdims=True))

    def costs(self, delta: Floats) -> tuple[float, float, float]:
        """Return z and u of a step of the losses (one of them is 0), and the largest |y|."""
        if not len(self.z):
            return 0.0, 0.0, 0.0
        c, beta, r = self.o.c, self.beta, np.sqrt(self.q)
        y = self.centred(delta) * r / beta
        m = np.abs(y).max(axis=1)
        if m.max() <= c:
            return self.mean((beta * r * y**2 * (1 - y + y**2 / (1 - c))).sum(axis=1)), 0.0, float(m.max())
        fall = (self.q * delta).sum(axis=1) - np.where(self.on, delta, np.inf).min(axis=1)
        near = beta * (r * y**2).sum(axis=1) / np.maximum(1 - m, 1 - 2 * c)
        return 0.0, self.mean(np.where(m <= 2 * c, np.minimum(near, fall), fall)), float(m.max())

    # Decisions

    def losses(self, z: Floats, on: Bools) -> Floats:
        """Return <weights, z>, infinite where not offered."""
        return np.where(on, z @ self.weights, np.inf)

    def probabilities(self, z: Floats) -> Floats:
        """Return pi of the candidates z (k, d) of a request."""
        q = ftrl_points(self.losses(z, np.ones(len(z), dtype=bool))[None], self.beta)[0]
        return np.asarray((1 - self.gamma) * q + self.gamma / len(z))

    def decision(self, z: Floats, a: int) -> tuple[Floats, Floats]:
        """Return what a decision carries: the direction, with the request in its own covariance, and the baseline."""
        n, direction = len(self.z), np.linalg.solve(self.Sigma, z[a])
        if self.o.leave_in:
            direction = direction * (n + 1) / (n + self.probabilities(z)[a] * (z[a] @ direction))
        return np.asarray(direction), self.m

    # Learning

    def keep_context(self, z: Floats, place: int) -> None:
        """Put the features of a request into the reservoir, with the point of the present plan."""
        width, size = max(self.z.shape[1], len(z)), max(len(self.z), place + 1)
        old, (n, k) = (self.z, self.on, self.q), self.on.shape
        self.z, self.on = np.zeros((size, width, self.d)), np.zeros((size, width), dtype=bool)
        self.q = np.zeros((size, width))
        self.z[:n, :k], self.on[:n, :k], self.q[:n, :k] = old
        self.z[place], self.on[place] = 0.0, np.arange(width) < len(z)
        self.z[place, : len(z)] = z
        self.q[place] = ftrl_points(self.losses(self.z[place], self.on[place])[None], self.beta)[0]

    def learn(self, z: Floats, a: int, loss: float, carried: tuple[Floats, Floats], place: int | None = None) -> None:
        """Learn one row, put its context into the reservoir at ``place``, and make a plan if it is due."""
        direction, baseline = carried
        theta_hat = baseline + direction * (loss - baseline @ z[a])
        self.Theta, self.step = self.Theta + theta_hat, self.step + theta_hat
        self.weigh_evidence(z[a], loss)
        keep = (self.n + 1) / (self.n + 2)
        self.V, self.moment = keep * self.V + np.outer(z[a], z[a]), keep * self.moment + loss * z[a]
        self.n, self.pending = self.n + 1, self.pending + 1
        for memory, window in zip(self.recent, self.o.windows, strict=True):
            keep = 1 - 1 / window
            memory[0] = keep * memory[0] + np.outer(z[a], z[a])
            memory[1], memory[3] = keep * memory[1] + loss * z[a], keep * memory[3] + 1
        self.restart_if_changed()
        if place is not None:
            self.keep_context(z, place)
        if self.pending >= self.piece:
            self.refresh()

    def weigh_evidence(self, z: Floats, loss: float) -> None:
        """Multiply the evidence of the shorter memories by a factor of mean 1 if the long one is right."""
        o, m = self.o, float(np.clip(self.long @ z, -self.o.most, self.o.most))
        for w, (_, _, recent, rounds) in enumerate(self.recent):
            factor = 1 + (loss - m) * (float(np.clip(recent @ z, -o.most, o.most)) - m) / (1 - m**2)
            self.evidence[w] = max(1.0, self.evidence[w] * factor) if self.n >= max(2 * rounds, self.d) else 1.0

    def restart_if_changed(self) -> None:
        """Let longer memories take over what a shorter one has, if its evidence reaches the limit."""
        for w in range(len(self.recent)):
            if self.evidence[w] >= self.o.limit:
                V, moment, m, rounds = self.recent[w]
                self.V, self.moment, self.n = V.copy(), moment.copy(), rounds
                for u in range(w):
                    self.recent[u][:] = V, moment, m, rounds
                self.evidence, self.restarts, self.restarted = [1.0 for _ in self.recent], self.restarts + 1, True

    # Plans

    def refresh(self) -> None:
        """Charge the step since the last plan, let plans drift toward the regression, and make the next plan."""
        o, (E, R) = self.o, self.even_moment()
        self.long = np.asarray(np.linalg.solve(self.V + E + R, self.moment))
        for memory in self.recent:
            memory[2] = np.linalg.solve(memory[0] + E + R, memory[1])
        step = self.z @ (self.step - self.piece * self.m)
        z, u, y = self.costs(step)
        self.mu = self.mu + self.drift(y)
        before, H = self.entropy(self.q), self.highest_entropy()
        predicted = np.where(self.on, self.z @ self.long, 0.0)
        scale = max(1.0, float(np.abs(predicted).max(initial=0.0)))
        variance = 1 - self.mean((self.q * predicted**2).sum(axis=1)) / scale**2
        if self.beta < self.uncovered:
            self.beta *= 1 + o.price * u / (self.uncovered * max(H, SURE))
        if self.restarted:
            self.beta = min(self.beta, o.restart_rate * self.first * np.sqrt(1 + self.n))
        self.m, self.step, self.pending, self.restarted = self.long / scale, np.zeros(self.d), 0, False
        self.piece = self.next_piece()
        self.weights = self.Theta + self.mu + self.piece * self.m  # r rows are expected before the next plan
        if len(self.z) and H > SURE:  # some request had a choice
            h = max(self.entropy(ftrl_points(self.losses(self.z, self.on), self.beta)), SURE)
            share = min(h, before) / H
            s = share**8 * variance**4 * np.sqrt(min((self.n + 1) / (o.settled * self.d), 1))
            due = max(o.gain * (h / H) ** 2, o.least) * z + o.caution * self.d * s / self.beta
            self.beta *= (1 + np.sqrt(1 + 4 * due / (h * self.beta))) / 2
        self.make_plan(E, R)

    def next_piece(self) -> float:
        """Return the number of rows until the next plan."""
        return 1.0

    def drift(self, y: float) -> Floats:
        """Return the move of mu toward n m - Theta: as far as |y| <= c allows, y that of the step without it."""
        way, part = self.n * self.long - self.Theta - self.mu, 1.0
        if len(self.z):
            reach = float((np.abs(self.centred(self.z @ way)) * np.sqrt(self.q)).max()) / self.beta
            part = float(np.clip((0.999 * self.o.c - y) / reach, 0, 1)) if reach > 0 else 1.0
        return np.asarray(part * way)

    def make_plan(self, E: Floats, R: Floats) -> None:
        """Compute points, exploration rate and covariance; E and R are those of `even_moment`."""
        self.gamma = min(1 / (self.n + 1), 0.5)
        if len(self.z):
            self.q = ftrl_points(self.losses(self.z, self.on), self.beta)
        self.Sigma = (1 - self.gamma) * self.moment_of(self.q) + self.gamma * E + R
