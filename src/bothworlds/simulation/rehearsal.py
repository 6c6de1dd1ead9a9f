"""Rehearsal: a log that any algorithm writes in a world whose truth is known, to compare estimates with."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bothworlds.datasets.rounds import Rounds
from bothworlds.environments import Environment
from bothworlds.environments.nature import NatureText
from bothworlds.errors import NumericalError
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.contract import KernelText, flat_known
from bothworlds.kernels.jit.compile import compiled, explained
from bothworlds.kernels.random import ARM, CONTEXT, Seed, draw, key_from, stream_key, two_uniforms
from bothworlds.kernels.status import OK
from bothworlds.logs import Row
from bothworlds.policy import Policy
from bothworlds.problem import Problem
from bothworlds.problem.checks import are_distributions, whole
from bothworlds.problem.feedback import total_reward
from bothworlds.simulation.driver import Coefficients, Learner, Queue, Slice, Stage, expected_losses, round_of, steps_of
from bothworlds.simulation.engine import compilable
from bothworlds.simulation.in_python import Waiting, check_arm, one_round, policy_in
from bothworlds.simulation.own import require_algorithm
from bothworlds.simulation.replication import empty_queue, empty_record
from bothworlds.simulation.setting import Setting, check_feedback, make_setting


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """A log as columns of arrays, with the truth beside it; made by `rehearse`. T rounds, S contexts, K arms.

    Attributes
    ----------
    problem, policy
        What the learner knew, and what rows call it.
    contexts, arms, versions
        Context seen, arm chosen, and from how many rewards was learnt before, each (T,).
    probabilities
        The whole vector in the context seen, (T, K); zero where an arm is not offered.
    rewards
        What came back, in the user's units, (T,).
    means
        The truth: mean reward of every arm in the context seen, in that round, (T, K).
    average
        Mean reward of every arm in every context, averaged over rounds, (S, K); not a number where real data do not
        know it.
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
        """Return the true mean reward of a round under a fixed policy (S, K), or under the one that wrote the log.

        With ``seen``, in the contexts that came; without, expected over contexts as well. Where nature looks at the
        learner, it is that of the world as the log's learner met it.
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
        """Yield the log as rows, for files and whatever reads them; a round is a second.

        They do not carry what an update would need: the policy that wrote them is gone.
        """
        names, problem = self.problem.arms, self.problem
        offered = [np.flatnonzero(line) for line in problem.available]
        words = [tuple(names[a] for a in places) for places in offered]
        for t in range(len(self)):
            x, arm = int(self.contexts[t]), int(self.arms[t])
            pi = self.probabilities[t]
            yield Row(
                id=f"round {t + 1}",
                time=float(t + 1),
                context=problem.contexts[x],
                offered=words[x],
                probabilities=tuple(pi[offered[x]].tolist()),
                arm=names[arm],
                propensity=float(pi[arm]),
                policy=self.policy,
                version=int(self.versions[t]),
                reward=float(self.rewards[t]),
                reward_time=float(t + 1),
            )


class Story(NamedTuple):
    """What is written in every round: ``choices`` (T, 3) context, arm and version, and three columns of numbers.

    ``totals`` and ``trace`` are for the driver, and not looked at.
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
    """Let an algorithm write a log in a world whose truth is known.

    It plays what replication 0 of ``simulate`` with the same seed plays.

    Parameters
    ----------
    world
        An environment, or the rounds of a data set (`Rounds`).
    algorithm
        One with a method ``machine`` runs as compiled kernel text; anything else with ``start(problem, rng=...)`` runs
        in Python, slowly. On `Rounds`, every algorithm does so, 10,000 to 20,000 rounds a second.
    rounds
        How many; all of them, if the world has an end.
    rng
        Seed.
    delay, batch
        Feedback comes this many rounds late, and is learnt in batches of at least this size.

    >>> import bothworlds as bw
    >>> world = bw.environments.clicks()
    >>> log = rehearse(world, bw.FixedPolicy(), rounds=1000, rng=7)
    >>> row = next(log.rows())
    >>> row.arm in row.offered, row.propensity == row.probabilities[row.offered.index(row.arm)]
    (True, True)
    >>> bool(abs(log.rewards.mean() - log.value()) < 0.01)  # what came, and what was to be expected
    True
    """
    require_algorithm(algorithm, repr(algorithm))
    if isinstance(world, Rounds):
        return _on_given_rounds(world, algorithm, rounds, rng, delay, batch)
    if rounds is None:
        raise ValueError("rounds: how many? An environment has no end")
    setting = make_setting(world, horizon=rounds, rng=rng, checkpoints=[], delay=delay, batch=batch)
    empty = Story(
        np.zeros((setting.horizon, 3), dtype=np.int64),
        np.zeros(setting.horizon),
        np.zeros((setting.horizon, world.problem.n_arms)),
        np.zeros((setting.horizon, len(world.thetas))),
        totals=np.zeros(3),
        trace=np.zeros((0, 2), dtype=np.int64),
    )
    story = (_compiled if compilable(algorithm, world) else _in_python)(algorithm, setting, empty)
    return _told(world, algorithm, story)


