"""An algorithm of your own, at full speed: epsilon-greedy in every context, as kernel text.

    python examples/own_algorithm.py

Declare what it remembers, write what it plans and what it learns: it runs compiled, many replications at a time in
`simulate`, on a GPU, and interpreted in the debugger (`start(..., interpreted=True)`), bit for bit the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds import kernels as k

ROUNDS, REPLICATIONS = 20_000, 20


class Options(NamedTuple):
    """Hyper-parameters."""

    epsilon: float


class State(NamedTuple):
    """What is learnt, and the plan: S contexts, K arms."""

    t: Annotated[k.Floats, k.learnt()]  # updates so far, counted from 1
    counts: Annotated[k.Floats, k.learnt("S", "K")]
    losses: Annotated[k.Floats, k.learnt("S", "K")]
    pi: Annotated[k.Floats, k.planned("S", "K")]


@k.kernel
def mean_loss(known: k.Known, state: State, x: int, a: int) -> k.Number:
    """Return the mean loss of an arm in a context; infinite if it is not offered."""
    return state.losses[x, a] / (1.0 + state.counts[x, a]) + known.blocked[x, a]


@k.kernel
def refresh(known: k.Known, options: Options, state: State, work: Any) -> int:
    """Compute the plan: the smallest mean loss, and epsilon spread evenly over the arms offered (known.e)."""
    for x in range(state.pi.shape[0]):
        least = mean_loss(known, state, x, 0)
        for a in range(1, state.pi.shape[1]):
            least = k.smaller(least, mean_loss(known, state, x, a))
        ties = 0.0 * least
        for a in range(state.pi.shape[1]):
            ties = ties + k.where(mean_loss(known, state, x, a) <= least, 1.0, 0.0)
        for a in range(state.pi.shape[1]):
            best = k.where(mean_loss(known, state, x, a) <= least, 1.0 / ties, 0.0)
            state.pi[x, a] = (1.0 - options.epsilon) * best + options.epsilon * known.e[x, a]
    return k.OK


@k.kernel
def learn(known: k.Known, options: Options, state: State, play: k.Play, carried: Any) -> None:
    """Add one observation."""
    k.add_at(state.counts, play.x, play.a, 1.0)
    k.add_at(state.losses, play.x, play.a, play.loss)
    state.t[0] += 1.0


TEXT = k.kernel_text(refresh, k.choose_only, learn, together=True)


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(bw.Algorithm):
    """Play the arm of the smallest mean loss in this context, and with probability epsilon any arm."""

    epsilon: float = 0.1

    def machine(self, problem: bw.Problem, frame: Mapping[str, k.Floats] | None = None) -> k.Machine:
        """Make the algorithm ready for a problem."""
        known = k.known_of(problem, k.even_play(problem.available), np.zeros((*problem.available.shape, 0)))
        return k.Machine(text=TEXT, known=known, options=Options(self.epsilon))


def played() -> list[bw.Results]:
    """Compare it in a calm and in a hostile world."""
    instance = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
    hostile = en.adaptive_adversary(instance.problem, en.opposite(instance.theta))
    algorithms = {"epsilon-greedy": EpsilonGreedy(), "matched": bw.LCTsallisINF(tuning="matched")}
    return [
        bw.simulate(world, algorithms, horizon=ROUNDS, replications=REPLICATIONS, rng=7)
        for world in (en.stochastic(instance), hostile)
    ]


def main() -> None:
    """Check the algorithm, then compare it."""
    for sentence in bw.check_algorithm(EpsilonGreedy()) or ["the algorithm conforms"]:
        print(sentence)
    for results in played():
        print(results.summary())


if __name__ == "__main__":
    main()
