"""Linear EXP4 (Liu, Wei and Zimmert, NeurIPS 2023): exponential weights on policies, context law known or not."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from bothworlds.algorithms import linear_exp4_seen_text as seen_text
from bothworlds.algorithms.options import check_choice, check_contexts, check_horizon, description
from bothworlds.algorithms.possible import leverages
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.experts import loss_of_point
from bothworlds.kernels.numbers import exponential
from bothworlds.kernels.plan import (
    add_context,
    add_estimate,
    all_finite,
    choose_exactly,
    clear,
    covariance,
    estimate,
    invert,
    mix,
)
from bothworlds.kernels.random import Seed
from bothworlds.kernels.shannon import State, Work, kept, sizes, state_of, work_of
from bothworlds.kernels.simplex import shannon_point
from bothworlds.kernels.status import NOT_FINITE
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem
from bothworlds.theory.armwise import Scales
from bothworlds.theory.design import Design, Kind, check_design, design_for
from bothworlds.theory.exponential import exact_rates, warn_of
from bothworlds.theory.frame import even_frame, frame_of, world_of
from bothworlds.theory.linear_policies import all_policies, linear_policies, policy_count, policy_points

POLICIES = ("linear", "all", "listed")


class Numbers(NamedTuple):
    """Hyper-parameters; how many policies are listed (0: product form), ``lists``: their arms, then their points."""

    eta: float
    gamma: float
    listed: float
    lists: Floats


@kernel
def numbers_of(n: Floats) -> Numbers:
    """Name the hyper-parameters."""
    return Numbers(n[0], n[1], n[2], n[3:])


@kernel
def weigh_policies(numbers: Numbers, state: State) -> None:
    """Write q_t(a|x) = sum of P_t(p) over the listed policies with p(x) = a, P_t(p) ~ exp(-eta <z_p, Theta>)."""
    S, K = state.q.shape
    count = int(numbers.listed)
    least = loss_of_point(numbers.lists, state.theta, count * S, 0)
    for p in range(1, count):
        least = min(least, loss_of_point(numbers.lists, state.theta, count * S, p))
    for x in range(S):
        for a in range(K):
            state.q[x, a] = 0.0
    total = 0.0
    for p in range(count):
        weight = exponential(numbers.eta * (least - loss_of_point(numbers.lists, state.theta, count * S, p)))
        total += weight
        for x in range(S):
            state.q[x, int(numbers.lists[p * S + x])] += weight
    for x in range(S):
        for a in range(K):
            state.q[x, a] /= total


@kernel
def multiply_out(world: World, numbers: Numbers, state: State) -> None:
    """Write the same for all K^S policies: their weights factorise into a softmax of rate eta g(x) per context."""
    for x in range(state.q.shape[0]):
        estimate(world, state.theta, x, state.q[x])
        shannon_point(state.q[x], numbers.eta * world.g[x], state.q[x])


@kernel
def refresh(world: World, numbers: Numbers, state: State, work: Work) -> int:
    """Compute the plan of round t: q_t, pi_t = (1 - gamma) q_t + gamma e*, Sigma_t and its inverse factor."""
    if not all_finite(state.theta):
        return NOT_FINITE
    if numbers.listed > 0.0:
        weigh_policies(numbers, state)
    else:
        multiply_out(world, numbers, state)
    clear(work.sums)
    for x in range(state.q.shape[0]):
        add_context(world, x, state.q[x], work.sums)
    covariance(world, state.q, work.sums, state.sigma)
    mix(world, state, numbers.gamma)
    state.rates[0] = numbers.eta
    state.rates[1] = numbers.gamma
    return invert(state)


TEXT = KernelText(sizes, numbers_of, state_of, work_of, refresh, choose_exactly, add_estimate)


@dataclass(frozen=True, kw_only=True, repr=False)
class LinearEXP4:
    """Exponential weights on policies, for adversarial losses and a known horizon.

    P_t(p) is proportional to exp(-eta <z_p, Theta>), z_p = sum_x g(x) phi(p(x), x); q_t(a|x) is the weight of the
    policies with p(x) = a, pi_t = (1 - gamma) q_t + gamma e*, and the estimate is Sigma_t^-1 phi(A_t, X_t) loss. Over
    *all* maps of contexts to arms the weights factorise into a softmax of rate eta g(x) in every context: rare contexts
    learn slower, where `RealLinExp3` has the rate eta in all. Reference: Liu, Wei and Zimmert, *Bypassing the
    simulator: near-optimal adversarial linear contextual bandits*, NeurIPS 2023.

    Proved, by our own derivation, adversarial regime only: regret at most 2 sqrt(T (d + 2/lambda) log N) against the
    best of N policies, since sum_p P_t(p) z_p^T Sigma^-1 z_p <= d/(1 - gamma) by Jensen's inequality and eta <z_p,
    theta_hat> <= 1. The linear policies contain the best map of every linear world, so nothing is lost by them. One
    round costs O(N (S + d) + S K d^2 + d^3), with "all" O(S K d^2 + d^3).

    What we had to choose: the published algorithm weighs a net of T^d linear policies, with empirical means and bonuses
    because it does not know the distribution of contexts. By default that is known here, and finite, so the distinct
    linear policies are listed exactly, and means and covariance are exact; no bonus is needed. The published constants
    are not used.

    ``contexts="empirical"`` does not look at the probabilities: contexts are counted as their feedback comes, the
    estimate is (empirical Sigma_t + beta_t)^-1 phi loss, a policy is estimated under the law seen so far, and gets a
    bonus alpha |phi|^2 in the inverse metric; there is no forced exploration. The bonus is averaged over contexts; the
    published one, as we recall it, is that of the average: smaller, its mean also at most alpha d, but no sum.
    Rates are ours, for features of length at most 1: eta = alpha = sqrt(log N/(d T)), beta_t = max{eta, d log(3 T)/(t -
    1)}, so that eta |l_hat| <= 1; the published regret is O(d sqrt(T log T)), but nothing is proved for these rates.

    Parameters
    ----------
    horizon
        T.
    policies
        "linear": the distinct linear policies, up to 2,000; larger problems are refused at the start. "all": all maps
        of contexts to arms in product form, at any size. "listed": the same one by one, up to 2,000, for comparison.
    design
        The exploration policy, as in `RealFTRL`; with known contexts only.
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
        check_horizon(self, least=1)
        check_choice(self, "policies", POLICIES)
        check_design(self.design)
        check_contexts(self)

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem; the same seed gives the same decisions."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""
        kept_frame = self._frame(problem) if frame is None else frame
        if self.contexts == "empirical":
            return self._seen_machine(problem, kept_frame)
        z, arms = kept_frame["coordinates"], kept_frame["policies"].astype(int)
        lam = float(kept_frame["coverage"][0])
        scales = Scales(z.shape[2], 1.0 / lam, 1.0 / lam, 1.0, 1.0)
        rates_of = partial(exact_rates, n_arms=max(len(arms) or policy_count(problem), 2), scales=scales)
        rates = rates_of(self.horizon)
        if frame is None:
            warn_of(rates, rates_of)
        points = policy_points(z, problem.probabilities, arms)
        numbers = np.concatenate([[rates.eta, rates.gamma, len(arms)], arms.ravel(), points.ravel()])
        world = world_of(problem, kept_frame["exploration"], z)
        return Machine(
            text=TEXT,
            world=world,
            numbers=numbers,
            begin=_begin,
            learnt=("t", "theta"),
            frame=kept_frame,
            has_baseline=False,
            kept=kept,
            possible=leverages(world),
        )

    def _seen_machine(self, problem: Problem, frame: dict[str, Floats]) -> Machine:
        """Return the machine of the version that counts contexts."""
        z, arms = frame["coordinates"], frame["policies"]
        d, log_size = z.shape[2], math.log(max(len(arms) or policy_count(problem), 2))
        eta = math.sqrt(log_size / (d * self.horizon))
        head = [eta, self.scale * eta, self.scale * d * math.log(3.0 * self.horizon), eta, len(arms)]
        return Machine(
            text=seen_text.TEXT,
            world=world_of(problem, frame["exploration"], z),
            numbers=np.concatenate([head, arms.ravel()]),
            begin=_begin,
            learnt=seen_text.LEARNT,
            frame=frame,
            has_baseline=False,
        )

    def _frame(self, problem: Problem) -> dict[str, Floats]:
        """Return coordinates, exploration and the list of policies, which may be refused as too long."""
        lists = {"linear": linear_policies, "listed": all_policies}
        none = np.zeros((0, problem.n_contexts))
        arms = lists[self.policies](problem).astype(np.float64) if self.policies in lists else none
        if self.contexts == "empirical":
            return {**even_frame(problem), "policies": arms}
        return {**frame_of(problem, design_for(problem, self.design)), "policies": arms}

    def __repr__(self) -> str:
        return description(self, policies="linear", design="joint-g", contexts="known", scale=1.0)


def _begin(state: State | seen_text.State) -> None:
    """Start the clock."""
    state.t[...] = 1.0
