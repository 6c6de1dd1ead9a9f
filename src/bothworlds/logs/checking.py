"""Rows as they come from a file: what can be relied on, or a sentence that says which row cannot."""

import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bothworlds.logs.faults import LogError, shown
from bothworlds.logs.schema import Row
from bothworlds.problem.checks import check_reward_range

TOLERANCE = 1e-6  # of sums of probabilities: what writing numbers in single precision leaves
LARGEST = sys.float_info.max
RECENT = 1 << 18  # ids that are looked up one by one; older ones, many at once
Numbered: TypeAlias = Iterator[tuple[int, Row]]
Limits: TypeAlias = tuple[float, float] | None


def checked(
    rows: Iterable[Row], *, reward_range: Limits = None, tolerance: float = TOLERANCE, source: str | Path = "the log"
) -> Iterator[Row]:
    """Yield rows as they are; refuse the first that cannot be relied on, in a sentence with its number.

    Every reader of this package does so. Propensities are probabilities, the arm was offered, probabilities sum to one
    and agree with the propensity, numbers are finite, rewards lie in their range, and no id stands twice. Ids are
    compared by hashes of 64 bits, 16 bytes for each: at worst a repeated id is noticed some 260,000 rows later, and
    before the end.

    Parameters
    ----------
    rows
        From anywhere.
    reward_range
        (lowest, highest) reward; without it rewards need only be finite.
    tolerance
        How far from one probabilities may sum, and from the propensity that of the arm may be. Larger for logs that
        were rounded.
    source
        What sentences call the log.

    >>> row = Row(id="visit 9", arm="red", propensity=0.5, offered=("red", "blue"), probabilities=(0.5, 0.4))
    >>> list(checked([row]))
    Traceback (most recent call last):
    bothworlds.logs.faults.LogError: the log, row 1: the probabilities sum to 0.9, not to 1; give the whole vector
    """
    return checked_rows(enumerate(rows, 1), source, reward_range, tolerance)


def checked_rows(rows: Numbered, source: str | Path, reward_range: Limits, tolerance: float) -> Iterator[Row]:
    """Yield numbered rows without their numbers, each looked at."""
    limits, known = check_reward_range(reward_range), Ids(source)
    for number, row in rows:
        fault = fault_of(row, limits, tolerance)
        if fault is not None:
            raise LogError(source, number, fault)
        known.add(row.id, number)
        yield row
    known.settle()


def sound_rows(rows: Iterable[Row], source: str | Path) -> Numbered:
    """Yield rows with their numbers, for a writer: whole as they must be, but rounded as they may be."""
    for number, row in enumerate(rows, 1):
        fault = fault_of(row, None, math.inf)
        if fault is not None:
            raise LogError(source, number, fault)
        yield number, row


def fault_of(row: Row, limits: Limits, tolerance: float) -> str | None:
    """Say what is wrong with a row, or nothing."""
    return _names_fault(row) or _chances_fault(row, tolerance) or _numbers_fault(row, limits)


def _names_fault(row: Row) -> str | None:
    if type(row.id) is not str or not row.id:
        return f"an id is a text with at least one character; got {shown(row.id)}"
    if type(row.arm) is not str:
        return f"the arm must be a name; got {shown(row.arm)}"
    if not (row.context is None or type(row.context) is str):
        return f"the context must be a name; got {shown(row.context)}"
    if type(row.policy) is not str or not (row.digest is None or type(row.digest) is str):
        return f"policy and digest must be texts; got {shown(row.policy)} and {shown(row.digest)}"
    if not (row.footing is None or type(row.footing) is str):
        return f"footing must be a text; got {shown(row.footing)}"
    if type(row.version) is not int or not 0 <= row.version < 2**63 or type(row.holdout) is not bool:
        return f"version must be a whole number and holdout true or false; got {row.version!r:.40}, {row.holdout!r:.40}"
    return None


