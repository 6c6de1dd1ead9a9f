"""Two estimates of Sigma_t^-1 for a context distribution that cannot be summed over.

Both work in the coordinates of the problem, in which Sigma(e) is the identity up to its estimation error.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.errors import NumericalError
from bothworlds.kernels.random import RESAMPLING, two_uniforms
from bothworlds.kernels.status import OK, sentence
from bothworlds.problem import SampledProblem
from bothworlds.sampled.kernels import BatchKernels


class Mixture(NamedTuple):
    """The current plan: exploration rate gamma_t, and a function that maps coordinates (contexts, arms, d) to q_t."""

    gamma: float
    points: Callable[[Floats], Floats]


class Covariance(Protocol):
    """Computes the direction Sigma_t^-1 z of a decision."""

    def direction(self, mixture: Mixture, z: Floats, *, key: int, time: int) -> Floats:
        """Return the direction of a pair of context and arm with coordinates z."""

    def clear_cache(self) -> None:
        """Clear values that were cached for the previous mixture."""

    def observe(self, z: Floats, *, key: int, time: int) -> None:
        """Observe a context after its decision, given its coordinates (arms, d)."""

    def arrays(self) -> dict[str, Floats]:
        """Return the arrays for a file."""

    def restore(self, arrays: dict[str, Floats]) -> None:
        """Restore the state from the arrays of a file."""


class ResampledCovariance:
    """Matrix Geometric Resampling (Neu & Olkhovskaya 2020) with fresh contexts from the sampler for every decision.

    E[direction] = Sigma_t^-1 (I - (I - beta Sigma_t)^(M+1)) z with beta = lambda/2, and Sigma_t >= gamma_t I. So the
    bias of theta_hat is at most b = exp(-gamma_t lambda M/2) times |theta| <= 1, and that of an estimated loss at most
    b/sqrt(lambda). The number of draws M is fixed, or follows from b = exp(-``log_bias``). An estimated loss can be as
    large as (M + 1)/2, which is log(1/b) times the bound for the exact inverse.
    """

    def __init__(self, problem: SampledProblem, kernels: BatchKernels, *, samples: int | None, log_bias: float) -> None:
        self._problem, self._kernels = problem, kernels
        self._samples, self._log_bias = samples, log_bias
        self._beta = 0.5 * problem.coverage

    def draws(self, gamma: float) -> int:
        """Return the number of draws M."""
        return self._samples or math.ceil(self._log_bias / (gamma * self._beta))

    def direction(self, mixture: Mixture, z: Floats, *, key: int, time: int) -> Floats:
        """Return beta (Y_0 + ... + Y_M); the draws depend only on key and time, so that there is no state."""
        contexts, e = self._problem.draw(self.draws(mixture.gamma), np.random.default_rng([key, time]))
        pi = (1.0 - mixture.gamma) * mixture.points(contexts) + mixture.gamma * e
        result = np.empty(z.shape)
        self._kernels.resample(contexts, pi, self._beta, key, time, z.copy(), result)
        return result

    def clear_cache(self) -> None:
        """Do nothing: there is no cache."""

    def observe(self, z: Floats, *, key: int, time: int) -> None:
        """Do nothing: observed contexts are not used."""

    def arrays(self) -> dict[str, Floats]:
        """Return no arrays: there is no state."""
        return {}

    def restore(self, arrays: dict[str, Floats]) -> None:
        """Do nothing: there is no state."""


class ReservoirCovariance:
    """Sigma_t averaged over a reservoir of contexts: (1 - gamma_t) (average of sum_a q_t z z^T) + gamma_t I.

    The reservoir starts with the contexts of the problem's sample. Every later context replaces a random entry with the
    probability that keeps the reservoir a uniform sample of all contexts. The exploration term is the identity, so the
    matrix is positive definite and estimated losses are at most 1/(gamma_t lambda), as with the exact matrix.
    """

    def __init__(self, problem: SampledProblem, kernels: BatchKernels, *, size: int) -> None:
        self._kernels, self._size = kernels, size
        self._contexts = problem.coordinates(problem.sample_features[:size])
        self._observed = problem.samples  # number of contexts that the reservoir is a sample of
        self._factor: Floats | None = None

    def direction(self, mixture: Mixture, z: Floats, *, key: int, time: int) -> Floats:
        """Return Sigma_t^-1 z; the factor of Sigma_t is cached until the mixture or the reservoir changes."""
        if self._factor is None:
            self._factor = self._factor_of(mixture)
        result = np.empty(z.shape)
        self._kernels.solve(self._factor, z, result)
        return result

    def _factor_of(self, mixture: Mixture) -> Floats:
        d = self._contexts.shape[2]
        sigma, factor = np.zeros((d, d)), np.zeros((d, d))
        status = self._kernels.factor(self._contexts, mixture.points(self._contexts), mixture.gamma, sigma, factor)
        if status != OK:
            count, gamma = len(self._contexts), mixture.gamma
            raise NumericalError(f"{sentence(status)}, over {count} contexts at gamma = {gamma:.3g}")
        return factor

    def clear_cache(self) -> None:
        """Clear the factor."""
        self._factor = None

    def observe(self, z: Floats, *, key: int, time: int) -> None:
        """Put a context into the reservoir with the probability of reservoir sampling."""
        self._observed += 1
        u, _ = two_uniforms(key, time, RESAMPLING, 0)
        place = int(u * self._observed)
        if len(self._contexts) < self._size:
            self._contexts = np.concatenate([self._contexts, z[None]])
        elif place < self._size:
            self._contexts[place] = z
        else:
            return
        self.clear_cache()

    def arrays(self) -> dict[str, Floats]:
        """Return the reservoir and the number of contexts that it is a sample of."""
        return {"contexts": self._contexts, "seen": np.array([float(self._observed)])}

    def restore(self, arrays: dict[str, Floats]) -> None:
        """Restore the reservoir from a file."""
        self._contexts, self._observed = arrays["contexts"].copy(), int(arrays["seen"][0])
        self.clear_cache()
