"""The simulation of eight or sixteen replications at once: as packs where the text allows it, else lane by lane."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.compile import compiled, kernel
from bothworlds.kernels.driver import (
    Coefficients,
    NatureText,
    Queue,
    Record,
    Steps,
    expected_losses,
    round_of,
    steps_of,
    write_checkpoint,
)
from bothworlds.kernels.entries import KernelText, World, world_of
from bothworlds.kernels.numbers import WIDTH, lane_of, lanes, more_lanes
from bothworlds.kernels.random import ARM, CONTEXT, two_uniforms
from bothworlds.kernels.status import OK


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


def in_turn(steps: Steps, text: KernelText, nature_text: NatureText, width: int) -> Steps:
    """Let the steps work on one lane after the other; state and work are then memory, cells and sizes."""
    state_of, work_of, lane_of_nature = text.state_of, text.work_of, nature_text.lane
    decide_one, choose_one, suffer_one, learn_one = steps

    def decide(nature: Any, t: int, keys: Ints) -> None:
        for k in range(width):
            decide_one(lane_of_nature(nature, k), t, keys[k])

    def choose(
        world: World, numbers: Any, state: Any, work: Any, queue: Queue, slot: int, uniforms: Any, keys: Ints, t: int
    ) -> None:
        for k in range(width):
            own = state_of(lane_of(state[0], k), lane_of(state[1], k), state[2], state[3], state[4])
            room = work_of(lane_of(work[0], k), lane_of(work[1], k), work[2], work[3], work[4])
            choose_one(world, numbers, own, room, lane_of_queue(queue, k), slot, lane_of(uniforms, k), keys[k], t)

    def suffer(nature: Any, queue: Queue, trace: Ints, slot: int, uniforms: Any, keys: Ints, t: int) -> None:
        for k in range(width):
            its, own = lane_of_nature(nature, k), lane_of_queue(queue, k)
            suffer_one(its, own, trace[k], slot, lane_of(uniforms, k), keys[k], t)

    def learn(world: World, numbers: Any, state: Any, queue: Queue, slot: int) -> None:
        for k in range(width):
            own = state_of(lane_of(state[0], k), lane_of(state[1], k), state[2], state[3], state[4])
            learn_one(world, numbers, own, lane_of_queue(queue, k), slot)

    return Steps(kernel(decide), kernel(choose), kernel(suffer), kernel(learn))


@kernel
def as_packs(plan: Any, memory: Any) -> Any:  # noqa: ARG001
    """Let a text that works on all lanes at once see packs."""
    return plan


@kernel
def as_memory(plan: Any, memory: Any) -> Any:  # noqa: ARG001
    """Let a text that works lane by lane see memory."""
    return memory


def lanes_driver(text: KernelText, nature_text: NatureText, width: int) -> Callable[..., int]:
    """Build the driver of 8 or 16 replications; natures, whose text is not written for packs, play lane by lane.

    Memories, queues, and nature's c, sums, hurt and state, have a last axis of that length; the record has a first one,
    but for its totals. ``pairs`` (4, width) is scratch space.
    """
    _, numbers_of, state_of, work_of, refresh, *_ = text
    view = lanes if width == WIDTH else more_lanes
    steps = steps_of(text, nature_text)
    turns = in_turn(steps, text, nature_text, width)
    if text.together:
        turns = turns._replace(choose=steps.choose, learn=steps.learn)
    play, seen = round_of(turns), as_packs if text.together else as_memory

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
        parts = memory, cells, S, K, d
        felt = Coefficients(view(nature.c), view(nature.hurt), view(nature.sums))
        waiting = Queue(
            view(queue.contexts),
            view(queue.arms),
            view(queue.losses),
            view(queue.directions),
            view(queue.baselines),
            queue.ends,
        )
        if fresh and refresh(world, numbers, state, work) != OK:
            return first
        for t in range(first, last + 1):
            expected_losses(nature.tables, world.g, state.pi, view(nature.hurt))
            draw_pairs(keys, t, CONTEXT, pairs[:2])
            draw_pairs(keys, t, ARM, pairs[2:])
            shown = felt, waiting, view(record.totals), record.trace, view(pairs)
            players = seen(state, parts), seen(work, parts)
            learnt = play(world, numbers, *players, nature, *shown, keys, t, delay, batch)
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
