"""MWU-LC: continuous exponential weights over the simplex (Kuroki et al. 2024, Theorem 1)."""

from collections.abc import Mapping
from dataclasses import dataclass

from bothworlds.algorithms.mwu_lc.machine import check_arms, mwu_machine, with_lonely
from bothworlds.algorithms.options import check_positive, description
from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Machine
from bothworlds.policy import Algorithm
from bothworlds.problem import Problem
from bothworlds.theory.armwise import armwise_frame


@dataclass(frozen=True, kw_only=True, repr=False)
class MWULC(Algorithm):
    """Continuous exponential weights for arm-independent features; its theorem does not cover finite contexts.

    The theorem needs contexts with a log-concave density, which a finite set never has. The algorithm runs and every
    estimate is unbiased, but on the problems of this library nothing is proved about its regret. `BoBWMWULC` is the
    published algorithm, of which this is the base.

    A random distribution over arms Q_t is drawn from the density p_t(r|x) ~ exp(-eta_t <r, L(x)>) on the simplex,
    L_a(x) = <x, Theta_a>, and the arm from Q_t. The estimate is Q_t(a) Sbar_a^-1 x loss for the arm played and zero for
    the others, Sbar_a = sum_x g(x) E[r_a^2|x] x x^T: unbiased, since the draw and the factor contribute Q_t(a) each.
    1/eta_t^2 = 800 d K trunc_t^2 + sum_{s<t} 16 trunc_s^2 loss_s^2, trunc_t = 4 log(10 d K t). References: Kuroki,
    Rumi, Tsuchiya, Vitale & Cesa-Bianchi, *Best-of-both-worlds algorithms for linear contextual bandits*, AISTATS 2024,
    Theorem 1; Ito, Hirahara, Soma & Yoshida, *Tight first- and second-order regret bounds for adversarial linear
    bandits*, NeurIPS 2020.

    Exact where the paper samples: E[r_a] and E[r_a^2] are divided differences of the exponential function, computed to
    14 digits at any spread of the losses, and Q_t is drawn by inverting distribution functions. `probabilities` and a
    decision's propensity are E[r_a] given the past, the probability of the arm; Q_t(a) itself is stored with the
    decision, as the last number of its direction.

    With the printed constants play stays nearly uniform for 100,000 rounds and more (computed in research/mwu-lc.md);
    ``speed`` above 1 is a heuristic that learns sooner.

    What we had to correct or choose: the loop redraws Q_t while sum_a Q(a)^2 x^T Sbar_a^-1 x *exceeds* its bound; the
    printed loop does so while it is within. The bound is K max{d, max_a E[r_a^2|x] x^T Sbar_a^-1 x} trunc_t^2; printed
    is d K trunc_t^2, the same unless a context is rare, where it would reject nearly all draws. Given x the density is
    log-concave for any contexts, so a draw is rejected with probability K e (10 d K t)^-4 at most, and E[r_a] and
    E[r_a^2] differ from the moments of accepted draws, which they replace, by no more. Rejections are counted
    (`state.rejected`). Predictors of losses are 0.

    Setting: one feature vector per context, one parameter per arm, as in `RealLinExp3`, including contexts that do not
    offer all arms; up to 32 arms in a context. One round costs O(S K n) for the moments, n the number of terms of a
    series, about the spread of eta_t L plus 20 and at most 200, O(K (S d^2 + d^3)) for the matrices, and about 10 K^2 n
    for a draw.

    Parameters
    ----------
    speed
        Factor of eta_t; 1 is the paper's.

    >>> problem = Problem.from_arm_independent([[1.0, 0.0], [1.0, 1.0]], probabilities=[0.5, 0.5], arms=3)
    >>> MWULC().start(problem, rng=1).probabilities(0).round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    speed: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self, "speed")

    def machine(self, problem: Problem, frame: Mapping[str, Floats] | None = None) -> Machine:
        """Return kernel, options and initial state for a problem; ``frame`` holds the arrays of a saved policy."""
        check_arms(problem)
        arrays = with_lonely(problem, armwise_frame(problem)) if frame is None else frame
        return mwu_machine(problem, arrays, speed=self.speed, reduction=None)

    def __repr__(self) -> str:
        return description(self)
