"""LC-Tsallis-INF (Kato & Ito, AISTATS 2025), Algorithm 1: hyper-parameters, and how they become numbers."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np

from bothworlds.algorithms import lc_tsallis_memory as memory
from bothworlds.algorithms import lc_tsallis_text as text
from bothworlds.algorithms.options import (
    CovarianceChoice,
    refuse_design,
    refuse_reservoir,
    sampled_covariance,
    take_reservoir,
)
from bothworlds.algorithms.tunings import (
    DEFAULT_BIAS,
    MGR,
    TUNINGS,
    Adaptive,
    Certified,
    Matched,
    Paper,
    Reservoir,
    Tuning,
    TuningName,
)
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.entries import World
from bothworlds.kernels.random import Seed
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem, SampledProblem
from bothworlds.sampled import Rule, SampledPolicy
from bothworlds.theory.design import Design, Kind, check_design, design_for
from bothworlds.theory.forecast import Forecast, forecast
from bothworlds.theory.frame import frame_of, world_of
from bothworlds.theory.schedules import Schedule, certified_constant, learning_gain, schedule, stability_constant

KINDS = {Paper: text.SCHEDULED, Certified: text.CERTIFIED, Adaptive: text.ADAPTIVE, Matched: text.MATCHED}
KEPT = {
    Paper: memory.kept,
    Certified: memory.kept,
    Adaptive: memory.kept_by_adaptive,
    Matched: None,  # its rates look back at the plan before
}
LEARNT = {
    Paper: memory.LEARNT,
    Certified: memory.LEARNT,
    Adaptive: memory.LEARNT_BY_ADAPTIVE,
    Matched: memory.LEARNT_BY_MATCHED,
}


@dataclass(frozen=True, kw_only=True, repr=False)
class LCTsallisINF:
    """FTRL with Tsallis entropy for linear contextual bandits: best of both worlds.

    Plays pi_t = (1 - gamma_t) q_t + gamma_t e*, where q_t(x) minimises <sum of estimated losses, q> + psi(q)/eta_t
    over the simplex, psi the alpha-Tsallis entropy, and the estimate is theta_hat = Sigma_t^-1 phi(A_t, X_t) loss
    (equations (2)-(4)). One round costs O(S K d^2 + d^3); what is learnt is one integer and d numbers.

    What is proved, all for alpha = 1/2 and feedback after every decision: with tuning "paper" and "certified", regret
    O(log T) in the stochastic regime, O(sqrt T) in the adversarial one, and the intermediate rates under a margin
    condition or corruption (Theorems 4.1-4.4); the same in order for "matched", which is not the paper's
    (docs/theory.md). For "adaptive", and for alpha other than 1/2, there is no theorem.

    Parameters
    ----------
    alpha
        Tsallis index in (0, 1).
    tuning
        "paper", "certified", "matched" or "adaptive", or an object `Paper`, `Certified`, `Matched`, `Adaptive` with
        its options.
    covariance
        "exact", or `MGR` (tuning "paper" only: the others need exact leverages). On a `SampledProblem` `MGR`, or
        "reservoir", that is `Reservoir`, with tuning "paper": eta_t = min{eta~_t, lambda/16} and gamma_t =
        8 eta_t/lambda, the paper's "otherwise" branch.
    design
        The exploration policy: "joint-g", "joint-d", "per-context", "uniform", or a `Design`.

    Examples
    --------
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["red", "blue"])
    >>> policy = LCTsallisINF().start(problem, rng=7)
    >>> decision = policy.act("0")
    >>> policy.update(decision, loss=0.5)
    >>> policy
    Policy(LCTsallisINF(alpha=0.5, tuning=Certified(c=None, batch=1)), 1 rounds, 1 updates)
    """

    alpha: float = 0.5
    tuning: TuningName | Tuning = "certified"
    covariance: CovarianceChoice = "exact"
    design: Kind | Design = "joint-g"

    def __post_init__(self) -> None:
        alpha: Any = self.alpha
        if not isinstance(alpha, int | float | np.floating) or not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must be a number strictly between 0 and 1; got {alpha!r}")
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
            raise ValueError(f"the matched tuning is for alpha = 1/2; got {self.alpha!r}")
        if self.covariance != "exact" and not isinstance(self.tuning, Paper):
            word = type(self.covariance).__name__
            raise ValueError(
                f"{word} gives no exact leverages, which this tuning needs; use tuning='paper' with {word}"
            )
        check_design(self.design)

    @overload
    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy: ...
    @overload
    def start(self, problem: SampledProblem, *, rng: Seed = None, interpreted: bool = False) -> SampledPolicy: ...
    def start(
        self, problem: Problem | SampledProblem, *, rng: Seed = None, interpreted: bool = False
    ) -> Policy | SampledPolicy:
        """Begin on a problem; the same seed gives the same decisions.

        ``interpreted`` runs the same text without compiling it: for the debugger, some hundred times slower.
        """
        if isinstance(problem, SampledProblem):
            return SampledPolicy.begin(self, problem, self.sampled_rule(problem), rng=rng, interpreted=interpreted)
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def design_for(self, problem: Problem) -> Design:
        """Return the exploration policy that a start on this problem uses."""
        return design_for(problem, self.design)

    def schedule_for(self, problem: Problem, explore: Design) -> Schedule:
        """Return eta_t and the largest gamma_t; for the adaptive tuning, eta_t if every residual were 1."""
        if isinstance(self.tuning, Matched):
            raise ValueError("the matched tuning has no schedule: its rates follow from what is played")
        return self._rates(problem, explore)

    def _rates(self, problem: Problem, explore: Design) -> Schedule:
        """Return the schedule; for the matched tuning its first rate, and the rules that bound gamma_t by eta_t."""
        make = partial(
            schedule,
            alpha=self.alpha,
            n_arms=problem.n_arms,
            dimension=problem.dimension,
            coverage=explore.coverage,
        )
        match self.tuning:
            case Certified(batch=batch):
                return make(rarity=problem.rarity, constant=self.step_limit * batch).in_batches(batch)
            case Matched():
                return make(rarity=problem.rarity, constant=self.step_limit)
            case Adaptive():
                return self._adaptive_schedule(self.tuning, problem, explore.coverage)
            case Paper(finite_support=True):
                return make(rarity=problem.rarity, constant=self.step_limit, use_linear=False)
            case _:
                return make(rarity=None, constant=self.step_limit)

    def _adaptive_schedule(self, tuning: Adaptive, problem: Problem, coverage: float) -> Schedule:
        """Return eta_t of many rounds if every squared residual were 1 and the plan uniform, and the largest gamma_t.

        2 d + c t/size >= c t/2, so gamma_t is at most the larger of 2/(c lambda t) and floor/t.
        """
        gain = tuning.scale * learning_gain(alpha=self.alpha, n_arms=problem.n_arms, dimension=problem.dimension)
        gain *= tuning.offset ** (tuning.slope - 0.5)
        enough = 0.0 if tuning.c is None else 2.0 / (tuning.c * coverage)
        power = 1.0 / tuning.slope
        most = max(enough, tuning.floor) / gain**power
        return Schedule(gain=gain, cap=math.inf, linear=math.inf, power_scale=most, power=power, decay=tuning.slope)

    def sampled_rule(self, problem: SampledProblem) -> Rule:
        """Return the rates for contexts that are not listed: rule (A) of schedules.py, whatever ``finite_support``."""
        if not isinstance(self.tuning, Paper):
            raise ValueError(
                f"{self.tuning} looks at all contexts in every round, and a sampled problem does not list them: "
                "tuning='paper' is the one for it"
            )
        refuse_design(self, "joint-g")
        rates = schedule(
            alpha=self.alpha,
            n_arms=problem.n_arms,
            dimension=problem.dimension,
            coverage=problem.coverage,
            rarity=None,
            constant=self.step_limit,
        )
        return Rule(
            alpha=self.alpha,
            rates=lambda t, _: (rates.learning_rate(t), rates.exploration_rate(t)),
            covariance=sampled_covariance(self),
        )

    @property
    def step_limit(self) -> float:
        """How large eta |l_hat| q^(1-alpha) may be: c of Lemma B.1; the adaptive tuning does not keep the paper's."""
        match self.tuning:
            case Certified(c=c, batch=batch):
                return (certified_constant(self.alpha) if c is None else c) / batch
            case Matched(c=c):
                return c
            case _:
                return stability_constant(self.alpha)

    def forecast(self, problem: Problem, *, horizon: int) -> Forecast:
        """Tell before the start how eta_t, gamma_t and the cost of exploration develop over a horizon."""
        explore = self.design_for(problem)
        return forecast(
            self.schedule_for(problem, explore),
            horizon=horizon,
            coverage=explore.coverage,
            reward_per_loss=problem.reward_per_loss,
            exact=isinstance(self.tuning, Paper),
            batch=self.tuning.batch if isinstance(self.tuning, Certified) else 1,
        )

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:
        """Make the algorithm ready for a problem; ``frame`` brings back the arrays of a saved policy."""
        refuse_reservoir(self, problem)
        if frame is None:
            explore = self.design_for(problem)
            frame = frame_of(problem, explore)
        else:
            coverage, limit = (float(value) for value in frame["coverage"])
            explore = Design("saved", frame["exploration"], coverage, limit)
        world = world_of(problem, frame["exploration"], frame["coordinates"])
        is_adaptive = isinstance(self.tuning, Adaptive)
        numbers = self._numbers(problem, explore, world)
        return Machine(
            text=text.TEXT if self.covariance == "exact" else text.RESAMPLING,
            world=world,
            numbers=np.array(numbers),
            begin=partial(_begin, first_rate=numbers.gain),
            learnt=LEARNT[type(self.tuning)],
            frame=frame,
            has_baseline=is_adaptive,
            kept=KEPT[type(self.tuning)],
        )

    def _numbers(self, problem: Problem, explore: Design, world: World) -> memory.Numbers:
        """Return the hyper-parameters as the kernel text wants them."""
        rates = self._rates(problem, explore)
        tuning = self.tuning
        gain, constant = rates.gain, self.step_limit
        slope, offset, floor, recency, forgetting = 0.0, 0.0, 0.0, 0.0, 0.0
        if isinstance(tuning, Adaptive):
            slope, offset, floor = tuning.slope, tuning.offset, tuning.floor
            recency, forgetting = tuning.recency, tuning.forgetting
            gain *= offset**-slope
            constant = tuning.c or 0.0
        beta, samples, log_bias = 0.0, 0.0, 0.0
        if isinstance(self.covariance, MGR):
            beta = 0.5 / float((world.z**2).sum(axis=2).max())
            samples, log_bias = float(self.covariance.samples or 0), -math.log(self.covariance.bias or DEFAULT_BIAS)
        return memory.Numbers(
            kind=KINDS[type(tuning)],
            alpha=self.alpha,
            gain=gain,
            cap=rates.cap,
            linear=rates.linear,
            power_scale=rates.power_scale,
            power=rates.power,
            constant=constant,
            slope=slope,
            offset=offset,
            floor=floor,
            recency=recency,
            forgetting=forgetting,
            full=(problem.n_arms ** (1.0 - self.alpha) - 1.0) / self.alpha,
            leverage=1.0 / explore.coverage,
            beta=beta,
            samples=samples,
            log_bias=log_bias,
        )

    def __repr__(self) -> str:
        parts = [f"alpha={self.alpha}", f"tuning={self.tuning}"]
        parts += [f"covariance={self.covariance}"] if self.covariance != "exact" else []
        parts += [f"design={self.design!r}"] if self.design != "joint-g" else []
        return f"LCTsallisINF({', '.join(parts)})"


def _begin(state: memory.State, *, first_rate: float) -> None:
    """Write down what is known before the first round."""
    state.t[...] = 1.0
    state.start[...] = 1.0
    state.inverse_rate[...] = 1.0 / first_rate
    for i in range(state.ridge.shape[0]):
        state.ridge[i, i] = 1.0
