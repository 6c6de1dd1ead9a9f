"""The four tunings of LC-Tsallis-INF, and two stand-ins for the exact covariance: small frozen objects."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bothworlds.theory.schedules import MATCHED_CONSTANT

TuningName = Literal["paper", "certified", "matched", "adaptive"]
DEFAULT_BIAS = 0.01


def _positive(part: object, name: str) -> None:
    """Keep an option as a plain float; refuse what is not positive and finite."""
    value = getattr(part, name)
    if not isinstance(value, int | float | np.number) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite; got {value!r}")
    object.__setattr__(part, name, float(value))


def _not_negative(part: object, name: str) -> None:
    """Keep an option as a plain float; refuse what is negative or not finite."""
    value = getattr(part, name)
    if not isinstance(value, int | float | np.number) or not 0.0 <= value < math.inf:
        raise ValueError(f"{name} must not be negative and must be finite; got {value!r}")
    object.__setattr__(part, name, float(value))


def _whole(part: object, name: str) -> None:
    """Keep an option as a plain integer; refuse what is not a whole number of at least 1."""
    value = getattr(part, name)
    if not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
    object.__setattr__(part, name, int(value))


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The paper's eta_t and gamma_t to the letter (equation (4), errata resolved).

    Proved for alpha = 1/2: O(log T) stochastic, O(sqrt T) adversarial, and in between (Theorems 4.1-4.4). Half of
    the first t0 = 256 sqrt(K) L/(d lambda) rounds are exploration.

    Parameters
    ----------
    finite_support
        Which branch of eta_t: True for Assumption 2.3, gamma = 128 L eta^2/lambda; False for "otherwise", gamma =
        8 eta/lambda, whose regret is O(sqrt T) in all regimes.
    """

    finite_support: bool = True


