"""The round loop of one replication as kernel functions: plays a slice of rounds."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from bothworlds.arrays import Floats, Ints
from bothworlds.environments.dynamics import NatureKernel
from bothworlds.kernels.arithmetic import Number, absolute, every, smaller
from bothworlds.kernels.contract import Draw, Kernel, Play
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.kernels.random import ARM, CONTEXT, two_uniforms
from bothworlds.kernels.random import draw as draw_index
from bothworlds.kernels.status import OK

EXPECTED, ROUND_BEST, REALISED, TOTALS = 0, 2, 4, 5  # places in the totals of a record, and their number


class Queue(NamedTuple):
    """Ring buffer of decisions that wait for feedback: context and arm, loss, direction, baseline.

    ``ends`` (3,) has the slot of the next decision, the slot of the next feedback, and the number of waiting decisions.
    """

    contexts: Ints
    arms: Ints
    losses: Floats
    directions: Floats
    baselines: Floats
    ends: Ints


class Record(NamedTuple):
    """Measurements at the checkpoints: cumulative expected, realised and best loss, and sums of coefficients.

    ``own_best`` is the loss of the best fixed policy, ``round_best`` that of the best arms of every round. ``spent`` is
    state[0] of the nature, the corruption so far in environments with a budget; ``rates`` has the learner's eta_t and
    gamma_t, if any. ``totals`` (5,) are running sums: expected loss, loss of the best arms of every round, each
    followed by its rounding error, and realised loss. ``trace`` (T, 2), unless empty, records contexts and arms.
    """

    checkpoints: Ints
    expected: Floats
    realised: Floats
    own_best: Floats
    round_best: Floats
    sums: Floats
    spent: Floats
    rates: Floats
    totals: Floats
    trace: Ints


class LearnerArrays(NamedTuple):
    """The arrays of a learner: problem, options, state, and scratch space, which may share the arrays of the state."""

    known: Floats
    options: Floats
    core: Floats
    rows: Floats
    scratch_core: Floats
    scratch_rows: Floats


class Slice(NamedTuple):
    """Rounds to play, the index of the next checkpoint, delay and batch size of feedback, and whether to plan first.

    ``fresh`` is true at the start, and when only the learned part of the state was kept.
    """

    first: int
    last: int
    position: int
    delay: int
    batch: int
    fresh: bool


class LossTerms(NamedTuple):
    """Coefficients of the round, expected losses, sums of coefficients and best loss, each as in `Nature`."""

    c: Floats
    expected_loss: Floats
    sums: Floats
    best: Floats


@kernel
def expected_losses(tables: Floats, g: Floats, pi: Floats, out: Floats) -> None:
    """Write sum_x g(x) sum_a pi(a|x) <phi(a, x), theta_j> into out[j] for every j."""
    for j in range(out.shape[0]):
        total = 0.0
        for x in range(pi.shape[0]):
            inner = 0.0
            for a in range(pi.shape[1]):
                inner = inner + pi[x, a] * tables[j, x, a]
            total = total + g[x] * inner
        out[j] = total


@kernel
def loss_of_arm(tables: Floats, blocked: Floats, sums: Floats, x: int, a: int) -> Number:
    """Return sum_j sums_j <phi(a, x), theta_j>; infinite where the arm is not offered."""
    loss = blocked[x, a] + sums[0] * tables[0, x, a]
    for j in range(1, sums.shape[0]):
        loss = loss + sums[j] * tables[j, x, a]
    return loss


@kernel
def best_loss(tables: Floats, g: Floats, blocked: Floats, sums: Floats) -> Number:
    """Return the loss of the best fixed policy: sum_x g(x) min_a sum_j sums_j <phi(a, x), theta_j>."""
    total = 0.0 * sums[0]
    for x in range(blocked.shape[0]):
        least = loss_of_arm(tables, blocked, sums, x, 0)
        for a in range(1, blocked.shape[1]):
            least = smaller(least, loss_of_arm(tables, blocked, sums, x, a))
        total = total + g[x] * least
    return total


@kernel
def add_exactly(totals: Floats, place: int, value: Number) -> None:
    """Add to totals[place] by Kahan summation; totals[place + 1] is the compensation."""
    corrected = value - totals[place + 1]
    total = totals[place] + corrected
    totals[place + 1] = (total - totals[place]) - corrected
    totals[place] = total


@kernel
def write_checkpoint(record: Record, position: int, nature: Any, g: Floats, blocked: Floats) -> None:
    """Write the totals so far, the loss of the best policy, sums of coefficients and corruption at a checkpoint."""
    sums = nature.sums
    record.expected[position] = record.totals[EXPECTED]
    record.realised[position] = record.totals[REALISED]
    record.round_best[position] = record.totals[ROUND_BEST]
    record.own_best[position] = best_loss(nature.tables, g, blocked, sums)
    record.spent[position] = nature.state[0]
    for j in range(sums.shape[0]):
        record.sums[position, j] = sums[j]


@kernel
def record_no_rates(core: Floats, rows: Floats, sizes: Any, record: Record, position: int) -> None:
    """Do nothing, for algorithms without rates."""


def build_record_rates(functions: Kernel, rates: str) -> Callable[..., None]:
    """Build the kernel function that records eta_t and gamma_t from the field ``rates`` of the learner's state."""
    if not rates:
        return record_no_rates
    rates_of = functions.memory.pair(rates)

    def record_rates(core: Floats, rows: Floats, sizes: Any, record: Record, position: int) -> None:
        record.rates[position, 0], record.rates[position, 1] = rates_of(core, rows, sizes)

    return kernel(record_rates)