def _told(world: Environment, algorithm: Any, story: Story) -> Rehearsal:
    """Make a rehearsal of what was written."""
    problem, contexts = world.problem, story.choices[:, 0]
    means = np.einsum("tj,jta->ta", story.coefficients, world.tables[:, contexts])
    average = np.einsum("j,jxa->xa", story.coefficients.mean(axis=0), world.tables)
    return Rehearsal(
        problem=problem,
        policy=_name_of(algorithm),
        contexts=contexts,
        arms=story.choices[:, 1],
        versions=story.choices[:, 2],
        probabilities=story.probabilities,
        rewards=total_reward(story.losses, 1, problem.reward_range),
        means=total_reward(means, 1, problem.reward_range),
        average=total_reward(average, 1, problem.reward_range),
    )


def _name_of(algorithm: Any) -> str:
    return f"rehearsal of {type(algorithm).__name__}"


def _compiled(algorithm: Any, setting: Setting, story: Story) -> Story:
    """Play as machine code."""
    environment, key = setting.environment, stream_key(setting.seed, 0)
    machine = algorithm.machine(environment.problem)
    memory = machine.memory(key=key)
    learner = Learner(flat_known(machine.known), machine.flat_options, *memory, *memory)
    nature, queue = environment.begin(), empty_queue(setting.delay + setting.batch, *machine.carried)
    part = Slice(1, setting.horizon, 0, setting.delay, setting.batch, True)
    with explained(packs=False):
        drive = compiled_teller(machine.text, environment.text)
        failed = drive(learner, tuple(machine.sizes), nature, queue, story, key, part)
    if failed:
        raise NumericalError(f"arithmetic failed in round {failed} (seed {setting.seed}); replay it to see why")
    environment.require_obedience(nature.state, setting.horizon)
    return story


def interpreted_teller(text: KernelText, nature_text: NatureText) -> Callable[..., int]:
    """Build the driver that writes a story, as plain Python; it returns 0, or the round in which arithmetic failed."""
    known_of, options_of, state_of, work_of = text.known_of, text.options_of, text.state_of, text.work_of
    refresh, play = text.refresh, round_of(steps_of(text, nature_text))

    def run(arrays: Learner, sizes: Any, nature: Any, queue: Queue, story: Story, key: int, part: Slice) -> int:
        known, options = known_of(arrays.known, sizes), options_of(arrays.options, sizes)
        state = state_of(arrays.core, arrays.rows, sizes)
        work = work_of(arrays.scratch_core, arrays.scratch_rows, sizes)
        felt = Coefficients(nature.c, nature.hurt, nature.sums)
        stage = Stage(nature, felt, queue, story.totals, story.trace)
        learner, feedback, version = (known, options, state, work, sizes), (part.delay, part.batch), 0
        for t in range(part.first - part.fresh, part.last + 1):
            playing, learnt = t >= part.first, 1
            if playing:
                expected_losses(nature.tables, known.g, state.pi, nature.hurt)
                (u, v), (w, z) = two_uniforms(key, t, CONTEXT, 0), two_uniforms(key, t, ARM, 0)
                x, slot = draw(known.g, u), queue.ends[0]
                for a in range(state.pi.shape[1]):
                    story.probabilities[t - 1, a] = state.pi[x, a]
                learnt = play(learner, stage, known.g, (key, (u, v, w, z)), t, feedback)
                story.choices[t - 1, 0] = x
                story.choices[t - 1, 1] = queue.arms[slot]
                story.choices[t - 1, 2] = version
                story.losses[t - 1] = queue.losses[slot]
                for j in range(nature.c.shape[0]):
                    story.coefficients[t - 1, j] = nature.c[j]
                version += learnt
            if learnt > 0 and refresh(known, options, state, work) != OK:
                return max(t, part.first)
        return 0

    return run


