"""Linear EXP4 (Liu, Wei and Zimmert, NeurIPS 2023): exponential weights on policies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, NamedTuple

import numpy as np

from bothworlds.algorithms.experts import linear_exp4_empirical as empirical
from bothworlds.algorithms.experts.linear_exp4_empirical import Work
from bothworlds.algorithms.options import check_choice, check_contexts, check_whole, description
from bothworlds.algorithms.shared.decision_checks import possible_leverage
from bothworlds.algorithms.shared.policy_mixture import loss_of_point, weigh_policies
from bothworlds.algorithms.shared.shannon_plan import State
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known, Machine, build_kernel, known_of
from bothworlds.kernels.exact_ftrl import add_estimate, all_finite, choose_exactly, estimate, explore_points
from bothworlds.kernels.ftrl_points import shannon_point
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import given
from bothworlds.kernels.status import NOT_FINITE
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.theory.armwise import Scales
from bothworlds.theory.coordinates import even_frame, frame_of
from bothworlds.theory.design import Design, Kind, check_design, design_for
from bothworlds.theory.exp_weights_rates import exact_rates, warn_of
from bothworlds.theory.linear_policies import all_policies, linear_policies, policy_count, policy_points

POLICIES = ("linear", "all", "listed")


class Options(NamedTuple):
    """Hyper-parameters; arms and points of the listed policies, empty for the product form."""

    eta: float
    gamma: float
    arms: Annotated[Floats, given("P", "S")]
    points: Annotated[Floats, given("P", "d")]


@kernel
def weigh_product_form(known: Known, options: Options, state: State) -> None:
    """Weigh all K^S policies: their weights factorise into a softmax of rate eta g(x) per context."""
    for x in range(state.q.shape[0]):
        estimate(known, state.theta, x, state.q[x])
        shannon_point(state.q[x], options.eta * known.g[x], state.q[x])


@kernel
def refresh(known: Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan of round t: q_t, pi_t = (1 - gamma) q_t + gamma e*, Sigma_t and its inverse factor."""
    if not all_finite(state.theta):
        return NOT_FINITE
    if options.arms.shape[0] > 0:
        for p in range(options.arms.shape[0]):
            work.losses[p] = loss_of_point(options.points, state.theta, p)
        weigh_policies(options.arms, options.eta, work.losses, state.q)
    else:
        weigh_product_form(known, options, state)
    return explore_points(known, state, work, options.eta, options.gamma)


KERNEL = build_kernel(refresh, choose_exactly, add_estimate, possible=possible_leverage)


