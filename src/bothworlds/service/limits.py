"""Limits on the size of an experiment, checked at the start of a service and before a change computes anything."""

from bisect import bisect_left
from dataclasses import dataclass, replace

from bothworlds.problem import Problem

MOST_CONTEXTS = 10_000
MOST_ARMS = 1_000
MOST_DIMENSIONS = 1_000  # a plan takes a second, and time grows with the cube
MOST_BYTES = 100_000_000  # of the table of features; computing needs several times as much


@dataclass(frozen=True, kw_only=True)
class ProblemSize:
    """The size of a problem: contexts, arms, feature columns that arms share, and columns of each arm's own.

    >>> size = ProblemSize(contexts=4, arms=20, own=4)
    >>> size.columns, size.dimensions, size.bytes
    (80, 80, 51200)
    """

    contexts: int
    arms: int
    shared: int = 0
    own: int = 0

    @property
    def columns(self) -> int:
        """The number of feature columns."""
        return self.shared + self.own * self.arms

    @property
    def dimensions(self) -> int:
        """The largest possible rank of the features."""
        return min(self.columns, self.contexts * self.arms)

    @property
    def bytes(self) -> int:
        """The size of the table of features, shape (contexts, arms, columns), in bytes."""
        return 8 * self.contexts * self.arms * self.columns


def size_of(problem: Problem) -> ProblemSize:
    """Return the size of a problem."""
    contexts, arms, columns = problem.features.shape
    return ProblemSize(contexts=contexts, arms=arms, shared=columns)


def tabular_size(*, contexts: int, arms: int) -> ProblemSize:
    """Return the size of a problem that is declared by names: an indicator of every context, and a constant."""
    return ProblemSize(contexts=contexts, arms=arms, own=contexts + 1)


def exceeded_limit(size: ProblemSize) -> str | None:
    """Return which limit a size exceeds, and what it asks for; None if it fits.

    >>> exceeded_limit(ProblemSize(contexts=4, arms=504, own=5))
    '4 contexts with 504 arms make 2,016 dimensions; at most 1,000 are allowed'
    """
    limits = (
        ("contexts", size.contexts, MOST_CONTEXTS),
        ("arms", size.arms, MOST_ARMS),
        ("dimensions", size.dimensions, MOST_DIMENSIONS),
        ("bytes of features", size.bytes, MOST_BYTES),
    )
    for word, asked, most in limits:
        if asked > most:
            whole = f"{size.contexts:,} contexts with {size.arms:,} arms"
            asks = f"there are {asked:,} {word}" if word in ("contexts", "arms") else f"{whole} make {asked:,} {word}"
            return f"{asks}; at most {most:,} are allowed"
    return None


def most_arms(size: ProblemSize) -> int:
    """Return how many arms fit with the contexts and columns of a size; 0 if not even one does.

    >>> most_arms(ProblemSize(contexts=4, arms=504, own=5))
    250
    """
    return bisect_left(range(1, MOST_ARMS + 1), True, key=lambda arms: not _fits(replace(size, arms=arms)))


def _fits(size: ProblemSize) -> bool:
    return exceeded_limit(size) is None


def check_size(size: ProblemSize) -> None:
    """Raise a ValueError if a size exceeds a limit; the message says which one and what would fit."""
    refusal = exceeded_limit(size)
    if refusal is None:
        return
    arms = most_arms(size)
    if arms >= 2:
        shorter = "Retire or leave out arms, or describe all arms by the same few features (problem = a file)"
        raise ValueError(f"{refusal}: {arms:,} arms would fit. {shorter}")
    raise ValueError(f"{refusal}, and two arms would not fit either. Use fewer contexts or features")
