"""`Bound`, one bound on regret as a value and a curve, and `BoundTable`, several of them as text or plain values."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bothworlds.arrays import Floats

Formula = Callable[[Floats], Floats]
LONGEST = 10**15  # sums over rounds lose precision in floating point beyond it


def checked_horizons(horizons: Any) -> Floats:
    """Return horizons as a float array (n,); raise ValueError unless they are whole numbers from 1 to 10**15."""
    values = np.atleast_1d(np.asarray(horizons, dtype=np.float64))
    if values.ndim != 1 or not len(values) or not ((values >= 1.0) & (values <= LONGEST)).all():
        raise ValueError(f"horizons must be whole numbers from 1 to 10**15, one or a list of them; got {horizons!r}")
    if (values != np.floor(values)).any():
        raise ValueError(f"a horizon counts rounds and must be a whole number; got {horizons!r}")
    return values


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A bound on the regret R_T of Section 1.1, in units of loss.

    Attributes
    ----------
    name, source
        The algorithm, and where the bound is stated.
    regime
        "adversarial", "stochastic", "corrupted", "margin" or "margin, corrupted".
    horizon, value
        T, and the bound on R_T, which is infinite where the statement is empty for this problem.
    statement, assumptions
        The formula in words and symbols, and its assumptions.
    constants_known
        False where only the rate is known: the value is then the rate with constant 1, for comparing growth.
    lower
        Whether it is a lower bound on the regret of every algorithm.
    """

    name: str
    source: str
    regime: str
    horizon: int
    value: float
    statement: str
    assumptions: tuple[str, ...]
    constants_known: bool
    lower: bool = False
    formula: Formula = field(repr=False, compare=False)

    def at(self, horizons: Any) -> Floats:
        """Return the bound at each of several horizons.

        The algorithm is the same along the curve: if it is tuned to a horizon, it stays tuned to `horizon`.
        """
        return self.formula(checked_horizons(horizons))

    @property
    def proved(self) -> float:
        """min{value, 2 T}, the smallest bound that is proved: mean losses lie in [-1, 1]. A lower bound as it is."""
        return self.value if self.lower else min(self.value, 2.0 * self.horizon)

    @property
    def informative(self) -> bool:
        """Whether the bound is below 2 T, which always bounds R_T because mean losses lie in [-1, 1]."""
        return self.value < 2.0 * self.horizon

    def informative_from(self) -> float:
        """Return the smallest horizon, to a factor of 1.001, from which the bound is below 2 T; infinity above 10^15.

        An algorithm that is tuned to a horizon stays tuned to `horizon`.
        """
        grid = np.unique(np.rint(np.geomspace(1.0, LONGEST, 800)))
        below = self.formula(grid) < 2.0 * grid
        if not below[-1]:
            return math.inf
        last = int(np.flatnonzero(~below)[-1]) if not below.all() else -1
        low, high = (grid[last], grid[last + 1]) if last >= 0 else (1.0, 1.0)
        while high > 1.001 * low and high - low > 1.0:
            middle = np.rint(math.sqrt(low * high))
            if self.formula(np.array([middle]))[0] < 2.0 * middle:
                high = middle
            else:
                low = middle
        return float(high)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; an infinite value is None."""
        return {
            "name": self.name,
            "source": self.source,
            "regime": self.regime,
            "horizon": self.horizon,
            "value": self.value if math.isfinite(self.value) else None,
            "proved": self.proved,
            "informative": self.informative,
            "statement": self.statement,
            "assumptions": list(self.assumptions),
            "constants_known": self.constants_known,
            "lower": self.lower,
        }


@dataclass(frozen=True, kw_only=True)
class BoundTable:
    """Bounds for one problem and one horizon: iterate, select, print, or turn into plain values."""

    bounds: tuple[Bound, ...]
    facts: dict[str, Any]

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, index: int) -> Bound:
        return self.bounds[index]

    def select(self, *, name: str = "", regime: str | None = None, constants_known: bool | None = None) -> "BoundTable":
        """Return the bounds whose name contains ``name``, filtered by regime and by whether constants are known."""
        selected = [
            b
            for b in self.bounds
            if name.lower() in b.name.lower()
            and (regime is None or b.regime == regime)
            and (constants_known is None or b.constants_known == constants_known)
        ]
        return BoundTable(bounds=tuple(selected), facts=self.facts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"facts": dict(self.facts), "bounds": [b.to_dict() for b in self.bounds]}

    def __str__(self) -> str:
        facts = ", ".join(f"{key} = {_short(value)}" for key, value in self.facts.items())
        width = max([len(b.name) for b in self.bounds], default=4)
        regimes = max([len(b.regime) for b in self.bounds], default=6)
        lines = [facts, f"{'bound on R_T':<{width}}  {'regime':<{regimes}}  {'value':>10}  {'of 2 T':>8}  note"]
        for b in self.bounds:
            share = b.proved / (2.0 * b.horizon)
            lines.append(
                f"{b.name:<{width}}  {b.regime:<{regimes}}  {_short(b.proved):>10}  {_short(share):>8}  {_note(b)}"
            )
        return "\n".join(lines)


def _short(value: Any) -> str:
    """Format a number for a column."""
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"


def _note(b: Bound) -> str:
    """Return the note of a row: the source, and how to read the value."""
    if not math.isfinite(b.value):
        return f"{b.source}: empty for this problem"
    if not b.constants_known:
        return f"{b.source}: rate, constant 1" + (", lower bound" if b.lower else "")
    return b.source + ("" if b.informative else ": vacuous here, R_T <= 2 T says as much")