@kernel
def next_slot(queue: Queue, slot: int) -> int:
    """Return the slot after ``slot`` in the ring buffer."""
    return 0 if slot + 1 == queue.losses.shape[0] else slot + 1


@kernel
def update_best(loss_terms: LossTerms, tables: Floats, g: Floats, blocked: Floats) -> None:
    """Compute the loss of the best arms of the round, unless its coefficients are those of the last round."""
    c, best = loss_terms.c, loss_terms.best
    J = c.shape[0]
    change = absolute(c[0] - best[0])
    for j in range(1, J):
        change = change + absolute(c[j] - best[j])
    if not every(change <= 0.0):
        for j in range(J):
            best[j] = c[j]
        best[J] = best_loss(tables, g, blocked, c)


@kernel
def add_round(loss_terms: LossTerms, tables: Floats, g: Floats, blocked: Floats, totals: Floats) -> None:
    """Add the expected and the best loss of the round to the totals, and its coefficients to their sums."""
    update_best(loss_terms, tables, g, blocked)
    add_exactly(totals, ROUND_BEST, loss_terms.best[loss_terms.c.shape[0]])
    for j in range(loss_terms.c.shape[0]):
        add_exactly(totals, EXPECTED, loss_terms.c[j] * loss_terms.expected_loss[j])
        loss_terms.sums[j] = loss_terms.sums[j] + loss_terms.c[j]


class Round(NamedTuple):
    """A round: its number, key, uniforms for context, loss and arm, and its slot in the queue."""

    t: int
    key: Any  # or one per lane
    uniforms: Any
    slot: int


class Steps(NamedTuple):
    """The steps of a round, for one replication or for several lanes.

    ``decide(nature, t, key)``, ``choose(learner, queue, now)``, ``incur_loss(nature, queue, trace, now)`` and
    ``learn(learner, queue, slot)``; the learner is a tuple of known, options, state, work and sizes.
    """

    decide: Callable[..., None]
    choose: Callable[..., None]
    incur_loss: Callable[..., None]
    learn: Callable[..., None]


def build_steps(functions: Kernel, nature_kernel: NatureKernel) -> Steps:
    """Build the steps of a round as kernel functions."""
    choose_arm, learn_play, carried_of = functions.choose, functions.learn, functions.carried_of
    decide, react, mean_loss, noisy, _ = nature_kernel

    def choose(learner: Any, queue: Queue, now: Round) -> None:
        known, options, state, work, sizes = learner
        draw = Draw((now.uniforms[2], now.uniforms[3]), now.key, now.t)
        carried = carried_of(queue.directions[now.slot], queue.baselines[now.slot], sizes)
        queue.arms[now.slot] = choose_arm(known, options, state, work, queue.contexts[now.slot], draw, carried)

    def incur_loss(nature: Any, queue: Queue, trace: Ints, now: Round) -> None:
        x, a = queue.contexts[now.slot], queue.arms[now.slot]
        queue.losses[now.slot] = noisy(nature, mean_loss(nature, x, a), now.uniforms[1], now.key, now.t)
        react(nature, a)
        if trace.shape[0] > 0:
            trace[now.t - 1, 0] = x
            trace[now.t - 1, 1] = a

    def learn(learner: Any, queue: Queue, slot: int) -> None:
        known, options, state, _, sizes = learner
        play = Play(queue.contexts[slot], queue.arms[slot], queue.losses[slot])
        learn_play(known, options, state, play, carried_of(queue.directions[slot], queue.baselines[slot], sizes))

    return Steps(decide, kernel(choose), kernel(incur_loss), kernel(learn))