@dataclass(frozen=True, kw_only=True)
class Certified:
    """The smallest gamma_t for which the paper's stability condition holds, checked exactly each round.

    Proved for alpha = 1/2 with feedback after every decision: the condition is all that the paper's proofs use gamma_t
    for, any c below 1/2 will do, and for c of at least 1/8 gamma_t never exceeds the paper's. So every theorem of the
    paper still holds, with other constants: c = 1/8 is the paper's, and around 1/4, the default, the bounds are
    smallest (docs/theory.md). From c = 1/2 on nothing is proved.

    Where b decisions are taken and answered together, ``batch=b`` takes them for one round with the mean of their
    estimates: every theorem holds for T/b rounds, times b. That is what it costs: t0 is b times as long, and regret
    grows about b-fold (measured: 301 to 1,941 for b = 10, 316 to 5,350 for b = 40, at T = 50,000; docs/theory.md).
    With batch = 1 the same batches cost next to nothing in these runs, but nothing is proved for them.

    Parameters
    ----------
    c
        The constant of eta |l_hat| <= c q^(alpha-1); (1 - alpha)/2, twice the paper's, if left out.
    batch
        How many decisions are taken and answered together, at most: the condition holds for the sum of that many
        estimates of one plan, with c/batch in place of c, and the learning rate is divided by sqrt(batch).
    """

    c: float | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        if self.c is not None:
            _positive(self, "c")
        _whole(self, "batch")


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Learning rates matched to what they cost. Not the paper's; a theorem of our own. alpha = 1/2.

    As `Certified` it explores by the smallest gamma_t that keeps the paper's stability condition. The learning rate
    begins as large as the condition allows with gamma_t = 1/2, and 1/eta_t then grows by what makes the penalty of a
    round equal to its stability and twice its exploration,

        1/eta_{t+1} = 1/eta_t + (eta_t V_t + 2 gamma_t)/h_t,       at most 2/eta_t

    with V_t the spread of the estimate made, weighted by q^(3/2), and h_t = -psi(q_t), both in the mean over contexts:
    the stability-penalty matching of Ito, Tsuchiya and Honda (COLT 2024), with the price of exploration added.

    Proved in docs/theory.md, with feedback after every decision: the same orders as the paper's theorems in T, K and d,
    with sqrt(L) in place of L, and exploration that costs sqrt(L K/(lambda Delta_*)) log T in place of
    sqrt(K) L/(d lambda) log T; corruption adds C^(1/3) times the 2/3 power of that. The proved constants are far larger
    than those of `Certified`.

    Parameters
    ----------
    c
        The constant of eta |l_hat| sqrt q <= c, below 1/2: larger explores less, and lets estimates jump further.
    """

    c: float = MATCHED_CONSTANT

    def __post_init__(self) -> None:
        _positive(self, "c")
        if self.c >= 0.5:
            raise ValueError(f"c must lie below 1/2: from there on nothing is proved; got {self.c!r}")


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """Heuristic, no theorem: a control variate, and rates that follow the data. Not the paper's.

    The estimate m_t + Sigma_t^-1 phi (loss - <phi, m_t>) is exactly unbiased for the ridge prediction m_t of the
    moment of the decision. The learning rate follows a clock n that counts rounds by their squared residual and by the
    cube of how undecided the plan was, 1 for a uniform plan and 0 for a sure one,

        n_t = sum_s (loss_s - <phi_s, m_s>)^2 (psi(q_s)/psi(uniform))^3
        eta_t = scale K^(1/4)/sqrt(offset d) (1 + n_t/offset)^-slope

    for alpha = 1/2, and with sqrt((1-alpha) K^(1-alpha)/alpha) in place of K^(1/4) for any alpha: an adversary keeps
    the plan undecided and makes the rate fall, little noise or a clear winner let it stay.

    Without a bound on its steps a single lucky play of a rare arm can turn the policy around for thousands of rounds;
    rare rewards do this often. So gamma_t is the smallest rate, at most 1/2, for which no leverage exceeds
    2 d + c t/size, where size is that of the residuals that make up their variance; and at least min(1/2, floor/t).

    Estimates fade, theta_hat_s having the weight (s/t)^recency: what was learnt long ago gives way when the world has
    changed. A sqrt(T) bound for weighted losses is one for plain losses, times 1 + 2 recency (docs/scoreboard.md).

    Feedback counts as new when it comes, so its order matters a little, unlike with the other tunings.

    How the defaults were found, and what else was tried: docs/scoreboard.md.

    Parameters
    ----------
    scale
        Larger learns faster under noise, smaller withstands an adaptive adversary better.
    offset
        How slowly the rate starts.
    slope
        Exponent of the rate: 1/2 is that of the theory, more begins faster and becomes more careful.
    recency
        How much faster older estimates fade; 0 for a plain sum.
    forgetting
        The same for the ridge regression: it predicts from about the last 1/forgetting of all rounds.
    floor
        Exploration that keeps the covariance well-conditioned; costs about floor log T average gaps.
    c
        Bound on the share of all rounds that one play may weigh; None does without one.
    """

    scale: float = 1.2
    offset: float = 1.0
    slope: float = 0.6
    recency: float = 0.25
    forgetting: float = 30.0
    floor: float = 0.1
    c: float | None = 0.1

    def __post_init__(self) -> None:
        for name in ("scale", "offset", "slope", "floor"):
            _positive(self, name)
        for name in ("recency", "forgetting"):
            _not_negative(self, name)
        if self.c is not None:
            _positive(self, "c")


@dataclass(frozen=True, kw_only=True)
class MGR:
    """Matrix Geometric Resampling instead of the exact inverse: Sigma_t^-1 phi from random draws.

    The estimate is biased by a factor of at most exp(-gamma_t lambda draws/2). The paper proves nothing for
    LC-Tsallis-INF with it, `RealLinExp3` and `FTRLLC` were invented with it; use it to see what exactness is worth.

    Parameters
    ----------
    samples
        Draws per decision; if left out, as many as keep the bias below ``bias``, a number that grows like 1/gamma_t.
    bias
        Largest relative bias of an estimated loss. If both are left out, what the algorithm's theorem asks for, and
        0.01 for LC-Tsallis-INF, which has none.
    """

    samples: int | None = None
    bias: float | None = None

    def __post_init__(self) -> None:
        if self.samples is not None:
            _whole(self, "samples")
        if self.bias is not None:
            _positive(self, "bias")
        if self.bias is not None and self.bias >= 1.0:
            raise ValueError(f"bias must lie between 0 and 1; got {self.bias!r}")


@dataclass(frozen=True, kw_only=True)
class Reservoir:
    """For a `SampledProblem`: Sigma_t averaged over a reservoir of contexts seen so far.

    Faster than `MGR`, which draws anew for every decision. What is lost: the average is over ``size`` contexts, so
    estimates are off by a relative error of the order of sqrt(d/size) that does not average out over rounds, and the
    contexts in it are among those that Theta was learnt from. The bound on the size of an estimated loss is kept.

    Parameters
    ----------
    size
        How many contexts it holds; it begins with those of the problem's sample.

    >>> Reservoir()
    Reservoir(size=1000)
    """

    size: int = 1000

    def __post_init__(self) -> None:
        _whole(self, "size")


Tuning = Paper | Certified | Matched | Adaptive
TUNINGS: dict[str, type[Tuning]] = {
    "paper": Paper,
    "certified": Certified,
    "matched": Matched,
    "adaptive": Adaptive,
}
