"""The simulation of one replication as kernel text: a learner against a nature, slice by slice."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from bothworlds.environments.nature import NatureText
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.contract import Draw, KernelText, Play
from bothworlds.kernels.jit.compile import compiled, kernel
from bothworlds.kernels.random import ARM, CONTEXT, two_uniforms
from bothworlds.kernels.random import draw as draw_index
from bothworlds.kernels.status import OK


class Queue(NamedTuple):
    """Decisions that wait for feedback, in a ring: context and arm, loss, direction, baseline.

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

    ``spent`` takes state[0] of nature, which is the corruption so far where there is a budget for it; ``rates`` eta_t
    and gamma_t of the learner, if it has such. ``totals`` (3,) runs along: expected, realised, and the rounding of the
    first; ``trace`` (T, 2) takes contexts and arms if it is not empty.
    """

    checkpoints: Ints
    expected: Floats
    realised: Floats
    own_best: Floats
    sums: Floats
    spent: Floats
    rates: Floats
    totals: Floats
    trace: Ints


class Learner(NamedTuple):
    """The arrays of a learner: what is known, options, and its memory; with scratch space of its own, or the same."""

    known: Floats
    options: Floats
    core: Floats
    rows: Floats
    scratch_core: Floats
    scratch_rows: Floats


class Slice(NamedTuple):
    """Which rounds to play, where the next checkpoint is, how feedback comes, and whether a plan is to be made first.

    That is so at the start, and where only what is learnt was kept.
    """

    first: int
    last: int
    position: int
    delay: int
    batch: int
    fresh: bool


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
def write_checkpoint(record: Record, position: int, nature: Any, g: Floats, blocked: Floats) -> None:
    """Write the totals so far, the best policy's, and what nature has summed up and spent, at a checkpoint."""
    sums = nature.sums
    record.expected[position] = record.totals[0]
    record.realised[position] = record.totals[1]
    record.own_best[position] = best_loss(nature.tables, g, blocked, sums)
    record.spent[position] = nature.state[0]
    for j in range(sums.shape[0]):
        record.sums[position, j] = sums[j]


@kernel
def note_nothing(core: Floats, rows: Floats, sizes: Any, record: Record, position: int) -> None:
    """Note no rates, for there are none."""


def noting(text: KernelText, rates: str) -> Callable[..., None]:
    """Build the function that notes the rates of a plan from the learner's memory, as kernel text."""
    if not rates:
        return note_nothing
    rates_of = text.memory.pair(rates)

    def note(core: Floats, rows: Floats, sizes: Any, record: Record, position: int) -> None:
        record.rates[position, 0], record.rates[position, 1] = rates_of(core, rows, sizes)

    return kernel(note)


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


class Round(NamedTuple):
    """What belongs to a round besides the learner: its number, uniforms for context, loss and arm, and its slot."""

    t: int
    key: Any  # or one of each lane
    uniforms: Any
    slot: int


class Steps(NamedTuple):
    """What an algorithm and a nature do in a round, for one replication, or for all lanes at once or in turn.

    ``decide(nature, t, key)``, ``choose(learner, queue, now)``, ``suffer(nature, queue, trace, now)`` and
    ``learn(learner, queue, slot)``; the learner is a tuple of known, options, state, work and sizes.
    """

    decide: Callable[..., None]
    choose: Callable[..., None]
    suffer: Callable[..., None]
    learn: Callable[..., None]


def steps_of(text: KernelText, nature_text: NatureText) -> Steps:
    """Return the steps of a round, as kernel text."""
    choose_arm, learn_from, carried_of = text.choose, text.learn, text.carried_of
    decide, react, mean_loss, noisy, _ = nature_text

    def choose(learner: Any, queue: Queue, now: Round) -> None:
        known, options, state, work, sizes = learner
        draw = Draw((now.uniforms[2], now.uniforms[3]), now.key, now.t)
        carried = carried_of(queue.directions[now.slot], queue.baselines[now.slot], sizes)
        queue.arms[now.slot] = choose_arm(known, options, state, work, queue.contexts[now.slot], draw, carried)

    def suffer(nature: Any, queue: Queue, trace: Ints, now: Round) -> None:
        x, a = queue.contexts[now.slot], queue.arms[now.slot]
        queue.losses[now.slot] = noisy(nature, mean_loss(nature, x, a), now.uniforms[1], now.key, now.t)
        react(nature, a)
        if trace.shape[0] > 0:
            trace[now.t - 1, 0] = x
            trace[now.t - 1, 1] = a

    def learn(learner: Any, queue: Queue, slot: int) -> None:
        known, options, state, _, sizes = learner
        play = Play(queue.contexts[slot], queue.arms[slot], queue.losses[slot])
        learn_from(known, options, state, play, carried_of(queue.directions[slot], queue.baselines[slot], sizes))

    return Steps(decide, kernel(choose), kernel(suffer), kernel(learn))


