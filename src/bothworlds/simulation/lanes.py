"""The simulation of eight or sixteen replications at once: as packs where the text allows it, else lane by lane."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from bothworlds.environments.nature import NatureText
from bothworlds.kernels.arithmetic import WIDTH, lane_of, lanes, more_lanes
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.contract import KernelText
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.kernels.random import ARM, CONTEXT, two_uniforms
from bothworlds.kernels.status import OK
from bothworlds.simulation.driver import (
    Coefficients,
    Learner,
    Queue,
    Record,
    Round,
    Slice,
    Stage,
    Steps,
    expected_losses,
    noting,
    round_of,
    steps_of,
    write_checkpoint,
)


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
        record.spent[lane],
        record.rates[lane],
        lane_of(record.totals, lane),
        record.trace[lane],
    )


@kernel
def draw_pairs(keys: Ints, t: int, purpose: int, pairs: Floats) -> None:
    """Write the two uniforms of every lane: integers only, so that the compiler takes all lanes at once."""
    for k in range(keys.shape[0]):
        pairs[0, k], pairs[1, k] = two_uniforms(keys[k], t, purpose, 0)


@kernel
def lane_of_round(now: Round, lane: int) -> Round:
    """Return the round of one of several replications."""
    return Round(now.t, now.key[lane], lane_of(now.uniforms, lane), now.slot)


def in_turn(steps: Steps, text: KernelText, nature_text: NatureText, width: int) -> Steps:
    """Let the steps work on one lane after the other; state and work are then the two parts of the memory."""
    state_of, work_of, lane_of_nature = text.state_of, text.work_of, nature_text.lane
    decide_one, choose_one, suffer_one, learn_one = steps

    def own(learner: Any, lane: int) -> Any:
        known, options, (core, rows), _, sizes = learner
        one, its = lane_of(core, lane), lane_of(rows, lane)
        return known, options, state_of(one, its, sizes), work_of(one, its, sizes), sizes

    own_of = kernel(own)

    def decide(nature: Any, t: int, keys: Ints) -> None:
        for k in range(width):
            decide_one(lane_of_nature(nature, k), t, keys[k])

    def choose(learner: Any, queue: Queue, now: Round) -> None:
        for k in range(width):
            choose_one(own_of(learner, k), lane_of_queue(queue, k), lane_of_round(now, k))

    def suffer(nature: Any, queue: Queue, trace: Ints, now: Round) -> None:
        for k in range(width):
            suffer_one(lane_of_nature(nature, k), lane_of_queue(queue, k), trace[k], lane_of_round(now, k))

    def learn(learner: Any, queue: Queue, slot: int) -> None:
        for k in range(width):
            learn_one(own_of(learner, k), lane_of_queue(queue, k), slot)

    return Steps(kernel(decide), kernel(choose), kernel(suffer), kernel(learn))


@kernel
def as_packs(packs: Any, memory: Any) -> Any:
    """Let a text that works on all lanes at once see packs."""
    return packs


@kernel
def as_memory(packs: Any, memory: Any) -> Any:
    """Let a text that works lane by lane see memory."""
    return memory


class Draws(NamedTuple):
    """The keys of the lanes, and scratch space (4, width) for their uniforms."""

    keys: Ints
    pairs: Floats


def lanes_driver(text: KernelText, nature_text: NatureText, width: int, rates: str) -> Callable[..., int]:
    """Build the driver of 8 or 16 replications; natures, whose text is not written for packs, play lane by lane.

    Memories, queues, and nature's c, sums, hurt and state, have a last axis of that length; the record has a first one,
    but for its totals.
    """
    known_of, options_of, state_of, work_of = text.known_of, text.options_of, text.state_of, text.work_of
    refresh, view, note = text.refresh, lanes if width == WIDTH else more_lanes, noting(text, rates)
    lane_of_nature = nature_text.lane
    steps = steps_of(text, nature_text)
    turns = in_turn(steps, text, nature_text, width)
    if text.together:
        turns = turns._replace(choose=steps.choose, learn=steps.learn)
    play, seen = round_of(turns), as_packs if text.together else as_memory

    def run(arrays: Learner, sizes: Any, nature: Any, queue: Queue, record: Record, draws: Draws, part: Slice) -> int:
        known, options = known_of(arrays.known, sizes), options_of(arrays.options, sizes)
        state = state_of(view(arrays.core), view(arrays.rows), sizes)
        work = work_of(view(arrays.core), view(arrays.rows), sizes)
        parts = arrays.core, arrays.rows
        felt = Coefficients(view(nature.c), view(nature.hurt), view(nature.sums))
        waiting = Queue(
            view(queue.contexts),
            view(queue.arms),
            view(queue.losses),
            view(queue.directions),
            view(queue.baselines),
            queue.ends,
        )
        stage = Stage(nature, felt, waiting, view(record.totals), record.trace)
        learner = known, options, seen(state, parts), seen(work, parts), sizes
        feedback, position = (part.delay, part.batch), part.position
        for t in range(part.first - part.fresh, part.last + 1):
            playing, learnt = t >= part.first, 1
            marked = playing and t == record.checkpoints[position]
            if marked:
                for k in range(width):
                    memory = lane_of(arrays.core, k), lane_of(arrays.rows, k)
                    note(memory[0], memory[1], sizes, lane_of_record(record, k), position)
            if playing:
                expected_losses(nature.tables, known.g, state.pi, view(nature.hurt))
                draw_pairs(draws.keys, t, CONTEXT, draws.pairs[:2])
                draw_pairs(draws.keys, t, ARM, draws.pairs[2:])
                learnt = play(learner, stage, known.g, (draws.keys, view(draws.pairs)), t, feedback)
            if learnt > 0 and refresh(known, options, state, work) != OK:
                return max(t, part.first)
            if marked:
                for k in range(width):
                    noted, its = lane_of_record(record, k), lane_of_nature(nature, k)
                    write_checkpoint(noted, position, its, known.g, known.blocked)
                position += 1
        return 0

    return run


@lru_cache(maxsize=64)
def compiled_lanes_driver(text: KernelText, nature_text: NatureText, width: int, rates: str) -> Callable[..., int]:
    """Build the driver of 8 or 16 replications as machine code; once per process and algorithm."""
    return compiled(lanes_driver(text, nature_text, width, rates), "lanes")
