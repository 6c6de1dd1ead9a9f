"""Small worlds for the tests: random problems, and a loop that plays them."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.kernels import linalg
from bothworlds.kernels.contract import Draw, Machine, in_blocks, leaf_values
from bothworlds.kernels.random import ARM, two_uniforms
from bothworlds.simulation.replication import Replications
from bothworlds.simulation.setting import Setting

TUNINGS = ("paper", "certified", "matched")


def random_problem(
    seed: int = 0, S: int = 4, K: int = 3, d: int = 3, *, rarity: float | None = None, **options: object
) -> bw.Problem:
    """Unit features, random probabilities; with ``rarity`` one context has probability 1/rarity."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(S, K, d))
    phi /= np.linalg.norm(phi, axis=2, keepdims=True)
    g = rng.dirichlet(np.full(S, 5.0))
    if rarity is not None:
        g = np.concatenate([[1.0 / rarity], (1.0 - 1.0 / rarity) * g[1:] / g[1:].sum()])
    return bw.Problem(features=phi, probabilities=g / g.sum(), **options)  # type: ignore[arg-type]


@cache
def masked() -> bw.Problem:
    """One arm, two arms and all arms offered: eight maps of contexts to arms."""
    available = np.array([[1, 0, 0, 0], [0, 1, 0, 1], [1, 1, 1, 1]], dtype=bool)
    return random_problem(7, S=3, K=4, d=3, available=available)


def parameters(problem: bw.Problem, seed: int = 1) -> Floats:
    """A theta whose losses fill [-0.8, 0.8]."""
    theta = np.random.default_rng(seed).normal(size=problem.features.shape[2])
    return np.asarray(theta * 0.8 / np.abs(problem.features @ theta).max())


def play(
    policy: bw.Policy,
    rounds: int,
    *,
    seed: int = 2,
    theta: Floats | None = None,
    noise: bool = True,
    each: Callable[[bw.Policy], None] | None = None,
) -> list[int]:
    """Play rounds with immediate feedback, +-1 losses or their means; return the arms."""
    rng = np.random.default_rng(seed)
    problem = policy.problem
    theta = parameters(problem) if theta is None else theta
    arms = []
    for _ in range(rounds):
        if each is not None:
            each(policy)
        decision = policy.act(int(rng.choice(problem.n_contexts, p=problem.probabilities)))
        mean = float(problem.features[decision.context, decision.arm] @ theta)
        sign = 1.0 if rng.random() < (1.0 + mean) / 2.0 else -1.0
        policy.update(decision, loss=sign if noise else mean)
        arms.append(decision.arm)
    return arms


def bits(policy: bw.Policy) -> bytes:
    """Everything a policy has learnt and plans."""
    return b"".join(part.tobytes() for part in leaf_values(policy.state))


class Records(NamedTuple):
    """State and scratch space of a memory at its start, and the sizes."""

    state: Any
    work: Any
    sizes: tuple[int, ...]


def records(machine: Machine) -> Records:
    """A memory of its own for functions of kernel text."""
    memory, sizes = machine.memory(), tuple(machine.sizes)
    return Records(machine.kernel.state_of(*memory, sizes), machine.kernel.work_of(*memory, sizes), sizes)


def carried_by(policy: bw.Policy, made: bw.Decision) -> Any:
    """What a decision carries, by name."""
    baseline = np.zeros(0) if made.baseline is None else made.baseline
    return policy._machine.kernel.carried_of(made.direction, baseline, tuple(policy._machine.sizes))


def chosen(machine: Machine, state: Any, work: Any, x: int, time: int) -> tuple[int, Any]:
    """The arm that `choose` draws in a context at a time, and what the decision carries."""
    carried = machine.kernel.carried_of(*(np.empty(count) for count in machine.carried), tuple(machine.sizes))
    draw = Draw(two_uniforms(5, time, ARM, 0), 5, time)
    return machine.kernel.choose(machine.known, machine.options, state, work, x, draw, carried), carried


def epoch_constants(policy: bw.Policy) -> list[float]:
    """What the candidate of a reduction fixes: D, 1/lambda, log N, c1 and c2."""
    constants = policy.state.constants
    return [
        float(part[0])
        for part in (constants.dimension, constants.leverage, constants.log_size, constants.c1, constants.c2)
    ]


def living(policy: bw.Policy) -> Any:
    """The state of a policy as it lies in memory, to write into: contexts in blocks of eight where the text is wide."""
    return policy._learner_state.state


def set_options(policy: bw.Policy, **values: float) -> None:
    """Change hyper-parameters of a policy that has begun, by their names."""
    for name, value in values.items():
        start, _ = policy._machine.kernel.outside.leaves[name].place(policy._machine.block_sizes)
        policy._learner_state.body.common[start] = value
    policy._learner_state.refresh()


def set_plan(policy: bw.Policy, pi: Floats) -> None:
    """Let a policy of eight contexts at a time play a table of probabilities until its next update."""
    living(policy).pi[...] = in_blocks(pi)


def coordinates(policy: bw.Policy) -> Floats:
    """The policy's features z(a, x), shape (S, K, d)."""
    return policy._machine.known.z


def lower_triangle(factor: Floats) -> Floats:
    """L, of which `matrix.cholesky` keeps the transpose with an inverted diagonal."""
    return np.triu(factor, 1).T + np.diag(1.0 / np.diag(factor))


def directions(policy: bw.Policy) -> Floats:
    """Sigma_t^-1 z for every (x, a), through the policy's own factor."""
    z = coordinates(policy)
    out = np.empty_like(z)
    for x, a in np.ndindex(z.shape[:2]):
        linalg.apply_inverse(policy.state.inverse, z[x, a], np.empty(z.shape[2]), out[x, a])
    return out


def state_after(world: bw.environments.Environment, algorithm: Any, rounds: int) -> tuple[Any, Floats]:
    """The memory itself that a simulated run ends with, by its names, and how often each (x, a) was played."""
    setting = Setting(environment=world, horizon=rounds, checkpoints=np.array([rounds]), seed=1)
    machine = algorithm.machine(world.problem)
    run = Replications(machine, setting, [0], trace=True)
    run.advance(rounds)
    counts = np.zeros(world.problem.available.shape)
    np.add.at(counts, tuple(run.outcomes()[0].trace.T), 1.0)
    return machine.kernel.state_of(*run._memory, tuple(machine.sizes)), counts
