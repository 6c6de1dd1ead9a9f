"""Tsallis-INF in every context on its own (Zimmert and Seldin, AISTATS 2019 and JMLR 2021)."""

from dataclasses import dataclass
from typing import Literal

from bothworlds.algorithms.per_context import TSALLIS, Numbers, per_context_machine
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.random import Seed
from bothworlds.policy import Machine, Policy
from bothworlds.problem import Problem

# eta_n sqrt(n), and the cutoff of the baseline in units of eta^2; in the normalisation pi = (eta (L - y))^-2.
ESTIMATORS = {"iw": (1.0, 0.0), "rv": (2.0, 4.0)}


@dataclass(frozen=True, kw_only=True)
class PerContextTsallisINF:
    """One Tsallis-INF per context, each with its own clock n_x: the baseline that uses contexts but no features.

    With losses mapped to [0, 1], context x plays the FTRL point of its estimated losses at rate eta = 1/sqrt(n_x)
    (importance weighting) or 2/sqrt(n_x) (reduced variance: b_a = 1/2 for arms with pi_a >= 4 eta^2, estimate
    b_a + 1{A = a} (loss - b_a)/pi_a). Nothing is explored beyond that. One round costs O(K), however many contexts.

    Proved, in units of losses in [0, 1], for each context with T_x visits and immediate feedback: adversarial
    4 sqrt(K T_x) + 1 (iw) and 2 sqrt(K T_x) + O(K log T_x) (rv), stochastic O(sum_a log(T_x)/Delta_a), corrupted in
    between. Summed over contexts that is O(sqrt(S K T)) and O(S K log(T)/Delta): it grows with S, where an algorithm
    that shares features between contexts pays for d. The regret of losses in [-1, 1] is twice that.

    Parameters
    ----------
    estimator
        "iw" (importance weighting) or "rv" (reduced variance).

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    >>> PerContextTsallisINF().start(problem, rng=1).probabilities(0).round(12).tolist()
    [0.5, 0.5]
    """

    estimator: Literal["iw", "rv"] = "rv"

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise ValueError(f"estimator must be 'iw' or 'rv'; got {self.estimator!r}")

    def start(self, problem: Problem, *, rng: Seed = None, interpreted: bool = False) -> Policy:
        """Begin on a problem; the same seed gives the same decisions."""
        return Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)

    def machine(self, problem: Problem, frame: dict[str, Floats] | None = None) -> Machine:  # noqa: ARG002
        """Make the algorithm ready for a problem; it needs no frame."""
        gain, cutoff = ESTIMATORS[self.estimator]
        return per_context_machine(problem, Numbers(kind=TSALLIS, gain=gain, cutoff=cutoff))
