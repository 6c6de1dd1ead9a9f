"""The matched tuning of LC-Tsallis-INF, alpha = 1/2, as a learner of its own. Not the paper's; proof in docs/theory.md.

Optimistic FTRL: a ridge regression predicts the losses, and stability is paid for what it did not foresee. 1/eta_t
grows by what makes the penalty of a round a share of what the round before has cost: the matching of Ito, Tsuchiya and
Honda (COLT 2024), solved for the plan to come. Exploration is chosen by what it is worth (`kernels.worth`).
"""

import math
from dataclasses import dataclass

import numpy as np

from bothworlds.algorithms.checks import check_not_negative, check_positive
from bothworlds.algorithms.lc_tsallis.algorithm_1 import Learner
from bothworlds.algorithms.lc_tsallis.matched_text import BELIEFS, TEXT, Options
from bothworlds.kernels.resampling import Resampling
from bothworlds.theory.schedules import Facts, Matching, Schedule

SETTLED = 400.0  # rounds for each dimension: with gaps that matter plans have settled by then


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Learning rates matched to what they cost, exploration by what it is worth. Not the paper's; alpha = 1/2.

    The default: it has a theorem of our own, and the lowest score in docs/scoreboard.md, rare clicks included.

    *Predictions.* A ridge regression m_t foresees the losses, q_t is the FTRL point of Theta + mu_t + m_t, and the
    estimate is m_t + Sigma_t^-1 phi (loss - <phi, m_t>): exactly unbiased. Stability is paid for the residual alone.

    *Leaning.* Estimates of an arm that is hardly played vary much, and those of long ago may not hold any more; the
    regression remembers when the arm was played, and forgets. So plans lean on it: mu_t is on its way from 0 to
    n m_t - Theta, n the number of rounds, as far as what this can cost stays within a share ``leaning`` of what the
    path has cost otherwise, and steps do not become much larger (`leaning`): in every eighth round, and in every one
    as long as mu_t is far behind. That takes a quarter of the regret away where clicks are rare, and lets plans follow
    a world that changes.

    *Rates.* With beta_t = 1/eta_t, z_t the stability of the round, computed after it, and P'_t what is paid for
    exploration, beta grows until the penalty of the next round is a share of what this one has cost, and caution,

        (beta_{t+1} - beta_t) h(q_{t+1}) <= gain_t z_t + caution d s_t/beta_t + price P'_t

    where gain_t = max{gain (h/H)^2, least}, s_t = (h/H)^8 v_t^4 sqrt(min{1, (t + 1)/(400 d)}), h = -psi(q) in the mean
    over contexts (in s_t that of the plan before, if it is less), H that of uniform plans, and v_t the largest variance
    that losses of these plays can have with the means that are predicted next. An adversary keeps plans undecided for
    long, and rates should fall then; noise does not, and rare clicks have little variance. From beta = b on exploration
    can cover every play, and P'_t is 2 gamma_t with a part of what was charged; before, P'_t is 2 gamma_t beta_t/b, and
    a play that was not covered multiplies beta by 1 + x, x = price/(b H) times what it has cost.

    *Exploration.* Any gamma_t is safe as long as it is paid for: plays whose step would break the stability condition
    |step| sqrt q <= c beta may cost much. Before beta = b they pay when they are made. From there on every plan draws
    one of them, and charges what this one would cost with the worst losses, over its chance: what all of them cost in
    the mean. gamma_t is what makes 2 gamma_t plus what they cost smallest, by an estimate from a few plays, at any
    number of contexts and arms. Rare contexts cost by their probability.

    Proved in docs/theory.md, with feedback after every decision, C_t = caution d s_t/beta_t: R_T <= (1 + leaning)
    (H beta_1 + E sum [(1 + gain_t) z_t + C_t + (1 + price) P_t + J_t]), P_t 2 gamma_t and all that uncovered plays
    cost, J_t the penalty of their jumps. It is of the order of sqrt(d sqrt(K) T) always, and logarithmic in T where
    there are gaps. The sum also holds for decisions answered in batches.

    Feedback counts as new when it comes, so its order matters, and where batches end.

    Parameters
    ----------
    gain, least
        Which share of its stability a round adds to the penalty, for undecided plans and at least.
    caution
        What it adds if plans stay undecided for long, in units of d/beta; 0 leaves that to gain.
    price
        Which share of the price of exploration.
    c
        The constant of the condition, below 1/2: larger explores less, and lets estimates jump further.
    forgetting
        How fast the ridge regression forgets, always: in round t an older round s counts as (s/t)^forgetting.
    leaning
        What it may cost that plans lean on the regression, as a share of what they cost otherwise; 0 for plans that
        follow unbiased estimates alone.

    >>> from bothworlds import LCTsallisINF
    >>> LCTsallisINF(tuning=Matched(leaning=0)).tuning.leaning, LCTsallisINF().tuning == Matched()
    (0.0, True)
    """

    gain: float = Matching.gain
    least: float = Matching.least
    caution: float = Matching.caution
    price: float = Matching.price
    c: float = Matching.c
    forgetting: float = 1.0
    leaning: float = Matching.leaning

    def __post_init__(self) -> None:
        for name in ("gain", "least", "price", "c"):
            check_positive(self, name)
        for name in ("caution", "forgetting", "leaning"):
            check_not_negative(self, name)
        if self.c >= 0.5:
            raise ValueError(f"c must lie below 1/2: from there on nothing is proved; got {self.c!r}")

    @property
    def matching(self) -> Matching:
        """What the theorem depends on: predictions may be any. Internal."""
        return Matching(
            gain=self.gain,
            least=self.least,
            caution=self.caution,
            price=self.price,
            c=self.c,
            leaning=self.leaning,
        )

    def step_limit(self, alpha: float) -> float:
        """Return how large a step is that is paid for when it is made. Internal."""
        return self.c

    def schedule(self, facts: Facts) -> Schedule:
        """Refuse: the rates are not known beforehand. Internal."""
        raise ValueError(
            "the matched tuning has no schedule: its rates follow from what is played; tuning='certified' and "
            "tuning='paper' have one"
        )

    def learner(self, facts: Facts, resampling: Resampling) -> Learner:
        """Return text, options and the state at the start. Internal."""
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
            leaning=self.leaning,
            full=full,
            first=first,
            curved=covering.curved,
            linear=covering.linear,
            largest=covering.largest,
            covered=covering.sure_from,
            scale=covering.sure_from * full / self.price,
        )
        begin = {"start": 1.0, "start_rate": 0.5, "inverse_rate": first, "begun_at": first}
        begin |= {"enough": np.eye(facts.dimension), "ridge": np.eye(facts.dimension)}
        return Learner(TEXT, options, begin, BELIEFS)
