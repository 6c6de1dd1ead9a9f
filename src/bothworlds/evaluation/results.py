"""What an evaluation has found: policies, differences, what is to be known of the log, and whether to promote."""

from collections.abc import Mapping
from dataclasses import dataclass

from bothworlds.evaluation.bands import Band, brief
from bothworlds.evaluation.diagnostics import Calibration, Diagnostics
from bothworlds.evaluation.estimators import Estimate
from bothworlds.evaluation.gate import Difference, Verdict, verdict
from bothworlds.evaluation.logged import Logged
from bothworlds.kernels.arrays import Floats


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluated:
    """One policy: estimates by name, its band, its weights, and its table (contexts, arms), averaged over rows."""

    name: str
    about: str
    estimates: Mapping[str, Estimate]
    band: Band
    diagnostics: Diagnostics
    table: Floats
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The doubly robust estimate, or inverse propensity weighting where there are no predictions."""
        return self.estimates["dr" if "dr" in self.estimates else "ips"].value

    @property
    def interval(self) -> tuple[float, float]:
        """The interval after the last row."""
        return self.band.interval

    def __repr__(self) -> str:
        return f"Evaluated({brief(self.name, self.value, self.interval)})"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation:
    """What `evaluate` returns: policies by name, differences by pairs of names, and what is to be known of the log.

    ``evaluation["new"]`` is one policy, ``evaluation.difference("new", "old")`` a difference with its own interval,
    ``evaluation.promotes("new", over="old", by=0.01)`` a decision with its reason.
    """

    logged: Logged
    policies: Mapping[str, Evaluated]
    differences: Mapping[tuple[str, str], Difference]
    calibration: Calibration | None
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Evaluated:
        if name not in self.policies:
            raise ValueError(f"no policy {name!r} was evaluated; there are {', '.join(map(repr, self.policies))}")
        return self.policies[name]

    def difference(self, name: str, over: str) -> Difference:
        """Return the difference of two policies' values, with its interval."""
        if (name, over) not in self.differences:
            known = ", ".join(f"{a!r} over {b!r}" for a, b in self.differences) or "none"
            raise ValueError(f"{name!r} was not compared with {over!r}; say against= when evaluating. Known: {known}")
        return self.differences[name, over]

    def promotes(self, name: str, *, over: str, by: float = 0.0) -> Verdict:
        """Decide whether a policy is better than another by more than ``by``, at the level of the intervals.

        It is if the lower bound of the difference exceeds ``by``. With an interval that holds at any time one may ask
        again after every row, and promote at the first yes: that is wrong with probability alpha/2 at most.
        """
        return verdict(self.difference(name, over), by=by, calibration=self.calibration)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to know before using the numbers, in plain words."""
        own = [
            f"{name}: {text}"
            for name, one in self.policies.items()
            for text in (*one.notes, *one.diagnostics.sentences)
        ]
        return (*(self.calibration.sentences if self.calibration else ()), *own, *self.notes)

    def __repr__(self) -> str:
        parts = [brief(name, one.value, one.interval) for name, one in self.policies.items()]
        return f"Evaluation({self.logged.rows:,} rows; {'; '.join(parts)})"
