"""Results of an evaluation: policies, differences, calibration of the log, notes, and whether to promote."""

from collections.abc import Mapping
from dataclasses import dataclass

from bothworlds.arrays import Floats
from bothworlds.evaluation.diagnostics import Calibration, Diagnostics
from bothworlds.evaluation.estimators import Estimate
from bothworlds.evaluation.gate import Difference, Verdict, verdict
from bothworlds.evaluation.intervals import Band, brief
from bothworlds.evaluation.logged import Logged


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluated:
    """One policy: estimates by name, interval, weight diagnostics and table (contexts, arms), averaged over rows."""

    name: str
    about: str
    estimates: Mapping[str, Estimate]
    band: Band
    diagnostics: Diagnostics
    table: Floats
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The doubly robust estimate, or the inverse propensity weighted one if there are no predictions."""
        return self.estimates["dr" if "dr" in self.estimates else "ips"].value

    @property
    def interval(self) -> tuple[float, float]:
        """The interval after the last row."""
        return self.band.interval

    def __repr__(self) -> str:
        return f"Evaluated({brief(self.name, self.value, self.interval)})"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation:
    """What `evaluate` returns: policies by name, differences by pairs of names, calibration of the log, and notes.

    ``evaluation["new"]`` is one policy, ``evaluation.difference("new", "old")`` a difference with its own interval,
    ``evaluation.promotes("new", over="old", by=0.01)`` a verdict with its reason.
    """

    logged: Logged
    policies: Mapping[str, Evaluated]
    differences: Mapping[tuple[str, str], Difference]
    calibration: Calibration | None
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Evaluated:
        if name not in self.policies:
            raise ValueError(
                f"no policy {name!r} was evaluated; the policies are {', '.join(map(repr, self.policies))}"
            )
        return self.policies[name]

    def difference(self, name: str, over: str) -> Difference:
        """Return the difference of two policies' values, with its interval."""
        if (name, over) not in self.differences:
            known = ", ".join(f"{a!r} over {b!r}" for a, b in self.differences) or "none"
            raise ValueError(f"{name!r} was not compared with {over!r}; pass against= to evaluate. Compared: {known}")
        return self.differences[name, over]

    def promotes(self, name: str, *, over: str, by: float = 0.0) -> Verdict:
        """Decide whether a policy is better than another by more than ``by``, at the level of the intervals.

        It is if the lower bound of the difference exceeds ``by``. With an interval that holds at any time you may ask
        after every row and promote at the first yes; this is wrong with probability at most alpha/2.
        """
        return verdict(self.difference(name, over), by=by, calibration=self.calibration)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to know before using the numbers, in words."""
        by_policy = [
            f"{name}: {text}"
            for name, policy in self.policies.items()
            for text in (*policy.notes, *policy.diagnostics.sentences)
        ]
        return (*(self.calibration.sentences if self.calibration else ()), *by_policy, *self.notes)

    def __repr__(self) -> str:
        parts = [brief(name, policy.value, policy.interval) for name, policy in self.policies.items()]
        return f"Evaluation({self.logged.rows:,} rows; {'; '.join(parts)})"
