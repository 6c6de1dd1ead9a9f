"""When older estimates give way: evidence that the world has changed, and how much of them fades. Kernel text.

Two predictions of each loss compete: m_t, a regression that forgets, and the mean of all m_s so far, weighted as the
estimates are. As long as the world stays what it was the second is the better one, because it is the less noisy. Where
the first one is, in the sum of log-likelihoods, the world has changed, and what was learnt before fades.

What may fade is limited, whatever is seen: docs/theory.md says what that leaves of the theorem.
"""

from typing import Any

from bothworlds.kernels.arithmetic import Number, feature, larger, logarithm, root, smaller
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Known, Play
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.rates import ALLOWANCE, MOST_FADING

CLEAR = 4.0  # nats: evidence from which on estimates fade, in full from twice as much
MOST_EVIDENCE = 12.0
SUREST = 0.99  # a mean that no prediction goes beyond: a loss that was thought impossible is no proof


@kernel
def evidence(loss: Number, quick: Number, slow: Number) -> Number:
    """Return the log-likelihood of a loss at the mean ``quick``, less that at ``slow``: in nats, for losses of +-1.

    It is linear in the loss, so that for others in [-1, 1] it has the same mean.
    """
    quick, slow = larger(smaller(quick, SUREST), -SUREST), larger(smaller(slow, SUREST), -SUREST)
    bad = logarithm((1.0 + quick) / (1.0 + slow))
    good = logarithm((1.0 - quick) / (1.0 - slow))
    return 0.5 * ((1.0 + loss) * bad + (1.0 - loss) * good)


@kernel
def weigh_evidence(known: Known, state: Any, play: Play, baseline: Floats) -> None:
    """Add what a loss says for the prediction that forgets; evidence below 0 is forgotten, and at most so much kept."""
    quick, slow = 0.0 * play.loss, 0.0 * play.loss
    for i in range(state.theta.shape[0]):
        z = feature(known.z, play.x, play.a, i)
        quick = quick + baseline[i] * z
        slow = slow + state.predicted[i] * z
    slow = slow / larger(state.counted[0], 1.0)
    total = state.evidence[0] + evidence(play.loss, quick, slow)
    state.evidence[0] = smaller(larger(total, 0.0), MOST_EVIDENCE)


@kernel
def fading(options: Any, state: Any) -> Number:
    """Return chi_t: estimates and beta are divided by 1 + chi_t.

    recency/t if evidence is clear, as long as the sum of chi_s beta_s is at most ALLOWANCE beta_1 sqrt(t), and beta
    does not become less than beta_1.
    """
    beta = (1.0 + state.kept[0]) * state.inverse_rate[0]
    clear = larger(smaller(state.evidence[0] / CLEAR - 1.0, 1.0), 0.0)
    room = (ALLOWANCE * options.first * root(state.t[0]) - state.spent[0]) / beta
    most = smaller(smaller(MOST_FADING, room), beta / options.first - 1.0)
    chi = larger(smaller(options.recency * clear / state.t[0], most), 0.0)
    state.spent[0] += chi * beta
    return chi
