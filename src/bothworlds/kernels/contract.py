"""The contract between an algorithm and its callers: records, three functions on them, and the arrays of a problem.

An algorithm declares its options, its state, its scratch space and the data that its decisions carry (`layout`), and
defines

    refresh(known, options, state, work) -> status                 compute the plan from the learned state
    choose(known, options, state, work, x, draw, carried) -> arm   draw an arm; write what the decision carries
    learn(known, options, state, play, carried)                    add one observation to the learned state

The state has fields ``t``, the number of updates plus one, and ``pi`` (S, K), the probabilities of all contexts and
arms.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from bothworlds.arrays import Bools, Floats, aligned
from bothworlds.kernels.arithmetic import WIDTH, Number, Place
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import NOTHING, Layout, Nothing, Sizes, fixed, flat, leaves_of
from bothworlds.kernels.random import Two


class Known(NamedTuple):
    """Arrays of the problem, read-only for kernels: one entry per context, or per block of eight contexts.

    Features ``z`` (S, K, d); context probabilities ``g`` (S,); ``blocked`` (S, K), infinite where an arm is not offered
    and zero elsewhere; exploration policy ``e`` (S, K).
    """

    z: Annotated[Floats, fixed("S", "K", "d")]
    g: Annotated[Floats, fixed("S")]
    blocked: Annotated[Floats, fixed("S", "K")]
    e: Annotated[Floats, fixed("S", "K")]


class Draw(NamedTuple):
    """The random numbers of a decision: two uniforms, and the key and time from which more can be generated."""

    uniforms: Two
    key: int
    time: int


class Play(NamedTuple):
    """An observation: context, arm and loss."""

    x: Place
    a: Place
    loss: Number


class Kernel(NamedTuple):
    """The kernel of an algorithm: its functions and the layouts of its records. `build_kernel` returns one.

    ``wide``: ``refresh`` uses only `arithmetic`, so that it can process eight contexts or sixteen replications at once.
    ``together``: so do ``choose`` and ``learn``, and each replication has its own context and arm. ``row_by_row``: of
    observations that arrive together, each is learned with the plan that the one before it led to. ``static`` has the
    positions of options that select a branch; on a GPU their values are compile-time constants.
    """

    memory: Layout
    outside: Layout
    known_of: Callable[..., Known]
    options_of: Callable[..., Any]
    state_of: Callable[..., Any]
    work_of: Callable[..., Any]
    carried_of: Callable[..., Any]
    refresh: Callable[..., int]
    choose: Callable[..., int]
    learn: Callable[..., None]
    possible: Callable[..., bool]
    wide: bool
    together: bool
    row_by_row: bool
    static: tuple[int, ...]

    @property
    def has_baseline(self) -> bool:
        """Whether decisions carry a baseline besides their direction."""
        return "baseline" in self.outside.leaves


@kernel
def any_decision(known: Known, options: Any, play: Play, carried: Any, propensity: float) -> bool:
    """Accept every decision: the check of algorithms that define none."""
    return True


def build_kernel(
    refresh: Callable[..., int],
    choose: Callable[..., int],
    learn: Callable[..., None],
    *,
    possible: Callable[..., bool] = any_decision,
    wide: bool = False,
    together: bool = False,
    row_by_row: bool = False,
    static: tuple[str, ...] = (),
) -> Kernel:
    """Build a kernel from the three functions of an algorithm; their annotations name the records that they take.

    Parameters
    ----------
    refresh, choose, learn
        The functions, each marked with `kernel`.
    possible
        Returns whether any plan can have made a decision (`algorithms.shared.decision_checks`); by default always True.
    wide
        Whether ``refresh`` works on eight contexts or sixteen replications at once.
    together
        Whether all three functions do.
    row_by_row
        Whether ``refresh`` follows each ``learn``; by default it follows the last of a batch of observations.
    static
        Names of options that select a branch.
    """
    options, state, work = (_record(name, refresh) for name in ("options", "state", "work"))
    carried = _record("carried", choose, learn)
    memory, outside = Layout(state, work), Layout(options, carried, Known)
    return Kernel(
        memory=memory,
        outside=outside,
        known_of=outside.reader(Known, "known"),
        options_of=outside.reader(options, "options"),
        state_of=memory.reader(state, "core", "rows"),
        work_of=memory.reader(work, "core", "rows"),
        carried_of=outside.reader(carried, "direction", "baseline"),
        refresh=refresh,
        choose=choose,
        learn=learn,
        possible=possible,
        wide=wide or together,
        together=together,
        row_by_row=row_by_row,
        static=tuple(outside.leaves[name].place(Sizes(0, 0, 0))[0] for name in static),
    )


def _record(name: str, *functions: Callable[..., Any]) -> type:
    """Return the record type that annotates an argument of one of the functions, or `Nothing`."""
    hints: list[Any] = [get_type_hints(function).get(name) for function in functions]
    record: type = next((hint for hint in hints if hasattr(hint, "_fields")), Nothing)
    return record


def known_of(problem: Any, exploration: Floats, coordinates: Floats) -> Known:
    """Return the arrays of a problem for kernels; features of arms that are not offered are zero."""
    blocked = np.where(problem.available, 0.0, np.inf)
    return Known(np.array(coordinates), np.array(problem.probabilities), blocked, np.array(exploration))


def even_play(available: Bools) -> Floats:
    """Return the policy that plays all offered arms equally often."""
    return np.asarray(available / available.sum(axis=1, keepdims=True))


def in_blocks(values: Floats) -> Floats:
    """Return an array (contexts, ...) as (blocks, ..., 8): eight contexts side by side, padded with zeros."""
    blocks = -(-len(values) // WIDTH)
    padded = np.zeros((blocks * WIDTH, *values.shape[1:]))
    padded[: len(values)] = values
    return np.moveaxis(padded.reshape(blocks, WIDTH, *values.shape[1:]), 1, -1)


def out_of_blocks(values: Floats, n_contexts: int) -> Floats:
    """Return an array (blocks, ..., 8) as (contexts, ...).

    >>> out_of_blocks(in_blocks(np.arange(10.0)), 10).tolist()[-1]
    9.0
    """
    rows = values.transpose(0, -1, *range(1, values.ndim - 1))  # same as moveaxis, in a tenth of its time
    return rows.reshape(-1, *rows.shape[2:])[:n_contexts].copy()


def flat_known(known: Known, *, wide: bool = False) -> Floats:
    """Return the arrays of `Known` as one array: of numbers, or, if ``wide``, of packs of eight contexts."""
    parts = [in_blocks(part).reshape(-1, WIDTH) if wide else part.reshape(-1) for part in known]
    out = aligned(sum(len(part) for part in parts), *parts[0].shape[1:])
    out[...] = np.concatenate(parts)
    return out


class Beliefs(NamedTuple):
    """Names of the state's fields that prior data can fill before the first round.

    ``total`` is Theta, the sum of estimates: n theta after n rounds with mean theta. ``rounds`` has n, if what is
    learned does not cover all rounds so far. ``drift``: plans follow ``total`` + ``drift``. ``gram`` and ``moment`` are
    those of a ridge regression; ``squared`` is its Gram matrix with squared weights, if it has weights.
    ``restarts`` counts how often the learner restarted because the world had changed.
    ``rate_fields(options, rounds, earlier)`` returns the fields that determine the rates after that many rounds;
    ``earlier`` is what the policy had learnt on an earlier problem, or None. ``unchanged``: fields that a change of the
    problem leaves as they are. ``linear``: decisions carry vectors in the learner's coordinates.
    """

    total: str = ""
    rounds: str = ""
    drift: str = ""
    gram: str = ""
    moment: str = ""
    squared: str = ""
    restarts: str = ""
    rate_fields: Callable[..., Mapping[str, Any]] | None = None
    unchanged: tuple[str, ...] = ()
    linear: bool = True


class Earlier(NamedTuple):
    """The learnt fields of a policy on an earlier problem, its options, and the share of its rounds used as a prior."""

    options: Any
    learnt: Mapping[str, Floats]
    share: float


def no_seed(key: Any) -> Mapping[str, Any]:
    """Return no fields: for algorithms whose plans use no random numbers."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """An algorithm prepared for a problem: its kernel and the arrays that the kernel works on.

    ``begin`` has the initial values of fields of the state, by name; other fields start at zero, and ``t`` at one.
    ``seeded(key)`` returns initial values that depend on the random stream, for algorithms whose plans use random
    numbers; ``key`` is that of the policy or the replication, or an array with one key per lane. ``frame`` has the
    arrays from which the same machine can be rebuilt. ``listed`` is the size P, the number of listed policies or of
    plays kept. ``beliefs`` names the fields of the state that a prior can fill, or is None. ``rates`` names the field
    of the state with eta_t and gamma_t, where pi_t = (1 - gamma_t) q_t + gamma_t e; simulations record it.
    """

    kernel: Kernel
    known: Known
    options: Any = NOTHING
    begin: Mapping[str, Any] = field(default_factory=dict)
    seeded: Callable[[Any], Mapping[str, Any]] = no_seed
    frame: Mapping[str, Floats] = field(default_factory=dict)
    listed: int = 0
    beliefs: Beliefs | None = None
    rates: str = ""

    def __post_init__(self) -> None:
        leaf = self.kernel.memory.leaves.get(self.rates)
        if self.rates and (leaf is None or leaf.spec.shape != (2,)):
            raise ValueError(
                f"rates must name a field of the state with two numbers, eta and gamma; got {self.rates!r}"
            )

    @cached_property
    def sizes(self) -> Sizes:
        """Sizes of the problem."""
        S, K, d = self.known.z.shape
        return Sizes(S, K, d, self.listed)

    @cached_property
    def block_sizes(self) -> Sizes:
        """Sizes as a policy uses them: S counts blocks of eight contexts if the kernel is ``wide``."""
        S = self.sizes.S
        return self.sizes._replace(S=-(-S // WIDTH) if self.kernel.wide else S)

    @property
    def flat_options(self) -> Floats:
        """The options as one array."""
        return flat(self.options)

    @property
    def carried(self) -> tuple[int, int]:
        """Lengths of the direction and of the baseline that a decision carries."""
        outside = self.kernel.outside
        return outside.count("direction", self.sizes), outside.count("baseline", self.sizes)

    def memory(self, *lanes: int, key: Any = 0) -> tuple[Floats, Floats]:
        """Return the initial memory, core and rows, of one replication or of some lanes."""
        counts = self.kernel.memory.counts(self.sizes)
        core, rows = (aligned(counts[array], *lanes) for array in ("core", "rows"))
        for name, value in {"t": 1.0, **self.begin}.items():
            part = self.part(name, core, rows, self.sizes)
            part[...] = np.asarray(value).reshape(np.shape(value) + (1,) * len(lanes))
        for name, value in self.seeded(key).items():
            self.part(name, core, rows, self.sizes)[...] = value
        return core, rows

    def part(self, name: str, core: Floats, rows: Floats, sizes: Sizes) -> Floats:
        """Return a view of a field of the state."""
        in_rows = self.kernel.memory.leaves[name].array == "rows"
        return self.kernel.memory.part(name, rows if in_rows else core, sizes)


def leaf_values(record: Any) -> list[Any]:
    """Return the leaf fields of a nested record, in order."""
    return [leaf for part in record for leaf in (leaf_values(part) if hasattr(part, "_fields") else [part])]


def field_of(record: Any, name: str) -> Any:
    """Return the leaf field of a nested record with a given name."""
    names = [leaf for leaf, _ in leaves_of(type(record))]
    return leaf_values(record)[names.index(name)]
