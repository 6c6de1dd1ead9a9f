"""Logdet-FTRL (Liu, Wei and Zimmert, NeurIPS 2023): FTRL with a log-determinant barrier."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np

from bothworlds.algorithms.experts import logdet_ftrl_empirical as empirical
from bothworlds.algorithms.experts.logdet_ftrl_empirical import Work
from bothworlds.algorithms.experts.logdet_point import logdet_point
from bothworlds.algorithms.options import check_contexts, check_whole, description
from bothworlds.algorithms.shared.decision_checks import possible_leverage
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known, Machine, build_kernel, even_play, known_of
from bothworlds.kernels.exact_ftrl import add_estimate, all_finite, choose_exactly, estimate, explore_points
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import given, learnt, planned
from bothworlds.kernels.status import NOT_FINITE, OK
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.problem.feature_space import RELATIVE_RANK
from bothworlds.theory.coordinates import even_frame, frame_of
from bothworlds.theory.design import Design, Kind, check_design, design_for


class Options(NamedTuple):
    """Hyper-parameters: m log T/r, the cap of eta, Lambda/min g; then the ranks of the contexts and their psi."""

    squared_gain: float
    cap: float
    weight: float
    ranks: Annotated[Floats, given("S")]
    psi: Annotated[Floats, given("S", "K", "d")]


class State(NamedTuple):
    """Learner state, including the points p of the last plan, where the next one starts; then the plan."""

    t: Annotated[Floats, learnt()]
    theta: Annotated[Floats, learnt("d")]
    q: Annotated[Floats, learnt("S", "K")]
    rates: Annotated[Floats, planned(2)]
    pi: Annotated[Floats, planned("S", "K")]
    sigma: Annotated[Floats, planned("d", "d")]
    inverse: Annotated[Floats, planned("d", "d")]


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan: p_t of every context, pi_t = (1 - gamma_t) p_t + gamma_t e*, the lifted covariance."""
    if not all_finite(state.theta):
        return NOT_FINITE
    eta = min(math.sqrt(options.squared_gain / state.t[0]), options.cap)
    for x in range(state.q.shape[0]):
        estimate(known, state.theta, x, work.losses)
        status = logdet_point(eta, options.psi[x], int(options.ranks[x]), state.q[x], work)
        if status != OK:
            return status
    return explore_points(known, state, work, eta, 4.0 * eta * eta * options.weight)


KERNEL = build_kernel(refresh, choose_exactly, add_estimate, possible=possible_leverage)


