"""Plans of the matched tuning in NumPy, to check the kernels against."""

import math
from typing import NamedTuple

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.theory import lemmas
from bothworlds.theory.schedules import Matching
from support.problems import coordinates

EARLY, LATER = 0.5, 2.0  # gamma_t = EARLY/t while beta < b, LATER/t from there on
SAFE = 1.0 / 16.0  # the rate at which no play can cost much


class Rate(NamedTuple):
    """An exploration rate with its price, and what it was compared with."""

    gamma: float
    price: float
    trial: float  # EARLY/t or LATER/t, or the rate that is taken instead if that is less
    ratio: float  # of its cost to what it may cost, affordable up to 1; 0 without a choice


class Plan:
    """The plan of a policy, and quantities that follow from it by NumPy."""

    def __init__(self, policy: bw.Policy) -> None:
        state, problem = policy.state, policy.problem
        self.z, self.g, self.e = coordinates(policy), problem.probabilities, policy._machine.known.e
        self.q, self.m, self.beta = state.q.copy(), state.baseline.copy(), float(state.inverse_rate[0])
        self.t = float(state.remembered[0]) + 1.0  # rounds since a restart
        self.gamma, self.charged = float(state.rates[1]), float(state.price[0])
        self.options, self.offered = policy._machine.options, problem.available
        self.b, self.largest = self.options.covered, self.options.largest
        self.h = float(self.g @ lemmas.tsallis_entropy(self.q))
        weights = self.q**1.5
        self.centre = np.einsum("xa,xai->xi", weights, self.z) / weights.sum(axis=1)[:, None]
        self.rho = 1.0 + np.abs(self.z @ self.m)

    @property
    def early(self) -> bool:
        """Whether uncovered plays are paid for when they are made."""
        return bool(self.beta < self.b)

    @property
    def covering(self) -> float:
        """The rate that leaves no play uncovered."""
        return float(min(self.options.curved / self.beta**2, self.options.linear / self.beta))

    @property
    def explored(self) -> float:
        """What a round pays for exploration: 2 gamma and the price of uncovered plays."""
        return 2.0 * self.gamma + self.charged

    def step_costs(self, step: Floats) -> tuple[float, float]:
        """Return z and u of a step: one of them is 0."""
        pairs = list(zip(self.q, self.z @ step, strict=True))
        costs = [lemmas.stability_cost(row, losses, beta=self.beta, c=Matching.c) for row, losses in pairs]
        if max(costs) < math.inf:
            return float(self.g @ costs), 0.0
        return 0.0, float(
            self.g @ [lemmas.step_cost(row, losses, beta=self.beta, c=Matching.c) for row, losses in pairs]
        )

    def paid_for(self, step: Floats) -> tuple[float, float]:
        """Return z and u of a step, u only while it is paid for when it is made."""
        z, u = self.step_costs(step)
        return z, u if self.early else 0.0

    def due(self, policy: bw.Policy, z: float, u: float) -> tuple[float, float, float]:
        """Return beta after a jump, h of the policy's next plan at that rate, and the limit of its penalty."""
        state, H, d = policy.state, 2.0 * (math.sqrt(self.q.shape[1]) - 1.0), policy.problem.dimension
        beta = self.beta * (1.0 + Matching.price * u / (self.b * H))
        losses = self.z @ (state.theta + state.drift + state.baseline)
        points = np.zeros_like(losses)
        for q, row, offered in zip(points, losses, self.offered, strict=True):
            q[offered] = bw.ftrl_point(row[offered] / beta)
        h = float(self.g @ lemmas.tsallis_entropy(points))
        variance = float(self.g @ (self.q * (1.0 - (self.z @ state.baseline) ** 2)).sum(axis=1))
        doubt = (min(h, self.h) / H) ** 8 * variance**4 * math.sqrt(min(1.0, (state.remembered[0] + 1.0) / (400.0 * d)))
        gain = max(Matching.gain * (h / H) ** 2, Matching.least)
        share = Matching.price * (beta / self.b if self.early else 1.0)
        return beta, h, gain * z + Matching.caution * d * doubt / beta + share * self.explored

    def pi(self, gamma: float) -> Floats:
        """Return pi_t for a rate."""
        return np.asarray((1.0 - gamma) * self.q + gamma * self.e)

    def sigma(self, gamma: float) -> Floats:
        """Return Sigma_t for a rate."""
        return np.asarray(np.einsum("x,xa,xai,xaj->ij", self.g, self.pi(gamma), self.z, self.z))

    def inverse(self, gamma: float) -> Floats:
        """Return Sigma_t^-1 for a rate."""
        return np.asarray(np.linalg.inv(self.sigma(gamma)))

    def plays(self) -> list[tuple[int, int]]:
        """Return all pairs of a context and an arm offered there."""
        return [(int(x), int(a)) for x, a in np.argwhere(self.offered)]

    def price(self, gamma: float) -> float:
        """Return the expected cost of uncovered plays under the worst residuals, one play after the other."""
        pi, inverse, total = self.pi(gamma), self.inverse(gamma), 0.0
        for x, a in self.plays():
            d = self.rho[x, a] * (self.z - self.centre[:, None]) @ (inverse @ self.z[x, a])
            if np.abs(d * np.sqrt(self.q)).max() > Matching.c * self.beta:
                rows = zip(self.q, d, strict=True)
                cost = self.g @ [lemmas.largest_cost(*row, beta=self.beta, c=Matching.c) for row in rows]
                total += float(self.g[x] * pi[x, a] * cost)
        return total

    def mean_uncovered_cost(self, gamma: float) -> float:
        """Return the expected cost of steps that are not covered, each for the worse of the losses -1 and 1."""
        pi, inverse, total = self.pi(gamma), self.inverse(gamma), 0.0
        for x, a in self.plays():
            estimate, predicted = inverse @ self.z[x, a], float(self.z[x, a] @ self.m)
            costs = [self.step_costs(estimate * (loss - predicted))[1] for loss in (-1.0, 1.0)]
            total += float(self.g[x] * pi[x, a]) * max(costs)
        return total

    def largest_cost(self, gamma: float) -> float:
        """Return the largest u of all plays, for both losses."""
        inverse = self.inverse(gamma)
        steps = [
            inverse @ self.z[x, a] * (loss - self.z[x, a] @ self.m) for x, a in self.plays() for loss in (-1.0, 1.0)
        ]
        return max(self.step_costs(step)[1] for step in steps)

    def cost_bound(self, gamma: float) -> float:
        """Return D = 4 max sqrt(lev) E_X[max_a sqrt(lev)]; infinite if Sigma_t is singular."""
        if np.linalg.eigvalsh(self.sigma(gamma))[0] <= 0.0:
            return math.inf
        lev = np.einsum("xai,ij,xaj->xa", self.z, self.inverse(gamma), self.z) * self.offered
        return float(4.0 * np.sqrt(lev.max()) * (self.g @ np.sqrt(lev.max(axis=1))))

    def above_floor(self, gamma: float) -> float:
        """Return the least eigenvalue of Sigma_t - SAFE Sigma(e), where Sigma(e) is the identity."""
        return float(np.linalg.eigvalsh(self.sigma(gamma))[0]) - SAFE

    def stated_rate(self) -> Rate:
        """Return gamma_t and its price by the rule."""
        if self.early:
            trial = min(EARLY / self.t, SAFE)
            ratio = self.cost_bound(trial) / self.largest
            return Rate(trial if ratio <= 1.0 else SAFE, 0.0, trial, ratio)
        trial = min(LATER / self.t, self.covering)
        if trial >= self.covering * (1.0 - 1e-12):
            return Rate(trial, 0.0, trial, 0.0)
        price = self.price(trial)
        ratio = (2.0 * trial + price) / (2.0 * self.covering)
        return Rate(trial, price, trial, ratio) if ratio <= 1.0 else Rate(self.covering, 0.0, trial, ratio)


def put_plan(policy: bw.Policy, *, beta: float, theta: Floats | None = None, t: float | None = None) -> Plan:
    """Set beta, the estimates and the clock, compute the plan again, and return it."""
    state = policy.state
    state.inverse_rate[0] = state.start_inverse_rate[0] = beta
    if theta is not None:
        state.theta[...] = theta
    if t is not None:
        state.t[0], state.remembered[0] = t, t - 1.0
    policy._learner_state.refresh()
    return Plan(policy)
