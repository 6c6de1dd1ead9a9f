"""Synthetic logs with known mean rewards, written by any algorithm, against which estimates can be compared."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bothworlds.algorithms.registry import require_algorithm
from bothworlds.arrays import Floats, Ints
from bothworlds.datasets.rounds import Rounds
from bothworlds.environments import Environment
from bothworlds.environments.dynamics import NatureKernel
from bothworlds.errors import NumericalError
from bothworlds.kernels.contract import Kernel, flat_known
from bothworlds.kernels.jit.compile import compiled, readable_errors
from bothworlds.kernels.random import ARM, CONTEXT, Seed, draw, key_from, stream_key, two_uniforms
from bothworlds.kernels.status import OK
from bothworlds.logs import Row
from bothworlds.policy import Policy
from bothworlds.problem import Problem
from bothworlds.problem.checks import are_distributions, whole
from bothworlds.problem.rewards import total_reward
from bothworlds.simulation.engine import compilable
from bothworlds.simulation.replication import empty_queue, empty_record
from bothworlds.simulation.round_loop import (
    TOTALS,
    LearnerArrays,
    LossTerms,
    Queue,
    RoundState,
    Slice,
    build_receive,
    build_round,
    build_steps,
    expected_losses,
)
from bothworlds.simulation.round_loop_python import Waiting, check_arm, checked_policy, play_round
from bothworlds.simulation.setting import Setting, check_feedback, make_setting


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """A synthetic log as arrays, with the true mean rewards; made by `rehearse`. T rounds, S contexts, K arms.

    Attributes
    ----------
    problem, policy
        The learner's problem, and the policy name in the rows of the log.
    contexts, arms, versions
        Context, arm chosen, and number of rewards learned from before, each (T,).
    probabilities
        Probabilities of all arms in the round's context, (T, K); zero where an arm is not offered.
    rewards
        Observed rewards in the user's units, (T,).
    means
        True mean reward of every arm in the round's context, (T, K).
    average
        True mean reward of every arm in every context, averaged over rounds, (S, K); NaN for recorded data.
    """

    problem: Problem
    policy: str
    contexts: Ints
    arms: Ints
    versions: Ints
    probabilities: Floats
    rewards: Floats
    means: Floats
    average: Floats

    def __len__(self) -> int:
        return len(self.contexts)

    def value(self, policy: Any = None, *, seen: bool = True) -> float:
        """Return the true mean reward per round of a fixed policy (S, K), or by default of the logging policy.

        With ``seen`` the contexts are those of the log; without, the mean is over the context distribution as well. If
        the environment reacts to the learner, its parameters are those of this log.
        """
        if policy is None:
            return float((self.probabilities * self.means).sum(axis=1).mean())
        table = np.asarray(policy, dtype=np.float64)
        offered = self.problem.available
        if table.shape != offered.shape:
            raise ValueError(f"a policy is a table of shape {offered.shape}; got {table.shape}")
        if not are_distributions(table) or table[~offered].any():
            raise ValueError("each row of a policy is a distribution over the arms offered in that context")
        if seen:
            return float((table[self.contexts] * self.means).sum(axis=1).mean())
        return float(self.problem.probabilities @ np.where(table > 0.0, table * self.average, 0.0).sum(axis=1))

    def rows(self) -> Iterator[Row]:
        """Yield the log as rows, one second per round, for log files and evaluation.

        The rows cannot update a policy, because they carry no decisions.
        """
        names, problem = self.problem.arms, self.problem
        offered = [np.flatnonzero(line) for line in problem.available]
        offered_names = [tuple(names[a] for a in arms) for arms in offered]
        for t in range(len(self)):
            x, arm = int(self.contexts[t]), int(self.arms[t])
            pi = self.probabilities[t]
            yield Row(
                id=f"round {t + 1}",
                time=float(t + 1),
                context=problem.contexts[x],
                offered=offered_names[x],
                probabilities=tuple(pi[offered[x]].tolist()),
                arm=names[arm],
                propensity=float(pi[arm]),
                policy=self.policy,
                version=int(self.versions[t]),
                reward=float(self.rewards[t]),
                reward_time=float(t + 1),
            )


class LogArrays(NamedTuple):
    """Arrays of T rounds: ``choices`` (T, 3) has context, arm and version; the next three are (T,), (T, K) and (T, J).

    ``totals`` and ``trace`` are required by the round loop, and unused.
    """

    choices: Ints
    losses: Floats
    probabilities: Floats
    coefficients: Floats
    totals: Floats
    trace: Ints


def rehearse(
    world: Environment | Rounds,
    algorithm: Any,
    *,
    rounds: int | None = None,
    rng: Seed = 0,
    delay: int = 0,
    batch: int = 1,
) -> Rehearsal:
    """Let an algorithm write a synthetic log with known mean rewards.

    The rounds are those of replication 0 of ``simulate`` with the same seed.

    Parameters
    ----------
    world
        An environment, or the rounds of a data set (`Rounds`).
    algorithm
        An algorithm with a method ``machine`` runs compiled; anything else with ``start(problem, rng=...)`` runs in
        Python, slowly. On `Rounds` every algorithm runs in Python, 10,000 to 20,000 rounds per second.
    rounds
        Number of rounds; by default all rounds of a data set. Required for an environment.
    rng
        Seed.
    delay, batch
        Feedback arrives this many rounds late, and is learned from in batches of at least this size.

    >>> import bothworlds as bw
    >>> world = bw.environments.clicks()
    >>> log = rehearse(world, bw.FixedPolicy(), rounds=1000, rng=7)
    >>> row = next(log.rows())
    >>> row.arm in row.offered, row.propensity == row.probabilities[row.offered.index(row.arm)]
    (True, True)
    >>> bool(abs(log.rewards.mean() - log.value()) < 0.01)  # observed and true mean
    True
    """
    require_algorithm(algorithm, repr(algorithm))
    if isinstance(world, Rounds):
        return _play_recorded_rounds(world, algorithm, rounds, rng, delay, batch)
    if rounds is None:
        raise ValueError("rounds is required: an environment has no last round")
    setting = make_setting(world, horizon=rounds, rng=rng, checkpoints=[], delay=delay, batch=batch)
    log = LogArrays(
        np.zeros((setting.horizon, 3), dtype=np.int64),
        np.zeros(setting.horizon),
        np.zeros((setting.horizon, world.problem.n_arms)),
        np.zeros((setting.horizon, len(world.thetas))),
        totals=np.zeros(TOTALS),
        trace=np.zeros((0, 2), dtype=np.int64),
    )
    play = _play_compiled if compilable(algorithm, world) else _play_in_python
    play(algorithm, setting, log)
    return _make_rehearsal(world, algorithm, log)


def _make_rehearsal(world: Environment, algorithm: Any, log: LogArrays) -> Rehearsal:
    """Make the rehearsal from the arrays of its log."""
    problem, contexts = world.problem, log.choices[:, 0]
    means = np.einsum("tj,jta->ta", log.coefficients, world.tables[:, contexts])
    average = np.einsum("j,jxa->xa", log.coefficients.mean(axis=0), world.tables)
    return Rehearsal(
        problem=problem,
        policy=_policy_name(algorithm),
        contexts=contexts,
        arms=log.choices[:, 1],
        versions=log.choices[:, 2],
        probabilities=log.probabilities,
        rewards=total_reward(log.losses, 1, problem.reward_range),
        means=total_reward(means, 1, problem.reward_range),
        average=total_reward(average, 1, problem.reward_range),
    )


def _policy_name(algorithm: Any) -> str:
    return f"rehearsal of {type(algorithm).__name__}"


def _play_compiled(algorithm: Any, setting: Setting, log: LogArrays) -> None:
    """Play all rounds as machine code and write the log."""
    environment, key = setting.environment, stream_key(setting.seed, 0)
    machine = algorithm.machine(environment.problem)
    memory = machine.memory(key=key)
    learner = LearnerArrays(flat_known(machine.known), machine.flat_options, *memory, *memory)
    nature, queue = environment.begin(), empty_queue(setting.delay + setting.batch, *machine.carried)
    part = Slice(1, setting.horizon, 0, setting.delay, setting.batch, True)
    with readable_errors(packs=False):
        loop = compiled_log_loop(machine.kernel, environment.kernel)
        failed = loop(learner, tuple(machine.sizes), nature, queue, log, key, part)
    if failed:
        raise NumericalError(f"arithmetic failed in round {failed} (seed {setting.seed}); replay it to see why")
    environment.require_kernel_in_range(nature.state, setting.horizon)


def interpreted_log_loop(functions: Kernel, nature_kernel: NatureKernel) -> Callable[..., int]:
    """Build the loop that writes a log, as plain Python; it returns 0, or the round in which arithmetic failed."""
    known_of, options_of, state_of, work_of = (
        functions.known_of,
        functions.options_of,
        functions.state_of,
        functions.work_of,
    )
    steps, refresh, row_by_row = build_steps(functions, nature_kernel), functions.refresh, functions.row_by_row
    play, receive = build_round(steps), build_receive(steps)

    def run(arrays: LearnerArrays, sizes: Any, nature: Any, queue: Queue, log: LogArrays, key: int, part: Slice) -> int:
        known, options = known_of(arrays.known, sizes), options_of(arrays.options, sizes)
        state = state_of(arrays.core, arrays.rows, sizes)
        work = work_of(arrays.scratch_core, arrays.scratch_rows, sizes)
        loss_terms = LossTerms(nature.c, nature.expected_loss, nature.sums, nature.best)
        round_state = RoundState(nature, loss_terms, queue, log.totals, log.trace)
        learner, feedback, version = (known, options, state, work, sizes), (part.delay, part.batch), 0
        for t in range(part.first - part.fresh, part.last + 1):
            is_round, observations = t >= part.first, 1
            if is_round:
                expected_losses(nature.tables, known.g, state.pi, nature.expected_loss)
                (u, v), (w, z) = two_uniforms(key, t, CONTEXT, 0), two_uniforms(key, t, ARM, 0)
                x, slot = draw(known.g, u), queue.ends[0]
                for a in range(state.pi.shape[1]):
                    log.probabilities[t - 1, a] = state.pi[x, a]
                observations = play(learner, round_state, (key, (u, v, w, z)), t, feedback)
                log.choices[t - 1, 0] = x
                log.choices[t - 1, 1] = queue.arms[slot]
                log.choices[t - 1, 2] = version
                log.losses[t - 1] = queue.losses[slot]
                for j in range(nature.c.shape[0]):
                    log.coefficients[t - 1, j] = nature.c[j]
                version += observations
            for number in range(observations):
                if is_round:
                    receive(learner, queue)
                if (row_by_row or number == observations - 1) and refresh(known, options, state, work) != OK:
                    return max(t, part.first)
        return 0

    return run


@lru_cache(maxsize=64)
def compiled_log_loop(functions: Kernel, nature_kernel: NatureKernel) -> Callable[..., int]:
    """Compile the loop that writes a log; once per process and algorithm."""
    return compiled(interpreted_log_loop(functions, nature_kernel), "run")


def _play_in_python(algorithm: Any, setting: Setting, log: LogArrays) -> None:
    """Play all rounds in plain Python and write the log."""
    environment, key = setting.environment, stream_key(setting.seed, 0)
    g = environment.problem.probabilities
    learner, nature = algorithm.start(environment.problem, rng=key), environment.begin()
    record = empty_record(setting, len(nature.c), trace=False)
    waiting = Waiting(learner, setting.delay, setting.batch)
    for t in range(1, setting.horizon + 1):
        pi = checked_policy(learner, environment.problem, t)
        x = draw(g, two_uniforms(key, t, CONTEXT, 0)[0])
        loss, decision = play_round(environment, nature, record, pi, learner, key, t)
        log.choices[t - 1] = (x, decision.arm, waiting.delivered)
        log.losses[t - 1], log.probabilities[t - 1], log.coefficients[t - 1] = loss, pi[x], nature.c
        waiting.add(decision, loss=loss)


def _play_recorded_rounds(
    world: Rounds, algorithm: Any, rounds: int | None, rng: Seed, delay: int, batch: int
) -> Rehearsal:
    """Play the recorded rounds of a data set."""
    problem = world.problem
    count = len(world) if rounds is None else whole(rounds, 1, "rounds")
    if not 1 <= count <= len(world):
        raise ValueError(f"the data set has {len(world)} rounds, not {max(count, 1)}")
    delay, batch = whole(delay, 0, "delay"), whole(batch, 1, "batch")
    check_feedback(count, delay, batch)
    contexts, all_rewards = world.contexts[:count], world.rewards[:count]
    learner = algorithm.start(problem, rng=key_from(rng))
    waiting = Waiting(learner, delay, batch)
    choices, probabilities = np.zeros((len(contexts), 3), dtype=np.int64), np.zeros(all_rewards.shape)
    for t, x in enumerate(contexts.tolist()):
        probabilities[t] = _probabilities_in(learner, problem, x, t + 1)
        decision = learner.act(x)
        check_arm(problem, t + 1, x, decision.arm)
        choices[t] = (x, decision.arm, waiting.delivered)
        waiting.add(decision, loss=problem.loss_of(float(all_rewards[t, decision.arm])))
    return Rehearsal(
        problem=problem,
        policy=_policy_name(algorithm),
        contexts=contexts,
        arms=choices[:, 1],
        versions=choices[:, 2],
        probabilities=probabilities,
        rewards=all_rewards[np.arange(len(contexts)), choices[:, 1]],
        means=all_rewards,
        average=np.full(problem.available.shape, np.nan),
    )


def _probabilities_in(learner: Any, problem: Problem, x: int, t: int) -> Floats:
    """Return the probabilities (K,) of a learner in a context; tables of learners other than `Policy` are checked."""
    return learner.probabilities(x) if isinstance(learner, Policy) else checked_policy(learner, problem, t)[x]