class RoundState(NamedTuple):
    """What a round changes besides the learner: nature, loss terms, queue, totals and trace."""

    nature: Any
    loss_terms: LossTerms
    queue: Queue
    totals: Floats
    trace: Ints


def build_round(steps: Steps) -> Callable[..., int]:
    """Build the kernel function that plays a round, up to the learner's feedback."""
    decide, choose, incur_loss, _ = steps

    def play(learner: Any, round_state: RoundState, drawn: Any, t: int, feedback: tuple[int, int]) -> int:
        """Play round t; return the number of observations that the learner now receives.

        ``drawn`` has key and uniforms, ``feedback`` its delay and batch size.
        """
        queue, (key, uniforms), (delay, batch) = round_state.queue, drawn, feedback
        g, blocked = learner[0].g, learner[0].blocked
        now = Round(t, key, uniforms, queue.ends[0])
        decide(round_state.nature, t, key)
        add_round(round_state.loss_terms, round_state.nature.tables, g, blocked, round_state.totals)
        queue.contexts[now.slot] = draw_index(g, uniforms[0])
        choose(learner, queue, now)
        incur_loss(round_state.nature, queue, round_state.trace, now)
        round_state.totals[REALISED] = round_state.totals[REALISED] + queue.losses[now.slot]
        queue.ends[0] = next_slot(queue, now.slot)
        queue.ends[2] += 1
        due = queue.ends[2] - delay
        return 0 if due < batch else int(due)

    return kernel(play)


def build_receive(steps: Steps) -> Callable[..., None]:
    """Build the kernel function that lets the learner learn from the oldest waiting decision."""
    learn = steps.learn

    def receive(learner: Any, queue: Queue) -> None:
        learn(learner, queue, queue.ends[1])
        queue.ends[1] = next_slot(queue, queue.ends[1])
        queue.ends[2] -= 1

    return kernel(receive)


def interpreted_loop(functions: Kernel, nature_kernel: NatureKernel, rates: str) -> Callable[..., int]:
    """Build the round loop of one replication as plain Python; ``rates`` as in `Machine`.

    It plays a slice of rounds and returns 0, or the round in which arithmetic failed. Scratch space may share the
    memory of the state. A GPU has separate scratch space, so that arrays indexed by constants stay in registers.
    """
    known_of, options_of, state_of, work_of = (
        functions.known_of,
        functions.options_of,
        functions.state_of,
        functions.work_of,
    )
    steps, refresh, row_by_row = build_steps(functions, nature_kernel), functions.refresh, functions.row_by_row
    play, receive, record_rates = build_round(steps), build_receive(steps), build_record_rates(functions, rates)

    def run(arrays: LearnerArrays, sizes: Any, nature: Any, queue: Queue, record: Record, key: int, part: Slice) -> int:
        known, options = known_of(arrays.known, sizes), options_of(arrays.options, sizes)
        state = state_of(arrays.core, arrays.rows, sizes)
        work = work_of(arrays.scratch_core, arrays.scratch_rows, sizes)
        round_state = RoundState(
            nature,
            LossTerms(nature.c, nature.expected_loss, nature.sums, nature.best),
            queue,
            record.totals,
            record.trace,
        )
        learner, feedback, position = (known, options, state, work, sizes), (part.delay, part.batch), part.position
        for t in range(part.first - part.fresh, part.last + 1):  # one inlined call of refresh is faster than two
            is_round, observations = t >= part.first, 1
            at_checkpoint = is_round and t == record.checkpoints[position]
            if at_checkpoint:
                record_rates(arrays.core, arrays.rows, sizes, record, position)
            if is_round:
                expected_losses(nature.tables, known.g, state.pi, nature.expected_loss)
                (u, v), (w, z) = two_uniforms(key, t, CONTEXT, 0), two_uniforms(key, t, ARM, 0)
                observations = play(learner, round_state, (key, (u, v, w, z)), t, feedback)
            for number in range(observations):
                if is_round:
                    receive(learner, queue)
                if (row_by_row or number == observations - 1) and refresh(known, options, state, work) != OK:
                    return max(t, part.first)
            if at_checkpoint:
                write_checkpoint(record, position, nature, known.g, known.blocked)
                position += 1
        return 0

    return run


@lru_cache(maxsize=64)
def compiled_loop(functions: Kernel, nature_kernel: NatureKernel, rates: str) -> Callable[..., int]:
    """Compile the round loop of one replication; once per process and algorithm."""
    return compiled(interpreted_loop(functions, nature_kernel, rates), "run")
