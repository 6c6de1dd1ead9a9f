"""Diagnostics: what the proofs talk about, measured on one path. In Python, beside the engine, which pays nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.algorithms.exponential.real_ftrl import RealFTRL
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.environments import Environment
from bothworlds.errors import NumericalError
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.random import Seed
from bothworlds.kernels.simplex import solved_point
from bothworlds.policy import Policy
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole
from bothworlds.simulation.in_python import play_in_python
from bothworlds.simulation.replication import Outcome
from bothworlds.simulation.setting import make_setting
from bothworlds.theory import lemmas
from bothworlds.theory.path import optimistic_terms, path_terms

ROUNDING = 1e-9  # of the largest number involved: how much the inequality may fail by rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """One path of FTRL, at n checkpoints.

    Attributes
    ----------
    rounds
        The checkpoints t (n,).
    omega, learning_rate, exploration_rate
        omega_t, eta_t and gamma_t of the plan of round t (n,).
    leverage
        The largest leverage phi^T Sigma_t^-1 phi of an offered arm (n,).
    step, largest_step
        The largest eta_t |l_hat(a, x)| q_t(a|x)^(1-alpha) over all plays and losses in [-1, 1] in round t, and the
        largest that occurred so far (n,).
    evaluations
        How often Newton's sums were evaluated to solve equation (4), the most of all contexts (n,); 0 for Shannon
        entropy, which needs no solving.
    allowed
        What Lemma B.1 allows as a step: c of the tuning; 1 with Shannon entropy.
    stability, penalty, exploration
        Sums up to round t, contexts weighted by g: both sides of Proposition A.1, and 2 sum gamma (n,).
    leaning
        What it can have cost that plans lean on predictions (n,); 0 where they do not.
    estimated_regret, slack
        Regret of the estimated losses against the best policy for them, at most stability, penalty and leaning; the
        least of bound less regret over all contexts and arms for the losses that plans follow, never negative but for
        rounding (n,).
    outcome
        Losses of the path, as `replay` returns them, recorded at the same checkpoints.
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
    leaning: Floats
    estimated_regret: Floats
    slack: Floats
    outcome: Outcome

    @property
    def bound(self) -> Floats:
        """The account of this path: stability + penalty + 2 sum gamma + leaning (n,).

        Its mean bounds the expected regret; a single path may exceed its own account.
        """
        return np.asarray(self.stability + self.penalty + self.exploration + self.leaning)

    @property
    def margin(self) -> Floats:
        """Stability margin 1 - step/allowed (n,): not negative where Lemma B.1 applies."""
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
    interpreted: bool = False,
) -> Diagnosis:
    """Play one replication again, in Python, and record what the proofs talk about.

    The path is that of `simulate` with the same seed, but for rounding. The FTRL inequality (Proposition A.1) is
    checked for the estimated losses at every checkpoint, for every context and arm; `NumericalError` if it fails, which
    no losses can cause. A round takes about a millisecond.

    >>> from bothworlds import environments as en
    >>> world = en.stochastic(en.random_instance(contexts=2, arms=2, dimension=2, gap=0.5, seed=1))
    >>> found = diagnose(world, LCTsallisINF(tuning="certified"), horizon=100, checkpoints=3, interpreted=True)
    >>> found.rounds.tolist(), bool((found.slack >= 0).all()), bool((found.margin >= -1e-9).all())
    ([1, 10, 100], True, True)
    """
    if not isinstance(algorithm, LCTsallisINF | RealFTRL):
        raise ValueError(f"diagnostics are for LCTsallisINF and RealFTRL, which are FTRL; got {algorithm!r}")
    setting = make_setting(environment, horizon=horizon, rng=rng, checkpoints=checkpoints)
    watched: list[_Watched] = []

    def start(problem: Problem, *, rng: Seed) -> "_Watched":
        policy = algorithm.start(problem, rng=rng, interpreted=interpreted)
        watched.append(_Watched(policy, algorithm, set(setting.checkpoints.tolist())))
        return watched[0]

    outcome = play_in_python(start, setting, whole(replication, 0, "replication"), trace=True)
    rows, allowed = watched[0].rows, watched[0].allowed
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Diagnosis(rounds=setting.checkpoints, allowed=allowed, outcome=outcome, **columns)


