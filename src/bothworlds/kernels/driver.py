"""The simulation of one replication as kernel text: a learner against a nature, slice by slice."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.compile import compiled, kernel
from bothworlds.kernels.entries import KernelText, World, world_of
from bothworlds.kernels.numbers import WIDTH, lane_of, lanes, more_lanes
from bothworlds.kernels.random import ARM, CONTEXT, Pair, draw, two_uniforms
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
def enqueue(queue: Queue, slot: int, x: int, a: int, loss: float) -> None:
    """Let a decision wait for its feedback; direction and baseline are in their slot already."""
    queue.contexts[slot] = x
    queue.arms[slot] = a
    queue.losses[slot] = loss
    queue.ends[0] = next_slot(queue, slot)
    queue.ends[2] += 1


def _round(text: KernelText, nature_text: NatureText) -> Callable[..., int]:
    """Build the part of a round between two plans, as kernel text."""
    choose, learn = text.choose, text.learn
    decide, react, mean_loss, noisy, _ = nature_text

    def play(
        world: World,
        numbers: Any,
        state: Any,
        work: Any,
        nature: Any,
        queue: Queue,
        record: Record,
        of_context: Pair,
        of_arm: Pair,
        key: int,
        t: int,
        delay: int,
        batch: int,
    ) -> int:
        """Let nature and the learner play round t; return how many observations were learnt from.

        Two uniforms draw context and loss, two the arm.
        """
        decide(nature, t, key)
        for j in range(nature.c.shape[0]):
            add_expected(record.totals, nature.c[j] * nature.hurt[j])
            nature.sums[j] += nature.c[j]
        x = draw(world.g, of_context[0])
        slot = queue.ends[0]
        direction, baseline = queue.directions[slot], queue.baselines[slot]
        a = choose(world, numbers, state, work, x, of_arm, key, t, direction, baseline)
        loss = noisy(nature, mean_loss(nature, x, a), of_context[1], key, t)
        react(nature, a)
        record.totals[1] += loss
        enqueue(queue, slot, x, a, loss)
        if record.trace.shape[0] > 0:
            record.trace[t - 1, 0] = x
            record.trace[t - 1, 1] = a
        due = queue.ends[2] - delay
        if due < batch:
            return 0
        for _ in range(due):
            slot = queue.ends[1]
            direction, baseline = queue.directions[slot], queue.baselines[slot]
            learn(
                world, numbers, state, queue.contexts[slot], queue.arms[slot], queue.losses[slot], direction, baseline
            )
            queue.ends[1] = next_slot(queue, slot)
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
    play = _round(text, nature_text)

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
        if fresh and refresh(world, numbers, state, work) != OK:
            return first
        for t in range(first, last + 1):
            expected_losses(nature.tables, world.g, state.pi, nature.hurt)
            pairs = two_uniforms(key, t, CONTEXT, 0), two_uniforms(key, t, ARM, 0)
            learnt = play(world, numbers, state, work, nature, queue, record, *pairs, key, t, delay, batch)
            if learnt > 0 and refresh(world, numbers, state, work) != OK:
                return t
            if t == record.checkpoints[position]:
                write_checkpoint(record, position, nature.tables, nature.sums, world.g, world.blocked)
                position += 1
        return 0

    return run


@kernel
def lane_of_queue(queue: Queue, lane: int) -> Queue:
    """Return the queue of one of several replications."""
    return Queue(
        queue.contexts[lane],
        queue.arms[lane],
        queue.losses[lane],
        queue.directions[lane],
        queue.baselines[lane],
        queue.ends[lane],
    )


@kernel
def lane_of_record(record: Record, lane: int) -> Record:
    """Return the record of one of several replications."""
    return Record(
        record.checkpoints,
        record.expected[lane],
        record.realised[lane],
        record.own_best[lane],
        record.sums[lane],
        record.totals[lane],
        record.trace[lane],
    )


@kernel
def draw_pairs(keys: Ints, t: int, purpose: int, pairs: Floats) -> None:
    """Write the two uniforms of every lane: integers only, so that the compiler takes all lanes at once."""
    for k in range(keys.shape[0]):
        pairs[0, k], pairs[1, k] = two_uniforms(keys[k], t, purpose, 0)


def _lanes_driver(text: KernelText, nature_text: NatureText, width: int) -> Callable[..., int]:
    """Build the driver of 8 or 16 replications: plans and random numbers for all at once, the rest of a round in turn.

    Memories, and nature's c, sums, hurt and state, have a last axis of that length; queue and record a first one.
    ``pairs`` (4, width) is scratch space.
    """
    _, numbers_of, state_of, work_of, refresh, *_ = text
    view = lanes if width == WIDTH else more_lanes
    lane_of_nature = nature_text.lane
    play = _round(text, nature_text)

    def run(
        fixed: Floats,
        hyper: Floats,
        memory: Floats,
        cells: Floats,
        S: int,
        K: int,
        d: int,
        nature: Any,
        queue: Queue,
        record: Record,
        keys: Ints,
        pairs: Floats,
        first: int,
        last: int,
        delay: int,
        batch: int,
        position: int,
        fresh: bool,
    ) -> int:
        world = world_of(fixed, S, K, d)
        numbers = numbers_of(hyper)
        state = state_of(view(memory), view(cells), S, K, d)
        work = work_of(view(memory), view(cells), S, K, d)
        if fresh and refresh(world, numbers, state, work) != OK:
            return first
        for t in range(first, last + 1):
            expected_losses(nature.tables, world.g, state.pi, view(nature.hurt))
            draw_pairs(keys, t, CONTEXT, pairs[:2])
            draw_pairs(keys, t, ARM, pairs[2:])
            learnt = 0
            for k in range(width):
                one = state_of(lane_of(memory, k), lane_of(cells, k), S, K, d)
                room = work_of(lane_of(memory, k), lane_of(cells, k), S, K, d)
                its, own, noted = lane_of_nature(nature, k), lane_of_queue(queue, k), lane_of_record(record, k)
                drawn = (pairs[0, k], pairs[1, k]), (pairs[2, k], pairs[3, k])
                learnt = play(world, numbers, one, room, its, own, noted, *drawn, keys[k], t, delay, batch)
            if learnt > 0 and refresh(world, numbers, state, work) != OK:
                return t
            if t == record.checkpoints[position]:
                for k in range(width):
                    sums = lane_of(nature.sums, k)
                    noted = lane_of_record(record, k)
                    write_checkpoint(noted, position, nature.tables, sums, world.g, world.blocked)
                position += 1
        return 0

    return run


@lru_cache(maxsize=64)
def compiled_driver(text: KernelText, nature_text: NatureText) -> Callable[..., int]:
    """Build the driver of one replication as machine code; once per process and algorithm."""
    return compiled(interpreted_driver(text, nature_text))


@lru_cache(maxsize=64)
def compiled_lanes_driver(text: KernelText, nature_text: NatureText, width: int) -> Callable[..., int]:
    """Build the driver of 8 or 16 replications as machine code; once per process and algorithm."""
    return compiled(_lanes_driver(text, nature_text, width))
