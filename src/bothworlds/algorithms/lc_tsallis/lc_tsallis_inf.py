"""LC-Tsallis-INF (Kato & Ito, AISTATS 2025), Algorithm 1: hyper-parameters, validation, start on a problem."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bothworlds._public_names import internal
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.algorithms.lc_tsallis.paper import Certified, Paper
from bothworlds.algorithms.options import (
    DEFAULT_BIAS,
    MGR,
    CovarianceChoice,
    Reservoir,
    refuse_design,
    refuse_reservoir,
    sampled_covariance,
    take_reservoir,
)
from bothworlds.algorithms.sampled_algorithm import SampledAlgorithm
from bothworlds.arrays import Floats
from bothworlds.ftrl import check_index
from bothworlds.kernels.contract import Known, Machine, known_of
from bothworlds.kernels.geometric_resampling import Resampling
from bothworlds.problem import Problem, SampledProblem
from bothworlds.sampled import SampledRule
from bothworlds.theory.coordinates import frame_of
from bothworlds.theory.design import Design, Kind, check_design, design_for
from bothworlds.theory.forecast import Forecast, forecast
from bothworlds.theory.schedules import Facts, Schedule

TuningName = Literal["paper", "certified", "matched"]
Tuning = Paper | Certified | Matched
TUNINGS: dict[str, type[Tuning]] = {"paper": Paper, "certified": Certified, "matched": Matched}


@dataclass(frozen=True, kw_only=True, repr=False)
class LCTsallisINF(SampledAlgorithm):
    """FTRL with Tsallis entropy for linear contextual bandits: best of both worlds.

    Plays pi_t = (1 - gamma_t) q_t + gamma_t e*. q_t(x) minimises <sum of estimated losses, q> + psi(q)/eta_t over the
    simplex, psi the negative alpha-Tsallis entropy. The estimate is theta_hat = Sigma_t^-1 phi(A_t, X_t) loss
    (equations (2)-(4)). One round costs O(S K d^2 + d^3). "paper" and "certified" learn one integer and d numbers,
    "matched" also the d x d matrix of a regression.

    Proved, all for alpha = 1/2 and feedback after every decision: with tuning "paper" and "certified", regret O(log T)
    in the stochastic regime, O(sqrt T) in the adversarial one, and the intermediate rates under a margin condition or
    corruption (Theorems 4.1-4.4); the same orders for "matched", which is not the paper's,
    for as long as it sees no change (research/default-rule.md).
    There is no theorem for other alpha.

    Parameters
    ----------
    alpha
        Tsallis index in (0, 1).
    tuning
        "matched": our own theorem, and the lowest score on the scoreboard; "certified": the paper's guarantee with a
        smaller gamma_t; "paper": its constants to the letter; or `Matched`, `Certified`, `Paper` with options.
    covariance
        "exact", or `MGR` (tuning "paper" only: the others need exact leverages). On a `SampledProblem`: `MGR`, or
        "reservoir", short for `Reservoir()`, with tuning "paper". Then eta_t = min{eta~_t, lambda/16} and gamma_t =
        8 eta_t/lambda, the paper's "otherwise" branch.
    design
        The exploration design: "joint-g", "joint-d", "per-context", "uniform", or a `Design`.

    Examples
    --------
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["red", "blue"])
    >>> policy = LCTsallisINF().start(problem, rng=7)
    >>> decision = policy.act("0")
    >>> policy.update(decision, loss=0.5)
    >>> policy.updates, policy.algorithm.tuning
    (1, Matched(gain=1.0, least=0.25, caution=16.0, price=0.6, c=0.45, forgetting=1.0, drift_cap=0.1))
    """

    alpha: float = 0.5
    tuning: TuningName | Tuning = "matched"
    covariance: CovarianceChoice = "exact"
    design: Kind | Design = "joint-g"

    def __post_init__(self) -> None:
        alpha: Any = self.alpha
        if not isinstance(alpha, int | float | np.floating) or not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must be a number strictly between 0 and 1; got {alpha!r}")
        check_index(float(alpha))
        object.__setattr__(self, "alpha", float(alpha))
        if isinstance(self.tuning, str):
            if self.tuning not in TUNINGS:
                raise ValueError(f"unknown tuning {self.tuning!r}; choose one of {', '.join(TUNINGS)}")
            object.__setattr__(self, "tuning", TUNINGS[self.tuning]())
        elif not isinstance(self.tuning, Tuning):
            raise ValueError(f"tuning must be a name or a tuning object; got {self.tuning!r}")
        take_reservoir(self)
        if self.covariance != "exact" and not isinstance(self.covariance, MGR | Reservoir):
            raise ValueError(
                f"covariance must be 'exact', 'reservoir', Reservoir(...) or MGR(...); got {self.covariance!r}"
            )
        if isinstance(self.tuning, Matched) and self.alpha != 0.5:
            raise ValueError(
                f"the matched tuning, which is the default, needs alpha = 1/2; got {self.alpha!r}: "
                "use tuning='certified' or tuning='paper'"
            )
        if self.covariance != "exact" and not isinstance(self.tuning, Paper):
            word = type(self.covariance).__name__
            raise ValueError(
                f"{word} gives no exact leverages, which this tuning needs; use tuning='paper' with {word}"
            )
        check_design(self.design)

    def design_for(self, problem: Problem) -> Design:
        """Return the exploration design that a start on this problem uses."""
        return design_for(problem, self.design)

    def _facts_of(self, problem: Problem, explore: Design) -> Facts:
        """Return the quantities that the tuning depends on."""
        return Facts(
            alpha=self.alpha,
            n_arms=problem.n_arms,
            dimension=problem.dimension,
            coverage=explore.coverage,
            rarity=problem.rarity,
        )

    def schedule_for(self, problem: Problem, explore: Design) -> Schedule:
        """Return eta_t and the largest gamma_t, known before the start; ``explore`` is the result of `design_for`.

        The matched tuning raises ValueError: its rates depend on the plays.
        """
        return self._tuning.schedule(self._facts_of(problem, explore))

    @property
    def _tuning(self) -> Tuning:
        """The tuning object; `__post_init__` replaced a name by it."""
        assert not isinstance(self.tuning, str)
        return self.tuning

    @internal
    def sampled_rule(self, problem: SampledProblem) -> SampledRule:
        """Return the rates for a problem without a list of contexts.

        Rule (A) of `bothworlds.theory.schedules`, whatever ``finite_support``. Raises ValueError unless the tuning is
        `Paper` and the design is the default.
        """
        if not isinstance(self.tuning, Paper):
            raise ValueError(
                f"{self.tuning} needs the list of all contexts, which a sampled problem does not have: "
                "use tuning='paper'"
            )
        refuse_design(self, "joint-g")
        facts = Facts(
            alpha=self.alpha,
            n_arms=problem.n_arms,
            dimension=problem.dimension,
            coverage=problem.coverage,
            rarity=math.inf,
        )
        rates = facts.schedule(rarity=None, constant=self.step_limit)
        return SampledRule(
            alpha=self.alpha,
            rates=lambda t, _: (rates.learning_rate(t), rates.exploration_rate(t)),
            covariance=sampled_covariance(self),
        )

    @property
    @internal
    def step_limit(self) -> float:
        """Largest allowed eta |l_hat| q^(1-alpha): c of Lemma B.1, or the constant of the tuning."""
        return self._tuning.step_limit(self.alpha)

    def forecast(self, problem: Problem, *, horizon: int) -> Forecast:
        """Forecast eta_t, gamma_t and the cost of exploration over a horizon, before the start."""
        explore = self.design_for(problem)
        return forecast(
            self.schedule_for(problem, explore),
            horizon=horizon,
            coverage=explore.coverage,
            reward_per_loss=problem.reward_per_loss,
            exact=isinstance(self.tuning, Paper),
            batch=self.tuning.batch if isinstance(self.tuning, Certified) else 1,
        )

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return the kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        refuse_reservoir(self, problem)
        if frame is None:
            explore = self.design_for(problem)
            frame = frame_of(problem, explore)
        else:
            coverage, limit = (float(value) for value in frame["coverage"])
            explore = Design("saved", frame["exploration"], coverage, limit)
        known = known_of(problem, frame["exploration"], frame["coordinates"])
        learner = self._tuning.learner(self._facts_of(problem, explore), self._resampling(known))
        return Machine(**learner._asdict(), known=known, frame=frame, rates="rates")

    def _resampling(self, known: Known) -> Resampling:
        """Return the options of Matrix Geometric Resampling; zeros for the exact inverse."""
        if not isinstance(self.covariance, MGR):
            return Resampling(0.0, 0.0, 0.0)
        beta = 0.5 / float((known.z**2).sum(axis=2).max())
        return Resampling(beta, float(self.covariance.samples or 0), -math.log(self.covariance.bias or DEFAULT_BIAS))

    def __repr__(self) -> str:
        parts = [f"alpha={self.alpha}", f"tuning={self.tuning}"]
        parts += [f"covariance={self.covariance}"] if self.covariance != "exact" else []
        parts += [f"design={self.design!r}"] if self.design != "joint-g" else []
        return f"LCTsallisINF({', '.join(parts)})"
