"""The simulation of one replication as kernel text: a learner against a nature, slice by slice."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.compile import compiled, kernel
from bothworlds.kernels.entries import KernelText, World, world_of
from bothworlds.kernels.random import ARM, CONTEXT, draw, two_uniforms
from bothworlds.kernels.status import OK


class Queue(NamedTuple):
    """Decisions that wait for feedback, in a ring: cell, loss, direction, baseline.

    ``ends`` has the slots of the next decision and of the next feedback, and how many decisions wait.
    """

    contexts: Ints
    arms: Ints
    losses: Floats
    directions: Floats
    baselines: Floats
    ends: Ints


class Record(NamedTuple):
    """What is written at the checkpoints: cumulative expected, realised and best loss, and sums of coefficients.

    ``totals`` (3,) runs along: expected, realised, and the rounding of the first; ``trace`` (T, 2) takes contexts and
    arms if it is not empty.
    """

    checkpoints: Ints
    expected: Floats
    realised: Floats
    own_best: Floats
    sums: Floats
    totals: Floats
    trace: Ints


class NatureText(NamedTuple):
    """The functions that make a nature: `decide`, `react`, `mean_loss`, `noisy`; ``lane`` takes one of eight apart."""

    decide: Callable[..., None]
    react: Callable[..., None]
    mean_loss: Callable[..., float]
    noisy: Callable[..., float]
    lane: Callable[..., Any]


class Coefficients(NamedTuple):
    """Of nature what a round adds up: coefficients, the learner's expected losses, and the sums of the former."""

    c: Floats
    hurt: Floats
    sums: Floats


@kernel
def expected_losses(tables: Floats, g: Floats, pi: Floats, out: Floats) -> None:
    """Write sum_x g(x) sum_a pi(a|x) <phi(a, x), theta_j> for every j."""
    for j in range(out.shape[0]):
        total = 0.0
        for x in range(pi.shape[0]):
            inner = 0.0
            for a in range(pi.shape[1]):
                inner = inner + pi[x, a] * tables[j, x, a]
            total = total + g[x] * inner
        out[j] = total


@kernel
def best_loss(tables: Floats, g: Floats, blocked: Floats, sums: Floats) -> float:
    """Return sum_x g(x) min_a sum_j sums_j <phi(a, x), theta_j>: the best fixed policy's loss."""
    total = 0.0
    for x in range(blocked.shape[0]):
        least = 1e308
        for a in range(blocked.shape[1]):
            loss = blocked[x, a]
            for j in range(sums.shape[0]):
                loss += sums[j] * tables[j, x, a]
            least = min(least, loss)
        total += g[x] * least
    return total


@kernel
def add_expected(totals: Floats, value: float) -> None:
    """Add to totals[0], with the rounding of earlier additions kept in totals[2] (Kahan)."""
    corrected = value - totals[2]
    total = totals[0] + corrected
    totals[2] = (total - totals[0]) - corrected
    totals[0] = total


@kernel
def write_checkpoint(record: Record, position: int, tables: Floats, sums: Floats, g: Floats, blocked: Floats) -> None:
    """Write the totals so far, and the best policy's, at a checkpoint."""
    record.expected[position] = record.totals[0]
    record.realised[position] = record.totals[1]
    record.own_best[position] = best_loss(tables, g, blocked, sums)
    for j in range(sums.shape[0]):
        record.sums[position, j] = sums[j]


@kernel
def next_slot(queue: Queue, slot: int) -> int:
    """Return the slot after another one in the ring."""
    return 0 if slot + 1 == queue.losses.shape[0] else slot + 1


@kernel
def account(felt: Coefficients, totals: Floats) -> None:
    """Add the expected loss of the round to the totals, and its coefficients to their sums."""
    for j in range(felt.c.shape[0]):
        add_expected(totals, felt.c[j] * felt.hurt[j])
        felt.sums[j] = felt.sums[j] + felt.c[j]


class Steps(NamedTuple):
    """What an algorithm and a nature do in a round, for one replication, or for all lanes at once or in turn.

    ``decide(nature, t, key)``, ``choose(world, numbers, state, work, queue, slot, uniforms, key, t)``,
    ``suffer(nature, queue, trace, slot, uniforms, key, t)`` and ``learn(world, numbers, state, queue, slot)``.
    """

    decide: Callable[..., None]
    choose: Callable[..., None]
    suffer: Callable[..., None]
    learn: Callable[..., None]


