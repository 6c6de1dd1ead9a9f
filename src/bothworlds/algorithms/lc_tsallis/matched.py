"""The matched tuning of LC-Tsallis-INF, for alpha = 1/2. Not the paper's; proof in research/default-rule.md.

Optimistic FTRL with a ridge loss predictor: stability is paid only for the prediction error. 1/eta_t grows so that the
penalty of a round is a share of the cost of the round before: the penalty matching of Ito, Tsuchiya and Honda (COLT
2024), solved for the next plan. Exploration falls like 1/t where that is affordable (`exploration_rate`). Plans make a
capped move toward the regression (`regression_drift`). `reference_matched` is the same rule in NumPy.
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds._public_names import internal
from bothworlds.algorithms.lc_tsallis.change_evidence import WINDOWS
from bothworlds.algorithms.lc_tsallis.matched_kernel import BELIEFS, KERNEL, Options
from bothworlds.algorithms.lc_tsallis.paper import LearnerSetup
from bothworlds.algorithms.options import check_not_negative, check_positive
from bothworlds.kernels.geometric_resampling import Resampling
from bothworlds.theory.schedules import Facts, Matching, Schedule

SETTLED = 400.0  # rounds per dimension: by then plans have settled if gaps are relevant


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Penalty-matched learning rates, loss prediction and exploration chosen by its cost. Not the paper's; alpha = 1/2.

    The default: it has a theorem of our own, and the lowest score on the scoreboard, rare clicks included.

    Predictions. A ridge regression m_t predicts the losses, q_t is the FTRL point of Theta + mu_t + m_t, and the
    estimate is m_t + Sigma_t^-1 phi (loss - <phi, m_t>): exactly unbiased. Only the residual costs stability.

    Regression drift. Estimates of a rarely played arm have a large variance, and old ones may be out of date; the
    regression remembers rounds in which the arm was likely, and forgets. So plans drift toward it: mu_t moves from 0 to
    n m_t - Theta, n the number of rounds that it remembers, as long as the path can pay for it (`regression_drift`).

    A world that changes. Two shorter memories predict each loss beside the regression. When the evidence that one of
    them predicts better reaches a limit, which a world without changes reaches once in 10^7 rounds at most if the
    regression is right, the regression restarts with what the shorter memory has, and beta falls (`change_evidence`).

    Rates. Let beta_t = 1/eta_t, z_t the stability of the round, computed after it, and P'_t the price of exploration.
    beta grows until the penalty of the next round is a share of the cost of this one, plus caution:

        (beta_{t+1} - beta_t) h(q_{t+1}) <= gain_t z_t + caution d s_t/beta_t + price P'_t

    where gain_t = max{gain (h/H)^2, least} and s_t = (h/H)^8 v_t^4 sqrt(min{1, (t + 1)/(400 d)}). h = -psi(q), averaged
    over contexts (in s_t that of the previous plan, if smaller), H is its value for uniform plans, and v_t bounds the
    variance of the losses of these plays, given the means predicted next. An adversary keeps plans undecided for long,
    and rates should fall then; noise does not, and rare clicks have little variance.

    Exploration. Plays whose step would break the stability condition |step| sqrt q <= c beta are uncovered and may cost
    much. Before beta = b they are paid for when they are made: such a step multiplies beta by 1 + x, x = price/(b H)
    times its cost, P'_t is 2 gamma_t beta_t/b, and gamma_t = 1/(2t) unless a play could cost too much; then 1/16. From
    beta = b on they are paid for beforehand: P'_t is 2 gamma_t plus the expected cost of all of them under the worst
    losses, and gamma_t = 2/t wherever that costs no more than covering every play, else the rate that covers them.

    Proved in research/default-rule.md, with feedback after every decision, C_t = caution d s_t/beta_t: R_T <= (1 +
    drift_cap) (H beta_1 + E sum [(1 + gain_t) z_t + C_t + (1 + price) P_t + J_t]), where P_t is 2 gamma_t and the cost
    of uncovered plays, J_t the penalty of their jumps. Without a restart it is of order sqrt(d sqrt(K) T), and
    logarithmic in T where there are gaps; with its constants the logarithm is below the adversarial bound from about
    T = 10^11 on. How many restarts an adversary can force is not bounded; the account of the path holds with them.

    Feedback is learned row by row in the order in which it comes, also that of a batch: rates and plan follow each
    row. So its order matters, and where a batch ends does not. What late answers have cost is counted; where it is more
    than chance explains, plans do not drift and beta does not fall (`regression_drift.late_cost`).

    Parameters
    ----------
    gain, least
        Share of its stability that a round adds to the penalty: for undecided plans, and at least.
    caution
        What a round adds while plans stay undecided for long, in units of d/beta; 0 leaves that to gain.
    price
        Share of the price of exploration that a round adds.
    c
        The constant of the condition, below 1/2: larger explores less, and allows larger steps.
    forgetting
        How fast the ridge regression forgets: in round t an older round s counts as (s/t)^forgetting.
    drift_cap
        Cap on the cost of the regression drift, as a share of all other costs; 0 for plans that follow unbiased
        estimates alone.

    >>> from bothworlds import LCTsallisINF
    >>> LCTsallisINF(tuning=Matched(drift_cap=0)).tuning.drift_cap, LCTsallisINF().tuning == Matched()
    (0.0, True)
    """

    gain: float = Matching.gain
    least: float = Matching.least
    caution: float = Matching.caution
    price: float = Matching.price
    c: float = Matching.c
    forgetting: float = 1.0
    drift_cap: float = Matching.drift_cap

    def __post_init__(self) -> None:
        for name in ("gain", "least", "price", "c"):
            check_positive(self, name)
        for name in ("caution", "forgetting", "drift_cap"):
            check_not_negative(self, name)
        if self.c >= 0.5:
            raise ValueError(f"c must be below 1/2, the range of the theorem; got {self.c!r}")

    @property
    @internal
    def matching(self) -> Matching:
        """The hyper-parameters that the theorem depends on; it holds for any predictions."""
        return Matching(
            gain=self.gain,
            least=self.least,
            caution=self.caution,
            price=self.price,
            c=self.c,
            drift_cap=self.drift_cap,
        )

    @internal
    def step_limit(self, alpha: float) -> float:
        """Return c: the largest step that counts as covered."""
        return self.c

    @internal
    def schedule(self, facts: Facts) -> Schedule:
        """Raise ValueError: the rates are not known beforehand."""
        raise ValueError(
            "the matched tuning has no schedule, because its rates depend on the plays; tuning='certified' and "
            "tuning='paper' have one"
        )

    @internal
    def learner(self, facts: Facts, resampling: Resampling) -> LearnerSetup:
        """Return kernel, options, initial state and beliefs."""
        covering = facts.covering(c=self.c)
        first = math.sqrt(facts.dimension) * facts.n_arms**-0.25
        full = 2.0 * (math.sqrt(facts.n_arms) - 1.0)
        options = Options(
            gain=self.gain,
            least=self.least,
            caution=self.caution * facts.dimension,
            settled=SETTLED * facts.dimension,
            price=self.price,
            c=self.c,
            forgetting=self.forgetting,
            drift_cap=self.drift_cap,
            full=full,
            first=first,
            curved=covering.curved,
            linear=covering.linear,
            largest=covering.largest,
            covered=covering.sure_from,
            scale=covering.sure_from * full / self.price,
        )
        unit = np.eye(facts.dimension)
        begin = {
            "start": 1.0,
            "inverse_rate": first,
            "start_inverse_rate": first,
            "ridge": unit,
            "recent_gram": np.stack([unit] * len(WINDOWS)),
            "evidence": 1.0,
        }
        return LearnerSetup(KERNEL, options, begin, BELIEFS)
