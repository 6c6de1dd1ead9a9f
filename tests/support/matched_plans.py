"""Plans of the matched tuning in NumPy, to check the kernels against."""

import math

import numpy as np

import bothworlds as bw
from bothworlds.algorithms.lc_tsallis.leverage_bounds import ExplorationCase
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.theory import lemmas
from bothworlds.theory.schedules import Matching
from support.problems import coordinates


class Plan:
    """The plan of a policy, and quantities that follow from it by NumPy."""

    def __init__(self, policy: bw.Policy) -> None:
        state, problem = policy.state, policy.problem
        self.z, self.g, self.e = coordinates(policy), problem.probabilities, policy._machine.known.e
        self.q, self.m, self.beta = state.q.copy(), state.baseline.copy(), float(state.inverse_rate[0])
        self.gamma, self.charge, self.debt = float(state.rates[1]), float(state.charge[0]), float(state.debt[0])
        self.options, self.known = policy._machine.options, policy._machine.known
        self.b, self.largest = policy._machine.options.covered, policy._machine.options.largest
        self.h = float(self.g @ lemmas.tsallis_entropy(self.q))
        weights = self.q**1.5
        self.centre = np.einsum("xa,xai->xi", weights, self.z) / weights.sum(axis=1)[:, None]

    def paid_for(self, step: Floats) -> tuple[float, float]:
        """Return z and u of a step: one of them is 0."""
        pairs = list(zip(self.q, self.z @ step, strict=True))
        costs = [lemmas.stability_cost(row, losses, beta=self.beta, c=Matching.c) for row, losses in pairs]
        if max(costs) < math.inf:
            return float(self.g @ costs), 0.0
        rest = [lemmas.step_cost(row, losses, beta=self.beta, c=Matching.c) for row, losses in pairs]
        return 0.0, float(self.g @ rest) if self.beta < self.b else 0.0

    @property
    def covering(self) -> float:
        """The rate that leaves no play uncovered."""
        return float(min(self.options.curved / self.beta**2, self.options.linear / self.beta))

    def paid(self, answers: int = 1) -> float:
        """Return the part of the price paid at the plan's feedback: exploration, and from b on a part of the debt."""
        explored, owed = 2.0 * self.gamma, self.debt + (self.charge if answers == 1 else 0.0)
        return answers * explored + (min(owed, 2.0 * self.covering - explored) if self.beta >= self.b else 0.0)

    def case(self) -> tuple[Known, ExplorationCase]:
        """Return the kernels' inputs for the plan, on plain arrays."""
        S, K, d = self.z.shape
        sigma = np.einsum("x,xa,xai,xaj->ij", self.g, self.q, self.z, self.z)
        rho, tables = 1.0 + np.abs(self.z @ self.m), np.zeros((4, S, K))
        case = ExplorationCase(
            sigma, self.q, np.sqrt(self.q), rho, self.beta, self.b, Matching.c, np.zeros((d, d)), np.zeros((d, d)),
            self.centre, tables[0], tables[1], tables[2], tables[3], np.zeros(d), np.zeros((5, d)), np.eye(d),
        )  # fmt: skip
        return self.known._replace(z=self.z, g=self.g, e=self.e), case

    def due(self, policy: bw.Policy, z: float, u: float, *, answers: int = 1) -> tuple[float, float, float]:
        """Return the rate after a jump, h of the policy's next plan at that rate, and the limit of its penalty."""
        m, H, d = policy.state.baseline, 2.0 * (math.sqrt(self.q.shape[1]) - 1.0), policy.problem.dimension
        beta = self.beta * (1.0 + Matching.price * u / (self.b * H))
        losses = self.z @ (policy.state.theta + m)
        points = np.array([bw.ftrl_point(row / beta) for row in losses])
        h = float(self.g @ lemmas.tsallis_entropy(points))
        variance = float(self.g @ (self.q * (1.0 - (self.z @ m) ** 2)).sum(axis=1))
        doubt = (min(h, self.h) / H) ** 8 * variance**4 * math.sqrt(min(1.0, policy.state.t[0] / (400.0 * d)))
        gain = max(Matching.gain * (h / H) ** 2, Matching.least)
        share = Matching.price * (beta / self.b if self.beta < self.b else 1.0)
        return beta, h, gain * z + answers * Matching.caution * d * doubt / beta + share * self.paid(answers)

    def price(self, gamma: float, *, c: float) -> float:
        """Return 2 gamma plus the cost of uncovered plays, one pair after the other."""
        pi, inverse = (1.0 - gamma) * self.q + gamma * self.e, self.inverse(gamma)
        total = 2.0 * gamma
        for x, a in np.ndindex(*self.q.shape):
            direction = inverse @ self.z[x, a]
            rho = 1.0 + abs(self.z[x, a] @ self.m)
            costs, covered = [], True
            for row, features, centre in zip(self.q, self.z, self.centre, strict=True):
                d = (features - centre) @ direction
                covered = covered and rho * np.abs(d * np.sqrt(row)).max() <= c * self.beta
                costs.append(lemmas.largest_cost(row, rho * d, beta=self.beta, c=c))
            total += 0.0 if covered else self.g[x] * pi[x, a] * float(self.g @ costs)
        return total

    def sigma(self, gamma: float) -> Floats:
        """Return Sigma_t for a rate."""
        pi = (1.0 - gamma) * self.q + gamma * self.e
        return np.asarray(np.einsum("x,xa,xai,xaj->ij", self.g, pi, self.z, self.z))

    def inverse(self, gamma: float) -> Floats:
        """Return Sigma_t^-1 for a rate."""
        return np.asarray(np.linalg.inv(self.sigma(gamma)))

    def largest_cost(self, gamma: float) -> float:
        """Return the cost of the most expensive play: <delta, q> - min delta for its largest residual."""
        costs, inverse = [], self.inverse(gamma)
        for x, a in np.ndindex(*self.q.shape):
            rho, d = 1.0 + abs(self.z[x, a] @ self.m), self.z @ (inverse @ self.z[x, a])
            costs.append(float(rho * (self.g @ [lemmas.linear_cost(*pair) for pair in zip(self.q, d, strict=True)])))
        return max(costs)

    def leverages(self, gamma: float) -> tuple[Floats, Floats]:
        """Return rho^2 lev of every play, and lev(psi)."""
        inverse, rho, apart = self.inverse(gamma), 1.0 + np.abs(self.z @ self.m), self.z - self.centre[:, None]
        lev, wide = (np.einsum("xai,ij,xaj->xa", v, inverse, v) for v in (self.z, apart))
        return rho**2 * lev, wide

    def excess(self, gamma: float) -> float:
        """Return the largest rho^2 lev times the largest q lev(psi), over (c beta)^2."""
        far, wide = self.leverages(gamma)
        return float(far.max() * (self.q * wide).max()) / (Matching.c * self.beta) ** 2

    def cost_bound(self, gamma: float) -> float:
        """Return 4 max sqrt(lev) sum_x g max_a sqrt(lev)."""
        lev = np.sqrt(np.einsum("xai,ij,xaj->xa", self.z, self.inverse(gamma), self.z))
        return float(4.0 * lev.max() * (self.g @ lev.max(axis=1)))

    def above_floor(self, gamma: float, floor: Floats) -> bool:
        """Return whether the covariance is nowhere less than another one, given by its lower half."""
        whole = np.tril(floor) + np.tril(floor, -1).T
        return bool(np.linalg.eigvalsh(self.sigma(gamma) - whole).min() > 0.0)


def put_rate(policy: bw.Policy, beta: float) -> None:
    """Set beta and compute the plan again."""
    policy.state.inverse_rate[0] = beta
    policy._learner_state.refresh()