def _chances_fault(row: Row, tolerance: float) -> str | None:
    if not (is_finite(row.propensity) and 0.0 < row.propensity <= 1.0 + tolerance):
        return f"propensity {shown(row.propensity)} is no probability above 0 of an arm that was chosen"
    offered, chances = row.offered, row.probabilities
    if type(offered) is not tuple or any(type(arm) is not str for arm in offered) or len(set(offered)) < len(offered):
        return f"the arms offered must be different names; got {shown(offered)}"
    if offered and row.arm not in offered:
        return f"arm {shown(row.arm)} is not among those offered, {shown(offered)}"
    if not chances:
        return None if chances == () else f"probabilities must be a list of numbers; got {shown(chances)}"
    if not are_finite(chances) or min(chances) < 0.0:
        return f"probabilities must be numbers, none negative; got {shown(chances)}"
    if len(chances) != len(offered):
        return f"{len(chances)} probabilities for {len(offered)} arms offered; there must be one for each"
    total = math.fsum(chances)
    if not abs(total - 1.0) <= tolerance:
        return f"the probabilities sum to {total:.6g}, not to 1; give the whole vector{_wider(total, tolerance)}"
    found = chances[offered.index(row.arm)]
    if not abs(found - row.propensity) <= tolerance:
        return f"propensity {row.propensity!r} of arm {shown(row.arm)}, whose probability is {found!r}: which is it?"
    return None


def _wider(total: float, tolerance: float) -> str:
    """Say what to do where rounding may be the reason."""
    off = abs(total - 1.0)
    return f", or tolerance={2 * off:.1g} if it was rounded" if off < max(0.01, 100 * tolerance) else ""


def _numbers_fault(row: Row, limits: Limits) -> str | None:
    for name, value in (("time", row.time), ("reward", row.reward), ("reward_time", row.reward_time)):
        if not (value is None or is_finite(value)):
            return f"{name} must be a finite number; got {shown(value)}"
    if limits is not None and row.reward is not None and not limits[0] <= row.reward <= limits[1]:
        return f"reward {row.reward!r} is outside [{limits[0]:g}, {limits[1]:g}]; is the reward_range right?"
    if row.direction != () and not are_finite(row.direction):
        return f"direction must be a list of finite numbers; got {shown(row.direction)}"
    if not (row.baseline is None or are_finite(row.baseline)):
        return f"baseline must be a list of finite numbers; got {shown(row.baseline)}"
    return None if row.features is None else _features_fault(row.features, len(row.offered))


def _features_fault(features: Any, arms: int) -> str | None:
    if type(features) is not tuple or not features or not all(are_finite(line) for line in features):
        return f"features must be lists of finite numbers; got {shown(features)}"
    if len({len(line) for line in features}) > 1:
        return f"features must have one length; got {sorted({len(line) for line in features})}"
    if len(features) != 1 and arms and len(features) != arms:
        return f"features of {len(features)} arms, where {arms} are offered; give one list for each, or one for all"
    return None


def is_finite(value: Any) -> bool:
    """Tell a finite number, and no truth value."""
    return type(value) in (float, int) and abs(value) <= LARGEST


def are_finite(values: Any) -> bool:
    """Tell a tuple of finite numbers."""
    return type(values) is tuple and all(is_finite(value) for value in values)


class Ids:
    """Which ids have stood in a log, as hashes: the newest in a set, older ones in a sorted array.

    >>> ids = Ids("clicks.csv")
    >>> for number, name in enumerate("abca", 1):
    ...     ids.add(name, number)
    Traceback (most recent call last):
    bothworlds.logs.faults.LogError: clicks.csv, row 4: id 'a' stands there twice; every decision has an id of its own
    """

    def __init__(self, source: str | Path, *, recent: int = RECENT) -> None:
        self.source, self.recent = source, recent
        self._new: dict[int, int] = {}
        self._hashes, self._rows = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def add(self, name: str, row: int) -> None:
        """Take note of the id of a row; refuse it if it stands there already."""
        hashed = hash(name)
        if hashed in self._new:
            raise LogError(self.source, row, f"id {shown(name)} {TWICE}")
        self._new[hashed] = row
        if len(self._new) >= self.recent:
            self.settle()

    def settle(self) -> None:
        """Compare the newest with the older ones."""
        hashes = np.fromiter(self._new.keys(), dtype=np.int64, count=len(self._new))
        rows = np.fromiter(self._new.values(), dtype=np.int64, count=len(self._new))
        self._new = {}
        order = np.argsort(hashes)
        hashes, rows = hashes[order], rows[order]
        places = np.searchsorted(self._hashes, hashes)
        inside = np.flatnonzero(places < len(self._hashes))
        same = inside[self._hashes[places[inside]] == hashes[inside]]
        if len(same):
            first, again = int(self._rows[places[same[0]]]), int(rows[same[0]])
            raise LogError(self.source, again, f"it has the id of row {first}, which {TWICE}")
        self._hashes = np.insert(self._hashes, places, hashes)  # one after the other: half the memory of both at once
        self._rows = np.insert(self._rows, places, rows)


TWICE = "stands there twice; every decision has an id of its own"
