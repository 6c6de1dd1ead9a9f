"""The simulation of eight or sixteen replications at once: as packs where the text allows it, else lane by lane."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.compile import compiled, kernel
from bothworlds.kernels.driver import (
    NatureText,
    Queue,
    Record,
    Seat,
    Steps,
    expected_losses,
    round_of,
    steps_of,
    together,
    write_checkpoint,
)
from bothworlds.kernels.entries import KernelText, World, world_of
from bothworlds.kernels.numbers import WIDTH, lane_of, lanes, more_lanes
from bothworlds.kernels.random import ARM, CONTEXT, two_uniforms
from bothworlds.kernels.status import OK


class Table(NamedTuple):
    """All seats: memories and queues whose last axis counts replications, records whose first axis does."""

    memory: Floats
    cells: Floats
    S: int
    K: int
    d: int
    nature: Any
    queue: Queue
    record: Record
    pairs: Floats
    keys: Ints


class Coefficients(NamedTuple):
    """Of nature what a round reads and writes for all lanes at once."""

    c: Floats
    hurt: Floats
    sums: Floats


class Totals(NamedTuple):
    """Of a record what a round writes for all lanes at once."""

    totals: Floats


@kernel
def lane_of_queue(queue: Queue, lane: int) -> Queue:
    """Return the queue of one of several replications; its ends are those of all."""
    return Queue(
        lane_of(queue.contexts, lane),
        lane_of(queue.arms, lane),
        lane_of(queue.losses, lane),
        lane_of(queue.directions, lane),
        lane_of(queue.baselines, lane),
        queue.ends,
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
        lane_of(record.totals, lane),
        record.trace[lane],
    )


@kernel
def draw_pairs(keys: Ints, t: int, purpose: int, pairs: Floats) -> None:
    """Write the two uniforms of every lane: integers only, so that the compiler takes all lanes at once."""
    for k in range(keys.shape[0]):
        pairs[0, k], pairs[1, k] = two_uniforms(keys[k], t, purpose, 0)


def in_turn(step: Callable[..., None], text: KernelText, nature_text: NatureText, width: int) -> Callable[..., None]:
    """Let a step work on one lane after the other."""
    state_of, work_of, lane_of_nature = text.state_of, text.work_of, nature_text.lane

    def call(world: World, numbers: Any, seat: Seat, table: Table, slot: int, t: int) -> None:  # noqa: ARG001
        memory, cells, S, K, d, nature, queue, record, p, keys = table
        for k in range(width):
            state = state_of(lane_of(memory, k), lane_of(cells, k), S, K, d)
            work = work_of(lane_of(memory, k), lane_of(cells, k), S, K, d)
            its, own, noted = lane_of_nature(nature, k), lane_of_queue(queue, k), lane_of_record(record, k)
            one = Seat(state, work, its, own, noted, (p[0, k], p[1, k], p[2, k], p[3, k]), keys[k])
            step(world, numbers, one, slot, t)

    return kernel(call)


def lanes_driver(text: KernelText, nature_text: NatureText, width: int) -> Callable[..., int]:
    """Build the driver of 8 or 16 replications; natures, whose text is not written for packs, play lane by lane.

    Memories, queues, and nature's c, sums, hurt and state, have a last axis of that length; the record has a first one,
    but for its totals. ``pairs`` (4, width) is scratch space.
    """
    _, numbers_of, state_of, work_of, refresh, *_ = text
    view = lanes if width == WIDTH else more_lanes
    steps = steps_of(text, nature_text)
    turns = Steps(*(in_turn(step, text, nature_text, width) for step in steps))
    if text.together:
        turns = turns._replace(choose=together(steps.choose), learn=together(steps.learn))
    play = round_of(turns)

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
        table = Table(memory, cells, S, K, d, nature, queue, record, pairs, keys)
        felt = Coefficients(view(nature.c), view(nature.hurt), view(nature.sums))
        waiting = Queue(
            view(queue.contexts),
            view(queue.arms),
            view(queue.losses),
            view(queue.directions),
            view(queue.baselines),
            queue.ends,
        )
        totals = Totals(view(record.totals))
        if fresh and refresh(world, numbers, state, work) != OK:
            return first
        for t in range(first, last + 1):
            expected_losses(nature.tables, world.g, state.pi, view(nature.hurt))
            draw_pairs(keys, t, CONTEXT, pairs[:2])
            draw_pairs(keys, t, ARM, pairs[2:])
            uniforms = view(pairs)[0], view(pairs)[1], view(pairs)[2], view(pairs)[3]
            seat = Seat(state, work, felt, waiting, totals, uniforms, keys)
            learnt = play(world, numbers, seat, table, t, delay, batch)
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
def compiled_lanes_driver(text: KernelText, nature_text: NatureText, width: int) -> Callable[..., int]:
    """Build the driver of 8 or 16 replications as machine code; once per process and algorithm."""
    return compiled(lanes_driver(text, nature_text, width))
