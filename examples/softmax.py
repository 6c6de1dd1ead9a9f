"""A linear algorithm of your own at full speed: softmax (Boltzmann) exploration on an online ridge regression.

    python examples/softmax.py
    bothworlds check examples/softmax.py:Softmax

It runs compiled, many replications at a time in `simulate`, on a GPU, and interpreted in a debugger.
"""

import math
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

    scale: float  # gamma_t = scale sqrt(t)


class State(NamedTuple):
    """The regression and the plan: S contexts, K arms, d features."""

    t: Annotated[k.Floats, k.learnt()]  # the number of updates, plus one
    gram: Annotated[k.Floats, k.learnt("d", "d")]  # ridge I + sum phi phi^T
    moment: Annotated[k.Floats, k.learnt("d")]  # sum phi loss
    factor: Annotated[k.Floats, k.planned("d", "d")]
    theta: Annotated[k.Floats, k.planned("d")]
    pi: Annotated[k.Floats, k.planned("S", "K")]


class Work(NamedTuple):
    """Scratch space: the predicted losses of the arms in one context."""

    losses: Annotated[k.Floats, k.scratch("K", packed=True)]


@k.kernel
def softmax(losses: k.Floats, gamma: k.Number, pi: k.Floats) -> None:
    """Write p_a = exp(-gamma f_a)/sum_b exp(-gamma f_b); the smallest loss is subtracted, so nothing overflows."""
    K = losses.shape[0]
    best = losses[0]
    for a in range(1, K):
        best = k.smaller(best, losses[a])
    total = 0.0 * best
    for a in range(K):
        pi[a] = k.exponential(0.0 - gamma * (losses[a] - best))
        total = total + pi[a]
    for a in range(K):
        pi[a] = pi[a] / total


@k.kernel
def refresh(known: k.Known, options: Options, state: State, work: Work) -> int:
    """Compute the plan: estimate theta, predict the losses of every context, weight the arms by their predictions."""
    status = k.ridge_estimate(state.gram, state.moment, state.factor, state.theta)
    gamma = options.scale * k.root(state.t[0])
    for x in range(state.pi.shape[0]):
        for a in range(state.pi.shape[1]):
            work.losses[a] = k.product(state.theta, known.z[x, a]) + known.blocked[x, a]
        softmax(work.losses, gamma, state.pi[x])
    return status


@k.kernel
def learn(known: k.Known, options: Options, state: State, play: k.Play, carried: Any) -> None:
    """Add one observation to the regression."""
    k.add_to_ridge(known, play, state.gram, state.moment)
    state.t[0] += 1.0


KERNEL = k.build_kernel(refresh, k.choose_only, learn, together=True)


@dataclass(frozen=True, kw_only=True)
class Softmax(bw.Algorithm):
    """Play arm a with a probability proportional to exp(-gamma_t f_a), where f_a is its predicted loss."""

    scale: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if not (0.0 < self.scale < math.inf and 0.0 < self.ridge < math.inf):
            raise ValueError(f"scale and ridge must be positive and finite; got {self.scale} and {self.ridge}")

    def machine(self, problem: bw.Problem, frame: Mapping[str, k.Floats] | None = None) -> k.Machine:
        """Make the algorithm ready for a problem."""
        features = np.where(problem.available[:, :, None], problem.features, 0.0)
        return k.Machine(
            kernel=KERNEL,
            known=k.known_of(problem, k.even_play(problem.available), features),
            options=Options(self.scale),
            begin={"gram": self.ridge * np.eye(features.shape[2])},
            beliefs=k.Beliefs(gram="gram", moment="moment", linear=False),
        )


def compared() -> dict[str, bw.Results]:
    """Compare it in a stochastic world and with an adversary that sees its probabilities."""
    instance = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
    worlds = {
        "stochastic": en.stochastic(instance),
        "adaptive adversary": en.adaptive_adversary(instance.problem, en.opposite(instance.theta)),
    }
    algorithms = {
        "softmax": Softmax(),
        "SquareCB": bw.SquareCB(),
        "LinUCB": bw.LinUCB(),
        "LC-Tsallis-INF": bw.LCTsallisINF(),
    }
    return {
        name: bw.simulate(world, algorithms, horizon=ROUNDS, replications=REPLICATIONS, rng=7)
        for name, world in worlds.items()
    }


def main() -> None:
    """Check the algorithm, then compare it."""
    for finding in bw.check_algorithm(Softmax()) or ["the algorithm conforms"]:
        print(finding)
    for name, results in compared().items():
        print(f"\n{name}\n{results.summary()}")


if __name__ == "__main__":
    main()