class Stage(NamedTuple):
    """What a round changes besides the learner: nature, what of it is added up, the queue, the totals and the trace."""

    nature: Any
    felt: Coefficients
    queue: Queue
    totals: Floats
    trace: Ints


def round_of(steps: Steps) -> Callable[..., int]:
    """Build the part of a round between two plans, as kernel text."""
    decide, choose, suffer, learn = steps

    def play(learner: Any, stage: Stage, g: Floats, drawn: Any, t: int, feedback: tuple[int, int]) -> int:
        """Let nature and the learner play round t; return how many observations were learnt from.

        ``drawn`` has key and uniforms, ``feedback`` its delay and the size of a batch.
        """
        queue, (key, uniforms), (delay, batch) = stage.queue, drawn, feedback
        now = Round(t, key, uniforms, queue.ends[0])
        decide(stage.nature, t, key)
        account(stage.felt, stage.totals)
        queue.contexts[now.slot] = draw_index(g, uniforms[0])
        choose(learner, queue, now)
        suffer(stage.nature, queue, stage.trace, now)
        stage.totals[1] = stage.totals[1] + queue.losses[now.slot]
        queue.ends[0] = next_slot(queue, now.slot)
        queue.ends[2] += 1
        due = queue.ends[2] - delay
        if due < batch:
            return 0
        for _ in range(due):
            learn(learner, queue, queue.ends[1])
            queue.ends[1] = next_slot(queue, queue.ends[1])
            queue.ends[2] -= 1
        return int(due)

    return kernel(play)


def interpreted_driver(text: KernelText, nature_text: NatureText, rates: str) -> Callable[..., int]:
    """Build the driver of one replication as plain Python; ``rates`` as in `Machine`.

    It plays a slice of rounds and returns 0, or the round in which arithmetic failed. The scratch space is the memory
    itself, or one of its own: on a GPU what is indexed by constants alone is kept in registers.
    """
    known_of, options_of, state_of, work_of = text.known_of, text.options_of, text.state_of, text.work_of
    refresh, play, note = text.refresh, round_of(steps_of(text, nature_text)), noting(text, rates)

    def run(arrays: Learner, sizes: Any, nature: Any, queue: Queue, record: Record, key: int, part: Slice) -> int:
        known, options = known_of(arrays.known, sizes), options_of(arrays.options, sizes)
        state = state_of(arrays.core, arrays.rows, sizes)
        work = work_of(arrays.scratch_core, arrays.scratch_rows, sizes)
        stage = Stage(nature, Coefficients(nature.c, nature.hurt, nature.sums), queue, record.totals, record.trace)
        learner, feedback, position = (known, options, state, work, sizes), (part.delay, part.batch), part.position
        for t in range(part.first - part.fresh, part.last + 1):  # one call of refresh: being inlined, two take longer
            playing, learnt = t >= part.first, 1
            marked = playing and t == record.checkpoints[position]
            if marked:
                note(arrays.core, arrays.rows, sizes, record, position)
            if playing:
                expected_losses(nature.tables, known.g, state.pi, nature.hurt)
                (u, v), (w, z) = two_uniforms(key, t, CONTEXT, 0), two_uniforms(key, t, ARM, 0)
                learnt = play(learner, stage, known.g, (key, (u, v, w, z)), t, feedback)
            if learnt > 0 and refresh(known, options, state, work) != OK:
                return max(t, part.first)
            if marked:
                write_checkpoint(record, position, nature, known.g, known.blocked)
                position += 1
        return 0

    return run


@lru_cache(maxsize=64)
def compiled_driver(text: KernelText, nature_text: NatureText, rates: str) -> Callable[..., int]:
    """Build the driver of one replication as machine code; once per process and algorithm."""
    return compiled(interpreted_driver(text, nature_text, rates), "run")
