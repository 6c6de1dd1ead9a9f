"""Two stand-ins for Sigma_t^-1 where the law of the contexts cannot be summed over.

Both work in the coordinates of the problem, in which Sigma(e) is the identity, but for the error of its estimate.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from bothworlds.errors import NumericalError
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.random import RESAMPLING, two_uniforms
from bothworlds.kernels.sampled import Pieces
from bothworlds.kernels.status import OK, sentence
from bothworlds.problem import SampledProblem


class Mixture(NamedTuple):
    """What a policy mixes at the moment: exploration by gamma_t, and q_t of any coordinates (contexts, arms, d)."""

    gamma: float
    points: Callable[[Floats], Floats]


class Covariance(Protocol):
    """A way to the direction Sigma_t^-1 z of a decision."""

    def direction(self, mixture: Mixture, z: Floats, *, key: int, time: int) -> Floats:
        """Return the direction of a pair of context and arm with coordinates z."""

    def renew(self) -> None:
        """Forget what was computed for the mixture before."""

    def see(self, z: Floats, *, key: int, time: int) -> None:
        """Take note of a context after its decision, coordinates (arms, d)."""

    def arrays(self) -> dict[str, Floats]:
        """Return what a file must keep."""

    def restore(self, arrays: dict[str, Floats]) -> None:
        """Put back what a file kept."""


class ResampledCovariance:
    """Matrix Geometric Resampling (Neu & Olkhovskaya 2020) with fresh contexts from the sampler for every decision.

    E[direction] = Sigma_t^-1 (I - (I - beta Sigma_t)^(M+1)) z with beta = lambda/2, and Sigma_t >= gamma_t I, so the
    mean of theta_hat is off by at most b = exp(-gamma_t lambda M/2) times |theta| <= 1, and that of an estimated loss
    by b/sqrt(lambda). The number of draws M is fixed, or what b = exp(-``log_bias``) asks for. An estimated loss can be
    as large as (M + 1)/2, log(1/b) times what the exact inverse allows.
    """

    def __init__(self, problem: SampledProblem, pieces: Pieces, *, samples: int | None, log_bias: float) -> None:
        self._problem, self._pieces = problem, pieces
        self._samples, self._log_bias = samples, log_bias
        self._beta = 0.5 * problem.coverage

    def draws(self, gamma: float) -> int:
        """Return M."""
        return self._samples or math.ceil(self._log_bias / (gamma * self._beta))

    def direction(self, mixture: Mixture, z: Floats, *, key: int, time: int) -> Floats:
        """Return beta (Y_0 + ... + Y_M). The draws depend on key and time only: no state to keep."""
        drawn, e = self._problem.draw(self.draws(mixture.gamma), np.random.default_rng([key, time]))
        pi = (1.0 - mixture.gamma) * mixture.points(drawn) + mixture.gamma * e
        result = np.empty(z.shape)
        self._pieces.resample(drawn, pi, self._beta, key, time, z.copy(), result)
        return result

    def renew(self) -> None:
        """Nothing is kept between decisions."""

    def see(self, z: Floats, *, key: int, time: int) -> None:
        """Contexts seen are not used."""

    def arrays(self) -> dict[str, Floats]:
        """Nothing is kept in files."""
        return {}

    def restore(self, arrays: dict[str, Floats]) -> None:
        """Nothing is kept in files."""


class SeenCovariance:
    """Sigma_t averaged over a reservoir of contexts: (1 - gamma_t) (average of sum_a q_t z z^T) + gamma_t I.

    The reservoir begins with the contexts of the problem's sample; every context seen then takes a random place with
    the probability that keeps it a uniform sample of all of them. The part of exploration is the identity, so the
    matrix is positive definite and estimated losses are at most 1/(gamma_t lambda), as with the exact one.
    """

    def __init__(self, problem: SampledProblem, pieces: Pieces, *, size: int) -> None:
        self._pieces, self._size = pieces, size
        self._contexts = problem.coordinates(problem.sample_features[:size])
        self._seen = problem.samples
        self._factor: Floats | None = None

    def direction(self, mixture: Mixture, z: Floats, *, key: int, time: int) -> Floats:
        """Return Sigma_t^-1 z; the factor of Sigma_t is kept until the mixture or the reservoir changes."""
        if self._factor is None:
            self._factor = self._factor_of(mixture)
        result = np.empty(z.shape)
        self._pieces.solve(self._factor, z, result)
        return result

    def _factor_of(self, mixture: Mixture) -> Floats:
        d = self._contexts.shape[2]
        sigma, factor = np.zeros((d, d)), np.zeros((d, d))
        status = self._pieces.factor(self._contexts, mixture.points(self._contexts), mixture.gamma, sigma, factor)
        if status != OK:
            count, gamma = len(self._contexts), mixture.gamma
            raise NumericalError(f"{sentence(status)}, over {count} contexts at gamma = {gamma:.3g}")
        return factor

    def renew(self) -> None:
        """Forget the factor."""
        self._factor = None

    def see(self, z: Floats, *, key: int, time: int) -> None:
        """Put a context into the reservoir, or not."""
        self._seen += 1
        u, _ = two_uniforms(key, time, RESAMPLING, 0)
        place = int(u * self._seen)
        if len(self._contexts) < self._size:
            self._contexts = np.concatenate([self._contexts, z[None]])
        elif place < self._size:
            self._contexts[place] = z
        else:
            return
        self.renew()

    def arrays(self) -> dict[str, Floats]:
        """Return the reservoir and how many contexts it stands for."""
        return {"contexts": self._contexts, "seen": np.array([float(self._seen)])}

    def restore(self, arrays: dict[str, Floats]) -> None:
        """Put back the reservoir of a file."""
        self._contexts, self._seen = arrays["contexts"].copy(), int(arrays["seen"][0])
        self.renew()
