"""What the matched tuning adds to the kernel text of LC-Tsallis-INF, alpha = 1/2. Not the paper's.

1/eta_t grows by what makes the penalty of a round equal to its stability and twice its exploration: the matching of
Ito, Tsuchiya and Honda (COLT 2024), with the price of exploration added. Proof: docs/theory.md.
"""

from bothworlds.algorithms.lc_tsallis_memory import Numbers, State
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel
from bothworlds.kernels.entries import World
from bothworlds.kernels.matrix import product
from bothworlds.kernels.numbers import Number, every, larger, over_contexts, root, smaller

SURE = 1e-13  # entropy below this is rounding, and counts as this
TINY = 1e-300


@kernel
def spread(world: World, q: Floats, step: Floats, limit: Number) -> Number:
    """Return V = sum_x g min_s sum_a q^(3/2) (l_hat - s)^2 over |s| <= limit/sqrt(max q), where limit = c/eta.

    Stability is at most eta V/(1 - 2c): on the simplex l_hat may be shifted, and such an s keeps
    eta |l_hat - s| sqrt q <= 2c.
    """
    total = 0.0
    for x in range(q.shape[0]):
        weights, first, second, highest = 0.0, 0.0, 0.0, q[x, 0]
        for a in range(q.shape[1]):
            estimate = product(step, world.z[x, a])
            weight = q[x, a] * root(q[x, a])
            weights = weights + weight
            first = first + weight * estimate
            second = second + weight * estimate * estimate
            highest = larger(highest, q[x, a])
        most = limit / root(larger(highest, TINY))
        s = larger(smaller(first / larger(weights, TINY), most), 0.0 - most)
        total = total + world.g[x] * (second - 2.0 * s * first + s * s * weights)
    return larger(over_contexts(total), 0.0)


@kernel
def add_step(state: State, loss: Number, direction: Floats) -> None:
    """Remember an estimate until the next plan: there its spread is computed for all replications at once."""
    for i in range(state.step.shape[0]):
        state.step[i] += loss * direction[i]
    state.fresh[0] += 1.0


@kernel
def grow(world: World, numbers: Numbers, state: State) -> None:
    """Let 1/eta grow by (eta_t V_t + 2 gamma_t)/h_t, h_t = -psi(q_t) in the mean; it doubles at most.

    ``state`` still has the plan that the estimates were made with; for several, theirs is the sum, and gamma_t counts
    for each.
    """
    if every(state.fresh[0] <= 0.0):
        return
    eta, gamma, h = state.rates[0], state.rates[1], state.entropy[0]
    price = eta * spread(world, state.q, state.step, numbers.constant / eta) + 2.0 * gamma * state.fresh[0]
    state.inverse_rate[0] = state.inverse_rate[0] + smaller(price / larger(h, SURE), 1.0 / eta)
    state.fresh[0] = 0.0
    for i in range(state.step.shape[0]):
        state.step[i] = 0.0