@dataclass(frozen=True, kw_only=True, repr=False)
class LinearEXP4(Algorithm):
    """Exponential weights on policies, for adversarial losses and a known horizon.

    P_t(p) is proportional to exp(-eta <z_p, Theta>), z_p = sum_x g(x) phi(p(x), x); q_t(a|x) is the weight of the
    policies with p(x) = a, pi_t = (1 - gamma) q_t + gamma e*, and the estimate is Sigma_t^-1 phi(A_t, X_t) loss. Over
    *all* maps of contexts to arms the weights factorise into a softmax of rate eta g(x) in every context: rare contexts
    learn slower, while `RealLinExp3` has the rate eta in all. Reference: Liu, Wei and Zimmert, *Bypassing the
    simulator: near-optimal adversarial linear contextual bandits*, NeurIPS 2023.

    Proved, by our own derivation, adversarial regime only: regret at most 2 sqrt(T (d + 2/lambda) log N) against the
    best of N policies, since sum_p P_t(p) z_p^T Sigma^-1 z_p <= d/(1 - gamma) by Jensen's inequality and eta <z_p,
    theta_hat> <= 1. The linear policies contain the best map of every linear world, so they lose nothing. One
    round costs O(N (S + d) + S K d^2 + d^3), with "all" O(S K d^2 + d^3).

    What we had to choose: the published algorithm weighs a net of T^d linear policies, with empirical means and bonuses
    because it does not know the context distribution. By default that is known here, and finite, so the distinct
    linear policies are listed exactly, and means and covariance are exact; no bonus is needed. The published constants
    are not used.

    ``contexts="empirical"`` does not use the probabilities: contexts are counted as their feedback comes, the estimate
    is (empirical Sigma_t + beta_t)^-1 phi loss, a policy is evaluated under the empirical distribution so far, and gets
    a bonus alpha |phi|^2 in the inverse metric; there is no forced exploration. The bonus is averaged over contexts;
    the published one, as we recall it, is that of the average: smaller, its mean also at most alpha d, but not a sum
    over contexts. Rates are ours, for features of length at most 1: eta = alpha = sqrt(log N/(d T)), beta_t = max{eta,
    d log(3 T)/(t - 1)}, so that eta |l_hat| <= 1; the published regret is O(d sqrt(T log T)), but nothing is proved for
    these rates.

    Parameters
    ----------
    horizon
        T.
    policies
        "linear": the distinct linear policies, up to 2,000; larger problems are refused at the start. "all": all maps
        of contexts to arms in product form, at any size. "listed": the same one by one, up to 2,000, for comparison.
    design
        The exploration design, as in `RealFTRL`; with known contexts only.
    contexts
        "known" or "empirical": whether the problem's probabilities are used.
    scale
        Factor of alpha and beta_t with empirical contexts; 0 leaves beta_t = eta.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> LinearEXP4(horizon=1000).start(problem, rng=1).probabilities(0).tolist()
    [0.5, 0.5]
    """

    horizon: int
    policies: Literal["linear", "all", "listed"] = "linear"
    design: Kind | Design = "joint-g"
    contexts: Literal["known", "empirical"] = "known"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_whole(self, "horizon")
        check_choice(self, "policies", POLICIES)
        check_design(self.design)
        check_contexts(self)

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        arrays = self._frame(problem) if frame is None else frame
        if self.contexts == "empirical":
            return self._empirical_machine(problem, arrays)
        z, arms = arrays["coordinates"], arrays["policies"].astype(int)
        lam = float(arrays["coverage"][0])
        scales = Scales(z.shape[2], 1.0 / lam, 1.0 / lam, 1.0, 1.0)
        rates_of = partial(exact_rates, n_arms=max(len(arms) or policy_count(problem), 2), scales=scales)
        rates = rates_of(self.horizon)
        if frame is None:
            warn_of(rates, rates_of)
        options = Options(rates.eta, rates.gamma, arms, policy_points(z, problem.probabilities, arms))
        known = known_of(problem, arrays["exploration"], z)
        return Machine(kernel=KERNEL, known=known, options=options, frame=arrays, listed=len(arms), rates="rates")

    def _empirical_machine(self, problem: Problem, frame: Mapping[str, Floats]) -> Machine:
        """Return the machine of the version with empirical contexts."""
        z, arms = frame["coordinates"], frame["policies"]
        d, log_size = z.shape[2], math.log(max(len(arms) or policy_count(problem), 2))
        eta = math.sqrt(log_size / (d * self.horizon))
        options = empirical.Options(
            eta=eta,
            alpha=self.scale * eta,
            ridge=self.scale * d * math.log(3.0 * self.horizon),
            floor=eta,
            arms=arms,
        )
        known = known_of(problem, frame["exploration"], z)
        return Machine(kernel=empirical.KERNEL, known=known, options=options, frame=frame, listed=len(arms))

    def _frame(self, problem: Problem) -> dict[str, Floats]:
        """Return coordinates, exploration and the list of policies; raises ValueError if the list is too long."""
        lists = {"linear": linear_policies, "listed": all_policies}
        empty = np.zeros((0, problem.n_contexts))
        arms = lists[self.policies](problem).astype(np.float64) if self.policies in lists else empty
        if self.contexts == "empirical":
            return {**even_frame(problem), "policies": arms}
        return {**frame_of(problem, design_for(problem, self.design)), "policies": arms}

    def __repr__(self) -> str:
        return description(self)