@lru_cache(maxsize=64)
def compiled_teller(text: KernelText, nature_text: NatureText) -> Callable[..., int]:
    """Build the driver that writes a story as machine code; once per process and algorithm."""
    return compiled(interpreted_teller(text, nature_text), "run")


def _in_python(algorithm: Any, setting: Setting, story: Story) -> Story:
    """Play a learner, or in a nature, that is written in plain Python."""
    environment, key = setting.environment, stream_key(setting.seed, 0)
    g = environment.problem.probabilities
    learner, nature = algorithm.start(environment.problem, rng=key), environment.begin()
    record = empty_record(setting, len(nature.c), trace=False)
    waiting = Waiting(learner, setting.delay, setting.batch)
    for t in range(1, setting.horizon + 1):
        pi = policy_in(learner, environment.problem, t)
        x = draw(g, two_uniforms(key, t, CONTEXT, 0)[0])
        loss, decision = one_round(environment, nature, record, pi, learner, key, t)
        story.choices[t - 1] = (x, decision.arm, waiting.learnt)
        story.losses[t - 1], story.probabilities[t - 1], story.coefficients[t - 1] = loss, pi[x], nature.c
        waiting.add(decision, loss=loss)
    return story


def _on_given_rounds(world: Rounds, algorithm: Any, rounds: int | None, rng: Seed, delay: int, batch: int) -> Rehearsal:
    """Play rounds whose contexts, and rewards of all arms, are given."""
    problem = world.problem
    count = len(world) if rounds is None else whole(rounds, 1, "rounds")
    if not 1 <= count <= len(world):
        raise ValueError(f"the data set has {len(world)} rounds, not {max(count, 1)}")
    delay, batch = whole(delay, 0, "delay"), whole(batch, 1, "batch")
    check_feedback(count, delay, batch)
    contexts, truth = world.contexts[:count], world.rewards[:count]
    learner = algorithm.start(problem, rng=key_from(rng))
    waiting = Waiting(learner, delay, batch)
    choices, probabilities = np.zeros((len(contexts), 3), dtype=np.int64), np.zeros(truth.shape)
    for t, x in enumerate(contexts.tolist()):
        probabilities[t] = _row_of(learner, problem, x, t + 1)
        decision = learner.act(x)
        check_arm(problem, t + 1, x, decision.arm)
        choices[t] = (x, decision.arm, waiting.learnt)
        waiting.add(decision, loss=problem.loss_of(float(truth[t, decision.arm])))
    return Rehearsal(
        problem=problem,
        policy=_name_of(algorithm),
        contexts=contexts,
        arms=choices[:, 1],
        versions=choices[:, 2],
        probabilities=probabilities,
        rewards=truth[np.arange(len(contexts)), choices[:, 1]],
        means=truth,
        average=np.full(problem.available.shape, np.nan),
    )


def _row_of(learner: Any, problem: Problem, x: int, t: int) -> Floats:
    """Return the probabilities of a learner in a context; a policy has them at hand, others a table to be checked."""
    return learner.probabilities(x) if isinstance(learner, Policy) else policy_in(learner, problem, t)[x]
