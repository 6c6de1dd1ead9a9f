"""Environment: nature as data, with the truth about itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from bothworlds.environments import nature
from bothworlds.environments.nature import NatureText
from bothworlds.kernels.arrays import Floats, Ints, aligned
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number

Noise = Literal["none", "bernoulli", "uniform", "normal"]
NOISES: dict[str, int] = {
    "none": nature.NO_NOISE,
    "bernoulli": nature.BERNOULLI,
    "uniform": nature.UNIFORM,
    "normal": nature.NORMAL,
}
TEXT = NatureText(nature.decide, nature.react, nature.mean_loss, nature.noisy, nature.lane_of_nature)


def rows_of(thetas: Any) -> Floats:
    """Return parameters as an array of their own; refuse what are no numbers."""
    try:
        return np.array(thetas, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"parameters are numbers, and all of one length; got {thetas!r}") from None


@dataclass(frozen=True, kw_only=True, eq=False)
class Environment:
    """A world for learners: a problem, a rule for theta_t, and noise.

    theta_t = sum_j c_j(t) thetas[j]; ``kind`` and ``constants`` say how nature chooses the coefficients
    (`bothworlds.environments.nature`). Made by the functions of this package; a user's own world is `given` an array of
    parameters, a Python function (`from_function`), or kernel text (`kernel_environment`).

    Attributes
    ----------
    name
        How reports call it.
    problem, thetas
        What the learner knows; the parameters (J, features) that nature combines.
    path
        Coefficients (T, J) of the thetas, round by round, where they are given; otherwise empty.
    noise, sigma
        "none", "bernoulli" (losses +-1), "uniform", or "normal" with deviation sigma, truncated so that losses stay in
        [-1, 1] and keep their mean.
    stochastic
        Whether thetas[0] is the fixed parameter theta_0 that gaps and corruption refer to.
    budget
        Corruption C that nature may spend; 0 without corruption.
    reacts
        Whether nature reacts to the plays themselves, so that regret against a fixed policy is not what that policy
        would have got.
    function
        A user's rule in Python, (t, probabilities) -> theta_t; None for the rules in kernel text.
    text, state_size
        The functions that make nature, and how many numbers it remembers; enough for the package's own if None.
    """

    name: str
    problem: Problem
    thetas: Floats
    kind: int = nature.FIXED
    constants: Floats = field(default_factory=lambda: np.zeros(0))
    noise: Noise = "bernoulli"
    sigma: float = 0.25
    path: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    stochastic: bool = False
    budget: float = 0.0
    reacts: bool = False
    function: Callable[[int, Floats], Any] | None = None
    text: NatureText = TEXT
    state_size: int | None = None

    def __post_init__(self) -> None:
        if self.noise not in NOISES:
            raise ValueError(f"unknown noise {self.noise!r}; choose one of {', '.join(NOISES)}")
        if not is_number(self.sigma) or not 0.0 < self.sigma < np.inf:
            raise ValueError(f"sigma must be positive and finite; got {self.sigma!r}")
        thetas = rows_of(self.thetas)
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
    def _offered(self) -> Floats:
        """The tables with zeros where an arm is not offered: such mean losses are nobody's."""
        offered = self.problem.available
        return self.tables if offered.all() else np.where(offered, self.tables, 0.0)

    def require_losses(self, largest: Floats | float, what: str = "theta") -> None:
        """Refuse a world whose mean losses leave [-1, 1] for some offered arm. Internal."""
        table = np.broadcast_to(np.asarray(largest), self.problem.available.shape)
        worst = float(np.abs(np.where(self.problem.available, table, 0.0)).max())
        if not worst <= 1.0 + nature.SLACK:
            raise ValueError(
                f"{what} makes mean losses leave [-1, 1]: the largest is {worst:.4g}. "
                f"Scale it by at most {1 / worst:.4g}"
            )

    def begin(self, *lanes: int) -> nature.Nature:
        """Return a nature at round 1, with memory of its own; of several lanes at once if asked for. Internal."""
        J = len(self.thetas)
        constants = np.concatenate([self.constants, [self.sigma]])
        path = np.ascontiguousarray(self.path) if self.path.size else np.zeros((0, J))
        size = max(4, J) if self.state_size is None else self.state_size
        return nature.Nature(
            kind=self.kind,
            noise=NOISES[self.noise],
            constants=constants,
            tables=self._offered,
            path=path,
            c=aligned(J, *lanes),
            sums=aligned(J, *lanes),
            hurt=aligned(J, *lanes),
            state=np.zeros((size + 1, *lanes)),  # the last entry is `note_outside`'s
        )

    def require_obedience(self, state: Floats, t: int) -> None:
        """Refuse to go on after round t if a rule in a user's kernel text made a mean loss leave [-1, 1]. Internal.

        ``state`` is nature's, or its last row.
        """
        outside = np.atleast_1d(state[-1])
        if outside.any():
            worst = outside[outside != 0.0][0]
            raise ValueError(
                f"the environment {self.name!r} made a mean loss of {worst:.6g} in round {t} or before; losses must "
                "stay in [-1, 1]. check_environment finds the first round"
            )

    def decide(self, made: nature.Nature, t: int, key: int, probabilities: Floats) -> None:
        """Let nature choose its coefficients of round t: by its text, or by the user's function of pi_t. Internal."""
        if self.function is None:
            self.text.decide(made, t, key)
        else:
            made.c[...] = self._checked_theta(self.function(t, probabilities.copy()), t)

    def _checked_theta(self, given: Any, t: int) -> Floats:
        """Return what the user's function gave; refuse what is no parameter or makes losses leave [-1, 1]."""
        theta = np.asarray(given, dtype=np.float64)
        if theta.shape != self.thetas.shape[1:] or not np.isfinite(theta).all():
            raise ValueError(f"round {t}: the function must return {self.thetas.shape[1]} finite numbers; got {theta}")
        self.require_losses(self.problem.features @ theta, f"theta of round {t}")
        return theta

    def best_losses(self, sums: Floats) -> Floats:
        """Return the loss of the best fixed policy over rounds in which the coefficients c_j(t) add up to sums (.., J).

        That is sum_x g(x) min_a sum_j sums_j <phi(a, x), theta_j>, for every row of sums: after n rounds with a fixed
        parameter sums are [n].
        """
        totals = np.einsum("...j,jxa->...xa", sums, self.tables)
        return np.asarray(np.where(self.problem.available, totals, np.inf).min(axis=-1) @ self.problem.probabilities)

    def losses_of_best(self, sums: Floats) -> Floats:
        """Return the loss (R, n), in each replication, of the best policy for the mean of sums (R, n, J). Internal."""
        mean = np.einsum("nj,jxa->nxa", sums.mean(axis=0), self.tables)
        arms = np.where(self.problem.available, mean, np.inf).argmin(axis=-1)
        contexts = np.arange(self.problem.n_contexts)
        played = self.tables[:, contexts[None, :], arms]  # (J, n, S)
        return np.asarray(np.einsum("rnj,jnx,x->rn", sums, played, self.problem.probabilities))

    @property
    def gaps(self) -> Floats:
        """Delta(a|x) of the fixed parameter theta_0, shape (contexts, arms); infinite where an arm is not offered."""
        if not self.stochastic:
            raise ValueError(f"the environment {self.name!r} has no fixed parameter, and so no gaps")
        means = np.where(self.problem.available, self.tables[0], np.inf)
        return np.asarray(means - means.min(axis=1, keepdims=True))

    @property
    def context_gaps(self) -> Floats:
        """Delta(x): the smallest gap of an arm other than the best one; infinite where only one arm is offered."""
        return np.asarray(np.sort(self.gaps, axis=1)[:, 1])

    @property
    def gap(self) -> float:
        """Delta_*: the smallest gap of all contexts."""
        return float(self.context_gaps.min())

    @property
    def comparator(self) -> Ints:
        """rho*(x), the best arm of theta_0 in every context."""
        return np.asarray(self.gaps.argmin(axis=1), dtype=np.int64)

    def margin_curve(self, heights: Any) -> Floats:
        """P(Delta(X) <= h) for every h (Definition 2.5)."""
        h = np.atleast_1d(np.asarray(heights, dtype=np.float64))
        below = self.context_gaps[None, :] <= h[:, None]
        return np.asarray(below @ self.problem.probabilities)

    def corruption_of(self, theta: Floats) -> float:
        """Corruption of a round with this theta: sum_x g(x) max_a (Delta(a|x) - Delta_t(a|x))_+, against rho*."""
        table = self.problem.features @ theta
        here = table - np.take_along_axis(table, self.comparator[:, None], axis=1)
        drop = np.where(self.problem.available, np.where(np.isfinite(self.gaps), self.gaps, 0.0) - here, 0.0)
        return float(self.problem.probabilities @ np.maximum(drop.max(axis=1), 0.0))

    def __repr__(self) -> str:
        return f"Environment({self.name!r}, {self.problem}, noise={self.noise!r})"
