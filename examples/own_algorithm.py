"""An algorithm of your own, at full speed: epsilon-greedy in every context, as kernel text.

    python examples/own_algorithm.py

Seven small functions on numbers and small arrays, written once: they run compiled in `simulate`, and interpreted in the
debugger (`start(..., interpreted=True)`), bit for bit the same.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.entries import KernelText, World
from bothworlds.kernels.arithmetic import matrix_of, row_of
from bothworlds.kernels.plan import choose_only, plain_numbers
from bothworlds.kernels.random import Seed
from bothworlds.kernels.status import OK
from bothworlds.policy import Machine
from bothworlds.theory.frame import world_of

ROUNDS, REPLICATIONS = 20_000, 20


class State(NamedTuple):
    """Updates so far; counts and sums of losses, and the plan, per context and arm."""

    t: Floats
    sigma: Floats  # there is no covariance; one number under the common name
    counts: Floats
    losses: Floats
    pi: Floats


def sizes(B: int, K: int, d: int) -> tuple[int, int]:  # noqa: ARG001
    """Return how many numbers the memory takes: of the learner, and with an entry per context."""
    return 2, 3 * B * K


@kernel
def state_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> State:  # noqa: ARG001
    """Name the parts of the memory."""
    return State(
        t=row_of(memory, 0, 1),
        sigma=matrix_of(memory, 1, 1, 1),
        counts=matrix_of(cells, 0, B, K),
        losses=matrix_of(cells, B * K, B, K),
        pi=matrix_of(cells, 2 * B * K, B, K),
    )


@kernel
def work_of(memory: Floats, cells: Floats, B: int, K: int, d: int) -> Floats:  # noqa: ARG001
    """Return the scratch space: nothing is needed."""
    return memory


@kernel
def refresh(world: World, numbers: Floats, state: State, work: Floats) -> int:  # noqa: ARG001
    """Compute the plan: the smallest mean loss, and epsilon spread evenly over the arms offered (world.e)."""
    epsilon = numbers[0]
    for x in range(state.pi.shape[0]):
        best, least = 0, 1e300
        for a in range(state.pi.shape[1]):
            mean = state.losses[x, a] / (1.0 + state.counts[x, a]) + world.blocked[x, a]
            if mean < least:
                best, least = a, mean
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = epsilon * world.e[x, a]
        state.pi[x, best] += 1.0 - epsilon
    return OK


@kernel
def learn(
    world: World,  # noqa: ARG001
    numbers: Floats,  # noqa: ARG001
    state: State,
    x: int,
    a: int,
    loss: float,
    direction: Floats,  # noqa: ARG001
    baseline: Floats,  # noqa: ARG001
) -> None:
    """Add one observation."""
    state.counts[x, a] += 1.0
    state.losses[x, a] += loss
    state.t[0] += 1.0


TEXT = KernelText(sizes, plain_numbers, state_of, work_of, refresh, choose_only, learn)


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy:
    """Play the arm of the smallest mean loss in this context, and with probability epsilon any arm."""

    epsilon: float = 0.1

    def machine(self, problem: bw.Problem, frame: dict[str, Floats] | None = None) -> Machine:  # noqa: ARG002
        """Make the algorithm ready for a problem."""
        evenly = problem.available / problem.available.sum(axis=1, keepdims=True)

        def begin(state: Any) -> None:
            state.t[...] = 1.0

        return Machine(
            text=TEXT,
            world=world_of(problem, evenly, np.zeros((*evenly.shape, 0))),
            numbers=np.array([self.epsilon]),
            begin=begin,
            learnt=("t", "counts", "losses"),
            frame={},
            has_baseline=False,
        )

    def start(self, problem: bw.Problem, *, rng: Seed = None, interpreted: bool = False) -> bw.Policy:
        """Begin on a problem."""
        return bw.Policy.begin(self, problem, self.machine(problem), rng=rng, interpreted=interpreted)


def main() -> None:
    """Check the algorithm, then compare it in a calm and in a hostile world."""
    for sentence in bw.check_algorithm(EpsilonGreedy()) or ["the algorithm conforms"]:
        print(sentence)
    instance = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
    hostile = en.adaptive_adversary(instance.problem, en.opposite(instance.theta))
    algorithms = {"epsilon-greedy": EpsilonGreedy(), "adaptive": bw.LCTsallisINF(tuning="adaptive")}
    for world in (en.stochastic(instance), hostile):
        results = bw.simulate(world, algorithms, horizon=ROUNDS, replications=REPLICATIONS, rng=7)
        print(results.summary())


if __name__ == "__main__":
    main()