@dataclass(frozen=True, kw_only=True, repr=False)
class LogdetFTRL(Algorithm):
    """FTRL with the barrier -log det of the lifted covariance, for adversarial losses and a known horizon.

    In every context p_t minimises <p, losses> - (1/eta_t) log det sum_a p_a psi_a psi_a^T, psi_a = [phi(a, x); 1], and
    pi_t = (1 - gamma_t) p_t + gamma_t e*. The estimate is centred, Sigma_t^-1 (phi(A_t, X_t) - mean) loss with mean and
    covariance of phi under pi_t: the slope of a regression with intercept. So it stays unbiased if a level that the
    features do not express is added to all losses of a round. Reference: Liu, Wei and Zimmert, *Bypassing the
    simulator: near-optimal adversarial linear contextual bandits*, NeurIPS 2023.

    Proved (ours, adversarial regime only): 2 sqrt(m r T log T) + m log T/cap + 2 sum gamma_t + 2, with m <= d + 1 the
    largest rank of the psi of one context, r <= d the rank of all differences of features, eta_t = min{sqrt(m log T/(r
    t)), cap}, gamma_t = 4 eta_t^2 Lambda/min g <= 1/2, so sum gamma_t is logarithmic; Lambda is the largest psi^T
    Cov(e*)^-1 psi. The stability of a round is at most eta |.|^2 in the local norm, whose mean is r/2, if eta times
    the norm is at most 1/2, which gamma_t ensures.

    What we had to choose: the published algorithm does not know the context distribution, so it has empirical
    moments, a ridge beta_t and a bonus; with known probabilities none is needed, and its constants are not used.
    Where the psi of a context are linearly dependent the determinant is taken on their span. p_t is computed to a
    duality gap of 1e-4, starting from the previous round's; where psi are independent it is exact.

    ``contexts="empirical"`` is the published algorithm, for features of length at most 1: contexts are counted as their
    feedback comes, mean and covariance are those of the empirical distribution so far, beta_t is added to the
    covariance, and losses get a bonus alpha_t |phi - mean|^2 in the inverse metric; there is no forced exploration.
    eta_t = 1/(64 d sqrt(t)), alpha_t = d/sqrt(t), beta_t = 100 (d + 1)^3 log(3 T)/(t - 1), for which O(d^2 sqrt(T) log
    T) is published; these constants are not verified against the paper's text. They learn nothing at horizons that can
    be run (research/algorithms.md). ``scale`` below 1 shrinks 64, alpha_t and beta_t, down to the eta_t of known
    contexts without its cap, no bonus, and beta_t = 1/(t - 1): a heuristic without a theorem.

    One round costs O(S K d^2 + d^3) where the psi of each context are independent, else up to thousands of times that.

    Parameters
    ----------
    horizon
        T, which affects the rates by log T.
    design
        The exploration design e*, computed for the features psi: as in `RealFTRL`; with known contexts only.
    contexts
        "known" or "empirical": whether the problem's probabilities are used.
    scale
        Factor of the constants with empirical contexts; 1 gives the published ones.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> LogdetFTRL(horizon=1000).start(problem, rng=1).probabilities(0).round(9).tolist()
    [0.5, 0.5]
    """

    horizon: int
    design: Kind | Design = "joint-g"
    contexts: Literal["known", "empirical"] = "known"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_whole(self, "horizon")
        check_design(self.design)
        check_contexts(self)

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        frame = self._frame(problem) if frame is None else frame
        if self.contexts == "empirical":
            return self._empirical_machine(problem, frame)
        rank = max(frame["coordinates"].shape[2] - 1, 1)
        weight = 1.0 / (float(frame["coverage"][0]) * float(problem.probabilities.min()))
        squared_gain = float(frame["ranks"].max()) * max(math.log(self.horizon), math.log(2.0)) / rank
        options = Options(squared_gain, math.sqrt(1.0 / (8.0 * weight)), weight, frame["ranks"], frame["psi"])
        known = known_of(problem, frame["exploration"], frame["coordinates"])
        begin = {"q": even_play(problem.available)}
        return Machine(kernel=KERNEL, known=known, options=options, begin=begin, frame=frame, rates="rates")

    def _empirical_machine(self, problem: Problem, frame: Mapping[str, Floats]) -> Machine:
        """Return the machine of the version with empirical contexts."""
        d, log_horizon = frame["coordinates"].shape[2] - 1, math.log(3.0 * self.horizon)
        squared_gain = float(frame["ranks"].max()) * max(math.log(self.horizon), math.log(2.0)) / d
        limit = 1.0 / (64.0 * d * self.scale) if self.scale > 0.0 else math.inf
        options = empirical.Options(
            squared_gain=squared_gain,
            limit=limit,
            alpha=self.scale * d,
            ridge=max(self.scale * 100.0 * (d + 1) ** 3 * log_horizon, 1.0),
            ranks=frame["ranks"],
            psi=frame["psi"],
        )
        known = known_of(problem, frame["exploration"], frame["coordinates"])
        return Machine(
            kernel=empirical.KERNEL, known=known, options=options, begin={"pi": frame["exploration"]}, frame=frame
        )

    def _frame(self, problem: Problem) -> dict[str, Floats]:
        """Return coordinates of the features with a constant added, exploration, and the barrier's arrays."""
        if self.contexts == "empirical":
            frame = even_frame(problem)
            ones = problem.available[:, :, None].astype(np.float64)
            frame["coordinates"] = np.concatenate([frame["coordinates"], ones], axis=2)
        else:
            lifted = _lifted(problem)
            frame = frame_of(lifted, design_for(lifted, self.design))
        frame["ranks"], frame["psi"] = _per_context(frame["coordinates"], problem)
        return frame

    def __repr__(self) -> str:
        return description(self)


def _lifted(problem: Problem) -> Problem:
    """Return the problem with a constant feature, of the size of the others; the size does not change the algorithm."""
    size = float(np.abs(problem.features[problem.available]).max()) or 1.0
    ones = np.full((*problem.available.shape, 1), size)
    return Problem(
        features=np.concatenate([problem.features, ones], axis=2),
        probabilities=problem.probabilities,
        available=problem.available,
    )


def _per_context(z: Floats, problem: Problem) -> tuple[Floats, Floats]:
    """Return the rank of each context's features and their coordinates in an orthonormal basis, padded with zeros."""
    ranks, psi = np.zeros(len(z)), np.zeros_like(z)
    for x, offered in enumerate(problem.available):
        left, values, _ = np.linalg.svd(z[x, offered], full_matrices=False)
        rank = int((values > RELATIVE_RANK * values[0]).sum())
        ranks[x] = rank
        psi[x, offered, :rank] = left[:, :rank]  # any basis: it changes the determinant by a constant factor
    return ranks, psi
