"""`Environment`: the parameters, dynamics and noise of a simulated world, with its gaps and comparator."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from bothworlds._public_names import internal
from bothworlds.arrays import Floats, Ints, aligned
from bothworlds.environments import dynamics
from bothworlds.environments.dynamics import NatureKernel
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number

Noise = Literal["none", "bernoulli", "uniform", "normal"]
NOISES: dict[str, int] = {
    "none": dynamics.NO_NOISE,
    "bernoulli": dynamics.BERNOULLI,
    "uniform": dynamics.UNIFORM,
    "normal": dynamics.NORMAL,
}
KERNEL = NatureKernel(dynamics.decide, dynamics.react, dynamics.mean_loss, dynamics.noisy, dynamics.lane_of_nature)


def float_array(thetas: Any) -> Floats:
    """Return a copy of parameters as an array of floats; refuse anything else."""
    try:
        return np.array(thetas, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"parameters must be numbers, in rows of equal length; got {thetas!r}") from None


@dataclass(frozen=True, kw_only=True, eq=False)
class Environment:
    """A simulated world: a problem, a rule for theta_t, and noise.

    theta_t = sum_j c_j(t) thetas[j]; ``kind`` and ``constants`` determine the coefficients
    (`bothworlds.environments.dynamics`). The functions of this package make environments. For your own, use `given`
    with an array of parameters, `from_function` with a Python function, or `kernel_environment` with kernel functions.

    Attributes
    ----------
    name
        Name in reports.
    problem, thetas
        The learner's problem, and the parameters (J, features) that the rule combines.
    path
        Coefficients (T, J) of the thetas for every round if they are given; otherwise empty.
    noise, sigma
        "none", "bernoulli" (losses +-1), "uniform", or "normal" with deviation sigma, truncated so that losses stay in
        [-1, 1] and keep their mean.
    stochastic
        Whether thetas[0] is the fixed parameter theta_0 to which gaps and corruption refer.
    budget
        Corruption budget C; 0 without corruption.
    reacts
        Whether losses depend on the arms played before. Then regret against a fixed policy does not compare with the
        losses that this policy itself would have incurred.
    changing
        Whether learners should follow the best arm as it changes: reports then judge them by dynamic regret, against
        the best arm of every round, and not by regret against the best fixed policy. Both are always measured.
    function
        A user's rule in Python, (t, probabilities) -> theta_t; None for rules with kernel functions.
    kernel, state_size
        The kernel functions of the environment, and the number of floats of its state; with None, enough for the
        built-in rules.
    """

    name: str
    problem: Problem
    thetas: Floats
    kind: int = dynamics.FIXED
    constants: Floats = field(default_factory=lambda: np.zeros(0))
    noise: Noise = "bernoulli"
    sigma: float = 0.25
    path: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    stochastic: bool = False
    budget: float = 0.0
    reacts: bool = False
    changing: bool = False
    function: Callable[[int, Floats], Any] | None = None
    kernel: NatureKernel = KERNEL
    state_size: int | None = None

    def __post_init__(self) -> None:
        if self.noise not in NOISES:
            raise ValueError(f"unknown noise {self.noise!r}; choose one of {', '.join(NOISES)}")
        if not is_number(self.sigma) or not 0.0 < self.sigma < np.inf:
            raise ValueError(f"sigma must be positive and finite; got {self.sigma!r}")
        thetas = float_array(self.thetas)
        d = self.problem.features.shape[2]
        if thetas.ndim != 2 or thetas.shape[1] != d or not np.isfinite(thetas).all():
            raise ValueError(
                f"parameters must be finite and have shape (.., {d}), one entry per feature; got {thetas.shape}"
            )
        object.__setattr__(self, "thetas", thetas)

    @cached_property
    def tables(self) -> Floats:
        """Mean losses <phi(a, x), theta_j>, shape (J, contexts, arms)."""
        return np.ascontiguousarray(np.einsum("xai,ji->jxa", self.problem.features, self.thetas))

    @cached_property
    def _offered_tables(self) -> Floats:
        """The tables with zeros where an arm is not offered."""
        offered = self.problem.available
        return self.tables if offered.all() else np.where(offered, self.tables, 0.0)

    @cached_property
    def blocked(self) -> Floats:
        """Infinite where an arm is not offered, zero elsewhere, shape (contexts, arms)."""
        return np.where(self.problem.available, 0.0, np.inf)

    @internal
    def require_mean_losses(self, largest: Floats | float, what: str = "theta") -> None:
        """Raise ValueError if a mean loss (contexts, arms) of an offered arm is outside [-1, 1]."""
        table = np.broadcast_to(np.asarray(largest), self.problem.available.shape)
        worst = float(np.abs(np.where(self.problem.available, table, 0.0)).max())
        if not worst <= 1.0 + dynamics.SLACK:
            raise ValueError(
                f"{what} makes mean losses leave [-1, 1]: the largest is {worst:.4g}. "
                f"Scale it by at most {1 / worst:.4g}"
            )

    @internal
    def begin(self, *lanes: int) -> dynamics.Nature:
        """Return a nature at round 1 with its own state; with ``lanes``, of that many replications at once."""
        J = len(self.thetas)
        constants = np.concatenate([self.constants, [self.sigma]])
        path = np.ascontiguousarray(self.path) if self.path.size else np.zeros((0, J))
        size = max(4, J) if self.state_size is None else self.state_size
        return dynamics.Nature(
            kind=self.kind,
            noise=NOISES[self.noise],
            constants=constants,
            tables=self._offered_tables,
            path=path,
            c=aligned(J, *lanes),
            sums=aligned(J, *lanes),
            expected_loss=aligned(J, *lanes),
            state=np.zeros((size + 1, *lanes)),  # the last entry belongs to `note_outside`
            best=aligned(J + 1, *lanes),
        )

    @internal
    def require_kernel_in_range(self, state: Floats, t: int) -> None:
        """Raise ValueError if a user's kernel functions made a mean loss leave [-1, 1] in rounds up to t.

        ``state`` is that of the nature, or its last row.
        """
        outside = np.atleast_1d(state[-1])
        if outside.any():
            worst = outside[outside != 0.0][0]
            raise ValueError(
                f"the environment {self.name!r} made a mean loss of {worst:.6g} in round {t} or before; mean losses "
                "must stay in [-1, 1]. check_environment finds the first such round"
            )

    @internal
    def decide(self, nature: dynamics.Nature, t: int, key: int, probabilities: Floats) -> None:
        """Write the coefficients of round t, computed by the kernel or by the user's function of pi_t."""
        if self.function is None:
            self.kernel.decide(nature, t, key)
        else:
            nature.c[...] = self._checked_theta(self.function(t, probabilities.copy()), t)

    def _checked_theta(self, returned: Any, t: int) -> Floats:
        """Return theta_t of the user's function; refuse a wrong shape and mean losses outside [-1, 1]."""
        theta = np.asarray(returned, dtype=np.float64)
        if theta.shape != self.thetas.shape[1:] or not np.isfinite(theta).all():
            raise ValueError(f"round {t}: the function must return {self.thetas.shape[1]} finite numbers; got {theta}")
        self.require_mean_losses(self.problem.features @ theta, f"theta of round {t}")
        return theta

    def best_losses(self, sums: Floats) -> Floats:
        """Return the loss of the best fixed policy over rounds whose coefficients c_j(t) add up to sums (.., J).

        It is sum_x g(x) min_a sum_j sums_j <phi(a, x), theta_j>, for every row of sums. After n rounds with a single
        fixed parameter, sums is [n].
        """
        totals = np.einsum("...j,jxa->...xa", sums, self.tables)
        return np.asarray(np.where(self.problem.available, totals, np.inf).min(axis=-1) @ self.problem.probabilities)

    @internal
    def losses_of_best(self, sums: Floats) -> Floats:
        """Return the loss (R, n) in each replication of the policy that is best for the mean of sums (R, n, J)."""
        mean = np.einsum("nj,jxa->nxa", sums.mean(axis=0), self.tables)
        arms = np.where(self.problem.available, mean, np.inf).argmin(axis=-1)
        contexts = np.arange(self.problem.n_contexts)
        played = self.tables[:, contexts[None, :], arms]  # (J, n, S)
        return np.asarray(np.einsum("rnj,jnx,x->rn", sums, played, self.problem.probabilities))

    @property
    def gaps(self) -> Floats:
        """Delta(a|x) of the fixed parameter theta_0, shape (contexts, arms); infinite where an arm is not offered."""
        if not self.stochastic:
            raise ValueError(f"the environment {self.name!r} has no gaps, because it has no fixed parameter theta_0")
        means = np.where(self.problem.available, self.tables[0], np.inf)
        return np.asarray(means - means.min(axis=1, keepdims=True))

    @property
    def context_gaps(self) -> Floats:
        """Delta(x): the gap of the second-best arm; infinite where only one arm is offered."""
        return np.asarray(np.sort(self.gaps, axis=1)[:, 1])

    @property
    def gap(self) -> float:
        """Delta_*: the smallest gap over all contexts."""
        return float(self.context_gaps.min())

    @property
    def comparator(self) -> Ints:
        """rho*(x): the best arm under theta_0 in every context (contexts,)."""
        return np.asarray(self.gaps.argmin(axis=1), dtype=np.int64)

    def margin_curve(self, heights: Any) -> Floats:
        """P(Delta(X) <= h) for every h (Definition 2.5)."""
        h = np.atleast_1d(np.asarray(heights, dtype=np.float64))
        below = self.context_gaps[None, :] <= h[:, None]
        return np.asarray(below @ self.problem.probabilities)

    def corruption_of(self, theta: Floats) -> float:
        """Corruption of a round with this theta: sum_x g(x) max_a (Delta(a|x) - Delta_t(a|x))_+, against rho*."""
        table = self.problem.features @ theta
        gaps = table - np.take_along_axis(table, self.comparator[:, None], axis=1)
        drop = np.where(self.problem.available, np.where(np.isfinite(self.gaps), self.gaps, 0.0) - gaps, 0.0)
        return float(self.problem.probabilities @ np.maximum(drop.max(axis=1), 0.0))

    def __repr__(self) -> str:
        return f"Environment({self.name!r}, {self.problem}, noise={self.noise!r})"


def require_environment(value: Any) -> None:
    """Raise ValueError if the value is not an environment; the message says how to make one."""
    if not isinstance(value, Environment):
        raise ValueError(
            f"expected an environment, got {type(value).__name__}. Functions in bothworlds.environments make one: "
            "stochastic(instance) from an instance, stochastic(Instance(problem, theta)) from a problem"
        )
