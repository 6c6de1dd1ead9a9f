"""The round loop of 8 or 16 replications at once: as SIMD packs if the kernel supports them, else lane by lane."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from bothworlds.arrays import Floats, Ints
from bothworlds.environments.dynamics import NatureKernel
from bothworlds.kernels.arithmetic import WIDTH, lane_of, lanes, sixteen_lanes
from bothworlds.kernels.contract import Kernel
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.kernels.random import ARM, CONTEXT, two_uniforms
from bothworlds.kernels.status import OK
from bothworlds.simulation.round_loop import (
    LearnerArrays,
    LossTerms,
    Queue,
    Record,
    Round,
    RoundState,
    Slice,
    Steps,
    build_receive,
    build_record_rates,
    build_round,
    build_steps,
    expected_losses,
    write_checkpoint,
)


@kernel
def lane_of_queue(queue: Queue, lane: int) -> Queue:
    """Return the queue of one of several replications; all share ``ends``."""
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
        record.round_best[lane],
        record.sums[lane],
        record.spent[lane],
        record.rates[lane],
        lane_of(record.totals, lane),
        record.trace[lane],
    )


@kernel
def draw_pairs(keys: Ints, t: int, purpose: int, pairs: Floats) -> None:
    """Write the two uniforms of every lane; the loop is integer arithmetic, so that the compiler vectorizes it."""
    for k in range(keys.shape[0]):
        pairs[0, k], pairs[1, k] = two_uniforms(keys[k], t, purpose, 0)


@kernel
def lane_of_round(now: Round, lane: int) -> Round:
    """Return the round of one of several replications."""
    return Round(now.t, now.key[lane], lane_of(now.uniforms, lane), now.slot)


def lane_by_lane(steps: Steps, functions: Kernel, nature_kernel: NatureKernel, width: int) -> Steps:
    """Return steps that play one lane after the other; state and work are then (core, rows) arrays."""
    state_of, work_of, lane_of_nature = functions.state_of, functions.work_of, nature_kernel.lane
    decide_one, choose_one, incur_loss_one, learn_one = steps

    def lane_of_learner(learner: Any, lane: int) -> Any:
        known, options, (all_core, all_rows), _, sizes = learner
        core, rows = lane_of(all_core, lane), lane_of(all_rows, lane)
        return known, options, state_of(core, rows, sizes), work_of(core, rows, sizes), sizes

    learner_of_lane = kernel(lane_of_learner)

    def decide(nature: Any, t: int, keys: Ints) -> None:
        for k in range(width):
            decide_one(lane_of_nature(nature, k), t, keys[k])

    def choose(learner: Any, queue: Queue, now: Round) -> None:
        for k in range(width):
            choose_one(learner_of_lane(learner, k), lane_of_queue(queue, k), lane_of_round(now, k))

    def incur_loss(nature: Any, queue: Queue, trace: Ints, now: Round) -> None:
        for k in range(width):
            incur_loss_one(lane_of_nature(nature, k), lane_of_queue(queue, k), trace[k], lane_of_round(now, k))

    def learn(learner: Any, queue: Queue, slot: int) -> None:
        for k in range(width):
            learn_one(learner_of_lane(learner, k), lane_of_queue(queue, k), slot)

    return Steps(kernel(decide), kernel(choose), kernel(incur_loss), kernel(learn))


@kernel
def select_packs(packs: Any, memory: Any) -> Any:
    """Return the packs, for kernels that process all lanes at once."""
    return packs


@kernel
def select_memory(packs: Any, memory: Any) -> Any:
    """Return the memory, for kernels that process one lane at a time."""
    return memory


class Draws(NamedTuple):
    """The keys of the lanes (width,), and scratch space (4, width) for their uniforms."""

    keys: Ints
    pairs: Floats


def interpreted_lanes_loop(
    functions: Kernel, nature_kernel: NatureKernel, width: int, rates: str
) -> Callable[..., int]:
    """Build the round loop of 8 or 16 replications as plain Python; environments always play lane by lane.

    State, queue, and the nature's c, sums, expected_loss and state have lanes as their last axis. The record has lanes
    as its first axis, except for its totals.
    """
    known_of, options_of, state_of, work_of = (
        functions.known_of,
        functions.options_of,
        functions.state_of,
        functions.work_of,
    )
    refresh, row_by_row = functions.refresh, functions.row_by_row
    view, record_rates = lanes if width == WIDTH else sixteen_lanes, build_record_rates(functions, rates)
    lane_of_nature = nature_kernel.lane
    steps = build_steps(functions, nature_kernel)
    turns = lane_by_lane(steps, functions, nature_kernel, width)
    if functions.together:
        turns = turns._replace(choose=steps.choose, learn=steps.learn)
    play, receive, select = (
        build_round(turns),
        build_receive(turns),
        select_packs if functions.together else select_memory,
    )

    def run(
        arrays: LearnerArrays, sizes: Any, nature: Any, queue: Queue, record: Record, draws: Draws, part: Slice
    ) -> int:
        known, options = known_of(arrays.known, sizes), options_of(arrays.options, sizes)
        state = state_of(view(arrays.core), view(arrays.rows), sizes)
        work = work_of(view(arrays.core), view(arrays.rows), sizes)
        parts = arrays.core, arrays.rows
        loss_terms = LossTerms(view(nature.c), view(nature.expected_loss), view(nature.sums), view(nature.best))
        waiting = Queue(
            view(queue.contexts),
            view(queue.arms),
            view(queue.losses),
            view(queue.directions),
            view(queue.baselines),
            queue.ends,
        )
        round_state = RoundState(nature, loss_terms, waiting, view(record.totals), record.trace)
        learner = known, options, select(state, parts), select(work, parts), sizes
        feedback, position = (part.delay, part.batch), part.position
        for t in range(part.first - part.fresh, part.last + 1):
            is_round, observations = t >= part.first, 1
            at_checkpoint = is_round and t == record.checkpoints[position]
            if at_checkpoint:
                for k in range(width):
                    core, rows = lane_of(arrays.core, k), lane_of(arrays.rows, k)
                    record_rates(core, rows, sizes, lane_of_record(record, k), position)
            if is_round:
                expected_losses(nature.tables, known.g, state.pi, view(nature.expected_loss))
                draw_pairs(draws.keys, t, CONTEXT, draws.pairs[:2])
                draw_pairs(draws.keys, t, ARM, draws.pairs[2:])
                observations = play(learner, round_state, (draws.keys, view(draws.pairs)), t, feedback)
            for number in range(observations):
                if is_round:
                    receive(learner, waiting)
                if (row_by_row or number == observations - 1) and refresh(known, options, state, work) != OK:
                    return max(t, part.first)
            if at_checkpoint:
                for k in range(width):
                    lane_record, lane_nature = lane_of_record(record, k), lane_of_nature(nature, k)
                    write_checkpoint(lane_record, position, lane_nature, known.g, known.blocked)
                position += 1
        return 0

    return run


@lru_cache(maxsize=64)
def compiled_lanes_loop(functions: Kernel, nature_kernel: NatureKernel, width: int, rates: str) -> Callable[..., int]:
    """Compile the round loop of 8 or 16 replications; once per process and algorithm."""
    return compiled(interpreted_lanes_loop(functions, nature_kernel, width, rates), "lanes")
