"""Algorithm 1 of Kato and Ito (AISTATS 2025) in plain NumPy, to be read beside the paper.

The library does not use this module: its compiled kernels compute the same probabilities, and a test compares the two
round by round. Contexts are listed (Assumption 2.3), every arm is offered in every context, and the features phi(a, x)
span R^d. Array axes: context x (S of them), arm a (K of them), feature i (d of them).
"""

from collections.abc import Callable

import numpy as np

from bothworlds.arrays import Floats

ROUNDING = 1e-15  # relative


def rates(t: int, alpha: float, K: int, d: int, lam: float, L: float) -> tuple[float, float]:
    """Return eta_t and gamma_t: equation (4) under Assumption 2.3.

    The comments show the case that the paper prints, alpha = 1/2. For other alpha, the same proof gives these
    exponents and constants (`bothworlds.theory.schedules`).
    """
    c = (1 - alpha) / 4  # stability condition of Lemma B.1
    h = max(alpha, 1 / 2)
    scale = ((2 * L) ** (1 - h) / c) ** (1 / h) / lam  # 128 L / lambda
    eta_tilde = np.sqrt((1 - alpha) / alpha * K ** (1 - alpha) / (d * t))  # K^(1/4) / sqrt(d t)
    eta = min(eta_tilde, (2 * scale) ** -h)  # sqrt(lambda / L) / 16 caps eta_t, so that gamma_t <= 1/2
    return float(eta), float(scale * eta ** (1 / h))  # gamma_t = 128 L eta_t^2 / lambda


def ftrl_points(losses: Floats, eta: float, alpha: float) -> Floats:
    """Return q_t(x) for all x: argmin over the simplex of <losses(x), q> + psi(q) / eta, equation (4).

    psi(q) = (1 - sum_a q_a^alpha) / alpha is the negative Tsallis entropy. A zero derivative of the Lagrangian gives
    q_a = (eta (losses_a - min losses) + y)^(-p) with p = 1 / (1 - alpha). The normalizer y >= 1 makes the sum 1. The
    sum is convex and decreasing in y, so Newton's method started at y = 1 increases to the root.
    """
    p = 1 / (1 - alpha)
    s = eta * (losses - losses.min(axis=1, keepdims=True))
    y, step = np.ones((len(s), 1)), np.ones((len(s), 1))
    while (step > ROUNDING * y).any():
        q = (s + y) ** -p
        step = (q.sum(axis=1, keepdims=True) - 1) / (p * q / (s + y)).sum(axis=1, keepdims=True)
        y = y + step
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def covariance(pi: Floats, phi: Floats, g: Floats) -> Floats:
    """Return Sigma(pi) = E[phi phi^T], X_0 drawn from g and the arm from pi (Section 2.2)."""
    return np.asarray(np.einsum("x,xa,xai,xaj->ij", g, pi, phi, phi))


class ReferenceLCTsallisINF:
    """LC-Tsallis-INF on features phi (S, K, d) with context distribution g (S,) and exploration policy e (S, K)."""

    def __init__(self, phi: Floats, g: Floats, e: Floats, *, alpha: float = 0.5) -> None:
        self.phi, self.g, self.e, self.alpha = phi, g, e, alpha
        self.L = float(1 / g.min())  # Assumption 2.3
        leverages = np.einsum("xai,ij,xaj->xa", phi, np.linalg.inv(covariance(e, phi, g)), phi)
        self.lam = float(1 / leverages.max())  # Assumption 2.4
        self.Theta = np.zeros(phi.shape[2])  # sum of theta_hat_s over s < t
        self.t = 1

    def policy(self) -> Floats:
        """Return pi_t (S, K), equation (3): the probabilities of round t in every context."""
        _, K, d = self.phi.shape
        eta, gamma = rates(self.t, self.alpha, K, d, self.lam, self.L)
        l_hat = self.phi @ self.Theta  # sum over s < t of <theta_hat_s, phi(a, x)>
        q = ftrl_points(l_hat, eta, self.alpha)  # the paper prints eta_(t-1); its proof takes eta_t
        return (1 - gamma) * q + gamma * self.e

    def learn(self, pi: Floats, x: int, a: int, loss: float) -> None:
        """Add theta_hat_t = Sigma_t^-1 phi(A_t, X_t) loss, equation (2), to Theta and go on to round t + 1."""
        Sigma = covariance(pi, self.phi, self.g)
        self.Theta = self.Theta + np.linalg.solve(Sigma, self.phi[x, a]) * loss
        self.t += 1


def algorithm_1(
    learner: ReferenceLCTsallisINF, loss: Callable[[int, int, int], float], T: int, rng: np.random.Generator
) -> float:
    """Play Algorithm 1 for T rounds against the losses loss(t, a, x); return their sum.

    >>> phi = np.eye(2)[None]  # one context, and a feature for each of two arms
    >>> learner = ReferenceLCTsallisINF(phi, g=np.ones(1), e=np.full((1, 2), 0.5))
    >>> total = algorithm_1(learner, lambda t, a, x: float(a == 0), T=1000, rng=np.random.default_rng(7))
    >>> bool(learner.policy()[0, 1] > 0.75)
    True
    """
    total = 0.0
    for t in range(1, T + 1):  # for t = 1, ..., T do
        x = int(rng.choice(len(learner.g), p=learner.g))  # observe X_t
        pi = learner.policy()
        a = int(rng.choice(len(pi[x]), p=pi[x]))  # draw A_t from pi_t(X_t)
        observed = loss(t, a, x)  # observe the loss l_t(A_t, X_t)
        learner.learn(pi, x, a, observed)  # compute theta_hat_t
        total += observed
    return total