class _Watched:
    """A policy that writes down what happens to it."""

    def __init__(self, policy: Policy, algorithm: LCTsallisINF | RealFTRL, marks: set[int]) -> None:
        self.policy, self.marks = policy, marks
        self.alpha = algorithm.alpha if isinstance(algorithm, LCTsallisINF) else 1.0
        self.allowed = algorithm.step_limit if isinstance(algorithm, LCTsallisINF) else 1.0
        self.z = algorithm.machine(policy.problem).known.z
        self.rows: list[dict[str, float]] = []
        S, K = policy.problem.available.shape
        self.sums = np.zeros((2, S))  # stability, penalty
        self.followed = np.zeros((S, K))  # regret of the losses that plans follow
        self.regret = np.zeros((S, K))  # of the estimates themselves, where plans lean
        self.explored = self.largest = self.leaning = 0.0
        self.optimistic = isinstance(getattr(algorithm, "tuning", None), Matched)

    def probabilities(self) -> Floats:
        return self.policy.probabilities()

    def act(self, x: int) -> Any:
        return self.policy.act(x)

    def learnt(self) -> dict[str, Floats]:
        return self.policy.learnt()

    def update(self, decision: Any, *, loss: float) -> None:
        """Learn, and add the terms of the round to the sums."""
        state = self.policy.state
        q, theta, (eta, gamma) = state.q.copy(), state.theta.copy(), state.rates.copy()
        predicted, lean = (state.baseline.copy(), state.lean.copy()) if self.optimistic else (np.zeros_like(theta),) * 2
        t = self.policy.updates + 1
        plan = (*self._plan(q, eta), self._evaluations(theta + lean + predicted, eta)) if t in self.marks else None
        self.policy.update(decision, loss=loss)
        after, now = self.policy.state, self.policy.state.lean if self.optimistic else lean
        rates = np.array([eta, after.rates[0]])
        points = np.stack([q, after.q])
        own = self.z @ (after.theta - theta)
        losses = own + self.z @ (now - lean)  # those that plans follow
        if self.optimistic:
            terms = optimistic_terms(points=points, rates=rates, estimates=losses, predicted=self.z @ predicted)
        else:
            terms = path_terms(points=points, rates=rates, estimates=losses[None], alpha=self.alpha)
        self.sums += [terms.stability[0], terms.penalty[1]]
        self.sums[1] += terms.penalty[0] if t == 1 else 0.0
        self.followed += (losses * q).sum(axis=1)[:, None] - losses
        self.explored += 2.0 * gamma
        self.regret += (own * q).sum(axis=1)[:, None] - own
        if self.optimistic:
            self.leaning = self._leaning(after)
        self.largest = max(self.largest, float((eta * np.abs(losses) * q ** (1.0 - self.alpha)).max()))
        if plan is not None:
            self.rows.append(self._row(t, plan, eta, gamma))

    def _leaning(self, state: Any) -> float:
        """Return what leaning can have cost, against whichever policy."""
        problem = self.policy.problem
        highest = np.where(problem.available, self.z @ state.lean, -np.inf).max(axis=1)
        return float(problem.probabilities @ highest + state.owed[0])

    def _evaluations(self, theta: Floats, eta: float) -> float:
        """Solve for the points of the plan again, from where it started, and count."""
        if self.alpha == 1.0:
            return 0.0
        losses = np.where(self.policy.problem.available, self.z @ theta, np.inf)
        room = np.empty((2, losses.shape[1]))
        starts = zip(losses, self.policy.state.start, strict=True)
        return float(max(solved_point(row, eta, self.alpha, y, room[0], room[1])[2] for row, y in starts))

    def _plan(self, q: Floats, eta: float) -> tuple[float, float, float]:
        """Return omega_t, the largest leverage and the largest possible step of the plan, by enumeration."""
        problem, pi = self.policy.problem, self.policy.probabilities()
        largest = lemmas.largest_estimates(self.z, problem.probabilities, pi)
        sigma = np.einsum("x,xa,xai,xaj->ij", problem.probabilities, pi, self.z, self.z)
        leverage = np.einsum("xai,ij,xaj->xa", self.z, np.linalg.inv(sigma), self.z)
        step = float((eta * largest * q ** (1.0 - self.alpha))[problem.available].max())
        return float(lemmas.omega(q)), float(leverage[problem.available].max()), step

    def _row(self, t: int, plan: tuple[float, float, float, float], eta: float, gamma: float) -> dict[str, float]:
        """Return what `Diagnosis` has of a checkpoint, by name; refuse a path that breaks the FTRL inequality."""
        problem = self.policy.problem
        g, offered = problem.probabilities, problem.available
        bound, regret = self.sums.sum(axis=0)[:, None], self.followed
        slack = float((bound - regret)[offered].min())
        scale = float(np.abs(bound).max() + np.abs(regret[offered]).max())
        if not slack >= -ROUNDING * scale:
            raise NumericalError(
                f"the FTRL inequality fails in round {t} by {-slack:.3g}, of numbers up to {scale:.3g}: "
                f"the plan is not that of {self.policy.algorithm!r}"
            )
        best = np.where(offered, self.regret, -np.inf).max(axis=1)
        omega, leverage, step, evaluations = plan
        return {
            "omega": omega,
            "learning_rate": eta,
            "exploration_rate": gamma,
            "leverage": leverage,
            "step": step,
            "largest_step": self.largest,
            "evaluations": evaluations,
            "stability": float(g @ self.sums[0]),
            "penalty": float(g @ self.sums[1]),
            "exploration": self.explored,
            "leaning": self.leaning,
            "estimated_regret": float(g @ best),
            "slack": slack,
        }