def steps_of(text: KernelText, nature_text: NatureText) -> Steps:
    """Return the steps of a round, as kernel text."""
    choose_arm, learn_from = text.choose, text.learn
    decide, react, mean_loss, noisy, _ = nature_text

    def choose(
        world: World, numbers: Any, state: Any, work: Any, queue: Queue, slot: int, uniforms: Any, key: int, t: int
    ) -> None:
        pair = uniforms[2], uniforms[3]
        direction, baseline = queue.directions[slot], queue.baselines[slot]
        x = queue.contexts[slot]
        queue.arms[slot] = choose_arm(world, numbers, state, work, x, pair, key, t, direction, baseline)

    def suffer(nature: Any, queue: Queue, trace: Ints, slot: int, uniforms: Any, key: int, t: int) -> None:
        x, a = queue.contexts[slot], queue.arms[slot]
        queue.losses[slot] = noisy(nature, mean_loss(nature, x, a), uniforms[1], key, t)
        react(nature, a)
        if trace.shape[0] > 0:
            trace[t - 1, 0] = x
            trace[t - 1, 1] = a

    def learn(world: World, numbers: Any, state: Any, queue: Queue, slot: int) -> None:
        x, a, loss = queue.contexts[slot], queue.arms[slot], queue.losses[slot]
        learn_from(world, numbers, state, x, a, loss, queue.directions[slot], queue.baselines[slot])

    return Steps(decide, kernel(choose), kernel(suffer), kernel(learn))


def round_of(steps: Steps) -> Callable[..., int]:
    """Build the part of a round between two plans, as kernel text."""
    decide, choose, suffer, learn = steps

    def play(
        world: World,
        numbers: Any,
        state: Any,
        work: Any,
        nature: Any,
        felt: Coefficients,
        queue: Queue,
        totals: Floats,
        trace: Ints,
        uniforms: Any,
        key: int,
        t: int,
        delay: int,
        batch: int,
    ) -> int:
        """Let nature and the learner play round t; return how many observations were learnt from.

        Four uniforms draw context, loss, and the arm (two).
        """
        slot = queue.ends[0]
        decide(nature, t, key)
        account(felt, totals)
        queue.contexts[slot] = draw(world.g, uniforms[0])
        choose(world, numbers, state, work, queue, slot, uniforms, key, t)
        suffer(nature, queue, trace, slot, uniforms, key, t)
        totals[1] = totals[1] + queue.losses[slot]
        queue.ends[0] = next_slot(queue, slot)
        queue.ends[2] += 1
        due = queue.ends[2] - delay
        if due < batch:
            return 0
        for _ in range(due):
            learn(world, numbers, state, queue, queue.ends[1])
            queue.ends[1] = next_slot(queue, queue.ends[1])
            queue.ends[2] -= 1
        return int(due)

    return kernel(play)


def interpreted_driver(text: KernelText, nature_text: NatureText) -> Callable[..., int]:
    """Build the driver of one replication as plain Python.

    It plays the rounds ``first`` to ``last`` and returns 0, or the round in which arithmetic failed. ``fresh`` has the
    plan computed first: at the start, or where only what is learnt was kept. The scratch space is
    the memory itself, or one of its own: on a GPU what is indexed by constants alone is kept in registers.
    """
    _, numbers_of, state_of, work_of, refresh, *_ = text
    play = round_of(steps_of(text, nature_text))

    def run(
        fixed: Floats,
        hyper: Floats,
        memory: Floats,
        cells: Floats,
        scratch: Floats,
        scratch_cells: Floats,
        S: int,
        K: int,
        d: int,
        nature: Any,
        queue: Queue,
        record: Record,
        key: int,
        first: int,
        last: int,
        delay: int,
        batch: int,
        position: int,
        fresh: bool,
    ) -> int:
        world = world_of(fixed, S, K, d)
        numbers = numbers_of(hyper)
        state = state_of(memory, cells, S, K, d)
        work = work_of(scratch, scratch_cells, S, K, d)
        felt = Coefficients(nature.c, nature.hurt, nature.sums)
        if fresh and refresh(world, numbers, state, work) != OK:
            return first
        for t in range(first, last + 1):
            expected_losses(nature.tables, world.g, state.pi, nature.hurt)
            (u, v), (w, z) = two_uniforms(key, t, CONTEXT, 0), two_uniforms(key, t, ARM, 0)
            shown = felt, queue, record.totals, record.trace, (u, v, w, z)
            learnt = play(world, numbers, state, work, nature, *shown, key, t, delay, batch)
            if learnt > 0 and refresh(world, numbers, state, work) != OK:
                return t
            if t == record.checkpoints[position]:
                write_checkpoint(record, position, nature.tables, nature.sums, world.g, world.blocked)
                position += 1
        return 0

    return run


@lru_cache(maxsize=64)
def compiled_driver(text: KernelText, nature_text: NatureText) -> Callable[..., int]:
    """Build the driver of one replication as machine code; once per process and algorithm."""
    return compiled(interpreted_driver(text, nature_text))
