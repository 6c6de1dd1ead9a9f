"""Measure the quantities of the proofs on one path, in Python, at no cost to ordinary simulations."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.algorithms.exponential.real_ftrl import RealFTRL
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.arrays import Floats, Ints
from bothworlds.environments import Environment
from bothworlds.errors import NumericalError
from bothworlds.kernels.ftrl_points import solved_point
from bothworlds.kernels.random import Seed
from bothworlds.policy import Policy
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole
from bothworlds.simulation.replication import Outcome
from bothworlds.simulation.round_loop_python import play_in_python
from bothworlds.simulation.setting import make_setting
from bothworlds.theory import lemmas
from bothworlds.theory.ftrl_path import optimistic_terms, path_terms

ROUNDING = 1e-9  # tolerated violation of the inequality, relative to the largest number involved


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """Quantities of the proofs on one path of FTRL, at n checkpoints.

    Attributes
    ----------
    rounds
        The checkpoints t (n,).
    omega, learning_rate, exploration_rate
        omega_t, eta_t and gamma_t of the plan of round t (n,).
    leverage
        The largest leverage phi^T Sigma_t^-1 phi of an offered arm (n,).
    step, largest_step
        Largest possible eta_t |l_hat(a, x)| q_t(a|x)^(1-alpha) in round t, over all plays and losses in [-1, 1], and
        the largest that occurred so far (n,).
    evaluations
        Evaluations of the Newton sums needed to solve equation (4), the maximum over contexts (n,); 0 for Shannon
        entropy, whose solution is explicit.
    allowed
        The largest step that Lemma B.1 allows: c of the tuning; 1 for Shannon entropy.
    stability, penalty, exploration
        Sums up to round t, contexts weighted by g: both sides of Proposition A.1, and 2 sum gamma (n,).
    drift_cost
        Largest possible cost of the regression drift so far (n,); 0 without drift.
    delay_cost
        Cost of late feedback so far (n,): the sum over learned rows of <l_hat, q' - q>, contexts weighted by g, q' the
        point of the plan that decided the row and q that of the plan in which it was learned; 0 without delay.
    estimated_regret, slack
        Regret of the estimated losses against the best policy for them (n,), at most stability + penalty + drift_cost;
        and the smallest difference between bound and regret over all contexts and arms, for the losses that plans
        follow (n,), never negative except for rounding.
    outcome
        Losses of the path, as returned by `replay`, at the same checkpoints.
    """

    rounds: Ints
    omega: Floats
    learning_rate: Floats
    exploration_rate: Floats
    leverage: Floats
    step: Floats
    largest_step: Floats
    evaluations: Floats
    allowed: float
    stability: Floats
    penalty: Floats
    exploration: Floats
    drift_cost: Floats
    delay_cost: Floats
    estimated_regret: Floats
    slack: Floats
    outcome: Outcome

    @property
    def bound(self) -> Floats:
        """Stability + penalty + 2 sum gamma + drift cost + delay cost of this path (n,).

        Its mean bounds the expected regret of the rounds that were learned; that of a single path may exceed it.
        """
        return np.asarray(self.stability + self.penalty + self.exploration + self.drift_cost + self.delay_cost)

    @property
    def margin(self) -> Floats:
        """Stability margin 1 - step/allowed (n,); not negative where Lemma B.1 applies."""
        return np.asarray(1.0 - self.step / self.allowed)

    def __str__(self) -> str:
        rates = ("omega", "learning_rate", "exploration_rate", "leverage", "margin", "evaluations")
        names = (*rates, "stability", "penalty", "slack")
        rows = [f"{'t':>9} " + " ".join(f"{name:>16}" for name in names)]
        for i, t in enumerate(self.rounds):
            rows.append(f"{t:>9,} " + " ".join(f"{getattr(self, name)[i]:>16.5g}" for name in names))
        return "\n".join(rows)


def diagnose(
    environment: Environment,
    algorithm: LCTsallisINF | RealFTRL,
    *,
    horizon: int,
    replication: int = 0,
    rng: Seed = 0,
    checkpoints: int | Iterable[int] = 20,
    delay: int = 0,
    batch: int = 1,
    interpreted: bool = False,
) -> Diagnosis:
    """Play one replication in Python and measure the quantities of the proofs.

    The path is that of `simulate` with the same seed, up to rounding. At every checkpoint the FTRL inequality
    (Proposition A.1) is checked for the estimated losses, every context and every arm. It holds for all losses, so a
    violation means that the plan is wrong and raises `NumericalError`. A round takes about a millisecond. ``delay`` and
    ``batch`` are those of `simulate`; only the tuning "matched", which learns batches row by row, takes a batch.

    >>> from bothworlds import environments as en
    >>> world = en.stochastic(en.random_instance(contexts=2, arms=2, dimension=2, gap=0.5, seed=1))
    >>> found = diagnose(world, LCTsallisINF(tuning="certified"), horizon=100, checkpoints=3, interpreted=True)
    >>> found.rounds.tolist(), bool((found.slack >= 0).all()), bool((found.margin >= -1e-9).all())
    ([1, 10, 100], True, True)
    """
    if not isinstance(algorithm, LCTsallisINF | RealFTRL):
        raise ValueError(f"diagnose needs an FTRL algorithm, LCTsallisINF or RealFTRL; got {algorithm!r}")
    if batch > 1 and not algorithm.machine(environment.problem).kernel.row_by_row:
        raise ValueError(f"diagnose follows single rows, but {algorithm!r} learns a batch at once; leave out batch=")
    setting = make_setting(environment, horizon=horizon, rng=rng, checkpoints=checkpoints, delay=delay, batch=batch)
    recorders: list[_RecordingPolicy] = []

    def start(problem: Problem, *, rng: Seed) -> "_RecordingPolicy":
        policy = algorithm.start(problem, rng=rng, interpreted=interpreted)
        recorders.append(_RecordingPolicy(policy, algorithm, set(setting.checkpoints.tolist())))
        return recorders[0]

    outcome = play_in_python(start, setting, whole(replication, 0, "replication"), trace=True)
    recorders[0].finish_round()
    rows, allowed = recorders[0].rows, recorders[0].allowed
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Diagnosis(rounds=setting.checkpoints, allowed=allowed, outcome=outcome, **columns)


class _RecordingPolicy:
    """A policy that records the terms of the proofs."""

    def __init__(self, policy: Policy, algorithm: LCTsallisINF | RealFTRL, checkpoints: set[int]) -> None:
        self.policy, self.checkpoints = policy, checkpoints
        self.alpha = algorithm.alpha if isinstance(algorithm, LCTsallisINF) else 1.0
        self.allowed = algorithm.step_limit if isinstance(algorithm, LCTsallisINF) else 1.0
        self.z = algorithm.machine(policy.problem).known.z
        self.rows: list[dict[str, float]] = []
        S, K = policy.problem.available.shape
        self.sums = np.zeros((2, S))  # stability, penalty
        self.followed = np.zeros((S, K))  # regret of the losses that plans follow: estimates plus drift
        self.regret = np.zeros((S, K))  # regret of the estimates
        self.explored = self.largest = self.drift_cost = self.drift_paid = self.delay_cost = 0.0
        self.round, self.begun = 0, dict[str, float]()  # values of the plan of a checkpoint, until its round is over
        self.made: dict[Any, tuple[Floats, float]] = {}  # by decision that waits: q and gamma of its plan
        self.optimistic = isinstance(getattr(algorithm, "tuning", None), Matched)

    def probabilities(self) -> Floats:
        self.finish_round()
        return self.policy.probabilities()

    def act(self, x: int) -> Any:
        """Decide, and keep what the costs of the decision depend on."""
        state, decision = self.policy.state, self.policy.act(x)
        self.round += 1
        self.made[decision.id] = state.q.copy(), float(state.rates[1])
        if self.round in self.checkpoints:
            self.begun = self._begun(state)
        return decision

    def finish_round(self) -> None:
        """Add the row of a checkpoint, once the feedback of its round has been learned."""
        if self.begun:
            self.rows.append({**self.begun, **self._row()})
            self.begun = {}

    def learnt(self) -> dict[str, Floats]:
        return self.policy.learnt()

    def update(self, decision: Any, *, loss: Any) -> None:
        """Update the policy, row by row, and add the terms of each row to the sums."""
        if isinstance(decision, list):
            for row, value in zip(decision, loss, strict=True):
                self.update(row, loss=value)
            return
        state = self.policy.state
        q, theta, eta = state.q.copy(), state.theta.copy(), float(state.rates[0])
        zeros = np.zeros_like(theta)
        predicted, drift = (state.baseline.copy(), state.drift.copy()) if self.optimistic else (zeros, zeros)
        first = self.policy.updates == 0
        self.policy.update(decision, loss=loss)
        after, next_drift = self.policy.state, self.policy.state.drift if self.optimistic else drift
        rates = np.array([eta, after.rates[0]])
        points = np.stack([q, after.q])
        estimates = self.z @ (after.theta - theta)
        losses = estimates + self.z @ (next_drift - drift)  # the losses that plans follow
        self.drift_paid -= float(self.policy.problem.probabilities @ ((losses - estimates) * q).sum(axis=1))
        if self.optimistic:
            terms = optimistic_terms(points=points, rates=rates, estimates=losses, predicted=self.z @ predicted)
        else:
            terms = path_terms(points=points, rates=rates, estimates=losses[None], alpha=self.alpha)
        self.sums += [terms.stability[0], terms.penalty[1]]
        self.sums[1] += terms.penalty[0] if first else 0.0
        self.followed += (losses * q).sum(axis=1)[:, None] - losses
        decided, gamma = self.made.pop(decision.id)
        self.explored += 2.0 * gamma
        self.delay_cost += float(self.policy.problem.probabilities @ (estimates * (decided - q)).sum(axis=1))
        self.regret += (estimates * decided).sum(axis=1)[:, None] - estimates
        if self.optimistic:
            self.drift_cost = self._drift_cost(after)
        self.largest = max(self.largest, float((eta * np.abs(losses) * q ** (1.0 - self.alpha)).max()))

    def _drift_cost(self, state: Any) -> float:
        """Return the largest possible cost of the regression drift, over all comparators."""
        problem = self.policy.problem
        highest = np.where(problem.available, self.z @ state.drift, -np.inf).max(axis=1)
        return float(problem.probabilities @ highest + self.drift_paid)

    def _evaluations(self, theta: Floats, eta: float) -> float:
        """Return the largest number of evaluations over contexts, by solving for the plan from the same start."""
        if self.alpha == 1.0:
            return 0.0
        losses = np.where(self.policy.problem.available, self.z @ theta, np.inf)
        scratch = np.empty((2, losses.shape[1]))
        starts = zip(losses, self.policy.state.start, strict=True)
        return float(max(solved_point(row, eta, self.alpha, y, scratch[0], scratch[1])[2] for row, y in starts))

    def _plan(self, q: Floats, eta: float) -> tuple[float, float, float]:
        """Return omega_t, the largest leverage, and the largest possible step of the plan by enumeration."""
        problem, pi = self.policy.problem, self.policy.probabilities()
        largest = lemmas.largest_estimates(self.z, problem.probabilities, pi)
        sigma = np.einsum("x,xa,xai,xaj->ij", problem.probabilities, pi, self.z, self.z)
        leverage = np.einsum("xai,ij,xaj->xa", self.z, np.linalg.inv(sigma), self.z)
        step = float((eta * largest * q ** (1.0 - self.alpha))[problem.available].max())
        return float(lemmas.omega(q)), float(leverage[problem.available].max()), step

    def _begun(self, state: Any) -> dict[str, float]:
        """Return the values of `Diagnosis` that belong to the plan of a checkpoint, by name."""
        q, (eta, gamma) = state.q, state.rates
        theta = state.theta + state.drift + state.baseline if self.optimistic else state.theta
        omega, leverage, step = self._plan(q, eta)
        return {
            "omega": omega,
            "learning_rate": float(eta),
            "exploration_rate": float(gamma),
            "leverage": leverage,
            "step": step,
            "evaluations": self._evaluations(theta, eta),
        }

    def _row(self) -> dict[str, float]:
        """Return the other values of `Diagnosis` at a checkpoint; raise NumericalError if the inequality fails."""
        problem = self.policy.problem
        g, offered = problem.probabilities, problem.available
        bound, regret = self.sums.sum(axis=0)[:, None], self.followed
        slack = float((bound - regret)[offered].min())
        scale = float(np.abs(bound).max() + np.abs(regret[offered]).max())
        if not slack >= -ROUNDING * scale:
            raise NumericalError(
                f"the FTRL inequality fails in round {self.round} by {-slack:.3g}, with terms up to {scale:.3g}: "
                f"the plan is not that of {self.policy.algorithm!r}"
            )
        best = np.where(offered, self.regret, -np.inf).max(axis=1)
        return {
            "largest_step": self.largest,
            "stability": float(g @ self.sums[0]),
            "penalty": float(g @ self.sums[1]),
            "exploration": self.explored,
            "drift_cost": self.drift_cost,
            "delay_cost": self.delay_cost,
            "estimated_regret": float(g @ best),
            "slack": slack,
        }
